import { requestDigest } from '../domain/digests.js';
import type { Digest } from '../domain/digests.js';
import type { JsonObject } from '../lib/json.js';
import { digest, identifier, instantText, integer, oneOf, optional, record } from '../lib/decode.js';
import type { Decoded } from '../lib/decode.js';
import { fence } from './fence.js';
import type { Fence } from './fence.js';
import type { Instant } from '../lib/instant.js';
import { protocol, requestDigestSchemaVersion } from './protocol.js';

/** What every request that changes something says about itself. Source: dispatch.md §5.4. */
export const mutationMetadata = record({
  fence,
  taskUID: optional(identifier),
  taskAttempt: optional(integer(1)),
  promptID: optional(identifier),
  operationID: identifier,
  requestDigestSchemaVersion: oneOf(requestDigestSchemaVersion),
  requestDigest: digest,
  expiresAt: instantText,
});
export type MutationMetadata = Decoded<typeof mutationMetadata>;

/** How much a request must name: the instance, a session and its Task, or also a prompt. A deletion need not name the Task. */
export type MutationScope = 'pool' | 'deletion' | 'session' | 'prompt';

/** What is wrong with the metadata of a request, as a sentence; `undefined` = nothing. */
export function scopeProblem(metadata: MutationMetadata, scope: MutationScope): string | undefined {
  const session = metadata.fence.runtimeSessionUID !== undefined;
  const task = metadata.taskUID !== undefined && metadata.taskAttempt !== undefined;
  if (scope === 'pool') return session ? 'the fence names a session' : undefined;
  if (scope === 'deletion' && session && metadata.taskUID === undefined && metadata.taskAttempt === undefined) return undefined;
  if (!session) return 'the fence names no session';
  if (!task) return 'taskUID or taskAttempt is missing';
  return scope === 'prompt' && metadata.promptID === undefined ? 'promptID is missing' : undefined;
}

/** What a caller says about a request; the digest follows from the rest. */
export interface Operation {
  readonly fence: Fence;
  readonly operationID: string;
  readonly expiresAt: Instant;
  readonly taskUID?: string;
  readonly taskAttempt?: number;
  readonly promptID?: string;
}

/** A request as it is sent: the exact text, and the metadata that its capability must repeat. */
export interface SealedRequest {
  readonly body: string;
  readonly metadata: MutationMetadata;
}

/** Puts protocol, metadata and digest around the members of a request. */
export function sealRequest(operation: Operation, members: JsonObject): SealedRequest {
  const { fence: target, taskUID, taskAttempt, promptID, operationID, expiresAt } = operation;
  const metadata = (sum: Digest | '') => ({
    fence: target,
    ...(taskUID === undefined ? {} : { taskUID }),
    ...(taskAttempt === undefined ? {} : { taskAttempt }),
    ...(promptID === undefined ? {} : { promptID }),
    operationID,
    requestDigestSchemaVersion,
    requestDigest: sum,
    expiresAt,
  });
  const sum = requestDigest(JSON.stringify({ protocol, metadata: metadata(''), ...members }));
  const sealed = { ...metadata(sum), requestDigest: sum } as MutationMetadata;
  return { body: JSON.stringify({ protocol, metadata: sealed, ...members }), metadata: sealed };
}
