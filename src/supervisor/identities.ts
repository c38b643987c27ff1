import { closeSync, fsyncSync, lstatSync, openSync, readdirSync, readFileSync, renameSync, unlinkSync, writeSync } from 'node:fs';
import path from 'node:path';
import { CodedError } from '../lib/errors.js';
import { isObject } from '../lib/json.js';
import type { Json } from '../lib/json.js';
import type { IdentityRange } from './config.js';
import { startTime } from './proc.js';

/** The folder of sessions is not one that this process may go on from. */
class IdentityError extends CodedError<'folder' | 'locked' | 'state' | 'exhausted'> {}

export interface SessionIdentity {
  readonly uid: number;
  readonly gid: number;
}

/** Users for sessions, none of them ever given twice on one volume. */
export interface Identities {
  /** The next one; recorded on disk before it is returned. Throws {@link IdentityError} `exhausted`. */
  readonly next: () => SessionIdentity;
  readonly capacity: () => { readonly total: number; readonly remaining: number; readonly exhaustionReserve: number };
  /** Gives up the lock. */
  readonly close: () => void;
}

/** One identity is never given: the Pod is to be replaced before the last is needed. */
const exhaustionReserve = 1;
const stateName = '.orka-session-identity-high-water';
const lockName = '.orka-session-identity.lock';

/**
 * Takes the lock of a folder and recovers how many users were given in it. A file of one session can outlive the session, so its user
 * must not come back: a range that changed, a link, another process, or sessions without a record are refused. Source: dispatch.md §6.4.
 */
export function openIdentities(baseDir: string, range: IdentityRange): Identities {
  if (!isFolder(baseDir)) throw new IdentityError('folder', { at: baseDir, says: 'it is no folder, or a link' });
  const lock = path.join(baseDir, lockName);
  takeLock(lock);
  try {
    const file = path.join(baseDir, stateName);
    const total = range.lastUid - range.firstUid + 1;
    let allocated = recover(baseDir, file, range, total);
    return {
      next: () => {
        if (allocated >= total - exhaustionReserve)
          throw new IdentityError('exhausted', {
            at: baseDir,
            says: `all ${total - exhaustionReserve} session users have been given`,
          });
        write(file, range, allocated + 1, total);
        const identity = { uid: range.firstUid + allocated, gid: range.firstGid + allocated };
        allocated++;
        return identity;
      },
      capacity: () => ({ total, remaining: total - allocated, exhaustionReserve }),
      close: () => {
        unlinkSync(lock);
      },
    };
  } catch (error) {
    unlinkSync(lock);
    throw error;
  }
}

/** The lock names a process; one that no longer runs holds nothing. Process ids come again, start times do not. */
function takeLock(file: string): void {
  const mine = `${process.pid} ${startTime(process.pid) ?? ''}\n`;
  for (const attempt of [1, 2]) {
    try {
      writeNew(file, mine);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      if (attempt === 2 || isHeld(file))
        throw new IdentityError('locked', { at: file, says: 'another supervisor uses the folder' }, { cause: error });
      unlinkSync(file);
    }
  }
}

function isHeld(file: string): boolean {
  if (!isFile(file)) return true;
  const [pid = '', started = ''] = readFileSync(file, 'utf8').trim().split(' ');
  return started !== '' && startTime(Number(pid)) === started;
}

function recover(baseDir: string, file: string, range: IdentityRange, total: number): number {
  const entries = readdirSync(baseDir);
  for (const orphan of entries.filter((name) => name.startsWith(`${stateName}.`))) unlinkSync(path.join(baseDir, orphan));
  if (!entries.includes(stateName)) {
    if (entries.some((name) => name.startsWith('session-')))
      throw new IdentityError('state', { at: file, says: 'there are sessions, but no record of their users' });
    write(file, range, 0, total);
    return 0;
  }
  if (!isFile(file)) throw new IdentityError('state', { at: file, says: 'it is no file, or a link' });
  const state = parse(readFileSync(file, 'utf8'));
  const expected = stateOf(range, 0, total);
  const same = (['version', 'firstUid', 'lastUid', 'firstGid', 'lastGid'] as const).every(
    (name) => state[name] === expected[name],
  );
  const { allocated } = state;
  if (!same || typeof allocated !== 'number' || !Number.isInteger(allocated) || allocated < 0 || allocated > total)
    throw new IdentityError('state', { at: file, says: 'the record is of another range of users' });
  return allocated;
}

function stateOf({ firstUid, lastUid, firstGid }: IdentityRange, allocated: number, total: number) {
  return { version: 1, firstUid, lastUid, firstGid, lastGid: firstGid + total - 1, allocated };
}

function parse(text: string): Readonly<Record<string, Json | undefined>> {
  try {
    const value = JSON.parse(text) as Json;
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** Written beside and renamed, each step on the disk before the next. */
function write(file: string, range: IdentityRange, allocated: number, total: number): void {
  const beside = `${file}.${process.pid}`;
  writeNew(beside, JSON.stringify(stateOf(range, allocated, total)));
  renameSync(beside, file);
  const folder = openSync(path.dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

function writeNew(file: string, text: string): void {
  const handle = openSync(file, 'wx', 0o600);
  try {
    writeSync(handle, text);
    fsyncSync(handle);
  } catch (error) {
    // A full disk must not leave what the next attempt stumbles over.
    unlinkSync(file);
    throw error;
  } finally {
    closeSync(handle);
  }
}

function isFolder(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isFile(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false })?.isFile() === true;
}
