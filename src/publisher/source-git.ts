import type { PrepareRequest, PrepareResponse, ResolveRequest, ResolveResponse } from '../source/messages.js';

/**
 * The part of the publisher that runs git. `credential`: the whole header line for the forge; `undefined` = none. Nothing of an operation is left
 * when its promise has settled.
 */
export interface SourceGit {
  /** Freezes a source to a full ref and a commit. */
  readonly resolve: (request: ResolveRequest, credential: string | undefined, signal: AbortSignal) => Promise<ResolveResponse>;
  /** Writes the archive of a commit to `target`, a new file that is on disk afterwards, and returns what it is. */
  readonly prepare: (
    request: PrepareRequest,
    credential: string | undefined,
    target: string,
    signal: AbortSignal,
  ) => Promise<PrepareResponse>;
  /** The version of git. Throws `git_unavailable` when there is none that can be used. */
  readonly version: () => Promise<string>;
  /** Ends what is running. */
  readonly close: () => Promise<void>;
}
