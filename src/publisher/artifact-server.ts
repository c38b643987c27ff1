import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { FileHandle } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { boundPeers, OwnedConnections, serverLimits } from '../lib/connections.js';
import { milliseconds } from '../lib/instant.js';
import type { Digest } from '../lib/sha256.js';
import { verifyArtifactCapability } from '../source/artifact-capability.js';
import type { ArtifactClaims, PresentedArtifact } from '../source/artifact-capability.js';
import { artifactHeaders, publisherBounds as bounds, workspaceMediaType } from '../source/protocol.js';
import { CapabilityError } from '../source/signed-claims.js';
import type { ArtifactStore } from './artifact-store.js';
import type { DownloadLedger } from './download-ledger.js';
import { headerOf, sendJson } from './http.js';
import type { Keys } from './keys.js';
import { codeOf } from './log.js';
import type { Log } from './log.js';
import type { PublisherMetrics } from './metrics.js';

export interface ArtifactServerOptions {
  readonly keys: Keys;
  readonly store: ArtifactStore;
  readonly ledger: DownloadLedger;
  readonly metrics: PublisherMetrics;
  readonly log: Log;
  readonly clock: () => number;
  /** Downloads at once. @default 16 */
  readonly slots?: number;
  /** Milliseconds that a download may take. @default two minutes */
  readonly timeout?: number;
}

/** Codes with their status. Source: repository.md §4.1. */
const artifactCodes = {
  artifact_request_incomplete: 400,
  artifact_request_invalid: 400,
  artifact_authorization_failed: 403,
  artifact_not_found: 404,
  artifact_method_not_allowed: 405,
  artifact_operation_replayed: 409,
  artifact_operation_conflict: 409,
  artifact_too_large: 413,
  artifact_storage_unavailable: 500,
  artifact_transport_unavailable: 503,
} as const;
type ArtifactCode = keyof typeof artifactCodes;

/** A request that gets no artifact. It ends nothing but itself. */
class NoArtifact extends Error {
  readonly code: ArtifactCode;

  constructor(code: ArtifactCode, cause?: unknown) {
    super(code, { cause });
    this.code = code;
  }
}

const artifactRoute = /^\/internal\/v2\/acp\/artifacts\/sha256\/([0-9a-f]{64})$/;

/** Artifacts for supervisors, over plain HTTP: the capability is good for one download, and the digest tells the bytes. */
export function createArtifactServer(options: ArtifactServerOptions): Server {
  const { metrics, log, slots = 16 } = options;
  // Agents reach this port too: a connection without a capability gives way.
  const connections = new OwnedConnections({ unproven: 128, perOwner: 8 });
  let running = 0;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const from = performance.now();
    let operationId: string | undefined;
    let sent = 0;
    let code = 'ok';
    try {
      const { claims, presented } = authorize(options, request);
      operationId = claims.request.operationID;
      const { namespace, taskID = '' } = claims.request.identity;
      if (!connections.claim(request.socket, `${namespace}/${taskID}`) || running >= slots)
        throw new NoArtifact('artifact_transport_unavailable');
      running++;
      try {
        sent = await download(options, claims, presented, response);
      } finally {
        running--;
      }
    } catch (error) {
      code = error instanceof NoArtifact ? error.code : codeOf(error);
      const told: ArtifactCode = error instanceof NoArtifact ? error.code : 'artifact_storage_unavailable';
      sendJson(request, response, artifactCodes[told], JSON.stringify({ error: told }));
    }
    metrics.download(Object.hasOwn(artifactCodes, code) || code === 'ok' ? code : 'failed', sent);
    log.info('download', {
      ...(operationId === undefined ? {} : { operationId }),
      code,
      milliseconds: Math.round(performance.now() - from),
    });
  }

  const server = createServer({ ...serverLimits, keepAliveTimeout: 5_000 }, (request, response) => {
    void answer(request, response);
  });
  boundPeers(server);
  connections.guard(server);
  return server;
}

/** What the request says of itself, and the claims that allow exactly that. */
function authorize(
  { keys, clock }: ArtifactServerOptions,
  request: IncomingMessage,
): { readonly claims: ArtifactClaims; readonly presented: PresentedArtifact } {
  const hex = artifactRoute.exec(request.url ?? '')?.[1];
  if (hex === undefined) throw new NoArtifact('artifact_not_found');
  if (request.method !== 'GET') throw new NoArtifact('artifact_method_not_allowed');
  const [capability, requestDigest, length, mediaType] = [
    headerOf(request, artifactHeaders.capability),
    headerOf(request, artifactHeaders.requestDigest),
    headerOf(request, artifactHeaders.contentLength),
    headerOf(request, artifactHeaders.mediaType),
  ];
  if (capability === undefined || requestDigest === undefined || length === undefined || mediaType === undefined)
    throw new NoArtifact('artifact_request_incomplete');
  if (!/^[1-9]\d{0,15}$/.test(length)) throw new NoArtifact('artifact_request_invalid');
  const presented: PresentedArtifact = {
    method: 'GET',
    path: request.url ?? '',
    objectDigest: `sha256:${hex}`,
    contentLength: Number(length),
    mediaType,
    requestDigest,
  };
  try {
    return { claims: verifyArtifactCapability(keys.current.artifactSecret, capability, presented, clock()), presented };
  } catch (error) {
    if (error instanceof CapabilityError) throw new NoArtifact('artifact_authorization_failed', error);
    throw error;
  }
}

/** Bytes that were sent. The capability is used up before the first one. */
async function download(
  { store, ledger, timeout = 120_000 }: ArtifactServerOptions,
  claims: ArtifactClaims,
  { objectDigest, contentLength, mediaType, requestDigest }: PresentedArtifact,
  response: ServerResponse,
): Promise<number> {
  if (contentLength > bounds.artifact) throw new NoArtifact('artifact_too_large');
  const file =
    mediaType === workspaceMediaType ? await store.read({ digest: objectDigest, sizeBytes: contentLength }) : undefined;
  if (!file) throw new NoArtifact('artifact_not_found');
  const timer = setTimeout(() => {
    response.destroy();
  }, timeout);
  try {
    const spending = await ledger.spend({
      operationID: claims.request.operationID,
      requestDigest: claims.requestDigest,
      expiresAt: milliseconds(claims.expiresAt),
    });
    if (spending === 'replayed') throw new NoArtifact('artifact_operation_replayed');
    if (spending === 'conflict') throw new NoArtifact('artifact_operation_conflict');
    if (spending === 'full') throw new NoArtifact('artifact_transport_unavailable');
    response.writeHead(200, {
      'cache-control': 'no-store',
      'content-type': mediaType,
      'content-length': contentLength,
      etag: `"${objectDigest}"`,
      [artifactHeaders.digest]: objectDigest,
      [artifactHeaders.requestDigest]: requestDigest,
    });
    if (await copy(file, contentLength, objectDigest, response)) return contentLength;
    await store.drop(objectDigest);
    throw new NoArtifact('artifact_storage_unavailable');
  } finally {
    clearTimeout(timer);
    await file.close();
  }
}

/**
 * Sends the file through one buffer. The last bytes leave only if the hash of all is right, so a wrong file is never sent whole;
 * `false` = it is wrong.
 */
async function copy(file: FileHandle, size: number, expected: Digest, response: ServerResponse): Promise<boolean> {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafeSlow(256 * 1024);
  const closed = new AbortController();
  response.once('close', () => {
    closed.abort();
  });
  for (let at = 0; at < size;) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, size - at), at);
    if (bytesRead === 0) return false;
    const part = buffer.subarray(0, bytesRead);
    hash.update(part);
    at += bytesRead;
    if (at === size && `sha256:${hash.digest('hex')}` !== expected) return false;
    await written(response, part, closed.signal);
  }
  response.end();
  if (!response.writableFinished) await once(response, 'finish', { signal: closed.signal });
  return true;
}

/** Resolves when the system has taken the bytes, so that their buffer can be used again. */
function written(response: ServerResponse, part: Buffer, closed: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const isGone = () => {
      reject(new NoArtifact('artifact_transport_unavailable'));
    };
    if (closed.aborted) {
      isGone();
      return;
    }
    closed.addEventListener('abort', isGone, { once: true });
    response.write(part, (error) => {
      closed.removeEventListener('abort', isGone);
      if (error) isGone();
      else resolve();
    });
  });
}
