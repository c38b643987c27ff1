/** Sends events one after the other, in the background and within bounds. */
import { backoffOf } from './backoff.js';
import { sleep } from './clock.js';
import type { Clock } from './clock.js';
import { askedWait, KubeError } from './errors.js';
import type { KubeErrorCode } from './errors.js';

const manyJobs = 200;
const tries = 3;
/** A server may ask for more patience than an event is worth: the others wait behind it. */
const longestAskedPause = 30_000;
/** Failures that may pass within a moment. */
const passing: ReadonlySet<KubeErrorCode> = new Set<KubeErrorCode>([
  'timeout',
  'unreachable',
  'too-many-requests',
  'server-error',
]);

/** A queue of at most 200 requests, each tried three times. Never throws. */
export class EventSender {
  readonly #jobs: (() => Promise<void>)[] = [];
  readonly #stopping = new AbortController();
  readonly #clock: Clock;
  readonly #report: (error: unknown) => void;
  #pumping: Promise<void> | undefined;

  constructor(clock: Clock, report: (error: unknown) => void) {
    this.#clock = clock;
    this.#report = report;
  }

  /** @returns whether there was room. `failed` runs when the job could not be done. */
  add(job: (signal: AbortSignal) => Promise<void>, failed: () => void): boolean {
    if (this.#jobs.length >= manyJobs) return false;
    this.#jobs.push(async () => {
      if (!(await this.#attempt(job))) failed();
    });
    this.#pumping ??= this.#pump().finally(() => {
      this.#pumping = undefined;
    });
    return true;
  }

  /** Resolves when nothing is left to send, or after so many milliseconds. */
  async close(deadline: number): Promise<void> {
    const cancel = this.#clock.after(deadline, () => {
      this.#stopping.abort();
    });
    await this.#pumping;
    cancel();
  }

  async #pump(): Promise<void> {
    for (let job = this.#jobs.shift(); job; job = this.#jobs.shift()) await job();
  }

  async #attempt(job: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    const { signal } = this.#stopping;
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await job(signal);
        return true;
      } catch (error) {
        const code = error instanceof KubeError ? error.code : 'invalid';
        // The answer to an earlier try was lost.
        if (code === 'already-exists' && failures > 1) return true;
        if (!passing.has(code) || failures >= tries) {
          this.#report(error);
          return false;
        }
        const wait = Math.max(backoffOf(failures, { base: 500, cap: 5_000 }), Math.min(askedWait(error), longestAskedPause));
        await sleep(this.#clock, wait, signal);
      }
    }
    return false;
  }
}
