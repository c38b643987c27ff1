import { describe, expect, test } from '@jest/globals';

import { agentKind, runtimePoolClassKind, runtimePoolKind, taskKind, withDefaults } from '../../src/api/index.js';
import { edited, fullClass, fullPool, smokeAgent, smokeTask } from './samples.js';

describe('the defaults of a RuntimePool', () => {
  const bare = withDefaults(
    runtimePoolKind,
    ['desiredReplicas', 'capacity', 'coldStartTimeoutSeconds', 'runtime.profile.protocolVersion'].reduce(
      (pool, path) => edited(pool, `spec.${path}`, undefined),
      fullPool,
    ),
  );

  test.each([
    ['desiredReplicas', 0],
    ['capacity', { maxResidentSessions: 10, maxRunningPrompts: 4 }],
    ['coldStartTimeoutSeconds', 120],
  ] as const)('%s', (member, value) => {
    expect(bare.spec[member]).toEqual(value);
  });

  test('the protocol of the profile', () => {
    expect(bare.spec.runtime.profile.protocolVersion).toBe('orka.harness.v2');
  });

  test('a capacity that states one limit gets the other', () => {
    expect(withDefaults(runtimePoolKind, edited(fullPool, 'spec.capacity', { maxRunningPrompts: 2 })).spec.capacity).toEqual({
      maxResidentSessions: 10,
      maxRunningPrompts: 2,
    });
  });
});

describe('the defaults of a Task', () => {
  test('are a priority and nothing else for the smoke Task', () => {
    expect(withDefaults(taskKind, smokeTask)).toEqual({ ...smokeTask, spec: { ...smokeTask.spec, priority: 500 } });
  });

  test('fill in a session reference that is there', () => {
    expect(withDefaults(taskKind, edited(smokeTask, 'spec.sessionRef', { name: 's' })).spec.sessionRef).toEqual({
      name: 's',
      append: true,
      maxMessages: 50,
    });
  });

  test('fill in the key of a credential and the multiplier of a retry policy', () => {
    const task = edited(edited(smokeTask, 'spec.retryPolicy', {}), 'spec.workspace.readCredentialRef', { name: 's' });
    const { spec } = withDefaults(taskKind, task);
    expect(spec.retryPolicy).toEqual({ backoffMultiplier: 2 });
    expect(spec.workspace?.readCredentialRef).toEqual({ name: 's', key: 'token' });
  });

  test('leave reusePolicy, cleanupPolicy and workspaceSlot absent', () => {
    expect(
      withDefaults(taskKind, edited(smokeTask, 'spec.execution.workspace', { enabled: true })).spec.execution?.workspace,
    ).toEqual({ enabled: true });
  });

  test('keep an empty list empty and an absent one absent', () => {
    expect(withDefaults(taskKind, edited(smokeTask, 'spec.agentRuntime', { allowedTools: [] })).spec.agentRuntime).toEqual({
      allowedTools: [],
    });
  });
});

test('an Agent and a class get no defaults', () => {
  expect(withDefaults(agentKind, smokeAgent)).toEqual(smokeAgent);
  expect(withDefaults(runtimePoolClassKind, fullClass)).toEqual(fullClass);
});

test('null is taken for absent, and gives way to a default', () => {
  const { spec } = withDefaults(taskKind, edited(edited(smokeTask, 'spec.sessionRef', null), 'spec.priority', null));
  expect(spec).not.toHaveProperty('sessionRef');
  expect(spec.priority).toBe(500);
});

test('null stays where any value may stand', () => {
  const { operations } = withDefaults(runtimePoolClassKind, fullClass).spec.patches[0] ?? { operations: [] };
  expect(operations[0]).toEqual({ op: 'add', path: '/a/b~1c', value: null });
});

test('defaulting twice changes nothing more', () => {
  const once = withDefaults(taskKind, smokeTask);
  expect(withDefaults(taskKind, once)).toEqual(once);
});

test('the given object is left as it was', () => {
  const before = structuredClone(smokeTask);
  withDefaults(taskKind, smokeTask);
  expect(smokeTask).toEqual(before);
});
