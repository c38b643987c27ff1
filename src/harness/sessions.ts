import { workspaceIntents } from '../api/index.js';
import { digest, identifier, instantText, integer, list, oneOf, optional, record, text } from '../lib/decode.js';
import type { Decoded, Shaped } from '../lib/decode.js';
import { mutationMetadata } from './metadata.js';
import { agentConfiguration, mcpConfiguration, runtimeProfile } from './profile.js';
import { protocol } from './protocol.js';
import { classification, operationRecord } from './replay.js';

/** States of a session; only an idle one takes a prompt. Source: dispatch.md §6.5. */
export const sessionStates = [
  'creating',
  'idle',
  'prompt_running',
  'validating',
  'preparing_publication',
  'publication_prepared',
  'publishing',
  'verifying',
  'finalizing',
  'cancelling',
  'poisoned',
  'deleting',
  'deleted',
] as const;
export type SessionState = (typeof sessionStates)[number];

export const artifactReference = record({
  artifactID: identifier,
  digest,
  sizeBytes: integer(0),
  mediaType: text({ min: 1, max: 256 }),
});

export const artifactAuthorization = record({ capability: text({ min: 1, max: 16 * 1024 }), requestDigest: digest });

/** What the workspace of a session starts from. Without a repository: `empty:<taskUID>`, `empty` and a digest of the Task. */
export const workspaceBaseline = record({
  repositoryIdentity: text({ min: 1, max: 1024 }),
  revision: text({ min: 1, max: 512 }),
  treeDigest: digest,
  artifact: optional(artifactReference),
});

const workspaceSpec = record({
  intent: oneOf(...workspaceIntents),
  baseline: workspaceBaseline,
  relativeRoot: optional(text({ max: 4096 })),
});

const sessionDescriptor = record({
  runtimeSessionID: identifier,
  runtimeSessionUID: identifier,
  generation: integer(1),
  runtimeInstanceID: identifier,
  supervisorBootID: identifier,
  runtimeProfileDigest: digest,
  state: oneOf(...sessionStates),
  providerSessionID: text({ min: 1, max: 1024 }),
  workspaceBaseline,
  createdAt: instantText,
  lastTransitionAt: instantText,
});
export type SessionDescriptor = Decoded<typeof sessionDescriptor>;

const sessionMembers = {
  runtimeSessionID: identifier,
  profile: runtimeProfile,
  agentConfiguration: optional(agentConfiguration),
  mcpConfiguration,
  workspace: workspaceSpec,
  workspaceArtifactAuthorization: optional(artifactAuthorization),
  bootstrap: optional(
    record({
      transcriptArtifact: optional(artifactReference),
      transcriptDigest: optional(digest),
      messageCount: optional(integer(0)),
    }),
  ),
  bootstrapArtifactAuthorization: optional(artifactAuthorization),
} as const;

export const createSessionRequest = record({ protocol: oneOf(protocol), metadata: mutationMetadata, ...sessionMembers });
export type CreateSessionRequest = Decoded<typeof createSessionRequest>;

/** A session as the controller orders it: the request without protocol and metadata. */
export type SessionOrder = Shaped<typeof sessionMembers>;

export const createSessionResponse = record({ protocol: oneOf(protocol), classification, session: sessionDescriptor });
export type CreateSessionResponse = Decoded<typeof createSessionResponse>;

export const deleteSessionRequest = record({
  protocol: oneOf(protocol),
  metadata: mutationMetadata,
  reason: optional(text({ max: 1024 })),
});
export type DeleteSessionRequest = Decoded<typeof deleteSessionRequest>;

/** What is left of a session: enough to answer a repeat, and to refuse its creation again. */
const tombstone = record({
  runtimeSessionUID: identifier,
  runtimeSessionGeneration: integer(1),
  runtimeProfileDigest: digest,
  deletedAt: instantText,
  operations: list(operationRecord, { max: 8192 }),
});
export type Tombstone = Decoded<typeof tombstone>;

export const deleteSessionResponse = record({
  protocol: oneOf(protocol),
  classification,
  state: oneOf('deleted'),
  tombstone,
});
export type DeleteSessionResponse = Decoded<typeof deleteSessionResponse>;
