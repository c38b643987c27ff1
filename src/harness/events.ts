import { digest, flag, identifier, instantText, integer, list, oneOf, optional, record, text, WireError } from './decode.js';
import type { Decoded, Decoder } from './decode.js';
import { acpVersion, protocol } from './protocol.js';
import { contentBlock, lease } from './prompts.js';
import { isObject } from '../lib/json.js';

/** Who speaks: repeated on every line, so that no line of another prompt can be taken for one of this. Source: dispatch.md §5.8. */
const eventIdentity = record({
  runtimeInstanceID: identifier,
  supervisorBootID: identifier,
  runtimeSessionUID: identifier,
  runtimeSessionGeneration: integer(1),
  taskUID: identifier,
  taskAttempt: integer(1),
  promptID: identifier,
  sequence: integer(1),
  requestDigest: digest,
  timestamp: instantText,
});
export type EventIdentity = Decoded<typeof eventIdentity>;

const toolStatuses = ['pending', 'in_progress', 'completed', 'failed'] as const;

const usage = record({
  inputTokens: optional(integer(0)),
  outputTokens: optional(integer(0)),
  cachedInputTokens: optional(integer(0)),
  contextWindowUsed: optional(integer(0)),
  contextWindowSize: optional(integer(0)),
});
export type Usage = Decoded<typeof usage>;

const update = record({
  kind: oneOf('assistant_message_chunk', 'tool_call', 'tool_call_update', 'plan', 'usage', 'diagnostic'),
  assistantMessage: optional(record({ text: text() })),
  toolCall: optional(
    record({
      toolCallID: text({ min: 1, max: 1024 }),
      title: optional(text({ max: 4096 })),
      kind: optional(text({ max: 64 })),
      status: optional(oneOf(...toolStatuses)),
      content: optional(list(contentBlock, { max: 128 })),
      contentReplace: optional(flag),
      contentOmitted: optional(flag),
    }),
  ),
  plan: optional(
    record({
      entries: list(
        record({ content: text({ max: 4096 }), priority: optional(text({ max: 64 })), status: text({ min: 1, max: 64 }) }),
        { max: 256 },
      ),
    }),
  ),
  usage: optional(usage),
  diagnostic: optional(
    record({ code: text({ min: 1, max: 256 }), message: text({ max: 16 * 1024 }), retryable: optional(flag) }),
  ),
});
export type Update = Decoded<typeof update>;

const permissionRequested = record({
  requestID: identifier,
  toolCallID: optional(text({ max: 1024 })),
  toolName: optional(text({ max: 256 })),
  title: text({ max: 4096 }),
  options: list(
    record({
      optionID: text({ min: 1, max: 1024 }),
      name: text({ max: 1024 }),
      kind: oneOf('allow_once', 'allow_always', 'reject_once', 'reject_always'),
    }),
    { min: 1, max: 32 },
  ),
  expiresAt: instantText,
});

/** What happened to such a prompt is not known, so it is never sent again. */
const never: Decoder<false> = (value, path) => {
  if (flag(value, path)) throw new WireError('message', { at: 'event', field: 'retryable', allowed: 'false' });
  return false;
};

const failure = { code: text({ min: 1, max: 256 }), message: text({ max: 64 * 1024 }) } as const;

const payloads = {
  accepted: record({ acceptedAt: instantText, lease, acpVersion: oneOf(acpVersion) }),
  update,
  permissionRequested,
  completed: record({
    stopReason: oneOf('end_turn'),
    result: record({ content: list(contentBlock, { max: 128 }), model: optional(text({ max: 1024 })), usage: optional(usage) }),
  }),
  cancelled: record({ stopReason: text({ min: 1, max: 64 }), reason: optional(text({ max: 1024 })) }),
  failed: record({ stopReason: optional(text({ min: 1, max: 64 })), ...failure, retryable: flag }),
  outcomeUnknown: record({ ...failure, forcedTermination: optional(flag), retryable: never }),
} as const;
type Payloads = { readonly [K in keyof typeof payloads]: Decoded<(typeof payloads)[K]> };

interface Event<T extends string, K extends keyof Payloads> {
  readonly protocol: typeof protocol;
  readonly type: T;
  readonly identity: EventIdentity;
  readonly payload: Payloads[K];
}

/** One line of a prompt's stream. `payload` is the member that belongs to the type. */
export type PromptEvent =
  | Event<'accepted', 'accepted'>
  | Event<'update', 'update'>
  | Event<'permission_requested', 'permissionRequested'>
  | Event<'completed', 'completed'>
  | Event<'cancelled', 'cancelled'>
  | Event<'failed', 'failed'>
  | Event<'outcome_unknown', 'outcomeUnknown'>;

const members = {
  accepted: 'accepted',
  update: 'update',
  permission_requested: 'permissionRequested',
  completed: 'completed',
  cancelled: 'cancelled',
  failed: 'failed',
  outcome_unknown: 'outcomeUnknown',
} as const satisfies Record<PromptEvent['type'], keyof Payloads>;

/** The event of one line. Throws {@link WireError}. */
export const promptEvent: Decoder<PromptEvent> = (value, path) => {
  const type = isObject(value) ? value['type'] : undefined;
  if (typeof type !== 'string' || !Object.hasOwn(members, type))
    throw new WireError('message', { at: 'event', field: 'type', allowed: Object.keys(members).join(', ') });
  const member = members[type as PromptEvent['type']];
  const line = record({
    protocol: oneOf(protocol),
    type: oneOf(type),
    identity: eventIdentity,
    [member]: payloads[member],
  })(value, path);
  return { protocol, type, identity: line['identity'], payload: (line as unknown as Payloads)[member] } as PromptEvent;
};

/** The line of an event, with its end. */
export function eventLine({ type, identity, payload }: PromptEvent): string {
  return `${JSON.stringify({ protocol, type, identity, [members[type]]: payload })}\n`;
}

export function isTerminal(event: PromptEvent): boolean {
  return event.type !== 'accepted' && event.type !== 'update' && event.type !== 'permission_requested';
}
