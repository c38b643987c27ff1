// Waiting for other programs.

import { setTimeout as sleep } from 'node:timers/promises';

import { Failure } from '../failure.js';

/**
 * Waits until `check` gives something.
 *
 * @template T
 * @param {string} what is waited for; in the error
 * @param {() => Promise<T | undefined>} check
 * @param {number} [seconds] at most
 * @returns {Promise<T>}
 */
export async function eventually(what, check, seconds = 60) {
  for (const end = Date.now() + seconds * 1000; ; await sleep(200)) {
    const found = await check();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Failure(`${what}: not within ${seconds} s`);
  }
}
