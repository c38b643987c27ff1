import { workspaceIntents } from '../api/index.js';
import { digest, flag, identifier, instantText, integer, list, oneOf, optional, record, text } from '../lib/decode.js';
import type { Decoded, Shaped } from '../lib/decode.js';
import { mutationMetadata } from './metadata.js';
import { protocol } from './protocol.js';
import { classification } from './replay.js';
import { artifactAuthorization, artifactReference, workspaceBaseline } from './sessions.js';

/** How much of a workspace may have changed. */
const deltaLimits = record({
  maxBytes: integer(1),
  maxEntries: integer(1),
  maxChangedFiles: optional(integer(0)),
  allowedPaths: optional(list(text({ min: 1, max: 4096 }), { max: 1024 })),
  denyRepositoryControlPaths: optional(flag),
  rejectBinaryFiles: optional(flag),
  rejectSecretLikeContent: optional(flag),
});

const deltaMembers = {
  deltaID: identifier,
  intent: oneOf(...workspaceIntents),
  verifiedBaseline: workspaceBaseline,
  promptSettlementDigest: digest,
  limits: deltaLimits,
  artifactUploadAuthorization: optional(artifactAuthorization),
} as const;

/** Asks what a settled prompt left in its workspace. Source: dispatch.md §7.1. */
export const workspaceDeltaRequest = record({ protocol: oneOf(protocol), metadata: mutationMetadata, ...deltaMembers });
export type WorkspaceDeltaRequest = Decoded<typeof workspaceDeltaRequest>;

/** The request without protocol and metadata, as the controller orders it. */
export type DeltaOrder = Shaped<typeof deltaMembers>;

const workspaceDelta = record({
  deltaID: identifier,
  runtimeSessionUID: identifier,
  sessionGeneration: integer(1),
  state: oneOf('no_change', 'prepared', 'read_only_modified'),
  intent: oneOf(...workspaceIntents),
  verifiedBaseline: workspaceBaseline,
  relativeRoot: optional(text({ max: 4096 })),
  manifestDigest: optional(digest),
  artifact: optional(artifactReference),
  entryCount: integer(0),
  changedFileCount: integer(0),
  deletedEntryCount: integer(0),
  symlinkEntryCount: integer(0),
  /** Some of the entries that were changed, are new or are gone: escaped, cut at 256 bytes each. Not in the contract. */
  changedPaths: optional(list(text({ min: 1, max: 256 }), { max: 20 })),
  noFollowVerified: flag,
  publicationSafe: flag,
  frozenAt: instantText,
});
export type WorkspaceDelta = Decoded<typeof workspaceDelta>;

export const workspaceDeltaResponse = record({ protocol: oneOf(protocol), classification, delta: workspaceDelta });
export type WorkspaceDeltaResponse = Decoded<typeof workspaceDeltaResponse>;
