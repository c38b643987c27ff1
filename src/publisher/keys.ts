import { createHash, timingSafeEqual } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import path from 'node:path';
import { createSecureContext } from 'node:tls';
import { CodedError } from '../lib/errors.js';
import { publisherBounds } from '../source/protocol.js';
import { codeOf } from './log.js';
import type { Log } from './log.js';

/** Names of the files in the folder of the keys. */
const keyFiles = {
  controllerToken: 'controller-token',
  operationSecret: 'operation-capability-secret',
  artifactSecret: 'artifact-capability-secret',
  cert: 'tls.crt',
  key: 'tls.key',
} as const;

export type KeySet = Readonly<Record<keyof typeof keyFiles, string>>;

/** The keys cannot be used. The text names files, never what is in them. */
class KeysError extends CodedError<'keys'> {}

const longest = 64 * 1024;

const keysSource = 'the controller writes these files as the Secret orka-publisher-auth';

/** The keys of the publisher, read again while it runs: a mounted Secret changes without a restart. */
export class Keys {
  readonly #folder: string;
  readonly #log: Log;
  readonly #listeners: ((keys: KeySet) => void)[] = [];
  #current: KeySet;
  #timer: NodeJS.Timeout | undefined;
  #lastProblem = '';

  private constructor(folder: string, log: Log, current: KeySet) {
    this.#folder = folder;
    this.#log = log;
    this.#current = current;
  }

  /** `interval`: milliseconds between two looks. Throws {@link KeysError}. @default interval: five seconds */
  static async open(folder: string, { log, interval = 5_000 }: { readonly log: Log; readonly interval?: number }): Promise<Keys> {
    const keys = new Keys(folder, log, await readKeys(folder));
    keys.#arm(interval);
    return keys;
  }

  get current(): KeySet {
    return this.#current;
  }

  /** Told of each change. */
  onChange(listener: (keys: KeySet) => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(interval: number): void {
    this.#timer = setTimeout(() => {
      void this.#look().finally(() => {
        if (this.#timer) this.#arm(interval);
      });
    }, interval);
    this.#timer.unref();
  }

  /** Files that cannot be used are waited for: a mount is replaced while it is read. */
  async #look(): Promise<void> {
    try {
      const found = await readKeys(this.#folder);
      this.#lastProblem = '';
      if ((Object.keys(keyFiles) as (keyof KeySet)[]).every((name) => found[name] === this.#current[name])) return;
      this.#current = found;
      for (const listener of this.#listeners) listener(found);
      this.#log.info('keys changed');
    } catch (error) {
      const problem = codeOf(error);
      if (problem !== this.#lastProblem) this.#log.error('keys cannot be read', { code: problem });
      this.#lastProblem = problem;
    }
  }
}

async function readKeys(folder: string): Promise<KeySet> {
  const names = Object.entries(keyFiles);
  const version = await versionOf(folder);
  const texts = await Promise.all(names.map(async ([name, file]) => [name, await readKey(folder, version, file)] as const));
  const keys = Object.fromEntries(texts) as KeySet;
  const { controllerToken, operationSecret, artifactSecret, cert, key } = keys;
  checkLength(folder, keyFiles.controllerToken, controllerToken, publisherBounds.shortestBearer);
  checkLength(folder, keyFiles.operationSecret, operationSecret, publisherBounds.shortestSecret);
  checkLength(folder, keyFiles.artifactSecret, artifactSecret, publisherBounds.shortestSecret);
  if (new Set([controllerToken, operationSecret, artifactSecret]).size < 3)
    throw new KeysError('keys', { at: folder, says: 'two of the three secrets are equal', allowed: 'three different ones' });
  try {
    createSecureContext({ cert, key });
  } catch {
    // What OpenSSL says may quote the file.
    throw new KeysError('keys', { at: folder, field: keyFiles.cert, allowed: `a certificate that matches ${keyFiles.key}` });
  }
  return keys;
}

/** A kubelet replaces all files of a mounted Secret by one link: files of one version are never mixed with those of another. */
async function versionOf(folder: string): Promise<string> {
  try {
    return await realpath(path.join(folder, '..data'));
  } catch {
    return folder;
  }
}

async function readKey(folder: string, version: string, file: string): Promise<string> {
  try {
    const content = await readFile(path.join(version, file));
    if (content.length <= longest) return file.startsWith('tls') ? content.toString() : content.toString().trim();
  } catch (cause) {
    throw new KeysError(
      'keys',
      { at: folder, field: file, says: `cannot be read (${codeOf(cause)})`, remedy: keysSource },
      { cause },
    );
  }
  throw new KeysError('keys', { at: folder, field: file, allowed: `at most ${longest} bytes` });
}

function checkLength(folder: string, file: string, text: string, shortest: number): void {
  if (Buffer.byteLength(text) < shortest)
    throw new KeysError('keys', { at: folder, field: file, allowed: `at least ${shortest} bytes` });
}

/** Takes the same time for every text of a length. */
export function isSecret(found: string, expected: string): boolean {
  const [a, b] = [found, expected].map((text) => createHash('sha256').update(text).digest()) as [Buffer, Buffer];
  return timingSafeEqual(a, b);
}
