import { executionOutcomes } from '../../api/index.js';
import type { ExecutionWorkspaceStatus, Task, TaskExecutionStatus, TaskPhase, TaskStatus } from '../../api/index.js';
import { abandonedEffects } from '../../domain/source-effects.js';
import { effectsOf } from '../../domain/source-plan.js';
import { timestamp } from '../../kube/clock.js';
import { redacted } from '../../domain/redaction.js';
import { cutBytes } from '../../lib/text.js';
import { normalizeDuration } from '../../lib/duration.js';
import type { Ending } from './decision.js';
import { resultName } from './result.js';

const cut = (text: string): string => cutBytes(redacted(text.trim()), 1_000, '...<truncated>');

/** The status of a Task whose attempt moved on. What it waited for is over; what else is not named stays. */
export function moved(task: Task, phase: TaskPhase, change: Partial<TaskExecutionStatus>, now: number): TaskStatus {
  const { message: _waited, ...before } = task.status ?? {};
  const { reason: _reason, message: _message, ...execution } = before.execution ?? {};
  return {
    ...before,
    phase,
    ...(phase !== 'Pending' && before.startTime === undefined ? { startTime: timestamp(now) } : {}),
    execution: { ...execution, ...change, lastTransitionTime: timestamp(now) },
    ...workspaceOf(before, change.state, now),
  };
}

/** The workspace is ready while a prompt runs in it, and released when nothing is sent any more. Source: workload.md §8.5. */
function workspaceOf(
  { executionWorkspace }: TaskStatus,
  state: TaskExecutionStatus['state'],
  now: number,
): { readonly executionWorkspace?: ExecutionWorkspaceStatus } {
  const phase = executionWorkspace?.phase;
  if (!executionWorkspace || state === undefined) return {};
  const next = (to: 'Ready' | 'Released') => ({
    executionWorkspace: {
      ...executionWorkspace,
      phase: to,
      reason: to === 'Ready' ? ('WorkspaceReady' as const) : ('WorkspaceReleased' as const),
      lastUpdateTime: timestamp(now),
    },
  });
  if ((state === 'Running' || state === 'Settling') && phase === 'Pending') return next('Ready');
  const over = executionOutcomes.some((outcome) => outcome === state);
  return over && (phase === 'Pending' || phase === 'Ready') ? next('Released') : {};
}

const phases = { Succeeded: 'Succeeded', Failed: 'Failed', Cancelled: 'Cancelled', OutcomeUnknown: 'Failed' } as const;

/** The status of a Task that ended other than well. */
export function ended(task: Task, { state, reason, message, usage, cause = reason }: Ending, now: number): TaskStatus {
  const text = cut(message);
  const records = effectsOf(task.status?.execution);
  const effects = records.length > 0 ? { effects: abandonedEffects(records) as TaskExecutionStatus['effects'] } : {};
  const change = { state, outcome: state, reason, message: text, ...(usage ? { usage } : {}), ...effects };
  const status = moved(task, phases[state], change, now);
  return completed(
    { ...status, message: text, delivery: status.delivery ?? { state: 'NotRequested', outcome: 'NotRequested' } },
    { attempt: task.status?.execution?.attempt ?? 1, cause },
    now,
  );
}

/** The status of a Task whose prompt succeeded and whose workspace is as it was. */
export function succeeded(task: Task, now: number): TaskStatus {
  const status = moved(task, 'Succeeded', { state: 'Succeeded', outcome: 'Succeeded' }, now);
  const delivered = {
    ...status.delivery,
    state: 'ReadValidated',
    outcome: 'ReadValidated',
    lastTransitionTime: timestamp(now),
  } as const;
  const attempt = task.status?.execution?.attempt ?? 1;
  const done = { ...status, resultRef: resultOf(task), delivery: delivered };
  return completed(done, { attempt, cause: 'TaskSucceeded' }, now);
}

/** What became of a workspace that cannot be said to be as it was. */
export interface Undelivered {
  readonly state: 'ReadOnlyWorkspaceModified' | 'DeliveryConflict';
  readonly reason?: 'WorkspaceValidationFailed' | 'RuntimeWorkspaceLost';
  readonly message: string;
  /** What it came from, for the condition `Complete` and the event. @default the reason, else the state */
  readonly cause?: string;
}

/** The prompt succeeded, but its workspace was not left as a reader leaves it. */
export function undelivered(task: Task, delivery: Undelivered, now: number): TaskStatus {
  const text = cut(delivery.message);
  const status = moved(task, 'Failed', { state: 'Succeeded', outcome: 'Succeeded' }, now);
  const { state, reason, cause = reason ?? state } = delivery;
  const told = {
    ...status.delivery,
    state,
    outcome: state,
    ...(reason === undefined ? {} : { reason }),
    message: text,
    lastTransitionTime: timestamp(now),
  };
  return completed(
    { ...status, message: text, resultRef: resultOf(task), delivery: told },
    { attempt: task.status?.execution?.attempt ?? 1, cause },
    now,
  );
}

const resultOf = (task: Task) => ({ available: true, name: resultName(task) });

/** In whole seconds, as `kubectl get -o wide` shows it. */
function durationOf(startTime: string | undefined, now: number): Pick<TaskStatus, 'duration'> {
  const seconds = Math.floor((now - Date.parse(startTime ?? '')) / 1000);
  return seconds >= 0 ? { duration: normalizeDuration(`${seconds}s`) ?? '0s' } : {};
}

function completed(
  status: TaskStatus,
  { attempt, cause }: { readonly attempt: number; readonly cause: string },
  now: number,
): TaskStatus {
  const well = status.phase === 'Succeeded';
  const at = timestamp(now);
  const phase = status.phase === 'Succeeded' || status.phase === 'Cancelled' ? status.phase : 'Failed';
  return {
    ...status,
    attempts: attempt,
    completionTime: at,
    ...durationOf(status.startTime, now),
    executionOutcome: {
      phase,
      attempt,
      ...(status.resultRef ? { resultRef: status.resultRef } : {}),
      recordedAt: at,
      ...(status.message === undefined ? {} : { message: status.message }),
    },
    conditions: [
      {
        type: 'Complete',
        status: well ? 'True' : 'False',
        reason: cause === 'Cancelled' ? 'TaskCancelled' : cause,
        message: status.message ?? 'the agent answered',
        lastTransitionTime: at,
      },
    ],
  };
}
