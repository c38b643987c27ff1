import { describe, expect, test } from '@jest/globals';
import { instanceProblem } from '../../../src/controller/pool/accept.js';
import type { Capabilities, Status } from '../../../src/harness/introspection.js';
import { capabilities, observed, pod, probed } from '../../support/pool-observation.js';

const { pool } = observed('probed');
const identity = pod.identity!;
const problem = (answer: { readonly capabilities?: Partial<Capabilities>; readonly status?: Partial<Status> }) =>
  instanceProblem(pool, pod, identity, {
    capabilities: { ...capabilities, ...answer.capabilities },
    status: { ...probed().status, ...answer.status },
  });
const fence = (change: Partial<Status['fence']>) => ({ status: { fence: { ...probed().status.fence, ...change } } });
const provider = (change: Partial<Capabilities['provider']>) => ({
  capabilities: { provider: { ...capabilities.provider, ...change } },
});
const otherDigest = `sha256:${'d'.repeat(64)}` as const;

test('an instance that is what it was started as has no problem', () => {
  expect(problem({})).toBeUndefined();
});

describe('the first row of the contract that does not hold is named (§6.5)', () => {
  test.each([
    ['2', 'capabilities.adapterDigests', { capabilities: { adapterDigests: { other: otherDigest } } }],
    ['3', 'capabilities.provider.providerKinds', provider({ providerKinds: ['codex', 'claude'] })],
    ['3', 'capabilities.provider.models', provider({ models: ['another'] })],
    ['3', 'capabilities.provider.models', provider({ models: null })],
    ['4', 'capabilities.provider.supportsCancel', provider({ supportsCancel: false })],
    ['4', 'capabilities.provider.supportsTools', provider({ supportsTools: false })],
    [
      '5',
      'capabilities.workspaceGovernance',
      { capabilities: { workspaceGovernance: { ...capabilities.workspaceGovernance, trusted: true } } },
    ],
    [
      '5',
      'capabilities.workspaceGovernance',
      { capabilities: { workspaceGovernance: { ...capabilities.workspaceGovernance, cancellationSettlement: false } } },
    ],
    ['6', 'capabilities.runtimeProfileDigest', { capabilities: { runtimeProfileDigest: otherDigest } }],
    ['6', 'status.fence.runtimeProfileDigest', fence({ runtimeProfileDigest: otherDigest })],
    ['7', 'status.fence.runtimePoolUID', fence({ runtimePoolUID: 'another' })],
    ['7', 'status.fence.runtimePoolGeneration', fence({ runtimePoolGeneration: 2 })],
    ['7', 'status.fence.controllerEpoch', fence({ controllerEpoch: 8 })],
    ['8', 'capabilities.supportsDrain', { capabilities: { supportsDrain: false } }],
    ['10', 'status.fence.runtimeInstanceID', fence({ runtimeInstanceID: `${pod.uid}.another` })],
    ['10', 'status.fence.runtimeInstanceID', fence({ supervisorBootID: 'another' })],
    [
      '12',
      'status.sessionIdentityCapacity',
      { status: { sessionIdentityCapacity: { total: 2, remaining: 1, exhaustionReserve: 2 } } },
    ],
  ] as const)('row %s: %s', (_row, field, answer) => {
    expect(problem(answer)?.field).toBe(field);
  });
});

test('an identity capacity that holds as many sessions as are advertised is enough', () => {
  expect(problem({ status: { sessionIdentityCapacity: { total: 2, remaining: 1, exhaustionReserve: 1 } } })).toBeUndefined();
});
