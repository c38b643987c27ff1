import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import type { ProcessOwner } from '../../src/supervisor/processes.js';
import { killAll, processesOf } from '../../src/supervisor/processes.js';
import type { PromptRun } from '../../src/supervisor/prompt.js';
import { eventually } from '../support/eventually.js';
import { answerLine, errorLine, playPrompt } from '../support/played-agent.js';

let owner: ProcessOwner;
beforeEach(async () => {
  const child = spawn('/bin/sh', ['-c', 'trap "" TERM; while :; do sleep 1; done'], { detached: true, stdio: 'ignore' });
  owner = { sid: child.pid ?? -1 };
  await eventually(() => processesOf(owner).length === 2);
});
afterEach(async () => {
  await killAll(owner);
});

const cancel = (run: PromptRun) => {
  run.cancel('task_timeout');
};

test.each([
  ['is cancelled and stops at once', [], cancel, 'cancelled'],
  ['fails', [errorLine({ code: 1, message: 'broken' })], undefined, 'failed'],
  ['stops early', [answerLine({ stopReason: 'refusal' })], undefined, 'failed'],
  ['breaks the protocol', ['no message'], undefined, 'outcome_unknown'],
] as const)('an agent that %s is settled when none of its processes is left', async (_, lines, started, type) => {
  const { events, session } = await playPrompt(lines, { owner, ...(started ? { started } : {}) });
  expect(processesOf(owner)).toEqual([]);
  expect(events.at(-1)?.type).toBe(type);
  expect([session.state, session.last?.forced]).toEqual(['poisoned', false]);
});

test('an agent that completes its prompt stays alive for the next one', async () => {
  const { session } = await playPrompt([answerLine({ stopReason: 'end_turn' })], { owner });
  expect(processesOf(owner)).toHaveLength(2);
  expect(session.state).toBe('validating');
});
