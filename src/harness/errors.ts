import { CodedError } from '../lib/errors.js';
import { checked, flag, oneOf, optional, record, text } from '../lib/decode.js';
import type { Decoded } from '../lib/decode.js';
import { protocol } from './protocol.js';
import { classification } from './replay.js';
import type { Classification } from './replay.js';

const errorCodes = [
  'invalid_request',
  'unauthenticated',
  'forbidden',
  'expired',
  'stale_fence',
  'digest_conflict',
  'already_accepted',
  'settled',
  'rate_limited',
  'session_poisoned',
  'outcome_unknown',
] as const;
export type ErrorCode = (typeof errorCodes)[number];

/** Bytes of a message that the reference takes. */
export const longestMessage = 8 * 1024;

/** The code of an error that tells how a request relates to those before it. Nothing is wrong with a fresh one. */
function codeOfClass(found: Classification['class']): ErrorCode | undefined {
  if (found === 'fresh') return undefined;
  return found === 'duplicate' ? 'invalid_request' : found;
}

/** Body of every answer that is no success, and of `already_accepted` and `settled`, which come with status 200. */
export const errorResponse = checked(
  record({
    protocol: oneOf(protocol),
    code: oneOf(...errorCodes),
    message: text({ max: 64 * 1024 }),
    classification: optional(classification),
    retryable: flag,
  }),
  ({ code, classification: found }) =>
    found && code !== codeOfClass(found.class)
      ? `code ${codeOfClass(found.class) ?? 'none'} with class ${found.class}`
      : undefined,
);
export type ErrorResponse = Decoded<typeof errorResponse>;

/** Whether the server may have seen a request that failed. Only `zero_bytes_written` proves that it did not. Source: dispatch.md §5.9. */
export type WriteEvidence = 'unknown' | 'zero_bytes_written' | 'request_written' | 'request_write_ambiguous';

/** `configuration`, `validation`: nothing was sent. `http`: the server answered with an error. `protocol`, `stream`: with nonsense. */
export type HarnessErrorKind =
  'configuration' | 'validation' | 'transport' | 'timeout' | 'aborted' | 'http' | 'protocol' | 'stream';

/** A call to a supervisor failed. Tokens are never part of the text. */
export class HarnessError extends CodedError<HarnessErrorKind> {
  readonly evidence: WriteEvidence;
  /** HTTP status; 0 = there was none. */
  readonly status: number;
  /** What the server said, if it was an error of the protocol. */
  readonly response: ErrorResponse | undefined;

  constructor(
    kind: HarnessErrorKind,
    where: {
      readonly at: string;
      readonly says: string;
      readonly evidence: WriteEvidence;
      readonly status?: number;
      readonly response?: ErrorResponse;
    },
    options?: { readonly cause?: unknown },
  ) {
    super(kind, { at: where.at, says: where.says }, options);
    this.evidence = where.evidence;
    this.status = where.status ?? 0;
    this.response = where.response;
  }

  /** Whether the same request may be sent again. What has an unknown outcome never may. */
  get retryable(): boolean {
    return this.response?.retryable === true && this.response.code !== 'outcome_unknown';
  }
}
