// Progress for someone who waits: one line per step with the time it took, and a sign of life in a long step.

import { clearInterval, setInterval } from 'node:timers';

/** @param {number} since as of performance.now() */
export const seconds = (since) => `${((performance.now() - since) / 1000).toFixed(1)} s`;

const started = performance.now();

/**
 * Runs one step and prints its name, how it ended and how long it took.
 *
 * @template T
 * @param {string} name
 * @param {(report: (state: string) => void) => Promise<T>} body `report` sets what a long step is busy with; the last report
 *   is printed beside the step's name
 * @returns {Promise<T>}
 */
export async function step(name, body) {
  const begun = performance.now();
  let state = '';
  const line = (/** @type {string} */ end) =>
    console.log(`[${seconds(started).padStart(8)}] ${name}${state ? `: ${state}` : ''}${end}`);
  const life = setInterval(() => line(` … ${seconds(begun)}`), 20_000);
  try {
    const result = await body((text) => (state = text));
    line(` (${seconds(begun)})`);
    return result;
  } catch (error) {
    line(` FAILED after ${seconds(begun)}`);
    throw error;
  } finally {
    clearInterval(life);
  }
}
