import type { Clock } from '../../src/kube/clock.js';

/** A fake clock that stands still until it is told to go on. */
export interface FakeClock extends Clock {
  /** Goes on, runs what becomes due in order, and lets promises settle after each step. */
  readonly advance: (milliseconds: number) => Promise<void>;
  /** The clock on the wall jumps; nothing becomes due by that. */
  readonly jump: (milliseconds: number) => void;
  readonly timers: () => number;
}

export function fakeClock(start = Date.UTC(2030, 0, 1)): FakeClock {
  let [wall, elapsed, ids] = [start, 0, 0];
  const timers = new Map<number, { readonly at: number; readonly run: () => void }>();
  const next = () => [...timers].sort(([a, one], [b, other]) => one.at - other.at || a - b)[0];
  const pass = (to: number) => {
    wall += to - elapsed;
    elapsed = to;
  };
  return {
    now: () => wall,
    elapsed: () => elapsed,
    after: (wait, run) => {
      const id = ids++;
      timers.set(id, { at: elapsed + Math.max(wait, 0), run });
      return () => timers.delete(id);
    },
    advance: async (milliseconds) => {
      const end = elapsed + milliseconds;
      await settle();
      for (let first = next(); first && first[1].at <= end; first = next()) {
        pass(first[1].at);
        timers.delete(first[0]);
        first[1].run();
        await settle();
      }
      pass(end);
    },
    jump: (milliseconds) => {
      wall += milliseconds;
    },
    timers: () => timers.size,
  };
}

/** Lets everything run that waits for nothing but promises. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
