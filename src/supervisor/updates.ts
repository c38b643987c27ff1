import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import type { ContentBlock } from '../harness/prompts.js';
import type { Update, Usage } from '../harness/events.js';
import { cutBytes } from '../lib/text.js';

/** What one `session/update` of an agent says, as far as it is passed on. */
export type AgentUpdate =
  { readonly kind: 'text'; readonly text: string; readonly final: boolean } | { readonly kind: 'event'; readonly update: Update };

const most = { title: 1024, toolText: 16 * 1024, blocks: 16, planEntries: 256, planText: 1024, id: 512 } as const;
const mark = '…';
const toolStatuses = ['pending', 'in_progress', 'completed', 'failed'] as const;

/** `undefined` for what nobody needs to see (thoughts, commands, modes) and for what is malformed. Texts are bounded. */
export function readUpdate(update: Json | undefined): AgentUpdate | undefined {
  if (!isObject(update)) return undefined;
  switch (update['sessionUpdate']) {
    case 'agent_message_chunk':
      return textOf(update);
    case 'tool_call':
    case 'tool_call_update':
      return event(toolCall(update['sessionUpdate'], update));
    case 'plan':
      return event(plan(update));
    case 'usage_update':
      return event({
        kind: 'usage',
        usage: { ...count('contextWindowUsed', update['used']), ...count('contextWindowSize', update['size']) },
      });
    default:
      return undefined;
  }
}

/** The same update without what a tool has printed, which is said to be left out. */
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

function textOf({ content, _meta: meta }: JsonObject): AgentUpdate | undefined {
  if (!isObject(content) || content['type'] !== 'text' || typeof content['text'] !== 'string') return undefined;
  const codex = isObject(meta) ? meta['codex'] : undefined;
  return { kind: 'text', text: content['text'], final: isObject(codex) && codex['phase'] === 'final_answer' };
}

function toolCall(kind: 'tool_call' | 'tool_call_update', update: JsonObject): Update | undefined {
  const { toolCallId: id, title, kind: toolKind, status, content } = update;
  if (typeof id !== 'string' || id === '') return undefined;
  const blocks = Array.isArray(content) ? toolContent(content as readonly Json[]) : undefined;
  return {
    kind,
    toolCall: {
      toolCallID: cutBytes(id, most.id, ''),
      ...(typeof title === 'string' ? { title: cutBytes(title, most.title, mark) } : {}),
      ...(typeof toolKind === 'string' ? { kind: cutBytes(toolKind, 60, '') } : {}),
      ...pick(
        'status',
        toolStatuses.find((known) => known === status),
      ),
      ...(blocks && blocks.content.length > 0 ? { content: blocks.content, contentReplace: true } : {}),
      ...(blocks?.omitted ? { contentOmitted: true } : {}),
    },
  };
}

/** Text of a tool's output; what is no text, too much or too long is left out, and said to be. */
function toolContent(blocks: readonly Json[]): { readonly content: readonly ContentBlock[]; readonly omitted: boolean } {
  const texts = blocks.map((block) => {
    const inner = isObject(block) && block['type'] === 'content' ? block['content'] : undefined;
    return isObject(inner) && inner['type'] === 'text' && typeof inner['text'] === 'string' ? inner['text'] : undefined;
  });
  const kept = texts.filter((text) => text !== undefined).slice(0, most.blocks);
  const omitted = kept.length < blocks.length || kept.some((text) => Buffer.byteLength(text) > most.toolText);
  return { content: kept.map((text) => ({ type: 'text', text: cutBytes(text, most.toolText, mark) })), omitted };
}

function plan({ entries }: JsonObject): Update | undefined {
  if (!Array.isArray(entries) || entries.length > most.planEntries) return undefined;
  const read = (entries as readonly Json[]).map((entry) => {
    const { content, priority, status } = isObject(entry) ? entry : {};
    if (typeof content !== 'string' || typeof status !== 'string' || status === '') return undefined;
    return {
      content: cutBytes(content, most.planText, mark),
      ...(typeof priority === 'string' ? { priority: cutBytes(priority, 60, '') } : {}),
      status: cutBytes(status, 60, ''),
    };
  });
  const valid = read.filter((entry) => entry !== undefined);
  return valid.length === read.length ? { kind: 'plan', plan: { entries: valid } } : undefined;
}

function count<K extends keyof Usage>(name: K, value: Json | undefined): Partial<Record<K, number>> {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? pick(name, value) : {};
}

function pick<K extends string, V>(name: K, value: V | undefined): Partial<Record<K, V>> {
  return value === undefined ? {} : ({ [name]: value } as Partial<Record<K, V>>);
}
