// The program that a supervisor runs for work on what a session owns, see session-user.ts: one order on stdin, one answer on stdout.

import { readFileSync } from 'node:fs';
import { emptyFolder, openFolder, removeOwn, walk } from './walk.js';

/** @typedef {import('./identities.js').SessionIdentity} SessionIdentity */
/** @typedef {import('./session-user.js').ScanOrder} ScanOrder */
/** @typedef {import('./session-user.js').RemoveOrder} RemoveOrder */
/** @typedef {import('./session-user.js').SignalOrder} SignalOrder */
/** @typedef {import('./session-user.js').ScanAnswer} ScanAnswer */
/** @typedef {import('./session-user.js').RemoveAnswer} RemoveAnswer */
/** @typedef {import('./session-user.js').SignalAnswer} SignalAnswer */

/**
 * Becomes the user of the session, for good. A process that changes its user itself, without a new program after it, cannot be traced or
 * opened in /proc by others of that user.
 *
 * @param {SessionIdentity} identity
 */
function becomeUser({ uid, gid }) {
  // Node's own handler would open a debugger for every process that may send the signal.
  process.on('SIGUSR1', () => undefined);
  process.setgroups?.([]);
  process.setgid?.(gid);
  process.setuid?.(uid);
}

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

/** @returns {ScanAnswer | RemoveAnswer | SignalAnswer | { readonly failed: string }} */
function answer() {
  /** @type {{ readonly identity?: SessionIdentity, readonly order: ScanOrder | RemoveOrder | SignalOrder }} */
  const { identity, order } = JSON.parse(readFileSync(0, 'utf8'));
  try {
    if (identity) becomeUser(identity);
    if ('signal' in order) return signalOthers(order, identity);
    return 'folder' in order ? scan(order) : remove(order);
  } catch (error) {
    // A message would quote names that the session chose.
    return { failed: /** @type {NodeJS.ErrnoException} */ (error).code ?? 'unknown' };
  }
}

process.stdout.write(JSON.stringify(answer()));
