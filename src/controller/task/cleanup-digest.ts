import type { ActiveInstance, Task } from '../../api/index.js';
import { domainDigest } from '../../domain/digests.js';
import type { SessionOrders } from './orders.js';

/** Digest of the fact that the session of an attempt is gone. */
export function cleanupDigest(
  task: Task,
  orders: Pick<SessionOrders, 'attempt' | 'promptID' | 'sessionUID' | 'sessionGeneration'>,
  instance: Pick<ActiveInstance, 'runtimeInstanceID'>,
): string {
  return domainDigest('task-runtime-session-cleanup', {
    taskUID: task.metadata.uid ?? '',
    attempt: orders.attempt,
    promptID: orders.promptID,
    runtimeSessionUID: orders.sessionUID,
    runtimeSessionGeneration: orders.sessionGeneration,
    runtimeInstanceID: instance.runtimeInstanceID,
  });
}
