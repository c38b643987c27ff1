// Is it there yet?

import { request as plain } from 'node:http';
import { request as secure } from 'node:https';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { pki } from './pki.js';

/**
 * Whether a health address answers 200. Certificates are checked against the cluster's authority.
 *
 * @param {string} url
 * @returns {Promise<boolean>}
 */
export function answersOk(url) {
  return new Promise((resolve) => {
    const tls = url.startsWith('https:');
    const options = tls ? { ca: readFileSync(pki('ca.crt')) } : {};
    const request = (tls ? secure : plain)(url, { ...options, agent: false, timeout: 2_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(false));
    request.end();
  });
}

/**
 * Asks again until the answer is yes.
 *
 * @param {() => boolean | Promise<boolean>} question
 * @param {number} limit milliseconds
 * @returns {Promise<boolean>} false when the time is over
 */
export async function becomes(question, limit) {
  for (const until = performance.now() + limit; ; await sleep(100)) {
    if (await question()) return true;
    if (performance.now() > until) return false;
  }
}
