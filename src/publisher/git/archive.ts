import { rm } from 'node:fs/promises';

import type { Digest } from '../../lib/sha256.js';
import { BlobFraming, BlobReader } from './blobs.js';
import { escapedPath } from './escape.js';
import { FileSink } from './file-sink.js';
import { manifestEntry } from './manifest.js';
import type { GitOperation } from './operation.js';
import { SourceError } from './source-error.js';
import type { ArchiveLimits } from './source.js';
import { tarEnd, tarHeader, tarPadding } from './tar.js';
import { TreeReader, checkLinks, refused } from './tree.js';
import type { Tree, TreeFile } from './tree.js';

/** What an archive is, apart from the operation that made it. */
export interface Archive {
  readonly treeOid: string;
  readonly digest: Digest;
  readonly sizeBytes: number;
  readonly entryCount: number;
  readonly expandedBytes: number;
  readonly largestFile: number;
  readonly lfsPointers?: { readonly count: number; readonly path: string };
}

/** Where the parts of an archive are written: new files, that are on disk afterwards. */
export interface ArchiveFiles {
  readonly tar: string;
  /** The entries of the manifest as canonical JSON, joined with commas. */
  readonly entries: string;
}

/** Source: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md */
const lfsFirstLine = Buffer.from('version https://git-lfs.github.com/spec/v1\n');
const largestLfsPointer = 1024;

/** Writes the tree of a fetched commit as an archive. What it began to write is removed when it fails. */
export async function writeArchive(
  operation: GitOperation,
  commit: string,
  files: ArchiveFiles,
  limits: ArchiveLimits,
): Promise<Archive> {
  try {
    return await archive(operation, commit, files, limits);
  } catch (error) {
    await Promise.all([rm(files.tar, { force: true }), rm(files.entries, { force: true })]);
    if (!(error instanceof BlobFraming)) throw operation.coded(error);
    throw new SourceError('source_corrupt', { at: operation.at, says: 'git does not answer with the objects of the tree' });
  }
}

async function archive(operation: GitOperation, commit: string, files: ArchiveFiles, limits: ArchiveLimits): Promise<Archive> {
  const treeOid = (await operation.run(['rev-parse', '--verify', `${commit}^{tree}`])).toString().trim();
  const listing = operation.start(['ls-tree', '-lrz', '--full-tree', commit]);
  listing.stdin.end();
  const tree = await new TreeReader(operation.at, limits).read(listing);
  const links = tree.files.filter(({ mode }) => mode === '120000');
  const plain = tree.files.filter(({ mode }) => mode !== '120000');
  const blobs = new BlobReader(operation.start(['cat-file', '--batch', '--buffer']), oidsOf(links, plain));
  for (const link of links) link.target = await targetOf(blobs, link, operation.at);
  checkLinks(operation.at, tree);
  const [tar, entries] = [await FileSink.create(files.tar), await FileSink.create(files.entries)];
  try {
    const lfs = await writeTar(tar, tree, blobs, operation.at, limits);
    await blobs.end();
    for (const [index, file] of tree.files.entries())
      await entries.write(Buffer.from(`${index === 0 ? '' : ','}${manifestEntry(file)}`));
    await entries.finish();
    const sizeBytes = tar.size;
    const digest = await tar.finish();
    return { treeOid, digest, sizeBytes, ...factsOf(tree), ...lfs };
  } finally {
    await Promise.all([tar.abandon(), entries.abandon()]);
  }
}

const factsOf = ({ files, directories, bytes, largestFile }: Tree) => ({
  entryCount: files.length + directories.length,
  expandedBytes: bytes,
  largestFile,
});

function* oidsOf(...lists: readonly (readonly TreeFile[])[]): Generator<string> {
  for (const list of lists) for (const { oid } of list) yield oid;
}

async function targetOf(blobs: BlobReader, { oid, size, path }: TreeFile, at: string): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of blobs.next(oid, size)) parts.push(Buffer.from(part));
  const bytes = Buffer.concat(parts);
  const target = bytes.toString();
  if (Buffer.from(target).equals(bytes)) return target;
  throw refused(at, 'encoding', 'the target of the link is not UTF-8', { path: escapedPath(Buffer.from(path)) });
}

async function writeTar(
  tar: FileSink,
  { files, directories }: Tree,
  blobs: BlobReader,
  at: string,
  { maxArtifactBytes }: ArchiveLimits,
): Promise<Pick<Archive, 'lfsPointers'>> {
  const pointers = new LfsPointers();
  for (const path of directories) await tar.write(tarHeader({ path, type: 'directory' }));
  for (const file of files) {
    if (tar.size + file.size > maxArtifactBytes)
      throw refused(at, 'tree_too_large', 'the archive of the tree has too many bytes', { limit: maxArtifactBytes });
    await writeFile(tar, file, blobs, pointers);
  }
  await tar.write(tarEnd);
  if (tar.size > maxArtifactBytes)
    throw refused(at, 'tree_too_large', 'the archive of the tree has too many bytes', {
      limit: maxArtifactBytes,
      found: tar.size,
    });
  return pointers.found;
}

async function writeFile(
  tar: FileSink,
  { path, mode, oid, size, target }: TreeFile,
  blobs: BlobReader,
  pointers: LfsPointers,
): Promise<void> {
  if (target !== undefined) {
    await tar.write(tarHeader({ path, type: 'link', target }));
    return;
  }
  await tar.write(tarHeader({ path, type: 'file', mode: mode === '100755' ? 0o755 : 0o644, size }));
  const small: Buffer[] = [];
  for await (const part of blobs.next(oid, size)) {
    if (size <= largestLfsPointer) small.push(Buffer.from(part));
    await tar.write(part);
  }
  pointers.look(path, Buffer.concat(small));
  await tar.write(tarPadding(size));
}

/** Files that only name their content: Git LFS is not fetched, so the agent sees the pointers. */
class LfsPointers {
  #count = 0;
  #path = '';

  look(path: string, content: Buffer): void {
    if (!content.subarray(0, lfsFirstLine.length).equals(lfsFirstLine)) return;
    if (this.#count++ === 0) this.#path = escapedPath(Buffer.from(path));
  }

  get found(): Pick<Archive, 'lfsPointers'> {
    return this.#count === 0 ? {} : { lfsPointers: { count: this.#count, path: this.#path } };
  }
}
