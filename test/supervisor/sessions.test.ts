import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { signOperation, signStatus } from '../../src/harness/capability.js';
import { instant } from '../../src/lib/instant.js';
import type { CancelReason } from '../../src/harness/prompts.js';
import { sealRequest } from '../../src/harness/metadata.js';
import { processesOf } from '../../src/supervisor/processes.js';
import { eventually } from '../support/eventually.js';
import { collect, deltaOrder, taskOrders } from '../support/harness-orders.js';
import type { TaskOrders } from '../support/harness-orders.js';
import { gone, refusal, textOf } from '../support/supervisor-calls.js';
import { scriptedSupervisor, switchesUsers, testCredentials } from '../support/supervisor.js';
import type { ScriptedSupervisor } from '../support/supervisor.js';

let it: ScriptedSupervisor;
beforeAll(async () => {
  it = await scriptedSupervisor();
});
afterAll(async () => {
  await it.close();
});

const limits = { maxBytes: 1_000_000, maxEntries: 1000 };

const remove = (task: TaskOrders) => it.client.deleteSession(task.operation('ds', it.fence), task.runtimeSessionID, 'test');

describe('who is let in', () => {
  const raw = (
    path: string,
    options: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string },
  ) =>
    new Promise<{ readonly status: number; readonly code: unknown }>((resolve, reject) => {
      const outgoing = request(
        `${it.url}${path}`,
        { method: options.method ?? 'GET', headers: options.headers ?? {} },
        (answer) => {
          let text = '';
          answer.on('data', (part: Buffer) => (text += part.toString()));
          answer.on('end', () => resolve({ status: answer.statusCode ?? 0, code: (JSON.parse(text) as { code?: string }).code }));
        },
      );
      outgoing.on('error', reject);
      if (options.body === undefined) outgoing.flushHeaders();
      else outgoing.end(options.body);
      if (options.method === undefined) outgoing.end();
    });
  const status = (headers: Record<string, string>) => raw('/v2/status', { headers });
  const bearer = { authorization: `Bearer ${testCredentials.controllerToken}` };
  const token = (
    secret = testCredentials.capabilitySecret,
    instance = it.fence.runtimeInstanceID,
    profile: string = it.runtime.profileDigest,
  ) =>
    signStatus(
      secret,
      { runtimeProfileDigest: profile as `sha256:${string}`, runtimeInstanceID: instance },
      { now: instant(Date.now()) },
    );

  test('no bearer, another one, a bare token and another scheme are unauthenticated', async () => {
    const capability = { 'x-orka-operation-capability': token() };
    const wrong = [undefined, 'Bearer x', testCredentials.controllerToken, `Basic ${testCredentials.controllerToken}`];
    for (const authorization of wrong)
      expect(await status({ ...capability, ...(authorization === undefined ? {} : { authorization }) })).toEqual({
        status: 401,
        code: 'unauthenticated',
      });
  });

  test('a missing, foreign, misdirected or repeated capability is forbidden', async () => {
    const forbidden = { status: 403, code: 'forbidden' };
    const header = (value: string) => ({ ...bearer, 'x-orka-operation-capability': value });
    expect(await status(bearer)).toEqual(forbidden);
    expect(await status(header(token('x'.repeat(43))))).toEqual(forbidden);
    expect(await status(header(token(undefined, 'another-instance')))).toEqual(forbidden);
    expect(await status(header(token(undefined, undefined, `sha256:${'0'.repeat(64)}`)))).toEqual(forbidden);
    const once = token();
    expect((await status(header(once))).status).toBe(200);
    expect(await status(header(once))).toEqual(forbidden);
  });

  test('a stranger is refused before the body that it announces has come', async () => {
    const answer = await raw('/v2/drain', { method: 'PUT', headers: { 'content-length': '1000' } });
    expect(answer).toEqual({ status: 401, code: 'unauthenticated' });
  });

  test('a body that does not have its digest, or an unknown member, changes nothing', async () => {
    const operation = { fence: it.fence, operationID: 'runtime-pool-drain-2', expiresAt: instant(Date.now() + 30_000) };
    const { body, metadata } = sealRequest(operation, { reason: 'x' });
    const headers = {
      ...bearer,
      'x-orka-operation-capability': signOperation(testCredentials.capabilitySecret, metadata, instant(Date.now())),
    };
    for (const changed of [body.replace('"x"', '"y"'), body.replace('"reason"', '"raeson"'), `${body}{}`])
      expect(await raw('/v2/drain', { method: 'PUT', headers, body: changed })).toEqual({ status: 400, code: 'invalid_request' });
    expect((await it.status()).drain.requested).toBe(false);
  });

  test('a capability that this pool did not sign is refused before the body is decoded, a good one after it', async () => {
    const operation = { fence: it.fence, operationID: 'runtime-pool-drain-2', expiresAt: instant(Date.now() + 30_000) };
    const { metadata } = sealRequest(operation, { reason: 'x' });
    const signed = (secret: string) => signOperation(secret, metadata, instant(Date.now()));
    const drain = (capability: string, body: string) =>
      raw('/v2/drain', { method: 'PUT', headers: { ...bearer, 'x-orka-operation-capability': capability }, body });
    const forbidden = { status: 403, code: 'forbidden' };
    for (const capability of ['x', signed('x'.repeat(43)), token()]) expect(await drain(capability, '{')).toEqual(forbidden);
    expect(await drain(signed(testCredentials.capabilitySecret), '{')).toEqual({ status: 400, code: 'invalid_request' });
  });

  test('a body that is too long is an invalid request', async () => {
    const operation = { fence: it.fence, operationID: 'runtime-pool-drain-2', expiresAt: instant(Date.now() + 30_000) };
    const { metadata } = sealRequest(operation, { reason: 'x' });
    const headers = {
      ...bearer,
      'x-orka-operation-capability': signOperation(testCredentials.capabilitySecret, metadata, instant(Date.now())),
      'content-length': String(it.limits.maxRequestBytes + 1),
    };
    expect(await raw('/v2/drain', { method: 'PUT', headers })).toEqual({ status: 400, code: 'invalid_request' });
  });

  test('another life of the pool is told which component differs', async () => {
    const task = taskOrders('fence', it.runtime);
    const call = it.client.createSession(task.operation('create-session', { ...it.fence, controllerEpoch: 4 }), task.session);
    await expect(call).rejects.toMatchObject({
      status: 410,
      response: { code: 'stale_fence', classification: { fenceMismatch: 'controller_epoch' } },
    });
  });

  test('what this version does not have is refused by name', async () => {
    const task = taskOrders('unavailable', it.runtime);
    const create = (change: object) =>
      it.client.createSession(task.operation('create-session', it.fence), { ...task.session, ...change });
    await expect(create({ workspace: { ...task.session.workspace, intent: 'write' } })).rejects.toThrow('intent');
    await expect(create({ bootstrap: { messageCount: 1 } })).rejects.toThrow('session reuse');
    const baseline = { repositoryIdentity: 'https://example.org/a', revision: 'main', treeDigest: `sha256:${'0'.repeat(64)}` };
    await expect(create({ workspace: { intent: 'read', baseline } })).rejects.toThrow('empty workspace');
    expect(it.folders()).toEqual([]);
  });
});

describe('one prompt', () => {
  test('becomes events, ends once, and leaves the session idle after its delta', async () => {
    const task = await it.session('happy');
    const events = await it.run(task, 'say hello');
    expect(events.map(({ type }) => type)).toEqual(['accepted', 'update', 'completed']);
    expect(textOf(events)).toBe('hello');
    expect(events.at(-1)).toMatchObject({ payload: { result: { usage: { inputTokens: 3, outputTokens: 4 } } } });
    const repeat = await refusal(it.start(task, 'say hello').then(collect));
    expect(repeat).toMatchObject({ code: expect.stringMatching(/digest_conflict|settled/) });
    const { delta } = await it.client.workspaceDelta(
      task.operation('workspace-delta', it.fence, { prompt: true }),
      task.runtimeSessionID,
      deltaOrder(task, events.at(-1)!, limits),
    );
    expect(delta.state).toBe('no_change');
    expect((await it.status()).sessions).toMatchObject([{ state: 'idle' }]);
    await remove(task);
  });

  test('is refused as invalid with the authorization of another one, and runs with its own', async () => {
    const task = await it.session('foreign');
    const lease = task.lease();
    const grant = task.authorization(lease);
    const foreign = [
      { promptID: 'prompt-other-1' },
      { taskUID: 'other' },
      { taskAttempt: 2 },
      { runtimeSessionUID: 'session-other' },
      { sessionGeneration: 2 },
    ];
    const order = {
      ...{ runtimeSessionID: task.runtimeSessionID, lease, limits: it.limits },
      input: { content: [{ type: 'text', text: 'say x' }] },
    } as const;
    const operation = task.operation('start-prompt', it.fence, { prompt: true });
    for (const change of foreign)
      expect(await refusal(it.client.prompt(operation, { ...order, mcpAuthorization: { ...grant, ...change } }))).toMatchObject({
        ...{ status: 400, code: 'invalid_request' },
      });
    expect(textOf(await collect(await it.client.prompt(operation, { ...order, mcpAuthorization: grant })))).toBe('x');
  });

  test('gets an environment with nothing of ours in it', async () => {
    const task = await it.session('environment');
    const environment = JSON.parse(textOf(await it.run(task, 'env')) ?? '{}') as Record<string, string>;
    const names = [
      'HOME',
      'ORKA_WORKSPACE',
      'PATH',
      'PWD',
      'TMPDIR',
      'XDG_CACHE_HOME',
      'XDG_CONFIG_HOME',
      'XDG_DATA_HOME',
      'XDG_STATE_HOME',
    ];
    const shell = ['OLDPWD', 'SHLVL', '_'];
    expect(
      Object.keys(environment)
        .filter((name) => !shell.includes(name))
        .sort(),
    ).toEqual(names);
    expect(environment['PWD']).toBe(environment['ORKA_WORKSPACE']);
  });

  test('small pieces of text are joined below the rate of updates', async () => {
    const task = await it.session('chunks');
    const events = await it.run(task, 'chunks 5000');
    expect(textOf(events)).toBe('x'.repeat(5000));
    expect(events.length).toBeLessThan(500);
  });

  test('more updates than the stream may carry fail it, and the session is retired', async () => {
    const task = await it.session('flood');
    const events = await it.run(task, 'flood 5000');
    expect(events.at(-1)).toMatchObject({
      type: 'failed',
      payload: { code: expect.stringMatching(/update_rate_exceeded|event_buffer_overflow/) },
    });
    await gone(it, task);
  });

  test.each([
    ['an agent that exits', 'exit', 'outcome_unknown', 'settlement_unproven'],
    ['an agent that says too many lines that are no messages', 'garbage 101', 'outcome_unknown', 'settlement_unproven'],
    ['an agent that tells an error', 'error broken', 'failed', 'agent_error'],
    ['a refusal', 'stop refusal', 'failed', 'refusal'],
    ['too many tokens', 'stop max_tokens', 'failed', 'token_limit'],
    ['too many turns', 'stop max_turn_requests', 'failed', 'turn_limit'],
    ['a reason that nobody knows', 'stop because', 'failed', 'unknown_stop_reason'],
  ])('%s ends it as the contract says', async (_, text, type, code) => {
    const task = await it.session(`end-${text.replaceAll(' ', '-')}`);
    const events = await it.run(task, text);
    expect(events.at(-1)).toMatchObject({ type, payload: { code } });
    await gone(it, task);
    expect(it.folders()).not.toContain(task.runtimeSessionID);
  });

  test('a tool that the policy allows is allowed once; other methods of a client are not there', async () => {
    const task = await it.session('ask');
    expect(textOf(await it.run(task, 'ask execute'))).toBe('{"outcome":{"outcome":"selected","optionId":"yes"}}');
    const other = await it.session('offer');
    expect(textOf(await it.run(other, 'offer fs/read_text_file'))).toContain('-32601');
  });

  test('a workspace that was to be read only and was changed ends its session', async () => {
    const task = await it.session('write');
    const events = await it.run(task, 'write answer.txt');
    const operation = task.operation('workspace-delta', it.fence, { prompt: true });
    const { delta } = await it.client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(task, events.at(-1)!, limits));
    expect(delta).toMatchObject({ state: 'read_only_modified', entryCount: 1, changedFileCount: 1, publicationSafe: false });
    await gone(it, task);
  });

  test("an agent's own folders in a workspace are no change", async () => {
    const task = await it.session('own');
    const events = await it.run(task, 'write .git');
    const operation = task.operation('workspace-delta', it.fence, { prompt: true });
    const { delta } = await it.client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(task, events.at(-1)!, limits));
    expect(delta.state).toBe('no_change');
  });
});

describe('cancelling', () => {
  const cancel = (task: TaskOrders, { client, fence }: ScriptedSupervisor = it, verb = 'cancel-prompt') =>
    client.cancel(task.operation(verb, fence, { prompt: true }), task.runtimeSessionID, {
      reason: 'task_timeout',
      settlementDeadline: instant(Date.now() + 20_000),
    });

  test('a prompt that runs is settled as cancelled, and stays so', async () => {
    const task = await it.session('cancel');
    const events = collect(await it.start(task, 'wait'));
    expect((await it.status()).activePrompts).toMatchObject([{ promptID: task.promptID, frameSequence: 1 }]);
    expect(await refusal(it.start(task, 'say again'))).toMatchObject({
      code: expect.stringMatching(/already_accepted|digest_conflict/),
    });
    const answer = await cancel(task);
    expect(answer).toMatchObject({ barrierState: 'settled', settlementProven: true, settlement: { outcome: 'cancelled' } });
    expect((await events).at(-1)).toMatchObject({ type: 'cancelled', payload: { reason: 'task_timeout' } });
    await gone(it, task);
    const late = await cancel(task, it, 'cancel-late');
    expect(late.settlement).toEqual(answer.settlement);
  });

  test('a prompt whose agent answers the cancellation with an error is cancelled, and the instance stays', async () => {
    const task = await it.session('cancel-error');
    const events = collect(await it.start(task, 'error-on-cancel -32800'));
    const answer = await cancel(task);
    expect(answer).toMatchObject({ barrierState: 'settled', settlementProven: true, settlement: { outcome: 'cancelled' } });
    expect((await events).at(-1)).toMatchObject({ type: 'cancelled', payload: { reason: 'task_timeout' } });
    await gone(it, task);
    const { lifecycle, drain } = await it.status();
    expect([lifecycle, drain.requested]).toEqual(['ready', false]);
  });

  test('a prompt whose agent stops at once leaves none of its processes when it is answered', async () => {
    const task = await it.session('descendants');
    const owner = { uid: it.latestUid() };
    const events = collect(await it.start(task, 'fork-wait'));
    if (switchesUsers) await eventually(() => processesOf(owner).length >= 3);
    const answer = await cancel(task);
    if (switchesUsers) expect(processesOf(owner)).toEqual([]);
    expect(answer).toMatchObject({ barrierState: 'settled', settlementProven: true, liveDescendantCount: 0 });
    expect((await events).at(-1)?.type).toBe('cancelled');
    await gone(it, task);
  });

  test('a prompt that has failed meanwhile has left none of its processes either', async () => {
    const task = await it.session('failed-descendants');
    const owner = { uid: it.latestUid() };
    expect((await it.run(task, 'fork-error')).at(-1)?.type).toBe('failed');
    if (switchesUsers) expect(processesOf(owner)).toEqual([]);
    const answer = await cancel(task);
    expect(answer).toMatchObject({ settlement: { outcome: 'failed' }, settlementProven: true, liveDescendantCount: 0 });
    await gone(it, task);
  });

  test('again has the first answer as settled; under the same id with another body it is a conflict', async () => {
    const task = await it.session('cancel-again');
    const events = collect(await it.start(task, 'wait'));
    const operation = task.operation('cancel', it.fence, { prompt: true });
    const order = { reason: 'task_timeout', settlementDeadline: instant(Date.now() + 20_000) } as const;
    const cancelled = (reason: CancelReason) => it.client.cancel(operation, task.runtimeSessionID, { ...order, reason });
    const [first, meanwhile] = await Promise.all([cancelled('task_timeout'), cancelled('task_timeout')]);
    const settled = { class: 'settled', phase: 'settled', terminalEvent: 'cancelled' } as const;
    expect(first.classification).toEqual({ class: 'fresh' });
    expect(first).toMatchObject({ barrierState: 'settled', settlement: { outcome: 'cancelled' } });
    expect(meanwhile).toEqual({ ...first, classification: settled });
    await events;
    await gone(it, task);
    expect(await cancelled('task_timeout')).toEqual({ ...first, classification: settled });
    const conflict = { ...settled, class: 'digest_conflict' };
    expect(await refusal(cancelled('user_requested'))).toMatchObject({
      ...{ status: 409, code: 'digest_conflict', classification: conflict },
    });
  });

  test('an agent that does not listen is ended with all its processes', async () => {
    const strict = await scriptedSupervisor({ timing: { cancelGrace: 500 } });
    try {
      const task = await strict.session('deaf');
      const events = collect(await strict.start(task, 'deaf'));
      await sleep(200);
      const answer = await cancel(task, strict);
      expect(answer).toMatchObject({ barrierState: 'forced_terminated', settlementProven: true, forcedTermination: true });
      expect((await events).at(-1)?.type).toBe('cancelled');
      await gone(strict, task);
    } finally {
      await strict.close();
    }
  });

  /** A session whose prompt ended well, and whose workspace was not looked at. */
  async function unread(name: string): Promise<TaskOrders> {
    const task = await it.session(name);
    await collect(await it.start(task, 'say OK'));
    return task;
  }

  test('late changes nothing of a session whose workspace is looked at next', async () => {
    const task = await unread('late-cancel');
    expect(await cancel(task)).toMatchObject({
      ...{ settlement: { outcome: 'succeeded' }, settlementProven: true, liveDescendantCount: 0 },
    });
    const found = (await it.status()).sessions?.find(({ runtimeSessionUID }) => runtimeSessionUID === task.sessionUID);
    expect(found?.state).toBe('validating');
    const lost = { reason: 'stream_disconnected', settlementDeadline: instant(Date.now() + 20_000) } as const;
    await it.client.cancel(task.operation('cancel-lost', it.fence, { prompt: true }), task.runtimeSessionID, lost);
    await gone(it, task);
  });

  test('by whoever lost the stream gives up a session that nobody looks at any more', async () => {
    const task = await unread('unread');
    const lost = { reason: 'stream_disconnected', settlementDeadline: instant(Date.now() + 20_000) } as const;
    const operation = task.operation('cancel-lost', it.fence, { prompt: true });
    const answer = await it.client.cancel(operation, task.runtimeSessionID, lost);
    expect(answer).toMatchObject({ settlementProven: true, settlement: { outcome: 'succeeded' } });
    if (switchesUsers) expect(processesOf({ uid: it.latestUid() })).toEqual([]);
    await gone(it, task);
  });

  test('whoever stops reading cancels', async () => {
    const task = await it.session('disconnect');
    (await it.start(task, 'wait')).abort();
    await gone(it, task);
  });

  test('a prompt ends with its lease unless that is renewed', async () => {
    const task = await it.session('lease');
    const started = Date.now();
    const events = collect(await it.start(task, 'wait', { leaseLife: 15_000 }));
    const lease = task.lease(2, 20_000);
    const order = {
      runtimeSessionID: task.runtimeSessionID,
      expectedLeaseGeneration: 1,
      lease,
      mcpAuthorization: task.authorization(lease),
    };
    const operation = task.operation('renew-lease-2', it.fence, { prompt: true, life: 19_000 });
    const renewed = await it.client.renewLease(operation, order);
    expect(renewed).toMatchObject({ classification: { class: 'fresh' }, lease });
    expect((await it.client.renewLease(operation, order)).classification.class).toBe('duplicate');
    const stale = it.client.renewLease(task.operation('renew-lease-3', it.fence, { prompt: true, life: 19_000 }), order);
    expect(await refusal(stale)).toMatchObject({ status: 409, code: 'stale_fence' });
    expect((await events).at(-1)).toMatchObject({ type: 'cancelled', payload: { reason: 'lease_expired' } });
    expect(Date.now() - started).toBeGreaterThan(19_500);
  });
});

describe('deletion', () => {
  test('finds processes that hid from their parent', async () => {
    const task = await it.session('fork');
    await it.run(task, 'fork');
    const before = (await it.status()).sessions?.find(({ runtimeSessionID }) => runtimeSessionID === task.runtimeSessionID);
    expect(before?.liveDescendantCount).toBeGreaterThan(1);
    expect(await refusal(remove(task))).toMatchObject({ status: 409, code: 'session_poisoned' });
  });

  test('of a running prompt cancels it first', async () => {
    const task = await it.session('busy');
    const events = collect(await it.start(task, 'wait'));
    expect(await refusal(remove(task))).toMatchObject({ status: 409, code: 'already_accepted' });
    expect((await events).at(-1)?.type).toBe('cancelled');
    await gone(it, task);
  });

  test('needs no Task', async () => {
    const task = await it.session('without-task');
    const { taskUID: _uid, taskAttempt: _attempt, ...operation } = task.operation('ds', it.fence);
    const { state } = await it.client.deleteSession(operation, task.runtimeSessionID, 'test');
    expect(state).toBe('deleted');
    const half = it.client.deleteSession({ ...operation, taskUID: 'x' }, task.runtimeSessionID, 'test');
    await expect(half).rejects.toMatchObject({ evidence: 'zero_bytes_written' });
  });

  test('is remembered: the same again is a duplicate, a new creation is refused', async () => {
    const task = taskOrders('again', it.runtime);
    const creation = task.operation('create-session', it.fence);
    await it.client.createSession(creation, task.session);
    const operation = task.operation('ds', it.fence);
    await it.client.deleteSession(operation, task.runtimeSessionID, 'test');
    expect((await it.client.deleteSession(operation, task.runtimeSessionID, 'test')).classification.class).toBe('duplicate');
    expect(await refusal(it.client.createSession(creation, task.session))).toMatchObject({
      ...{ status: 409, code: 'invalid_request', class: 'duplicate' },
    });
    expect(await refusal(it.client.createSession(task.operation('recreate', it.fence), task.session))).toMatchObject({
      status: 410,
    });
  });
});

test('draining removes idle sessions, takes no more, and leaves no process and no file', async () => {
  const fresh = await scriptedSupervisor();
  try {
    const task = await fresh.session('drained');
    const forked = await fresh.session('forked');
    await fresh.run(forked, 'fork');
    const uids = switchesUsers ? [fresh.latestUid() - 1, fresh.latestUid()] : [];
    expect(uids.flatMap((uid) => processesOf({ uid })).length).toBeGreaterThanOrEqual(uids.length);
    const operation = { fence: fresh.fence, operationID: 'runtime-pool-drain-2', expiresAt: instant(Date.now() + 30_000) };
    const answer = await fresh.client.drain(operation, 'first');
    expect((await fresh.client.drain(operation, 'first')).classification.class).toBe('duplicate');
    expect(answer.drain.reason).toBe('first');
    await gone(fresh, task);
    const { sessions, lifecycle } = await fresh.status();
    expect(lifecycle).toBe('draining');
    expect(sessions?.map(({ runtimeSessionID }) => runtimeSessionID)).toEqual([forked.runtimeSessionID]);
    const late = fresh.client.createSession(
      taskOrders('late', fresh.runtime).operation('create-session', fresh.fence),
      taskOrders('late', fresh.runtime).session,
    );
    expect(await refusal(late)).toMatchObject({ status: 429, code: 'rate_limited' });
    expect(task.runtimeSessionID).toContain('drained');
    expect(await fresh.supervisor.stop()).toBe(true);
    expect(uids.flatMap((uid) => processesOf({ uid }))).toEqual([]);
    expect(fresh.folders()).toEqual([]);
  } finally {
    await fresh.close();
  }
});

test('a policy of reading only rejects what it does not name', async () => {
  const reading = await scriptedSupervisor({ policy: { allowed: ['Glob', 'Grep', 'Read'], disallowed: null, allowBash: false } });
  try {
    expect(textOf(await reading.run(await reading.session('r1'), 'ask execute'))).toContain('"no"');
    expect(textOf(await reading.run(await reading.session('r2'), 'ask read'))).toContain('"yes"');
    expect(textOf(await reading.run(await reading.session('r3'), 'ask other'))).toContain('"no"');
  } finally {
    await reading.close();
  }
});

test('no error and no log of all this holds a credential', () => {
  for (const secret of Object.values(testCredentials)) expect(it.log()).not.toContain(secret);
});
