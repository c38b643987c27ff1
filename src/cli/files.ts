import { readFileSync } from 'node:fs';
import { CodedError } from '../lib/errors.js';

/** What a command was given cannot be used; nothing was written. */
export class InputError extends CodedError<'input-invalid' | 'input-unreadable'> {}

/** The text of a file; `-` is standard input. */
export function readInput(file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file === '-' ? 0 : file));
  } catch (cause) {
    throw new InputError(
      'input-unreadable',
      { at: file, found: (cause as NodeJS.ErrnoException).code, allowed: 'a file of UTF-8 text that can be read' },
      { cause },
    );
  }
}
