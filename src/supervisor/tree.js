// Plain JavaScript: a child process loads this file as it is, before and after a build.

/**
 * Reads a workspace in a fixed order, and compares it with what it was. The record of what it was is a file that only the supervisor may
 * open; one line for each entry, in the order of the walk. Nothing is held for a file or for the whole tree. Source: repository.md §2.9.
 */
import { createHash } from 'node:crypto';
import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, readSync, writeSync } from 'node:fs';
import {
  checkArchivePath,
  checkLinkGraph,
  checkLinkTarget,
  isProtectedName,
  isReservedName,
  shownPath,
} from '../source/archive-rules.js';
import { entryAt, idOf, longestPath, namesIn, openFolder, pathOnly } from './walk.js';

/** @typedef {import('./walk.js').Folder} Folder */
/** @typedef {import('node:fs').BigIntStats} BigIntStats */
/** @typedef {import('./session-user.js').CompareOrder} CompareOrder */
/** @typedef {import('./session-user.js').CompareAnswer} CompareAnswer */
/** `path`: of bytes, as latin1. @typedef {{ readonly path: string, readonly kind: 'file' | 'folder' | 'link', readonly mode: number, readonly size: number, readonly sum: string, readonly target: string }} Line */
/** @typedef {{ readonly path: Buffer, readonly at: Buffer, readonly kind: Line['kind'], readonly stat: BigIntStats }} Found */

/** The workspace breaks a rule or a limit. The message names the entry. */
export class TreeError extends Error {
  /** @param {'refused' | 'exceeded'} code @param {string} says @param {Uint8Array} [path] */
  constructor(code, says, path) {
    super(path ? `${says}: ${shownPath(path)}` : says);
    this.code = code;
  }
}

/** Of one file, and of all. Source: dispatch.md §7.1. */
const [longestFile, longestTree] = [256 * 1024 * 1024, 2 * 1024 * 1024 * 1024];
const piece = Buffer.allocUnsafe(256 * 1024);
const slash = Buffer.from('/');

/** @param {Buffer} name */
const textOf = (name) => name.toString('utf8');

/** Kind of an entry that a workspace may have. @param {BigIntStats} stat @param {Buffer} path @returns {Line['kind']} */
function kindOf(stat, path) {
  if (stat.isDirectory()) return 'folder';
  if (stat.isSymbolicLink()) return 'link';
  if (!stat.isFile()) throw new TreeError('refused', 'an entry is no file, folder or link', path);
  if (stat.nlink !== 1n) throw new TreeError('refused', 'a file has another hard link', path);
  return 'file';
}

/** @param {Folder} folder @param {number} most */
function sortedNames(folder, most) {
  /** @type {Buffer[]} */
  const names = [];
  for (const name of namesIn(folder)) {
    if (names.length > most) break;
    names.push(name);
  }
  return names.sort(Buffer.compare);
}

/**
 * Every entry below a folder but the root's `.git`: a folder, then what is in it, names in the order of their bytes. Holds one descriptor for
 * each level. Throws {@link TreeError}, and for a folder that cannot be read or changes.
 *
 * @param {Folder} root @param {number} maxEntries @returns {Generator<Found, undefined>}
 */
export function* entriesBelow(root, maxEntries) {
  let entries = 0;
  const levels = [{ folder: root, path: /** @type {Buffer} */ (Buffer.alloc(0)), names: sortedNames(root, maxEntries).values() }];
  try {
    for (let level = levels.at(-1); level; level = levels.at(-1)) {
      const { value: name, done } = level.names.next();
      if (done === true || name === undefined) {
        levels.pop();
        if (level.folder !== root) closeSync(level.folder.fd);
        continue;
      }
      if (level.folder === root && name.equals(gitFolder)) continue;
      const path = level.path.length === 0 ? name : Buffer.concat([level.path, slash, name]);
      if (++entries > maxEntries) throw new TreeError('exceeded', `the workspace has more than ${maxEntries} entries`);
      if (path.length > longestPath) throw new TreeError('exceeded', `a path has more than ${longestPath} bytes`, path);
      if (isGitFolder(textOf(name)) || isReservedName(textOf(name))) throw new TreeError('refused', 'a name is reserved', path);
      const at = entryAt(level.folder.fd, name);
      const stat = lstatSync(at, { bigint: true });
      const kind = kindOf(stat, path);
      yield { path, at, kind, stat };
      if (kind !== 'folder') continue;
      const folder = openFolder(at);
      levels.push({ folder, path, names: sortedNames(folder, maxEntries).values() });
      if (folder.id !== idOf(stat)) throw changed();
    }
    return undefined;
  } finally {
    for (const { folder } of levels) if (folder !== root) closeSync(folder.fd);
  }
}

const gitFolder = Buffer.from('.git');
/** @param {string} name */
const isGitFolder = (name) => name.toLowerCase() === '.git';

const changed = () => Object.assign(new Error('an entry was replaced while it was read'), { code: 'ESTALE' });

/** Digest of a file that is no link; one that its owner may not read is readable for as long as it is read. @param {Found} found */
function sumOf(found) {
  const { at, stat } = found;
  if ((stat.mode & 0o400n) !== 0n || stat.uid !== BigInt(process.geteuid?.() ?? -1)) return contentSum(at, found);
  const held = openSync(at, pathOnly | constants.O_NOFOLLOW);
  try {
    const real = `/proc/self/fd/${held}`;
    if (idOf(fstatSync(held, { bigint: true })) !== idOf(stat)) throw changed();
    chmodSync(real, 0o400);
    try {
      return contentSum(at, found);
    } finally {
      chmodSync(real, Number(stat.mode & 0o7777n));
    }
  } finally {
    closeSync(held);
  }
}

/** @param {Buffer} at @param {Found} found */
function contentSum(at, { stat }) {
  const fd = openSync(at, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    if (idOf(fstatSync(fd, { bigint: true })) !== idOf(stat)) throw changed();
    const hash = createHash('sha256');
    let left = Number(stat.size);
    for (let read = -1; read !== 0 && left > 0; left -= read) {
      read = readSync(fd, piece, 0, Math.min(piece.length, left), null);
      hash.update(piece.subarray(0, read));
    }
    if (left > 0 || fstatSync(fd, { bigint: true }).size !== stat.size) throw changed();
    return hash.digest('hex');
  } finally {
    closeSync(fd);
  }
}

/** @param {Found} found */
const targetOf = ({ at }) => readlinkSync(at, { encoding: 'buffer' });

/** @param {Found} found @param {boolean} isRead whether its contents matter @returns {Line} */
export function lineOf(found, isRead) {
  const { path, kind, stat } = found;
  return {
    path: path.toString('latin1'),
    kind,
    mode: Number(stat.mode & 0o7777n),
    size: kind === 'file' ? Number(stat.size) : 0,
    sum: kind === 'file' && isRead ? sumOf(found) : '',
    target: kind === 'link' ? targetOf(found).toString('latin1') : '',
  };
}

/** Adds up sizes within the limits of a workspace. */
class Sizes {
  #sum = 0;

  /** @param {Found} found */
  add({ kind, path, stat }) {
    if (kind !== 'file') return;
    if (stat.size > longestFile) throw new TreeError('exceeded', `a file has more than ${longestFile} bytes`, path);
    this.#sum += Number(stat.size);
    if (this.#sum > longestTree) throw new TreeError('exceeded', `the workspace has more than ${longestTree} bytes`);
  }
}

/** Writes the record of a workspace to an open file. Lines come in the order of the walk. */
export class RecordWriter {
  #fd;
  #text = '';

  /** @param {number} fd */
  constructor(fd) {
    this.#fd = fd;
  }

  /** @param {Line} line */
  add({ path, kind, mode, size, sum, target }) {
    this.#text += `${JSON.stringify([path, kind, mode, size, sum, target])}\n`;
    if (this.#text.length > piece.length) this.end();
  }

  end() {
    const bytes = Buffer.from(this.#text, 'latin1');
    for (let at = 0; at < bytes.length;) at += writeSync(this.#fd, bytes, at);
    this.#text = '';
  }
}

/** Lines of a record, without holding it. @param {number} fd @returns {Generator<Line, undefined>} */
function* recorded(fd) {
  let rest = '';
  for (let at = 0; ;) {
    const read = readSync(fd, piece, 0, piece.length, at);
    if (read === 0) return undefined;
    at += read;
    const lines = (rest + piece.toString('latin1', 0, read)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [path, kind, mode, size, sum, target] = JSON.parse(line);
      yield { path, kind, mode, size, sum, target };
    }
  }
}

/** Order of the walk: by names, of which `/` ends each. @param {string} a as latin1 @param {string} b */
function order(a, b) {
  const [x, y] = [a.replaceAll('/', '\0'), b.replaceAll('/', '\0')];
  return x < y ? -1 : x > y ? 1 : 0;
}

/** @param {string} path as latin1 */
const isProtected = (path) => path.split('/').some((name) => isProtectedName(textOf(Buffer.from(name, 'latin1'))));

/** Whether an entry counts as the same. Only what protects other entries has its exact mode compared. @param {Line} before @param {Line} after */
function isSame(before, after) {
  const exact = isProtected(before.path);
  return (
    before.kind === after.kind &&
    before.size === after.size &&
    before.sum === after.sum &&
    before.target === after.target &&
    (exact ? before.mode === after.mode : before.kind !== 'file' || isProgram(before) === isProgram(after))
  );
}

/** @param {Line} line */
const isProgram = ({ mode }) => (mode & 0o111) !== 0;

/** What was found out about a workspace, entry by entry. */
class Comparison {
  #mostPaths;
  #found = { entries: 0, files: 0, deleted: 0, links: 0 };
  /** @type {string[]} */
  #paths = [];
  /** @type {{ readonly path: string, readonly target: string }[]} */
  #links = [];
  #isLinkChanged = false;

  /** @param {number} mostPaths */
  constructor(mostPaths) {
    this.#mostPaths = mostPaths;
  }

  /** @param {Line | undefined} before @param {Line | undefined} after */
  take(before, after) {
    const line = after ?? before;
    if (!line) return;
    const isChanged = !before || !after || !isSame(before, after);
    const bytes = Buffer.from(line.path, 'latin1');
    if (isChanged) this.#change(before, after, bytes);
    if (after?.kind === 'link') this.#links.push({ path: textOf(bytes), target: textOf(Buffer.from(after.target, 'latin1')) });
  }

  /** @param {Line | undefined} before @param {Line | undefined} after @param {Buffer} path */
  #change(before, after, path) {
    if (isProtected(path.toString('latin1')))
      throw new TreeError('refused', `a protected entry ${before ? (after ? 'was changed' : 'is gone') : 'is new'}`, path);
    if (after) this.#checkNew(after, path);
    if (before && before.kind !== after?.kind) this.#found.deleted++;
    if (after) this.#found.entries++;
    if (after?.kind === 'file') this.#found.files++;
    if (after?.kind === 'link') this.#found.links++;
    if (this.#paths.length < this.#mostPaths) this.#paths.push(shownPath(path));
  }

  /** @param {Line} after @param {Buffer} path */
  #checkNew(after, path) {
    const problem = checkArchivePath(path);
    // Names of Git and of the product are refused before, but `.gitmodules`, which is a change like others.
    if (problem && problem.reason !== 'reserved_name') throw new TreeError('refused', problem.says, path);
    if (after.kind !== 'link') return;
    this.#isLinkChanged = true;
    const target = Buffer.from(after.target, 'latin1');
    const unsafe = checkLinkTarget(textOf(path), target);
    if (unsafe) throw new TreeError('refused', unsafe.says, path);
    if (target.toString('utf8').split('/').some(isProtectedName))
      throw new TreeError('refused', 'a link leads to a protected entry', path);
  }

  end() {
    const problem = this.#isLinkChanged ? checkLinkGraph(this.#links) : undefined;
    if (problem) throw new TreeError('refused', problem.says, Buffer.from(problem.path));
    return { ...this.#found, changedPaths: this.#paths };
  }
}

/**
 * Compares a workspace with its record. A file is read only if it could still be what it was.
 *
 * @param {CompareOrder} order @param {number} fd of the record @returns {CompareAnswer}
 */
export function compare({ folder, maxEntries, mostPaths }, fd) {
  const root = openFolder(folder);
  const [result, sizes, record] = [new Comparison(mostPaths), new Sizes(), recorded(fd)];
  let before = record.next().value;
  for (const found of entriesBelow(root, maxEntries)) {
    sizes.add(found);
    const path = found.path.toString('latin1');
    while (before && order(before.path, path) < 0) {
      result.take(before, undefined);
      before = record.next().value;
    }
    const same = before?.path === path ? before : undefined;
    const isRead = same?.kind === 'file' && same.size === Number(found.stat.size);
    result.take(same, lineOf(found, isRead));
    if (same) before = record.next().value;
  }
  for (; before; before = record.next().value) result.take(before, undefined);
  return { folderId: root.id, ...result.end() };
}
