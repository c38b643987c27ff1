// The program that a supervisor runs for work on what a session owns, see session-user.ts: orders on stdin, a line each, and an answer on stdout for each.

import { closeSync, readSync, writeSync } from 'node:fs';
import { becomeUser } from './become-user.js';
import { compare, TreeError } from './tree.js';
import { emptyFolder, openFolder, removeOwn, walk } from './walk.js';

/** @typedef {import('./identities.js').SessionIdentity} SessionIdentity */
/** @typedef {import('./session-user.js').ScanOrder} ScanOrder */
/** @typedef {import('./session-user.js').RemoveOrder} RemoveOrder */
/** @typedef {import('./session-user.js').SignalOrder} SignalOrder */
/** @typedef {import('./session-user.js').ScanAnswer} ScanAnswer */
/** @typedef {import('./session-user.js').RemoveAnswer} RemoveAnswer */
/** @typedef {import('./session-user.js').SignalAnswer} SignalAnswer */
/** @typedef {import('./session-user.js').CompareOrder} CompareOrder */
/** @typedef {import('./session-user.js').CompareAnswer} CompareAnswer */
/** @typedef {{ readonly refused: string } | { readonly exceeded: string }} TreeProblem */

/** @param {ScanOrder} order @returns {ScanAnswer} */
function scan({ folder, excluded, reserved, maxEntries, maxBytes }) {
  const [unseen, refused] = [new Set(excluded), new Set(reserved)];
  const found = { entries: 0, files: 0, links: 0, bytes: 0, reserved: false };
  const root = openFolder(folder);
  try {
    const stopped = walk(root, ({ name, kind, bytes }) => {
      const text = name.toString('latin1');
      if (unseen.has(text)) return 'pass';
      found.reserved ||= refused.has(text);
      found.entries++;
      if (kind === 'file') {
        found.files++;
        found.bytes = Math.min(found.bytes + bytes, Number.MAX_SAFE_INTEGER);
      }
      if (kind === 'link') found.links++;
      return found.entries > maxEntries || found.bytes > maxBytes ? 'stop' : 'enter';
    });
    return { ...found, folderId: root.id, exceeded: stopped !== undefined };
  } finally {
    closeSync(root.fd);
  }
}

/** @param {RemoveOrder} order @returns {RemoveAnswer} */
function remove({ folders, shared }) {
  let left = 0;
  let code = '';
  for (const path of folders) {
    const root = openFolder(path);
    const found = emptyFolder(root);
    closeSync(root.fd);
    left += found.left;
    code ||= found.code;
  }
  for (const path of shared) {
    try {
      removeOwn(path);
    } catch {
      // A folder that is not there has nothing of this user.
    }
  }
  return { left, code };
}

/**
 * Signals every other process of this user in one step of the kernel, which no fork escapes. Never as root, whose processes are all others.
 *
 * @param {SignalOrder} order @param {SessionIdentity | undefined} identity @returns {SignalAnswer}
 */
function signalOthers({ signal }, identity) {
  const uid = process.getuid?.();
  if (uid === undefined || uid === 0 || uid !== identity?.uid || uid !== process.geteuid?.())
    throw Object.assign(new Error('not the user of a session'), { code: 'EPERM' });
  try {
    process.kill(-1, signal);
    return { found: true };
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH') throw error;
    return { found: false };
  }
}

/** Descriptor of the record of a workspace. The supervisor opened it: the session's user may not. */
const record = 3;

/** @param {string} line @returns {ScanAnswer | RemoveAnswer | SignalAnswer | CompareAnswer | { readonly failed: string } | TreeProblem} */
function answer(line) {
  /** @type {{ readonly identity?: SessionIdentity, readonly order: ScanOrder | RemoveOrder | SignalOrder | CompareOrder }} */
  const { identity, order } = JSON.parse(line);
  try {
    if (identity && process.getuid?.() !== identity.uid) becomeUser(identity);
    if ('signal' in order) return signalOthers(order, identity);
    if ('mostPaths' in order) return compare(order, record);
    return 'folder' in order ? scan(order) : remove(order);
  } catch (error) {
    if (error instanceof TreeError) return error.code === 'refused' ? { refused: error.message } : { exceeded: error.message };
    // A message would quote names that the session chose.
    return { failed: /** @type {NodeJS.ErrnoException} */ (error).code ?? 'unknown' };
  }
}

/** Lines of stdin, until it ends. @returns {Generator<string, undefined>} */
function* orders() {
  const part = Buffer.alloc(64 * 1024);
  let rest = '';
  for (let size = readSync(0, part); size > 0; size = readSync(0, part)) {
    const lines = (rest + part.toString('latin1', 0, size)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield Buffer.from(line, 'latin1').toString();
  }
}

for (const line of orders()) writeSync(1, `${JSON.stringify(answer(line))}\n`);
