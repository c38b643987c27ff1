import { expect, test } from '@jest/globals';
import type { Manifest } from '../../../src/api/index.js';
import { createMemory, missesClaim } from '../../../src/controller/pool/memory.js';
import type { PoolMemory } from '../../../src/controller/pool/memory.js';
import type { PoolObservation } from '../../../src/controller/pool/observation.js';

const live: Manifest = { apiVersion: 'v1', kind: 'SandboxClaim', metadata: { name: 'c', uid: 'claim-1' } };
const there = { claim: { live } as unknown as NonNullable<PoolObservation['claim']> };
const gone = { claim: undefined };

/** Whether a claim that was there and is gone is told as deleted by someone else. */
function toldAfter(known: Partial<PoolMemory>): boolean {
  const memory = Object.assign(createMemory(), known);
  missesClaim(memory, there);
  return missesClaim(memory, gone);
}

test.each<[string, Partial<PoolMemory>, boolean]>([
  ['that this process created', { created: 'claim-1' }, true],
  ['whose deletion this process asked for', { created: 'claim-1', deleting: 'claim-1' }, false],
  ['of an earlier leader, which may have deleted it', {}, false],
])('a claim %s is told as deleted by someone else when it is gone, or not (%j)', (_, known, told) => {
  expect(toldAfter(known)).toBe(told);
});
