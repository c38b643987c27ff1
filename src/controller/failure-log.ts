import { systemClock } from '../kube/clock.js';
import type { Clock } from '../kube/clock.js';
import { KubeError } from '../kube/errors.js';
import type { KubeErrorCode } from '../kube/errors.js';
import type { Log } from './log.js';

/** Failures that may pass within a moment: the API server restarts, or is busy. */
const passing: ReadonlySet<KubeErrorCode> = new Set<KubeErrorCode>([
  'timeout',
  'unreachable',
  'too-many-requests',
  'server-error',
]);
/** Milliseconds for which failures that may pass are no error yet. */
const persistsAfter = 10_000;
/** Milliseconds without a failure after which the next one is another outage. */
const outageEnds = 30_000;
/** Milliseconds until the same failure is an error line again. */
const repeatsAfter = 300_000;
const mostKnown = 1_000;

interface Known {
  readonly since: number;
  seenAt: number;
  loggedAt: number | undefined;
}

/**
 * Logs failures that are tried again: one line per fact. A failure that may pass is `debug` until it has come for ten seconds, whatever object it met;
 * any other is an error the first time. What comes again within five minutes is `debug`.
 */
export class FailureLog {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();

  constructor(log: Log, clock: Clock = systemClock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** @param about what names the failing work, the same for each try @param more what differs from try to try */
  failed(
    event: string,
    error: unknown,
    about: Readonly<Record<string, string>> = {},
    more: Readonly<Record<string, unknown>> = {},
  ): void {
    const now = this.#clock.elapsed();
    const mayPass = error instanceof KubeError && passing.has(error.code);
    const message = error instanceof Error ? error.message : String(error);
    const known = this.#seen(mayPass ? event : JSON.stringify([event, about, message]), now, mayPass ? outageEnds : repeatsAfter);
    const early = mayPass && now - known.since < persistsAfter;
    const again = known.loggedAt !== undefined && now - known.loggedAt < repeatsAfter;
    if (early || again) {
      this.#log.debug(event, { ...about, ...more, because: message });
      return;
    }
    known.loggedAt = now;
    this.#log.error(event, error, { ...about, ...more });
  }

  #seen(key: string, now: number, ends: number): Known {
    const before = this.#known.get(key);
    const known = before && now - before.seenAt < ends ? before : { since: now, seenAt: now, loggedAt: undefined };
    known.seenAt = now;
    this.#known.delete(key);
    this.#known.set(key, known);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= mostKnown) break;
      this.#known.delete(oldest);
    }
    return known;
  }
}
