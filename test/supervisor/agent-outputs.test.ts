/** What an agent says, and what of it reaches the strict reader of the protocol. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { PromptEvent } from '../../src/harness/events.js';
import { canonicalToolCallID } from '../../src/supervisor/updates.js';
import { mostStrayLines } from '../../src/supervisor/stray-lines.js';
import { textOf } from '../support/supervisor-calls.js';
import { answerLine, errorLine, playPrompt, secret, updateLine } from '../support/played-agent.js';

const ended = answerLine({ stopReason: 'end_turn' });
const text = (said: unknown) => ({ type: 'content', content: { type: 'text', text: said } });

/** Updates that come of what an agent says. */
async function updatesOf(...said: readonly object[]) {
  const { events } = await playPrompt([...said.map(updateLine), ended]);
  return events.flatMap((event) => (event.type === 'update' ? [event.payload] : []));
}

async function toolCallOf(said: object) {
  return (await updatesOf({ sessionUpdate: 'tool_call_update', toolCallId: 't', ...said })).at(0)?.toolCall;
}

describe('a tool call', () => {
  test('without a status is pending, and its update is in progress', async () => {
    const [call, update] = await updatesOf(
      { sessionUpdate: 'tool_call', toolCallId: 't', title: 'ls' },
      { sessionUpdate: 'tool_call_update', toolCallId: 't', title: 'ls -l' },
    );
    expect([call?.toolCall?.status, update?.toolCall?.status]).toEqual(['pending', 'in_progress']);
  });

  test('with a status that the protocol does not know has the usual one', async () => {
    expect(await toolCallOf({ status: 'exploded', title: 'x' })).toMatchObject({ status: 'in_progress' });
  });

  test('that is updated without a status, title, kind and content is not sent', async () => {
    expect(await updatesOf({ sessionUpdate: 'tool_call_update', toolCallId: 't', rawOutput: {}, title: '' })).toEqual([]);
  });

  test('has a title of at most 1,024 bytes, mark included', async () => {
    const titles = ['t'.repeat(1024), 't'.repeat(1025), '🙂'.repeat(300), `${'t'.repeat(1020)}🙂🙂`];
    for (const title of titles) {
      const sent = (await toolCallOf({ title }))?.title ?? '';
      expect(Buffer.byteLength(sent)).toBeLessThanOrEqual(1024);
      expect(sent === title || sent.endsWith('…')).toBe(true);
    }
    expect((await toolCallOf({ title: titles[0] }))?.title).toBe(titles[0]);
  });

  test('shows its content as a whole or says that it is omitted, never both', async () => {
    expect(await toolCallOf({ content: [text('a'), text('b')] })).toEqual({
      toolCallID: 't',
      status: 'in_progress',
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
      contentReplace: true,
    });
    const omitted = { toolCallID: 't', status: 'in_progress', contentOmitted: true };
    const cases = [
      [text('a'), { type: 'diff', path: '/a' }],
      [text('a'), text('b'.repeat(20_000))],
      [text('a'), { type: 'content', content: { type: 'image', data: '' } }],
      Array.from({ length: 17 }, () => text('a')),
    ];
    for (const content of cases) expect(await toolCallOf({ content })).toEqual(omitted);
  });

  test('whose content makes too long a line says that it is omitted', async () => {
    const content = Array.from({ length: 16 }, () => text('\u0001'.repeat(16_384)));
    expect(await toolCallOf({ title: 'binary', content })).toEqual({
      ...{ toolCallID: 't', title: 'binary', status: 'in_progress', contentOmitted: true },
    });
  });

  test('has no blocks of empty text', async () => {
    expect(await toolCallOf({ content: [text(''), text('a'), text('')] })).toMatchObject({ content: [{ text: 'a' }] });
    expect(await toolCallOf({ content: [text('')] })).toEqual({ toolCallID: 't', status: 'in_progress', contentReplace: true });
  });
});

describe('the id of a tool call', () => {
  const idOf = (id: string) => canonicalToolCallID(id, (said) => said.replaceAll(secret, '[redacted]'));

  test('stays as it is if the protocol allows it', () => {
    for (const id of ['call_1', 'a'.repeat(253), '~!"#']) expect(idOf(id)).toBe(id);
  });

  test('is replaced by one that the protocol allows otherwise, the same each time', async () => {
    const ids = ['two words', 'é', 'a'.repeat(254), ' ', '\n', '\ud800', `with ${secret}`, `with-${secret}`];
    const sent = await updatesOf(
      ...[...ids, ...ids].map((toolCallId) => ({ sessionUpdate: 'tool_call', toolCallId, title: 'x' })),
    );
    const canonical = sent.map(({ toolCall }) => toolCall?.toolCallID ?? '');
    expect(canonical.slice(0, ids.length)).toEqual(canonical.slice(ids.length));
    expect(new Set(canonical).size).toBe(ids.length);
    for (const id of canonical) expect(id).toMatch(/^tool-call-sha256-[0-9a-f]{64}$/);
  });

  test('is never that of another id, also of one that is written to look like it', () => {
    const forged = fc.oneof(
      hostileID,
      hostileID.map(idOf),
      hostileID.map((id) => idOf(idOf(id))),
    );
    fc.assert(
      fc.property(forged, forged, (one, other) => {
        expect(idOf(one)).toMatch(/^[\x21-\x7e]{1,253}$/);
        expect(idOf(one) === idOf(other)).toBe(one === other);
      }),
      { numRuns: 3_000 },
    );
    expect(idOf('[redacted]')).not.toBe(idOf(secret));
    expect(idOf('\ud800')).not.toBe(idOf('\udfff'));
  });
});

describe('an answer', () => {
  test('goes out in pieces of at most 4,096 bytes that split no character, and nothing of it is lost', async () => {
    const said = `${'a'.repeat(4096 + 4095)}${'🙂é'.repeat(3000)}`;
    const updates = await updatesOf({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: said } });
    const pieces = updates.map(({ assistantMessage }) => assistantMessage?.text ?? '');
    expect(Math.max(...pieces.map((piece) => Buffer.byteLength(piece)))).toBeLessThanOrEqual(4096);
    expect(pieces.join('')).toBe(said);
    for (const piece of pieces) expect(piece.isWellFormed()).toBe(true);
  });

  test('of blanks only is the sentence for a prompt without text', async () => {
    for (const blanks of ['', ' ', '\n\t ', '\u0085\u00a0\u2003\u3000']) {
      const said = updateLine({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: blanks } });
      expect(await resultOf(said, ended)).toBe('Prompt completed without textual output.');
    }
  });

  test('of characters that Go writes as escapes is too large before it is so for its reader', async () => {
    const said = updateLine({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: '<'.repeat(300_000) } });
    const { events } = await playPrompt([said, ended]);
    expect(events.at(-1)).toMatchObject({ type: 'failed', payload: { code: 'terminal_result_too_large' } });
  });

  test('that is said faster than its reader takes it waits for its turn', async () => {
    const said = updateLine({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'w'.repeat(100_000) } });
    const { events } = await playPrompt([said, ended], { limits: { maxUpdateEventsPerSecond: 30 } });
    expect(events.map((event) => (event.type === 'update' ? event.payload.assistantMessage?.text : '')).join('')).toHaveLength(
      100_000,
    );
  });

  async function resultOf(...lines: readonly string[]) {
    const end = (await playPrompt(lines)).events.at(-1);
    return end?.type === 'completed' ? end.payload.result.content[0]?.text : undefined;
  }
});

describe('left out is', () => {
  const entry = { content: 'a', priority: 'high', status: 'pending' };
  const plans: readonly (readonly [string, unknown])[] = [
    ['without entries', []],
    ['of 129 entries', Array.from({ length: 129 }, () => entry)],
    ['with an entry that is blank', [entry, { ...entry, content: '\u00a0' }]],
    ['with a status that nobody knows', [{ ...entry, status: 'cancelled' }]],
    ['that is no list', { entry }],
  ];
  test.each(plans)('a plan %s', async (_, entries) => {
    expect(await updatesOf({ sessionUpdate: 'plan', entries })).toEqual([]);
  });

  const usages: readonly (readonly [string, object])[] = [
    ['of a context window without size', { used: 0, size: 0 }],
    ['beyond the context window', { used: 11, size: 10 }],
    ['without its size', { used: 1 }],
    ['without what is used', { size: 1 }],
    ['that is no number of tokens', { used: 0.5, size: 1 }],
  ];
  test.each(usages)('usage %s', async (_, usage) => {
    expect(await updatesOf({ sessionUpdate: 'usage_update', ...usage })).toEqual([]);
  });

  test('nothing of a plan or of usage that is right', async () => {
    const updates = await updatesOf(
      { sessionUpdate: 'plan', entries: Array.from({ length: 128 }, () => entry) },
      { sessionUpdate: 'usage_update', used: 10, size: 10 },
    );
    expect(updates).toMatchObject([{ kind: 'plan' }, { usage: { contextWindowUsed: 10, contextWindowSize: 10 } }]);
  });
});

/** Any sequence of UTF-16 units, lone surrogates included. */
const units = (maxLength: number) =>
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength }).map((all) => String.fromCharCode(...all));
const repeated = (max: number) =>
  fc
    .tuple(fc.constantFrom('a', '🙂', 'é', '<', '\u0001', '\ud83d', ' ', secret), fc.integer({ min: 1, max }))
    .map(([unit, n]) => unit.repeat(n));
const hostileText = fc.oneof(
  { weight: 6, arbitrary: fc.string({ maxLength: 40 }) },
  { weight: 6, arbitrary: units(40) },
  { weight: 6, arbitrary: repeated(60) },
  { weight: 1, arbitrary: repeated(9_000) },
  fc.constantFrom('', ' ', '\u0085', '\ufeff', '\0', '\u2028', '</', secret, `a${secret}b`, '__proto__', '"$'),
);
const hostileID = fc.oneof(
  fc.stringMatching(/^[\x21-\x7e]{1,20}$/),
  hostileText,
  fc.stringMatching(/^tool-call-sha256-[0-9a-f]{64}$/),
);
const junk = fc.oneof(fc.constantFrom(null, true, 0, -1, 1.5, 1e300, 2 ** 53), fc.jsonValue({ maxDepth: 3 }));
const said = fc.oneof({ weight: 4, arbitrary: hostileText }, { weight: 1, arbitrary: junk });
const block = fc.oneof(
  fc.record({ type: fc.constant('content'), content: fc.record({ type: fc.constantFrom('text', 'image', 'x'), text: said }) }),
  fc.record({ type: fc.constantFrom('diff', 'terminal', 'content'), path: said }),
  junk,
);
const status = fc.oneof(fc.constantFrom('pending', 'in_progress', 'completed', 'failed', 'cancelled', ''), junk);
const toolCall = fc.record(
  {
    sessionUpdate: fc.constantFrom('tool_call', 'tool_call_update'),
    toolCallId: fc.oneof({ weight: 9, arbitrary: hostileID }, { weight: 1, arbitrary: junk }),
    ...{ title: said, kind: said, status, content: fc.oneof(fc.array(block, { maxLength: 18 }), junk), rawInput: junk },
  },
  { requiredKeys: ['sessionUpdate', 'toolCallId'] },
);
const chunk = fc.record({
  sessionUpdate: fc.constant('agent_message_chunk'),
  content: fc.oneof(
    { weight: 9, arbitrary: fc.record({ type: fc.constant('text'), text: said }) },
    { weight: 1, arbitrary: junk },
  ),
  _meta: fc.oneof(fc.constant({ codex: { phase: 'final_answer' } }), junk),
});
const entry = fc.record({ content: said, priority: said, status }, { requiredKeys: ['content'] });
const plan = fc.record({
  sessionUpdate: fc.constant('plan'),
  entries: fc.oneof(
    fc.array(fc.oneof(entry, junk), { maxLength: 5 }),
    fc.nat(140).map((n) => Array.from({ length: n }, () => ({ content: 'a', status: 'pending' }))),
    junk,
  ),
});
const amount = fc.oneof(fc.nat(20), fc.maxSafeInteger(), junk);
const usage = fc.record(
  { sessionUpdate: fc.constant('usage_update'), used: amount, size: amount },
  { requiredKeys: ['sessionUpdate'] },
);
const update = fc.oneof(
  { weight: 6, arbitrary: toolCall },
  { weight: 4, arbitrary: chunk },
  { weight: 2, arbitrary: plan },
  { weight: 1, arbitrary: usage },
  { weight: 1, arbitrary: junk },
);
const line = fc.oneof(
  { weight: 30, arbitrary: update.map(updateLine) },
  { weight: 1, arbitrary: junk.map((params) => JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params })) },
  {
    weight: 1,
    arbitrary: fc.constant(JSON.stringify({ jsonrpc: '2.0', id: 'q', method: 'session/request_permission', params: {} })),
  },
);
const tokens = fc.record({ inputTokens: amount, outputTokens: amount, cachedReadTokens: amount }, { requiredKeys: [] });
/** Lines that are no messages are skipped up to a bound. */
const tooManyTimes = (text: string) => Array.from({ length: mostStrayLines + 1 }, () => text).join('\n');
const answer = fc.oneof(
  { weight: 40, arbitrary: tokens.map((used) => answerLine({ stopReason: 'end_turn', usage: used })) },
  { weight: 1, arbitrary: said.map((stopReason) => answerLine({ stopReason })) },
  { weight: 1, arbitrary: fc.record({ code: said, message: said }).map(errorLine) },
  { weight: 1, arbitrary: fc.constantFrom('no message', '[]', '{"jsonrpc":"1.0"}', '\u0000').map(tooManyTimes) },
);

const outputs = 10_000;
const outputsOfPrompt = 20;

test(`${outputs} outputs of an agent, hostile ones included, make streams that the strict reader takes, and tell no secret`, async () => {
  const kinds = new Map<string, number>();
  const prompt = fc.tuple(fc.array(line, { minLength: outputsOfPrompt, maxLength: outputsOfPrompt }), answer);
  await fc.assert(
    fc.asyncProperty(prompt, async ([lines, end]) => {
      const { events, bytes, session } = await playPrompt([...lines, end]);
      expect(bytes).not.toContain(secret);
      expect(session.state).toBe(events.at(-1)?.type === 'completed' ? 'validating' : 'poisoned');
      for (const event of events) kinds.set(kindOf(event), (kinds.get(kindOf(event)) ?? 0) + 1);
    }),
    { numRuns: outputs / outputsOfPrompt },
  );
  // The outputs reach every kind of event, or the property would say little.
  const reached = [
    'tool_call',
    'tool_call_update',
    'assistant_message_chunk',
    'plan',
    'usage',
    'completed',
    'failed',
    'outcome_unknown',
  ];
  for (const kind of reached) expect([kind, (kinds.get(kind) ?? 0) > 2]).toEqual([kind, true]);
});

function kindOf(event: PromptEvent): string {
  return event.type === 'update' ? event.payload.kind : event.type;
}

describe('the answer', () => {
  const said = (text: string, messageId?: string, phase?: string) => ({
    sessionUpdate: 'agent_message_chunk',
    content: { type: 'text', text },
    ...(messageId === undefined ? {} : { messageId }),
    ...(phase === undefined ? {} : { _meta: { codex: { phase } } }),
  });
  const tool = { sessionUpdate: 'tool_call', toolCallId: 't', title: 'ls' };
  const retry = { sessionUpdate: 'session_info_update', _meta: { codex: { error: { message: 'x', willRetry: true } } } };

  test.each<readonly [string, readonly object[], string]>([
    ['is all text of an agent that names no messages', [said('a'), tool, said('b')], 'ab'],
    ['is the last message', [said('a', '1'), said('b', '2'), said('c', '2')], 'bc'],
    ['is the last final message', [said('a', '1', 'final_answer'), said('b', '2', 'commentary')], 'a'],
    ['is no notice beside a message', [said('Warning: x'), said('a', '1'), said('Warning: y')], 'a'],
    ['is a notice where there is no message', [said('Warning: x')], 'Warning: x'],
    ['has no text of a retried turn under the same id', [said('bro', '1'), retry, said('whole', '1')], 'whole'],
    ['has no text of a retried turn under another id', [said('bro', '1'), retry, said('whole', '2')], 'whole'],
    ['has no text of a retried turn without ids', [said('bro'), retry, said('whole')], 'whole'],
    ['has no final text of a retried turn', [said('bro', '1', 'final_answer'), retry, said('a', '1', 'final_answer')], 'a'],
    ['keeps what came before a tool call', [said('a'), tool, said('bro'), retry, said('b')], 'ab'],
    ['is the last complete message if the retried turn says nothing', [said('a', '1'), tool, said('bro', '2'), retry], 'a'],
    ['is whole after many retries', [said('x', '1'), retry, said('y', '1'), retry, retry, said('z', '1')], 'z'],
  ])('%s', async (_what, updates, answer) => {
    const { events } = await playPrompt([...updates.map(updateLine), ended]);
    expect(textOf(events)).toBe(answer);
  });

  test('is said to begin again when a turn is retried, but not when nothing was said before', async () => {
    const diagnostics = (await updatesOf(retry, said('a'), retry, said('b'))).flatMap(({ diagnostic }) => diagnostic ?? []);
    expect(diagnostics).toEqual([{ code: 'model_retry', message: 'the model broke off; it is asked again', retryable: true }]);
  });
});
