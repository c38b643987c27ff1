import type { Task, TaskStatus } from '../../api/index.js';
import { domainDigest } from '../../domain/digests.js';

/** The status of a Task whose session is gone, which it says from now on. Source: dispatch.md §4.5. */
export function withCleanupReceipt({ metadata, status }: Task): TaskStatus {
  const { attempt = 1, promptID = '', runtimeSessionUID = '', runtimeSessionGeneration = 1, ...rest } = status?.execution ?? {};
  const digest = domainDigest('task-runtime-session-cleanup', {
    taskUID: metadata.uid ?? '',
    attempt,
    promptID,
    runtimeSessionUID,
    runtimeSessionGeneration,
    runtimeInstanceID: rest.runtimeInstanceID ?? '',
  });
  return { ...status, execution: { ...status?.execution, runtimeSessionCleanupDigest: digest } };
}
