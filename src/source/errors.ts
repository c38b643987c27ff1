import { CodedError } from '../lib/errors.js';
import { digest, flag, integer, oneOf, optional, record, text } from '../lib/decode.js';
import type { Decoded } from '../lib/decode.js';

interface Kind {
  readonly status: number;
  /** Whether the same request may succeed later. Such an answer is not journaled. */
  readonly retryable: boolean;
}

const final = (status: number): Kind => ({ status, retryable: false });
const passing = (status: number): Kind => ({ status, retryable: true });

/** Every code of an error answer. Source: repository.md §3.2; those of one forge's refusal and of a refused tree are ours. */
export const publisherCodes = {
  invalid_request: final(400),
  invalid_credential_ref: final(400),
  host_not_allowed: final(400),
  unauthorized: final(403),
  request_too_large: final(413),
  busy: passing(429),
  operation_conflict: final(409),
  source_moved: final(409),
  source_ref_absent: final(409),
  source_ref_ambiguous: final(409),
  credential_refused: final(422),
  repository_absent: final(422),
  tls_failed: final(422),
  redirect_refused: final(422),
  address_refused: final(422),
  tree_refused: final(422),
  internal_error: passing(500),
  workspace_archive_failed: final(500),
  workspace_object_missing: final(500),
  workspace_object_corrupt: final(500),
  scm_failure: passing(502),
  scm_timeout: passing(502),
  scm_output_limit: final(502),
  source_ref_invalid: final(502),
  source_corrupt: final(502),
  scm_unavailable: passing(503),
  operation_interrupted: passing(503),
  git_unavailable: final(503),
  storage_full: passing(507),
  journal_full: passing(507),
  journal_unavailable: passing(507),
} as const satisfies Record<string, Kind>;
export type PublisherCode = keyof typeof publisherCodes;

const names = Object.keys(publisherCodes) as readonly PublisherCode[];
export const isPublisherCode = (value: unknown): value is PublisherCode => names.some((name) => name === value);

/** Why a tree is refused. */
export const treeRefusals = [
  'submodule',
  'unsafe_link',
  'reserved_name',
  'path',
  'too_many_entries',
  'file_too_large',
  'tree_too_large',
  'encoding',
] as const;

/** `path` is escaped and cut. It is never text of a forge. */
export const errorDetail = record({
  reason: oneOf(...treeRefusals),
  path: optional(text({ max: 1024 })),
  limit: optional(integer(0)),
  found: optional(integer(0)),
});
export type ErrorDetail = Decoded<typeof errorDetail>;

/** Body of every answer that is no success. */
export const errorAnswer = record({
  code: oneOf(...names),
  message: text({ max: 8 * 1024 }),
  retryable: flag,
  operationId: optional(text({ max: 512 })),
  requestDigest: optional(digest),
  detail: optional(errorDetail),
});
export type ErrorAnswer = Decoded<typeof errorAnswer>;

/** `unreachable`, `timeout`, `aborted`: no answer. `protocol`: an answer that is none of this protocol. */
export type PublisherErrorCode = PublisherCode | 'unreachable' | 'timeout' | 'aborted' | 'protocol';

/** A call to the publisher failed. No credential, token or capability is part of the text. */
export class PublisherError extends CodedError<PublisherErrorCode> {
  readonly retryable: boolean;
  /** HTTP status; 0 = there was none. */
  readonly status: number;
  /** Whether the publisher may have read the request. `false` proves that nothing was sent. */
  readonly mayHaveArrived: boolean;
  readonly detail: ErrorDetail | undefined;

  constructor(
    code: PublisherErrorCode,
    where: {
      readonly at: string;
      readonly says: string;
      readonly retryable: boolean;
      readonly mayHaveArrived: boolean;
      readonly status?: number;
      readonly detail?: ErrorDetail | undefined;
    },
    options?: { readonly cause?: unknown },
  ) {
    super(code, { at: where.at, says: where.says }, options);
    this.retryable = where.retryable;
    this.status = where.status ?? 0;
    this.mayHaveArrived = where.mayHaveArrived;
    this.detail = where.detail;
  }
}
