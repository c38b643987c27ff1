import { getSystemErrorMap } from 'node:util';
import { isObject } from './json.js';

/** Words where the operating system's own would mislead. */
const ownWords: Readonly<Record<string, string>> = {
  EISDIR: 'a directory',
  ENOTDIR: 'a part of the path is not a directory',
  EPIPE: 'the reader has gone',
};

/** An error of a call to the operating system: a file, a socket, a process. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException & { readonly errno: number } {
  return isObject(error) && typeof error['errno'] === 'number' && typeof error['syscall'] === 'string';
}

/** What happened, in words instead of a code: `no such file or directory`. Other errors say their message. */
export function systemWords(error: unknown): string {
  if (!isSystemError(error)) return error instanceof Error ? error.message : String(error);
  return ownWords[error.code ?? ''] ?? getSystemErrorMap().get(error.errno)?.[1] ?? error.message;
}
