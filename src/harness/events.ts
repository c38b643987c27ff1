import {
  checked,
  digest,
  filledText,
  flag,
  identifier,
  instantText,
  integer,
  list,
  oneOf,
  optional,
  record,
  text,
  WireError,
} from '../lib/decode.js';
import type { Decoded, Decoder } from '../lib/decode.js';
import { milliseconds, notAfter } from '../lib/instant.js';
import { acpVersion, bounds, protocol } from './protocol.js';
import { contentBlock, lease } from './prompts.js';
import type { ContentBlock } from './prompts.js';
import { isObject } from '../lib/json.js';
import type { Path } from '../lib/json.js';
import { isBlank } from '../lib/text.js';

/** Bytes, blocks and entries of one update. Source: the client of the reference, which refuses more. */
export const updateBounds = {
  chunk: 4096,
  title: 1024,
  kind: 128,
  blocks: 128,
  planEntries: 128,
  planText: 4096,
  priority: 64,
} as const;

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

/** What a text, a link or an artifact must have, and what it must not. */
function blockProblem({ type, text: said = '', uri = '', artifact }: ContentBlock): string | undefined {
  switch (type) {
    case 'text':
      return said !== '' && uri === '' && artifact === undefined ? undefined : 'text and nothing else in a block of text';
    case 'resource_link':
      return isAbsolute(uri) && said === '' && artifact === undefined ? undefined : 'an absolute uri without user information';
    default:
      return artifact !== undefined && said === '' && uri === '' ? undefined : 'an artifact and nothing else';
  }
}

function isAbsolute(uri: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:/i.test(uri) || !URL.canParse(uri)) return false;
  const { username, password } = new URL(uri);
  return username === '' && password === '';
}

/** What a tool printed may be white space; an answer may not. */
const toolBlock = checked(contentBlock, blockProblem);
const answerBlock = checked(toolBlock, ({ type, text: said = '' }) =>
  type === 'text' && isBlank(said) ? 'an answer that is not blank' : undefined,
);

export const toolStatuses = ['pending', 'in_progress', 'completed', 'failed'] as const;

const toolCall = checked(
  record({
    toolCallID: identifier,
    title: optional(text({ max: updateBounds.title })),
    kind: optional(text({ max: updateBounds.kind })),
    status: oneOf(...toolStatuses),
    content: optional(list(toolBlock, { max: updateBounds.blocks })),
    contentReplace: optional(flag),
    contentOmitted: optional(flag),
  }),
  ({ content = [], contentReplace = false, contentOmitted = false }) =>
    contentOmitted && (content.length > 0 || contentReplace) ? 'contentOmitted without content and contentReplace' : undefined,
);

export const planStatuses = ['pending', 'in_progress', 'completed'] as const;

const plan = record({
  entries: list(
    record({
      content: filledText(updateBounds.planText),
      priority: optional(text({ max: updateBounds.priority })),
      status: oneOf(...planStatuses),
    }),
    { min: 1, max: updateBounds.planEntries },
  ),
});

const usage = checked(
  record({
    inputTokens: optional(integer(0)),
    outputTokens: optional(integer(0)),
    cachedInputTokens: optional(integer(0)),
    contextWindowUsed: optional(integer(0)),
    contextWindowSize: optional(integer(1)),
  }),
  ({ contextWindowUsed: used, contextWindowSize: size }) =>
    (used === undefined) === (size === undefined) && (used ?? 0) <= (size ?? 0)
      ? undefined
      : 'contextWindowUsed together with a contextWindowSize that is not smaller',
);
export type Usage = Decoded<typeof usage>;

const code = filledText(128);
const message = filledText(8 * 1024);

/** The one payload of each kind of update. */
const updatePayloads = {
  assistant_message_chunk: 'assistantMessage',
  tool_call: 'toolCall',
  tool_call_update: 'toolCall',
  plan: 'plan',
  usage: 'usage',
  diagnostic: 'diagnostic',
} as const;

const update = checked(
  record({
    kind: oneOf('assistant_message_chunk', 'tool_call', 'tool_call_update', 'plan', 'usage', 'diagnostic'),
    assistantMessage: optional(record({ text: text({ min: 1, max: updateBounds.chunk }) })),
    toolCall: optional(toolCall),
    plan: optional(plan),
    usage: optional(usage),
    diagnostic: optional(record({ code, message, retryable: optional(flag) })),
  }),
  ({ kind, ...payload }) =>
    Object.keys(payload).join() === updatePayloads[kind] ? undefined : `${updatePayloads[kind]} and no other payload`,
);
export type Update = Decoded<typeof update>;

const permissionRequested = checked(
  record({
    requestID: identifier,
    toolCallID: optional(identifierOrEmpty),
    toolName: optional(identifierOrEmpty),
    title: filledText(1024),
    options: list(
      record({
        optionID: identifier,
        name: filledText(512),
        kind: oneOf('allow_once', 'allow_always', 'reject_once', 'reject_always'),
      }),
      { min: 1, max: 16 },
    ),
    expiresAt: instantText,
  }),
  ({ options }) => (new Set(options.map(({ optionID }) => optionID)).size === options.length ? undefined : 'each optionID once'),
);

function identifierOrEmpty(value: unknown, path: Path): string {
  return value === '' ? value : identifier(value, path);
}

/** No prompt that was accepted is ever sent again. */
const never: Decoder<false> = (value, path) => {
  if (flag(value, path)) throw new WireError('message', { at: 'event', field: 'retryable', allowed: 'false' });
  return false;
};

const accepted = checked(
  record({ acceptedAt: instantText, lease, acpVersion: oneOf(acpVersion) }),
  ({ acceptedAt, lease: { issuedAt, expiresAt } }) =>
    milliseconds(issuedAt) <= milliseconds(acceptedAt) + bounds.clockSkew && !notAfter(expiresAt, acceptedAt)
      ? undefined
      : 'a lease that has begun and not ended',
);

const failed = checked(record({ stopReason: optional(text({ max: 64 })), code, message, retryable: never }), ({ stopReason }) =>
  stopReason === 'end_turn' || stopReason === 'cancelled' ? 'the stopReason of a failure' : undefined,
);

const payloads = {
  accepted,
  update,
  permissionRequested,
  completed: record({
    stopReason: oneOf('end_turn'),
    result: record({
      content: list(answerBlock, { min: 1, max: updateBounds.blocks }),
      model: optional(text({ max: 256 })),
      usage: optional(usage),
    }),
  }),
  cancelled: record({ stopReason: oneOf('cancelled'), reason: optional(text({ max: 8 * 1024 })) }),
  failed,
  outcomeUnknown: record({ code, message, forcedTermination: optional(flag), retryable: never }),
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
  const event = { protocol, type, identity: line['identity'], payload: (line as unknown as Payloads)[member] } as PromptEvent;
  if (event.type === 'permission_requested' && notAfter(event.payload.expiresAt, event.identity.timestamp))
    throw new WireError('message', { at: 'event', field: 'expiresAt', allowed: 'an instant after the event' });
  return event;
};

/** The line of an event, with its end. */
export function eventLine({ type, identity, payload }: PromptEvent): string {
  return `${JSON.stringify({ protocol, type, identity, [members[type]]: payload })}\n`;
}

/** Bytes of a payload as Go writes it: some characters that JavaScript leaves alone become escapes. */
export function payloadSize(payload: PromptEvent['payload']): number {
  return Buffer.byteLength(JSON.stringify(payload).replace(/[<>&\u2028\u2029]/g, '\\u0000'));
}

export function isTerminal({ type }: Pick<PromptEvent, 'type'>): boolean {
  return type !== 'accepted' && type !== 'update' && type !== 'permission_requested';
}
