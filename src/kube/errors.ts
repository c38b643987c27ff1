import { CodedError } from '../lib/errors.js';
import type { Json } from '../lib/json.js';
import { sayingOf } from './sayings.js';
import type { KubeCause } from './sayings.js';

/** Why a request to the API server did not do what it was for. */
export type KubeErrorCode =
  /** No answer in time; the server may have done it all the same. */
  | 'timeout'
  /** The caller gave up, or may not write any more. */
  | 'aborted'
  /** No connection, or it broke; after a write the outcome is unknown. */
  | 'unreachable'
  /** 401 */
  | 'unauthorized'
  /** 403: RBAC, admission or quota. */
  | 'forbidden'
  /** 404, and the answer names an object. */
  | 'not-found'
  /** 404 without an object: the server does not know the kind, or the path. */
  | 'kind-missing'
  /** 409 on a creation. */
  | 'already-exists'
  /** 409: a precondition or a field manager. */
  | 'conflict'
  /** 410: a watch or a list must start anew. */
  | 'gone'
  /** 400, 415 or 422: the object is not what the server accepts. */
  | 'invalid'
  /** 429: wait for `retryAfter`. */
  | 'too-many-requests'
  /** 5xx, and what nobody expects. */
  | 'server-error';

/** A request failed. The server's own words are in the text, without the values that they quote. */
export class KubeError extends CodedError<KubeErrorCode> {
  /** HTTP status; 0 = there was none. */
  readonly status: number;
  readonly causes: readonly KubeCause[];
  /** `Status.reason`. Absent: the answer was no `Status` of an API server. */
  readonly reason?: string;
  /** Whole seconds that the server asked to wait. */
  readonly retryAfter?: number;

  constructor(
    code: KubeErrorCode,
    where: {
      readonly at: string;
      readonly says: string;
      readonly status?: number;
      readonly causes?: readonly KubeCause[];
      readonly reason?: string | undefined;
      readonly retryAfter?: number;
    },
    options?: { readonly cause?: unknown },
  ) {
    super(code, { at: where.at, says: sayingOf(where) }, options);
    this.status = where.status ?? 0;
    this.causes = where.causes ?? [];
    if (where.reason !== undefined) this.reason = where.reason;
    if (where.retryAfter !== undefined) this.retryAfter = where.retryAfter;
  }
}

/** A `Status` object as the API server answers with, as far as it is one. */
export interface ServerStatus {
  readonly kind?: Json;
  readonly message?: string;
  readonly reason?: string;
  readonly details?: {
    readonly name?: string;
    readonly kind?: string;
    readonly causes?: readonly KubeCause[];
    readonly retryAfterSeconds?: number;
  };
}

/**
 * The code of an answer. A missing object and a missing kind are both 404 and mean opposite things: only the former answers with a
 * Status that names an object. Source: workload.md §13 item 26.
 */
export function codeOf(status: number, { reason, details, message }: ServerStatus): KubeErrorCode {
  switch (status) {
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden';
    case 404:
      return details?.name === undefined ? 'kind-missing' : 'not-found';
    case 409:
      return reason === 'AlreadyExists' ? 'already-exists' : 'conflict';
    case 410:
      return 'gone';
    case 429:
      return 'too-many-requests';
    case 400:
    case 415:
    case 422:
      return 'invalid';
    default:
      // Strict apply of an unknown field answers 500.
      return status === 500 && (message ?? '').includes('field not declared in schema') ? 'invalid' : 'server-error';
  }
}

/**
 * The authorizer of the API server refused the request. Quota and admission answer 403 as well, but do not name a verb; a 403 without a `Status`
 * comes from something else than the API server.
 */
export function isNotGranted(error: unknown): error is KubeError {
  return (
    error instanceof KubeError &&
    error.code === 'forbidden' &&
    error.reason === 'Forbidden' &&
    /\bcannot \S+ (?:resource|path)\b/.test(error.message)
  );
}

/** Nothing new is taken in a namespace that is being deleted. */
export function isNamespaceEnding(error: unknown): boolean {
  return error instanceof KubeError && error.causes.some(({ reason }) => reason === 'NamespaceTerminating');
}

/** Seconds of a Retry-After, which may be a date: nobody's clock is trusted, so that says nothing. */
export function secondsOf(retryAfter: unknown): number | undefined {
  return /^\d{1,9}$/.test(String(retryAfter)) ? Number(retryAfter) : undefined;
}

const longestAskedWait = 600_000;

/** Milliseconds that an error asks to wait, but no more than ten minutes: `0` when it does not ask. */
export function askedWait(error: unknown): number {
  return error instanceof KubeError ? Math.min((error.retryAfter ?? 0) * 1000, longestAskedWait) : 0;
}
