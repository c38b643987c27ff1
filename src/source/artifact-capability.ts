/** One-shot capabilities for artifacts. Source: repository.md §4.1. */
import { canonicalJson } from '../lib/canonical-json.js';
import { checked, digest, instantText, integer, oneOf, optional, record, text } from '../lib/decode.js';
import type { Decoded } from '../lib/decode.js';
import { instant } from '../lib/instant.js';
import { digestOf, sha256Hex } from '../lib/sha256.js';
import type { Digest } from '../lib/sha256.js';
import { operationId } from './messages.js';
import type { OperationMetadata } from './messages.js';
import { artifactPath, publisherBounds } from './protocol.js';
import { capabilityProblem, openClaims, signClaims } from './signed-claims.js';

const version = 'orka.artifact.capability.v1';
const audience = 'orka.acp.artifact-api';

const artifactRequest = record({
  operation: oneOf('download', 'upload'),
  objectDigest: digest,
  identity: checked(
    record({
      namespace: text({ min: 1, max: 63 }),
      taskID: optional(text({ min: 1, max: 253 })),
      publicationID: optional(text({ min: 1, max: 253 })),
    }),
    ({ taskID, publicationID }) =>
      (taskID === undefined) === (publicationID === undefined) ? 'exactly one of taskID and publicationID' : undefined,
  ),
  contentLength: integer(1),
  mediaType: text({ min: 1, max: 253 }),
  operationID: operationId,
});
/** The transfer of one artifact. */
export type ArtifactRequest = Decoded<typeof artifactRequest>;

const artifactClaims = record({
  version: oneOf(version),
  audience: oneOf(audience),
  request: artifactRequest,
  requestDigest: digest,
  issuedAt: instantText,
  expiresAt: instantText,
});
export type ArtifactClaims = Decoded<typeof artifactClaims>;

/** What a request for an artifact says of itself in its line and headers. */
export interface PresentedArtifact {
  readonly method: string;
  readonly path: string;
  readonly objectDigest: Digest;
  readonly contentLength: number;
  readonly mediaType: string;
  readonly requestDigest: string;
}

const methods = { download: 'GET', upload: 'PUT' } as const;

/** Throws `WireError` for a request that no capability can be for. */
export function artifactRequestDigest(request: ArtifactRequest): Digest {
  artifactRequest(request, []);
  const { identity, ...rest } = request;
  const text = canonicalJson({
    version,
    method: methods[request.operation],
    path: artifactPath(request.objectDigest),
    request: { ...rest, identity: { ...identity } },
  });
  return digestOf(text, 'orka.acp.artifact-request.v1');
}

/** `now`, `life`: milliseconds. Throws `CapabilityError` or `WireError` for what {@link verifyArtifactCapability} would refuse. @default life: five minutes */
export function issueArtifactCapability(
  secret: string,
  request: ArtifactRequest,
  now: number,
  life: number = publisherBounds.longestCapabilityLife,
): { readonly capability: string; readonly requestDigest: Digest } {
  const requestDigest = artifactRequestDigest(request);
  const { identity, ...rest } = request;
  const capability = signClaims(secret, artifactClaims, {
    version,
    audience,
    request: { ...rest, identity: { ...identity } },
    requestDigest,
    issuedAt: instant(now),
    expiresAt: instant(now + life),
  });
  return { capability, requestDigest };
}

/** The claims of a capability for exactly the presented transfer. Throws `CapabilityError`. */
export function verifyArtifactCapability(
  secret: string,
  capability: string,
  presented: PresentedArtifact,
  now: number,
): ArtifactClaims {
  const claims = openClaims(secret, capability, artifactClaims, now);
  const { request } = claims;
  const isSame =
    methods[request.operation] === presented.method &&
    artifactPath(request.objectDigest) === presented.path &&
    request.objectDigest === presented.objectDigest &&
    request.contentLength === presented.contentLength &&
    request.mediaType === presented.mediaType &&
    claims.requestDigest === presented.requestDigest &&
    claims.requestDigest === artifactRequestDigest(request);
  if (!isSame) throw capabilityProblem('mismatch', 'it was signed for another transfer');
  return claims;
}

/**
 * Id of an artifact's transfer that the publisher makes within one of its operations: digest of each part and one NUL.
 * Source: repository.md §4.2.
 */
export function artifactOperationId(transfer: {
  readonly metadata: Omit<OperationMetadata, 'taskId'> & { readonly taskId?: string; readonly publicationId?: string };
  readonly parentOperation: string;
  readonly artifactOperation: 'download' | 'upload';
  readonly digest: Digest;
  readonly attempt: number;
}): string {
  const { metadata, parentOperation, artifactOperation, attempt } = transfer;
  const { namespace, operationId: parent, taskId = '', publicationId = '' } = metadata;
  const parts = [namespace, parent, taskId, publicationId, parentOperation, artifactOperation, transfer.digest, String(attempt)];
  return `publisher-${sha256Hex(parts.map((part) => `${part}\0`).join(''))}`;
}
