/** Files that survive the end of the process at any moment: temporary file, fsync, rename, fsync of the folder. Source: repository.md §3.3. */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { CodedError } from '../lib/errors.js';

/** A folder of the publisher is not what it must be. */
export class StorageError extends CodedError<'folder'> {}

const temporary = '.tmp';

/** Makes a folder that only this process may enter, and removes what unfinished writes left in it. A link in its place is refused. */
export async function openFolder(folder: string): Promise<void> {
  await mkdir(folder, { mode: 0o700 }).catch((error: unknown) => {
    if (!isCode(error, 'EEXIST')) throw error;
  });
  const found = await lstat(folder);
  if (!found.isDirectory())
    throw new StorageError('folder', {
      at: folder,
      foundKind: found.isSymbolicLink() ? 'a link' : 'a file',
      allowed: 'a folder',
    });
  for (const name of await readdir(folder)) if (name.endsWith(temporary)) await rm(path.join(folder, name), { force: true });
}

export async function writeDurably(folder: string, name: string, content: string): Promise<void> {
  const unfinished = path.join(folder, `${name}.${randomBytes(6).toString('hex')}${temporary}`);
  try {
    const file = await open(unfinished, 'wx', 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, path.join(folder, name));
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => undefined);
    throw error;
  }
  await syncFolder(folder);
}

export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The text of a regular file of at most `limit` bytes; `undefined` for everything else, links too. */
export async function readWhole(file: string, limit: number): Promise<string | undefined> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined);
  if (!handle) return undefined;
  try {
    const found = await handle.stat();
    return found.isFile() && found.size <= limit ? await handle.readFile('utf8') : undefined;
  } finally {
    await handle.close();
  }
}

export function isCode(error: unknown, code: string): boolean {
  return (error as Partial<NodeJS.ErrnoException> | undefined)?.code === code;
}
