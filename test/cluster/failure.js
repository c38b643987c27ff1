// What a user is told when a step cannot go on.

import { readFileSync } from 'node:fs';

/** A failure with a text made for the user; everything else that is thrown is a defect and keeps its stack. */
export class Failure extends Error {
  /**
   * @param {string} message what is wrong and what to do about it
   * @param {{ log?: string, cause?: unknown }} [more] `log`: path of the log whose end explains it
   */
  constructor(message, more = {}) {
    super(message, { cause: more.cause });
    this.log = more.log;
  }
}

/**
 * @param {string} file
 * @param {number} lines
 */
function tail(file, lines) {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-lines);
  } catch {
    return ['(no such file)'];
  }
}

/** @param {unknown} error */
export function describe(error) {
  if (!(error instanceof Failure)) return error instanceof Error ? (error.stack ?? error.message) : String(error);
  if (!error.log) return error.message;
  const end = tail(error.log, 25).map((line) => `  | ${line.slice(0, 400)}`);
  return `${error.message}\nThe end of ${error.log}:\n${end.join('\n')}`;
}
