import type { PromptStream } from '../../harness/client.js';
import type { PromptEvent } from '../../harness/events.js';
import { instant } from '../../harness/instant.js';
import type { CancelReason, Settlement } from '../../harness/prompts.js';
import type { Attempt } from './attempt-port.js';
import { deadlineOf } from './decide.js';
import { leaseLife } from './orders.js';

/** Milliseconds for which a cancelled prompt may settle. */
const cancelWait = 25_000;

/** Keeps a running prompt alive, and ends it. */
export interface Guard {
  readonly cancel: (reason: CancelReason) => Promise<Settlement | undefined>;
  readonly reject: (request: Extract<PromptEvent, { readonly type: 'permission_requested' }>['payload']) => Promise<void>;
  /** Why the prompt was asked to end. */
  readonly gaveUp: () => CancelReason | undefined;
  readonly stop: () => void;
}

/**
 * Renews the lease of a prompt at half of its life, and asks for its end when the time of the Task is over, when nobody wants it any more, and when
 * the lease cannot be kept. With its instance everything is over at once. What came of it is told by the stream; breaking that is the last resort. Source: dispatch.md §4.4–4.5.
 */
export function guard(attempt: Attempt, stream: PromptStream): Guard {
  const { orders, client, clock, signal, cancelled, lost } = attempt;
  let generation = 1;
  let why: CancelReason | undefined;
  let stopped = false;
  let cancelAbort: () => void = () => undefined;
  let cancelRenewal = clock.after(leaseLife / 2, renewLease);
  let cancelDeadline = clock.after(deadlineOf(attempt) - clock.now(), timeOut);
  const onCancelled = () => giveUp('controller_shutdown');
  cancelled.addEventListener('abort', onCancelled, { once: true });
  if (cancelled.aborted) onCancelled();
  const onLost = () => stream.abort();
  lost.addEventListener('abort', onLost, { once: true });
  if (lost.aborted) onLost();

  /** A clock waits for some weeks at most. */
  function timeOut(): void {
    const left = deadlineOf(attempt) - clock.now();
    if (left <= 0) giveUp('task_timeout');
    else cancelDeadline = clock.after(left, timeOut);
  }

  /** A lease that cannot be kept ends the prompt: the supervisor would end it anyway, and nobody would be there to read. */
  function renewLease(): void {
    const next = generation + 1;
    const operation = orders.operation(`renew-lease-${next}`, clock.now());
    const order = {
      runtimeSessionID: orders.runtimeSessionID,
      expectedLeaseGeneration: generation,
      ...orders.lease(next, clock.now()),
    };
    client.renewLease(operation, order, { signal }).then(
      () => {
        generation = next;
        if (!stopped) cancelRenewal = clock.after(leaseLife / 2, renewLease);
      },
      () => giveUp('lease_expired'),
    );
  }

  function giveUp(reason: CancelReason): void {
    if (stopped) return;
    why ??= reason;
    // Breaking the connection makes the supervisor cancel too; it is the last resort.
    cancelAbort();
    cancelAbort = clock.after(cancelWait, () => stream.abort());
    cancel(reason).then(
      (settlement) => {
        if (settlement) cancelAbort();
      },
      () => undefined,
    );
  }

  async function cancel(reason: CancelReason): Promise<Settlement | undefined> {
    try {
      const order = { reason, settlementDeadline: instant(clock.now() + 20_000) };
      const operation = orders.operation('cancel-prompt', clock.now());
      const answer = await client.cancel(operation, orders.runtimeSessionID, order, { signal, timeout: cancelWait });
      return answer.settlementProven ? answer.settlement : undefined;
    } catch {
      return undefined;
    }
  }

  return {
    cancel,
    // Nobody is there to ask: what the policy does not allow by itself is not allowed, and the prompt says so by ending.
    reject: async () => {
      why ??= 'user_requested';
      await cancel('user_requested');
    },
    gaveUp: () => why,
    stop: () => {
      stopped = true;
      cancelAbort();
      cancelRenewal();
      cancelDeadline();
      cancelled.removeEventListener('abort', onCancelled);
      lost.removeEventListener('abort', onLost);
    },
  };
}
