/** The process that an agent cannot work without: its loss ends the session, and nothing else below the agent does. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startTime } from '../../src/supervisor/proc.js';
import { isRunning, processesOf } from '../../src/supervisor/processes.js';
import { finish, gone, refusal, textOf } from '../support/supervisor-calls.js';
import { scriptedSupervisor, switchesUsers } from '../support/supervisor.js';
import type { ScriptedSupervisor } from '../support/supervisor.js';

let it: ScriptedSupervisor;
beforeAll(async () => {
  it = await scriptedSupervisor({ worker: 'codex' });
});
afterAll(async () => {
  await it.close();
});

const asRoot = switchesUsers ? test : test.skip;
const session = (name: string) => it.session(name, 'start:worker');

describe('the loss of the worker of an agent', () => {
  test.each([
    ['kill-worker SIGKILL', 'its process codex was ended by SIGKILL'],
    ['kill-worker SIGTERM', 'its process codex was ended by SIGTERM'],
    ['end-worker 7', 'its process codex ended with exit code 7'],
    ['lose-worker', 'its process codex has ended'],
  ])('by %s ends its prompt, which says: %s', async (order, says) => {
    const task = await session(`lost-${order.replaceAll(/\W/g, '')}`);
    const end = (await it.run(task, order)).at(-1);
    expect(end).toMatchObject({ type: 'outcome_unknown', payload: { message: expect.stringContaining(says) } });
    await gone(it, task);
    expect((await it.status()).lifecycle).toBe('ready');
  });

  asRoot('while no prompt runs ends the session', async () => {
    const task = await session('lost-idle');
    const worker = processesOf({ uid: it.latestUid() }).find(({ name }) => name === 'codex');
    process.kill(worker?.pid ?? 0, 'SIGKILL');
    await gone(it, task);
  });
});

test.each([
  ['other-worker', 'the loss of another process of the same name'],
  ['deny-worker', 'a report of the agent about a worker that runs'],
  ['sh sleep 0.5; kill -9 $$', 'the loss of a command of a tool'],
])('%s: %s ends nothing', async (order) => {
  const task = await session(`kept-${order.replaceAll(/\W/g, '')}`);
  const events = await it.run(task, order);
  expect(events.at(-1)?.type).toBe('completed');
  await finish(it, task, events);
});

test('an agent whose worker is not there becomes no session, and the log names the worker', async () => {
  expect(await refusal(it.session('no-worker'))).toMatchObject({ code: 'session_poisoned' });
  expect(it.log()).toContain('no process codex runs below the agent');
});

test("two sessions do not lose each other's workers", async () => {
  const [one, other] = [await session('one'), await session('other')];
  await it.run(one, 'kill-worker SIGKILL');
  const events = await it.run(other, 'say still here');
  expect(textOf(events)).toBe('still here');
  await finish(it, other, events);
});

test('a process that got the pid of one that ended is another process', () => {
  const started = startTime(process.pid) ?? '';
  expect(isRunning({ pid: process.pid, started })).toBe(true);
  expect(isRunning({ pid: process.pid, started: `${Number(started) - 1}` })).toBe(false);
});
