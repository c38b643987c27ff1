import { describe, expect, test } from '@jest/globals';
import type { RuntimePool, RuntimePoolSpec } from '../../src/api/index.js';
import { classProblem, poolProblem } from '../../src/domain/pool-problem.js';
import { profileDigest } from '../../src/domain/profile.js';
import type { RuntimeProfile } from '../../src/domain/profile.js';
import { poolClass } from '../support/objects.js';
import { classSpec, storedPool } from '../support/pool-observation.js';

const pool = storedPool();
const having = (spec: Partial<RuntimePoolSpec>): RuntimePool => ({ ...pool, spec: { ...pool.spec, ...spec } });
const profiled = (profile: Partial<RuntimePoolSpec['runtime']['profile']>): RuntimePool =>
  having({ runtime: { ...pool.spec.runtime, profile: { ...pool.spec.runtime.profile, ...profile } } });

test('a pool without a workspace has none either, whatever its capacity', () => {
  expect(
    poolProblem(having({ executionWorkspace: undefined, capacity: { maxResidentSessions: 10, maxRunningPrompts: 4 } })),
  ).toBeUndefined();
});

test('a rendered pool has no problem', () => {
  expect([poolProblem(pool), classProblem(pool, classSpec)]).toEqual([undefined, undefined]);
});

describe('what keeps a pool from being run is named by its field', () => {
  test.each([
    ['metadata.labels[orka.ai/acp-runtime-pool]', { ...pool, metadata: { ...pool.metadata, labels: {} } }],
    ['spec.runtime.profile.digestSchemaVersion', profiled({ digestSchemaVersion: '2' })],
    ['spec.runtime.profile.digest', profiled({ digest: `sha256:${'0'.repeat(64)}` })],
    ['spec.runtime.profile.digest', profiled({ model: 'another' })],
    [
      'spec.executionWorkspace.provider',
      having({ executionWorkspace: { ...pool.spec.executionWorkspace!, provider: 'substrate' } }),
    ],
    ['spec.capacity', having({ capacity: { maxResidentSessions: 10, maxRunningPrompts: 4 } })],
    ['spec.capacity', having({ capacity: undefined })],
  ] as const)('%s', (field, changed) => {
    expect(poolProblem(changed as RuntimePool)?.field).toBe(field);
  });
});

test('both spellings of the schema version are the same', () => {
  expect(poolProblem(profiled({ digestSchemaVersion: 'V1' }))).toBeUndefined();
});

test('the digest of an explicit profile covers every member but itself, its schema and its protocol', () => {
  const { digest: _digest, digestSchemaVersion: _schema, protocolVersion: _protocol, ...profile } = pool.spec.runtime.profile;
  expect(profileDigest(profile as RuntimeProfile)).toBe(pool.spec.runtime.profile.digest);
});

describe('a value that the class does not have any more is named', () => {
  test.each([
    ['spec.runtime.image', { runtime: { ...classSpec.runtime, image: `registry.example/other@sha256:${'c'.repeat(64)}` } }],
    [
      'spec.runtime.profile.adapterDigests',
      { runtime: { ...classSpec.runtime, adapterDigests: { 'codex-acp': `sha256:${'2'.repeat(64)}` } } },
    ],
    ['spec.runtime.profile.resourceClass', { resourceClass: 'large' }],
    ['spec.runtimeNamespace', { network: { ...classSpec.network, runtimeNamespace: 'elsewhere' } }],
  ] as const)('%s', (field, change) => {
    expect(classProblem(pool, poolClass(change))?.field).toBe(field);
  });
});
