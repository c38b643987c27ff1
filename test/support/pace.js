/**
 * Time limits of tests. A limit is a guard against hanging, never a measure: it grows with the load of the machine, so that a busy machine
 * is slow and not red.
 */
import { availableParallelism, loadavg } from 'node:os';

const most = 12;
/** Milliseconds that the probe takes on a quiet machine. */
const quiet = 20;
/** A wait inside a test grows at most so much more than the limit of the test, so that it says what was never true before the test is over. */
const mostInside = 2.5;
/** Measured once: a probe in the middle of a test would hold up its timers. */
const slowness = probe() / quiet;

/** How many times slower than a quiet machine this one is now: from 1 to 12. */
export function pace() {
  const waiting = (loadavg()[0] ?? 0) / availableParallelism();
  return Math.min(most, Math.max(1, waiting, slowness));
}

/** The realm of the tests, with the pace that the limit of the running test or hook was made with. */
const realm = /** @type {{ [key: symbol]: number | undefined }} */ (/** @type {unknown} */ (globalThis));
export const paceOfTest = Symbol.for('orka.test.pace');

/**
 * A time limit for this machine.
 *
 * @param {number} milliseconds on a quiet machine
 */
export function limit(milliseconds) {
  const ofTest = realm[paceOfTest];
  return Math.round(milliseconds * (ofTest === undefined ? pace() : Math.min(pace(), mostInside * ofTest)));
}

/** Milliseconds that a fixed amount of computing takes now. */
function probe() {
  const from = performance.now();
  let x = 1;
  for (let i = 0; i < 10_000_000; i++) x = (Math.imul(x, 1_664_525) + 1_013_904_223) | 0;
  return x === 0 ? 0 : performance.now() - from;
}
