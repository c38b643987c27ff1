import { setMaxListeners } from 'node:events';
import { backoffOf } from './backoff.js';
import type { Backoff } from './backoff.js';
import { systemClock } from './clock.js';
import type { Clock } from './clock.js';
import { askedWait } from './errors.js';

/** When to look at the key again: after so many milliseconds, or when somebody adds it. */
export type WorkResult = { readonly requeueAfter: number } | undefined;

/** One run of the work on one key. Durations are milliseconds. */
export interface WorkRun {
  readonly key: string;
  readonly outcome: 'done' | 'requeued' | 'failed';
  /** Between being ready and being begun. */
  readonly waited: number;
  readonly took: number;
  /** What a failed run threw. */
  readonly error?: unknown;
  /** Runs that failed in a row, this one included. */
  readonly failures: number;
  /** When the key runs again, unless something adds it before. */
  readonly nextIn?: number;
}

export interface WorkqueueOptions {
  /**
   * Never called for a key that it is at work on. What it returns is all that the queue knows: nothing, and the key rests and its failures are
   * forgotten; `requeueAfter`, the same, and it runs again then; whatever it throws, and it runs again after a wait that doubles and is no
   * shorter than the API server asked for, or when somebody adds it. The signal is for a queue that must end.
   */
  readonly work: (key: string, signal: AbortSignal) => Promise<WorkResult>;
  /** Told after each run. */
  readonly onRun?: (run: WorkRun) => void;
  /** Keys worked on at the same time. @default 1 */
  readonly workers?: number;
  /** Between runs of a key that fails. @default 5 ms to 1000 s */
  readonly backoff?: Backoff;
  readonly clock?: Clock;
}

/**
 * Keys that wait for work. A key is in the queue once, however often it is added; keys run in the order in which they became ready; one that
 * is added while it runs, runs again. Work reads the present state and is told no reason, so runs may be merged but a wish is never lost.
 */
export interface Workqueue {
  readonly add: (key: string) => void;
  /** The earliest wish of a key counts; `add` does not cancel it. */
  readonly addAfter: (key: string, milliseconds: number) => void;
  /** Forgets that a key failed. */
  readonly forget: (key: string) => void;
  /** Keys that are ready. */
  readonly depth: () => number;
  /** Keys that are worked on. */
  readonly running: () => readonly string[];
  /**
   * Nothing more begins. Waits for what runs; after `deadline` milliseconds the work is told to abort, and has `grace` milliseconds for it.
   * @returns keys whose work is still not over. All calls get the same answer; the earliest deadline counts.
   */
  readonly shutDown: (options: { readonly deadline: number; readonly grace?: number }) => Promise<readonly string[]>;
}

export function createWorkqueue(options: WorkqueueOptions): Workqueue {
  const { work, workers = 1, backoff = { base: 5, cap: 1_000_000 }, clock = systemClock } = options;
  /** Ready keys, oldest first, with the time since when. */
  const ready = new Map<string, number>();
  const running = new Set<string>();
  /** Keys that were added while they ran, with the time when. */
  const again = new Map<string, number>();
  const failures = new Map<string, number>();
  /** Wishes of others. */
  const asked = createDelays(clock, add);
  /** What the last run of a key led to; the next run replaces it. */
  const own = createDelays(clock, add);
  const abort = new AbortController();
  // Each request of each worker listens to it.
  setMaxListeners(0, abort.signal);
  let closing: { readonly idle: Promise<void>; readonly finish: () => void } | undefined;

  function add(key: string): void {
    if (closing) return;
    if (running.has(key)) {
      if (!again.has(key)) again.set(key, clock.elapsed());
    } else if (!ready.has(key)) {
      ready.set(key, clock.elapsed());
      begin();
    }
  }

  function begin(): void {
    while (!closing && running.size < workers) {
      const [next] = ready;
      if (!next) return;
      const [key, since] = next;
      ready.delete(key);
      own.drop(key);
      running.add(key);
      void run(key, since);
    }
  }

  async function run(key: string, since: number): Promise<void> {
    const began = clock.elapsed();
    let told: Pick<WorkRun, 'outcome' | 'error' | 'nextIn'>;
    try {
      const result = await work(key, abort.signal);
      failures.delete(key);
      told = result === undefined ? { outcome: 'done' } : { outcome: 'requeued', nextIn: Math.max(0, result.requeueAfter) };
    } catch (error) {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      told = { outcome: 'failed', error, nextIn: Math.max(backoffOf(count, backoff), askedWait(error)) };
    }
    running.delete(key);
    if (told.nextIn !== undefined && !closing) own.set(key, told.nextIn);
    const wished = again.get(key);
    again.delete(key);
    if (wished !== undefined && !closing) ready.set(key, wished);
    try {
      options.onRun?.({ key, waited: began - since, took: clock.elapsed() - began, failures: failures.get(key) ?? 0, ...told });
    } catch {
      // A counter that fails must not end the work.
    }
    begin();
    if (running.size === 0) closing?.finish();
  }

  function close(): { readonly idle: Promise<void> } {
    if (closing) return closing;
    let finish: () => void = () => undefined;
    const idle = new Promise<void>((resolve) => {
      finish = resolve;
    });
    closing = { idle, finish };
    ready.clear();
    again.clear();
    asked.clear();
    own.clear();
    if (running.size === 0) finish();
    return closing;
  }

  return {
    add,
    addAfter: (key, milliseconds) => {
      if (closing) return;
      if (milliseconds <= 0) add(key);
      else asked.set(key, milliseconds);
    },
    forget: (key) => failures.delete(key),
    depth: () => ready.size,
    running: () => [...running],
    shutDown: async ({ deadline, grace = 1_000 }) => {
      const { idle } = close();
      if (!(await inTime(clock, idle, deadline))) {
        abort.abort(new Error('the queue shuts down'));
        await inTime(clock, idle, grace);
      }
      return [...running];
    },
  };
}

/** At most one wish for each key: the earliest. */
interface Delays {
  readonly set: (key: string, milliseconds: number) => void;
  readonly drop: (key: string) => void;
  readonly clear: () => void;
}

function createDelays(clock: Clock, due: (key: string) => void): Delays {
  const waiting = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  const drop = (key: string): void => {
    waiting.get(key)?.cancel();
    waiting.delete(key);
  };
  return {
    drop,
    set: (key, milliseconds) => {
      const at = clock.elapsed() + milliseconds;
      const before = waiting.get(key);
      if (before && before.at <= at) return;
      drop(key);
      const cancel = clock.after(milliseconds, () => {
        waiting.delete(key);
        due(key);
      });
      waiting.set(key, { at, cancel });
    },
    clear: () => {
      for (const key of [...waiting.keys()]) drop(key);
    },
  };
}

/** Whether something is over within a time. */
function inTime(clock: Clock, over: Promise<void>, milliseconds: number): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.after(milliseconds, () => {
      resolve(false);
    });
    void over.then(() => {
      cancel();
      resolve(true);
    });
  });
}
