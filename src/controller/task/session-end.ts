import type { HarnessClient } from '../../harness/client.js';
import { HarnessError } from '../../harness/errors.js';
import { instant } from '../../lib/instant.js';
import type { Clock } from '../../kube/clock.js';
import { sleep } from '../../kube/clock.js';
import type { SessionOrders } from './orders.js';

/** Milliseconds for the end of a session: as long as a request about it is valid. */
const deletionWait = 30_000;
const busyPause = 100;
const cancelWait = 5_000;

/**
 * Deletes a session; one that is not there is deleted. Waits for its prompt, and for an end that is under way; a prompt that ended unread is
 * given up first. Throws when it takes too long.
 */
export async function endSession(client: HarnessClient, orders: SessionOrders, clock: Clock, signal: AbortSignal): Promise<void> {
  const end = clock.elapsed() + deletionWait;
  for (;;) {
    const found = await tryDeletion(client, orders, clock, signal);
    if (found === 'gone') return;
    if (found === 'unread') await giveUp(client, orders, clock, signal);
    if (clock.elapsed() >= end || signal.aborted) throw new Error('the session is still busy');
    await sleep(clock, busyPause, signal);
  }
}

/** `busy`: it is being ended already, or its prompt is. `unread`: its prompt ended, and what that changed was not asked. */
async function tryDeletion(
  client: HarnessClient,
  orders: SessionOrders,
  clock: Clock,
  signal: AbortSignal,
): Promise<'gone' | 'busy' | 'unread'> {
  const now = clock.now();
  const operation = { ...orders.operation('ds', now, 'session'), operationID: `ds-${now.toString(36)}` };
  try {
    await client.deleteSession(operation, orders.runtimeSessionID, 'task_finalized', { signal, timeout: deletionWait });
    return 'gone';
  } catch (error) {
    if (!(error instanceof HarnessError)) throw error;
    if (error.status === 404 || error.response?.code === 'stale_fence') return 'gone';
    if (error.status === 409 && error.response?.code === 'session_poisoned') return 'unread';
    if (error.retryable) return 'busy';
    throw error;
  }
}

/** Whoever asks for the end of a session reads nothing of its prompt any more. Its own cancel may have been before. */
async function giveUp(client: HarnessClient, orders: SessionOrders, clock: Clock, signal: AbortSignal): Promise<void> {
  const now = clock.now();
  const operation = { ...orders.operation('cancel-prompt', now), operationID: `cancel-unread-${now.toString(36)}` };
  const order = { reason: 'stream_disconnected', settlementDeadline: instant(now + cancelWait) } as const;
  await client.cancel(operation, orders.runtimeSessionID, order, { signal, timeout: cancelWait }).catch(() => undefined);
}
