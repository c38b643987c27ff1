import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { PromptEvent } from '../../src/harness/events.js';
import type { Fence } from '../../src/harness/fence.js';
import { processesOf } from '../../src/supervisor/processes.js';
import { eventuallyAnswers } from '../support/eventually.js';
import { deltaOrder, runPrompt, taskOrders } from '../support/harness-orders.js';
import type { Policy, TaskOrders } from '../support/harness-orders.js';
import { openCodeProgram, shareProgram } from '../support/opencode.js';
import { startRealSupervisor } from '../support/real-supervisor.js';
import type { RealSupervisor } from '../support/real-supervisor.js';
import { textOf } from '../support/supervisor-calls.js';

const found = openCodeProgram();
const reason = 'missing' in found ? found.missing : process.getuid?.() !== 0 ? 'users are switched only by root' : undefined;
const suite = reason === undefined ? describe : describe.skip;
/** As a Task with intent read is planned for opencode. */
const reading: Policy = {
  allowed: ['glob', 'read'],
  disallowed: ['apply_patch', 'bash', 'edit', 'grep', 'write'],
  allowBash: false,
};

suite(`a real supervisor with a real OpenCode${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let shared: string;
  let program: string;
  let it: RealSupervisor;
  let fence: Fence;
  beforeAll(async () => {
    shared = mkdtempSync(path.join(tmpdir(), 'opencode-'));
    chmodSync(shared, 0o755);
    program = shareProgram('program' in found ? found.program : '', shared);
    it = await startRealSupervisor(['--opencode', program], {
      providerKind: 'opencode',
      policy: reading,
      maxTurns: 3,
      modelLimits: { context: 200_000, output: 4_096 },
    });
    await it.client.bootstrap(it.delivery);
    const { runtimeProfileDigest } = await eventuallyAnswers(() => it.client.capabilities());
    ({ fence } = await it.client.status({ runtimeProfileDigest }));
  }, 60_000);
  afterAll(async () => {
    await it.close();
    rmSync(shared, { recursive: true, force: true });
  });

  async function session(taskUID: string): Promise<TaskOrders> {
    const task = taskOrders(taskUID, it.runtime);
    await it.client.createSession(task.operation('create-session', fence, { life: 90_000 }), task.session, { timeout: 90_000 });
    return task;
  }

  const prompt = (task: TaskOrders, text: string) => runPrompt(it.client, fence, task, text);

  async function end(task: TaskOrders, events: readonly PromptEvent[]): Promise<string> {
    const operation = task.operation('workspace-delta', fence, { prompt: true });
    const { delta } = await it.client.workspaceDelta(operation, task.runtimeSessionID, deltaOrder(task, events.at(-1)!));
    await it.client.deleteSession(task.operation('ds', fence), task.runtimeSessionID, 'task_finalized');
    return delta.state;
  }

  const inference = () => it.fixture.requests.filter(({ path: where }) => where === '/v1/chat/completions');

  test('answers a prompt through the loopback proxy, with one call of the model and no secret around it', async () => {
    it.fixture.say('ORKA_MARKER_OK');
    const task = await session('first');
    const environments = processesOf({ uid: it.firstUid }).map(({ pid }) => readFileSync(`/proc/${pid}/environ`, 'utf8'));
    expect(environments.length).toBeGreaterThan(0);
    for (const secret of [...Object.values(it.delivery.credentials), it.delivery.signingSeed])
      for (const environment of environments) expect(environment).not.toContain(secret);
    const events = await prompt(task, '/init Do it');
    expect(textOf(events)).toBe('ORKA_MARKER_OK');
    expect(events.at(-1)).toMatchObject({ payload: { result: { usage: { inputTokens: 3, outputTokens: 4 } } } });
    expect(inference().map(({ authorization }) => authorization)).toEqual([`Bearer ${it.delivery.credentials.providerToken}`]);
    const body = JSON.parse(inference()[0]?.body ?? '{}') as {
      model: string;
      max_tokens: number;
      tools?: { function: { name: string } }[];
    };
    expect(body).toMatchObject({ model: 'gpt-5.5', max_tokens: 4_096 });
    expect(body.tools?.map((tool) => tool.function.name).sort()).toEqual(['glob', 'read']);
    expect(inference()[0]?.body).toContain('/init Do it');
    expect(await end(task, events)).toBe('no_change');
    expect(processesOf({ uid: it.firstUid })).toEqual([]);
  }, 120_000);

  test('cannot run what its policy denies, even if the model asks for it', async () => {
    it.fixture.runCommand('echo changed > answer.txt');
    const task = await session('second');
    const events = await prompt(task, 'Do it');
    expect(events.at(-1)?.type).toBe('completed');
    expect(await end(task, events)).toBe('no_change');
  }, 120_000);
});
