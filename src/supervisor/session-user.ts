/** Work on what a session owns is done as the session's own user, in a child with bounded time, memory and output. */
import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { flag, integer, list, optional, record, text } from '../lib/decode.js';
import type { Decoder } from '../lib/decode.js';
import { decodeText } from '../lib/decode.js';
import { CodedError } from '../lib/errors.js';
import { deferred } from './deferred.js';
import type { Deferred } from './deferred.js';
import type { SessionIdentity } from './identities.js';
import { startTime } from './proc.js';
import type { ProcessMark } from './proc.js';

/**
 * `failed`: the child met an error of the file system; `refused`, `exceeded`: what it read breaks a rule or a limit, which `says` names. The
 * other codes: the child exceeded a bound, or ended without an answer.
 */
export class WalkError extends CodedError<'failed' | 'refused' | 'exceeded' | 'time' | 'output' | 'ended'> {}

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

/** What fills an empty folder. */
export interface ExtractOrder {
  readonly folder: string;
  /** Folder of the archive that becomes the whole. */
  readonly relativeRoot?: string;
  /** @default those of every archive */
  readonly limits?: { readonly entries: number; readonly fileBytes: number; readonly treeBytes: number };
}

export interface ExtractAnswer {
  readonly folderId: string;
  /** Entries of the folder. */
  readonly entries: number;
  readonly files: number;
  readonly links: number;
  /** Of files and link targets of the whole archive. */
  readonly bytes: number;
}

/** Compares a folder with its record. */
export interface CompareOrder {
  readonly folder: string;
  readonly maxEntries: number;
  /** Changed paths that are named. */
  readonly mostPaths: number;
}

export interface CompareAnswer {
  readonly folderId: string;
  /** Entries that are new or changed. */
  readonly entries: number;
  /** How many of these are files, and links. */
  readonly files: number;
  readonly links: number;
  /** Entries that are gone, or became another kind. */
  readonly deleted: number;
  /** Escaped, each of at most 256 bytes. */
  readonly changedPaths: readonly string[];
}

/** Milliseconds. A session that makes files for minutes is removed for minutes: who gives up ends all sessions of the instance. */
const [scanWithin, removeWithin, endWithin] = [15_000, 600_000, 5_000];
/** Milliseconds after which a child that works is continued, in case that its session stopped it. */
const nudgePause = 20;
/** Bytes of an answer. JSON may escape each character of a path once more. */
const longestAnswer = 16 * 1024;
const program = new URL('./walker.js', import.meta.url).pathname;
const extractor = new URL('./extractor.js', import.meta.url).pathname;

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
const extractAnswer: Decoder<ExtractAnswer> = record({
  folderId: text({ max: 64 }),
  entries: count,
  files: count,
  links: count,
  bytes: count,
});
const compareAnswer: Decoder<CompareAnswer> = record({
  folderId: text({ max: 64 }),
  entries: count,
  files: count,
  links: count,
  deleted: count,
  changedPaths: list(text({ max: 256 }), { max: 20 }),
});
const problem = text({ max: 1024 });
const failure = record({ failed: optional(text({ max: 64 })), refused: optional(problem), exceeded: optional(problem) });

/** Counts what a folder of a session holds. Throws {@link WalkError}. `identity` undefined: users are not switched. */
export function scanAs(identity: SessionIdentity | undefined, order: ScanOrder, within = scanWithin): Promise<ScanAnswer> {
  return asUser(identity, (user) => user.scan(order, within));
}

/** Compares a folder of a session with what {@link extractAs} recorded. Throws {@link WalkError}. */
export async function compareAs(
  identity: SessionIdentity | undefined,
  order: CompareOrder,
  file: number,
  within: number,
  signal?: AbortSignal,
): Promise<CompareAnswer> {
  return decodeAnswer(compareAnswer, await run(identity, order, within, file, signal));
}

/**
 * Fills an empty folder of a session from an archive. `feed` writes the archive, and throws if it is not the right one: then the child ends
 * before it makes a link, and the error of `feed` is thrown, unless the child refused the archive before. Throws {@link WalkError}.
 *
 * @param file where the child records what it made
 */
export async function extractAs(
  identity: SessionIdentity | undefined,
  order: ExtractOrder,
  feed: (archive: Writable, signal: AbortSignal) => Promise<void>,
  within: number,
  file?: number,
): Promise<ExtractAnswer> {
  const child = spawnChild([extractor, JSON.stringify({ identity, order, isRecorded: file !== undefined })], file);
  const ended = new AbortController();
  const answered = answerOf(child, within).finally(() => ended.abort());
  const fed = feed(child.stdin, ended.signal).then(() => child.stdin.end());
  const settled = fed.catch(() => child.kill('SIGKILL'));
  try {
    return decodeAnswer(extractAnswer, await answered);
  } catch (error) {
    await settled;
    // A child that ended without an answer was ended by us, or ran out of memory.
    if (error instanceof WalkError && error.code === 'ended') await fed;
    throw error;
  }
}

/** Removes files of a session, whose processes must be gone. Throws {@link WalkError}. */
export function removeAs(
  identity: SessionIdentity | undefined,
  order: RemoveOrder,
  within = removeWithin,
): Promise<RemoveAnswer> {
  return asUser(identity, (user) => user.remove(order, within));
}

async function asUser<T>(identity: SessionIdentity | undefined, work: (user: SessionUser) => Promise<T>): Promise<T> {
  const user = new SessionUser(identity);
  try {
    return await work(user);
  } finally {
    await user.end();
  }
}

/**
 * Works as the user of a session, with one child for all orders: on a busy machine it is the start of a child that takes long. A session may
 * stop the child, which is continued, or end it: the next order begins another one. One order at a time.
 */
export class SessionUser {
  readonly #identity: SessionIdentity | undefined;
  #child: UserChild | undefined;
  #isEnded = false;

  /** @param identity undefined: users are not switched */
  constructor(identity: SessionIdentity | undefined) {
    this.#identity = identity;
  }

  /** Of the child, while it runs: it is no process of the session. */
  get mark(): ProcessMark | undefined {
    return this.#child?.mark;
  }

  /** Nothing is done for the session any more. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** See {@link scanAs}. */
  async scan(order: ScanOrder, within: number): Promise<ScanAnswer> {
    return decodeAnswer(scanAnswer, await this.#ask(order, within));
  }

  /** See {@link removeAs}. */
  async remove(order: RemoveOrder, within: number): Promise<RemoveAnswer> {
    return decodeAnswer(removeAnswer, await this.#ask(order, within));
  }

  /**
   * Sends a signal to all other processes of the user at once. Scans of /proc alone miss what forks and ends faster than they read. `true` = it
   * was sent.
   */
  async signal(signal: SignalOrder['signal'], within: number): Promise<boolean> {
    try {
      decodeAnswer(signalAnswer, await this.#ask({ signal }, within));
      return true;
    } catch {
      return false;
    }
  }

  /** Ends the child, and with it an order that waits; no other child begins. Resolves when it is gone. May be called often. */
  async end(): Promise<void> {
    this.#isEnded = true;
    await this.#child?.end();
  }

  async #ask(order: ScanOrder | RemoveOrder | SignalOrder, within: number): Promise<string> {
    if (this.#isEnded) throw ended();
    if (this.#child?.mark === undefined) this.#child = new UserChild();
    return this.#child.ask(JSON.stringify({ identity: this.#identity, order }), within);
  }
}

function decodeAnswer<T>(decoder: Decoder<T>, answer: string): T {
  if (!/^\{"(?:failed|refused|exceeded)"/.test(answer)) return decodeText(decoder, answer);
  const { failed, refused, exceeded } = decodeText(failure, answer);
  if (failed !== undefined)
    throw new WalkError('failed', { at: 'folder of a session', found: failed, says: 'it cannot be read' });
  throw new WalkError(refused === undefined ? 'exceeded' : 'refused', { at: 'workspace', says: refused ?? exceeded ?? '' });
}

const ended = () => new WalkError('ended', { at: 'folder of a session', says: 'the work on it was ended' });

type Child = ChildProcessByStdio<Writable, Readable, null>;

/** @param file a descriptor that the child gets as its fourth */
function spawnChild(args: readonly string[], file?: number): Child {
  return spawn(process.execPath, ['--max-old-space-size=128', ...args], {
    cwd: '/',
    env: {},
    stdio: ['pipe', 'pipe', 'ignore', ...(file === undefined ? [] : [file])],
  }) as Child;
}

/** One process of {@link program}: a line of answer for each line of order. */
class UserChild {
  readonly #child = spawnChild([program]);
  readonly #mark: ProcessMark | undefined;
  readonly #closed: Promise<void>;
  #failed = false;
  #answer = '';
  #waiting: Deferred<string> | undefined;

  constructor() {
    const { pid } = this.#child;
    // Nobody else can end it so early: it is still root's, and its number stays its own until it was waited for.
    const started = pid === undefined ? undefined : startTime(pid);
    this.#mark = pid === undefined || started === undefined ? undefined : { pid, started };
    this.#closed = new Promise((resolve) => {
      this.#child.on('error', ({ message }) => {
        this.#fail('ended', `the child did not start: ${message}`);
        resolve();
      });
      this.#child.on('close', (code, signal) => {
        this.#fail('ended', `the child ended with ${signal ?? `exit code ${code ?? 'unknown'}`} and did not answer`);
        resolve();
      });
    });
    this.#child.stdin.on('error', () => undefined);
    this.#child.stdout.setEncoding('utf8').on('data', (part: string) => {
      this.#read(part);
    });
  }

  /** `undefined` once it is over, or did not start. */
  get mark(): ProcessMark | undefined {
    const over = this.#failed || this.#child.exitCode !== null || this.#child.signalCode !== null;
    return over ? undefined : this.#mark;
  }

  async ask(line: string, within: number): Promise<string> {
    const waiting = deferred<string>();
    this.#waiting = waiting;
    const timer = setTimeout(() => {
      this.#fail('time', `it was not read within ${within} ms`);
    }, within);
    // A session may stop the child again and again; what it did between two stops stays done.
    const nudge = setInterval(() => this.#child.kill('SIGCONT'), nudgePause);
    this.#child.stdin.write(`${line}\n`);
    try {
      return await waiting.promise;
    } finally {
      clearTimeout(timer);
      clearInterval(nudge);
    }
  }

  /** Resolves when the child is gone; at once for one that failed, and later for none: the kernel may hold it for ever. */
  async end(): Promise<void> {
    this.#child.kill('SIGKILL');
    if (!this.#failed) await Promise.race([this.#closed, sleep(endWithin, undefined, { ref: false })]);
    this.#fail('ended', 'the work on it was ended');
  }

  #read(part: string): void {
    this.#answer += part;
    if (this.#answer.length > longestAnswer) this.#fail('output', `the answer has more than ${longestAnswer} bytes`);
    if (!this.#answer.endsWith('\n')) return;
    this.#waiting?.resolve(this.#answer);
    this.#answer = '';
  }

  #fail(code: 'time' | 'output' | 'ended', says: string): void {
    this.#failed = true;
    this.#child.kill('SIGKILL');
    this.#waiting?.reject(new WalkError(code, { at: 'folder of a session', says }));
  }
}

function run(
  identity: SessionIdentity | undefined,
  order: CompareOrder,
  within: number,
  file: number,
  signal?: AbortSignal,
): Promise<string> {
  const child = spawnChild([program], file);
  const stop = () => child.kill('SIGKILL');
  signal?.addEventListener('abort', stop);
  if (signal?.aborted) stop();
  child.stdin.end(`${JSON.stringify({ identity, order })}\n`);
  return answerOf(child, within).finally(() => signal?.removeEventListener('abort', stop));
}

function answerOf(child: Child, within: number): Promise<string> {
  child.stdin.on('error', () => undefined);
  return new Promise((resolve, reject) => {
    let answer = '';
    const fail = (code: 'time' | 'output' | 'ended', says: string) => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      reject(new WalkError(code, { at: 'folder of a session', says }));
    };
    const timer = setTimeout(() => fail('time', `it was not read within ${within} ms`), within);
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      answer += part;
      if (answer.length > longestAnswer) fail('output', `the answer has more than ${longestAnswer} bytes`);
    });
    child.on('error', ({ message }) => fail('ended', `the child did not start: ${message}`));
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolve(answer);
      else fail('ended', `the child ended with ${signal ?? `exit code ${code ?? 'unknown'}`} and did not answer`);
    });
  });
}
