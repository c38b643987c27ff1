import { afterEach, describe, expect, test } from '@jest/globals';
import type { Task } from '../../../src/api/index.js';
import { mostTokens, taskKind, validateUpdate } from '../../../src/api/index.js';
import { runAttempt } from '../../../src/controller/task/attempt.js';
import { attemptSteps } from '../../../src/controller/task/attempt-port.js';
import type { AttemptPort, AttemptResult, AttemptStep } from '../../../src/controller/task/attempt-port.js';
import type { PodEnd } from '../../../src/domain/pod-end.js';
import { ordersOf } from '../../../src/controller/task/orders.js';
import type { SessionSource } from '../../../src/controller/task/orders.js';
import type { Receipt } from '../../../src/controller/task/result.js';
import type { PromptEvent } from '../../../src/harness/events.js';
import { sessionWorkspaceDigest } from '../../../src/domain/digests.js';
import type { HarnessClient } from '../../../src/harness/client.js';
import { digestOfSettlement } from '../../../src/harness/prompts.js';
import type { SessionOrder } from '../../../src/harness/sessions.js';
import type { ArtifactRequest } from '../../../src/source/artifact-capability.js';
import { at, boundTask, created, instanceOf, poolOf } from '../../support/controlled-task.js';
import type { Bound } from '../../support/controlled-task.js';
import { fakeClock, settle } from '../../support/fake-clock.js';
import { broken, fakeHarness, settled } from '../../support/fake-harness.js';
import { refusal } from '../../support/memory-client.js';
import { archive, commit, manifest } from '../../support/played-publisher.js';
import { unfitMessages } from '../../support/user-text.js';

const prompt = 'prompt-11111111-1111-1111-1111-111111111111-1';
const sent = `start-prompt-${prompt}: Reply exactly: OK`;

/** Of every status that any test writes. */
const unfit: string[] = [];
afterEach(() => {
  // No message of a Task holds a request, a name of an internal object, or an address.
  expect(unfit.splice(0)).toEqual([]);
});

/** One attempt under way. `log` has writes and requests in their order. */
function attempt(
  bound: Bound = boundTask({ timeout: '10m' }),
  {
    generation = 1,
    lastTry = false,
    lastDownload = false,
    source,
  }: { generation?: number; lastTry?: boolean; lastDownload?: boolean; source?: SessionSource } = {},
) {
  const { plan, thawed } = bound;
  let { task } = bound;
  const [process_, cancelled, lost] = [new AbortController(), new AbortController(), new AbortController()];
  const clock = fakeClock(created);
  const harness = fakeHarness(plan.profileDigest, clock.now);
  const log = harness.asked;
  const stored: { text: string; receipt: Receipt }[] = [];
  const problems: unknown[] = [];
  const steps: AttemptStep[] = [];
  const [said, reported]: [string[], unknown[]] = [[], []];
  let killedAt: string | undefined;
  let fails: (what: string) => Error | undefined = () => undefined;
  let serves = true;
  let permit: (download: ArtifactRequest) => Awaited<ReturnType<AttemptPort['authorize']>> = ({ operationID }) => ({
    authorization: { capability: `for ${operationID}`, requestDigest: manifest },
  });
  let ended: PodEnd | undefined;
  const write = (what: string) => {
    if (process_.signal.aborted) throw new Error(`${what} is written by a process that must not`);
    const failure = fails(what);
    if (failure) throw failure;
    if (what === killedAt) throw new Error('the API server is gone');
    log.push(what);
  };
  const port: AttemptPort = {
    advance: async (from, change) => {
      await settle();
      const state = task.status?.execution?.state ?? '';
      if (!from.includes(state)) throw new Error(`${state} is not in ${from.join()}`);
      const after: Task = { ...task, status: change(task) };
      write(`= ${after.status?.execution?.state ?? ''}`);
      problems.push(...validateUpdate(taskKind, task, after));
      unfit.push(...unfitMessages(after.status));
      task = after;
      return task;
    },
    storeResult: async (text, receipt) => {
      await settle();
      write('= result');
      stored.push({ text, receipt });
    },
    say: (_, message) => {
      said.push(message);
      unfit.push(...unfitMessages({ message }));
      return Promise.resolve();
    },
    report: (error) => reported.push(error),
    ended: () => ended,
    endReported: () => Promise.resolve(ended),
    passed: () => undefined,
    serves: () => serves,
    authorize: (download) => Promise.resolve(permit(download)),
    step: async (name, take) => {
      steps.push(name);
      return take();
    },
  };
  const [pool, instance] = [poolOf(plan), instanceOf(plan)];
  const orders = ordersOf(task, pool, instance, thawed, generation, source);
  const running = () =>
    runAttempt(
      {
        task,
        pool,
        instance,
        thawed,
        orders,
        client: harness.client,
        clock,
        signal: process_.signal,
        cancelled: cancelled.signal,
        lost: lost.signal,
        lastTry,
        lastDownload,
      },
      port,
    );
  return {
    harness,
    clock,
    log,
    stored,
    steps,
    problems,
    cancelled,
    lost,
    process: process_,
    killAt: (what: string) => {
      killedAt = what;
    },
    /** What a write throws; `undefined` = it is stored. */
    failWrites: (failure: typeof fails) => {
      fails = failure;
    },
    said,
    reported,
    orders,
    permit: (answer: typeof permit) => {
      permit = answer;
    },
    drains: () => {
      serves = false;
    },
    deletePod: () => {
      ended ??= { cause: 'PodDeleted', says: 'its Pod was deleted' };
    },
    /** What its node reports of its instance. */
    reports: (end: PodEnd) => {
      ended = end;
    },
    change: (metadata: Partial<Task['metadata']>) => {
      task = { ...task, metadata: { ...task.metadata, ...metadata } };
    },
    begin: (): Promise<AttemptResult> => running(),
    /** Begins, and goes on until the prompt was sent. */
    sent: async (): Promise<{ readonly over: Promise<AttemptResult> }> => {
      const over = running();
      over.catch(() => undefined);
      for (let i = 0; i < 20 && !log.includes(sent); i++) await settle();
      return { over };
    },
    task: () => task,
    execution: () => task.status?.execution,
    prompts: () => log.filter((one) => one.startsWith('start-prompt')).length,
  };
}
type Running = ReturnType<typeof attempt>;

async function happy(it: Running): Promise<AttemptResult> {
  const { accepted, update, completed } = it.harness.events;
  it.harness.say(accepted, update('O'), update('K'), completed);
  it.harness.end();
  return it.begin();
}

const way = [
  'capabilities',
  '= SessionStarting',
  `create-session-${prompt}`,
  '= Submitting',
  sent,
  '= Running',
  '= result',
  '= Settling',
  `workspace-delta-${prompt}`,
  '= Succeeded',
];

describe('an attempt that goes well', () => {
  test('writes what allows a step before the step', async () => {
    const it = attempt();
    expect(await happy(it)).toMatchObject({ outcome: 'settled' });
    expect(it.log).toEqual(way);
    expect(it.problems).toEqual([]);
  });

  test('takes all steps but those around it, in their order', async () => {
    const it = attempt();
    await happy(it);
    const around: readonly AttemptStep[] = ['reserve', 'delete-session', 'release'];
    expect(it.steps).toEqual(attemptSteps.filter((step) => !around.includes(step)));
  });

  test('ends with the answer, its receipt and a released workspace', async () => {
    const it = attempt();
    await happy(it);
    const settlement = {
      terminalEvent: 'completed',
      outcome: 'succeeded',
      stopReason: 'end_turn',
      settledAt: '2030-01-01T00:00:05.123456789Z',
    } as const;
    expect(it.stored).toEqual([
      {
        text: 'OK',
        receipt: expect.objectContaining({ promptID: prompt, attempt: 1, settlementDigest: digestOfSettlement(settlement) }),
      },
    ]);
    expect(it.task().status).toMatchObject({ phase: 'Succeeded', executionWorkspace: { phase: 'Released' } });
  });

  test('takes the text of the end before what was said on the way', async () => {
    const it = attempt();
    const { accepted, update, completedWith } = it.harness.events;
    it.harness.say(accepted, update('thinking'), completedWith('OK'));
    it.harness.end();
    await it.begin();
    expect(it.stored[0]?.text).toBe('OK');
  });

  test('cuts an answer that is too long', async () => {
    const it = attempt();
    const { accepted, update, completed } = it.harness.events;
    it.harness.say(accepted, ...Array.from({ length: 40_000 }, () => update('x'.repeat(40))), completed);
    it.harness.end();
    await it.begin();
    expect(it.stored[0]?.text).toMatch(/^x{1000000}\.\.\.<truncated>$/);
  });

  test('leaves no timer', async () => {
    const it = attempt();
    await happy(it);
    expect(it.clock.timers()).toBe(0);
  });
});

describe('a write that fails', () => {
  const writes = way.filter((one) => one.startsWith('='));

  test.each(writes.slice(0, 2))('%s keeps everything after it from happening', async (write) => {
    const it = attempt();
    it.killAt(write);
    expect(await happy(it)).toMatchObject({ outcome: 'failed', error: new Error('the API server is gone') });
    expect(it.log).toEqual(way.slice(0, way.indexOf(write)));
  });

  test('= result, for a name that somebody else took, leaves an unknown outcome that says so', async () => {
    const it = attempt();
    it.failWrites((what) => (what === '= result' ? refusal('already-exists') : undefined));
    await happy(it);
    expect(it.execution()).toMatchObject({ state: 'OutcomeUnknown', reason: 'ExecutionEventPersistenceFailed' });
    expect(it.log).not.toContain(`workspace-delta-${prompt}`);
  });

  test.each(['= SessionStarting', '= Submitting'])('%s says what became of the session', async (write) => {
    const it = attempt();
    it.killAt(write);
    expect(await happy(it)).toMatchObject({ outcome: 'failed', session: write === '= Submitting' ? 'open' : 'none' });
  });

  test('= Settling keeps the workspace from being asked for', async () => {
    const it = attempt();
    it.killAt('= Settling');
    expect(await happy(it)).toMatchObject({ outcome: 'failed', error: new Error('the API server is gone') });
    expect(it.log).not.toContain(`workspace-delta-${prompt}`);
  });

  test.each(writes)('%s never leads to a second prompt', async (write) => {
    const it = attempt();
    it.killAt(write);
    await happy(it).catch(() => undefined);
    expect(it.prompts()).toBe(write === '= SessionStarting' || write === '= Submitting' ? 0 : 1);
  });
});

describe('a write that the API server refuses for a while', () => {
  const quota = () => refusal('forbidden', 'configmaps "t1-result" is forbidden: exceeded quota: no-configmaps');

  /** The attempt with one write that fails so often, each time a while after the last. */
  async function refused(write: string, times: number, failure: () => Error = () => refusal('server-error')) {
    const it = attempt();
    let left = times;
    it.failWrites((what) => (what === write && left-- > 0 ? failure() : undefined));
    it.harness.say(it.harness.events.accepted);
    const { over } = await it.sent();
    for (let i = 0; i < 5; i++) await settle();
    return { it, over, end: () => ending(it, over) };
  }

  async function ending(it: Running, over: Promise<AttemptResult>): Promise<AttemptResult> {
    it.harness.say(it.harness.events.completedWith('OK'));
    it.harness.end();
    for (let second = 0; second < 60 && it.execution()?.outcome === undefined; second++) {
      for (let i = 0; i < 10; i++) await settle();
      await it.clock.advance(1_000);
    }
    return over;
  }

  test('= Running is tried again, and its prompt goes on', async () => {
    const { it, end } = await refused('= Running', 3);
    for (let second = 0; second < 10; second++) {
      await it.clock.advance(1_000);
      await settle();
    }
    expect(it.execution()?.state).toBe('Running');
    expect(it.log.filter((one) => one.startsWith('cancel'))).toEqual([]);
    expect(it.reported).toHaveLength(3);
    await end();
    expect(it.execution()?.state).toBe('Succeeded');
    expect(it.problems).toEqual([]);
  });

  test('= Running is no longer tried when its prompt is over, and the Task succeeds', async () => {
    const { it, end } = await refused('= Running', Infinity);
    await end();
    expect(it.log).not.toContain('= Running');
    expect(it.execution()?.state).toBe('Succeeded');
    expect([it.problems, it.clock.timers()]).toEqual([[], 0]);
  });

  test('= Running, since the attempt is not ours any more, ends its prompt', async () => {
    const { it, over } = await refused('= Running', 1, () => new Error('t1 is not in Submitting any more'));
    it.harness.answers.cancel = () => Promise.resolve(settled('cancelled'));
    expect(it.log).toContain('cancel controller_shutdown');
    it.harness.say(it.harness.events.cancelled);
    it.harness.end();
    await over;
    expect(it.execution()).toMatchObject({ state: 'Cancelled' });
  });

  test.each(['= Settling', '= Succeeded'])('%s is tried again, and the Task succeeds', async (write) => {
    const { it, end } = await refused(write, 4);
    await end();
    expect(it.task().status).toMatchObject({ phase: 'Succeeded', resultRef: { available: true } });
    expect(it.problems).toEqual([]);
  });

  test('= result is tried again while the session lives, and the Task names the quota', async () => {
    const { it, end } = await refused('= result', 5, quota);
    await end();
    expect(it.said).toHaveLength(5);
    expect(it.said[0]).toContain('exceeded quota: no-configmaps');
    expect(it.task().status).toMatchObject({ phase: 'Succeeded' });
    expect(it.stored.map(({ text }) => text)).toEqual(['OK']);
  });

  test.each(['cancelled', 'lost'] as const)('= result is given up when its Task or its instance is gone (%s)', async (gone) => {
    const { it, over } = await refused('= result', Infinity, quota);
    it.harness.say(it.harness.events.completedWith('OK'));
    it.harness.end();
    for (let i = 0; i < 20; i++) await settle();
    it[gone].abort();
    await over;
    expect(it.execution()).toMatchObject({
      state: 'OutcomeUnknown',
      reason: 'ExecutionEventPersistenceFailed',
      message: expect.stringContaining('no-configmaps'),
    });
    expect(it.clock.timers()).toBe(0);
  });
});

describe('an instance that is not the one of the plan', () => {
  test.each([
    ['runs another profile', { runtimeProfileDigest: `sha256:${'0'.repeat(64)}` }],
    ['is not strictly governed', { workspaceGovernance: { mode: 'trusted-non-governed' } }],
    ['takes no agent configuration', { supportsAgentSessionConfiguration: false }],
  ])('%s: nothing is written', async (_, change) => {
    const it = attempt();
    const { capabilities } = it.harness.answers;
    it.harness.answers.capabilities = async () => ({ ...(await capabilities()), ...change }) as never;
    expect(await it.begin()).toMatchObject({ outcome: 'failed', session: 'none' });
    expect(it.log).toEqual(['capabilities']);
  });
});

describe('a session that does not begin', () => {
  const poisoned = () =>
    Promise.reject(broken('request_written', { kind: 'http', status: 500, code: 'session_poisoned', retryable: true }));

  test.each([
    ['by a lost connection', () => Promise.reject(broken('unknown'))],
    ['by an agent that did not begin', poisoned],
  ])('%s is tried again in another one, and its Task says why', async (_, createSession) => {
    const it = attempt();
    it.harness.answers.createSession = createSession;
    expect(await it.begin()).toMatchObject({ outcome: 'queued', session: 'open' });
    expect(it.task().status).toMatchObject({
      phase: 'Pending',
      execution: { state: 'Queued', reason: 'RuntimeSessionStartFailed' },
    });
    expect(it.problems).toEqual([]);
    expect(it.prompts()).toBe(0);
  });

  test('has a generation and an operation of its own when it is another one', async () => {
    const it = attempt(undefined, { generation: 2 });
    await happy(it);
    expect(it.log).toContain(`create-session-g2-${prompt}`);
    expect(it.execution()).toMatchObject({ state: 'Succeeded', runtimeSessionGeneration: 2 });
  });

  test('the last time fails the Task, and names no address', async () => {
    const it = attempt(undefined, { lastTry: true });
    it.harness.answers.createSession = () => Promise.reject(broken('unknown'));
    expect(await it.begin()).toMatchObject({ outcome: 'settled' });
    expect(it.execution()).toMatchObject({ state: 'Failed', reason: 'RuntimeSessionStartFailed' });
    expect(it.task().status?.message).toBe('the connection to its instance failed (connection refused)');
    expect(it.prompts()).toBe(0);
  });

  test('for good fails the Task at once', async () => {
    const it = attempt();
    it.harness.answers.createSession = () =>
      Promise.reject(broken('request_written', { kind: 'http', status: 400, code: 'invalid_request' }));
    expect(await it.begin()).toMatchObject({ outcome: 'settled' });
    expect(it.execution()).toMatchObject({ state: 'Failed', reason: 'RuntimeSessionStartFailed' });
  });

  test('since its instance is gone is tried again, even the last time', async () => {
    const it = attempt(undefined, { lastTry: true });
    it.harness.answers.createSession = () => {
      it.lost.abort();
      return Promise.reject(broken('unknown'));
    };
    expect(await it.begin()).toEqual({ outcome: 'queued', because: 'its instance is gone', session: 'gone' });
  });

  test('because the instance is at capacity is queued again, and says so', async () => {
    const it = attempt();
    it.harness.answers.createSession = () =>
      Promise.reject(broken('request_written', { kind: 'http', status: 429, code: 'rate_limited', retryable: true }));
    expect(await it.begin()).toEqual({ outcome: 'queued', because: 'its instance is at capacity', session: 'none' });
    expect(it.task().status).toMatchObject({ phase: 'Pending', execution: { state: 'Queued', reason: 'AtCapacity' } });
    expect(it.problems).toEqual([]);
  });

  test('before its instance is ended is queued again, and its prompt is not sent there', async () => {
    const it = attempt();
    it.harness.answers.createSession = () => {
      it.drains();
      return Promise.resolve({});
    };
    expect(await it.begin()).toEqual({ outcome: 'queued', because: 'its instance is being ended', session: 'open' });
    expect(it.task().status).toMatchObject({ phase: 'Pending', execution: { state: 'Queued', reason: 'RuntimeLost' } });
    expect(it.problems).toEqual([]);
    expect(it.prompts()).toBe(0);
  });

  test('is given up when its Task is deleted', async () => {
    const it = attempt();
    it.harness.answers.createSession = (signal) =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(broken('unknown', { kind: 'aborted' })));
      });
    const over = it.begin();
    await settle();
    await settle();
    it.cancelled.abort();
    expect(await over).toMatchObject({ outcome: 'settled' });
    expect(it.execution()).toMatchObject({ state: 'Cancelled', reason: 'Cancelled' });
  });
});

describe('a prompt that nobody wants any more is not sent', () => {
  test('when its Task was deleted while the session began', async () => {
    const it = attempt();
    it.harness.answers.createSession = () => {
      it.cancelled.abort();
      return Promise.resolve({});
    };
    await it.begin();
    expect(it.execution()).toMatchObject({ state: 'Cancelled', reason: 'Cancelled' });
    expect(it.prompts()).toBe(0);
  });

  test('when the last write shows that it is being deleted', async () => {
    const it = attempt();
    it.harness.answers.createSession = () => {
      it.change({ deletionTimestamp: at(created) });
      return Promise.resolve({});
    };
    await it.begin();
    expect(it.log.slice(-2)).toEqual(['= Submitting', '= Cancelled']);
    expect(it.prompts()).toBe(0);
  });

  test('when the time is over', async () => {
    const it = attempt();
    it.harness.answers.createSession = async () => {
      await it.clock.advance(10 * 60_000);
      return {};
    };
    await it.begin();
    expect(it.execution()).toMatchObject({ state: 'Cancelled', reason: 'TaskTimeout' });
    expect(it.prompts()).toBe(0);
  });
});

describe('a prompt that fails to be sent', () => {
  test('with the proof that nothing was written was not accepted', async () => {
    const it = attempt();
    it.harness.answers.prompt = () => Promise.reject(broken('zero_bytes_written'));
    await it.begin();
    expect(it.execution()).toMatchObject({ state: 'Failed', reason: 'PromptNotAccepted' });
  });

  test.each(['unknown', 'request_written', 'request_write_ambiguous'] as const)(
    'with evidence %s has an unknown outcome, and is not sent again',
    async (evidence) => {
      const it = attempt();
      it.harness.answers.prompt = () => Promise.reject(broken(evidence));
      await it.begin();
      expect(it.execution()).toMatchObject({ state: 'OutcomeUnknown', reason: 'RuntimeLost' });
      expect(it.prompts()).toBe(1);
    },
  );

  test('since it was sent before has an unknown outcome: it may run', async () => {
    const it = attempt();
    const classification = { class: 'duplicate', phase: 'recorded' } as const;
    it.harness.answers.prompt = () =>
      Promise.reject(broken('request_written', { kind: 'http', status: 409, code: 'invalid_request', classification }));
    await it.begin();
    expect(it.execution()).toMatchObject({ state: 'OutcomeUnknown', reason: 'RuntimeLost' });
  });

  test.each(['stale_fence', 'invalid_request', 'session_poisoned', 'expired'] as const)(
    'since the supervisor refuses it (%s) was not accepted',
    async (code) => {
      const it = attempt();
      it.harness.answers.prompt = () => Promise.reject(broken('request_written', { kind: 'http', status: 410, code }));
      await it.begin();
      expect(it.execution()).toMatchObject({ state: 'Failed', reason: 'PromptNotAccepted' });
      expect(it.prompts()).toBe(1);
    },
  );

  test.each(['already_accepted', 'settled', 'digest_conflict', 'outcome_unknown'] as const)(
    'since one was sent before (%s) has an unknown outcome',
    async (code) => {
      const it = attempt();
      it.harness.answers.prompt = () => Promise.reject(broken('request_written', { kind: 'http', status: 409, code }));
      await it.begin();
      expect(it.execution()).toMatchObject({ state: 'OutcomeUnknown', reason: 'RuntimeLost' });
    },
  );

  describe('for lack of room', () => {
    const full = () => broken('request_written', { kind: 'http', status: 429, code: 'rate_limited', retryable: true });

    test('is sent again a second later, under another operation, and ends well', async () => {
      const it = attempt();
      let refusals = 2;
      it.harness.answers.prompt = () => (refusals-- > 0 ? Promise.reject(full()) : Promise.resolve({}));
      const { accepted, completedWith } = it.harness.events;
      it.harness.say(accepted, completedWith('OK'));
      it.harness.end();
      const over = it.begin();
      for (let second = 0; second < 3; second++) {
        for (let i = 0; i < 10; i++) await settle();
        await it.clock.advance(1_000);
      }
      expect(await over).toMatchObject({ outcome: 'settled' });
      const operations = it.log.filter((one) => one.startsWith('start-prompt')).map((one) => one.split(':')[0]);
      expect(operations).toEqual(
        ['start-prompt', 'start-prompt-retry-1', 'start-prompt-retry-2'].map((verb) => `${verb}-${prompt}`),
      );
      expect(it.execution()).toMatchObject({ state: 'Succeeded' });
      expect(it.problems).toEqual([]);
    });

    test('says so meanwhile, and ends at the deadline of its Task', async () => {
      const it = attempt(boundTask({ timeout: '3s' }));
      it.harness.answers.prompt = () => Promise.reject(full());
      const over = it.begin();
      for (let i = 0; i < 10; i++) await settle();
      expect(it.execution()).toMatchObject({ state: 'Submitting', reason: 'AtCapacity' });
      for (let second = 0; second < 4; second++) {
        await it.clock.advance(1_000);
        for (let i = 0; i < 10; i++) await settle();
      }
      await over;
      expect(it.execution()).toMatchObject({ state: 'Cancelled', reason: 'TaskTimeout' });
    });
  });
});

describe('a prompt that ends as', () => {
  test.each([
    ['failed', 'Failed', 'PromptFailed', 'agent_error: it broke'],
    ['cancelled', 'Cancelled', 'Cancelled', 'the prompt was cancelled: cancelled'],
    ['unknown', 'OutcomeUnknown', 'RuntimeLost', 'settlement_unproven: nobody knows'],
  ] as const)('%s settles the Task as %s', async (name, state, reason, message) => {
    const it = attempt();
    it.harness.say(it.harness.events.accepted, it.harness.events[name]);
    it.harness.end();
    expect(await it.begin()).toMatchObject({ outcome: 'settled' });
    expect(it.execution()).toMatchObject({ state, reason, message });
    expect(it.stored).toEqual([]);
    expect(it.problems).toEqual([]);
  });
});

describe('tokens that an agent reports', () => {
  const used = (usage: object) => ({ kind: 'usage', usage });
  const completed = (usage: object) => {
    const { events } = attempt().harness;
    const { payload, ...event } = events.completedWith('OK') as Extract<PromptEvent, { readonly type: 'completed' }>;
    return { ...event, payload: { ...payload, result: { ...payload.result, usage } } };
  };
  const usageOf = async (end: PromptEvent | 'failed' | 'cancelled' | 'unknown', ...updates: readonly object[]) => {
    const it = attempt();
    const { events } = it.harness;
    const told = updates.map((payload) => ({ ...events.update(''), payload }) as PromptEvent);
    it.harness.say(events.accepted, ...told, typeof end === 'string' ? events[end] : end);
    it.harness.end();
    await it.begin();
    expect(it.problems).toEqual([]);
    return it.execution()?.usage;
  };

  test('for a prompt that was completed are on its Task', async () => {
    const usage = { inputTokens: 100, outputTokens: 7, cachedInputTokens: 20 };
    expect(await usageOf(completed(usage))).toEqual(usage);
  });

  test.each(['failed', 'cancelled', 'unknown'] as const)('before a prompt ended as %s are on its Task', async (end) => {
    const context = used({ contextWindowUsed: 5, contextWindowSize: 10 });
    expect(await usageOf(end, used({ inputTokens: 1 }), used({ inputTokens: 2, outputTokens: 3 }), context)).toEqual({
      inputTokens: 2,
      outputTokens: 3,
    });
  });

  test('are there only where they were reported', async () => {
    expect(await usageOf(completed({}))).toBeUndefined();
    expect(await usageOf('failed')).toBeUndefined();
    expect(await usageOf(completed({ outputTokens: 0 }))).toEqual({ outputTokens: 0 });
  });

  test.each([mostTokens + 1, Number.MAX_SAFE_INTEGER, -1, 0.5, Infinity, '7', null])(
    'that no prompt can cost are left out, and the answer stays: %p',
    async (count) => {
      expect(await usageOf(completed({ inputTokens: count, outputTokens: mostTokens }))).toEqual({ outputTokens: mostTokens });
    },
  );
});

describe('a stream that breaks', () => {
  test.each([
    ['cancelled', 'Cancelled', 'Cancelled'],
    ['failed', 'Failed', 'PromptFailed'],
    ['succeeded', 'OutcomeUnknown', 'RuntimeLost'],
    ['outcome_unknown', 'OutcomeUnknown', 'RuntimeLost'],
  ] as const)('and a prompt that is proven to have ended as %s is %s', async (outcome, state, reason) => {
    const it = attempt();
    it.harness.answers.cancel = () => Promise.resolve(settled(outcome));
    it.harness.say(it.harness.events.accepted);
    it.harness.end(broken('request_written', { kind: 'stream' }));
    await it.begin();
    expect(it.log).toContain('cancel stream_disconnected');
    expect(it.execution()).toMatchObject({ state, reason });
  });

  test('since its instance is gone is not asked about, and leaves an unknown outcome', async () => {
    const it = attempt();
    it.harness.say(it.harness.events.accepted);
    const { over } = await it.sent();
    await settle();
    it.lost.abort();
    expect(await over).toMatchObject({ outcome: 'settled' });
    expect(it.log.filter((one) => one.startsWith('cancel'))).toEqual([]);
    expect(it.execution()).toMatchObject({ state: 'OutcomeUnknown', reason: 'RuntimeLost' });
    expect(it.task().status?.message).toBe('the prompt was lost: its instance is gone');
  });

  test('since its Pod was deleted says so', async () => {
    const it = attempt();
    it.harness.say(it.harness.events.accepted);
    const { over } = await it.sent();
    it.deletePod();
    it.lost.abort();
    await over;
    expect(it.task().status?.message).toBe('the prompt was lost: its Pod was deleted');
  });

  test.each<[string, PodEnd]>([
    [
      'out of memory',
      { cause: 'OOMKilled', says: 'its container runtime used more than its memory limit of 2Gi and was killed' },
    ],
    ['drained', { cause: 'NodeDrained', says: 'its Pod was evicted from node node1, as a drain of the node does' }],
  ])('names what ended its instance, in message and condition: %s', async (_, instance) => {
    const it = attempt();
    it.harness.say(it.harness.events.accepted);
    const { over } = await it.sent();
    it.reports(instance);
    it.harness.end(broken('request_written'));
    await over;
    expect(it.task().status).toMatchObject({
      message: `the prompt was lost: ${instance.says}`,
      execution: { state: 'OutcomeUnknown', reason: 'RuntimeLost' },
      conditions: [{ type: 'Complete', status: 'False', reason: instance.cause }],
    });
    expect(it.problems).toEqual([]);
  });

  test('is said in a sentence, and the request is for the log', async () => {
    const it = attempt();
    it.harness.say(it.harness.events.accepted);
    const { over } = await it.sent();
    it.harness.end(broken('request_written'));
    await over;
    expect(it.task().status?.message).toBe('the prompt was lost: the connection to its instance failed (connection refused)');
    expect(it.reported.map(String).join()).toContain('PUT /v2/x');
  });

  test('or ends without an end, leaves an unknown outcome when nothing is proven', async () => {
    for (const error of [undefined, broken('request_written')]) {
      const it = attempt();
      it.harness.say(it.harness.events.accepted);
      it.harness.end(error);
      await it.begin();
      expect(it.execution()).toMatchObject({ state: 'OutcomeUnknown', reason: 'RuntimeLost' });
      expect(it.prompts()).toBe(1);
    }
  });
});

describe('a running prompt', () => {
  async function running() {
    const it = attempt();
    const { over } = await it.sent();
    it.harness.say(it.harness.events.accepted);
    await settle();
    await settle();
    return { it, over };
  }

  test('has its lease renewed at half of its life, again and again', async () => {
    const { it, over } = await running();
    await it.clock.advance(44_999);
    expect(it.log.filter((one) => one.startsWith('renew'))).toEqual([]);
    await it.clock.advance(1);
    await it.clock.advance(45_000);
    expect(it.log.filter((one) => one.startsWith('renew'))).toEqual([`renew-lease-2-${prompt}`, `renew-lease-3-${prompt}`]);
    it.harness.say(it.harness.events.completed);
    it.harness.end();
    await over;
    expect(it.clock.timers()).toBe(0);
  });

  test('keeps its lease over lost packets: the same request is sent again, over new connections', async () => {
    const { it, over } = await running();
    const { renewLease } = it.harness.answers;
    it.harness.answers.renewLease = () => Promise.reject(broken('unknown', { kind: 'timeout' }));
    await it.clock.advance(45_000 + 38_000);
    it.harness.answers.renewLease = renewLease;
    await it.clock.advance(2_000);
    const renewals = it.log.filter((one) => one.startsWith('renew'));
    expect(renewals.length).toBeGreaterThan(10);
    expect(new Set(renewals)).toEqual(new Set([`renew-lease-2-${prompt}`]));
    expect(it.harness.fresh).toEqual(renewals);
    expect(it.log.filter((one) => one.startsWith('cancel'))).toEqual([]);
    it.harness.say(it.harness.events.completed);
    it.harness.end();
    await over;
    expect(it.execution()?.state).toBe('Succeeded');
    expect(it.clock.timers()).toBe(0);
  });

  test('whose lease is refused is cancelled at once', async () => {
    const { it, over } = await running();
    it.harness.answers.renewLease = () =>
      Promise.reject(broken('request_written', { kind: 'http', status: 410, code: 'stale_fence' }));
    it.harness.answers.cancel = () => Promise.resolve(settled('cancelled'));
    await it.clock.advance(45_000);
    expect(it.log.slice(-2)).toEqual([`renew-lease-2-${prompt}`, 'cancel lease_expired']);
    it.harness.say(it.harness.events.cancelled);
    it.harness.end();
    await over;
  });

  test('that is proven to have ended is not asked about again, though its stream never ends', async () => {
    const { it, over } = await running();
    it.harness.answers.cancel = () => Promise.resolve(settled('cancelled'));
    await it.clock.advance(10 * 60_000);
    it.harness.answers.cancel = () => Promise.reject(broken('unknown'));
    it.cancelled.abort();
    await it.clock.advance(5_000);
    await over;
    expect(it.log.filter((one) => one.startsWith('cancel'))).toEqual(['cancel task_timeout']);
    expect(it.execution()).toMatchObject({ state: 'Cancelled', reason: 'TaskTimeout' });
    expect(it.clock.timers()).toBe(0);
  });

  test('is asked to end by the same request again when its answer is lost, whatever is the reason then', async () => {
    const { it, over } = await running();
    let lost = 1;
    it.harness.answers.cancel = () =>
      lost-- > 0 ? Promise.reject(broken('unknown', { kind: 'timeout' })) : Promise.resolve(settled('cancelled'));
    await it.clock.advance(10 * 60_000);
    it.cancelled.abort();
    await it.clock.advance(5_000);
    await over;
    expect(it.log.filter((one) => one.startsWith('cancel'))).toEqual(['cancel task_timeout', 'cancel task_timeout']);
    expect(it.execution()).toMatchObject({ state: 'Cancelled', reason: 'TaskTimeout' });
  });

  test('is cancelled when its lease cannot be renewed until shortly before it expires', async () => {
    const { it, over } = await running();
    it.harness.answers.renewLease = () => Promise.reject(broken('unknown'));
    it.harness.answers.cancel = () => {
      it.harness.say(it.harness.events.cancelled);
      it.harness.end();
      return Promise.resolve(settled('cancelled'));
    };
    await it.clock.advance(87_000);
    expect(it.log.filter((one) => one.startsWith('cancel'))).toEqual([]);
    await it.clock.advance(2_000);
    await over;
    expect(it.execution()).toMatchObject({
      state: 'Cancelled',
      reason: 'Cancelled',
      message: 'the prompt was cancelled: its lease could not be renewed',
    });
  });

  test('is cancelled at the deadline of its Task', async () => {
    const { it, over } = await running();
    it.harness.answers.cancel = () => {
      it.harness.say(it.harness.events.cancelled);
      it.harness.end();
      return Promise.resolve(settled('cancelled'));
    };
    await it.clock.advance(10 * 60_000);
    await over;
    expect(it.log).toContain('cancel task_timeout');
    expect(it.execution()).toMatchObject({ state: 'Cancelled', reason: 'TaskTimeout' });
  });

  test('that does not end at its deadline is broken off, and its outcome is what can be proven', async () => {
    const { it, over } = await running();
    await it.clock.advance(10 * 60_000);
    expect(it.log).not.toContain('abort');
    it.harness.answers.cancel = () => Promise.resolve(settled('cancelled'));
    await it.clock.advance(25_000);
    await over;
    expect(it.log).toContain('abort');
    expect(it.execution()).toMatchObject({ state: 'Cancelled', reason: 'TaskTimeout' });
  });

  test('is cancelled when its Task is deleted', async () => {
    const { it, over } = await running();
    it.harness.answers.cancel = () => {
      it.harness.say(it.harness.events.cancelled);
      it.harness.end();
      return Promise.resolve(settled('cancelled'));
    };
    it.cancelled.abort();
    await over;
    expect(it.log).toContain('cancel controller_shutdown');
    expect(it.execution()).toMatchObject({ state: 'Cancelled', reason: 'Cancelled', message: 'the Task was deleted' });
  });

  test('that ends well all the same has succeeded', async () => {
    const { it, over } = await running();
    it.cancelled.abort();
    it.harness.say(it.harness.events.completedWith('OK'));
    it.harness.end();
    await over;
    expect(it.execution()?.state).toBe('Succeeded');
  });

  test('is ended when it asks for a permission', async () => {
    const { it, over } = await running();
    it.harness.say(it.harness.events.asks, it.harness.events.cancelled);
    it.harness.end();
    await over;
    expect(it.log).toContain('cancel user_requested');
    expect(it.execution()?.message).toContain('a permission that nobody is there to give');
  });

  test('has its time when that is longer than a clock can wait', async () => {
    const it = attempt(boundTask({ timeout: '1000h' }));
    const clock = it.clock;
    const after = clock.after.bind(clock);
    (clock as { after: typeof after }).after = (wait, run) => after(Math.min(wait, 60 * 60_000), run);
    const { over } = await it.sent();
    it.harness.say(it.harness.events.accepted);
    await clock.advance(2 * 60 * 60_000);
    expect(it.log.filter((one) => one.startsWith('cancel'))).toEqual([]);
    it.harness.say(it.harness.events.completed);
    it.harness.end();
    await over;
  });
});

describe('a process that must end', () => {
  test.each([0, 2, 4, 6])('writes nothing more, after %i steps', async (steps) => {
    const it = attempt();
    const over = it.begin();
    over.catch(() => undefined);
    for (let i = 0; i < steps; i++) await settle();
    it.process.abort();
    const writes = it.log.filter((one) => one.startsWith('=')).length;
    it.harness.say(it.harness.events.accepted, it.harness.events.completed);
    it.harness.end();
    expect(await over).toMatchObject({ outcome: 'failed' });
    expect(it.log.filter((one) => one.startsWith('='))).toHaveLength(writes);
  });
});

describe('a workspace', () => {
  test('that was changed by a reader fails the Task, with its answer', async () => {
    const it = attempt();
    it.harness.answers.delta = () => Promise.resolve({ state: 'read_only_modified', changedFileCount: 2 });
    await happy(it);
    expect(it.task().status).toMatchObject({
      phase: 'Failed',
      resultRef: { available: true },
      message: 'the agent changed 2 files of a workspace with intent read',
      execution: { state: 'Succeeded', outcome: 'Succeeded' },
      delivery: { state: 'ReadOnlyWorkspaceModified', outcome: 'ReadOnlyWorkspaceModified' },
    });
    expect(it.problems).toEqual([]);
  });

  test('that cannot be validated is a conflict', async () => {
    const it = attempt();
    it.harness.answers.delta = () =>
      Promise.reject(broken('request_written', { kind: 'http', status: 409, code: 'digest_conflict' }));
    await happy(it);
    expect(it.task().status?.delivery).toMatchObject({ state: 'DeliveryConflict', reason: 'WorkspaceValidationFailed' });
    expect(JSON.stringify(it.task().status)).not.toContain('10.1.2.3');
  });

  test('whose Pod was deleted before it could be validated says so', async () => {
    const it = attempt();
    it.harness.answers.delta = () => {
      it.deletePod();
      it.lost.abort();
      return Promise.reject(broken('unknown', { kind: 'aborted' }));
    };
    await happy(it);
    expect(it.task().status).toMatchObject({
      phase: 'Failed',
      resultRef: { available: true },
      message: 'the workspace could not be validated: its Pod was deleted',
      delivery: { state: 'DeliveryConflict', reason: 'RuntimeWorkspaceLost' },
    });
  });

  test('is asked for again, with the same operation, when the answer is lost; three times', async () => {
    const it = attempt();
    it.harness.answers.delta = () => Promise.reject(broken('unknown'));
    const over = happy(it);
    for (let i = 0; i < 30; i++) await settle();
    await it.clock.advance(500);
    for (let i = 0; i < 30; i++) await settle();
    await it.clock.advance(1_000);
    await over;
    expect(it.log.filter((one) => one.startsWith('workspace-delta'))).toEqual(Array(3).fill(`workspace-delta-${prompt}`));
    expect(it.execution()).toMatchObject({ state: 'Succeeded' });
    expect(it.task().status?.delivery).toMatchObject({ reason: 'WorkspaceValidationFailed' });
  });
});

describe('an attempt with a repository', () => {
  const id = 'git.example:8443/acme/app';
  const artifact = { artifactID: archive.replace(':', '-'), digest: archive, sizeBytes: 2048, mediaType: 'application/x-tar' };
  const service = 'orka-publisher/orka-publisher';
  const source: SessionSource = {
    asked: { at: 'Task team-a/t1', repositoryId: id, forge: 'git.example:8443', branch: 'main', service },
    repository: { provider: 'github', id, url: `https://${id}.git` },
    relativeRoot: 'services/api',
    resolved: { repositoryID: id, sourceRef: 'refs/heads/main', baselineOID: commit },
    prepared: { treeOID: 'a'.repeat(40), manifestDigest: manifest, entryCount: 3, expandedBytes: 9, artifact },
  };
  const asked = { intent: 'read', gitRepo: `https://${id}.git`, branch: 'main', subPath: 'services/api' } as const;
  const bound = () => boundTask({ timeout: '10m', workspace: asked });
  const baseline = { repositoryIdentity: id, revision: commit, treeDigest: manifest, artifact };

  test('begins its session with the commit, its archive and the permission to fetch it', async () => {
    const it = attempt(bound(), { source });
    const orders: SessionOrder[] = [];
    const { createSession } = it.harness.client;
    const listening: HarnessClient['createSession'] = (operation, order, call) => {
      orders.push(order);
      return createSession(operation, order, call);
    };
    Object.assign(it.harness.client, { createSession: listening });
    expect(await happy(it)).toMatchObject({ outcome: 'settled' });
    expect(orders).toMatchObject([
      {
        workspace: { intent: 'read', baseline, relativeRoot: 'services/api' },
        workspaceArtifactAuthorization: {
          capability: `for runtime-workspace-download-${prompt}-a1-g1`,
          requestDigest: manifest,
        },
      },
    ]);
    expect(it.execution()?.runtimeSessionWorkspaceDigest).toBe(
      sessionWorkspaceDigest({
        intent: 'read',
        relativeRoot: 'services/api',
        repositoryIdentity: id,
        revision: commit,
        sourceRef: 'refs/heads/main',
        treeDigest: manifest,
      }),
    );
    expect(it.problems).toEqual([]);
  });

  test('asks for the changes since that commit, and says what it started from', async () => {
    const it = attempt(bound(), { source });
    await happy(it);
    const settlement = {
      terminalEvent: 'completed',
      outcome: 'succeeded',
      stopReason: 'end_turn',
      settledAt: at(created),
    } as const;
    expect(it.orders.delta(settlement, 1_000).verifiedBaseline).toEqual(baseline);
    expect(it.task().status?.delivery).toMatchObject({
      state: 'ReadValidated',
      startingSHA: commit,
      sourceRepository: { provider: 'github', id },
    });
  });

  test.each([1, 2])('has a download of its own in generation %d', (generation) => {
    const it = attempt(bound(), { source, generation });
    expect(it.orders.download).toEqual({
      operation: 'download',
      objectDigest: archive,
      identity: { namespace: 'team-a', taskID: '11111111-1111-1111-1111-111111111111' },
      contentLength: 2048,
      mediaType: 'application/x-tar',
      operationID: `runtime-workspace-download-${prompt}-a1-g${generation}`,
    });
  });

  test('whose Secret is another one by now is blocked before it has a session', async () => {
    const it = attempt(bound(), { source });
    it.permit(() => ({ says: 'Task team-a/t1: Secret read was changed' }));
    expect(await it.begin()).toMatchObject({ outcome: 'settled', session: 'none' });
    expect(it.execution()).toMatchObject({ state: 'Failed', reason: 'CredentialBlocked' });
    expect(it.log).toEqual(['capabilities', '= SessionStarting', '= Failed']);
  });

  const notFilled = (message: string, retryable: boolean) =>
    broken('request_written', { kind: 'http', status: retryable ? 500 : 422, code: 'session_poisoned', retryable, message });
  const start = 'creation failed: workspace materialization: ';

  test.each<[string, SessionSource, string, string]>([
    [
      'a path of the repository',
      { ...source, relativeRoot: undefined },
      'the name is reserved: docs/.git/config',
      'spec.workspace.gitRepo: no workspace of git.example:8443/acme/app can be made: the name is reserved: docs/.git/config: allowed: a commit whose tree does not have it',
    ],
    [
      'the root that its Task names',
      source,
      'the repository has a file where its root should be: services/api',
      'spec.workspace.subPath: no workspace of git.example:8443/acme/app can be made: the repository has a file where its root should be: services/api: found "services/api", allowed: a folder of the repository whose links stay inside it',
    ],
  ])('whose instance refuses %s fails at once, and says what can be done', async (_, refused, says, message) => {
    const it = attempt(bound(), { source: refused });
    it.harness.answers.createSession = () => Promise.reject(notFilled(`${start}workspace: ${says}`, false));
    expect(await it.begin()).toMatchObject({ outcome: 'settled' });
    expect(it.execution()).toMatchObject({ state: 'Failed', reason: 'InvalidWorkspace' });
    expect(it.task().status?.message).toBe(`Task team-a/t1: ${message}`);
    expect([it.prompts(), it.problems]).toEqual([0, []]);
  });

  const failed =
    'its instance could not download the archive of the repository from port 8080 (artifacts) of the publisher, Service orka-publisher/orka-publisher: ';
  const downloads = ['the artifact API answers with status 403', 'the transfer broke off', 'the artifact API does not answer'];

  test.each(downloads)('whose archive does not come, since %s, is tried again in another session', async (says) => {
    const it = attempt(bound(), { source });
    it.harness.answers.createSession = () => Promise.reject(notFilled(`${start}workspace artifact: ${says}`, true));
    expect(await it.begin()).toEqual({ outcome: 'queued', because: failed + says, session: 'open', failedDownload: true });
    expect(it.task().status).toMatchObject({
      phase: 'Pending',
      execution: { state: 'Queued', reason: 'RuntimeSessionStartFailed', message: failed + says },
    });
    expect([it.prompts(), it.problems]).toEqual([0, []]);
  });

  test('whose archive does not come the last time fails, and names the port of the publisher', async () => {
    const it = attempt(bound(), { source, lastDownload: true });
    const says = 'the artifact API answers with status 403';
    it.harness.answers.createSession = () => Promise.reject(notFilled(`${start}workspace artifact: ${says}`, true));
    expect(await it.begin()).toMatchObject({ outcome: 'settled' });
    expect(it.execution()).toMatchObject({ state: 'Failed', reason: 'WorkspaceUnsupported' });
    expect(it.task().status?.message).toBe(
      `Task team-a/t1: spec.workspace.gitRepo: ${failed}${says}; tell the operator of the platform`,
    );
  });

  test('whose session fails for another reason has tries of its own', async () => {
    const it = attempt(bound(), { source, lastDownload: true });
    it.harness.answers.createSession = () => Promise.reject(notFilled('creation failed: provider adapter initialization', true));
    expect(await it.begin()).toMatchObject({ outcome: 'queued', session: 'open' });
    expect(it.execution()).toMatchObject({ state: 'Queued', reason: 'RuntimeSessionStartFailed' });
  });

  test.each<[string, readonly string[], number, string]>([
    ['names the paths', ['a.ts', 'b.ts'], 2, '2 files of a workspace with intent read: a.ts, b.ts'],
    ['says how many more there are', ['a.ts'], 3, '3 files of a workspace with intent read: a.ts and 2 more'],
    [
      'leaves out paths that a message cannot hold',
      Array.from({ length: 20 }, (_, i) => `${'x'.repeat(98)}${String(i).padStart(2, '0')}`),
      20,
      'and 14 more',
    ],
  ])('that changed files %s', async (_, changedPaths, changedFileCount, says) => {
    const it = attempt(bound(), { source });
    it.harness.answers.delta = () => Promise.resolve({ state: 'read_only_modified', changedFileCount, changedPaths });
    await happy(it);
    expect(it.task().status?.delivery).toMatchObject({ state: 'ReadOnlyWorkspaceModified', startingSHA: commit });
    expect(it.task().status?.message).toContain(says);
    expect(it.problems).toEqual([]);
  });
});
