/** Work on what a session owns is done as the session's own user, in a child with bounded time, memory and output. */
import { spawn } from 'node:child_process';
import { flag, integer, record, text } from '../harness/decode.js';
import type { Decoder } from '../harness/decode.js';
import { decodeText } from '../harness/decode.js';
import { CodedError } from '../lib/errors.js';
import type { SessionIdentity } from './identities.js';

/** `failed`: the child met an error of the file system. The other codes: it exceeded a bound, or ended without an answer. */
export class WalkError extends CodedError<'failed' | 'time' | 'output' | 'ended'> {}

export interface ScanOrder {
  readonly folder: string;
  /** Names that are passed over with everything below them. */
  readonly excluded: readonly string[];
  /** Names that are reported. */
  readonly reserved: readonly string[];
  readonly maxEntries: number;
  readonly maxBytes: number;
}

export interface ScanAnswer {
  /** Device and inode of the folder that was read. */
  readonly folderId: string;
  readonly entries: number;
  readonly files: number;
  readonly links: number;
  readonly bytes: number;
  readonly reserved: boolean;
  /** There is more than the order allows; the numbers end there. */
  readonly exceeded: boolean;
}

export interface RemoveOrder {
  /** Folders that are emptied. */
  readonly folders: readonly string[];
  /** Folders from which the entries of this user are removed, as far as they can be. */
  readonly shared: readonly string[];
}

export interface RemoveAnswer {
  /** Entries of `folders` that could not be removed. */
  readonly left: number;
  /** Error of one of them; empty without one. */
  readonly code: string;
}

export interface SignalOrder {
  readonly signal: 'SIGSTOP' | 'SIGKILL';
}

export interface SignalAnswer {
  /** There was another process of this user, maybe a dead one that nobody has waited for. */
  readonly found: boolean;
}

/** Milliseconds. A session that makes files for minutes is removed for minutes: who gives up ends all sessions of the instance. */
const [scanWithin, removeWithin] = [15_000, 600_000];
/** Bytes of an answer. */
const longestAnswer = 4096;
const program = new URL('./walker.js', import.meta.url).pathname;

const count = integer(0);
const scanAnswer: Decoder<ScanAnswer> = record({
  folderId: text({ max: 64 }),
  entries: count,
  files: count,
  links: count,
  bytes: count,
  reserved: flag,
  exceeded: flag,
});
const removeAnswer: Decoder<RemoveAnswer> = record({ left: count, code: text({ max: 64 }) });
const signalAnswer: Decoder<SignalAnswer> = record({ found: flag });
const failure = record({ failed: text({ max: 64 }) });

/** Counts what a folder of a session holds. Throws {@link WalkError}. `identity` undefined: users are not switched. */
export async function scanAs(identity: SessionIdentity | undefined, order: ScanOrder, within = scanWithin): Promise<ScanAnswer> {
  return decodeAnswer(scanAnswer, await run(identity, order, within));
}

/** Removes files of a session, whose processes must be gone. Throws {@link WalkError}. */
export async function removeAs(
  identity: SessionIdentity | undefined,
  order: RemoveOrder,
  within = removeWithin,
): Promise<RemoveAnswer> {
  return decodeAnswer(removeAnswer, await run(identity, order, within));
}

/**
 * Sends a signal to all processes of a user at once. Scans of /proc alone miss what forks and ends faster than they read. `true` = it was sent;
 * a session may end or stop the child that sends it.
 *
 * @param within milliseconds
 */
export async function signalUser(uid: number, signal: SignalOrder['signal'], within: number): Promise<boolean> {
  try {
    decodeAnswer(signalAnswer, await run({ uid, gid: uid }, { signal }, within));
    return true;
  } catch {
    return false;
  }
}

function decodeAnswer<T>(decoder: Decoder<T>, answer: string): T {
  if (answer.startsWith('{"failed"')) {
    const { failed } = decodeText(failure, answer);
    throw new WalkError('failed', { at: 'folder of a session', found: failed, says: 'it cannot be read' });
  }
  return decodeText(decoder, answer);
}

function run(
  identity: SessionIdentity | undefined,
  order: ScanOrder | RemoveOrder | SignalOrder,
  within: number,
): Promise<string> {
  const args = ['--max-old-space-size=128', program];
  const child = spawn(process.execPath, args, { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'ignore'] });
  return new Promise((resolve, reject) => {
    let answer = '';
    const fail = (code: 'time' | 'output' | 'ended', says: string) => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      reject(new WalkError(code, { at: 'folder of a session', says }));
    };
    const timer = setTimeout(() => fail('time', `it was not read within ${within} ms`), within);
    child.stdout.setEncoding('latin1').on('data', (part: string) => {
      answer += part;
      if (answer.length > longestAnswer) fail('output', `the answer has more than ${longestAnswer} bytes`);
    });
    child.on('error', ({ message }) => fail('ended', `the child did not start: ${message}`));
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolve(answer);
      else fail('ended', `the child ended with ${signal ?? `exit code ${code ?? 'unknown'}`} and did not answer`);
    });
    child.stdin.on('error', () => undefined).end(JSON.stringify({ identity, order }));
  });
}
