import type { TaskDeliveryStatus, TokenUsage } from '../../api/index.js';
import type { PodEnd } from '../../domain/pod-end.js';
import type { WorkspaceDelta } from '../../harness/deltas.js';
import { HarnessError } from '../../harness/errors.js';
import type { PromptEvent } from '../../harness/events.js';
import { digestOfSettlement } from '../../harness/prompts.js';
import type { CancelReason, Settlement } from '../../harness/prompts.js';
import { backoffOf } from '../../kube/backoff.js';
import { sleep } from '../../kube/clock.js';
import { KubeError } from '../../kube/errors.js';
import { counted, cutBytes } from '../../lib/text.js';
import { afterSubmission, end, insist } from './attempt-port.js';
import type { AttemptPort, Submitted } from './attempt-port.js';
import type { Ending } from './decision.js';
import type { AttemptOrders } from './orders.js';
import { answerOf } from './result.js';
import type { Receipt } from './result.js';
import { moved, succeeded, undelivered } from './status.js';
import type { Undelivered } from './status.js';
import { tokensOf } from './usage.js';
import { causeOf } from './cause.js';

/** Bytes. */
export const longestResult = 1_000_000;
/** Milliseconds for each try: together more than a supervisor may take. A repeat waits for the same answer. */
export const deltaWait = 10_000;
export const deltaTries = 3;
const deltaBackoff = { base: 500, cap: 2_000 };
const storeBackoff = { base: 1_000, cap: 30_000 };

/** What the last event of a prompt comes to. Source: dispatch.md §4.5. */
export async function settle(
  attempt: Submitted,
  port: AttemptPort,
  event: PromptEvent,
  { spoken, usage }: { readonly spoken: string; readonly usage: TokenUsage | undefined },
  { gaveUp, proven }: { readonly gaveUp: CancelReason | undefined; readonly proven: Settlement | undefined },
): Promise<void> {
  const unknown = (reason: string, message: string): Ending => ({ state: 'OutcomeUnknown', reason, message });
  switch (event.type) {
    case 'completed':
      return settleCompleted(attempt, port, event, { spoken, usage: tokensOf(event.payload.result.usage) ?? usage });
    case 'failed': {
      const { code, message } = event.payload;
      const failure = { state: 'Failed', reason: 'PromptFailed', message: `${code}: ${message}` } as const;
      const ending = code === 'process_shutdown' ? withEnd(failure, port.ended()) : failure;
      return end(attempt, port, { ...ending, usage }, afterSubmission);
    }
    case 'cancelled': {
      const { stopReason, reason } = event.payload;
      return end(attempt, port, { ...cancellation(gaveUp, reason ?? stopReason), usage }, afterSubmission);
    }
    case 'outcome_unknown': {
      const { code, message } = event.payload;
      const ending = endingOf(proven, gaveUp, `${code}: ${message}`);
      const lost = withEnd(unknown('RuntimeLost', `${code}: ${message}`), port.ended());
      return end(attempt, port, { ...(ending ?? lost), usage }, afterSubmission);
    }
    default:
      return end(attempt, port, unknown('MissingTerminal', 'the stream has no end'), afterSubmission);
  }
}

/** An ending with what ended the instance, which is its cause. */
function withEnd(ending: Ending, instance: PodEnd | undefined): Ending {
  return instance ? { ...ending, message: `${ending.message}: ${instance.says}`, cause: instance.cause } : ending;
}

/** Receipt and answer first, then the state that relies on them, then the workspace, then success. */
async function settleCompleted(
  attempt: Submitted,
  port: AttemptPort,
  event: Extract<PromptEvent, { readonly type: 'completed' }>,
  { spoken, usage }: { readonly spoken: string; readonly usage: TokenUsage | undefined },
): Promise<void> {
  const { orders, clock, task, instance } = attempt;
  const began = clock.elapsed();
  const settlement = {
    terminalEvent: 'completed',
    outcome: 'succeeded',
    stopReason: event.payload.stopReason,
    settledAt: event.identity.timestamp,
  } as const;
  const receipt: Receipt = {
    taskUID: task.metadata.uid ?? '',
    attempt: orders.attempt,
    promptID: orders.promptID,
    promptRequestDigest: event.identity.requestDigest,
    runtimeInstanceID: instance.runtimeInstanceID,
    stopReason: settlement.stopReason,
    settledAt: settlement.settledAt,
    settlementDigest: digestOfSettlement(settlement),
  };
  const text = cutBytes(answerOf(event, spoken), longestResult, '...<truncated>');
  const failure = await port.step('store-result', () => keepAnswer(attempt, port, text, receipt));
  if (failure) {
    await end(attempt, port, { ...failure, usage }, afterSubmission);
    return;
  }
  await port.step('write-settling', () =>
    insist(attempt, port, () =>
      port.advance(afterSubmission, (now) => ({
        ...moved(now, 'Finalizing', { state: 'Settling', ...(usage ? { usage } : {}) }, clock.now()),
        delivery: { state: 'Validating', outcome: 'Validating', ...startedFrom(orders) },
      })),
    ),
  );
  const delivery = await port.step('workspace-delta', () => validate(attempt, port, settlement));
  await port.step('write-outcome', () =>
    insist(attempt, port, () =>
      port.advance(['Settling'], (now) => (delivery ? undelivered(now, delivery, clock.now()) : succeeded(now, clock.now()))),
    ),
  );
  port.passed('settling', clock.elapsed() - began);
}

/**
 * Stores the answer, and tries again for as long as its session lives and its Task is wanted: a quota may be raised, and the answer was paid
 * for. The Task says why it waits.
 */
async function keepAnswer(attempt: Submitted, port: AttemptPort, text: string, receipt: Receipt): Promise<Ending | undefined> {
  const { clock, signal, lost, cancelled } = attempt;
  const ends = AbortSignal.any([signal, lost, cancelled]);
  for (let failures = 1; ; failures++) {
    const last = ends.aborted;
    try {
      await port.storeResult(text, receipt);
      return undefined;
    } catch (error) {
      if (signal.aborted) throw error;
      port.report(error);
      const says = `the agent answered, but the answer could not be stored: ${causeOf(error)}`;
      const forGood = !(error instanceof KubeError) || error.code === 'already-exists';
      if (forGood || last) return { state: 'OutcomeUnknown', reason: 'ExecutionEventPersistenceFailed', message: says };
      await port.say(afterSubmission, `${says}; it is kept in its session and stored as soon as it can be`);
      await sleep(clock, backoffOf(failures, storeBackoff), ends);
    }
  }
}

/** What the work began with. Source: repository.md §1.6. */
function startedFrom({ source }: AttemptOrders): Partial<TaskDeliveryStatus> {
  if (!source) return {};
  const { provider, id } = source.repository;
  return { sourceRepository: { provider, id }, startingSHA: source.resolved.baselineOID };
}

const mostPaths = 20;
/** Bytes: a message of a Task is cut at 1000. */
const longestPaths = 700;

/** Paths that the agent changed, as many as a message holds. */
function namedPaths(paths: readonly string[], count: number): string {
  if (paths.length === 0) return '';
  let [named, size] = [0, 0];
  for (const path of paths.slice(0, mostPaths)) {
    size += Buffer.byteLength(path) + 2;
    if (size > longestPaths) break;
    named++;
  }
  const more = Math.max(count, paths.length) - named;
  const list = paths.slice(0, named).join(', ');
  if (named === 0) return '';
  return more > 0 ? `: ${list} and ${more} more` : `: ${list}`;
}

/** What the prompt left in its workspace, if that is more than a reader leaves. */
async function validate(attempt: Submitted, port: AttemptPort, settlement: Settlement): Promise<Undelivered | undefined> {
  const { clock, signal, lost, thawed } = attempt;
  try {
    const { state, changedFileCount, changedPaths = [] } = await askDelta(attempt, settlement);
    if (state === 'no_change') return undefined;
    const intent = thawed.plan.profile.workspaceIntent;
    const named = namedPaths(changedPaths, changedFileCount);
    const message = `the agent changed ${counted(changedFileCount, 'file')} of a workspace with intent ${intent}${named}`;
    return { state: 'ReadOnlyWorkspaceModified', message };
  } catch (error) {
    if (signal.aborted) throw error;
    port.report(error);
    const instance = port.ended();
    const says = instance?.says ?? (lost.aborted ? 'its instance is gone' : causeOf(error));
    const message = `the workspace could not be validated: ${says}`;
    return {
      state: 'DeliveryConflict',
      reason: lost.aborted ? 'RuntimeWorkspaceLost' : 'WorkspaceValidationFailed',
      message,
      ...(instance ? { cause: instance.cause } : {}),
    };
  }

  /** The same request may be sent again, and has the same answer. */
  async function askDelta({ orders, client, maxDelta }: Submitted, proof: Settlement): Promise<WorkspaceDelta> {
    const operation = orders.operation('workspace-delta', clock.now());
    const order = orders.delta(proof, maxDelta);
    for (let failures = 1; ; failures++) {
      try {
        const call = { signal: AbortSignal.any([signal, lost]), timeout: deltaWait, fresh: failures > 1 };
        return (await client.workspaceDelta(operation, orders.runtimeSessionID, order, call)).delta;
      } catch (error) {
        const told = error instanceof HarnessError && error.response !== undefined && !error.retryable;
        if (told || lost.aborted || signal.aborted || failures >= deltaTries) throw error;
        await sleep(clock, backoffOf(failures, deltaBackoff), signal);
      }
    }
  }
}

/** What a proven settlement says of a prompt whose end nobody read. `undefined` = nothing that a Task could rely on. */
export function endingOf(settlement: Settlement | undefined, why: CancelReason | undefined, says: string): Ending | undefined {
  const stop = settlement?.stopReason ?? settlement?.outcome;
  switch (settlement?.outcome) {
    case 'failed':
      return { state: 'Failed', reason: 'PromptFailed', message: `the prompt ended (${stop}): ${says}` };
    case 'cancelled':
      return cancellation(why, `${stop}, ${says}`);
    default:
      return undefined;
  }
}

/** What is told of a prompt that was cancelled. */
function cancellation(why: CancelReason | undefined, says: string): Ending {
  const told: Readonly<Partial<Record<CancelReason, string>>> = {
    task_timeout: 'the time of the Task is over',
    controller_shutdown: 'the Task was deleted',
    lease_expired: 'the prompt was cancelled: its lease could not be renewed',
    user_requested: 'the prompt was cancelled: it asked for a permission that nobody is there to give',
  };
  const message = (why && told[why]) ?? `the prompt was cancelled: ${says}`;
  return { state: 'Cancelled', reason: why === 'task_timeout' ? 'TaskTimeout' : 'Cancelled', message };
}
