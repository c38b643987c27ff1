import { afterEach, describe, expect, test } from '@jest/globals';
import type { Agent, RuntimePool, Task } from '../../../src/api/index.js';
import { waitingOf } from '../../../src/domain/queue-order.js';
import type { Waiting } from '../../../src/domain/queue-order.js';
import { decide as decideOf } from '../../../src/controller/task/decide.js';
import type { TaskDecision } from '../../../src/controller/task/decision.js';
import type { SourceView, TaskObservation } from '../../../src/controller/task/observation.js';
import { awaitsSource, sourcePlanOf } from '../../../src/domain/source-plan.js';
import { annotationKeys, finalizers } from '../../../src/domain/labels.js';
import {
  at,
  boundTask,
  created,
  hosting,
  inState,
  instanceOf,
  newTask,
  planOf,
  poolOf,
  readyClass,
  seen,
  takenTask,
} from '../../support/controlled-task.js';
import { agent } from '../../support/objects.js';
import { readVectors } from '../../support/vectors.js';
import type { Vector } from '../../support/vectors.js';
import { unfitMessages } from '../../support/user-text.js';

/** Of everything that any test has decided. */
const unfit: string[] = [];
afterEach(() => {
  // No message of a Task holds a request, a name of an internal object, or an address.
  expect(unfit.splice(0)).toEqual([]);
});
const decide: typeof decideOf = (o, now) => {
  const decision = decideOf(o, now);
  unfit.push(...unfitMessages(decision));
  return decision;
};

const soon = created + 10_000;
const bound = boundTask();
const served = (change: Partial<TaskObservation> = {}, task: Task = bound.task) =>
  seen(task, { frozen: bound.thawed, pool: poolOf(bound.plan), ...change });
const deleting = (task: Task): Task => ({
  ...task,
  metadata: { ...task.metadata, deletionTimestamp: at(soon), finalizers: [finalizers.task] },
});
const verb = ({ effect, wait }: TaskDecision) => effect?.do ?? (wait === undefined ? 'rest' : 'wait');
const ending = ({ effect }: TaskDecision) => (effect?.do === 'settle' ? effect.ending : undefined);
const with_ = (
  pool: RuntimePool,
  change: Partial<NonNullable<RuntimePool['status']>>,
  metadata: Partial<RuntimePool['metadata']> = {},
) => ({
  ...pool,
  metadata: { ...pool.metadata, ...metadata },
  status: { ...pool.status, ...change },
});

describe('a Task whose pool cannot be seen', () => {
  const blind = { unreadableKinds: ['RuntimePool'], pool: undefined, leftSession: 'gone' } as const;
  const says = 'the controller may not list RuntimePool in namespace team-a';

  test('says so, and waits until it can', () => {
    const first = decide(served(blind), soon);
    expect(first.effect).toEqual({ do: 'say', message: says, reason: 'RightMissing' });
    const told = { ...bound.task, status: { ...bound.task.status, message: says } };
    expect(verb(decide(served(blind, told), soon))).toBe('wait');
  });

  test('is over when its time is', () => {
    expect(ending(decide(served(blind), created + 3_600_000))).toMatchObject({ state: 'Cancelled', reason: 'TaskTimeout' });
  });

  test.each<[string, Task]>([
    ['whose prompt may have been sent is not said to be lost', inState(bound.task, { state: 'Running' })],
    [
      'that is settled does not record that its session is gone',
      inState(bound.task, { state: 'Failed', outcome: 'Failed', runtimeSessionUID: 's' }),
    ],
    ['that is deleted keeps its finalizer', deleting(inState(bound.task, { state: 'Running' }))],
  ])('%s', (_, task) => {
    expect(verb(decide(served(blind, task), soon))).toBe('rest');
  });

  test('runs on in this process, and can be cancelled', () => {
    expect(verb(decide(served({ ...blind, running: true }), soon))).toBe('rest');
    expect(verb(decide(served({ ...blind, running: true }, deleting(bound.task)), soon))).toBe('cancel');
  });

  test('is not bound while Agents cannot be listed', () => {
    const o = seen(takenTask(), { unreadableKinds: ['Agent'], agent: 'unread' });
    expect(decide(o, soon).effect).toMatchObject({ do: 'say', reason: 'RightMissing' });
  });
});

test('a Task is not refused while classes cannot be listed', () => {
  const poolClass = { state: 'unreadable', says: 'the controller may not list RuntimePoolClasses' } as const;
  expect(decide(seen(newTask(), { poolClass }), created + 3_000).effect).toMatchObject({
    do: 'say',
    message: `the class cannot be used: ${poolClass.says}`,
  });
});

describe('a Task while new ones are paused', () => {
  const says = (by: string) => `new Tasks are paused by ${by}; this one waits until they are resumed`;
  const byNamespace = says('namespace default (annotation orka.ai/paused)');

  test.each([
    ['that is new', newTask()],
    ['that was taken', takenTask()],
  ])('%s waits, competes for no place and says who paused it', (_, task) => {
    const name = task.metadata.namespace ?? '';
    const message = says(`namespace ${name} (annotation orka.ai/paused)`);
    expect(decide(seen(task, { paused: 'namespace' }), soon)).toEqual({ effect: { do: 'say', message, reason: 'Paused' } });
    const platform = says('the platform (controller.paused)');
    expect(decide(seen(task, { paused: 'platform' }), soon).effect).toMatchObject({ do: 'say', message: platform });
    expect(verb(decide(seen({ ...task, status: { message } }, { paused: 'namespace' }), soon))).toBe('wait');
  });

  test('that is bound makes no pool and starts no attempt', () => {
    expect(decide(served({ paused: 'platform', pool: undefined }), soon).effect).toMatchObject({ do: 'say', reason: 'Paused' });
    expect(decide(served({ paused: 'platform' }), soon).effect).toMatchObject({ do: 'say', reason: 'Paused' });
  });

  test('says nothing while it is not known yet whether they are', () => {
    expect(verb(decide(seen(newTask(), { paused: 'unread' }), soon))).toBe('wait');
  });

  test('goes on if it runs, and is settled if its prompt was sent', () => {
    expect(decide(served({ paused: 'platform', running: true }), soon)).toEqual({});
    const sent = inState(bound.task, { state: 'Running' });
    expect(verb(decide(served({ paused: 'platform' }, sent), soon))).toBe('settle-from-record');
  });

  test('returns to its queue if it was about to begin', () => {
    const reserved = inState(bound.task, { state: 'Reserved' });
    expect(decide(served({ paused: 'platform' }, reserved), soon).effect).toEqual({ do: 'queue', recovered: true });
  });

  test('gives up the session that an earlier attempt of it left', () => {
    expect(verb(decide(served({ paused: 'platform', leftSession: 'reachable' }), soon))).toBe('clean-session');
  });

  test('still ends at its deadline, with what it waited for', () => {
    const waits = { ...newTask({ timeout: '1s' }), status: { message: byNamespace } };
    expect(ending(decide(seen(waits, { paused: 'namespace' }), soon))).toMatchObject({
      state: 'Cancelled',
      message: expect.stringContaining(byNamespace),
    });
  });

  test('is released when it is deleted', () => {
    expect(verb(decide(seen(deleting(takenTask()), { paused: 'platform' }), soon))).toBe('release');
  });
});

describe('a Task that is deleted', () => {
  const gone = deleting(bound.task);

  test('is cancelled while its attempt runs', () => {
    expect(decide(served({ running: true }, gone), soon).effect).toEqual({ do: 'cancel', reason: 'deleted' });
  });

  test('is released when nothing was started for it', () => {
    expect(verb(decide(seen(deleting(takenTask())), soon))).toBe('release');
  });

  test('keeps its finalizer for as long as a session may be left', () => {
    const over = deleting(inState(bound.task, { state: 'Failed', outcome: 'Failed' }));
    expect(verb(decide(served({ leftSession: 'reachable' }, over), soon))).toBe('clean-session');
    expect(decide(served({ leftSession: 'unreachable' }, over), soon)).toEqual({ wait: 5_000 });
    expect(verb(decide(served({ leftSession: 'gone' }, over), soon))).toBe('record-cleanup');
    expect(verb(decide(served({ leftSession: 'none' }, over), soon))).toBe('release');
  });

  test.each([
    ['Queued', 'Cancelled', 'Cancelled'],
    ['Reserved', 'Cancelled', 'Cancelled'],
    ['SessionStarting', 'Cancelled', 'Cancelled'],
    ['Planned', 'Cancelled', 'Cancelled'],
  ] as const)('and was left in %s by another controller ends as %s before it is released', (state, outcome, reason) => {
    expect(ending(decide(served({}, deleting(inState(bound.task, { state }))), soon))).toMatchObject({ state: outcome, reason });
  });

  test.each(['Submitting', 'Running'] as const)(
    'and was left in %s by another controller is settled before it is released',
    (state) => {
      expect(verb(decide(served({}, deleting(inState(bound.task, { state }))), soon))).toBe('settle-from-record');
    },
  );

  test('is left alone when it carries only finalizers of others', () => {
    const foreign = { ...gone, metadata: { ...gone.metadata, finalizers: ['example.org/other'] } };
    expect(decide(served({ leftSession: 'reachable' }, foreign), soon)).toEqual({});
  });
});

describe('a settled Task', () => {
  test.each(['Succeeded', 'Failed', 'Cancelled', 'OutcomeUnknown'] as const)('rests: %s', (state) => {
    expect(decide(served({}, inState(bound.task, { state, outcome: state })), created + 1e9)).toEqual({});
  });

  const finished = (spec: Partial<Task['spec']> = {}) => {
    const task = inState(bound.task, { state: 'Succeeded', outcome: 'Succeeded' }, { completionTime: at(created) });
    return { ...task, spec: { ...task.spec, ...spec } };
  };

  test('is deleted so many seconds after it finished as it says itself, and not before', () => {
    const task = finished({ ttlSecondsAfterFinished: 60 });
    expect(decide(served({ ttlSeconds: 5 }, task), created + 59_000)).toEqual({ wait: 1_000 });
    expect(decide(served({ ttlSeconds: 5 }, task), created + 60_000).effect).toEqual({
      do: 'delete-task',
      because: 'it finished 60 s ago',
    });
  });

  test('has the same plan and snapshot whatever its time to live', () => {
    const [without, with60] = [boundTask(), boundTask({ ttlSecondsAfterFinished: 60 })];
    expect([with60.plan, with60.body]).toEqual([without.plan, without.body]);
  });

  test('is deleted by the default of the controller when it says nothing', () => {
    expect(verb(decide(served({ ttlSeconds: 0 }, finished()), created))).toBe('delete-task');
    expect(decide(served({}, finished()), created + 1e9)).toEqual({});
  });

  test('is not deleted while its session is left, or while its end has no time', () => {
    const task = finished({ ttlSecondsAfterFinished: 0 });
    expect(verb(decide(served({ leftSession: 'reachable' }, task), soon))).toBe('clean-session');
    expect(decide(served({ leftSession: 'unreachable' }, task), soon)).toEqual({ wait: 5_000 });
    expect(decide(served({ ttlSeconds: 0, running: true }, task), soon)).toEqual({});
    expect(decide(served({ ttlSeconds: 0 }, inState(bound.task, { state: 'Failed', outcome: 'Failed' })), soon)).toEqual({});
  });

  test('rests when only its phase says so', () => {
    expect(decide(seen({ ...newTask(), status: { phase: 'Failed' } }), soon)).toEqual({});
  });

  test('says that its session is gone once that went with its instance', () => {
    for (const state of ['Succeeded', 'Failed', 'Cancelled', 'OutcomeUnknown'] as const)
      expect(verb(decide(served({ leftSession: 'gone' }, inState(bound.task, { state, outcome: state })), soon))).toBe(
        'record-cleanup',
      );
  });

  test('has its session ended first', () => {
    const over = inState(bound.task, { state: 'Failed', outcome: 'Failed' });
    expect(verb(decide(served({ leftSession: 'reachable' }, over), soon))).toBe('clean-session');
    expect(verb(decide(served({ frozen: 'unread', leftSession: 'reachable' }, over), soon))).toBe('clean-session');
  });
});

test('an attempt whose instance is gone is told so', () => {
  expect(decide(seen(bound.task, { running: true, lost: true }), soon).effect).toEqual({ do: 'cancel', reason: 'lost' });
});

test('nothing is decided about a Task whose attempt runs', () => {
  expect(decide(served({ running: true }), created + 1e9)).toEqual({});
});

describe('at its deadline a Task', () => {
  const late = created + 30 * 60_000;

  test('that nothing was sent for ends as Cancelled/TaskTimeout', () => {
    for (const o of [seen(newTask()), served(), served({}, inState(bound.task, { state: 'SessionStarting' }))])
      expect(ending(decide(o, late))).toMatchObject({ state: 'Cancelled', reason: 'TaskTimeout' });
    expect(verb(decide(served(), late - 1))).toBe('start');
  });

  test('names what its pool says, without names of the provider', () => {
    const pool = poolOf(bound.plan, {
      lifecycle: 'Degraded',
      message: `Pod ${bound.plan.poolName}-0123456789-sandbox-claim at 10.1.2.3:8080 is not ready`,
    });
    expect(ending(decide(served({ pool }), late))?.message).toBe(
      'deadline exceeded before runtime admission; its pool says: Pod (its instance) at (its address) is not ready',
    );
    expect(ending(decide(served(), late))?.message).toBe('deadline exceeded before runtime admission');
  });

  test('names what it waited for when there is no pool', () => {
    const task = { ...newTask(), status: { message: 'the class cannot be used: drifted' } };
    expect(ending(decide(seen(task), late))?.message).toMatch(/before runtime admission; the class cannot be used: drifted$/);
  });

  test('has its own timeout', () => {
    const short = newTask({ timeout: '1m' });
    expect(verb(decide(seen(short), created + 59_999))).toBe('take');
    expect(ending(decide(seen(short), created + 60_000))?.reason).toBe('TaskTimeout');
  });

  test('is refused with its field and what is allowed, not said to be late, if it never had any time', () => {
    const stored = newTask({ timeout: '0s' });
    expect(decide(seen(stored), created + 1).effect).toMatchObject({
      do: 'refuse',
      refusal: {
        rule: 'timeout',
        finding: { field: 'spec.timeout', found: '0s', allowed: expect.stringMatching(/^a duration above 0/) },
      },
    });
  });

  test('is not said to have timed out once something may have been sent', () => {
    expect(verb(decide(served({}, inState(bound.task, { state: 'Running' })), late))).toBe('settle-from-record');
  });
});

describe('a Task that is not bound', () => {
  const prompted = agent({ systemPrompt: { configMapRef: { name: 'prompts', key: 'coder' } } });

  test('has its Agent read before it is refused for lacking one', () => {
    expect(verb(decide(seen(newTask(), { agent: 'unread' }), soon))).toBe('read-agent');
    expect(decide(seen(newTask(), { agent: undefined }), soon).effect).toMatchObject({
      do: 'refuse',
      refusal: { gate: 'compatibility', rule: 'agent-required' },
    });
  });

  test('has its system prompt read, and is refused when there is none', () => {
    expect(verb(decide(seen(newTask(), { agent: prompted, systemPrompt: 'unread' }), soon))).toBe('read-system-prompt');
    expect(decide(seen(newTask(), { agent: prompted, systemPrompt: { missing: 'prompts/coder' } }), soon).effect).toMatchObject({
      do: 'refuse',
      refusal: {
        reason: 'InvalidRuntimeProfile',
        finding: { at: 'Agent team-a/coder', field: 'spec.systemPrompt.configMapRef' },
      },
    });
  });

  describe('whose class is missing', () => {
    const says = 'there is no RuntimePoolClass for codex/standard; classes that exist: claude (claude/standard)';
    const poolClass = { state: 'missing', says } as const;
    const message = `waits up to two minutes for its class: ${says}`;
    const since = created + 60_000;
    const recorded = (task: Task): Task => ({
      ...task,
      status: {
        ...task.status,
        message,
        conditions: [
          {
            type: 'ClassAvailable',
            status: 'False',
            reason: 'RuntimePoolClassMissing',
            message,
            lastTransitionTime: at(since),
          },
        ],
      },
    });

    test('waits five seconds in silence for one that is applied together with it', () => {
      expect(decide(seen(newTask(), { poolClass }), created + 4_999)).toEqual({ wait: 1 });
    });

    test.each<[string, TaskObservation]>([
      ['that is new', seen(newTask(), { poolClass })],
      ['that is bound and has no pool', served({ poolClass, pool: undefined })],
      ['whose pool waits for the class', served({ poolClass, pool: with_(poolOf(bound.plan), { lifecycle: 'Degraded' }) })],
    ])('says which classes exist, and records since when it waits: a Task %s', (_, o) => {
      expect(decide(o, since).effect).toEqual({ do: 'say', message, reason: 'RuntimePoolClassMissing' });
      const waits = { ...o, task: recorded(o.task) };
      expect(decide(waits, since + 50_000)).toEqual({ wait: 70_000, waits: 'RuntimePoolClassMissing' });
    });

    test('is refused two minutes after the time that is on record, whoever leads then', () => {
      const o = seen(recorded(newTask()), { poolClass });
      expect(verb(decide(o, since + 119_999))).toBe('wait');
      expect(decide({ ...o, ledSince: since + 119_000 }, since + 120_000).effect).toMatchObject({
        do: 'refuse',
        refusal: {
          gate: 'plan',
          reason: 'InvalidRuntimeProfile',
          finding: { says, remedy: expect.stringContaining('platform.yaml') },
        },
      });
    });

    test('fails after two minutes if it is bound', () => {
      expect(ending(decide(served({ poolClass, pool: undefined }, recorded(bound.task)), since + 120_000))).toMatchObject({
        state: 'Failed',
        reason: 'InvalidRuntimeProfile',
        message: expect.stringContaining(says),
      });
    });

    test('forgets that time when the class is back, so that another gap has two minutes again', () => {
      expect(decide(seen(recorded(newTask())), since + 130_000).effect).toEqual({ do: 'say', message: undefined });
      const drifted = { state: 'drifted', says: 'look here' } as const;
      expect(decide(seen(recorded(newTask()), { poolClass: drifted }), since + 130_000).effect).toEqual({
        do: 'say',
        message: undefined,
      });
    });

    test('does not take a class that cannot be listed for one that is back', () => {
      const unreadable = { state: 'unreadable', says: 'the controller may not list RuntimePoolClasses' } as const;
      expect(decide(seen(recorded(newTask()), { poolClass: unreadable }), since + 130_000).effect).toMatchObject({
        message: expect.stringContaining('may not list'),
      });
    });
  });

  test.each(['drifted', 'ambiguous', 'invalid'] as const)('waits for a class that is %s, and says why once', (state) => {
    const poolClass = { state, says: 'look here' } as const;
    const message = 'the class cannot be used: look here';
    expect(decide(seen(newTask(), { poolClass }), soon).effect).toEqual({
      do: 'say',
      message,
      reason: 'RuntimePoolClassUnavailable',
    });
    const told = { ...newTask(), status: { message } };
    expect(decide(seen(told, { poolClass }), soon)).toEqual({ wait: 30 * 60_000 - 10_000, waits: 'RuntimePoolClassUnavailable' });
  });

  test('says what is too long only once as well', () => {
    const poolClass = { state: 'invalid', says: 'ä'.repeat(2_000) } as const;
    const { effect } = decide(seen(newTask(), { poolClass }), soon);
    if (effect?.do !== 'say' || effect.message === undefined) throw new Error('nothing is said');
    expect(Buffer.byteLength(effect.message)).toBeLessThanOrEqual(1024);
    expect(verb(decide(seen({ ...newTask(), status: { message: effect.message } }, { poolClass }), soon))).toBe('wait');
  });

  test('is taken before it is bound', () => {
    expect(decide(seen(newTask()), soon).effect).toEqual({ do: 'take', plan: planOf(newTask()) });
    expect(decide(seen(takenTask()), soon).effect).toEqual({ do: 'bind', plan: planOf(newTask()), agent: agent() });
  });

  test('is taken again when its plan has become another one', () => {
    const other = agent({ model: { name: 'gpt-5.5' } });
    expect(verb(decide(seen(takenTask(), { agent: other }), soon))).toBe('take');
  });

  test('is refused when its name leaves no room for that of its answer', () => {
    const named = (length: number) => newTask({}, { name: 'a'.repeat(length) });
    expect(decide(seen(named(247)), soon).effect).toMatchObject({
      do: 'refuse',
      refusal: { gate: 'plan', rule: 'task-name', projection: 'execution', reason: 'InvalidRuntimeProfile' },
    });
    expect(verb(decide(seen(named(246)), soon))).toBe('take');
  });

  test('is refused when what would be frozen does not fit one Secret', () => {
    const refused = (prompt: string) => decide(seen(newTask({ prompt })), soon).effect;
    expect(refused('x'.repeat(512 * 1024 + 1))).toMatchObject({
      do: 'refuse',
      refusal: { gate: 'plan', rule: 'prompt-size', reason: 'InvalidRuntimeProfile' },
    });
    expect(refused('\u0001'.repeat(400 * 1024))).toMatchObject({
      do: 'refuse',
      refusal: { gate: 'plan', finding: { field: 'spec' } },
    });
    expect(refused('x'.repeat(512 * 1024))).toMatchObject({ do: 'take' });
  });
});

describe('every refusal of a gate refuses the Task', () => {
  const { vectors } = readVectors<{
    vectors: Vector<
      { task: Task; agent: Agent | null; flags: { executionWorkspaceDefaultProvider: string } },
      { verdict: string; executionWorkspace: object | null }
    >[];
  }>('admission');
  const refused = ['B-templateRef', 'A-', 'B-boot', 'B-cleanup', 'R-transaction', '0-'];
  const chosen = vectors.filter(
    ({ name, output }) => output.verdict === 'rejected' && refused.some((start) => name.startsWith(start)),
  );

  test.each(chosen.filter(({ name }) => !name.startsWith('0-agent-secret-ref')).map((vector) => ({ ...vector })))(
    '$name',
    ({ input, output }) => {
      const task = { ...input.task, metadata: { ...input.task.metadata, creationTimestamp: at(created) } };
      const flagged = { ...hosting, defaultProvider: input.flags.executionWorkspaceDefaultProvider };
      const { effect } = decide(seen(task, { agent: input.agent ?? undefined, hosting: flagged }), soon);
      expect(effect?.do).toBe('refuse');
      if (effect?.do !== 'refuse' || output.executionWorkspace === null) return;
      expect(effect.refusal.projection).toBe('workspace');
    },
  );

  test('and there are some of each gate', () => {
    expect(chosen.length).toBeGreaterThan(15);
  });
});

describe('a bound Task', () => {
  test('has its snapshot read first', () => {
    expect(verb(decide(served({ frozen: 'unread' }), soon))).toBe('read-snapshot');
  });

  const problem = { problem: { at: 'Task team-a/t1', field: 'snapshot', found: 'nothing', allowed: 'x' } };

  test.each(['Queued', 'SessionStarting', 'Planned'] as const)('fails with a snapshot that is not its own: %s', (state) => {
    expect(ending(decide(served({ frozen: problem }, inState(bound.task, { state })), soon))).toMatchObject({
      state: 'Failed',
      reason: 'InvalidAttempt',
    });
  });

  test.each(['Submitting', 'Running'] as const)('that may have been sent is never said to have failed: %s', (state) => {
    expect(verb(decide(served({ frozen: problem }, inState(bound.task, { state })), soon))).toBe('settle-from-record');
  });

  test('asks no Agent and no class any more once its pool is there', () => {
    const poolClass = { state: 'drifted', says: 'x' } as const;
    expect(verb(decide(served({ agent: undefined, poolClass }), soon))).toBe('start');
  });
});

describe('after a restart of the controller, an attempt in state', () => {
  test.each([
    ['Queued', { do: 'start' }],
    ['Reserved', { do: 'queue', recovered: true }],
    ['SessionStarting', { do: 'queue', recovered: true }],
    ['Planned', { do: 'queue', recovered: true }],
  ] as const)('%s goes on: %j', (state, effect) => {
    expect(decide(served({}, inState(bound.task, { state })), soon).effect).toEqual(effect);
  });

  describe.each(['Submitting', 'SubmittedUnknown', 'Accepted', 'Running', 'Settling'] as const)('%s', (state) => {
    const task = inState(bound.task, { state, lastTransitionTime: at(created) });

    test.each(['none', 'reachable'] as const)('is settled from what is on record when its session is %s', (leftSession) => {
      expect(decide(served({ leftSession }, task), soon).effect).toEqual({ do: 'settle-from-record' });
    });

    test('waits until its instance can be asked, a quarter of a minute from the begin of this leadership at most', () => {
      const o = served({ leftSession: 'unreachable', ledSince: soon }, task);
      expect(decide(o, soon)).toEqual({ wait: 1_000 });
      expect(decide(o, soon + 15_000).effect).toEqual({ do: 'settle-from-record' });
    });
  });

  test('SessionStarting waits with its reason when there is neither pool nor class', () => {
    const o = served(
      { pool: undefined, poolClass: { state: 'drifted', says: 'look' } },
      inState(bound.task, { state: 'SessionStarting' }),
    );
    expect(decide(o, soon).effect).toEqual({
      do: 'say',
      message: 'the class cannot be used: look',
      reason: 'RuntimePoolClassUnavailable',
    });
  });
});

describe('a Task is queued', () => {
  const fresh = {
    ...bound.task,
    status: { phase: 'Pending', agentExecutionBinding: bound.task.status?.agentExecutionBinding },
  } as Task;

  test('when it is bound and its pool is not there', () => {
    expect(decide(served({ pool: undefined }, fresh), soon).effect).toEqual({ do: 'queue', recovered: false });
  });

  test('anew for a pool of another UID, and for one that was scaled to zero', () => {
    const pool = poolOf(bound.plan);
    expect(verb(decide(served({ pool: with_(pool, {}, { uid: 'pool-uid-2' }) }), soon))).toBe('queue');
    expect(verb(decide(served({ pool: { ...pool, spec: { ...pool.spec, desiredReplicas: 0 } } }), soon))).toBe('queue');
  });

  test('not for a pool that is being deleted', () => {
    const pool = with_(poolOf(bound.plan), {}, { deletionTimestamp: at(soon) });
    expect(decide(served({ pool }), soon).effect).toEqual({
      do: 'say',
      message: 'the pool of this Task is being deleted',
      reason: 'RuntimePoolUnavailable',
    });
  });

  test('not for a pool of another plan, which may be replaced', () => {
    const pool = poolOf(bound.plan);
    const other = { ...pool, spec: { ...pool.spec, runtime: { ...pool.spec.runtime, image: `x@sha256:${'c'.repeat(64)}` } } };
    expect(decide(served({ pool: other }), soon).effect).toMatchObject({
      do: 'say',
      message: expect.stringContaining('spec.runtime.image'),
    });
  });

  describe('for a pool that was made from the class as it was before', () => {
    const pool = poolOf(bound.plan);
    const before = `codex-standard@sha256:${'0'.repeat(64)}`;
    const made = { ...pool.metadata, annotations: { ...pool.metadata.annotations, [annotationKeys.poolClass]: before } };

    test('makes it wanted, so that it is replaced', () => {
      const unwanted = { ...pool, metadata: made, spec: { ...pool.spec, desiredReplicas: 0 as const } };
      expect(decide(served({ pool: unwanted }), soon).effect).toEqual({ do: 'queue', recovered: false });
    });

    test('takes no slot of it', () => {
      expect(verb(decide(served({ pool: { ...pool, metadata: made } }), soon))).toBe('wait');
    });

    test('waits while it ends', () => {
      const ending = {
        ...with_(pool, { lifecycle: 'Draining', admissionState: 'Closed', message: 'it drains' }),
        metadata: made,
      };
      expect(decide(served({ pool: ending }), soon).effect).toMatchObject({
        do: 'say',
        message: 'waits for its pool: it drains',
      });
    });
  });

  test('not for a new pool of a class that now has another image', () => {
    const poolClass = {
      ...readyClass,
      compiled: { ...readyClass.compiled, frozen: { ...readyClass.compiled.frozen, image: `x@sha256:${'d'.repeat(64)}` } },
    };
    expect(ending(decide(served({ pool: undefined, poolClass }), soon))).toMatchObject({
      state: 'Failed',
      reason: 'InvalidRuntimeProfile',
      message: expect.stringContaining('create the Task again'),
    });
  });

  test('not for a new pool of a class that now has another adapter', () => {
    const frozen = { ...readyClass.compiled.frozen, adapterDigests: {} };
    const poolClass = { ...readyClass, compiled: { ...readyClass.compiled, frozen } };
    expect(ending(decide(served({ pool: undefined, poolClass }), soon))).toMatchObject({
      reason: 'InvalidRuntimeProfile',
      message: expect.stringContaining('has another adapterDigests than this Task was bound to'),
    });
  });
});

describe('a queued Task', () => {
  const pool = poolOf(bound.plan);

  test('starts when its pool serves and accepts, in this epoch and its present generation', () => {
    expect(decide(served(), soon).effect).toEqual({ do: 'start' });
  });

  test.each([
    ['does not serve', { lifecycle: 'Starting' }],
    ['has no instance', { activeInstance: undefined }],
    ['has an instance of another epoch', { activeInstance: { ...instanceOf(bound.plan), controllerEpoch: 2 } }],
    ['has been looked at in another generation', { observedGeneration: 1 }],
  ] as const)('waits until its deadline for a pool that %s', (_, change) => {
    expect(decide(served({ pool: with_(pool, change as object) }), soon)).toEqual({ wait: 30 * 60_000 - 10_000 });
  });

  test('ends the session that an attempt before could not end, before it waits for the slot that this has', () => {
    const full = with_(pool, { admissionState: 'Closed' });
    expect(verb(decide(served({ pool: full, leftSession: 'reachable' }), soon))).toBe('clean-session');
  });

  test.each(['Degraded', 'Ambiguous'] as const)('tells once that its pool is %s', (lifecycle) => {
    const degraded = with_(pool, { lifecycle, message: 'the Pod cannot be scheduled' });
    const message = 'waits for its pool: the Pod cannot be scheduled';
    expect(decide(served({ pool: degraded }), soon).effect).toEqual({ do: 'say', message, reason: 'RuntimePoolUnavailable' });
    expect(verb(decide(served({ pool: degraded }, inState(bound.task, {}, { message })), soon))).toBe('wait');
  });

  test.each([
    ['Serving', 'Closed', 'the provider is switched off'],
    ['Draining', 'Draining', 'the instance is draining'],
    ['Stopping', 'Closed', 'the sandbox is being deleted'],
  ] as const)('tells what a pool says that is %s and %s', (lifecycle, admissionState, message) => {
    const closed = with_(pool, { lifecycle, admissionState, message });
    expect(decide(served({ pool: closed }), soon).effect).toEqual({
      do: 'say',
      message: `waits for its pool: ${message}`,
      reason: 'RuntimePoolUnavailable',
    });
  });

  test('says nothing any more once what it waited for is over', () => {
    const told = inState(bound.task, {}, { message: 'waits for its pool: x' });
    expect(decide(served({ pool: with_(pool, { lifecycle: 'Starting' }) }, told), soon).effect).toEqual({
      do: 'say',
      message: undefined,
    });
  });

  test('whose attempt cannot begin is tried later and later, and says why from the second time', () => {
    const held = (tries: number) => ({ runtimeInstanceID: 'a.b', says: 'no answer within 30000 ms', tries, until: soon + 4_000 });
    expect(decide(served({ held: held(1) }), soon)).toMatchObject({ wait: 4_000 });
    expect(decide(served({ held: held(2) }), soon).effect).toEqual({
      do: 'say',
      message: 'the attempt could not begin: no answer within 30000 ms',
      reason: 'RuntimePoolUnavailable',
    });
    expect(decide(served({ held: held(2) }), soon + 4_000).effect).toEqual({ do: 'start' });
  });
});

describe('a Task that was restored from a copy', () => {
  const { task } = bound;
  const otherUid = { ...task, metadata: { ...task.metadata, uid: 'another-uid' } };

  test('has the UID of its namespace read before anything is done for it', () => {
    expect(decide(served({ namespaceUid: undefined }), soon).effect).toEqual({ do: 'read-namespace' });
  });

  test.each([
    ['under another UID', served({}, otherUid), 'its binding belongs to the Task'],
    ['into another namespace', served({ namespaceUid: 'another' }), 'its binding belongs to the namespace ns-uid'],
  ])('%s fails, and says so', (_, o, says) => {
    const found = ending(decide(o, soon));
    expect(found).toMatchObject({ state: 'Failed', reason: 'RestoreIdentityChanged' });
    expect(found?.message).toContain(says);
  });

  test('after its prompt may have been sent has an unknown outcome', () => {
    const running = inState(otherUid, { state: 'Running' });
    expect(ending(decide(served({}, running), soon))).toMatchObject({
      state: 'OutcomeUnknown',
      reason: 'RestoreIdentityChanged',
    });
  });
});

describe('where a namespace may have two Tasks under way', () => {
  const quota = (free: number, contenders: readonly Waiting[] = []) => ({ limit: 2, free, contenders, standing: undefined });
  const says = 'namespace team-a has as many Tasks under way as it may have at once (2)';

  test('the third waits, says why once, and looks again after ten seconds', () => {
    const first = decide(seen(newTask(), { quota: quota(0) }), soon);
    expect(first.effect).toMatchObject({
      do: 'say',
      reason: 'NamespaceTaskLimitReached',
      message: expect.stringContaining(says),
    });
    const message = first.effect?.do === 'say' ? (first.effect.message ?? '') : '';
    expect(decide(seen({ ...newTask(), status: { message } }, { quota: quota(0) }), soon)).toEqual({
      wait: 10_000,
      waits: 'NamespaceTaskLimitReached',
      forPlace: true,
    });
  });

  test('one that is free is for whoever is first in the queue', () => {
    const mine = newTask();
    const older = { ...waitingOf(mine), uid: 'older', queuedAt: created - 1_000, createdAt: created - 1_000 };
    const younger = { ...waitingOf(mine), uid: 'younger', queuedAt: created + 1_000, createdAt: created + 1_000 };
    expect(decide(seen(mine, { quota: quota(1, [older]) }), soon)).toEqual({ wait: 1_000, forPlace: true });
    expect(verb(decide(seen(mine, { quota: quota(1, [younger]) }), soon))).toBe('take');
    expect(verb(decide(seen(mine, { quota: quota(2, [older]) }), soon))).toBe('take');
  });

  test('one that was let through is not asked again, whoever comes', () => {
    const older = { ...waitingOf(newTask()), uid: 'older', queuedAt: created - 1_000 };
    expect(verb(decide(seen(takenTask(), { quota: { ...quota(0, [older]), standing: 'enters' } }), soon))).toBe('bind');
  });

  test('one that waits for its class says so and nothing else, until it could go on', () => {
    const stuck = { ...quota(0), standing: 'held-up' } as const;
    const drifted = { state: 'drifted', says: 'it was edited' } as const;
    const waits = decide(seen(newTask(), { quota: stuck, poolClass: drifted }), soon);
    expect(waits).toEqual({ effect: expect.objectContaining({ reason: 'RuntimePoolClassUnavailable' }) });
    expect(decide(seen(newTask(), { quota: stuck }), soon)).toMatchObject({
      effect: { reason: 'NamespaceTaskLimitReached' },
      forPlace: true,
    });
  });

  test('one that was bound before is not held up', () => {
    expect(verb(decide(served({ quota: quota(0) }), soon))).toBe('start');
  });
});

describe('a slot that several Tasks wait for', () => {
  const mine = waitingOf(bound.task);
  const rival = (change: Partial<Waiting>): Waiting => ({ ...mine, uid: 'rival', ...change });

  test.each([
    ['has a higher priority', rival({ priority: 900 })],
    ['waits for longer', rival({ queuedAt: mine.queuedAt - 1_000 })],
  ])('is left to one that %s, for a second', (_, one) => {
    expect(decide(served({ rivals: [one] }), soon)).toEqual({ wait: 1_000 });
  });

  test('is taken before one that comes later in the queue', () => {
    expect(verb(decide(served({ rivals: [rival({ priority: 100 })] }), soon))).toBe('start');
  });

  test('is said to be waited for when there is none, after two seconds, with a reason of its own', () => {
    const full = with_(poolOf(bound.plan), { capacity: { maxResidentSessions: 1, maxRunningPrompts: 1, residentSessions: 1 } });
    const queuedAt = mine.queuedAt;
    expect(decide(served({ pool: full }), queuedAt + 1_500)).toEqual({ wait: 500 });
    expect(decide(served({ pool: full }), queuedAt + 2_000).effect).toMatchObject({ do: 'say', reason: 'AtCapacity' });
  });
});

describe('a Task with a repository, by what is known of it:', () => {
  const workspace = { intent: 'read', gitRepo: 'https://github.com/acme/app', readCredentialRef: { name: 'read' } } as const;
  const asking = boundTask({ workspace });
  const planned = sourcePlanOf(asking.task, asking.thawed.workspace, { forges: ['github.com'] });
  if (!planned || 'problem' in planned) throw new Error('it has a plan');
  const resolved = { repositoryID: 'github.com/acme/app', sourceRef: 'refs/heads/main', baselineOID: 'c'.repeat(40) };
  const ready = { is: 'ready', resolved, prepared: {} as never, startedAt: soon } as const;
  const view = (change: Partial<SourceView>): SourceView => ({
    plan: planned,
    standing: ready,
    work: undefined,
    since: soon,
    says: undefined,
    refusal: undefined,
    preparedAt: soon,
    heldUntil: 0,
    ...change,
  });
  const refusal = { reason: 'CredentialBlocked', finding: { at: 'Task team-a/t1', says: 'another Secret' } } as const;
  const minutes = (count: number) => soon + count * 60_000;

  test.each<[string, Partial<SourceView>, number, unknown]>([
    ['no version of its Secret: that is frozen', { standing: { is: 'unfrozen' } }, soon, { do: 'freeze-credential' }],
    ['nothing: it is resolved', { standing: { is: 'unresolved' } }, soon, { do: 'fetch-source', work: 'resolve' }],
    ['its commit: it is prepared', { standing: { is: 'unprepared', resolved } }, soon, { do: 'fetch-source', work: 'prepare' }],
    ['its archive: it begins', {}, soon, { do: 'start' }],
    ['an archive of five minutes: it is named again', {}, minutes(5), { do: 'fetch-source', work: 'refresh' }],
    ['a younger archive: it begins', {}, minutes(5) - 1, { do: 'start' }],
    ['a run that failed a moment ago: it waits', { standing: { is: 'unresolved' }, heldUntil: soon + 500 }, soon, undefined],
    ['a call under way: it waits', { standing: { is: 'unresolved' }, work: 'resolve' }, soon, undefined],
    ['an archive that is being named: it waits', { work: 'refresh' }, soon, undefined],
    [
      'a refusal on record whose run has not ended: it waits for its words',
      { standing: { is: 'over', code: 'tree_refused', detail: undefined, givenUp: false }, work: 'prepare' },
      soon,
      undefined,
    ],
  ])('%s', (_, change, now, effect) => {
    const o = seen(asking.task, { frozen: asking.thawed, pool: poolOf(asking.plan), source: view(change) });
    expect(decide(o, now).effect).toEqual(effect);
  });

  test.each<[string, Partial<SourceView>, unknown]>([
    ['a refusal of this process', { refusal }, { state: 'Failed', reason: 'CredentialBlocked' }],
    [
      'a refusal on record',
      { standing: { is: 'over', code: 'repository_absent', detail: undefined, givenUp: false } },
      { state: 'Failed', reason: 'InvalidWorkspace' },
    ],
    [
      'a call that was given up',
      { standing: { is: 'over', code: 'repository_absent', detail: undefined, givenUp: true } },
      { state: 'Failed', reason: 'WorkspaceUnsupported' },
    ],
  ])('%s ends it, also when its pool serves', (_, change, expected) => {
    const o = seen(asking.task, { frozen: asking.thawed, pool: poolOf(asking.plan), source: view(change) });
    expect(ending(decide(o, soon))).toMatchObject(expected as object);
  });

  test('a forge that is not listed any more ends it', () => {
    const problem = { at: 'Task team-a/t1', field: 'spec.workspace.gitRepo', found: 'github.com' };
    const o = seen(asking.task, { frozen: asking.thawed, source: { problem } });
    expect(ending(decide(o, soon))).toMatchObject({ state: 'Failed', reason: 'InvalidWorkspace' });
  });

  test.each<[string, Task, number]>([
    ['is deleted', deleting(asking.task), soon],
    ['is late', asking.task, created + 31 * 60_000],
    ['is settled', inState(asking.task, { state: 'Failed', outcome: 'Failed' }), soon],
  ])('a call is cancelled when the Task %s', (_, task, now) => {
    const o = seen(task, { frozen: asking.thawed, fetching: true, source: view({ work: 'resolve' }) });
    expect(decide(o, now).effect).toEqual({ do: 'cancel-source' });
  });

  test('a Task whose repository is not there yet takes nobody its turn', () => {
    expect(awaitsSource(asking.task)).toBe(true);
    expect(awaitsSource(bound.task)).toBe(false);
  });
});
