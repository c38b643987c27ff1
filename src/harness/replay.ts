import { checked, digest, identifier, instantText, oneOf, optional, record } from '../lib/decode.js';
import type { Decoded } from '../lib/decode.js';
import { fenceMismatches, fenceMismatch } from './fence.js';
import type { Fence } from './fence.js';
import { nanoseconds } from '../lib/instant.js';
import type { Instant } from '../lib/instant.js';
import type { MutationMetadata } from './metadata.js';

export const terminalEvents = ['completed', 'cancelled', 'failed', 'outcome_unknown'] as const;
export type TerminalEvent = (typeof terminalEvents)[number];

const operationPhases = ['recorded', 'applied', 'accepted', 'settled', 'deleted'] as const;
export type OperationPhase = (typeof operationPhases)[number];

/** What is remembered of an operation. */
export const operationRecord = checked(
  record({
    operationID: identifier,
    requestDigest: digest,
    phase: oneOf(...operationPhases),
    terminalEvent: optional(oneOf(...terminalEvents)),
    recordedAt: instantText,
    updatedAt: instantText,
  }),
  ({ phase, terminalEvent }) =>
    (phase === 'settled') === (terminalEvent !== undefined)
      ? undefined
      : 'a terminalEvent of what is settled, and of nothing else',
);
export type OperationRecord = Decoded<typeof operationRecord>;

const replayClasses = ['fresh', 'stale_fence', 'expired', 'digest_conflict', 'already_accepted', 'settled', 'duplicate'] as const;

const [absent, present, either] = [['absent'], ['present'], ['absent', 'present']] as const;
const nothing = { fenceMismatch: absent, phase: absent, terminalEvent: absent };
const unsettled = { fenceMismatch: absent, phase: present, terminalEvent: absent };

/** Which members a class has. */
const membersOfClass: Readonly<
  Record<(typeof replayClasses)[number], Record<'fenceMismatch' | 'phase' | 'terminalEvent', readonly ('absent' | 'present')[]>>
> = {
  fresh: nothing,
  expired: nothing,
  stale_fence: { ...nothing, fenceMismatch: present },
  duplicate: unsettled,
  already_accepted: unsettled,
  settled: { ...unsettled, terminalEvent: present },
  digest_conflict: { ...unsettled, terminalEvent: either },
};

/** What a request is in view of those before it. `fresh` means "no record", never "may be repeated". */
export const classification = checked(
  record({
    class: oneOf(...replayClasses),
    fenceMismatch: optional(oneOf(...fenceMismatches)),
    phase: optional(oneOf(...operationPhases)),
    terminalEvent: optional(oneOf(...terminalEvents)),
  }),
  (found) => {
    const wanted = membersOfClass[found.class];
    const members = { fenceMismatch: found.fenceMismatch, phase: found.phase, terminalEvent: found.terminalEvent };
    const wrong = Object.entries(members).find(
      ([name, value]) => !wanted[name as keyof typeof members].includes(value === undefined ? 'absent' : 'present'),
    );
    return wrong ? `${wanted[wrong[0] as keyof typeof members].join(' or ')} ${wrong[0]} in class ${found.class}` : undefined;
  },
);
export type Classification = Decoded<typeof classification>;

export const fresh: Classification = { class: 'fresh' };

/** The first that holds: other fence, expired, unknown, other digest, accepted, settled, repeated. Source: dispatch.md §5.5. */
export function classify(
  request: Pick<MutationMetadata, 'fence' | 'requestDigest' | 'expiresAt'>,
  current: Fence,
  known: OperationRecord | undefined,
  now: Instant,
): Classification {
  const session = request.fence.runtimeSessionUID !== undefined && current.runtimeSessionUID !== undefined;
  const mismatch = fenceMismatch(request.fence, current, { session });
  if (mismatch !== undefined) return { class: 'stale_fence', fenceMismatch: mismatch };
  if (isPast(request.expiresAt, now)) return { class: 'expired' };
  if (!known) return fresh;
  const seen = { phase: known.phase, ...(known.terminalEvent === undefined ? {} : { terminalEvent: known.terminalEvent }) };
  if (known.requestDigest !== request.requestDigest) return { class: 'digest_conflict', ...seen };
  if (known.phase === 'accepted') return { class: 'already_accepted', ...seen };
  if (known.phase === 'settled') return { class: 'settled', ...seen };
  return { class: 'duplicate', ...seen };
}

function isPast(expiresAt: Instant, now: Instant): boolean {
  const [end, at] = [nanoseconds(expiresAt), nanoseconds(now)];
  return end === undefined || at === undefined || at >= end;
}
