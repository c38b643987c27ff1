// Waiting for other programs.

import { setTimeout as sleep } from 'node:timers/promises';

import { limit } from '../../support/pace.js';
import { Failure } from '../failure.js';

/** What is said of an API server that is busy or away for a moment, whoever asked. */
const passing = new RegExp(
  [
    ...[
      'TLS handshake timeout',
      'i/o timeout',
      'connection refused',
      'connection reset',
      'unexpected EOF',
      'net/http: request canceled',
    ],
    ...['etcdserver: ', 'the server is currently unable', 'the server was unable', 'Too Many Requests', 'ServiceUnavailable'],
  ].join('|'),
);
const codes = ['timeout', 'unreachable', 'too-many-requests', 'server-error'];

/** @param {unknown} error */
const passes = (error) =>
  error instanceof Error && (passing.test(error.message) || codes.includes(/** @type {{ code?: string }} */ (error).code ?? ''));

/**
 * Waits until `check` gives something. A check that fails ends it, unless it is the API server that could not be asked.
 *
 * @template T
 * @param {string} what is waited for; in the error
 * @param {() => Promise<T | undefined>} check
 * @param {number} [seconds] at most, on a quiet machine; a busy one gets more
 * @returns {Promise<T>}
 */
export async function eventually(what, check, seconds = 120) {
  for (const end = Date.now() + limit(seconds * 1000); ; await sleep(200)) {
    /** @type {unknown} */
    let cause;
    const found = await check().catch((/** @type {unknown} */ error) => {
      if (!passes(error)) throw error;
      cause = error;
    });
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Failure(`${what}: not within ${seconds} s`, { cause });
  }
}
