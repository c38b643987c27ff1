import type { Digest } from '../domain/digests.js';
import { settlementDigest } from '../domain/digests.js';
import {
  anyJson,
  checked,
  flag,
  identifier,
  instantText,
  integer,
  list,
  map,
  oneOf,
  optional,
  record,
  text,
} from '../lib/decode.js';
import type { Decoded } from '../lib/decode.js';
import { mutationMetadata } from './metadata.js';
import { policyMembers } from './profile.js';
import { bounds, protocol } from './protocol.js';
import { classification, terminalEvents } from './replay.js';
import { artifactReference } from './sessions.js';

/** How long a prompt may run without word from the controller. Each renewal has the next generation. */
export const lease = record({ generation: integer(1), issuedAt: instantText, expiresAt: instantText });
export type Lease = Decoded<typeof lease>;

/** What a prompt may do, bound to that prompt and its lease. */
const mcpAuthorization = record({
  runtimeSessionUID: identifier,
  sessionGeneration: integer(1),
  taskUID: identifier,
  taskAttempt: integer(1),
  promptID: identifier,
  leaseGeneration: integer(1),
  ...policyMembers,
  expiresAt: instantText,
});
export type McpAuthorization = Decoded<typeof mcpAuthorization>;

export const contentBlock = record({
  type: oneOf('text', 'resource_link', 'artifact_ref'),
  text: optional(text()),
  uri: optional(text({ max: 4096 })),
  name: optional(text({ max: 1024 })),
  mimeType: optional(text({ max: 256 })),
  artifact: optional(artifactReference),
});
export type ContentBlock = Decoded<typeof contentBlock>;

const promptInput = checked(
  record({
    content: list(contentBlock, { min: 1, max: 128 }),
    metadata: optional(map(anyJson, { max: 128 })),
  }),
  ({ content }) =>
    content.reduce((size, block) => size + Buffer.byteLength(block.text ?? ''), 0) <= bounds.promptContent
      ? undefined
      : `at most ${bounds.promptContent} bytes of text`,
);
export type PromptInput = Decoded<typeof promptInput>;

export const startPromptRequest = record({
  protocol: oneOf(protocol),
  metadata: mutationMetadata,
  lease,
  mcpAuthorization,
  input: promptInput,
});
export type StartPromptRequest = Decoded<typeof startPromptRequest>;

export const renewLeaseRequest = record({
  protocol: oneOf(protocol),
  metadata: mutationMetadata,
  expectedLeaseGeneration: integer(1),
  lease,
  mcpAuthorization,
});
export type RenewLeaseRequest = Decoded<typeof renewLeaseRequest>;

export const renewLeaseResponse = record({ protocol: oneOf(protocol), classification, lease });
export type RenewLeaseResponse = Decoded<typeof renewLeaseResponse>;

const cancelReasons = ['user_requested', 'task_timeout', 'stream_disconnected', 'controller_shutdown', 'lease_expired'] as const;
export type CancelReason = (typeof cancelReasons)[number];

export const cancelPromptRequest = record({
  protocol: oneOf(protocol),
  metadata: mutationMetadata,
  reason: oneOf(...cancelReasons),
  settlementDeadline: instantText,
});
export type CancelPromptRequest = Decoded<typeof cancelPromptRequest>;

/** The outcome of each terminal event, and the stop reasons that belong to one alone. */
export const outcomes = {
  completed: 'succeeded',
  cancelled: 'cancelled',
  failed: 'failed',
  outcome_unknown: 'outcome_unknown',
} as const;
const stopReasons = { completed: 'end_turn', cancelled: 'cancelled' } as const;

/** How a prompt ended. `settledAt` is the timestamp of its terminal event, to the letter. */
const settlement = checked(
  record({
    terminalEvent: oneOf(...terminalEvents),
    outcome: oneOf('succeeded', 'failed', 'cancelled', 'outcome_unknown'),
    stopReason: optional(text({ min: 1, max: 64 })),
    settledAt: instantText,
  }),
  ({ terminalEvent, outcome, stopReason }) => {
    if (outcome !== outcomes[terminalEvent]) return `outcome ${outcomes[terminalEvent]} of ${terminalEvent}`;
    const named = Object.entries(stopReasons).find(([, known]) => known === stopReason)?.[0];
    const own = terminalEvent === 'outcome_unknown' || terminalEvent === (named ?? 'failed');
    return own ? undefined : `the stopReason of ${terminalEvent}`;
  },
);
export type Settlement = Decoded<typeof settlement>;

export const digestOfSettlement = (value: Settlement): Digest => settlementDigest({ ...value });

export const cancelPromptResponse = checked(
  record({
    protocol: oneOf(protocol),
    classification,
    barrierState: oneOf('settled', 'forced_terminated', 'outcome_unknown'),
    settlementProven: flag,
    settlement,
    invalidatedPermissionRequests: integer(0),
    liveDescendantCount: integer(0),
    forcedTermination: flag,
  }),
  ({ barrierState, settlementProven: proven, settlement: { outcome }, forcedTermination, liveDescendantCount }) => {
    if (proven !== (barrierState !== 'outcome_unknown')) return 'proof of a settlement, and of nothing else';
    if (proven && liveDescendantCount > 0) return 'no live descendants of a proven settlement';
    if (!proven && outcome !== 'outcome_unknown') return 'an unknown outcome without proof';
    const forced = barrierState === 'forced_terminated';
    return !proven || forced === forcedTermination ? undefined : 'a forcedTermination that the barrierState tells';
  },
);
export type CancelPromptResponse = Decoded<typeof cancelPromptResponse>;

/** What is wrong with the times of a prompt, or of the renewal of its lease, as a sentence. Source: dispatch.md §5.7. */
export function leaseProblem(
  request: {
    readonly metadata: { readonly expiresAt: string };
    readonly lease: Lease;
    readonly mcpAuthorization: { readonly expiresAt: string; readonly leaseGeneration: number };
  },
  limits: { readonly minPromptLeaseMillis: number; readonly maxPromptLeaseMillis: number },
  now: number,
): string | undefined {
  const [requestEnd, grantEnd] = [Date.parse(request.metadata.expiresAt), Date.parse(request.mcpAuthorization.expiresAt)];
  const [start, end] = [Date.parse(request.lease.issuedAt), Date.parse(request.lease.expiresAt)];
  if (request.mcpAuthorization.leaseGeneration !== request.lease.generation)
    return 'the authorization is for another lease generation';
  if (requestEnd > grantEnd) return 'the request expires after its authorization';
  if (grantEnd > end) return 'the authorization expires after the lease';
  if (end - start < limits.minPromptLeaseMillis || end - start > limits.maxPromptLeaseMillis)
    return `the lease lasts ${end - start} ms; allowed: ${limits.minPromptLeaseMillis} to ${limits.maxPromptLeaseMillis} ms`;
  if (start > now + bounds.clockSkew) return 'the lease has not begun';
  return end > now ? undefined : 'the lease has ended';
}
