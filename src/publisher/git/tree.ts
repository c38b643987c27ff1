import { archiveLimits, checkArchivePath, checkLinkGraph, checkLinkTarget, comparePaths } from '../../source/archive-rules.js';
import type { ArchiveProblem } from '../../source/archive-rules.js';
import type { ErrorDetail } from '../../source/errors.js';
import { escapedPath } from './escape.js';
import { isTakenForGit } from './protected-names.js';
import type { ArchiveLimits } from './source.js';
import type { GitProcess } from './runner.js';
import { SourceError } from './source-error.js';

/** One file or link of a tree. Directories are only implied. */
export interface TreeFile {
  readonly path: string;
  readonly mode: '100644' | '100755' | '120000';
  readonly oid: string;
  readonly size: number;
  /** Of a link. */
  target?: string;
}

/** Holds the path of its folder once for all files of that folder: a hundred thousand whole paths can have hundreds of megabytes. */
class ListedFile implements TreeFile {
  readonly mode: TreeFile['mode'];
  readonly oid: string;
  readonly size: number;
  target?: string;
  readonly #folder: string;
  readonly #name: string;

  constructor(folder: string, name: string, { mode, oid, size }: Omit<TreeFile, 'path'>) {
    [this.#folder, this.#name, this.mode, this.oid, this.size] = [folder, name, mode, oid, size];
  }

  get path(): string {
    return `${this.#folder}${this.#name}`;
  }
}

/** A tree that may become a workspace, its links not yet checked. */
export interface Tree {
  /** Sorted by the bytes of their paths. */
  readonly files: readonly TreeFile[];
  /** Parents before children, siblings by name. */
  readonly directories: readonly string[];
  /** Contents and link targets. */
  readonly bytes: number;
  readonly largestFile: number;
}

/** A refusal of a tree. `at`: the repository. */
export function refused(
  at: string,
  reason: ErrorDetail['reason'],
  says: string,
  rest: Omit<ErrorDetail, 'reason'> = {},
): SourceError {
  const { path, limit, found } = rest;
  const finding = {
    at,
    ...(path === undefined ? {} : { field: path }),
    says,
    ...(found === undefined ? {} : { found }),
    ...(limit === undefined ? {} : { allowed: `at most ${limit}` }),
  };
  return new SourceError('tree_refused', finding, { reason, ...rest });
}

const corrupt = (at: string): SourceError =>
  new SourceError('source_corrupt', { at, says: 'git lists the tree in a way that is not understood' });

const slash = 0x2f;
/** Bytes of a block of tar, and of the longest name that one header holds. */
const [block, tarNameBytes] = [512, 100];

/** Longest record of a listing that can be a permitted entry. */
const longestRecord = archiveLimits.pathBytes + 256;

/** Reads `ls-tree -lrz` and applies the rules of a path to each entry. */
export class TreeReader {
  readonly #at: string;
  readonly #limits: ArchiveLimits;
  readonly #files: TreeFile[] = [];
  readonly #directories: string[] = [];
  #previous: Buffer = Buffer.alloc(0);
  #previousNames: readonly string[] = [];
  #entries = 0;
  #bytes = 0;
  #largestFile = 0;
  /** At least so many bytes of the archive are headers. */
  #headerBytes = 0;
  #folder = '';

  constructor(at: string, limits: ArchiveLimits) {
    this.#at = at;
    this.#limits = limits;
  }

  /** The whole tree, or the first refusal. */
  async read({ stdout, done }: GitProcess): Promise<Tree> {
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of stdout as AsyncIterable<Buffer>) {
      let from = 0;
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      for (let end = bytes.indexOf(0); end >= 0; end = bytes.indexOf(0, from)) {
        this.#add(bytes.subarray(from, end));
        from = end + 1;
      }
      rest = bytes.subarray(from);
      if (rest.length > longestRecord)
        throw refused(this.#at, 'path', 'a path is too long', {
          path: escapedPath(rest.subarray(rest.indexOf(9) + 1)),
          limit: archiveLimits.pathBytes,
        });
    }
    // A listing that was cut short is first of all a failure of git.
    await done;
    if (rest.length > 0) throw corrupt(this.#at);
    return this.#finish();
  }

  #add(record: Buffer): void {
    const tab = record.indexOf(9);
    const [, mode = '', type = '', oid = '', sizeText = ''] =
      /^(\d{6}) (\w+) ([0-9a-f]{40,64}) +(\d+|-)$/.exec(record.subarray(0, Math.max(0, tab)).toString('latin1')) ?? [];
    if (oid === '') throw corrupt(this.#at);
    const bytes = record.subarray(tab + 1);
    if (type !== 'blob')
      throw refused(this.#at, 'submodule', 'the entry is a submodule, which a workspace cannot have', {
        path: escapedPath(bytes),
      });
    this.#refuse(bytes, checkArchivePath(bytes));
    const path = bytes.toString();
    // Strictly rising bytes also prove that no path stands twice.
    if (Buffer.compare(this.#previous, bytes) >= 0) throw corrupt(this.#at);
    this.#previous = Buffer.from(bytes);
    this.#count(path, bytes);
    this.#bound(bytes.length);
    this.#keep({ path, mode: this.#modeOf(mode), oid, size: Number(sizeText) }, bytes);
  }

  /** A path brings the directories that the one before it was not in. */
  #count(path: string, bytes: Buffer): void {
    const names = path.split('/');
    let shared = 0;
    while (shared < names.length - 1 && shared < this.#previousNames.length - 1 && names[shared] === this.#previousNames[shared])
      shared++;
    this.#previousNames = names;
    if (names.slice(shared).some(isTakenForGit))
      throw refused(this.#at, 'reserved_name', 'the path has a name that Git keeps for itself', { path: escapedPath(bytes) });
    for (let depth = shared + 1; depth < names.length; depth++) {
      this.#entries++;
      const folder = names.slice(0, depth).join('/');
      if (this.#entries <= this.#limits.maxEntries) this.#directories.push(folder);
      this.#bound(Buffer.byteLength(folder));
    }
  }

  /** Path of the folder of an entry with `/` at its end, as the same string for all entries of one folder. */
  #folderOf(path: string): string {
    const folder = path.slice(0, path.lastIndexOf('/') + 1);
    if (folder !== this.#folder) this.#folder = folder;
    return this.#folder;
  }

  /** Ends what would go on for hours or take all memory: a few small objects can name a tree without end, and names of gigabytes. */
  #bound(pathBytes: number): void {
    const { maxEntries, maxArtifactBytes } = this.#limits;
    // A little more than the limit is counted, so that the refusal tells the number.
    if (this.#entries > 2 * maxEntries) throw this.#tooManyEntries();
    this.#headerBytes += pathBytes > tarNameBytes ? 2 * block + pathBytes : block;
    if (this.#headerBytes > maxArtifactBytes)
      throw refused(this.#at, 'tree_too_large', 'the archive of the tree has too many bytes', { limit: maxArtifactBytes });
  }

  #tooManyEntries(found?: number): SourceError {
    const says = 'the tree has too many files and directories';
    const { maxEntries: limit } = this.#limits;
    return refused(this.#at, 'too_many_entries', says, { limit, ...(found === undefined ? {} : { found }) });
  }

  #keep(file: TreeFile, bytes: Buffer): void {
    const { size, mode } = file;
    const isLink = mode === '120000';
    if (isLink && size > archiveLimits.pathBytes)
      throw refused(this.#at, 'unsafe_link', 'the target of the link is too long', {
        path: escapedPath(bytes),
        limit: archiveLimits.pathBytes,
        found: size,
      });
    if (size > this.#limits.maxFileBytes)
      throw refused(this.#at, 'file_too_large', 'the file has too many bytes', {
        path: escapedPath(bytes),
        limit: this.#limits.maxFileBytes,
        found: size,
      });
    this.#entries++;
    this.#bytes += size;
    this.#largestFile = Math.max(this.#largestFile, size);
    if (this.#entries > this.#limits.maxEntries) return;
    // Decoded by itself: a part of the whole path would keep the whole path.
    const name = bytes.subarray(bytes.lastIndexOf(slash) + 1).toString();
    this.#files.push(new ListedFile(this.#folderOf(file.path), name, file));
  }

  #modeOf(mode: string): TreeFile['mode'] {
    // Old versions of git also wrote 100664.
    if (mode === '100644' || mode === '100664') return '100644';
    if (mode === '100755' || mode === '120000') return mode;
    throw corrupt(this.#at);
  }

  #finish(): Tree {
    const { maxEntries, maxExpandedBytes } = this.#limits;
    if (this.#entries > maxEntries) throw this.#tooManyEntries(this.#entries);
    if (this.#bytes > maxExpandedBytes)
      throw refused(this.#at, 'tree_too_large', 'the files of the tree have too many bytes', {
        limit: maxExpandedBytes,
        found: this.#bytes,
      });
    return {
      files: this.#files,
      directories: this.#directories.sort((a, b) => depthOf(a) - depthOf(b) || comparePaths(a, b)),
      bytes: this.#bytes,
      largestFile: this.#largestFile,
    };
  }

  #refuse(bytes: Buffer, problem: ArchiveProblem | undefined): void {
    if (problem) throw refused(this.#at, problem.reason, problem.says, { path: escapedPath(bytes) });
  }
}

/** Checks the links of a tree, once their targets are known. */
export function checkLinks(at: string, tree: Tree): void {
  for (const { path, target } of tree.files) {
    if (target === undefined) continue;
    const problem = checkLinkTarget(path, target);
    if (problem) throw refused(at, problem.reason, problem.says, { path: escapedPath(Buffer.from(path)) });
  }
  const problem = checkLinkGraph(tree.files);
  if (problem) throw refused(at, problem.reason, problem.says, { path: escapedPath(Buffer.from(problem.path)) });
}

const depthOf = (path: string): number => {
  let depth = 0;
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) depth++;
  return depth;
};
