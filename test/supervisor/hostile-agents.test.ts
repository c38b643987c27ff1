/** Agents that do what no agent should, as real processes: each ends in an outcome of the contract, and costs bounded memory. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { instant } from '../../src/lib/instant.js';
import { startTime } from '../../src/supervisor/proc.js';
import { processesOf } from '../../src/supervisor/processes.js';
import { eventually, eventuallyAnswers } from '../support/eventually.js';
import { collect, taskOrders } from '../support/harness-orders.js';
import { finish, gone, refusal, takeDelta, textOf } from '../support/supervisor-calls.js';
import { scriptedSupervisor, switchesUsers, testCredentials } from '../support/supervisor.js';
import type { ScriptedSupervisor } from '../support/supervisor.js';

let it: ScriptedSupervisor;
beforeAll(async () => {
  it = await scriptedSupervisor({ timing: { cancelGrace: 500 } });
});
afterAll(async () => {
  await it.close();
});

const asRoot = switchesUsers ? test : test.skip;
const mebibyte = 1024 * 1024;
const processesNow = () => (switchesUsers ? processesOf({ uid: it.latestUid() }) : []);

/** After whatever happened: the instance serves, and a session of somebody else works. */
async function expectServing(name: string): Promise<void> {
  const task = await it.session(name);
  const events = await it.run(task, 'say still here');
  expect(textOf(events)).toBe('still here');
  const { lifecycle, drain } = await it.status();
  expect([lifecycle, drain.requested]).toEqual(['ready', false]);
  await finish(it, task, events);
}

/** Runs a prompt to its end, and waits until its session is gone. */
async function endOf(name: string, order: string) {
  const task = await it.session(name);
  const end = (await it.run(task, order)).at(-1)!;
  await gone(it, task);
  return end;
}

/** Of all sessions that there were. */
function expectNothingLeft(): void {
  expect(it.folders()).toEqual([]);
  if (!switchesUsers) return;
  const users = Array.from({ length: it.latestUid() - it.firstUid + 1 }, (_, i) => it.firstUid + i);
  expect(users.flatMap((uid) => processesOf({ uid }))).toEqual([]);
}

const rpcError = (code: number, message: string) => JSON.stringify({ jsonrpc: '2.0', id: 2, error: { code, message } });
const nameOf = (order: string) => order.replaceAll(/[^\w]/g, '').slice(0, 40);

/** What comes of each case, by its second member: some at a time, before the tests that look at them. */
function atOnce<C extends readonly [string, string, ...string[]], T>(
  cases: readonly C[],
  run: (one: C) => Promise<T>,
  width = 4,
) {
  const results = new Map<string, T>();
  beforeAll(async () => {
    for (let i = 0; i < cases.length; i += width)
      await Promise.all(cases.slice(i, i + width).map(async (one) => results.set(one[1], await run(one))));
  }, 180_000);
  return () => results;
}

describe('before there is a session', () => {
  const failed = { status: 500, code: 'session_poisoned', message: 'creation failed: provider adapter initialization' };

  const plans = [
    ['ends before it says anything', 'start:exit 0'],
    ['ends with a code', 'start:exit 7'],
    ['is killed when it is greeted', 'initialize:kill SIGKILL'],
    ['aborts while its session is made', 'session/new:kill SIGABRT'],
    ['ends while its session is made, and leaves its pipes to a child', 'session/new:leave-pipes'],
    ['closes its output', 'initialize:close-stdout'],
    ['says more lines that are no messages than are skipped', 'initialize:garbage 101'],
    ['answers with a number', 'initialize:no-object'],
    ['speaks another version of the protocol', 'initialize:raw {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":99}}'],
    ['gives its session no name', 'session/new:raw {"jsonrpc":"2.0","id":2,"result":{"sessionId":""}}'],
    ['writes one line that does not end', 'initialize:endless'],
  ] as const;
  // A session that begins between two failures and two others keeps the instance.
  const failing = async ([, plan]: readonly [string, string]) => {
    const answer = await refusal(it.session(nameOf(plan), plan));
    const task = await it.session(`after-${nameOf(plan)}`);
    await it.client.deleteSession(task.operation('ds', it.fence), task.runtimeSessionID, 'test');
    return answer;
  };
  const refused = atOnce(plans, failing, 2);

  test.each(plans)('an agent that %s makes no session, once and for all', async (_, plan) => {
    expect(refused().get(plan)).toMatchObject({ ...failed, message: expect.stringContaining(failed.message) });
    const task = taskOrders(nameOf(plan), it.runtime);
    const again = it.client.createSession(task.operation('another', it.fence), task.session);
    expect(await refusal(again)).toMatchObject({ status: 410, code: 'stale_fence' });
  });

  test('nothing of them is left', () => {
    expectNothingLeft();
  });

  test('the log says how it ended', () => {
    for (const how of ['exit code 7', 'ended by SIGKILL', 'ended by SIGABRT']) expect(it.log()).toContain(how);
  });

  test('an agent that does not answer has its time, and not more', async () => {
    const short = await scriptedSupervisor({ timing: { initialize: 4_000 } });
    try {
      const steps = ['initialize:mute', 'session/new:mute', 'initialize:endless-unknown', 'session/new:endless-stderr'];
      const made = await Promise.all(steps.map((plan, i) => refusal(short.session(`mute-${i}`, plan))));
      expect(made).toEqual(steps.map(() => expect.objectContaining(failed)));
      expect(short.folders()).toEqual([]);
      expect((await short.status()).sessionIdentityCapacity).toMatchObject({ total: 100, remaining: 96 });
    } finally {
      await short.close();
    }
  });

  test.each([
    ['a line of text', 'initialize:garbage'],
    ['as many lines of text as are skipped', 'initialize:garbage 100'],
    ['what is no text', 'initialize:binary'],
    ['a batch', 'initialize:array'],
    ['an answer of another version of JSON-RPC', 'initialize:version'],
    ['a request under an id of 200 000 nested lists', 'initialize:deep-id'],
  ])('%s on the output of an agent is skipped, and the session works', async (_, plan) => {
    const task = await it.session(nameOf(plan), plan);
    const events = await it.run(task, 'say fine');
    expect(textOf(events)).toBe('fine');
    await finish(it, task, events);
  });

  test('one line too many ends the agent, and its first line is quoted', async () => {
    const refused = await refusal(it.session('too-many-lines', 'start:garbage 101'));
    expect(refused).toMatchObject({ message: expect.stringContaining('this is no message, 0') });
  });

  const another = (models: object) =>
    `session/new:raw ${JSON.stringify({ jsonrpc: '2.0', id: 2, result: { sessionId: 's', ...models } })}`;
  const forGood = [
    [
      'asks for a login by the code of ACP',
      `session/new:raw ${rpcError(-32000, 'Authentication required')}`,
      'Authentication required',
    ],
    ['asks for a login in words', `session/new:raw ${rpcError(-32603, 'Please log in first')}`, 'Please log in first'],
    ['reports another model', another({ models: { currentModelId: 'gpt-4' } }), 'current model: found "gpt-4", allowed: gpt-5.5'],
    [
      'reports another model as an option',
      another({ configOptions: [{ id: 'm', category: 'model', type: 'select', currentValue: 'gpt-4' }] }),
      'current model: found "gpt-4", allowed: gpt-5.5',
    ],
  ] as const;

  test('an agent that says it cannot serve its session is refused for good, in its words, and the instance stays', async () => {
    const own = await scriptedSupervisor();
    try {
      for (const [what, plan, says] of forGood) {
        const task = own.session(what.replaceAll(' ', '-'), plan);
        await expect(task).rejects.toMatchObject({
          response: { code: 'session_poisoned', retryable: false, message: expect.stringContaining(says) },
        });
      }
      expect(await own.status()).toMatchObject({ lifecycle: 'ready', drain: { requested: false } });
      expect(textOf(await own.run(await own.session('after-all'), 'say fine'))).toBe('fine');
    } finally {
      await own.close();
    }
  });

  test('an agent that reports the model of its Agent, or none, is accepted', async () => {
    for (const models of [
      { models: { currentModelId: 'gpt-5.5' } },
      { models: null, configOptions: [null, { category: 'mode' }] },
    ]) {
      const task = await it.session(`model-${JSON.stringify(models).length}`, another(models));
      await finish(it, task, await it.run(task, 'say fine'));
    }
  });

  test('an error that tells the credential of the session is logged without it', async () => {
    const plan = 'session/new:refuse-with-secret';
    await expect(it.session('secret-creation', plan)).rejects.toThrow('creation failed');
    expect(it.log()).toContain('the key [redacted] was refused');
  });

  test('nothing of that concerns anybody else', () => expectServing('after-creation'));

  test('three sessions in a row that cannot be made drain the instance, and those that run are finished', async () => {
    const failing = await scriptedSupervisor();
    try {
      const task = await failing.session('runs');
      for (const name of ['one', 'two']) expect(await refusal(failing.session(name, 'start:exit 1'))).toMatchObject(failed);
      expect((await failing.status()).drain.requested).toBe(false);
      const running = await failing.start(task, 'wait-for 1500');
      expect(await refusal(failing.session('three', 'start:exit 1'))).toMatchObject(failed);
      expect(await failing.status()).toMatchObject({ lifecycle: 'draining', drain: { reason: 'session_creation_failed' } });
      expect(await refusal(failing.session('four'))).toMatchObject({ status: 429, code: 'rate_limited' });
      const events = await collect(running);
      expect(events.at(-1)?.type).toBe('completed');
      expect(await takeDelta(failing, task, events)).toBe('no_change');
      await gone(failing, task);
    } finally {
      await failing.close();
    }
  });
});

describe('with a prompt', () => {
  const orders = [
    ['ends with a code', 'exit 9', 'exit code 9'],
    ['is killed', 'kill SIGKILL', 'ended by SIGKILL'],
    ['dies of a fault', 'kill SIGSEGV', 'ended by SIGSEGV'],
    ['ends and leaves its pipes to a child', 'leave-pipes', 'exit code 3'],
    ['closes its output and stays', 'close-stdout', 'pipes'],
    ['says more lines that are no messages than are skipped', 'garbage 101', 'this is no message, 0'],
    ['writes one line that does not end', 'endless', 'it writes a line without end'],
    ['asks without reading its answers', 'endless-questions', 'does not read its messages'],
  ] as const;
  const ends = atOnce(orders, ([, order]) => endOf(nameOf(order), order));

  test.each(orders)('an agent that %s leaves an outcome that nobody knows', (_, order, says) => {
    const end = ends().get(order);
    expect(end).toMatchObject({ type: 'outcome_unknown', payload: { code: 'settlement_unproven', retryable: false } });
    expect(JSON.stringify(end?.payload)).toContain(says);
  });

  test('nothing of them is left', () => {
    expectNothingLeft();
  });

  test.each(['binary', 'array', 'deep-id', 'version', 'garbage 100', 'raw {"jsonrpc":"2.0","id":3}'])(
    'an agent that writes %s into a prompt is not stopped by it, and it is no answer',
    async (order) => {
      const task = await it.session(`stray-${nameOf(order)}`);
      const events = await it.run(task, order);
      expect(events.at(-1)).toMatchObject({
        type: 'completed',
        payload: { result: { usage: { inputTokens: 3 } } },
      });
      await finish(it, task, events);
    },
  );

  test('lines that are no messages are logged, redacted and cut, and are in no answer', async () => {
    const task = await it.session('log-lines', 'never:mute');
    const events = await it.run(task, 'log-lines');
    expect(textOf(events)).toBe('after the lines');
    const logged = it
      .log()
      .split('\n')
      .filter((line) => line.includes('line of the agent skipped') && line.includes(task.runtimeSessionID))
      .map((line) => (JSON.parse(line) as { readonly line: string }).line);
    expect(logged).toEqual([
      'Welcome to the agent, [redacted]',
      '42',
      expect.stringMatching(/^\{"id":3,"level":"info"\}$/),
      '{"jsonrpc":"2.0","id":3}',
      expect.stringMatching(/^(long )+.*…$/),
    ]);
    expect(Buffer.byteLength(logged.at(-1)!)).toBeLessThanOrEqual(200);
    await finish(it, task, events);
  });

  test('what an agent says after its turn is in no answer, is counted, and the next prompt is clean', async () => {
    const task = await it.session('says-after');
    const events = await it.run(task, 'say-after LATE');
    expect(textOf(events)).not.toContain('LATE');
    expect(JSON.stringify(events)).not.toContain('LATE');
    await takeDelta(it, task, events);
    await eventually(() => it.log().split('updates without a prompt dropped').length === 2);
    await it.client.deleteSession(task.operation('ds', it.fence), task.runtimeSessionID, 'test');
  });

  test.each([
    ['a stop reason that is a name of JavaScript', 'stop constructor', 'unknown_stop_reason'],
    ['an answer that is no object', 'no-object', 'unknown_stop_reason'],
  ])('%s is one that nobody knows', async (_, order, code) => {
    expect(await endOf(`reason-${order.replaceAll(' ', '-')}`, order)).toMatchObject({ type: 'failed', payload: { code } });
  });

  test('an agent that is stopped by somebody is ended by the cancellation', async () => {
    const task = await it.session('stopped');
    const events = collect(await it.start(task, 'kill SIGSTOP'));
    await sleep(200);
    const answer = await it.client.cancel(task.operation('cancel', it.fence, { prompt: true }), task.runtimeSessionID, {
      reason: 'task_timeout',
      settlementDeadline: instant(Date.now() + 20_000),
    });
    expect(answer).toMatchObject({ barrierState: 'forced_terminated', settlementProven: true, liveDescendantCount: 0 });
    expect((await events).at(-1)).toMatchObject({ type: 'cancelled', payload: { reason: 'task_timeout' } });
    await gone(it, task);
  });

  asRoot(
    'an agent that is killed between two prompts takes its session and all its processes with it, and nobody else',
    async () => {
      const task = await it.session('between');
      expect(await takeDelta(it, task, await it.run(task, 'daemon'))).toBe('no_change');
      const before = processesNow();
      expect(before.length).toBeGreaterThan(1);
      // The agent began first; its pid is the smallest only until pids begin anew.
      const begun = new Map(before.map(({ pid }) => [Number(startTime(pid) ?? Infinity), pid]));
      process.kill(begun.get(Math.min(...begun.keys()))!, 'SIGKILL');
      await gone(it, task);
      expect(processesNow()).toEqual([]);
      await expectServing('after-between');
    },
  );

  test('an error that tells the credential of the session is told without it', async () => {
    const task = await it.session('secret', 'never:mute');
    const end = (await it.run(task, 'tell-secret')).at(-1)!;
    expect(end).toMatchObject({ type: 'failed', payload: { code: 'agent_error' } });
    expect(JSON.stringify(end)).toContain('the key [redacted] was refused');
    await gone(it, task);
  });

  test('nothing of that concerns anybody else', () => expectServing('after-crashes'));
});

describe('an agent that says too much', () => {
  const answers = [
    ['one piece', 'long 3000000'],
    ['a piece that a line still holds', 'long 1500000'],
    ['more pieces than are kept', 'long-pieces 6000000'],
    ['characters that are long on the wire', 'control 400000'],
  ] as const;
  const ends = atOnce(answers, ([, order]) => endOf(nameOf(order), order));

  test.each(answers)('an answer beyond the limit of a result, in %s, is a failure with its name', (_, order) => {
    expect(ends().get(order)).toMatchObject({ type: 'failed', payload: { code: 'terminal_result_too_large', retryable: false } });
  });

  test('an answer just below the limit arrives as a whole', async () => {
    const task = await it.session('largest');
    const size = mebibyte - 8192;
    const events = await it.run(task, `long ${size}`);
    expect(textOf(events)).toBe('l'.repeat(size));
    const said = events.map((event) => (event.type === 'update' ? (event.payload.assistantMessage?.text ?? '') : '')).join('');
    expect(said).toHaveLength(size);
    await finish(it, task, events);
  });

  test('what a tool printed is left out where it is too much, and the answer is not lost', async () => {
    const task = await it.session('tool');
    const events = await it.run(task, 'tool 3000000');
    expect(textOf(events)).toBe('done');
    expect(events.map((event) => (event.type === 'update' ? event.payload.kind : event.type))).toEqual([
      'accepted',
      'tool_call',
      'diagnostic',
      'assistant_message_chunk',
      'completed',
    ]);
    await finish(it, task, events);
    const other = await it.session('tool-control');
    const control = await it.run(other, 'tool-control');
    expect(textOf(control)).toBe('done');
    expect(control[1]).toMatchObject({ payload: { toolCall: { toolCallID: 't', title: 'binary', contentOmitted: true } } });
    await finish(it, other, control);
  });

  test('text without an end is a failure, and what is said after it is not kept', async () => {
    const before = process.memoryUsage().rss;
    const end = await endOf('endless-chunks', 'endless-chunks');
    expect(end).toMatchObject({
      type: 'failed',
      payload: { code: expect.stringMatching(/terminal_result_too_large|event_buffer_overflow|update_rate_exceeded/) },
    });
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * mebibyte);
  });

  test('output without an end that nobody reads, of three agents at once, costs no memory, and others are served meanwhile', async () => {
    const before = process.memoryUsage().rss;
    const running = [];
    for (const order of ['endless-thoughts', 'endless-stderr', 'endless-drip']) {
      const task = await it.session(order);
      running.push({ task, events: collect(await it.start(task, order)) });
    }
    await expectServing('beside-endless');
    await sleep(1500);
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * mebibyte);
    for (const { task, events } of running) {
      const answer = await it.client.cancel(task.operation('cancel', it.fence, { prompt: true }), task.runtimeSessionID, {
        reason: 'task_timeout',
        settlementDeadline: instant(Date.now() + 20_000),
      });
      expect(answer.settlementProven).toBe(true);
      expect((await events).at(-1)?.type).toBe('cancelled');
      await gone(it, task);
    }
  });

  test('a flood without a prompt is slowed down, and over with its session', async () => {
    const task = await it.session('flood-later');
    const events = await it.run(task, 'flood-later');
    await sleep(500);
    await expectServing('beside-flood');
    await finish(it, task, events);
    expect(processesNow()).toEqual([]);
  });
});

describe('an agent that is asked for nothing', () => {
  asRoot('is told that its request is cancelled, whatever the policy allows', async () => {
    const task = await it.session('ask-later');
    const folder = mkdtempSync(path.join(tmpdir(), 'asked-'));
    chmodSync(folder, 0o777);
    const file = path.join(folder, 'answer');
    const events = await it.run(task, `ask-later ${file}`);
    const answer = await eventuallyAnswers(() => JSON.parse(readFileSync(file, 'utf8')) as unknown);
    expect(answer).toEqual({ outcome: { outcome: 'cancelled' } });
    rmSync(folder, { recursive: true });
    await finish(it, task, events);
  });

  test('a kind of tool that is a name of JavaScript is one that nobody knows', async () => {
    const reading = await scriptedSupervisor({ policy: { allowed: ['Read'], disallowed: null, allowBash: false } });
    try {
      for (const kind of ['constructor', '__proto__', 'toString'])
        expect(textOf(await reading.run(await reading.session(`kind-${kind}`), `ask ${kind}`))).toContain('"no"');
    } finally {
      await reading.close();
    }
  });
});

describe('processes', () => {
  const cases: readonly (readonly [string, string, number])[] = [
    ['one that ignores being told to end', 'fork', 2],
    ['one that has forked twice into a session of its own', 'daemon', 2],
    ['many that begin faster than they end', 'swarm', 10],
  ];
  if (switchesUsers)
    test.each(cases)('of a session end with it: %s', async (_, order, least) => {
      const task = await it.session(`processes-${order}`);
      const uid = it.latestUid();
      const events = await it.run(task, order);
      await eventually(() => processesOf({ uid }).length >= least);
      await finish(it, task, events);
      expect(processesOf({ uid })).toEqual([]);
      await expectServing(`after-${order}`);
    });

  const compiler = ['/usr/bin/cc', '/usr/bin/gcc'].find((file) => existsSync(file));
  const withCompiler = switchesUsers && compiler !== undefined ? test : test.skip;
  withCompiler('a process whose first thread has died is alive, and is ended', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'program-'));
    chmodSync(folder, 0o755);
    const source = path.join(folder, 'a.c');
    writeFileSync(
      source,
      `#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *run(void *x) { for (;;) sleep(1); return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); syscall(SYS_exit, 0); }
`,
    );
    const file = path.join(folder, 'headless');
    expect(spawnSync(compiler ?? '', ['-pthread', '-o', file, source]).status).toBe(0);
    chmodSync(file, 0o755);
    const task = await it.session('headless');
    const uid = it.latestUid();
    const events = await it.run(task, `program ${file}`);
    expect(processesOf({ uid }).length).toBe(2);
    await finish(it, task, events);
    expect(processesOf({ uid })).toEqual([]);
    rmSync(folder, { recursive: true });
  });
});

describe('what a session can reach', () => {
  asRoot('is its own folder: no other session, no secret of the supervisor, no process, no right', async () => {
    const other = await it.session('neighbour');
    const [neighbour = ''] = it.folders();
    await it.run(other, 'write kept.txt');
    const task = await it.session('prober');
    const attempts: readonly (readonly [string, string, unknown])[] = [
      ['list', it.baseDir, 'EACCES'],
      ['list', path.join(it.baseDir, neighbour), 'EACCES'],
      ['read', path.join(it.baseDir, neighbour, 'workspace/kept.txt'), 'EACCES'],
      ['write', path.join(it.baseDir, 'mine'), 'EACCES'],
      ['read', path.join(it.baseDir, '.orka-session-identity-high-water'), 'EACCES'],
      ['write', '/etc/orka-test', 'EACCES'],
      ['read', `/proc/${process.pid}/environ`, 'EACCES'],
      ['read', `/proc/${process.pid}/mem`, 'EACCES'],
      ['list', `/proc/${process.pid}/fd`, 'EACCES'],
      ['kill', String(process.pid), 'EPERM'],
      ['setuid', '0', 'EPERM'],
      ['get', `${it.url}/v2/health`, 200],
      ['get', `${it.url}/v2/status`, 401],
      ['get', `${it.url}/v2/credential-bootstrap`, 404],
    ];
    const order = JSON.stringify(attempts.map(([verb, target]) => [verb, target]));
    const events = await it.run(task, `try ${order}`);
    const results = JSON.parse(textOf(events) ?? '[]') as unknown[];
    await finish(it, task, events);
    expect(attempts.map(([verb, target], i) => [verb, target, results[i]])).toEqual(attempts);
  });

  asRoot('has none of the supervisor\u2019s credentials in any environment of its processes', async () => {
    const task = await it.session('environment');
    const events = await it.run(task, 'fork');
    const environments = processesNow().map(({ pid }) => readFileSync(`/proc/${pid}/environ`, 'utf8'));
    expect(environments.length).toBeGreaterThan(1);
    for (const secret of Object.values(testCredentials))
      for (const environment of environments) expect(environment).not.toContain(secret);
    await finish(it, task, events);
  });

  asRoot('does not outlast it: what it left where everybody may write is removed', async () => {
    const [task, other] = [await it.session('strays'), await it.session('strays-2')];
    const stray = `/dev/shm/stray-${it.latestUid()}`;
    const [events, left] = [await it.run(task, 'say x'), await it.run(other, `write ${stray}`)];
    await finish(it, task, events);
    expect(existsSync(stray)).toBe(true);
    await finish(it, other, left);
    expect(existsSync(stray)).toBe(false);
  });

  test('may be a tree deeper than any path; it is removed, and the instance stays', async () => {
    const task = await it.session('deep');
    const before = it.folders().length;
    await finish(it, task, await it.run(task, 'deep 200'));
    expect(it.folders()).toHaveLength(before - 1);
    await expectServing('after-deep');
  });
});

afterEach(() => {
  expect(it.log()).not.toContain('request failed');
});
