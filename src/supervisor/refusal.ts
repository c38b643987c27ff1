import { CodedError } from '../lib/errors.js';
import { longestMessage } from '../harness/errors.js';
import type { ErrorCode, ErrorResponse } from '../harness/errors.js';
import { protocol } from '../harness/protocol.js';
import type { Classification } from '../harness/replay.js';
import { fitBytes } from '../lib/text.js';

const statuses: Readonly<Record<ErrorCode, number>> = {
  invalid_request: 400,
  unauthenticated: 401,
  forbidden: 403,
  expired: 410,
  stale_fence: 410,
  digest_conflict: 409,
  // As an error these two mean: nothing to do, it has happened. Source: dispatch.md §5.5.
  already_accepted: 200,
  settled: 200,
  rate_limited: 429,
  session_poisoned: 500,
  outcome_unknown: 500,
};

/** A request that is answered with an error of the protocol. */
export class Refusal extends CodedError<ErrorCode> {
  readonly status: number;
  readonly body: ErrorResponse;

  /** `says`: what is wrong, for the caller, without secrets. @default status: the usual one of the code; retryable: false */
  constructor(
    code: ErrorCode,
    says: string,
    more: {
      readonly status?: number;
      readonly retryable?: boolean;
      readonly classification?: Classification;
      readonly cause?: unknown;
    } = {},
  ) {
    super(code, { at: 'request', says }, { cause: more.cause });
    this.status = more.status ?? statuses[code];
    const { classification } = more;
    this.body = {
      protocol,
      code,
      message: fitBytes(says, longestMessage, '…'),
      ...(classification ? { classification } : {}),
      retryable: more.retryable ?? false,
    };
  }
}

export const busy = (says: string): Refusal => new Refusal('rate_limited', says, { retryable: true });

/** The error that a repeated, late or misdirected request gets. Its code follows from its class. */
export function refusalOf(classification: Classification): Refusal {
  switch (classification.class) {
    case 'stale_fence':
      return new Refusal(
        'stale_fence',
        `the fence is for another ${(classification.fenceMismatch ?? 'instance').replaceAll('_', ' ')}`,
        { classification },
      );
    case 'expired':
      return new Refusal('expired', 'the request has expired', { classification });
    case 'already_accepted':
      return new Refusal('already_accepted', 'the operation runs already', { classification });
    case 'settled':
      return new Refusal('settled', 'the operation is settled already', { classification });
    case 'digest_conflict':
      return new Refusal('digest_conflict', 'the operation was sent before, with another body', { classification });
    default:
      return new Refusal('invalid_request', 'the operation was sent before', { status: 409, classification });
  }
}
