import { describe, expect, test } from '@jest/globals';

import { agentKind, runtimePoolClassKind, runtimePoolKind, taskKind, validate } from '../../src/api/index.js';
import { digest, edited, fullAgent, fullClass, fullPool, fullTask, smokeAgent, smokeTask } from './samples.js';

const task = (path: string, value: unknown) => validate(taskKind, edited(smokeTask, path, value));
const pool = (path: string, value: unknown) => validate(runtimePoolKind, edited(fullPool, path, value));
const poolClass = (path: string, value: unknown) => validate(runtimePoolClassKind, edited(fullClass, path, value));

describe('what is valid', () => {
  test.each([
    ['the smoke Task', taskKind, smokeTask],
    ['the smoke Agent without contractVersion and with a secretRef', agentKind, smokeAgent],
    ['a Task with every part', taskKind, fullTask],
    ['an Agent with every part', agentKind, fullAgent],
    ['a pool with every part', runtimePoolKind, fullPool],
    ['a class with every part', runtimePoolClassKind, fullClass],
  ])('%s', (_, kind, object) => {
    expect(validate(kind, object)).toEqual([]);
  });

  test('null where no null may stand counts as absent', () => {
    expect(task('spec.sessionRef', null)).toEqual([]);
    expect(task('metadata.creationTimestamp', null)).toEqual([]);
  });

  test('an empty list is not an absent one, and both are valid', () => {
    expect(task('spec.agentRuntime.allowedTools', [])).toEqual([]);
  });

  test('members of an open object are anything', () => {
    expect(task('spec.execution.affinity', { constructor: [{ __proto__x: 1 }] })).toEqual([]);
  });

  test.each(['10m0s', '1m30s', '1h', '1.5s', '250ms', '1h2m3s', '0h0.01s'])('a duration of %s', (timeout) => {
    expect(task('spec.timeout', timeout)).toEqual([]);
  });

  test.each(['0s', '0'])('a delay of %s', (initialDelay) => {
    expect(task('spec.retryPolicy', { initialDelay })).toEqual([]);
  });

  test.each(['0', 2, '250m', '1.5', '.5Gi', '2e3', '1E', '5Ei'])('a quantity of %s', (amount) => {
    expect(poolClass('spec.pod.resources.requests.cpu', amount)).toEqual([]);
  });
});

describe('the violation of', () => {
  test.each(['0s', '0', '0h0m0.00s'])('a timeout of %s says that it must be above 0', (timeout) => {
    const allowed = 'a duration above 0, such as 90s, 15m or 1h30m, at most 64 characters';
    expect(task('spec.timeout', timeout)).toEqual([{ field: 'spec.timeout', found: timeout, allowed, rule: 'pattern' }]);
  });

  test('a number is put in quotes only where the text would do', () => {
    const says = (path: string, value: number) => task(path, value).map(({ allowed }) => allowed);
    expect(says('spec.agentRef.name', 5)).toEqual([expect.stringMatching(/; put 5 in quotes$/)]);
    expect(says('spec.timeout', 10)).toEqual([expect.stringMatching(/ 64 characters$/)]);
  });

  test('an unknown member names the member and the known ones', () => {
    expect(task('spec.execution.workspace.reusPolicy', 'none')).toEqual([
      {
        field: 'spec.execution.workspace.reusPolicy',
        found: 'none',
        allowed:
          'no such field (did you mean reusePolicy?); spec.execution.workspace has classRef, enabled, provider, templateRef, reusePolicy, cleanupPolicy, workspaceSlot, onDetach, boot, poolRef, snapshot and hibernation',
        rule: 'unknown-field',
      },
    ]);
  });

  test('an unknown member inside a list has the index', () => {
    expect(task('spec.env', [{ name: 'A' }, { name: 'B', val: 'x' }])).toMatchObject([
      { field: 'spec.env[1].val', rule: 'unknown-field' },
    ]);
  });

  test('an unknown member named like a method of objects is no exception', () => {
    expect(task('spec.constructor', 1)).toMatchObject([{ field: 'spec.constructor', rule: 'unknown-field' }]);
    expect(task('spec.agentRef.toString', 1)).toMatchObject([{ field: 'spec.agentRef.toString', rule: 'unknown-field' }]);
  });

  test('an unknown member of metadata and of the object', () => {
    expect(task('metadata.label', {})).toMatchObject([{ field: 'metadata.label', rule: 'unknown-field' }]);
    expect(task('data', {})).toMatchObject([{ field: 'data', rule: 'unknown-field' }]);
  });

  test('a missing member names the member', () => {
    expect(pool('spec.runtime.profile.model', undefined)).toEqual([
      {
        field: 'spec.runtime.profile.model',
        found: undefined,
        allowed: 'text that is not empty, at most 256 characters',
        rule: 'required',
      },
    ]);
  });

  test('a missing spec or metadata', () => {
    expect(validate(taskKind, { apiVersion: 'core.orka.ai/v1alpha1', kind: 'Task' })).toMatchObject([
      { field: 'metadata', rule: 'required' },
      { field: 'spec', rule: 'required' },
    ]);
  });

  test('null for a required member is a missing member', () => {
    expect(pool('spec.trustDomain', null)).toMatchObject([{ field: 'spec.trustDomain', found: undefined, rule: 'required' }]);
  });

  test('a wrong type says the right one', () => {
    expect(task('spec.agentRuntime.maxTurns', '1')).toEqual([
      { field: 'spec.agentRuntime.maxTurns', found: '1', allowed: 'an integer from 1 to 1000', rule: 'type' },
    ]);
    expect(task('spec.execution.workspace.enabled', 'true')).toMatchObject([{ allowed: 'true or false', rule: 'type' }]);
    expect(task('spec.agentRuntime', [])).toMatchObject([{ allowed: 'an object', rule: 'type' }]);
    expect(task('spec.command', 'sh')).toMatchObject([{ allowed: 'a list', rule: 'type' }]);
  });

  test('a fraction, or an integer that JavaScript cannot hold, where an integer must stand', () => {
    expect(task('spec.priority', 1.5)).toMatchObject([{ field: 'spec.priority', rule: 'type' }]);
    expect(poolClass('spec.workspace.maxArtifactBytes', 2 ** 53)).toMatchObject([{ rule: 'type' }]);
  });

  test('a word that is not one of the words', () => {
    expect(pool('spec.runtime.profile.providerKind', 'gemini')).toMatchObject([
      {
        field: 'spec.runtime.profile.providerKind',
        found: 'gemini',
        allowed: 'codex, claude, copilot or opencode',
        rule: 'enum',
      },
    ]);
  });

  test('a pattern is told in words', () => {
    expect(poolClass('spec.runtime.image', 'registry.example/acp:latest')).toMatchObject([
      {
        field: 'spec.runtime.image',
        allowed: expect.stringContaining('an image pinned by digest: <name>@sha256:<64 lower-case hex digits>'),
        rule: 'pattern',
      },
    ]);
    expect(task('spec.timeout', '10 minutes')).toMatchObject([{ field: 'spec.timeout', rule: 'pattern' }]);
  });

  test('a value below or above its limits', () => {
    expect(pool('spec.desiredReplicas', 2)).toMatchObject([{ rule: 'maximum', allowed: 'an integer from 0 to 1' }]);
    expect(pool('spec.coldStartTimeoutSeconds', 0)).toMatchObject([{ rule: 'minimum', allowed: 'an integer from 1 to 3600' }]);
    expect(task('spec.startingDeadlineSeconds', -1)).toEqual([]);
    expect(task('spec.successfulRunsHistoryLimit', 2 ** 31)).toMatchObject([{ rule: 'format' }]);
  });

  test('a text of the wrong length, counted in characters and not in UTF-16 units', () => {
    expect(pool('spec.runtime.profile.model', '😀'.repeat(256))).toEqual([]);
    expect(pool('spec.runtime.profile.model', '😀'.repeat(257))).toMatchObject([{ rule: 'maxLength' }]);
    expect(pool('spec.runtime.profile.model', '')).toMatchObject([{ rule: 'minLength' }]);
  });

  test('too few and too many members or items', () => {
    expect(poolClass('spec.runtime.adapterDigests', {})).toMatchObject([{ rule: 'minProperties', allowed: 'at least 1 member' }]);
    const many = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`a${index}`, digest]));
    expect(poolClass('spec.runtime.adapterDigests', many)).toMatchObject([{ rule: 'maxProperties' }]);
    expect(poolClass('spec.approvedDigests', [])).toMatchObject([{ rule: 'minItems' }]);
    const five = ['a', 'b', 'c', 'd', 'e'].map((letter) => `sha256:${letter.repeat(64)}`);
    expect(poolClass('spec.approvedDigests', five)).toMatchObject([{ rule: 'maxItems' }]);
  });

  test('an item that stands twice', () => {
    expect(poolClass('spec.approvedDigests', [digest, digest])).toMatchObject([
      { field: 'spec.approvedDigests[1]', rule: 'duplicate' },
    ]);
    const reservation = fullPool.status?.capacity?.reservations?.[0];
    expect(pool('status.capacity.reservations', [reservation, { ...reservation, promptSlots: 1 }])).toMatchObject([
      {
        field: 'status.capacity.reservations[1]',
        allowed: 'one item for each poolUID, taskUID, attempt, controllerEpoch',
        rule: 'duplicate',
      },
    ]);
  });

  test('the value of a map names the key, in brackets where it has dots', () => {
    expect(poolClass('spec.runtime.adapterDigests', { 'codex-acp': 'sha256:0' })).toMatchObject([
      { field: 'spec.runtime.adapterDigests.codex-acp', rule: 'pattern' },
    ]);
    expect(poolClass('spec.providerProxy.podLabels', { 'orka.ai/network-role': '-' })).toMatchObject([
      { field: 'spec.providerProxy.podLabels[orka.ai/network-role]', rule: 'pattern' },
    ]);
  });

  test('a quantity that is none', () => {
    expect(poolClass('spec.pod.volumes.tmp', '512 MiB')).toEqual([
      { field: 'spec.pod.volumes.tmp', found: '512 MiB', allowed: 'a quantity such as 250m, 4Gi or 2', rule: 'pattern' },
    ]);
    expect(poolClass('spec.pod.volumes.tmp', 1.5)).toMatchObject([{ rule: 'type' }]);
  });

  test('a time that is none', () => {
    const at = (value: string) => validate(taskKind, edited(fullTask, 'status.startTime', value));
    expect(at('2026-02-29T00:00:00Z')).toMatchObject([{ field: 'status.startTime', rule: 'format' }]);
    expect(at('2024-02-29T23:59:59.123456789+02:00')).toEqual([]);
    expect(at('yesterday')).toMatchObject([{ rule: 'format' }]);
  });

  test('apiVersion and kind', () => {
    expect(task('apiVersion', 'core.orka.ai/v1')).toMatchObject([
      { field: 'apiVersion', allowed: 'core.orka.ai/v1alpha1', rule: 'enum' },
    ]);
    expect(task('kind', 'Job')).toMatchObject([{ field: 'kind', allowed: 'Task', rule: 'enum' }]);
  });

  test('a name, a label and an annotation', () => {
    expect(task('metadata.name', 'Smoke_Task')).toMatchObject([{ field: 'metadata.name', rule: 'pattern' }]);
    expect(task('metadata.name', undefined)).toMatchObject([{ field: 'metadata.name', rule: 'required' }]);
    expect(task('metadata.labels', { a: 1 })).toMatchObject([{ field: 'metadata.labels.a', rule: 'type' }]);
    expect(task('metadata.annotations', { a: true })).toMatchObject([{ field: 'metadata.annotations.a', rule: 'type' }]);
  });

  test.each([undefined, null, 'text', 1, []])('something that is no object: %j', (object) => {
    expect(validate(taskKind, object)).toMatchObject([{ field: '', allowed: 'an object', rule: 'type' }]);
  });
});

test('all problems are reported, each once, in the order of the schema', () => {
  const broken = {
    ...edited(edited(smokeTask, 'spec.priority', -1), 'spec.agentRef', {}),
    metadata: { name: 'UPPER' },
    extra: 1,
  };
  expect(validate(taskKind, broken).map(({ field, rule }) => `${field} ${rule}`)).toEqual([
    'metadata.name pattern',
    'spec.agentRef.name required',
    'spec.priority minimum',
    'extra unknown-field',
  ]);
});

test('a rule that is broken beside another problem is still reported', () => {
  const broken = edited(edited(smokeTask, 'spec.priority', -1), 'spec.execution.workspace.reusePolicy', 'session');
  expect(validate(taskKind, broken).map(({ rule }) => rule)).toEqual(['minimum', 'cel:spec.sessionRef']);
});

test('a rule about members that are missing adds nothing to their being missing', () => {
  expect(pool('spec.runtime.profile.modelLimits', {}).map(({ field, rule }) => `${field} ${rule}`)).toEqual([
    'spec.runtime.profile.modelLimits.context required',
    'spec.runtime.profile.modelLimits.output required',
  ]);
});

test('the object is left as it was', () => {
  const before = structuredClone(fullPool);
  validate(runtimePoolKind, fullPool);
  expect(fullPool).toEqual(before);
});

describe('a record of a call of the publisher', () => {
  const [resolve, prepare] = fullTask.status?.execution?.effects ?? [];
  const effects = (...items: readonly object[]) => validate(taskKind, edited(fullTask, 'status.execution.effects', items));

  test.each([
    ['another kind', { kind: 'workspace.delete' }, 'enum'],
    ['another state', { state: 'Done' }, 'enum'],
    ['an identity that is no digest', { id: 'resolve-1' }, 'pattern'],
    ['a code that is a sentence', { code: 'not found' }, 'pattern'],
    ['a commit that is none', { response: { baselineOID: 'main' } }, 'pattern'],
    ['a member that nothing writes', { response: { credential: 'x' } }, 'unknown-field'],
  ])('with %s is refused', (_, change, rule) => {
    expect(effects({ ...resolve, ...change })).toMatchObject([{ rule }]);
  });

  test('stands once for each identity', () => {
    expect(effects({ ...resolve }, { ...prepare, id: resolve?.id })).toMatchObject([{ rule: 'duplicate' }]);
  });
});
