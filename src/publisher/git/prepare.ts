import { rm } from 'node:fs/promises';

import { artifactId, workspaceMediaType } from '../../source/protocol.js';
import type { PrepareLimits, PrepareRequest, PrepareResponse } from '../../source/messages.js';
import type { Digest } from '../../lib/sha256.js';
import { writeArchive } from './archive.js';
import type { Archive } from './archive.js';
import { linkOrCopy, manifestOf } from './cache.js';
import type { ArchiveCache } from './cache.js';
import { fetched, isObjectId } from './operation.js';
import type { GitOperation } from './operation.js';
import { checkSourceRef, currentOid, proveCommit } from './resolve.js';
import { SourceError } from './source-error.js';
import type { ArchiveLimits, SourceLog } from './source.js';

/** What a preparation needs beside its operation. */
export interface PrepareParts {
  readonly cache: ArchiveCache;
  readonly limits: ArchiveLimits;
  readonly log: SourceLog;
  readonly signal: AbortSignal;
}

/** Makes the archive of a resolved commit, from the forge or from an earlier archive. Source: repository.md §2.8. */
export async function prepareSource(
  operation: GitOperation,
  request: PrepareRequest,
  target: string,
  parts: PrepareParts,
): Promise<PrepareResponse> {
  checkRequest(operation, request);
  const limits = lowered(parts.limits, request.limits);
  return (
    (await fromCache(operation, request, target, { ...parts, limits })) ??
    fromForge(operation, request, target, { ...parts, limits })
  );
}

function checkRequest(operation: GitOperation, { sourceRef, baselineOid }: PrepareRequest): void {
  const { at } = operation;
  checkSourceRef(operation, sourceRef);
  if (!isObjectId(baselineOid))
    throw new SourceError('invalid_request', { at, field: 'baselineOid', found: baselineOid, allowed: 'the OID of a commit' });
  if (isObjectId(sourceRef) ? sourceRef !== baselineOid : !sourceRef.startsWith('refs/'))
    throw new SourceError('invalid_request', { at, field: 'sourceRef', found: sourceRef, allowed: 'what resolve answered' });
}

const lowered = (limits: ArchiveLimits, wanted: PrepareLimits = {}): ArchiveLimits => ({
  maxEntries: Math.min(limits.maxEntries, wanted.maxEntries ?? Infinity),
  maxFileBytes: Math.min(limits.maxFileBytes, wanted.maxFileBytes ?? Infinity),
  maxExpandedBytes: Math.min(limits.maxExpandedBytes, wanted.maxExpandedBytes ?? Infinity),
  maxArtifactBytes: Math.min(limits.maxArtifactBytes, wanted.maxArtifactBytes ?? Infinity),
});

/** `undefined` = there is no archive that can be used, so the forge is asked for the whole tree. */
async function fromCache(
  operation: GitOperation,
  { sourceRef, baselineOid }: PrepareRequest,
  target: string,
  { cache, limits, log, signal }: PrepareParts,
): Promise<PrepareResponse | undefined> {
  const { id: repositoryId } = operation.source;
  const archive = cache.find(repositoryId, baselineOid);
  if (!archive || !isWithin(archive, limits)) return undefined;
  // The forge must show this commit to the credential of this operation.
  if (isObjectId(sourceRef)) await proveCommit(operation, baselineOid);
  else checkCurrent(operation, sourceRef, baselineOid, await currentOid(operation, sourceRef));
  const head = { repositoryId, sourceRef, baselineOid, treeOid: archive.treeOid };
  const manifestDigest = await cache.use(archive, head, target, signal);
  if (manifestDigest === undefined) {
    log.warn('a kept archive is not what was kept');
    return undefined;
  }
  return responseOf(archive, manifestDigest);
}

const isWithin = (archive: Archive, limits: ArchiveLimits): boolean =>
  archive.entryCount <= limits.maxEntries &&
  archive.largestFile <= limits.maxFileBytes &&
  archive.expandedBytes <= limits.maxExpandedBytes &&
  archive.sizeBytes <= limits.maxArtifactBytes;

async function fromForge(
  operation: GitOperation,
  { sourceRef, baselineOid }: PrepareRequest,
  target: string,
  { cache, limits, log }: PrepareParts,
): Promise<PrepareResponse> {
  await operation.init(baselineOid);
  await operation.fetch(sourceRef);
  await checkFetched(operation, sourceRef, baselineOid);
  const { id: repositoryId } = operation.source;
  const { folder, files } = await cache.stage();
  try {
    const archive = await writeArchive(operation, baselineOid, files, limits);
    const head = { repositoryId, sourceRef, baselineOid, treeOid: archive.treeOid };
    const { entriesDigest, manifestDigest } = await manifestOf(files.entries, head);
    await linkOrCopy(files.tar, target);
    const staged = { repositoryId, entriesDigest };
    await cache.keep(folder, baselineOid, archive, staged).catch(() => log.warn('an archive cannot be kept'));
    return responseOf(archive, manifestDigest);
  } catch (error) {
    await rm(target, { force: true });
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The fetch took what the ref holds now. */
async function checkFetched(operation: GitOperation, sourceRef: string, baselineOid: string): Promise<void> {
  const type = (
    await operation.run(['cat-file', '--batch-check=%(objecttype) %(objectname)'], `${fetched}^{commit}\n`)
  ).toString();
  const [, oid] = /^commit ([0-9a-f]+)\n$/.exec(type) ?? [];
  if (oid === undefined)
    throw new SourceError('source_ref_invalid', {
      at: operation.at,
      field: 'sourceRef',
      found: sourceRef,
      allowed: 'a ref of a commit',
    });
  checkCurrent(operation, sourceRef, baselineOid, oid);
}

function checkCurrent({ at }: GitOperation, sourceRef: string, baselineOid: string, oid: string | undefined): void {
  if (oid === baselineOid) return;
  const says = `${sourceRef} was changed since it was resolved`;
  throw new SourceError('source_moved', { at, field: 'sourceRef', says, found: oid ?? 'no such ref', allowed: baselineOid });
}

function responseOf(archive: Archive, manifestDigest: Digest): PrepareResponse {
  const { treeOid, digest, sizeBytes, entryCount, expandedBytes, lfsPointers } = archive;
  return {
    treeOid,
    manifestDigest,
    entryCount,
    expandedBytes,
    artifact: { artifactId: artifactId(digest), digest, sizeBytes, mediaType: workspaceMediaType },
    ...(lfsPointers === undefined ? {} : { notes: [{ code: 'lfs_pointers', ...lfsPointers }] }),
  };
}
