// Plain JavaScript: a child process loads this file as it is, before and after a build.

/**
 * Puts the archive of a repository into an empty folder, as the user who owns the folder. Each file and folder is made in an open folder of
 * which every name was made here, so no path is ever resolved; links are made last. Source: repository.md §4.3.
 */
import { createHash } from 'node:crypto';
import { closeSync, constants, mkdirSync, openSync, symlinkSync, writeSync } from 'node:fs';
import {
  archiveLimits,
  checkArchivePath,
  checkLinkGraph,
  checkLinkTarget,
  comparePaths,
  shownPath,
} from '../source/archive-rules.js';
import { TarReader } from './tar-reader.js';
import { RecordWriter } from './tree.js';
import { entryAt, folderFlags, namesIn, openFolder } from './walk.js';

/** @typedef {import('./tar-reader.js').TarEntry} TarEntry */
/** @typedef {import('./walk.js').Folder} Folder */
/** @typedef {import('./session-user.js').ExtractOrder} ExtractOrder */
/** @typedef {import('./session-user.js').ExtractAnswer} ExtractAnswer */
/** @typedef {import('./tree.js').Line['kind']} Kind */
/** An entry of the folder. @typedef {{ readonly path: string, readonly kind: Kind, readonly mode: number, readonly size: number, readonly target?: string, sum: string }} Made */

/** The archive is refused. The message names the entry and the rule. */
export class ArchiveError extends Error {}

const fileFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** @type {Readonly<Record<TarEntry['kind'], readonly number[]>>} */
const modes = { file: [0o644, 0o755], folder: [0o755], link: [0o777] };
/** Of every folder that is made. */
const folderMode = 0o700;

/** @param {string | Uint8Array} path @param {string} says */
const refused = (path, says) => new ArchiveError(`${says}: ${shownPath(path)}`);

/** The open folders from the root to the one that was asked for last; entries come in an order in which the next is near. */
class OpenFolders {
  #root;
  /** @type {{ readonly name: string, readonly fd: number }[]} */
  #open = [];

  /** @param {Folder} root */
  constructor(root) {
    this.#root = root;
  }

  /** Path of an entry through the descriptor of its folder. @param {string} path */
  entry(path) {
    const names = path.split('/');
    const name = names.pop() ?? '';
    let same = 0;
    while (same < names.length && this.#open[same]?.name === names[same]) same++;
    for (const { fd } of this.#open.splice(same)) closeSync(fd);
    for (const below of names.slice(same))
      this.#open.push({ name: below, fd: openSync(entryAt(this.#last(), Buffer.from(below)), folderFlags) });
    return entryAt(this.#last(), Buffer.from(name));
  }

  close() {
    for (const { fd } of this.#open.splice(0)) closeSync(fd);
  }

  #last() {
    return this.#open.at(-1)?.fd ?? this.#root.fd;
  }
}

/** The folder fills while the archive arrives. Every step throws {@link ArchiveError}, TarError, or an error of the file system. */
export class Extraction {
  #root;
  #folders;
  #limits;
  /** With `/` at its end; empty = the whole archive. */
  #within;
  #reader = new TarReader({
    entry: (entry) => this.#entry(entry),
    data: (part) => this.#write(part),
    finish: () => this.#finish(),
  });
  /** Of every entry of the archive. @type {Map<string, TarEntry['kind']>} */
  #kinds = new Map();
  /** Entries that belong into the folder. @type {Made[]} */
  #wanted = [];
  #record;
  /** Of the file that is being written. @type {import('node:crypto').Hash | undefined} */
  #hash;
  #bytes = 0;
  /** The file that is being written. @type {number | undefined} */
  #fd;
  #files = 0;
  #links = 0;

  /** @param {ExtractOrder} order @param {number} [record] an open file, for what {@link compare} of tree.js compares with */
  constructor({ folder, relativeRoot, limits = archiveLimits }, record) {
    this.#record = record;
    this.#root = openFolder(folder);
    if (namesIn(this.#root).next().done !== true) throw new ArchiveError('the workspace is not empty');
    this.#folders = new OpenFolders(this.#root);
    this.#limits = limits;
    this.#within = relativeRoot === undefined || relativeRoot === '' ? '' : `${relativeRoot}/`;
  }

  /** @param {Buffer} part */
  push(part) {
    this.#reader.push(part);
  }

  /** The whole archive was given, and is the right one. @returns {ExtractAnswer} */
  end() {
    this.#reader.end();
    if (this.#within !== '') this.#checkRelativeRoot(this.#within.slice(0, -1));
    const problem = checkLinkGraph(this.#wanted);
    if (problem) throw refused(problem.path, problem.says);
    for (const { path, target } of this.#wanted)
      if (target !== undefined) symlinkSync(Buffer.from(target), this.#folders.entry(path));
    this.#folders.close();
    this.#writeRecord();
    const { id: folderId } = this.#root;
    return { folderId, entries: this.#wanted.length, files: this.#files, links: this.#links, bytes: this.#bytes };
  }

  /**
   * The record says what was written here, and nothing is read back: each name was new in a folder made here, and the bytes have the digest
   * that the supervisor checked. Anything else in the folder is later found as a change; a second reading would hide it.
   */
  #writeRecord() {
    if (this.#record === undefined) return;
    const writer = new RecordWriter(this.#record);
    for (const { path, kind, mode, size, sum, target = '' } of this.#wanted.sort((a, b) => comparePaths(a.path, b.path, 0)))
      writer.add({ path: latin1(path), kind, mode, size, sum, target: latin1(target) });
    writer.end();
  }

  /** @param {string} path */
  #checkRelativeRoot(path) {
    const kind = this.#kinds.get(path);
    if (kind !== 'folder') throw refused(path, `the repository has ${kind ? `a ${kind}` : 'nothing'} where its root should be`);
  }

  /** @param {TarEntry} entry */
  #entry({ kind, path: raw, mode, size, target }) {
    const problem = checkArchivePath(raw);
    if (problem) throw refused(raw, problem.says);
    const path = raw.toString('utf8');
    if (!modes[kind].includes(mode)) throw refused(path, `a ${kind} has the mode ${mode.toString(8)}`);
    if (this.#kinds.has(path)) throw refused(path, 'an entry is there twice');
    const slash = path.lastIndexOf('/');
    if (slash !== -1 && this.#kinds.get(path.slice(0, slash)) !== 'folder')
      throw refused(path, 'an entry is in no folder of the archive');
    this.#kinds.set(path, kind);
    this.#count(path, size, target.length);
    if (!path.startsWith(this.#within)) return;
    this.#make(kind, path.slice(this.#within.length), mode, size, target);
  }

  /** @param {string} path @param {number} size @param {number} targetSize */
  #count(path, size, targetSize) {
    const { entries, fileBytes, treeBytes } = this.#limits;
    if (this.#kinds.size > entries) throw refused(path, `the archive has more than ${entries} entries`);
    if (size > fileBytes) throw refused(path, `a file has more than ${fileBytes} bytes`);
    this.#bytes += size + targetSize;
    if (this.#bytes > treeBytes) throw refused(path, `the files have more than ${treeBytes} bytes together`);
  }

  /** @param {Kind} kind @param {string} path in the folder @param {number} mode @param {number} size @param {Buffer} target */
  #make(kind, path, mode, size, target) {
    if (kind === 'link') {
      const problem = checkLinkTarget(path, target);
      if (problem) throw refused(problem.path, problem.says);
      this.#links++;
      this.#wanted.push({ path, kind, mode, size: 0, sum: '', target: target.toString('utf8') });
      return;
    }
    const at = this.#folders.entry(path);
    if (kind === 'folder') {
      this.#wanted.push({ path, kind, mode: folderMode, size: 0, sum: '' });
      mkdirSync(at, folderMode);
      return;
    }
    this.#wanted.push({ path, kind, mode, size, sum: '' });
    this.#fd = openSync(at, fileFlags, mode);
    this.#files++;
    if (this.#record !== undefined) this.#hash = createHash('sha256');
  }

  /** @param {Buffer} part */
  #write(part) {
    if (this.#fd === undefined) return;
    this.#hash?.update(part);
    for (let at = 0; at < part.length;) at += writeSync(this.#fd, part, at);
  }

  #finish() {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
    const file = this.#wanted.at(-1);
    if (file && this.#hash) file.sum = this.#hash.digest('hex');
    this.#hash = undefined;
  }
}

/** @param {string} text */
const latin1 = (text) => Buffer.from(text).toString('latin1');
