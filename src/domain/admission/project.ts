import type { ExecutionWorkspaceStatus, Task, TaskStatus } from '../../api/index.js';
import { describeFinding } from '../../lib/errors.js';
import { cutBytes } from '../../lib/text.js';
import { resolveProvider } from '../binding.js';
import { promptId } from '../digests.js';
import type { Plan } from '../plan.js';
import { redacted } from '../redaction.js';
import type { Refusal } from './admit.js';
import { knownCleanupPolicies, knownProviders, knownReusePolicies } from './shape.js';

const longestMessage = 1024;
const cutMark = '...<truncated>';

/** A message as status fields hold it: trimmed, at most 1024 bytes before the mark that it was cut. Source: corrections.md item 6. */
function statusMessage(text: string): string {
  return cutBytes(redacted(text.trim()), longestMessage, cutMark);
}

/** The status of a refused Task: terminal, and with a workspace status where one was asked for. Source: workload.md §8.4. */
export function refusedStatus(task: Task, refusal: Refusal, defaultProvider: string, now: string): TaskStatus {
  const message = statusMessage(describeFinding(refusal.finding));
  const condition = (type: string, text: string) => ({
    type,
    status: 'False' as const,
    reason: 'TaskFailed',
    message: text,
    lastTransitionTime: now,
  });
  return {
    phase: 'Failed',
    message,
    completionTime: now,
    conditions: [condition('WaitingForApproval', 'task is terminal'), condition('Complete', message)],
    ...(refusal.projection === 'workspace' ? { executionWorkspace: refusedWorkspace(task, message, defaultProvider, now) } : {}),
    ...(refusal.projection === 'execution'
      ? {
          execution: {
            state: 'Failed',
            outcome: 'Failed',
            reason: refusal.reason,
            // The schema holds this one to 1024 characters, its mark included.
            message: cutBytes(message, 1_000, cutMark),
            lastTransitionTime: now,
          },
          delivery: { state: 'NotRequested', outcome: 'NotRequested' },
        }
      : {}),
  };
}

function refusedWorkspace(task: Task, message: string, defaultProvider: string, now: string): ExecutionWorkspaceStatus {
  const workspace = task.spec.execution?.workspace;
  const provider = resolveProvider(task, defaultProvider);
  const template = workspace?.templateRef;
  const reusePolicy = (workspace?.reusePolicy ?? '') || 'none';
  const cleanupPolicy = (workspace?.cleanupPolicy ?? '') || 'delete';
  return {
    ...(isOneOf(provider, knownProviders) ? { provider } : {}),
    ...(template?.name
      ? { templateRef: { name: template.name, namespace: template.namespace ?? task.metadata.namespace ?? '' } }
      : {}),
    phase: 'Failed',
    reason: 'WorkspaceValidationFailed',
    ...(isOneOf(reusePolicy, knownReusePolicies) ? { reusePolicy } : {}),
    ...(isOneOf(cleanupPolicy, knownCleanupPolicies) ? { cleanupPolicy } : {}),
    message,
    lastUpdateTime: now,
  } as ExecutionWorkspaceStatus;
}

function isOneOf(value: string, known: readonly string[]): boolean {
  return known.includes(value);
}

/** The status of an admitted Task before its pool serves: the workspace is pending and nothing of the provider is named. Source: workload.md §8.5. */
export function queuedStatus(
  plan: Plan,
  pool: { readonly uid: string; readonly reused: boolean },
  attempt: { readonly controllerEpoch: number; readonly taskUID: string },
  now: string,
): TaskStatus {
  return {
    phase: 'Pending',
    execution: {
      state: 'Queued',
      attempt: 1,
      queuedAt: now,
      promptID: promptId(attempt.taskUID, 1),
      controllerEpoch: attempt.controllerEpoch,
      runtimePoolName: plan.poolName,
      runtimePoolUID: pool.uid,
      lastTransitionTime: now,
    },
    delivery: { state: 'NotRequested', outcome: 'NotRequested' },
    ...(plan.binding
      ? {
          executionWorkspace: {
            provider: plan.binding.provider,
            phase: 'Pending',
            reason: 'WorkspacePending',
            reusePolicy: plan.binding.reusePolicy,
            cleanupPolicy: plan.binding.cleanupPolicy,
            reused: pool.reused,
            lastUpdateTime: now,
          },
        }
      : {}),
  } as TaskStatus;
}
