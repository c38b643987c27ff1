/** Readers that do not read, requests that come again or too late, and ends in the middle of something. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { instant } from '../../src/lib/instant.js';
import type { CancelReason } from '../../src/harness/prompts.js';
import { processesOf } from '../../src/supervisor/processes.js';
import { eventuallyAnswers } from '../support/eventually.js';
import { collect, taskOrders } from '../support/harness-orders.js';
import type { TaskOrders } from '../support/harness-orders.js';
import { limit } from '../support/pace.js';
import { finish, gone, refusal, takeDelta, textOf } from '../support/supervisor-calls.js';
import { scriptedSupervisor, switchesUsers } from '../support/supervisor.js';
import type { ScriptedSupervisor } from '../support/supervisor.js';

let it: ScriptedSupervisor;
beforeAll(async () => {
  it = await scriptedSupervisor({ timing: { cancelGrace: 500 } });
});
afterAll(async () => {
  await it.close();
});

const cancel = (task: TaskOrders, options: { verb?: string; reason?: CancelReason; wait?: number } = {}) =>
  it.client.cancel(task.operation(options.verb ?? 'cancel', it.fence, { prompt: true }), task.runtimeSessionID, {
    reason: options.reason ?? 'task_timeout',
    settlementDeadline: instant(Date.now() + (options.wait ?? 20_000)),
  });

describe('a reader of events', () => {
  test('that does not read fails a prompt that says much, within bounded memory', async () => {
    const task = await it.session('unread');
    const before = process.memoryUsage().rss;
    const stream = await it.start(task, 'heavy-updates 2000');
    const code = await endCode(task);
    expect(code).toMatch(/event_buffer_overflow|update_rate_exceeded/);
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 * 1024);
    await gone(it, task);
    stream.abort();
  });

  test('that reads late gets every event in its order', async () => {
    const task = await it.session('late');
    const stream = await it.start(task, 'heavy-updates 40');
    await sleep(1000);
    const events = await collect(stream);
    expect(events.map(({ identity }) => identity.sequence)).toEqual(events.map((_, i) => i + 1));
    expect([events.length, events.at(-1)?.type]).toEqual([42, 'completed']);
    await finish(it, task, events);
  });

  test('that leaves while the agent has not taken the prompt yet cancels it', async () => {
    const slow = await scriptedSupervisor({ timing: { cancelGrace: 200, accept: 6_000 } });
    try {
      const task = await slow.session('unheard', 'session/new:stop-reading');
      const controller = new AbortController();
      const prompt = refusal(slow.start(task, `say ${'y'.repeat(900_000)}`, { signal: controller.signal }));
      await eventuallyAnswers(async () =>
        expect((await slow.status()).activePrompts).toMatchObject([{ promptID: task.promptID }]),
      );
      controller.abort();
      expect(await prompt).toBeDefined();
      await gone(slow, task);
      expect(slow.log()).toMatch(/"as":"(not accepted|cancelled)"/);
    } finally {
      await slow.close();
    }
  });

  test('that sends a prompt again which the agent has not taken yet is told that it was sent before', async () => {
    const slow = await scriptedSupervisor({ timing: { accept: 4_000 } });
    try {
      const task = await slow.session('twice', 'session/new:stop-reading');
      const same = { operation: task.operation('start-prompt', slow.fence, { prompt: true, life: 29_000 }), lease: task.lease() };
      const text = `say ${'y'.repeat(900_000)}`;
      const prompt = refusal(slow.start(task, text, same));
      await eventuallyAnswers(async () => expect((await slow.status()).activePrompts).toHaveLength(1));
      const repeat = await refusal(slow.start(task, text, same));
      expect(repeat).toMatchObject({
        status: 409,
        code: 'invalid_request',
        classification: { class: 'duplicate', phase: 'recorded' },
      });
      expect(await prompt).toMatchObject({ status: 502 });
      await gone(slow, task);
    } finally {
      await slow.close();
    }
  });

  test('hears before its lease ends that the agent has not taken the prompt', async () => {
    const task = await it.session('unleased', 'session/new:stop-reading');
    const lease = task.lease(1, 6_000);
    const prompt = refusal(it.start(task, `say ${'y'.repeat(900_000)}`, { lease, leaseLife: 6_000 }));
    expect(await prompt).toMatchObject({ status: 502, code: 'session_poisoned' });
    expect(Date.now()).toBeLessThan(Date.parse(lease.expiresAt) + 5_000);
    await gone(it, task);
  });

  test('hears of an agent that never takes the prompt that it was not accepted', async () => {
    const slow = await scriptedSupervisor({ timing: { accept: 1_000 } });
    try {
      const task = await slow.session('deaf', 'session/new:stop-reading');
      const prompt = refusal(slow.start(task, `say ${'y'.repeat(900_000)}`));
      expect(await prompt).toMatchObject({ status: 502, code: 'session_poisoned' });
      await gone(slow, task);
      if (switchesUsers) expect(processesOf({ uid: slow.latestUid() })).toEqual([]);
    } finally {
      await slow.close();
    }
  });

  async function endCode(task: TaskOrders): Promise<string> {
    for (const end = Date.now() + limit(40_000); Date.now() < end;) {
      const ended = it
        .log()
        .split('\n')
        .find((line) => line.includes('prompt ended') && line.includes(task.promptID));
      if (ended !== undefined) return (JSON.parse(ended) as { code?: string }).code ?? '';
      await sleep(50);
    }
    throw new Error(`${task.taskUID} does not end`);
  }
});

describe('a prompt that is sent again', () => {
  test('while it runs, after it ended and after its session is gone has the recorded outcome, and runs once', async () => {
    const task = await it.session('again');
    const operation = task.operation('start-prompt', it.fence, { prompt: true, life: 29_000 });
    const lease = task.lease();
    const same = { operation, lease };
    const running = collect(await it.start(task, 'wait', same));
    expect(await refusal(it.start(task, 'wait', same))).toMatchObject({ status: 200, code: 'already_accepted' });
    expect(await refusal(it.start(task, 'say other', same))).toMatchObject({ status: 409, class: 'digest_conflict' });
    await cancel(task);
    expect((await running).at(-1)?.type).toBe('cancelled');
    await gone(it, task);
    expect(await refusal(it.start(task, 'wait', same))).toMatchObject({
      status: 200,
      code: 'settled',
      classification: { class: 'settled', phase: 'settled', terminalEvent: 'cancelled' },
    });
  });

  test('after it was completed has that outcome, and its session stays as it is', async () => {
    const task = await it.session('completed');
    const same = { operation: task.operation('start-prompt', it.fence, { prompt: true, life: 29_000 }), lease: task.lease() };
    const events = await collect(await it.start(task, 'write .git', same));
    expect(await refusal(it.start(task, 'write .git', same))).toMatchObject({ code: 'settled' });
    await takeDelta(it, task, events);
    expect(await refusal(it.start(task, 'write .git', same))).toMatchObject({
      code: 'settled',
      classification: { terminalEvent: 'completed' },
    });
    expect((await it.status()).sessions).toMatchObject([{ state: 'idle' }]);
    await it.client.deleteSession(task.operation('ds', it.fence), task.runtimeSessionID, 'x');
  });

  test('many times at once is accepted once', async () => {
    const task = await it.session('crowd');
    const same = { operation: task.operation('start-prompt', it.fence, { prompt: true, life: 29_000 }), lease: task.lease() };
    const all = await Promise.allSettled(Array.from({ length: 8 }, () => it.start(task, 'say once', same)));
    const streams = all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    expect(streams).toHaveLength(1);
    const events = await collect(streams[0]!);
    expect(textOf(events)).toBe('once');
    await finish(it, task, events);
  });
});

describe('duplicates and latecomers', () => {
  test('of a cancellation at once are carried out once, and answered alike', async () => {
    const task = await it.session('cancels');
    const events = collect(await it.start(task, 'wait'));
    const operation = task.operation('cancel', it.fence, { prompt: true });
    const order = { reason: 'task_timeout', settlementDeadline: instant(Date.now() + 20_000) } as const;
    const answers = await Promise.all(Array.from({ length: 5 }, () => it.client.cancel(operation, task.runtimeSessionID, order)));
    expect(answers.filter(({ classification }) => classification.class === 'fresh')).toHaveLength(1);
    expect(new Set(answers.map(({ settlement }) => JSON.stringify(settlement))).size).toBe(1);
    expect((await events).filter(({ type }) => type === 'cancelled')).toHaveLength(1);
    await gone(it, task);
  });

  test('of a renewal at once are carried out once, also when the session is gone', async () => {
    const task = await it.session('renewals');
    const events = collect(await it.start(task, 'wait'));
    const lease = task.lease(2);
    const order = {
      runtimeSessionID: task.runtimeSessionID,
      expectedLeaseGeneration: 1,
      lease,
      mcpAuthorization: task.authorization(lease),
    };
    const operation = task.operation('renew', it.fence, { prompt: true, life: 29_000 });
    const answers = await Promise.all(Array.from({ length: 5 }, () => it.client.renewLease(operation, order)));
    expect(answers.map(({ classification }) => classification.class).sort()).toEqual([
      ...Array<string>(4).fill('duplicate'),
      'fresh',
    ]);
    await cancel(task);
    await events;
    await gone(it, task);
    expect(await it.client.renewLease(operation, order)).toMatchObject({ classification: { class: 'duplicate' }, lease });
    const late = it.client.renewLease(task.operation('renew-late', it.fence, { prompt: true, life: 29_000 }), order);
    expect(await refusal(late)).toMatchObject({ status: 410, code: 'settled' });
  });

  test('a late cancellation does not touch the prompt after it', async () => {
    const task = await it.session('continued');
    await takeDelta(it, task, await it.run(task, 'say first'));
    const next: TaskOrders = { ...taskOrders('continued', it.runtime), ...attempt(task, 2) };
    const events = collect(await it.start(next, 'wait'));
    await sleep(200);
    const late = await cancel(task, { verb: 'late' });
    expect(late.settlement).toMatchObject({ terminalEvent: 'completed', outcome: 'succeeded' });
    expect((await it.status()).activePrompts).toMatchObject([{ promptID: next.promptID }]);
    await cancel(next, { verb: 'now' });
    expect((await events).at(-1)?.type).toBe('cancelled');
    await gone(it, task);
    expect(await refusal(cancel(task, { verb: 'later' }))).toMatchObject({ status: 409, code: 'digest_conflict' });
  });

  test('a settlement deadline in a hundred years is waited for no longer than a settlement takes', async () => {
    const task = await it.session('patient');
    const events = collect(await it.start(task, 'wait'));
    const answer = await cancel(task, { wait: 100 * 365 * 86_400_000 });
    expect(answer.settlementProven).toBe(true);
    await events;
    await gone(it, task);
  });

  /** The same session, another attempt. */
  function attempt(task: TaskOrders, number: number): Pick<TaskOrders, 'promptID' | 'operation' | 'authorization'> {
    const promptID = `prompt-${task.taskUID}-${number}`;
    return {
      promptID,
      operation: (verb, fence, options) => ({
        ...task.operation(verb, fence, options),
        taskAttempt: number,
        operationID: `${verb}-${promptID}`,
        ...(options?.prompt ? { promptID } : {}),
      }),
      authorization: (lease) => ({ ...task.authorization(lease), taskAttempt: number, promptID }),
    };
  }
});

describe('an agent that is being cancelled', () => {
  test('and ends instead of stopping is cancelled, with proof', async () => {
    const task = await it.session('ends', 'session/cancel:exit 0');
    const events = collect(await it.start(task, 'wait'));
    await sleep(200);
    expect(await cancel(task)).toMatchObject({ barrierState: 'forced_terminated', settlementProven: true });
    expect((await events).at(-1)).toMatchObject({ type: 'cancelled', payload: { reason: 'task_timeout' } });
    await gone(it, task);
  });
});

describe('a drain', () => {
  const creating = (fresh: ScriptedSupervisor) =>
    eventuallyAnswers(async () => expect((await fresh.status()).sessions).toMatchObject([{ state: 'creating' }]));

  test('while a session is made lets it be made, gives it no prompt and removes it; it is told once', async () => {
    const fresh = await scriptedSupervisor();
    try {
      const making = fresh.session('made', 'session/new:wait-for 6000');
      await creating(fresh);
      const operation = { fence: fresh.fence, operationID: 'drain', expiresAt: instant(Date.now() + 30_000) };
      const [first, second] = [await fresh.client.drain(operation, 'first'), await fresh.client.drain(operation, 'first')];
      const other = await fresh.client.drain({ ...operation, operationID: 'other' }, 'second');
      expect([first.drain, second.drain, other.drain].map(({ reason }) => reason)).toEqual(['first', 'first', 'first']);
      expect(other.drain.requestedAt).toBe(first.drain.requestedAt);
      const task = await making;
      expect(await refusal(fresh.start(task, 'say x'))).toMatchObject({
        code: expect.stringMatching(/rate_limited|invalid_request/),
      });
      await gone(fresh, task);
      expect(fresh.folders()).toEqual([]);
      if (switchesUsers) expect(processesOf({ uid: fresh.latestUid() })).toEqual([]);
    } finally {
      await fresh.close();
    }
  });

  test('an end in the middle of the making of a session leaves no process and no folder', async () => {
    const fresh = await scriptedSupervisor();
    const making = refusal(fresh.session('unmade', 'session/new:mute'));
    await creating(fresh);
    // Its agent begins meanwhile.
    await sleep(500);
    expect(await fresh.supervisor.stop()).toBe(true);
    expect(await making).toBeDefined();
    expect(fresh.folders()).toEqual([]);
    if (switchesUsers) expect(processesOf({ uid: fresh.latestUid() })).toEqual([]);
    await fresh.close();
  });
});
