import { HarnessError } from '../../harness/errors.js';
import { instant } from '../../lib/instant.js';
import { sleep } from '../../kube/clock.js';
import { leaseLife } from './orders.js';
import type { Submitted } from './attempt-port.js';

/** Milliseconds for one try; a lost packet costs no more. */
const tryWait = 5_000;
const pause = 1_000;
/** Milliseconds before its expiry at which a lease is given up. */
const expiryMargin = 2_000;

/**
 * Renews the lease of a prompt at half of its life. The same request is sent again, each time over a new connection, until shortly before the
 * lease expires: a repeat has the answer of the first. Source: dispatch.md §4.4.
 */
export class LeaseKeeper {
  readonly #attempt: Submitted;
  readonly #onLost: () => void;
  readonly #over = new AbortController();
  /** The prompt is over, or this process is. */
  readonly #ends: AbortSignal;
  #generation = 1;
  /** In elapsed milliseconds. */
  #validUntil: number;

  /** @param onLost called once, when the lease cannot be kept */
  constructor(attempt: Submitted, onLost: () => void) {
    this.#attempt = attempt;
    this.#onLost = onLost;
    this.#ends = AbortSignal.any([attempt.signal, this.#over.signal]);
    this.#validUntil = attempt.leasedAt + leaseLife;
  }

  /** Ends by {@link stop}, or when the lease is lost. Never rejects. */
  async keep(): Promise<void> {
    const { clock } = this.#attempt;
    for (;;) {
      await sleep(clock, this.#validUntil - leaseLife / 2 - clock.elapsed(), this.#over.signal);
      if (this.#over.signal.aborted) return;
      if (!(await this.#renew())) {
        this.#lose();
        return;
      }
    }
  }

  #lose(): void {
    if (!this.#over.signal.aborted) this.#onLost();
  }

  stop(): void {
    this.#over.abort();
  }

  /** `false` = refused, or not answered in time. */
  async #renew(): Promise<boolean> {
    const { orders, client, clock } = this.#attempt;
    const began = clock.elapsed();
    const next = this.#generation + 1;
    const [wall, left] = [clock.now(), this.#validUntil - began];
    // As long as the lease that it replaces: what may be sent again must not expire earlier.
    const operation = { ...orders.operation(`renew-lease-${next}`, wall), expiresAt: instant(wall + left) };
    const order = {
      runtimeSessionID: orders.runtimeSessionID,
      expectedLeaseGeneration: this.#generation,
      ...orders.lease(next, wall),
    };
    for (;;) {
      const remaining = this.#validUntil - expiryMargin - clock.elapsed();
      if (remaining <= 0 || this.#ends.aborted) return false;
      try {
        await client.renewLease(operation, order, { signal: this.#ends, timeout: Math.min(tryWait, remaining), fresh: true });
        this.#generation = next;
        this.#validUntil = began + leaseLife;
        return true;
      } catch (error) {
        if (error instanceof HarnessError && error.response !== undefined && !error.retryable) return false;
      }
      await sleep(clock, pause, this.#ends);
    }
  }
}
