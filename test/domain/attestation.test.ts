import { describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { applyPatch } from '../../src/constructs/patch.js';
import type { PatchOperation } from '../../src/constructs/patch.js';
import { attest, claimMatches, isOwned } from '../../src/domain/attestation.js';
import type { Materialization } from '../../src/domain/attestation.js';
import { commonLabels } from '../../src/domain/labels.js';
import type { Json } from '../../src/lib/json.js';
import { nameHash } from '../../src/domain/provider-pod.js';
import { quantityValue } from '../../src/lib/quantity.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

interface Patched {
  readonly patch: readonly PatchOperation[];
}
const file = readVectors<{
  base: Materialization;
  vectors: Vector<Patched & { sandboxReadError?: string }, { accepted: boolean; check?: number; verdict: string }>[];
  claimShape: Vector<Patched, { matches: boolean }>[];
  ownership: Vector<Patched, { owned: boolean }>[];
  nameHash: Vector<string, string>[];
}>('attestation');

/** The file's base lost the containers of its template and two volumes of its Pod; its Sandbox has both. */
const sandboxSpec = (file.base.sandbox['spec'] as { podTemplate: { spec: { containers: Json; volumes: Json } } }).podTemplate
  .spec;
const whole: Materialization = applyPatch('base', file.base, [
  { op: 'replace', path: '/template/spec/podTemplate/spec/containers', value: sandboxSpec.containers },
  { op: 'replace', path: '/pod/spec/volumes', value: sandboxSpec.volumes },
]);

/** The vectors are of provider v0.5.5, which took the claim's UID off the Pod; v1.0.3 leaves it there. */
const base: Materialization = applyPatch('base', whole, [
  { op: 'add', path: '/pod/metadata/labels/agents.x-k8s.io~1claim-uid', value: file.base.claim.metadata.uid ?? '' },
]);

/** Where we decide otherwise, on purpose; our outcome beside the reason. */
const deviations: Readonly<Record<string, { readonly check: number | undefined; readonly why: string }>> = {
  'sandbox-name-differs-from-claim': {
    check: 10,
    why: "which Sandbox is read is the caller's; a Pod of another name hash is refused",
  },
  'pod-missing': { check: undefined, why: "waiting for the Pod is the caller's" },
  'claim-uid-empty-skips-checks-1-2-7': { check: 1, why: 'a stored claim has a UID' },
  'sandbox-uid-empty-skips-check-9': { check: 9, why: 'a stored Sandbox has a UID' },
  'sandbox-pod-ref-hash-label-missing-both': {
    check: 8,
    why: "v1.0.3 always writes it, and the provider's own policies select by it",
  },
  'sandbox-pod-ref-hash-wrong-value-both': { check: 8, why: 'its value is known: the hash of the template name' },
  'pod-label-claim-uid-present': { check: undefined, why: 'v1.0.3 leaves it on the Pod' },
  'pod-unknown-field-dropped': { check: 12, why: 'the API server stores no unknown field; one that is there is a difference' },
  'sandbox-read-forbidden': { check: undefined, why: 'not being able to read is no difference: the caller retries' },
};

const patched = ({ patch }: Patched): Materialization => applyPatch('vector', base, patch);

test.each(file.vectors.filter(({ name }) => !(name in deviations)).map((vector) => ({ ...vector })))(
  'attestation decides as the golden value: $name',
  ({ input, output }) => {
    expect(attest(patched(input))?.check).toBe(output.accepted ? undefined : output.check);
  },
);

describe('where we decide otherwise', () => {
  test.each(
    Object.entries(deviations).filter(
      ([name]) => !['pod-missing', 'sandbox-name-differs-from-claim', 'pod-label-claim-uid-present'].includes(name),
    ),
  )('%s', (name, { check }) => {
    const vector = file.vectors.find((one) => one.name === name);
    if (!vector) throw new Error(`no vector ${name}`);
    expect(attest(patched(vector.input))?.check).toBe(check);
  });

  test('a Pod without the claim UID is refused, as is one with another', () => {
    expect(attest(whole)?.check).toBe(10);
    const other: PatchOperation = { op: 'replace', path: '/pod/metadata/labels/agents.x-k8s.io~1claim-uid', value: 'other' };
    expect(attest(applyPatch('x', base, [other]))?.check).toBe(10);
  });

  test('a Sandbox of another name has another hash', () => {
    expect(attest(applyPatch('x', base, [{ op: 'replace', path: '/sandbox/metadata/name', value: 'other' }]))?.check).toBe(10);
  });
});

describe('a Sandbox is its template, to the letter, whatever admission may add to a Pod', () => {
  const podSpec = '/sandbox/spec/podTemplate/spec';
  const toleration = { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' };
  const additions: readonly (readonly [member: string, value: Json])[] = [
    ['nodeName', 'evil'],
    ['priority', 1_000_000],
    ['priorityClassName', 'system-node-critical'],
    ['preemptionPolicy', 'Never'],
    ['overhead', { cpu: '1' }],
    ['tolerations', [toleration]],
    ['serviceAccount', 'evil'],
    ['imagePullSecrets', [{ name: 'evil' }]],
    ['dnsPolicy', 'ClusterFirst'],
    ['schedulerName', 'default-scheduler'],
    ['serviceAccountName', 'default'],
  ];
  const withField = (spec: string, member: string, value: Json): PatchOperation => ({
    op: 'add',
    path: `${spec}/${member}`,
    value,
  });

  test.each(additions)('a Sandbox with %s is refused, also when its Pod has the same', (member, value) => {
    const alone = applyPatch<Materialization>('x', base, [withField(podSpec, member, value)]);
    const both = applyPatch<Materialization>('x', alone, [withField('/pod/spec', member, value)]);
    expect([attest(alone), attest(both)]).toMatchObject([{ check: 4 }, { check: 4 }]);
  });

  test.each([
    ['terminationMessagePath', '/dev/termination-log'],
    ['terminationMessagePolicy', 'File'],
  ])('a Sandbox whose container has %s is refused', (member, value) => {
    const changed = applyPatch<Materialization>('x', base, [withField(`${podSpec}/containers/0`, member, value)]);
    expect(attest(changed)?.check).toBe(4);
  });

  test('what the types of the provider leave out or write when they copy a template is no difference', () => {
    const env = '/spec/podTemplate/spec/containers/0/env/-';
    const reference = { resource: 'limits.memory' };
    const copied = applyPatch<Materialization>('x', base, [
      { op: 'add', path: `/template${env}`, value: { name: 'EMPTY', value: '' } },
      { op: 'add', path: `/sandbox${env}`, value: { name: 'EMPTY' } },
      { op: 'add', path: '/pod/spec/containers/0/env/-', value: { name: 'EMPTY' } },
      { op: 'add', path: `/template${env}`, value: { name: 'MEMORY', valueFrom: { resourceFieldRef: reference } } },
      ...[`/sandbox${env}`, '/pod/spec/containers/0/env/-'].map((path): PatchOperation => ({
        op: 'add',
        path,
        value: { name: 'MEMORY', valueFrom: { resourceFieldRef: { ...reference, divisor: '0' } } },
      })),
      { op: 'remove', path: '/template/spec/podTemplate/spec/automountServiceAccountToken' },
    ]);
    expect(attest(copied)).toBeUndefined();
  });
});

test('a mismatch names object, field, what was found and what was rendered', () => {
  const changed = applyPatch('x', base, [{ op: 'replace', path: '/pod/spec/containers/0/image', value: 'evil' }]);
  expect(attest(changed)?.finding).toMatchObject({
    at: expect.stringMatching(/^Pod orka-runtimes\//),
    field: 'spec.containers[0].image',
    found: 'evil',
    allowed: expect.stringContaining('@sha256:'),
  });
});

const claimDeviations = ['lifecycle-added', 'additional-pod-metadata-added'];
test.each(file.claimShape.filter(({ name }) => !claimDeviations.includes(name)).map((vector) => ({ ...vector })))(
  'a claim matches its pool as the golden value: $name',
  ({ input, output }) => {
    const claim = applyPatch<Manifest>('claim', base.claim, input.patch);
    expect(claimMatches(claim, (base.claim['spec'] as { warmPoolRef: { name: string } }).warmPoolRef.name)).toBe(output.matches);
  },
);

test('a claim with a lifecycle or metadata of its own is not what we created', () => {
  for (const vector of file.claimShape.filter(({ name }) => claimDeviations.includes(name))) {
    const claim = applyPatch<Manifest>('claim', base.claim, vector.input.patch);
    expect(claimMatches(claim, (base.claim['spec'] as { warmPoolRef: { name: string } }).warmPoolRef.name)).toBe(false);
  }
});

test.each(file.ownership.map((vector) => ({ ...vector })))(
  'an object is owned as the golden value: $name',
  ({ input, output }) => {
    const labels = base.template.metadata.labels ?? {};
    const pool = {
      poolKey: labels['orka.ai/runtime-pool-key'] ?? '',
      poolName: labels['orka.ai/runtime-pool-name'] ?? '',
      poolNamespace: labels['orka.ai/runtime-pool-namespace'] ?? '',
      poolUid: labels['orka.ai/runtime-pool-uid'] ?? '',
    };
    expect(isOwned(applyPatch<Manifest>('template', base.template, input.patch), 'orka-runtimes', commonLabels(pool))).toBe(
      output.owned,
    );
  },
);

test.each(file.nameHash.map((vector) => ({ ...vector })))('the name hash is the golden value: $input', ({ input, output }) => {
  expect(nameHash(input)).toBe(output);
});

test.each([
  ['2', '2000m', true],
  ['4Gi', '4G', false],
  ['4Gi', '4096Mi', true],
  ['1e3', '1k', true],
  ['0.5', '500m', true],
  ['1', 'x', false],
])('quantities %s and %s are equal: %s', (a, b, equal) => {
  expect(quantityValue(a) === quantityValue(b)).toBe(equal);
});
