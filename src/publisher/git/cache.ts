import { createHash } from 'node:crypto';
import { constants, createReadStream, mkdirSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { copyFile, link, mkdir, mkdtemp, open, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';

import { isDigest, sha256Hex } from '../../lib/sha256.js';
import type { Digest } from '../../lib/sha256.js';
import type { Archive, ArchiveFiles } from './archive.js';
import { ManifestDigest } from './manifest.js';
import type { ManifestHead } from './manifest.js';

/** What is known of one archive. `entriesDigest` covers the file of its entries. */
interface ArchiveRecord extends Archive {
  readonly repositoryId: string;
  readonly entriesDigest: Digest;
  readonly entriesBytes: number;
}

interface Kept {
  readonly record: ArchiveRecord;
  readonly bytes: number;
  readonly commits: Set<string>;
  usedAt: number;
}

/** What a staged archive does not say of itself. */
type StagedEntries = Pick<ArchiveRecord, 'repositoryId' | 'entriesDigest'>;

/** Names below the folder of one archive. */
const names = { tar: 'archive.tar', entries: 'entries.json', record: 'record.json', commits: 'commits' } as const;
const staging = '.new-';
/** Commits of one tree that are remembered. */
const mostCommits = 64;

/**
 * Archives of earlier operations, by repository and tree. It only says what a tree of a repository looks like: whether this operation may
 * read the tree is proven before it is asked. Archives are never shared between repositories, so a forge cannot name a tree that only
 * another one has.
 */
export class ArchiveCache {
  readonly #root: string;
  readonly #most: number;
  readonly #kept = new Map<string, Kept>();

  constructor(root: string, mostBytes: number) {
    this.#root = root;
    this.#most = mostBytes;
    mkdirSync(root, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(root)) {
      const kept = /^[0-9a-f]{64}$/.test(name) ? keptIn(path.join(root, name)) : undefined;
      if (kept) this.#kept.set(name, kept);
      else rmSync(path.join(root, name), { recursive: true });
    }
  }

  /** A folder for an archive that is about to be made. */
  async stage(): Promise<{ readonly files: ArchiveFiles; readonly folder: string }> {
    const folder = await mkdtemp(path.join(this.#root, staging));
    return { folder, files: { tar: path.join(folder, names.tar), entries: path.join(folder, names.entries) } };
  }

  /** Keeps a staged archive for later operations. The staged folder is gone afterwards. */
  async keep(folder: string, commit: string, archive: Archive, { repositoryId, entriesDigest }: StagedEntries): Promise<void> {
    const key = keyOf(repositoryId, archive.treeOid);
    const known = this.#kept.get(key);
    if (known?.record.digest === archive.digest) {
      await rm(folder, { recursive: true });
      await this.#addCommit(key, known, commit);
      return;
    }
    const { size: entriesBytes } = await stat(path.join(folder, names.entries));
    const record: ArchiveRecord = { ...archive, repositoryId, entriesDigest, entriesBytes };
    await mkdir(path.join(folder, names.commits));
    await writeFile(path.join(folder, names.commits, commit), '');
    await writeFile(path.join(folder, names.record), JSON.stringify(record), { flush: true });
    await this.#drop(key);
    await rename(folder, path.join(this.#root, key));
    const bytes = record.sizeBytes + entriesBytes;
    this.#kept.set(key, { record, bytes, commits: new Set([commit]), usedAt: Date.now() });
    await this.#makeRoom(key);
  }

  /** Another commit may have the same tree. */
  async #addCommit(key: string, { commits }: Kept, commit: string): Promise<void> {
    if (commits.has(commit) || commits.size >= mostCommits) return;
    await writeFile(path.join(this.#root, key, names.commits, commit), '');
    commits.add(commit);
  }

  /** The archive of a commit that was prepared before; its bytes are not yet checked. */
  find(repositoryId: string, commit: string): Archive | undefined {
    for (const { record, commits } of this.#kept.values())
      if (record.repositoryId === repositoryId && commits.has(commit)) return record;
    return undefined;
  }

  /**
   * Puts a kept archive at `target` and computes its manifest for this operation. `undefined` = it is not what was kept; then it is gone.
   */
  async use(archive: Archive, head: ManifestHead, target: string, signal: AbortSignal): Promise<Digest | undefined> {
    const key = keyOf(head.repositoryId, archive.treeOid);
    const kept = this.#kept.get(key);
    if (!kept) return undefined;
    const folder = path.join(this.#root, key);
    try {
      const { entriesDigest, manifestDigest } = await manifestOf(path.join(folder, names.entries), head, signal);
      await linkOrCopy(path.join(folder, names.tar), target);
      // The bytes that are handed over are the ones that are checked.
      const tar = await digestOfFile(target, signal);
      if (entriesDigest !== kept.record.entriesDigest || tar !== kept.record.digest) throw new Error('changed');
      kept.usedAt = Date.now();
      const now = new Date();
      await utimes(folder, now, now);
      return manifestDigest;
    } catch (error) {
      await rm(target, { force: true });
      if (signal.aborted) throw error;
      await this.#drop(key);
      return undefined;
    }
  }

  async #makeRoom(except: string): Promise<void> {
    const oldest = [...this.#kept].filter(([key]) => key !== except).sort(([, a], [, b]) => a.usedAt - b.usedAt);
    let total = [...this.#kept.values()].reduce((sum, { bytes }) => sum + bytes, 0);
    for (const [key, { bytes }] of oldest) {
      if (total <= this.#most) return;
      await this.#drop(key);
      total -= bytes;
    }
  }

  async #drop(key: string): Promise<void> {
    this.#kept.delete(key);
    await rm(path.join(this.#root, key), { recursive: true, force: true });
  }
}

const keyOf = (repositoryId: string, treeOid: string): string => sha256Hex(`${repositoryId}\0${treeOid}`);

/** What is in a folder of the cache; `undefined` = nothing that can be used. */
function keptIn(folder: string): Kept | undefined {
  try {
    const record = JSON.parse(readFileSync(path.join(folder, names.record), 'utf8')) as ArchiveRecord;
    if (!isDigest(record.digest) || keyOf(record.repositoryId, record.treeOid) !== path.basename(folder)) return undefined;
    const size = (name: string): number => statSync(path.join(folder, name)).size;
    if (size(names.tar) !== record.sizeBytes || size(names.entries) !== record.entriesBytes) return undefined;
    const commits = new Set(readdirSync(path.join(folder, names.commits)));
    return { record, bytes: record.sizeBytes + record.entriesBytes, commits, usedAt: statSync(folder).mtimeMs };
  } catch {
    return undefined;
  }
}

async function digestOfFile(
  file: string,
  signal?: AbortSignal,
  onPart: (part: Buffer) => void = () => undefined,
): Promise<Digest> {
  const hash = createHash('sha256');
  const parts = createReadStream(file, { highWaterMark: 256 * 1024, ...(signal ? { signal } : {}) });
  for await (const part of parts as AsyncIterable<Buffer>) {
    hash.update(part);
    onPart(part);
  }
  return `sha256:${hash.digest('hex')}`;
}

/** Digests of a file of entries, and of the manifest that holds them. */
export async function manifestOf(
  entries: string,
  head: ManifestHead,
  signal?: AbortSignal,
): Promise<{ readonly entriesDigest: Digest; readonly manifestDigest: Digest }> {
  const manifest = new ManifestDigest(head);
  const entriesDigest = await digestOfFile(entries, signal, (part) => manifest.add(part));
  return { entriesDigest, manifestDigest: manifest.finish() };
}

/** Gives a file a second name, or copies it to another file system. It is on disk afterwards. */
export async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL);
    const copy = await open(to, 'r');
    await copy.sync().finally(() => copy.close());
  }
}
