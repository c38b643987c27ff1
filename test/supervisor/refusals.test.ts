/** What a refused request is told: what is wrong, in words that its client prints as they are. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { instant } from '../../src/lib/instant.js';
import { deltaOrder, taskOrders } from '../support/harness-orders.js';
import { finish, refusal } from '../support/supervisor-calls.js';
import { scriptedSupervisor } from '../support/supervisor.js';
import type { ScriptedSupervisor } from '../support/supervisor.js';

let it: ScriptedSupervisor;
beforeAll(async () => {
  it = await scriptedSupervisor();
});
afterAll(async () => {
  await it.close();
});

const soon = () => instant(Date.now() + 10_000);

test('a session that is not there is not found, and the error of the client says only that', async () => {
  const task = taskOrders('absent', it.runtime);
  const path = `/v2/runtime-sessions/${task.runtimeSessionID}`;
  const calls = {
    [`DELETE ${path}`]: () => it.client.deleteSession(task.operation('ds', it.fence), task.runtimeSessionID, 'test'),
    [`PUT ${path}/prompts/${task.promptID}`]: () => it.start(task, 'say x'),
    [`PUT ${path}/prompts/${task.promptID}/cancel`]: () =>
      it.client.cancel(task.operation('cancel', it.fence, { prompt: true }), task.runtimeSessionID, {
        reason: 'task_timeout',
        settlementDeadline: soon(),
      }),
  };
  for (const [at, call] of Object.entries(calls))
    await expect(call()).rejects.toThrow(new Error(`${at}: invalid_request: session not found`));
});

test('a request about another prompt, an operation sent before and a fence of another life say so', async () => {
  const task = await it.session('repeats');
  const events = await it.run(task, 'say x');
  const other = { ...task, promptID: 'another' };
  const end = { ...events.at(-1)!, identity: { ...events.at(-1)!.identity, timestamp: instant(0) } };
  const operation = task.operation('workspace-delta', it.fence, { prompt: true });
  expect(await refusal(it.client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(other, end)))).toMatchObject({
    message: 'the request is about another prompt than the one that was settled last, or another settlement of it',
  });
  expect(await refusal(it.start(task, 'say y'))).toMatchObject({
    message: 'the operation was sent before, with another body',
  });
  const foreign = task.operation('create-session', { ...it.fence, runtimePoolGeneration: 99 });
  expect(await refusal(it.client.createSession(foreign, task.session))).toMatchObject({
    message: 'the fence is for another runtime pool generation',
  });
  await finish(it, task, events);
});

test('a request that cannot be decoded is told the member, what was found and what is allowed, but no text of it', async () => {
  const task = taskOrders('wrong', it.runtime);
  const order = (change: object) => ({ ...task.session, ...change }) as typeof task.session;
  const refused = async (change: object) =>
    refusal(it.client.createSession(task.operation('create-session', it.fence), order(change)));
  expect(await refused({ extra: 'secret' })).toMatchObject({ message: 'message: extra: unknown member' });
  expect(await refused({ profile: 'secret' })).toMatchObject({
    message: 'message: profile: found a text of 6 bytes, allowed: an object',
  });
  expect(await refused({ agentConfiguration: { ...it.runtime.configuration, maxTurns: 0 } })).toMatchObject({
    message: 'message: agentConfiguration.maxTurns: found 0, allowed: a whole number from 1 to 1000',
  });
});

test('every refusal in the source says what is wrong, not what would be right', () => {
  const folder = new URL('../../src/supervisor/', import.meta.url);
  const texts = readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => [...readFileSync(new URL(name, folder), 'utf8').matchAll(refused)].map(([, text = '']) => text));
  expect(texts.length).toBeGreaterThan(40);
  expect(
    texts.filter((text) => /^(?:an?|at most|at least|another) /.test(text) && !/ (?:is|are|was|runs?|ran) ?/.test(text)),
  ).toEqual([]);
});

/** The text of a refusal that is written as one. */
const refused = /(?:new Refusal\(\s*'\w+',|\b(?:busy|invalid|conflict)\()\s*['`]([^'`]+)['`]/g;
