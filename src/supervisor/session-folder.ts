import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { CodedError } from '../lib/errors.js';
import { sha256Hex } from '../lib/sha256.js';
import type { SessionIdentity } from './identities.js';
import { removeAs } from './session-user.js';
import type { RemoveOrder } from './session-user.js';

/** `left`: a session's files cannot be removed. `shared`: a folder lets one user rename what belongs to another. */
class FolderError extends CodedError<'left' | 'shared'> {}

/** Folders of one session. The root stays the supervisor's, so nobody renames or replaces what is directly below it. */
export interface SessionFolder {
  readonly root: string;
  readonly home: string;
  readonly tmp: string;
  readonly workspace: string;
  readonly xdg: string;
  /** Device and inode of the workspace. */
  readonly workspaceId: string;
}

/** What the root of a session holds. */
const lentNames = ['home', 'tmp', 'workspace', 'xdg'] as const;

/** A file in the root, which stays the supervisor's: what a workspace began with. */
export const recordName = 'workspace-record';

/** Creates the folders as the supervisor's own; `giveAway` is the last step. Source: dispatch.md §6.4. */
export function createSessionFolder(baseDir: string, sessionUID: string, generation: number): SessionFolder {
  const root = path.join(baseDir, `session-${sha256Hex(`${sessionUID}:${generation}`)}-${randomBytes(6).toString('hex')}`);
  const [home, tmp, workspace, xdg] = lentNames.map((name) => path.join(root, name)) as [string, string, string, string];
  const below = ['config', 'cache', 'data', 'state'].map((name) => path.join(xdg, name));
  try {
    for (const made of [root, home, tmp, workspace, xdg, ...below]) mkdirSync(made, { mode: 0o700 });
    const { dev, ino } = lstatSync(workspace, { bigint: true });
    return { root, home, tmp, workspace, xdg, workspaceId: `${dev}:${ino}` };
  } catch (error) {
    rmSync(root, { recursive: true, force: true });
    throw error;
  }
}

/** A file that only its owner may read. */
export function writePrivateFile(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, text, { mode: 0o600, flag: 'wx' });
}

/** Makes everything below the root the session's, before its first process. `undefined`: users are not switched. */
export function giveAway(root: string, identity: SessionIdentity | undefined): void {
  if (!identity) return;
  for (const name of lentNames) chownTree(path.join(root, name), identity);
  chownSync(root, processOwner().uid, identity.gid);
  // The group passes through the root. This is also the record that the folder was given away.
  chmodSync(root, 0o710);
}

/** Only for what no process of a session could ever change. */
function chownTree(entry: string, { uid, gid }: SessionIdentity): void {
  if (lstatSync(entry).isDirectory()) for (const name of readdirSync(entry)) chownTree(path.join(entry, name), { uid, gid });
  lchownSync(entry, uid, gid);
}

function processOwner(): SessionIdentity {
  return { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
}

/** Removes what an earlier life of the supervisor has left: nobody will ask for it, and its users are never given again. */
export async function removeLeftSessions(baseDir: string): Promise<void> {
  for (const name of readdirSync(baseDir).filter((entry) => entry.startsWith('session-')))
    await removeSessionFolder(path.join(baseDir, name));
}

/**
 * Removes the folder of a session, and what its user left in shared folders. Its processes must be gone. The session's own user
 * removes what the session owns; the supervisor removes only empty folders, from a root that it owns. Throws FolderError, WalkError.
 */
export async function removeSessionFolder(root: string): Promise<void> {
  const found = lstatSync(root, { throwIfNoEntry: false });
  if (!found) return;
  const folders = lentNames.map((name) => path.join(root, name)).filter(isThere);
  const [first] = folders;
  const isLent = (found.mode & 0o010) !== 0;
  if (first !== undefined && isLent) {
    const { uid, gid } = lstatSync(first);
    await empty(root, { uid, gid }, { folders, shared: sharedFolders });
  } else {
    // Only root can have begun to give it away.
    if (processOwner().uid === 0) for (const folder of folders) chownTree(folder, processOwner());
    await empty(root, undefined, { folders, shared: [] });
  }
  for (const folder of folders) rmdirSync(folder);
  const record = path.join(root, recordName);
  if (isThere(record)) unlinkSync(record);
  rmdirSync(root);
}

async function empty(root: string, identity: SessionIdentity | undefined, order: RemoveOrder): Promise<void> {
  const { left, code } = await removeAs(identity, order);
  if (left > 0)
    throw new FolderError('left', {
      at: root,
      found: `${left} entries, ${code}`,
      allowed: 'files that their session can remove',
    });
}

function isThere(entry: string): boolean {
  return lstatSync(entry, { throwIfNoEntry: false }) !== undefined;
}

/** Folders in which every session may write, and one in which none needs to: each session has its own home. */
const sharedFolders = ['/tmp', '/var/tmp', '/dev/shm'] as const;
const closedFolders = ['/home/worker'] as const;

/** Lets no session rename, replace or remove what another one has in a shared folder. Throws FolderError. */
export function protectSharedFolders(shared: readonly string[] = sharedFolders, closed: readonly string[] = closedFolders): void {
  for (const folder of shared) restrict(folder, (mode) => mode | 0o1000);
  for (const folder of closed) restrict(folder, (mode) => mode & ~0o022);
}

/** A volume comes with mode 0777 from a kubelet. */
function restrict(folder: string, change: (mode: number) => number): void {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (!found?.isDirectory() || (found.mode & 0o022) === 0) return;
  const mode = found.mode & 0o7777;
  if (change(mode) === mode) return;
  try {
    chmodSync(folder, change(mode));
  } catch (cause) {
    // Nobody writes to a read-only file system.
    if ((cause as NodeJS.ErrnoException).code === 'EROFS') return;
    throw new FolderError(
      'shared',
      { at: folder, field: 'mode', found: mode.toString(8), allowed: change(mode).toString(8) },
      { cause },
    );
  }
}
