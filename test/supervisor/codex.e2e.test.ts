import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { PromptEvent } from '../../src/harness/events.js';
import type { Fence } from '../../src/harness/fence.js';
import { instant } from '../../src/lib/instant.js';
import { isQuiescent, isStrictlyGoverned } from '../../src/harness/introspection.js';
import { processesOf } from '../../src/supervisor/processes.js';
import { codexModules, shareModules } from '../support/codex.js';
import { eventually, eventuallyAnswers } from '../support/eventually.js';
import { deltaOrder, runPrompt, taskOrders } from '../support/harness-orders.js';
import type { TaskOrders } from '../support/harness-orders.js';
import { codexAgent, startRealSupervisor } from '../support/real-supervisor.js';
import type { RealSupervisor } from '../support/real-supervisor.js';

const codex = codexModules();
const reason = 'missing' in codex ? codex.missing : process.getuid?.() !== 0 ? 'users are switched only by root' : undefined;
const suite = reason === undefined ? describe : describe.skip;

suite(`a real supervisor with a real Codex${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let shared: string;
  let modules: string;
  beforeAll(() => {
    shared = mkdtempSync(path.join(tmpdir(), 'codex-'));
    chmodSync(shared, 0o755);
    modules = shareModules('modules' in codex ? codex.modules : '', shared);
  });
  afterAll(() => {
    rmSync(shared, { recursive: true, force: true });
  });

  async function ready(it: RealSupervisor): Promise<{ readonly fence: Fence; readonly task: TaskOrders }> {
    await it.client.bootstrap(it.delivery);
    const { runtimeProfileDigest } = await eventuallyAnswers(() => it.client.capabilities());
    const { fence } = await it.client.status({ runtimeProfileDigest });
    const task = taskOrders('11111111-1111-1111-1111-111111111111', it.runtime);
    await it.client.createSession(task.operation('create-session', fence), task.session);
    return { fence, task };
  }

  test('runs one Task from the delivery of credentials to a clean end', async () => {
    const it = await startRealSupervisor(codexAgent(modules), { systemPrompt: 'SYSTEM_PROMPT_MARKER' });
    const { client, fixture, delivery } = it;
    try {
      fixture.say('ORKA_MARKER_OK');
      expect(await client.health()).toEqual({ status: 'booting' });
      expect(await client.bootstrap(delivery)).toBe('seeded');
      const capabilities = await eventuallyAnswers(() => client.capabilities());
      expect(capabilities.runtimeProfileDigest).toBe(it.runtime.profileDigest);
      expect(isStrictlyGoverned(capabilities)).toBe(true);
      expect(await client.bootstrap(delivery)).toBe('complete');

      const { fence } = await client.status({ runtimeProfileDigest: capabilities.runtimeProfileDigest });
      expect(fence).toMatchObject({ controllerEpoch: 3, runtimePoolGeneration: 2, runtimePoolUID: 'pool-uid-1' });
      expect(fence.runtimeInstanceID).toBe(`pod-uid-1.${fence.supervisorBootID}`);

      const task = taskOrders('11111111-1111-1111-1111-111111111111', it.runtime);
      const creation = task.operation('create-session', fence);
      const created = await client.createSession(creation, task.session);
      expect(created).toMatchObject({ classification: { class: 'fresh' }, session: { state: 'idle' } });
      const again = await client.createSession(creation, task.session);
      expect(again).toMatchObject({ classification: { class: 'duplicate' }, session: { ...created.session } });

      const environments = processesOf({ uid: it.firstUid }).map(({ pid }) => readFileSync(`/proc/${pid}/environ`, 'utf8'));
      expect(environments.length).toBeGreaterThan(0);
      for (const environ of environments) expectNoSecret(it, environ);
      expectNoSecret(it, await eventuallyAnswers(() => filesBelow(it.folder)));

      const events = await prompt(it, fence, task);
      expect(events[0]?.type).toBe('accepted');
      const end = events.at(-1)!;
      expect(end).toMatchObject({
        type: 'completed',
        payload: {
          result: {
            content: [{ type: 'text', text: 'ORKA_MARKER_OK' }],
            model: 'gpt-5.5',
            usage: { inputTokens: 100, outputTokens: 7, cachedInputTokens: 20 },
          },
        },
      });
      const inference = fixture.requests.filter((request) => request.path === '/v1/responses');
      expect(inference.map(({ authorization }) => authorization)).toEqual([`Bearer ${delivery.credentials.providerToken}`]);
      expect(JSON.parse(inference[0]?.body ?? '{}')).toMatchObject({ model: 'gpt-5.5', stream: true });
      expect(inference[0]?.body).toContain('SYSTEM_PROMPT_MARKER');

      const operation = task.operation('workspace-delta', fence, { prompt: true });
      const delta = await client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(task, end));
      expect(delta).toMatchObject({ classification: { class: 'fresh' }, delta: { state: 'no_change', entryCount: 0 } });
      const replay = await client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(task, end));
      expect(replay).toMatchObject({ classification: { class: 'duplicate' }, delta: { ...delta.delta } });

      const deletion = task.operation('ds-1', fence);
      const deleted = await client.deleteSession(deletion, task.runtimeSessionID, 'task_finalized');
      const phases = deleted.tombstone.operations.map(({ phase }) => phase).sort();
      expect(phases).toEqual(['applied', 'applied', 'deleted', 'settled']);
      expect(processesOf({ uid: it.firstUid })).toEqual([]);

      const drain = { fence, operationID: 'runtime-pool-drain-2', expiresAt: instant(Date.now() + 60_000) };
      const drained = await client.drain(drain, 'runtime_pool_scale_to_zero');
      expect(drained.drain).toMatchObject({ requested: true, acceptingNewSessions: false, reason: 'runtime_pool_scale_to_zero' });
      const { runtimeProfileDigest, runtimeInstanceID } = fence;
      expect(isQuiescent(await client.status({ runtimeProfileDigest, runtimeInstanceID }))).toBe(true);

      const exit = new Promise((resolve) => it.process.once('exit', resolve));
      it.process.kill('SIGTERM');
      expect(await exit).toBe(0);
      expectNoSecret(it, it.log());
      expectNoSecret(it, await eventuallyAnswers(() => filesBelow(it.folder)));
    } finally {
      await it.close();
    }
  }, 60_000);

  test('notices that an agent without restriction wrote into a workspace that was to be read', async () => {
    const it = await startRealSupervisor(codexAgent(modules));
    try {
      it.fixture.runCommand('echo changed > answer.txt');
      const { fence, task } = await ready(it);
      const events = await prompt(it, fence, task);
      expect(events.map((event) => (event.type === 'update' ? event.payload.kind : event.type))).toEqual(
        expect.arrayContaining(['tool_call', 'tool_call_update', 'completed']),
      );
      const operation = task.operation('workspace-delta', fence, { prompt: true });
      const { delta } = await it.client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(task, events.at(-1)!));
      expect(delta).toMatchObject({ state: 'read_only_modified', changedFileCount: 1 });
    } finally {
      await it.close();
    }
  }, 60_000);

  test('tells each step of a shell command with its status', async () => {
    const it = await startRealSupervisor(codexAgent(modules));
    try {
      it.fixture.runCommand('echo ORKA_COMMAND_RAN');
      const { fence, task } = await ready(it);
      const events = await prompt(it, fence, task);
      const calls = events.flatMap((event) =>
        event.type === 'update' && event.payload.toolCall ? [event.payload.toolCall] : [],
      );
      expect(new Set(calls.map(({ toolCallID }) => toolCallID)).size).toBe(1);
      expect(calls.at(0)?.status).toMatch(/^(pending|in_progress)$/);
      expect(calls.at(-1)?.status).toBe('completed');
      expect(JSON.stringify(calls)).toContain('ORKA_COMMAND_RAN');
      expect(events.at(-1)?.type).toBe('completed');
      await takeDelta(it, fence, task, events.at(-1)!);
    } finally {
      await it.close();
    }
  }, 60_000);

  test('leaves no process of a command that runs when its prompt is cancelled', async () => {
    const it = await startRealSupervisor(codexAgent(modules));
    try {
      it.fixture.runCommand('setsid sleep 600 & sleep 600');
      const { fence, task } = await ready(it);
      const events = prompt(it, fence, task);
      await eventually(() => commandsOf(it.firstUid).filter((command) => command.startsWith('sleep\0')).length === 2);
      const answer = await it.client.cancel(task.operation('cancel', fence, { prompt: true }), task.runtimeSessionID, {
        reason: 'task_timeout',
        settlementDeadline: instant(Date.now() + 20_000),
      });
      expect(processesOf({ uid: it.firstUid })).toEqual([]);
      expect(answer).toMatchObject({ settlementProven: true, liveDescendantCount: 0, settlement: { outcome: 'cancelled' } });
      expect((await events).at(-1)?.type).toBe('cancelled');
    } finally {
      await it.close();
    }
  }, 60_000);

  test('keeps an agent that may only read from writing', async () => {
    const it = await startRealSupervisor(codexAgent(modules), {
      policy: { allowed: ['Glob', 'Grep', 'Read'], disallowed: null, allowBash: false },
    });
    try {
      it.fixture.runCommand('echo changed > answer.txt');
      const { fence, task } = await ready(it);
      const end = (await prompt(it, fence, task)).at(-1)!;
      expect(end.type).toBe('completed');
      expect(it.fixture.requests.at(-1)?.body).not.toContain('"web_search"');
      const operation = task.operation('workspace-delta', fence, { prompt: true });
      const { delta } = await it.client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(task, end));
      expect(delta.state).toBe('no_change');
    } finally {
      await it.close();
    }
  }, 60_000);

  test.each([
    ['its app server', 'codex'],
    ['the program that starts its app server', 'node'],
  ])(
    'ends its prompt and its session, with the signal, once %s is killed',
    async (_what, name) => {
      const it = await startRealSupervisor(codexAgent(modules));
      try {
        it.fixture.delay(600_000);
        const { fence, task } = await ready(it);
        const events = prompt(it, fence, task);
        await eventually(() => it.fixture.requests.some((request) => request.path === '/v1/responses'));
        const all = processesOf({ uid: it.firstUid });
        const server = all.find((process) => process.name === 'codex')!;
        process.kill(name === 'codex' ? server.pid : server.parent, 'SIGKILL');
        expect((await events).at(-1)).toMatchObject({
          type: 'outcome_unknown',
          payload: { message: expect.stringContaining('its process codex was ended by SIGKILL') },
        });
        await eventually(() => processesOf({ uid: it.firstUid }).length === 0);
        const { runtimeProfileDigest, runtimeInstanceID } = fence;
        expect(await it.client.status({ runtimeProfileDigest, runtimeInstanceID })).toMatchObject({ lifecycle: 'ready' });
      } finally {
        await it.close();
      }
    },
    60_000,
  );

  test('goes on when a command that it runs is killed', async () => {
    const it = await startRealSupervisor(codexAgent(modules));
    try {
      it.fixture.runCommand('sleep 600');
      const { fence, task } = await ready(it);
      const events = prompt(it, fence, task);
      const command = () => processesOf({ uid: it.firstUid }).find(({ name }) => name === 'sleep');
      await eventually(() => command() !== undefined);
      process.kill(command()!.pid, 'SIGKILL');
      const end = (await events).at(-1)!;
      expect(end.type).toBe('completed');
      await takeDelta(it, fence, task, end);
    } finally {
      await it.close();
    }
  }, 60_000);

  test.each([
    ['breaks off in the middle of an answer', 1, 0],
    ['breaks off three times', 3, 0],
    ['is away for 5 s in the middle of an answer', 1, 5_000],
  ])(
    'asks again after the provider proxy %s, and answers with the whole answer alone',
    async (_how, times, away) => {
      const it = await startRealSupervisor(codexAgent(modules));
      try {
        it.fixture.say('ORKA_MARKER_OK');
        it.fixture.breakOff('ORKA_MAR', times, away);
        const { fence, task } = await ready(it);
        const events = await prompt(it, fence, task);
        expect(events.at(-1)).toMatchObject({
          type: 'completed',
          payload: { result: { content: [{ type: 'text', text: 'ORKA_MARKER_OK' }] } },
        });
        const retries = events.filter((event) => event.type === 'update' && event.payload.diagnostic?.code === 'model_retry');
        expect(retries).toHaveLength(times);
        await takeDelta(it, fence, task, events.at(-1)!);
      } finally {
        await it.close();
      }
    },
    90_000,
  );

  test('names the provider proxy if it stays away, and the instance takes the next session', async () => {
    const it = await startRealSupervisor(codexAgent(modules));
    try {
      it.fixture.breakOff('ORKA_MAR', 1, 600_000);
      const { fence, task } = await ready(it);
      expect((await prompt(it, fence, task)).at(-1)).toMatchObject({
        type: 'failed',
        payload: {
          code: 'provider_proxy_unavailable',
          message: 'the provider proxy cannot be reached: it refuses connections',
        },
      });
      const next = taskOrders('22222222-2222-2222-2222-222222222222', it.runtime);
      const created = await it.client.createSession(next.operation('create-session', fence), next.session);
      expect(created).toMatchObject({ session: { state: 'idle' } });
    } finally {
      await it.close();
    }
  }, 180_000);

  test('asks the model about a prompt that looks like a command of the agent', async () => {
    const it = await startRealSupervisor(codexAgent(modules));
    try {
      it.fixture.say('ORKA_MARKER_OK');
      const { fence, task } = await ready(it);
      const end = (await prompt(it, fence, task, '/status Do it')).at(-1)!;
      expect(end).toMatchObject({ type: 'completed', payload: { result: { content: [{ text: 'ORKA_MARKER_OK' }] } } });
      expect(it.fixture.requests.at(-1)?.body).toContain('/status Do it');
      await takeDelta(it, fence, task, end);
    } finally {
      await it.close();
    }
  }, 60_000);

  test('ends a prompt that calls the model more often than it may', async () => {
    const it = await startRealSupervisor(codexAgent(modules), { maxTurns: 1 });
    try {
      it.fixture.runCommand('true');
      const { fence, task } = await ready(it);
      const end = (await prompt(it, fence, task)).at(-1)!;
      expect(end).toMatchObject({ type: 'failed', payload: { code: 'turn_limit', retryable: false } });
      expect(it.fixture.requests.filter((request) => request.path === '/v1/responses')).toHaveLength(1);
    } finally {
      await it.close();
    }
  }, 60_000);
});

function prompt({ client }: RealSupervisor, fence: Fence, task: TaskOrders, text = 'Do it'): Promise<readonly PromptEvent[]> {
  return runPrompt(client, fence, task, text);
}

/** A supervisor that stops waits for the delta of a completed prompt. */
async function takeDelta({ client }: RealSupervisor, fence: Fence, task: TaskOrders, end: PromptEvent): Promise<void> {
  const operation = task.operation('workspace-delta', fence, { prompt: true });
  await client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(task, end));
}

/** Command lines of what a user runs. */
function commandsOf(uid: number): readonly string[] {
  return processesOf({ uid }).flatMap(({ pid }) => {
    try {
      return [readFileSync(`/proc/${pid}/cmdline`, 'utf8')];
    } catch {
      return [];
    }
  });
}

function expectNoSecret({ delivery }: RealSupervisor, text: string): void {
  for (const secret of [...Object.values(delivery.credentials), delivery.signingSeed]) {
    expect(text.includes(secret)).toBe(false);
    expect(text.includes(Buffer.from(secret).toString('base64').replace(/=+$/, ''))).toBe(false);
  }
}

/** All texts below a folder, one after another. Throws where a running agent renames a file meanwhile. */
function filesBelow(folder: string): string {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');
}
