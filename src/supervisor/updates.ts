import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { isIdentifier } from '../lib/decode.js';
import { planStatuses, toolStatuses, updateBounds } from '../harness/events.js';
import type { Update, Usage } from '../harness/events.js';
import type { ContentBlock } from '../harness/prompts.js';
import { sha256Hex } from '../lib/sha256.js';
import { fitBytes, isBlank } from '../lib/text.js';
import type { AnswerPiece } from './answer-text.js';

/** What one `session/update` of an agent says, as far as it is passed on. */
export type AgentUpdate =
  | ({ readonly kind: 'text' } & AnswerPiece)
  | { readonly kind: 'event'; readonly update: Update }
  /** The agent asks the model again, from the beginning of what broke off. */
  | { readonly kind: 'retry' };

/** Takes secrets out of a text. */
type Redact = (text: string) => string;

/** Our bounds, within those of the protocol. */
const most = { messageId: 256, kind: 64, toolText: 16 * 1024, blocks: 16, planText: 1024 } as const;
const mark = '…';

/**
 * `undefined` for what nobody needs to see (thoughts, commands, modes) and for what the protocol has no form for. The texts of an event are
 * redacted, then bounded; a chunk of the answer is neither, because its pieces are joined first.
 */
export function readUpdate(update: Json | undefined, redact: Redact): AgentUpdate | undefined {
  if (!isObject(update)) return undefined;
  switch (update['sessionUpdate']) {
    case 'agent_message_chunk':
      return textOf(update);
    case 'tool_call':
    case 'tool_call_update':
      return event(toolCall(update['sessionUpdate'], update, redact));
    case 'plan':
      return event(plan(update, redact));
    case 'usage_update':
      return event(contextWindow(update));
    case 'session_info_update':
      return isRetry(update) ? { kind: 'retry' } : undefined;
    default:
      return undefined;
  }
}

/** The same update, saying that what a tool printed is left out. */
export function withoutContent(update: Update): Update {
  if (!update.toolCall) return update;
  const { content: _content, contentReplace: _replace, ...toolCall } = update.toolCall;
  return { ...update, toolCall: { ...toolCall, contentOmitted: true } };
}

/** Tokens that a prompt cost, from its answer. */
export function readUsage(usage: Json | undefined): Usage {
  if (!isObject(usage)) return {};
  return {
    ...count('inputTokens', usage['inputTokens']),
    ...count('outputTokens', usage['outputTokens']),
    ...count('cachedInputTokens', usage['cachedReadTokens']),
  };
}

function event(update: Update | undefined): AgentUpdate | undefined {
  return update && { kind: 'event', update };
}

function textOf(update: JsonObject): AgentUpdate | undefined {
  const { content, messageId: id } = update;
  const text = textOfBlock(content);
  const message = typeof id === 'string' && id !== '' && id.length <= most.messageId ? id : undefined;
  return text ? { kind: 'text', text, final: codexMeta(update)?.['phase'] === 'final_answer', message } : undefined;
}

/** Codex announces that it asks the model again after an answer that broke off. */
function isRetry(update: JsonObject): boolean {
  const error = codexMeta(update)?.['error'];
  return isObject(error) && error['willRetry'] === true;
}

/** What Codex' adapter adds to an update. */
function codexMeta({ _meta: meta }: JsonObject): JsonObject | undefined {
  const codex = isObject(meta) ? meta['codex'] : undefined;
  return isObject(codex) ? codex : undefined;
}

/** A status is always set. An update that says nothing is dropped. */
function toolCall(kind: 'tool_call' | 'tool_call_update', update: JsonObject, redact: Redact): Update | undefined {
  const { toolCallId: id, title, kind: toolKind, status, content } = update;
  if (typeof id !== 'string' || id === '') return undefined;
  const known = toolStatuses.find((one) => one === status);
  const said = {
    ...bounded('title', title, redact, updateBounds.title, mark),
    ...bounded('kind', toolKind, redact, most.kind, ''),
    ...(Array.isArray(content) ? toolContent(content as readonly Json[], redact) : {}),
  };
  if (kind === 'tool_call_update' && known === undefined && Object.keys(said).length === 0) return undefined;
  const usual = kind === 'tool_call' ? 'pending' : 'in_progress';
  return { kind, toolCall: { toolCallID: canonicalToolCallID(id, redact), ...said, status: known ?? usual } };
}

const derivedID = 'tool-call-sha256-';

/**
 * An agent's id as the protocol allows it. An allowed one stays; any other becomes its digest, and so does one that looks like a digest,
 * so that two ids are never the same here. UTF-16 tells lone surrogates apart, which UTF-8 does not.
 */
export function canonicalToolCallID(id: string, redact: Redact): string {
  const stays = isIdentifier(id) && !id.startsWith(derivedID) && redact(id) === id;
  return stays ? id : `${derivedID}${sha256Hex(Buffer.from(id, 'utf16le'))}`;
}

/** Text of a tool's output. Sent whole, or marked as omitted. */
function toolContent(
  blocks: readonly Json[],
  redact: Redact,
): { readonly content?: readonly ContentBlock[]; readonly contentReplace: true } | { readonly contentOmitted: true } {
  if (blocks.length > most.blocks) return { contentOmitted: true };
  const texts = blocks.map((block) =>
    isObject(block) && block['type'] === 'content' ? textOfBlock(block['content']) : undefined,
  );
  const whole = texts.every((text) => text !== undefined && Buffer.byteLength(redact(text)) <= most.toolText);
  if (!whole) return { contentOmitted: true };
  const content = texts.flatMap((text) => (text ? [{ type: 'text', text: redact(text) } as const] : []));
  return { ...(content.length > 0 ? { content } : {}), contentReplace: true };
}

function textOfBlock(block: Json | undefined): string | undefined {
  return isObject(block) && block['type'] === 'text' && typeof block['text'] === 'string' ? block['text'] : undefined;
}

/** A plan that is not right as a whole is dropped. */
function plan({ entries }: JsonObject, redact: Redact): Update | undefined {
  if (!Array.isArray(entries) || entries.length === 0 || entries.length > updateBounds.planEntries) return undefined;
  const read = (entries as readonly Json[]).map((entry) => {
    const { content, priority, status } = isObject(entry) ? entry : ({} as JsonObject);
    const known = planStatuses.find((one) => one === status);
    if (typeof content !== 'string' || isBlank(content) || known === undefined) return undefined;
    const shown = fitBytes(redact(content), most.planText, mark);
    return { content: shown, ...bounded('priority', priority, redact, updateBounds.priority, ''), status: known };
  });
  const valid = read.filter((entry) => entry !== undefined);
  return valid.length === read.length ? { kind: 'plan', plan: { entries: valid } } : undefined;
}

function contextWindow({ used, size }: JsonObject): Update | undefined {
  const usage = { ...count('contextWindowUsed', used), ...count('contextWindowSize', size) };
  const { contextWindowUsed, contextWindowSize } = usage;
  if (contextWindowUsed === undefined || contextWindowSize === undefined || contextWindowSize === 0) return undefined;
  return contextWindowUsed <= contextWindowSize ? { kind: 'usage', usage } : undefined;
}

function bounded<K extends string>(
  name: K,
  value: Json | undefined,
  redact: Redact,
  bytes: number,
  end: string,
): Partial<Record<K, string>> {
  return typeof value === 'string' && value !== '' ? pick(name, fitBytes(redact(value), bytes, end)) : {};
}

function count<K extends keyof Usage>(name: K, value: Json | undefined): Partial<Record<K, number>> {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? pick(name, value) : {};
}

function pick<K extends string, V>(name: K, value: V | undefined): Partial<Record<K, V>> {
  return value === undefined ? {} : ({ [name]: value } as Partial<Record<K, V>>);
}
