import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
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
  for (const made of [root, folder.home, folder.tmp, folder.workspace, folder.xdg, ...below]) mkdirSync(made, { mode: 0o700 });
  return folder;
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
  chownSync(folder, process.getuid?.() ?? 0, process.getgid?.() ?? 0);
  chmodSync(folder, 0o700);
  return readdirSync(folder, { withFileTypes: true }).map((entry) => ({
    name: entry.name,
    kind: entry.isDirectory() ? 'folder' : entry.isSymbolicLink() ? 'link' : 'file',
  }));
}

/** Removes a tree that its session's processes can no longer change. */
export function removeTree(root: string): void {
  if (lstatSync(root, { throwIfNoEntry: false }) === undefined) return;
  for (const { name, kind } of reclaim(root)) {
    const entry = path.join(root, name);
    if (kind === 'folder') removeTree(entry);
    else unlinkSync(entry);
  }
  rmdirSync(root);
}
