import { CodedError } from './errors.js';
import { isSystemError, systemWords } from './system-words.js';

/** Why a program ends. */
export interface Failure {
  /** For standard error; one line a problem. */
  readonly text: string;
  /** An unexpected error. Its text has the stack. */
  readonly defect: boolean;
}

/** What a person needs to know about an error that ends a program. */
export function failureOf(error: unknown): Failure {
  if (error instanceof CodedError) return { text: error.message, defect: false };
  if (isSystemError(error)) {
    return { text: `${error.path ?? error.syscall ?? 'system'}: ${systemWords(error)}`, defect: false };
  }
  return { text: error instanceof Error ? (error.stack ?? error.message) : String(error), defect: true };
}
