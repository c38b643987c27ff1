import { describe, expect, test } from '@jest/globals';
import { readEvents } from '../../src/harness/event-stream.js';
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
const limits = { maxEventLineBytes: 4096, maxUpdateEventsPerSecond: 3 };

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
const completed = line(9, 'completed', 'completed', {
  stopReason: 'end_turn',
  result: { content: [{ type: 'text', text: 'x' }], model: 'm', usage: {} },
});

async function read(text: string, size = 7): Promise<readonly PromptEvent[]> {
  const bytes = Buffer.from(text);
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
  }
  const events: PromptEvent[] = [];
  for await (const event of readEvents(chunks(), expected, limits)) events.push(event);
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
      accepted + line(2, 'update', 'update', { kind: 'plan', plan: { entries: [] } }, undefined, { promptID: 'prompt-2' }),
      'identity',
    ],
    ['with a blank line', `${accepted}\n${completed}`, 'line'],
    ['with an unknown member', accepted + chunk(2).replace('"kind"', '"more":1,"kind"'), 'line'],
    ['with a member twice', accepted + chunk(2).replace('"kind"', '"kind":"plan","kind"'), 'line'],
    ['with a payload of another type', accepted + chunk(2).replace('"type":"update"', '"type":"failed"'), 'line'],
    ['with a line that is too long', accepted + chunk(2).replace('"x"', `"${'x'.repeat(5000)}"`), 'size'],
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
    line(2, 'outcome_unknown', 'outcomeUnknown', { code: 'settlement_unproven', message: '', retryable });
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
