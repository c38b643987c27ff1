/** Messages of the publisher's protocol, as decoders that know every member. Source: repository.md §3.1. */
import { checked, digest, flag, integer, list, oneOf, optional, record, text } from '../lib/decode.js';
import type { Decoded, Decoder } from '../lib/decode.js';
import { artifactId, workspaceMediaType } from './protocol.js';

const visible = (max: number): Decoder<string> =>
  checked(text({ min: 1, max }), (value) =>
    /^[\x21-\x7e]+$/.test(value) ? undefined : 'visible ASCII characters without spaces',
  );

/** Host and decoded path of a repository, which may have spaces and letters of any script. Source: repository.md §1.2. */
const repositoryId: Decoder<string> = checked(text({ min: 1, max: 512 }), (value) =>
  value.isWellFormed() && !/[\p{Cc}\\]/u.test(value) ? undefined : 'an identity without control characters and backslashes',
);

/** An id that stands in digests, file names of ours and log lines. */
export const operationId: Decoder<string> = checked(text({ min: 1, max: 512 }), (value) =>
  isOperationId(value) ? undefined : 'letters, digits and . _ : - without .. and without a first punctuation mark',
);

const isOperationId = (value: string): boolean =>
  value.length <= 512 && /^[A-Za-z0-9][A-Za-z0-9._:-]*$/.test(value) && !value.includes('..');

const namespaceName: Decoder<string> = checked(text({ min: 1, max: 63 }), (value) =>
  /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/.test(value) ? undefined : 'the name of a namespace',
);

/** 40 or 64 lower-case hexadecimal digits, not all of them zero. Source: repository.md §1.4. */
const objectId: Decoder<string> = checked(text({ min: 40, max: 64 }), (value) =>
  /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(value) && !/^0+$/.test(value)
    ? undefined
    : '40 or 64 lower-case hexadecimal digits, not all zero',
);

const refText = (min: number): Decoder<string> =>
  checked(text({ min, max: 1024 }), (value) =>
    // eslint-disable-next-line no-control-regex -- exactly these are refused
    /[\x00-\x20\x7f]/.test(value) ? 'a ref without spaces and control characters' : undefined,
  );

const repository = record({ provider: visible(63), id: repositoryId, url: visible(2048) });
export type Repository = Decoded<typeof repository>;

/** Whose operation it is. A Task's; operations of a publication are not part of this version. */
export const operationMetadata = record({ namespace: namespaceName, operationId, taskId: visible(253) });
export type OperationMetadata = Decoded<typeof operationMetadata>;

/** Names the credential; its material travels in a header. */
const credentialReference = record({
  name: visible(253),
  kind: oneOf('http-extra-header'),
  role: oneOf('SourceRead'),
});

/** Bounds of one archive. They may only lower those of the publisher. Source: repository.md §2.8. */
const prepareLimits = record({
  maxEntries: optional(integer(1, 100_000)),
  maxFileBytes: optional(integer(1)),
  maxExpandedBytes: optional(integer(1)),
  maxArtifactBytes: optional(integer(1)),
});
export type PrepareLimits = Decoded<typeof prepareLimits>;

export const resolveRequest = record({
  metadata: operationMetadata,
  source: repository,
  /** `''` = the default branch. */
  sourceRef: refText(0),
  credentialRef: optional(credentialReference),
});
export type ResolveRequest = Decoded<typeof resolveRequest>;

const resolved = { repositoryId, sourceRef: refText(1), baselineOid: objectId } as const;
export const resolveResponse = record(resolved);
export type ResolveResponse = Decoded<typeof resolveResponse>;

export const prepareRequest = record({
  metadata: operationMetadata,
  source: repository,
  sourceRef: refText(1),
  baselineOid: objectId,
  credentialRef: optional(credentialReference),
  limits: optional(prepareLimits),
});
export type PrepareRequest = Decoded<typeof prepareRequest>;

const artifactReference = checked(
  record({ artifactId: visible(253), digest, sizeBytes: integer(1), mediaType: oneOf(workspaceMediaType) }),
  ({ artifactId: id, digest: named }) =>
    id === artifactId(named) ? undefined : 'an artifactId that is the digest with - instead of :',
);

/** What a user should hear although the operation succeeded. `path` is escaped. */
const note = record({ code: oneOf('lfs_pointers'), count: integer(1), path: text({ max: 256 * 4 }) });

const prepared = {
  treeOid: objectId,
  manifestDigest: digest,
  entryCount: integer(0),
  expandedBytes: integer(0),
  artifact: artifactReference,
  notes: optional(list(note, { max: 8 })),
} as const;
export const prepareResponse = record(prepared);
export type PrepareResponse = Decoded<typeof prepareResponse>;

const answered = { operationId, requestDigest: digest } as const;
/** The response as it is sent: with the operation that it answers. */
export const resolveAnswer = record({ ...answered, ...resolved });
export const prepareAnswer = record({ ...answered, ...prepared });

/** What the publisher can do, for operators. Source: repository.md §3.1. */
export const capabilitiesAnswer = record({
  protocol: text({ max: 253 }),
  networkIdentity: oneOf('workspace-publisher'),
  operations: list(text({ max: 253 }), { max: 64 }),
  authentication: list(text({ max: 253 }), { max: 8 }),
  credentialKinds: list(text({ max: 253 }), { max: 8 }),
  scmSchemes: list(text({ max: 253 }), { max: 8 }),
  forges: list(text({ max: 512 }), { max: 1024 }),
  gitVersion: optional(text({ max: 253 })),
  redirectsAllowed: flag,
  providerOrMcpAccess: flag,
  pullRequestReconciliation: flag,
  limits: record({ concurrentOperations: integer(1), requestBytes: integer(1), artifactBytes: integer(1) }),
});
export type PublisherCapabilities = Decoded<typeof capabilitiesAnswer>;
