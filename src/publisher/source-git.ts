import type { ErrorDetail, PublisherCode } from '../source/errors.js';
import type { PrepareRequest, PrepareResponse, ResolveRequest, ResolveResponse } from '../source/messages.js';

/**
 * Git, as the publisher's server sees it. `credential`: the header line for the forge; `undefined` = none. A failure that the caller may
 * hear of is a {@link SourceFailure}. Nothing of an operation is left when its promise has settled.
 */
export interface SourceGit {
  readonly resolve: (request: ResolveRequest, credential: string | undefined, signal: AbortSignal) => Promise<ResolveResponse>;
  /** Writes the archive to `target`, a new file, fsynced, and tells what it is. */
  readonly prepare: (
    request: PrepareRequest,
    credential: string | undefined,
    target: string,
    signal: AbortSignal,
  ) => Promise<PrepareResponse>;
  /** Throws when there is no git that can be used. */
  readonly version: () => Promise<string>;
  readonly close: () => Promise<void>;
}

/** What is read of an error; its text stays inside. */
export interface SourceFailure {
  readonly code: PublisherCode;
  readonly detail?: ErrorDetail | undefined;
}
