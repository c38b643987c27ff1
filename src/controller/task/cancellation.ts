import { instant } from '../../lib/instant.js';
import type { Operation } from '../../harness/metadata.js';
import type { CancelReason, Settlement } from '../../harness/prompts.js';
import type { Attempt } from './attempt-port.js';
import { operationLife } from './orders.js';

/** Milliseconds for which a cancelled prompt may settle. */
export const cancelWait = 25_000;
const settlementWithin = 20_000;
/** A request is not sent again when it would expire on its way. */
const expiryMargin = 1_000;

interface CancelRequest {
  readonly operation: Operation;
  readonly order: { readonly reason: CancelReason; readonly settlementDeadline: ReturnType<typeof instant> };
  /** In elapsed milliseconds. */
  readonly validUntil: number;
}

/**
 * Asks for the end of one prompt and keeps the first settlement that is proven. While a request is valid it is repeated as it is: under one
 * operation id a supervisor takes one body.
 */
export class Cancellation {
  readonly #attempt: Attempt;
  #proven: Settlement | undefined;
  #request: CancelRequest | undefined;
  #requests = 0;
  #last: Promise<Settlement | undefined> = Promise.resolve(undefined);

  constructor(attempt: Attempt) {
    this.#attempt = attempt;
  }

  get proven(): Settlement | undefined {
    return this.#proven;
  }

  /** One request at a time. `undefined` = not proven. Never rejects. */
  ask(reason: CancelReason): Promise<Settlement | undefined> {
    this.#last = this.#last.then(() => this.#proven ?? this.#send(reason));
    return this.#last;
  }

  async #send(reason: CancelReason): Promise<Settlement | undefined> {
    const { client, orders, signal } = this.#attempt;
    try {
      const { operation, order } = this.#sealed(reason);
      const call = { signal, timeout: cancelWait, fresh: true };
      const { settlementProven, settlement } = await client.cancel(operation, orders.runtimeSessionID, order, call);
      if (settlementProven) this.#proven = settlement;
    } catch {
      // Not proven: the next one repeats the request.
    }
    return this.#proven;
  }

  #sealed(reason: CancelReason): CancelRequest {
    const { clock, orders } = this.#attempt;
    if (this.#request && clock.elapsed() < this.#request.validUntil - expiryMargin) return this.#request;
    const verb = ++this.#requests === 1 ? 'cancel-prompt' : `cancel-prompt-${this.#requests}`;
    this.#request = {
      operation: orders.operation(verb, clock.now()),
      order: { reason, settlementDeadline: instant(clock.now() + settlementWithin) },
      validUntil: clock.elapsed() + operationLife,
    };
    return this.#request;
  }
}
