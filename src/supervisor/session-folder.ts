import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  opendirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { sha256Hex } from '../lib/sha256.js';
import type { SessionIdentity } from './identities.js';

/** Folders of one session, all of them readable by its user alone. */
export interface SessionFolder {
  readonly root: string;
  readonly home: string;
  readonly tmp: string;
  readonly workspace: string;
  readonly xdg: string;
}

/** Creates the folders as the supervisor's own; `giveAway` is the last step. Source: dispatch.md §6.4. */
export function createSessionFolder(baseDir: string, sessionUID: string, generation: number): SessionFolder {
  const root = path.join(baseDir, `session-${sha256Hex(`${sessionUID}:${generation}`)}-${randomBytes(6).toString('hex')}`);
  const folder: SessionFolder = {
    root,
    home: path.join(root, 'home'),
    tmp: path.join(root, 'tmp'),
    workspace: path.join(root, 'workspace'),
    xdg: path.join(root, 'xdg'),
  };
  const below = ['config', 'cache', 'data', 'state'].map((name) => path.join(folder.xdg, name));
  try {
    for (const made of [root, folder.home, folder.tmp, folder.workspace, folder.xdg, ...below]) mkdirSync(made, { mode: 0o700 });
    return folder;
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

/** Makes a tree the session's. `undefined`: users are not switched. */
export function giveAway(root: string, identity: SessionIdentity | undefined): void {
  if (!identity) return;
  if (lstatSync(root).isDirectory()) for (const name of readdirSync(root)) giveAway(path.join(root, name), identity);
  giveBack(root, identity);
}

/** Makes one folder or file the session's. */
export function giveBack(entry: string, identity: SessionIdentity | undefined): void {
  if (identity) lchownSync(entry, identity.uid, identity.gid);
}

/**
 * Makes a folder the supervisor's again and returns what is in it. Its right to any file was given up with CAP_DAC_OVERRIDE, so it has
 * to own what it reads. No link is followed; the processes of the session must be stopped or gone.
 */
export function reclaim(folder: string): readonly { readonly name: string; readonly kind: 'folder' | 'file' | 'link' }[] {
  own(folder);
  return readdirSync(folder, { withFileTypes: true }).map((entry) => ({
    name: entry.name,
    kind: entry.isDirectory() ? 'folder' : entry.isSymbolicLink() ? 'link' : 'file',
  }));
}

/** Removes what an earlier life of the supervisor has left: nobody will ask for it, and its users are never given again. */
export async function removeLeftSessions(baseDir: string): Promise<void> {
  for (const name of namesOf(baseDir).filter((entry) => entry.startsWith('session-'))) await remove(path.join(baseDir, name));
}

/** Folders in which everybody may write. */
const shared = ['/tmp', '/var/tmp', '/dev/shm', '/home/worker'] as const;

/** Removes, as far as it can be, what a user has left in folders that are not its own. Its processes must be gone. */
export async function removeStrays(uid: number): Promise<void> {
  for (const folder of shared) {
    const entries = namesOf(folder).map((name) => path.join(folder, name));
    for (const entry of entries.filter((name) => lstatSync(name, { throwIfNoEntry: false })?.uid === uid))
      await remove(entry).catch(() => undefined);
  }
}

async function remove(entry: string): Promise<void> {
  if (lstatSync(entry).isDirectory()) await removeTree(entry);
  else unlinkSync(entry);
}

function namesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/**
 * Removes a tree that its session's processes can no longer change. However deep it is, no path gets long and nothing recurs: folders
 * move up beside the first ones. However much there is, other work goes on meanwhile.
 */
export async function removeTree(root: string): Promise<void> {
  if (lstatSync(root, { throwIfNoEntry: false }) === undefined) return;
  const label = randomBytes(6).toString('hex');
  const folders: string[] = [];
  let moved = 0;

  async function empty(folder: string): Promise<void> {
    own(folder);
    for await (const { name, isFolder } of entriesOf(folder)) {
      const entry = path.join(folder, name);
      if (!isFolder) unlinkSync(entry);
      else if (folder === root) folders.push(entry);
      else {
        own(entry);
        const beside = path.join(root, `${label}-${++moved}`);
        renameSync(entry, beside);
        folders.push(beside);
      }
    }
  }

  await empty(root);
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    await empty(folder);
    rmdirSync(folder);
  }
  rmdirSync(root);
}

async function* entriesOf(folder: string): AsyncGenerator<{ readonly name: string; readonly isFolder: boolean }> {
  const handle = opendirSync(folder);
  try {
    let count = 0;
    for (let entry = handle.readSync(); entry !== null; entry = handle.readSync()) {
      yield { name: entry.name, isFolder: entry.isDirectory() };
      if (++count % 256 === 0) await nextTurn();
    }
  } finally {
    handle.closeSync();
  }
}

/** Makes a folder the supervisor's. */
function own(folder: string): void {
  chownSync(folder, process.getuid?.() ?? 0, process.getgid?.() ?? 0);
  chmodSync(folder, 0o700);
}
