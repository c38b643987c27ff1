import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { commonLabels } from '../../src/domain/labels.js';
import {
  authSecretSuffix,
  authSuffixOf,
  baseName,
  childName,
  poolKey,
  providerSecretSuffix,
  providerSuffixOf,
} from '../../src/domain/names.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

interface PoolInput {
  readonly poolName: string;
  readonly poolNamespace: string;
  readonly poolUID: string;
  readonly randomHex24: string;
  readonly tokenGeneration: string;
}
const names = readVectors<{
  vectors: Vector<
    PoolInput,
    { baseName: string; poolKey: string; children: Record<string, string>; labels: Record<string, string> }
  >[];
  childName: Vector<{ base: string; suffix: string }, { name: string }>[];
  secretSuffixRecognisers: Vector<string, { authSuffix: string; providerSuffix: string }>[];
}>('names');

/** Suffix of each child by the vectors' key. */
function suffixes({ tokenGeneration, randomHex24 }: PoolInput): Record<string, string> {
  const policies = ['control-in', 'controller-egress', 'deny-all', 'dns-egress', 'provider-proxy-egress'];
  const epochs = ['1234567890', '1234567890123456789', '7'];
  return {
    ...Object.fromEntries(policies.map((suffix) => [`NetworkPolicy/${suffix}`, suffix])),
    PodDisruptionBudget: 'pdb',
    SandboxClaim: 'sandbox-claim',
    SandboxTemplate: 'sandbox-template',
    SandboxWarmPool: 'sandbox-pool',
    'Secret/auth-plain-e7': authSecretSuffix(7),
    'Secret/provider-plain-e7': providerSecretSuffix(7, tokenGeneration),
    ...Object.fromEntries(epochs.map((epoch) => [`Secret/auth-workspace-e${epoch}`, `auth-e${epoch}-${randomHex24}`])),
    ...Object.fromEntries(
      epochs.map((epoch) => [`Secret/provider-workspace-e${epoch}`, `provider-e${epoch}-g${tokenGeneration}-${randomHex24}`]),
    ),
  };
}

test.each(names.vectors.map((vector) => ({ ...vector })))(
  'a pool has the golden names and labels: $name',
  ({ input, output }) => {
    const base = baseName(input.poolNamespace, input.poolName);
    expect(base).toBe(output.baseName);
    expect(poolKey(input.poolNamespace, input.poolName)).toBe(output.poolKey);
    const byKey = suffixes(input);
    const children = Object.fromEntries(
      Object.keys(output.children).map((key) => [
        key,
        key === 'Deployment' || key === 'Service' ? base : childName(base, byKey[key] ?? `unknown ${key}`),
      ]),
    );
    expect(children).toEqual(output.children);
    const labels = commonLabels({
      poolKey: output.poolKey,
      poolName: input.poolName,
      poolNamespace: input.poolNamespace,
      poolUid: input.poolUID,
    });
    expect(labels).toEqual(output.labels);
  },
);

test.each(names.childName.map((vector) => ({ ...vector })))('a child has the golden name: $name', ({ input, output }) => {
  expect(childName(input.base, input.suffix)).toBe(output.name);
});

test.each(names.secretSuffixRecognisers.map((vector) => ({ ...vector })))(
  'the suffix of a Secret is recognised as the golden value: $name',
  ({ input, output }) => {
    expect({ authSuffix: authSuffixOf(input), providerSuffix: providerSuffixOf(input) }).toEqual(output);
  },
);

test('every child of a pool that a plan can name fits into 63 characters and ends in its suffix', () => {
  const label = fc.stringMatching(/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/);
  const suffix = fc.constantFrom('sandbox-template', 'sandbox-claim', 'provider-proxy-egress', 'pdb');
  fc.assert(
    fc.property(label, label, suffix, (namespace, name, ending) => {
      const child = childName(baseName(namespace, name), ending);
      expect(child.length).toBeLessThanOrEqual(63);
      expect(child.endsWith(`-${ending}`)).toBe(true);
      expect(child).toMatch(/^[a-z]([-a-z0-9]*[a-z0-9])?$/);
    }),
  );
});
