// The program that a supervisor runs for work on what a session owns, see session-user.ts: one order on stdin, one answer on stdout.

import { readFileSync } from 'node:fs';
import { becomeUser } from './become-user.js';
import { capture, compare, TreeError } from './tree.js';
import { emptyFolder, openFolder, removeOwn, walk } from './walk.js';

/** @typedef {import('./identities.js').SessionIdentity} SessionIdentity */
/** @typedef {import('./session-user.js').ScanOrder} ScanOrder */
/** @typedef {import('./session-user.js').RemoveOrder} RemoveOrder */
/** @typedef {import('./session-user.js').SignalOrder} SignalOrder */
/** @typedef {import('./session-user.js').ScanAnswer} ScanAnswer */
/** @typedef {import('./session-user.js').RemoveAnswer} RemoveAnswer */
/** @typedef {import('./session-user.js').SignalAnswer} SignalAnswer */
/** @typedef {import('./session-user.js').CaptureOrder} CaptureOrder */
/** @typedef {import('./session-user.js').CaptureAnswer} CaptureAnswer */
/** @typedef {import('./session-user.js').CompareOrder} CompareOrder */
/** @typedef {import('./session-user.js').CompareAnswer} CompareAnswer */
/** @typedef {{ readonly refused: string } | { readonly exceeded: string }} TreeProblem */

/** @param {ScanOrder} order @returns {ScanAnswer} */
function scan({ folder, excluded, reserved, maxEntries, maxBytes }) {
  const [unseen, refused] = [new Set(excluded), new Set(reserved)];
  const found = { entries: 0, files: 0, links: 0, bytes: 0, reserved: false };
  const root = openFolder(folder);
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
}

/** @param {RemoveOrder} order @returns {RemoveAnswer} */
function remove({ folders, shared }) {
  let left = 0;
  let code = '';
  for (const path of folders) {
    const found = emptyFolder(openFolder(path));
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

/** @returns {ScanAnswer | RemoveAnswer | SignalAnswer | CaptureAnswer | CompareAnswer | { readonly failed: string } | TreeProblem} */
function answer() {
  /** @type {{ readonly identity?: SessionIdentity, readonly order: ScanOrder | RemoveOrder | SignalOrder | CaptureOrder | CompareOrder }} */
  const { identity, order } = JSON.parse(readFileSync(0, 'utf8'));
  try {
    if (identity) becomeUser(identity);
    if ('signal' in order) return signalOthers(order, identity);
    if ('mostPaths' in order) return compare(order, record);
    if ('capture' in order) return capture(order, record);
    return 'folder' in order ? scan(order) : remove(order);
  } catch (error) {
    if (error instanceof TreeError) return error.code === 'refused' ? { refused: error.message } : { exceeded: error.message };
    // A message would quote names that the session chose.
    return { failed: /** @type {NodeJS.ErrnoException} */ (error).code ?? 'unknown' };
  }
}

process.stdout.write(JSON.stringify(answer()));
