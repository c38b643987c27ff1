// One command at a time.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { Failure } from './failure.js';
import { isAlive, self } from './processes.js';
import { work } from './settings.js';

const file = `${work}.lock`;

/** @returns {import('./processes.js').ProcessId | undefined} */
function holder() {
  try {
    return /** @type {import('./processes.js').ProcessId} */ (JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  }
}

/**
 * Runs `body` while no other `up` or `down` of this cluster runs. A lock whose holder is gone does not count.
 *
 * @template T
 * @param {() => Promise<T>} body
 * @returns {Promise<T>}
 */
export async function alone(body) {
  mkdirSync(path.dirname(file), { recursive: true });
  const other = holder();
  if (other && isAlive(other)) throw new Failure(`Another cluster command is running (process ${other.pid}). Wait for its end.`);
  if (other) rmSync(file, { force: true });
  try {
    writeFileSync(file, JSON.stringify(self()), { flag: 'wx' });
  } catch (error) {
    throw new Failure(`${file} cannot be taken: another cluster command took it at the same moment, or it is no lock.`, {
      cause: error,
    });
  }
  const release = () => rmSync(file, { force: true });
  process.once('exit', release);
  try {
    return await body();
  } finally {
    release();
  }
}
