import { describe, expect, test } from '@jest/globals';
import { readEvents } from '../../src/harness/event-stream.js';
import type { StreamLimits } from '../../src/harness/event-stream.js';
import type { PromptEvent } from '../../src/harness/events.js';
import { digestOfSettlement } from '../../src/harness/prompts.js';

const expected = {
  runtimeInstanceID: 'pod.boot',
  supervisorBootID: 'boot',
  runtimeSessionUID: 'session-1',
  runtimeSessionGeneration: 1,
  taskUID: 'task-1',
  taskAttempt: 1,
  promptID: 'prompt-1',
  requestDigest: `sha256:${'a'.repeat(64)}`,
} as const;
const limits = { maxEventLineBytes: 16_384, maxUpdateEventsPerSecond: 3 };

const line = (
  sequence: number,
  type: string,
  member: string,
  payload: object,
  timestamp = '2026-11-29T16:50:31.5Z',
  identity: object = {},
) =>
  `${JSON.stringify({ protocol: 'orka.harness.v2', type, identity: { ...expected, sequence, timestamp, ...identity }, [member]: payload })}\n`;
const lease = { generation: 1, issuedAt: '2026-11-29T16:50:31Z', expiresAt: '2026-11-29T16:52:01Z' };
const accepted = line(1, 'accepted', 'accepted', { acceptedAt: '2026-11-29T16:50:31.5Z', lease, acpVersion: 'acp.v1' });
const chunk = (sequence: number, timestamp?: string) =>
  line(sequence, 'update', 'update', { kind: 'assistant_message_chunk', assistantMessage: { text: 'x' } }, timestamp);
const entry = { content: 'x', status: 'pending' };
const completed = line(9, 'completed', 'completed', {
  stopReason: 'end_turn',
  result: { content: [{ type: 'text', text: 'x' }], model: 'm', usage: {} },
});

async function read(text: string, size = 7, more: Partial<StreamLimits> = {}): Promise<readonly PromptEvent[]> {
  const bytes = Buffer.from(text);
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
  }
  const events: PromptEvent[] = [];
  for await (const event of readEvents(chunks(), expected, { ...limits, ...more })) events.push(event);
  return events;
}

test('a stream is read however it is cut', async () => {
  for (const size of [1, 7, 1000]) {
    const events = await read(accepted + chunk(2) + chunk(5) + completed, size);
    expect(events.map(({ type }) => type)).toEqual(['accepted', 'update', 'update', 'completed']);
  }
});

describe('a stream is refused', () => {
  test.each([
    ['that does not begin with accepted', chunk(1) + completed, 'order'],
    ['that is accepted twice', accepted + accepted, 'order'],
    ['whose sequence does not rise', accepted + chunk(2) + chunk(2), 'order'],
    ['whose time goes back', accepted + chunk(2, '2026-11-29T16:50:31.4Z'), 'order'],
    ['that goes on after its end', accepted + completed + chunk(10), 'order'],
    [
      'of another prompt',
      accepted + line(2, 'update', 'update', { kind: 'plan', plan: { entries: [entry] } }, undefined, { promptID: 'prompt-2' }),
      'identity',
    ],
    ['with a blank line', `${accepted}\n${completed}`, 'line'],
    ['with an unknown member', accepted + chunk(2).replace('"kind"', '"more":1,"kind"'), 'line'],
    ['with a member twice', accepted + chunk(2).replace('"kind"', '"kind":"plan","kind"'), 'line'],
    ['with a payload of another type', accepted + chunk(2).replace('"type":"update"', '"type":"failed"'), 'line'],
    ['with a line that is too long', accepted + chunk(2).replace('"x"', `"${'x'.repeat(17_000)}"`), 'size'],
    ['with too many updates a second', accepted + [2, 3, 4, 5].map((n) => chunk(n)).join(''), 'rate'],
    ['that ends without its end', accepted + chunk(2), 'ended'],
    ['that ends within a line', accepted + completed.trimEnd(), 'ended'],
    ['of which nothing is left', '', 'ended'],
  ])('%s', async (_, text, code) => {
    await expect(read(text)).rejects.toMatchObject({ code });
  });
});

test('outcome_unknown is never retryable', async () => {
  const end = (retryable: boolean) =>
    line(2, 'outcome_unknown', 'outcomeUnknown', { code: 'settlement_unproven', message: 'm', retryable });
  expect((await read(accepted + end(false))).at(-1)?.type).toBe('outcome_unknown');
  await expect(read(accepted + end(true))).rejects.toMatchObject({ code: 'line' });
});

test('the settlement of a prompt that the reference ran has its digest', () => {
  const settlement = {
    terminalEvent: 'completed',
    outcome: 'succeeded',
    stopReason: 'end_turn',
    settledAt: '2026-11-29T16:50:37.660048603Z',
  } as const;
  expect(digestOfSettlement(settlement)).toBe('sha256:cc1bc7ab2473071af029d4a6751ef5ae2c6f2719724a0668e7cbf66afd75ff78');
});

describe('a line is as strict as for the reference', () => {
  const call = { toolCallID: 't', status: 'pending' };
  const block = { type: 'text', text: 'x' };
  const tool = (change: object) => ['update', 'update', { kind: 'tool_call', toolCall: { ...call, ...change } }] as const;
  const chunkOf = (text: string) =>
    ['update', 'update', { kind: 'assistant_message_chunk', assistantMessage: { text } }] as const;
  const plan = (entries: readonly object[]) => ['update', 'update', { kind: 'plan', plan: { entries } }] as const;
  const usage = (of: object) => ['update', 'update', { kind: 'usage', usage: of }] as const;
  const diagnostic = (change: object) =>
    ['update', 'update', { kind: 'diagnostic', diagnostic: { code: 'c', message: 'm', retryable: false, ...change } }] as const;
  const permission = (change: object) =>
    [
      'permission_requested',
      'permissionRequested',
      {
        requestID: 'r',
        title: 't',
        options: [{ optionID: 'o', name: 'n', kind: 'allow_once' }],
        expiresAt: '2026-11-29T16:55:00Z',
        ...change,
      },
    ] as const;
  const result = (change: object) =>
    ['completed', 'completed', { stopReason: 'end_turn', result: { content: [block], ...change } }] as const;
  const failed = (change: object) => ['failed', 'failed', { code: 'c', message: 'm', retryable: false, ...change }] as const;
  const option = { optionID: 'o', name: 'n', kind: 'allow_once' };
  type Case = readonly [string, readonly [string, string, object]];

  const right: readonly Case[] = [
    ['a tool call with its status', tool({})],
    ['white space that a tool printed', tool({ content: [{ type: 'text', text: ' ' }], contentReplace: true })],
    ['content that was omitted', tool({ contentOmitted: true })],
    ['content that was emptied', tool({ contentReplace: true })],
    ['a title of 1,024 bytes', tool({ title: 't'.repeat(1024) })],
    ['a piece of 4,096 bytes', chunkOf('x'.repeat(4096))],
    ['128 entries', plan(Array.from({ length: 128 }, () => entry))],
    ['a full context window', usage({ contextWindowUsed: 10, contextWindowSize: 10 })],
    ['usage without a context window', usage({ inputTokens: 1 })],
    ['a diagnostic', diagnostic({})],
    ['a permission', permission({})],
    ['an answer', result({})],
    ['a failure', failed({ stopReason: 'max_tokens' })],
    ['a cancellation', ['cancelled', 'cancelled', { stopReason: 'cancelled', reason: 'task_timeout' }]],
  ];
  test.each(right)('which takes %s', async (_, [type, member, payload]) => {
    const end = type === 'update' || type === 'permission_requested' ? completed : '';
    expect((await read(accepted + line(2, type, member, payload) + end)).at(1)?.type).toBe(type);
  });

  const wrong: readonly Case[] = [
    ['a tool call without status', tool({ status: undefined })],
    ['omitted content beside content', tool({ content: [block], contentOmitted: true })],
    ['omitted content beside contentReplace', tool({ contentReplace: true, contentOmitted: true })],
    ['an id with a space', tool({ toolCallID: 'a b' })],
    ['an id of 254 bytes', tool({ toolCallID: 'a'.repeat(254) })],
    ['a title of 1,025 bytes', tool({ title: 't'.repeat(1025) })],
    ['a kind of 129 bytes', tool({ kind: 'k'.repeat(129) })],
    ['a block of empty text', tool({ content: [{ type: 'text', text: '' }] })],
    ['a block of text with a link', tool({ content: [{ ...block, uri: 'https://example.org' }] })],
    ['a link that is not absolute', tool({ content: [{ type: 'resource_link', uri: '/a' }] })],
    ['a link with a password', tool({ content: [{ type: 'resource_link', uri: 'https://a:b@example.org' }] })],
    ['a piece of 4,097 bytes', chunkOf('x'.repeat(4097))],
    ['an empty piece', chunkOf('')],
    ['a plan without entries', plan([])],
    ['129 entries', plan(Array.from({ length: 129 }, () => entry))],
    ['a blank entry', plan([{ ...entry, content: ' ' }])],
    ['an entry of an unknown status', plan([{ ...entry, status: 'cancelled' }])],
    ['a context window of size 0', usage({ contextWindowUsed: 0, contextWindowSize: 0 })],
    ['more than a context window', usage({ contextWindowUsed: 11, contextWindowSize: 10 })],
    ['a context window without size', usage({ contextWindowUsed: 1 })],
    ['two payloads', ['update', 'update', { kind: 'tool_call', toolCall: call, assistantMessage: { text: 'x' } }]],
    ['the payload of another kind', ['update', 'update', { kind: 'plan', toolCall: call }]],
    ['a diagnostic without message', diagnostic({ message: ' ' })],
    ['a diagnostic of 8,193 bytes', diagnostic({ message: 'm'.repeat(8193) })],
    ['a permission without title', permission({ title: '' })],
    ['a permission with an option twice', permission({ options: [option, option] })],
    [
      'a permission of 17 options',
      permission({ options: Array.from({ length: 17 }, (_, i) => ({ ...option, optionID: `o${i}` })) }),
    ],
    ['a permission that has ended', permission({ expiresAt: '2026-11-29T16:50:31Z' })],
    ['an answer without content', result({ content: [] })],
    ['an answer of blanks', result({ content: [{ type: 'text', text: '\u0085 ' }] })],
    ['a failure that may be sent again', failed({ retryable: true })],
    ['a failure with the stop reason of a success', failed({ stopReason: 'end_turn' })],
    ['a failure without message', failed({ message: '' })],
    ['a cancellation with another stop reason', ['cancelled', 'cancelled', { stopReason: 'end_turn' }]],
  ];
  test.each(wrong)('which refuses %s', async (_, [type, member, payload]) => {
    await expect(read(accepted + line(2, type, member, payload))).rejects.toMatchObject({ code: 'line' });
  });

  test.each([
    ['that has ended', { ...lease, expiresAt: '2026-11-29T16:50:31.5Z' }],
    ['that has not begun', { ...lease, issuedAt: '2026-11-29T16:50:37Z' }],
  ])('which refuses the acceptance of a lease %s', async (_, other) => {
    const begin = line(1, 'accepted', 'accepted', { acceptedAt: '2026-11-29T16:50:31.5Z', lease: other, acpVersion: 'acp.v1' });
    await expect(read(begin)).rejects.toMatchObject({ code: 'line' });
  });

  test('which counts the bytes of a result as Go writes them', async () => {
    const end = line(2, ...result({ content: [{ type: 'text', text: '<'.repeat(100) }] }));
    expect((await read(accepted + end, 7, { maxTerminalResultBytes: 700 })).at(-1)?.type).toBe('completed');
    await expect(read(accepted + end, 7, { maxTerminalResultBytes: 600 })).rejects.toMatchObject({ code: 'size' });
  });
});
