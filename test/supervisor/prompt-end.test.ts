import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import type { ProcessOwner } from '../../src/supervisor/processes.js';
import { killAll, processesOf } from '../../src/supervisor/processes.js';
import type { PromptRun } from '../../src/supervisor/prompt.js';
import { eventually } from '../support/eventually.js';
import { answerLine, errorLine, playPrompt, updateLine } from '../support/played-agent.js';

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
  ['breaks the protocol', Array.from({ length: 101 }, () => 'no message'), undefined, 'outcome_unknown'],
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

const said = (text: string) => updateLine({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });

test.each([
  ['end_turn', answerLine({ stopReason: 'end_turn' })],
  ['another reason', answerLine({ stopReason: 'refusal' })],
  ['a reason that nobody knows', answerLine({ stopReason: 'interrupted' })],
  ['an error', errorLine({ code: -32_800, message: 'cancelled' })],
  ['an error of its own', errorLine({ code: -32_603, message: 'aborted' })],
])('an agent that answers a cancellation with %s is cancelled', async (_, cancelAnswer) => {
  const { events, session } = await playPrompt([said('Info: Operation cancelled by user')], {
    owner,
    started: cancel,
    cancelAnswer,
  });
  expect(events.at(-1)).toMatchObject({ type: 'cancelled', payload: { stopReason: 'cancelled', reason: 'task_timeout' } });
  expect(session.state).toBe('poisoned');
});

test('the same error without a cancellation is a failure of the agent', async () => {
  const { events } = await playPrompt([errorLine({ code: -32_800, message: 'cancelled' })], { owner });
  expect(events.at(-1)).toMatchObject({ type: 'failed', payload: { code: 'agent_error' } });
});

test('what an agent says of its error is one line of whole characters', async () => {
  const message = `a\u001b[31m\n\n{"fake":"line"}${'x'.repeat(478)}😀`;
  const { events } = await playPrompt([errorLine({ code: -32_603, message })], { owner });
  const { payload } = events.at(-1) as unknown as { readonly payload: { readonly message: string } };
  expect(payload.message).toMatch(/^agent: error -32603: a \[31m \{"fake":"line"\}x+/);
  expect(payload.message.isWellFormed()).toBe(true);
});

test('updates that come in one chunk with the answer, after it, are in no answer and are counted', async () => {
  const { events, bytes, late } = await playPrompt(
    [said('the answer'), [answerLine({ stopReason: 'end_turn' }), said(' LATE'), said(' LATE')].join('\n')],
    { owner },
  );
  expect(events.at(-1)).toMatchObject({ type: 'completed', payload: { result: { content: [{ text: 'the answer' }] } } });
  expect(bytes).not.toContain('LATE');
  expect(late).toBe(2);
});

test.each([
  ['stops early', { stopReason: 'max_tokens' }, 'failed'],
  ['stops by itself', { stopReason: 'cancelled' }, 'cancelled'],
])('the tokens of a prompt whose agent %s are told before its end', async (_, answer, type) => {
  const usage = { inputTokens: 100, outputTokens: 7, cachedReadTokens: 20, totalTokens: 127 };
  const { events } = await playPrompt([answerLine({ ...answer, usage })], { owner });
  expect(events.slice(-2)).toMatchObject([
    { type: 'update', payload: { kind: 'usage', usage: { inputTokens: 100, outputTokens: 7, cachedInputTokens: 20 } } },
    { type },
  ]);
});

test.each([
  ['neither result nor error', '{"jsonrpc":"2.0","id":"$prompt"}'],
  ['an error that is null, and no result', '{"jsonrpc":"2.0","id":"$prompt","error":null}'],
  ['another version of JSON-RPC', '{"id":"$prompt","result":{"stopReason":"refusal"}}'],
  ['a level of a log', '{"id":"$prompt","level":"info"}'],
])('a message with the id of the prompt and %s is no answer', async (_, line) => {
  const { events, skipped } = await playPrompt([line, said('x'), answerLine({ stopReason: 'end_turn' })], { owner });
  expect(skipped).toHaveLength(1);
  expect(events.at(-1)).toMatchObject({ type: 'completed', payload: { result: { content: [{ text: 'x' }] } } });
});

test('a message with an error is an error, whatever result it has beside it', async () => {
  const both = '{"jsonrpc":"2.0","id":"$prompt","result":{"stopReason":"end_turn"},"error":"broken"}';
  const { events } = await playPrompt([both], { owner });
  expect(events.at(-1)).toMatchObject({ type: 'failed', payload: { code: 'agent_error' } });
});

test('an agent that stops at its limit of turns is told which setting raises it', async () => {
  const { events } = await playPrompt([answerLine({ stopReason: 'max_turn_requests' })], { owner });
  const says = expect.stringMatching(
    /spec\.agentRuntime\.maxTurns of the Task or spec\.runtime\.defaultMaxTurns of the Agent/,
  ) as unknown;
  expect(events.at(-1)).toMatchObject({ type: 'failed', payload: { code: 'turn_limit', message: says } });
});
