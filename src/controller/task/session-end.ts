import type { HarnessClient } from '../../harness/client.js';
import { HarnessError } from '../../harness/errors.js';
import type { Clock } from '../../kube/clock.js';
import { sleep } from '../../kube/clock.js';
import type { SessionOrders } from './orders.js';

/** Milliseconds for the end of a session: as long as a request about it is valid. */
const deletionWait = 30_000;
const busyPause = 100;

/** Deletes a session; one that is not there is deleted. Waits for its prompt, and for an end that is under way. Throws when it takes too long. */
export async function endSession(client: HarnessClient, orders: SessionOrders, clock: Clock, signal: AbortSignal): Promise<void> {
  const end = clock.elapsed() + deletionWait;
  while (!(await tryDeletion(client, orders, clock, signal))) {
    if (clock.elapsed() >= end || signal.aborted) throw new Error('the session is still busy');
    await sleep(clock, busyPause, signal);
  }
}

/** `false` = it is being ended already, or its prompt is. */
async function tryDeletion(client: HarnessClient, orders: SessionOrders, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const now = clock.now();
  const operation = { ...orders.operation('ds', now, 'session'), operationID: `ds-${now.toString(36)}` };
  try {
    await client.deleteSession(operation, orders.runtimeSessionID, 'task_finalized', { signal, timeout: deletionWait });
    return true;
  } catch (error) {
    if (!(error instanceof HarnessError)) throw error;
    if (error.status === 404 || error.response?.code === 'stale_fence') return true;
    if (error.retryable) return false;
    throw error;
  }
}
