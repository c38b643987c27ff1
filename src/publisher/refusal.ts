import { CodedError } from '../lib/errors.js';
import { WireError } from '../lib/decode.js';
import type { Digest } from '../lib/sha256.js';
import { errorDetail, isPublisherCode, publisherCodes } from '../source/errors.js';
import type { ErrorAnswer, ErrorDetail, PublisherCode } from '../source/errors.js';

/** What a caller hears, by code. It is never text of a forge, of git or of a request. */
const sayings: Readonly<Record<PublisherCode, string>> = {
  invalid_request: 'the request is none of this protocol',
  invalid_credential_ref: 'the credential and its reference do not fit together',
  host_not_allowed: 'the host of the repository is none of the allowed forges',
  unauthorized: 'the request is not authorized',
  request_too_large: 'the request is too large',
  busy: 'as many operations run as may run',
  operation_conflict: 'the operation was begun with another request',
  source_moved: 'the source moved since it was resolved',
  source_ref_absent: 'the repository has no such ref',
  source_ref_ambiguous: 'the repository has a branch and a tag of that name',
  credential_refused: 'the forge refuses the credential',
  repository_absent: 'the forge has no such repository',
  tls_failed: 'the certificate of the forge is not trusted',
  redirect_refused: 'the forge answers with a redirect',
  address_refused: 'the forge has an address that is not allowed',
  tree_refused: 'the tree cannot become a workspace',
  internal_error: 'the publisher failed',
  workspace_archive_failed: 'the workspace could not be archived',
  workspace_object_missing: 'the artifact is missing',
  workspace_object_corrupt: 'the artifact cannot be made again as it was',
  scm_failure: 'the forge could not be read',
  scm_timeout: 'the forge did not answer in time',
  scm_output_limit: 'the forge sent more than is read',
  source_ref_invalid: 'the forge sent an invalid ref',
  source_corrupt: 'the repository is corrupt',
  scm_unavailable: 'the forge cannot be reached',
  operation_interrupted: 'the operation was interrupted',
  git_unavailable: 'git cannot be run',
  storage_full: 'no room for another artifact',
  journal_full: 'no room for another operation',
  journal_unavailable: 'the journal cannot be written',
};

/** An operation that ends without a success. */
export class Refusal extends CodedError<PublisherCode> {
  readonly status: number;
  readonly retryable: boolean;
  readonly detail: ErrorDetail | undefined;

  constructor(
    code: PublisherCode,
    more: { readonly status?: number; readonly says?: string; readonly detail?: ErrorDetail; readonly cause?: unknown } = {},
  ) {
    super(code, { at: 'publisher', says: more.says ?? sayings[code] }, { cause: more.cause });
    this.status = more.status ?? publisherCodes[code].status;
    this.retryable = publisherCodes[code].retryable;
    this.detail = more.detail;
  }

  answer(about: { readonly operationId?: string; readonly requestDigest?: Digest } = {}): ErrorAnswer {
    return {
      code: this.code,
      message: this.finding.says ?? sayings[this.code],
      retryable: this.retryable,
      ...about,
      ...(this.detail === undefined ? {} : { detail: this.detail }),
    };
  }
}

/** Any error as what a caller may hear of it. A code of the protocol is kept, and a detail that has its form. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const { code, detail } = error as { readonly code?: unknown; readonly detail?: unknown };
  if (!isPublisherCode(code)) return new Refusal('internal_error', { cause: error });
  return new Refusal(code, { cause: error, ...detailOf(detail) });
}

function detailOf(detail: unknown): { readonly detail?: ErrorDetail } {
  if (detail === undefined) return {};
  try {
    return { detail: errorDetail(detail, ['detail']) };
  } catch (error) {
    if (error instanceof WireError) return {};
    throw error;
  }
}
