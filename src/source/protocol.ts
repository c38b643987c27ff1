import type { Digest } from '../lib/sha256.js';

/** What both sides of the publisher's protocol say about themselves. Source: repository.md §3. */
export const sourceProtocol = 'orka.workspace-publisher.v1';

export const publisherPaths = {
  health: '/v1/health',
  capabilities: '/v1/capabilities',
  resolve: '/v1/workspaces/resolve',
  prepare: '/v1/workspaces/prepare',
} as const;

/** Operations with the path that each has. */
export const operationPaths = {
  'workspace.resolve': publisherPaths.resolve,
  'workspace.prepare': publisherPaths.prepare,
} as const;
export type Operation = keyof typeof operationPaths;

/** Header names, in lower case as Node gives them. */
export const publisherHeaders = {
  capability: 'x-orka-publisher-operation-capability',
  requestDigest: 'x-orka-publisher-request-digest',
  /** base64url of the whole header line that git sends to the forge. It is in no digest, journal or record. */
  credential: 'x-orka-publisher-credential',
} as const;

export const artifactHeaders = {
  capability: 'x-orka-artifact-capability',
  requestDigest: 'x-orka-artifact-request-digest',
  contentLength: 'x-orka-artifact-content-length',
  mediaType: 'x-orka-artifact-media-type',
  digest: 'x-orka-artifact-digest',
} as const;

export function artifactPath(objectDigest: Digest): string {
  return `/internal/v2/acp/artifacts/sha256/${objectDigest.slice('sha256:'.length)}`;
}

export function artifactId(objectDigest: Digest): string {
  return objectDigest.replace(':', '-');
}

export const workspaceMediaType = 'application/vnd.orka.workspace.v1+tar';

/** Bytes and milliseconds. */
export const publisherBounds = {
  requestBody: 2 * 1024 * 1024,
  responseBody: 2 * 1024 * 1024,
  /** A credential of 32 KiB is encoded twice on its way. */
  headers: 96 * 1024,
  credential: 64 * 1024,
  capabilityLife: 60_000,
  longestCapabilityLife: 300_000,
  /** A capability may have been issued this far in the receiver's future. */
  clockSkew: 30_000,
  shortestBearer: 16,
  shortestSecret: 32,
  artifact: 100 * 1024 * 1024,
} as const;
