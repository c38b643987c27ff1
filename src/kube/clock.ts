/** Time as the parts of this folder see it, so that tests can hold it still. All numbers are milliseconds. */
export interface Clock {
  /** Since 1970; may jump. For what others read. */
  readonly now: () => number;
  /** Since some moment in the past; only grows. For every measure of how long something took. */
  readonly elapsed: () => number;
  /** Runs something once. The answer cancels it. A wait of more than 24 days ends after 24 days. */
  readonly after: (wait: number, run: () => void) => () => void;
}

/** What `setTimeout` can count to; it turns anything longer into 1 ms. */
const longestWait = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after: (wait, run) => {
    const timer = setTimeout(run, Math.min(Math.max(wait, 0), longestWait));
    return () => {
      clearTimeout(timer);
    };
  },
};

/** Waits, but not longer than until `signal` says stop. Never throws. */
export function sleep(clock: Clock, wait: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = () => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(wait, end);
    signal.addEventListener('abort', end);
  });
}

/** RFC 3339 to the second, as `Time` fields of a status have it. */
export function timestamp(since1970: number): string {
  return new Date(since1970).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** RFC 3339 with six digits of a second, as `MicroTime` fields want it. With the three of `Date` the API server answers 400. */
export function microTime(since1970: number): string {
  return `${new Date(since1970).toISOString().slice(0, -1)}000Z`;
}
