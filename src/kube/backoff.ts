export interface Backoff {
  /** Milliseconds after the first failure. */
  readonly base: number;
  /** The longest wait, in milliseconds. */
  readonly cap: number;
}

/** Milliseconds to wait after so many failures in a row: twice as long after each, `base` after the first. */
export function backoffOf(failures: number, { base, cap }: Backoff): number {
  return Math.min(cap, base * 2 ** Math.min(Math.max(failures - 1, 0), 60));
}

/** The same wait, a quarter shorter or longer by chance, so that many who failed together do not come back together. */
export function jittered(wait: number, random: () => number = Math.random): number {
  return wait * (0.75 + random() / 2);
}
