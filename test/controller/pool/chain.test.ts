import { expect, test } from '@jest/globals';
import type { Manifest } from '../../../src/api/index.js';
import { chainDiffers } from '../../../src/controller/pool/chain.js';
import { createMemory } from '../../../src/controller/pool/memory.js';
import { claim, pod, sandbox, template } from '../../support/pool-observation.js';

const chain = { template, claim, sandbox, pod: pod.live };
const members = ['template', 'claim', 'sandbox', 'pod'] as const;

function compared() {
  const memory = createMemory();
  expect(chainDiffers(chain, memory)).toBe(false);
  return { memory, first: memory.compared };
}

const written = (object: Manifest): Manifest => ({
  ...object,
  metadata: { ...object.metadata, resourceVersion: '4711', managedFields: [{ manager: 'somebody' }] },
  status: { observed: 'anew' },
});
const annotated = (object: Manifest): Manifest => ({
  ...object,
  metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, 'example.com/added': 'yes' } },
});

test.each(members)('a chain is not compared again when only the status of its %s was written', (member) => {
  const { memory, first } = compared();
  expect(chainDiffers({ ...chain, [member]: written(chain[member]) }, memory)).toBe(false);
  expect(memory.compared).toBe(first);
});

test.each(members)('a chain is compared again when anything else of its %s was', (member) => {
  const { memory, first } = compared();
  chainDiffers({ ...chain, [member]: annotated(chain[member]) }, memory);
  expect(memory.compared).not.toBe(first);
});

test('a Pod that was changed after its chain was found whole is seen', () => {
  const { memory } = compared();
  expect(chainDiffers({ ...chain, pod: annotated(chain.pod) }, memory)).toBe(true);
});

test('a chain that was found whole as rendered is compared again once a Pod as admitted is what was accepted', () => {
  const { memory } = compared();
  memory.attested = { podUid: pod.uid, accepted: 'sha256:0' };
  expect(chainDiffers(chain, memory)).toBe(true);
});
