import { closeSync, openSync, readSync } from 'node:fs';
import { CodedError } from '../lib/errors.js';
import { systemWords } from '../lib/system-words.js';
import { utf8Text } from '../lib/text.js';

/** The input of a command cannot be used; nothing was written. */
export class InputError extends CodedError<'input-invalid' | 'input-unreadable'> {}

const mebibyte = 1024 * 1024;

/** Bytes that an input may have unless a flag says otherwise: some 100,000 small objects. */
export const usualLimit = 32 * mebibyte;

/** How large an input may be. */
export interface InputLimit {
  readonly bytes: number;
  /** The flag that raises the limit, such as `--max-input`. */
  readonly flag?: string;
}

/**
 * The text of a file; `-` is standard input. Reading stops at the limit, so that an endless file ends too.
 * Throws {@link InputError} that says what the operating system said, or at which byte the text is not UTF-8.
 */
export function readInput(file: string, limit: InputLimit = { bytes: usualLimit }): string {
  const at = inputName(file);
  const bytes = bytesOf(file, at, limit);
  const text = utf8Text(bytes);
  if (typeof text === 'string') return text;
  throw new InputError('input-unreadable', { at, says: `not UTF-8 text at byte ${text.badByte}` });
}

/** What errors call an input. */
export function inputName(file: string): string {
  if (file === '') return '""';
  return file === '-' ? 'standard input' : file;
}

/** Refuses inputs of a command that would read standard input twice: the second one would find nothing. */
export function refuseTwoInputs(command: string, inputs: readonly (readonly [flag: string, file: string | undefined])[]): void {
  const readers = inputs.filter(([, file]) => file !== undefined && standardInputs.includes(file));
  if (readers.length > 1)
    throw new InputError('input-invalid', {
      at: command,
      field: [...new Set(readers.map(([flag]) => flag))].join(' and '),
      found: readers.map(([, file]) => file),
      allowed: 'standard input once: it can be read only once',
    });
}

const chunkBytes = 64 * 1024;
const standardInputs: readonly string[] = ['-', '/dev/stdin', '/dev/fd/0', '/proc/self/fd/0'];

function bytesOf(file: string, at: string, limit: InputLimit): Buffer {
  let descriptor = 0;
  try {
    if (file !== '-') descriptor = openSync(file, 'r');
    const bytes = readAtMost(descriptor, limit.bytes);
    if (bytes) return bytes;
  } catch (cause) {
    throw new InputError('input-unreadable', { at, says: systemWords(cause) }, { cause });
  } finally {
    if (descriptor !== 0) closeSync(descriptor);
  }
  const most = `at most ${sizeText(limit.bytes)}`;
  const raise = limit.flag === undefined ? '' : `; ${limit.flag} raises the limit`;
  throw new InputError('input-invalid', { at, found: `more than ${sizeText(limit.bytes)}`, allowed: `${most}${raise}` });
}

/** All bytes of a descriptor; `undefined` = there are more than `limit`. */
function readAtMost(descriptor: number, limit: number): Buffer | undefined {
  const chunks: Buffer[] = [];
  let size = 0;
  for (;;) {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    const read = readWhenReady(descriptor, chunk);
    if (read === 0) return Buffer.concat(chunks);
    size += read;
    if (size > limit) return undefined;
    chunks.push(chunk.subarray(0, read));
  }
}

/** Standard input of a terminal or a pipe may be non-blocking. */
function readWhenReady(descriptor: number, chunk: Buffer): number {
  for (;;) {
    try {
      return readSync(descriptor, chunk);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

function sizeText(bytes: number): string {
  return bytes % mebibyte === 0 ? `${bytes / mebibyte} MiB` : `${bytes} bytes`;
}
