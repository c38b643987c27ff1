// Plain JavaScript: a child process loads this file as it is, before and after a build.

/**
 * Walks and empties folders through descriptors. An open folder is reached as /proc/self/fd/N, so renames above it change nothing,
 * and no link is followed. Made to run as the user of a session: it can reach nothing that the session cannot reach.
 */
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  renameSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs';

/** @typedef {{ readonly fd: number, readonly id: string }} Folder */
/** @typedef {'file' | 'folder' | 'link' | 'other'} Kind */
/** @typedef {{ readonly name: Buffer, readonly kind: Kind, readonly bytes: number }} Entry */

/** Linux's O_PATH, which Node does not export: opening this way needs no right to read and blocks on nothing. */
export const pathOnly = 0o10000000;
export const folderFlags = pathOnly | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Bytes of the path of an entry. It bounds the depth, and with it the open descriptors. Source: dispatch.md §7.1. */
export const longestPath = 4096;

/** An entry of an open folder. @param {number} fd @param {Buffer} name */
export const entryAt = (fd, name) => Buffer.concat([Buffer.from(`/proc/self/fd/${fd}/`), name]);

/** @param {{ readonly dev: bigint, readonly ino: bigint }} stat */
export const idOf = ({ dev, ino }) => `${dev}:${ino}`;

/** Opens a folder that is no link, and makes it usable if it is our own. @param {string | Buffer} path @returns {Folder} */
export function openFolder(path) {
  const fd = openSync(path, folderFlags);
  try {
    const stat = fstatSync(fd, { bigint: true });
    const own = stat.uid === BigInt(process.geteuid?.() ?? -1);
    if (own && (stat.mode & 0o700n) !== 0o700n) chmodSync(`/proc/self/fd/${fd}`, 0o700);
    return { fd, id: idOf(stat) };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** @param {Folder} folder @returns {Generator<Buffer, undefined>} */
export function* namesIn({ fd }) {
  const handle = opendirSync(`/proc/self/fd/${fd}`, { encoding: /** @type {BufferEncoding} */ ('buffer') });
  try {
    for (let entry = handle.readSync(); entry !== null; entry = handle.readSync())
      yield /** @type {Buffer} */ (/** @type {unknown} */ (entry.name));
  } finally {
    handle.closeSync();
  }
}

/** @param {import('node:fs').BigIntStats} stat @returns {Kind} */
export function kindOf(stat) {
  if (stat.isFile()) return 'file';
  if (stat.isDirectory()) return 'folder';
  return stat.isSymbolicLink() ? 'link' : 'other';
}

/**
 * Visits everything below a folder, depth first, with two descriptors for each level. `visit` returns whether to enter a folder, and
 * `stop` ends the walk. Returns why the walk stopped early: `path` = a path is too long. Throws if a folder cannot be read, or changes.
 *
 * @param {Folder} root
 * @param {(entry: Entry) => 'enter' | 'pass' | 'stop'} visit
 * @returns {'stopped' | 'path' | undefined}
 */
export function walk(root, visit) {
  const levels = [{ folder: root, names: namesIn(root), length: 0 }];
  try {
    for (let level = levels.at(-1); level; level = levels.at(-1)) {
      const { value: name, done } = level.names.next();
      if (done === true || name === undefined) {
        levels.pop();
        if (level.folder !== root) closeSync(level.folder.fd);
        continue;
      }
      const path = entryAt(level.folder.fd, name);
      const stat = lstatSync(path, { bigint: true });
      const next = visit({ name, kind: kindOf(stat), bytes: Number(stat.size) });
      if (next === 'stop') return 'stopped';
      const length = level.length + 1 + name.length;
      if (length > longestPath) return 'path';
      if (next === 'pass' || !stat.isDirectory()) continue;
      const folder = openFolder(path);
      levels.push({ folder, names: namesIn(folder), length });
      if (folder.id !== idOf(stat)) throw Object.assign(new Error('a folder was replaced while it was read'), { code: 'ESTALE' });
    }
    return undefined;
  } finally {
    for (const { folder, names } of levels) {
      names.return(undefined);
      if (folder !== root) closeSync(folder.fd);
    }
  }
}

/**
 * Removes everything below a folder, as far as its user may. However deep it is, no path gets long and one descriptor is open for each
 * of two levels: folders move up beside the first ones. Returns how many entries stay, and the error of one of them.
 *
 * @param {Folder} root
 * @returns {{ readonly left: number, readonly code: string }}
 */
export function emptyFolder(root) {
  const label = randomBytes(6).toString('hex');
  let moved = 0;
  /** @type {string} */
  let code = '';

  /** @param {() => void} step @returns {boolean} */
  const succeeds = (step) => {
    try {
      step();
      return true;
    } catch (error) {
      const found = /** @type {NodeJS.ErrnoException} */ (error).code ?? 'unknown';
      if (found === 'ENOENT') return true;
      code = found;
      return false;
    }
  };

  /** @param {Buffer} path */
  const lift = (path) => {
    closeSync(openFolder(path).fd);
    const beside = entryAt(root.fd, Buffer.from(`${label}-${++moved}`));
    // Another user's folder can be neither entered nor moved, but removed if it is empty.
    if (!succeeds(() => renameSync(path, beside))) rmdirSync(path);
  };

  /** @param {Buffer} path */
  const removeFolder = (path) => {
    const folder = openFolder(path);
    try {
      for (const name of namesIn(folder)) {
        const entry = entryAt(folder.fd, name);
        succeeds(() => (lstatSync(entry).isDirectory() ? lift(entry) : unlinkSync(entry)));
      }
    } finally {
      closeSync(folder.fd);
    }
  };

  /** @param {Buffer} path @returns {boolean} */
  const removed = (path) =>
    succeeds(() => {
      if (!lstatSync(path).isDirectory()) return unlinkSync(path);
      succeeds(() => removeFolder(path));
      rmdirSync(path);
    });

  // A lifted folder is seen in a later pass; a pass without progress is the last.
  for (;;) {
    let [gone, left] = [0, 0];
    for (const name of namesIn(root)) {
      if (removed(entryAt(root.fd, name))) gone++;
      else left++;
    }
    if (gone === 0) return { left, code: left === 0 ? '' : code };
  }
}

/** Removes the entries of a shared folder that belong to this user, as far as they can be removed. @param {string} path */
export function removeOwn(path) {
  const shared = openFolder(path);
  const uid = process.geteuid?.();
  for (const name of namesIn(shared)) {
    const entry = entryAt(shared.fd, name);
    try {
      const stat = lstatSync(entry);
      if (stat.uid !== uid) continue;
      if (!stat.isDirectory()) unlinkSync(entry);
      else {
        const folder = openFolder(entry);
        emptyFolder(folder);
        closeSync(folder.fd);
        rmdirSync(entry);
      }
    } catch {
      // What another user's folder protects stays until the sandbox ends.
    }
  }
  closeSync(shared.fd);
}
