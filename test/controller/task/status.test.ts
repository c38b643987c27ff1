import { describe, expect, test } from '@jest/globals';
import type { Task, TaskStatus } from '../../../src/api/index.js';
import { taskKind, validateUpdate } from '../../../src/api/index.js';
import { ended, moved, succeeded, undelivered } from '../../../src/controller/task/status.js';
import { refusedStatus } from '../../../src/domain/admission/project.js';
import { boundTask, created, inState, newTask } from '../../support/controlled-task.js';

const now = created + 1_000;
const { task } = boundTask();
const statusOf = (before: Task, status: TaskStatus): Task => ({ ...before, status });
const problems = (before: Task, after: Task) => validateUpdate(taskKind, before, after);

/** The whole way of an attempt, as it is written. */
function way(): readonly Task[] {
  const steps: ((before: Task) => TaskStatus)[] = [
    (t) => moved(t, 'Running', { state: 'SessionStarting', runtimeInstanceID: 'a.b' }, now),
    (t) => moved(t, 'Running', { state: 'Submitting' }, now),
    (t) => moved(t, 'Running', { state: 'Running' }, now),
    (t) => ({
      ...moved(t, 'Finalizing', { state: 'Settling' }, now),
      delivery: { state: 'Validating', outcome: 'Validating' },
    }),
    (t) => succeeded(t, now),
  ];
  return steps.reduce<readonly Task[]>((all, step) => [...all, statusOf(all.at(-1)!, step(all.at(-1)!))], [task]);
}

describe('the way of a Task', () => {
  test('goes through the phases of the contract, and its workspace is pending, ready and released', () => {
    expect(way().map(({ status }) => [status?.phase, status?.execution?.state, status?.executionWorkspace?.phase])).toEqual([
      ['Pending', 'Queued', 'Pending'],
      ['Running', 'SessionStarting', 'Pending'],
      ['Running', 'Submitting', 'Pending'],
      ['Running', 'Running', 'Ready'],
      ['Finalizing', 'Settling', 'Ready'],
      ['Succeeded', 'Succeeded', 'Released'],
    ]);
  });

  test('is one that the API server takes, step by step', () => {
    const all = way();
    all.slice(1).forEach((after, i) => expect(problems(all[i]!, after)).toEqual([]));
  });

  test('ends with result, outcome and condition', () => {
    expect(way().at(-1)?.status).toMatchObject({
      attempts: 1,
      resultRef: { available: true, name: `${task.metadata.name}-result` },
      duration: '0s',
      execution: { state: 'Succeeded', outcome: 'Succeeded' },
      delivery: { state: 'ReadValidated', outcome: 'ReadValidated' },
      executionOutcome: { phase: 'Succeeded', attempt: 1, resultRef: { available: true } },
      conditions: [{ type: 'Complete', status: 'True', reason: 'TaskSucceeded' }],
      startTime: '2030-01-01T00:00:01Z',
      completionTime: '2030-01-01T00:00:01Z',
    });
  });

  test.each([
    ['2030-01-01T00:00:00Z', 1_999, '1s'],
    ['2030-01-01T00:00:00Z', 90_000, '1m30s'],
    ['2030-01-01T00:00:00Z', 3_725_000, '1h2m5s'],
  ])('that started at %s and ended %d ms later took %s', (startTime, took, duration) => {
    const running = inState(task, { state: 'Settling' }, { startTime });
    expect(succeeded(running, Date.parse(startTime) + took).duration).toBe(duration);
  });

  test('that never started took no time', () => {
    const waiting = inState(task, { state: 'Queued' });
    const ending = { state: 'Cancelled', reason: 'Cancelled', message: 'x' } as const;
    expect(ended(waiting, ending, now).duration).toBe('0s');
  });

  test('names nothing of the provider in its workspace', () => {
    for (const { status } of way())
      expect(Object.keys(status?.executionWorkspace ?? {}).sort()).toEqual([
        'cleanupPolicy',
        'lastUpdateTime',
        'phase',
        'provider',
        'reason',
        'reusePolicy',
        'reused',
      ]);
  });

  test('forgets what it waited for once it moves on', () => {
    const told = inState(task, { reason: 'AtCapacity', message: 'x' }, { message: 'waits for its pool: x' });
    const status = moved(told, 'Running', { state: 'SessionStarting' }, now);
    expect([status.message, status.execution?.reason, status.execution?.message]).toEqual([undefined, undefined, undefined]);
  });
});

describe('an attempt that ends otherwise', () => {
  const states = ['Queued', 'SessionStarting', 'Submitting', 'Running', 'Settling'] as const;
  const endings = [
    ['Failed', 'Failed'],
    ['Cancelled', 'Cancelled'],
    ['OutcomeUnknown', 'Failed'],
  ] as const;

  test.each(states.flatMap((from) => endings.map(([state, phase]) => [from, state, phase] as const)))(
    'from %s as %s has phase %s, and the API server takes it',
    (from, state, phase) => {
      const before = inState(task, { state: from });
      const after = statusOf(before, ended(before, { state, reason: 'SomeReason', message: 'because' }, now));
      expect(problems(before, after)).toEqual([]);
      expect(after.status).toMatchObject({
        phase,
        message: 'because',
        execution: { state, outcome: state, reason: 'SomeReason' },
        executionOutcome: { phase, attempt: 1 },
        executionWorkspace: { phase: 'Released', reason: 'WorkspaceReleased' },
        delivery: { state: 'NotRequested' },
      });
      expect(after.status).not.toHaveProperty('resultRef');
    },
  );

  test('before it was bound is one that the API server takes, and has no workspace to tell of', () => {
    const before = newTask();
    const after = statusOf(before, ended(before, { state: 'Cancelled', reason: 'TaskTimeout', message: 'late' }, now));
    expect(problems(before, after)).toEqual([]);
    expect(after.status).not.toHaveProperty('executionWorkspace');
  });

  test('never changes a workspace that failed', () => {
    const failed = { phase: 'Failed', reason: 'WorkspaceValidationFailed' } as const;
    const before = inState(task, { state: 'Running' }, { executionWorkspace: failed });
    expect(ended(before, { state: 'Failed', reason: 'X', message: 'x' }, now).executionWorkspace).toEqual(failed);
    expect(moved(before, 'Running', { state: 'Running' }, now).executionWorkspace).toEqual(failed);
  });

  test('says so in at most 1024 bytes, whatever was said', () => {
    for (const text of ['x'.repeat(5_000), 'ä'.repeat(5_000), '🙂'.repeat(2_000)]) {
      const before = inState(task, { state: 'Running' });
      const status = ended(before, { state: 'Failed', reason: 'X', message: text }, now);
      for (const told of [status.message, status.execution?.message, status.executionOutcome?.message])
        expect(Buffer.byteLength(told ?? '')).toBeLessThanOrEqual(1024);
      expect(problems(before, statusOf(before, status))).toEqual([]);
    }
  });
});

test.each([
  ['ReadOnlyWorkspaceModified', undefined],
  ['DeliveryConflict', 'WorkspaceValidationFailed'],
  ['DeliveryConflict', 'RuntimeWorkspaceLost'],
] as const)('a prompt that succeeded and left its workspace as %s (%s) fails the Task, with its answer', (state, reason) => {
  const before = inState(task, { state: 'Settling' });
  const after = statusOf(before, undelivered(before, { state, ...(reason ? { reason } : {}), message: 'changed' }, now));
  expect(problems(before, after)).toEqual([]);
  expect(after.status).toMatchObject({
    phase: 'Failed',
    message: 'changed',
    resultRef: { available: true },
    execution: { state: 'Succeeded', outcome: 'Succeeded' },
    delivery: { state, outcome: state, ...(reason ? { reason } : {}) },
    executionOutcome: { phase: 'Failed' },
  });
});

test('an outcome that was recorded is not changed by another ending', () => {
  const over = statusOf(task, ended(inState(task, { state: 'Running' }), { state: 'Failed', reason: 'X', message: 'x' }, now));
  const again = statusOf(over, ended(over, { state: 'Cancelled', reason: 'Y', message: 'y' }, now + 1_000));
  expect(problems(over, again).map(({ rule }) => rule)).toContain('cel:status.executionOutcome');
});

test('a refusal with a very long text is one that the API server takes', () => {
  const finding = {
    at: `Agent ${'n'.repeat(253)}/${'a'.repeat(253)}`,
    field: 'spec',
    found: 'ä'.repeat(400),
    allowed: 'x'.repeat(900),
  };
  const refusal = { gate: 'plan', rule: 'r', finding, projection: 'execution', reason: 'InvalidRuntimeProfile' } as const;
  const before = newTask();
  expect(problems(before, statusOf(before, refusedStatus(before, refusal, '', '2030-01-01T00:00:00Z')))).toEqual([]);
});
