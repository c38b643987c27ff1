import type { ActiveInstance, RuntimePool, Task, TaskStatus } from '../../api/index.js';
import { domainDigest } from '../../domain/digests.js';
import type { Thawed } from '../../domain/thaw.js';
import type { HarnessClient, PromptStream } from '../../harness/client.js';
import { HarnessError } from '../../harness/errors.js';
import type { PromptEvent } from '../../harness/events.js';
import { isTerminal } from '../../harness/events.js';
import type { Capabilities } from '../../harness/introspection.js';
import { isStrictlyGoverned } from '../../harness/introspection.js';
import { digestOfSettlement } from '../../harness/prompts.js';
import type { CancelReason, Settlement } from '../../harness/prompts.js';
import type { Clock } from '../../kube/clock.js';
import { cutBytes } from '../../lib/text.js';
import { deadlineOf } from './decide.js';
import type { Ending } from './decision.js';
import { guard } from './guard.js';
import type { Guard } from './guard.js';
import type { AttemptOrders } from './orders.js';
import { answerOf } from './result.js';
import type { Receipt } from './result.js';
import { ended, moved, succeeded, undelivered } from './status.js';
import type { Undelivered } from './status.js';
import { neutral, textOf } from './words.js';

/** What an attempt changes outside itself. Each write is durable before the step that it allows. */
export interface AttemptPort {
  /** Writes what `change` makes of the Task as it is stored, if it is still in `from`; throws otherwise. */
  readonly advance: (from: readonly string[], change: (task: Task) => TaskStatus) => Promise<Task>;
  readonly storeResult: (text: string, receipt: Receipt) => Promise<void>;
  readonly passed: (phase: 'running' | 'settling', took: number) => void;
}

export interface Attempt {
  readonly task: Task;
  readonly pool: RuntimePool;
  readonly instance: ActiveInstance;
  readonly thawed: Thawed;
  readonly orders: AttemptOrders;
  readonly client: HarnessClient;
  readonly clock: Clock;
  /** The process must end, or does not lead any more: nothing is written after it. */
  readonly signal: AbortSignal;
  /** Somebody wants the prompt to end. */
  readonly cancelled: AbortSignal;
}

/** One that was submitted. */
interface Submitted extends Attempt {
  /** Bytes that a workspace may have changed, as its supervisor advertises. */
  readonly maxDelta: number;
}

/** `requeue`: no prompt was sent, for this reason, and it is tried again. */
export type AttemptOutcome = 'settled' | { readonly requeue: string };

const beforeSending: readonly string[] = ['SessionStarting', 'Submitting'];
const afterSubmission: readonly string[] = ['Submitting', 'Accepted', 'Running'];
const sessionWait = 90_000;
const longestResult = 1_000_000;

/** One prompt, from an empty instance to a settled Task. It is sent at most once, whatever happens. Source: dispatch.md §4.4–4.5. */
export async function runAttempt(attempt: Attempt, port: AttemptPort): Promise<AttemptOutcome> {
  const { client, clock, signal, thawed } = attempt;
  const capabilities = await client.capabilities({ signal });
  checkCapabilities(capabilities, thawed);
  const starting = await port.advance(['Queued'], (task) => moved(task, 'Running', startingSession(attempt), clock.now()));
  if (await endUnwanted(attempt, port, starting)) return 'settled';
  const over = await startSession(attempt, port);
  if (over) return over;
  if (await endUnwanted(attempt, port, starting)) return 'settled';
  const submitting = await port.advance(['SessionStarting'], (task) =>
    moved(task, 'Running', { state: 'Submitting' }, clock.now()),
  );
  if (await endUnwanted(attempt, port, submitting)) return 'settled';
  const stream = await submit(attempt, port, capabilities);
  if (stream) await follow({ ...attempt, maxDelta: capabilities.limits.maxWorkspaceDeltaBytes }, port, stream);
  return 'settled';
}

/** A prompt that nobody wants any more is not sent at all. */
async function endUnwanted(attempt: Attempt, port: AttemptPort, task: Task): Promise<boolean> {
  const { cancelled, clock, signal } = attempt;
  if (signal.aborted) throw new Error('the controller is stopping');
  const says = 'before its prompt was sent';
  const deletes = cancelled.aborted || task.metadata.deletionTimestamp !== undefined;
  const ending: Ending | undefined = deletes
    ? { state: 'Cancelled', reason: 'Cancelled', message: `the Task was deleted ${says}` }
    : clock.now() >= deadlineOf(attempt)
      ? { state: 'Cancelled', reason: 'TaskTimeout', message: `the time of the Task was over ${says}` }
      : undefined;
  if (ending) await end(attempt, port, ending, beforeSending);
  return ending !== undefined;
}

/** `undefined` = the session is there. */
async function startSession(attempt: Attempt, port: AttemptPort): Promise<AttemptOutcome | undefined> {
  const { orders, client, clock, signal, cancelled, task } = attempt;
  try {
    await client.createSession(orders.operation('create-session', clock.now(), 'session'), orders.session, {
      signal: AbortSignal.any([signal, cancelled]),
      timeout: Math.min(sessionWait, deadlineOf(attempt) - clock.now()),
    });
    return undefined;
  } catch (error) {
    if (await endUnwanted(attempt, port, task)) return 'settled';
    if (error instanceof HarnessError && error.retryable && error.response?.code === 'rate_limited') {
      await port.advance(['SessionStarting'], (stored) =>
        moved(stored, 'Pending', { state: 'Queued', reason: 'AtCapacity' }, clock.now()),
      );
      return { requeue: 'its instance is at capacity' };
    }
    await end(attempt, port, { state: 'Failed', reason: 'RuntimeSessionStartFailed', message: textOf(error) }, beforeSending);
    return 'settled';
  }
}

/** Fails what the frozen plan does not allow to be sent there. */
function checkCapabilities(capabilities: Capabilities, { plan }: Thawed): void {
  if (capabilities.runtimeProfileDigest !== plan.profileDigest) throw new Error('the instance runs another profile');
  if (!isStrictlyGoverned(capabilities)) throw new Error('the instance is not strictly governed');
  if (capabilities.supportsAgentSessionConfiguration !== true) throw new Error('the instance takes no agent configuration');
}

function startingSession({ instance, orders, thawed }: Attempt) {
  return {
    state: 'SessionStarting',
    runtimeInstanceID: instance.runtimeInstanceID,
    runtimeSessionUID: orders.sessionUID,
    runtimeSessionGeneration: 1,
    runtimeSessionSupervisorBootID: instance.bootID,
    runtimeSessionProfileDigest: thawed.plan.profileDigest,
    runtimeSessionMCPDigest: thawed.plan.profile.mcpConfigurationDigest,
    runtimeSessionWorkspaceDigest: orders.workspaceDigest as `sha256:${string}`,
  } as const;
}

/** `undefined` = the Task is settled already. Only the proof that nothing was written says that the prompt was not accepted. */
async function submit(attempt: Attempt, port: AttemptPort, { limits }: Capabilities): Promise<PromptStream | undefined> {
  const { orders, client, clock, signal, thawed } = attempt;
  try {
    return await client.prompt(
      orders.operation('start-prompt', clock.now()),
      {
        runtimeSessionID: orders.runtimeSessionID,
        ...orders.lease(1, clock.now()),
        input: { content: [{ type: 'text', text: thawed.prompt }] },
        limits,
      },
      { signal, timeout: 60_000 },
    );
  } catch (error) {
    if (signal.aborted) throw error;
    const unsent =
      error instanceof HarnessError && (error.evidence === 'zero_bytes_written' || error.response?.code === 'rate_limited');
    const ending: Ending = unsent
      ? { state: 'Failed', reason: 'PromptNotAccepted', message: textOf(error) }
      : { state: 'OutcomeUnknown', reason: 'RuntimeLost', message: `whether the prompt ran is not known: ${textOf(error)}` };
    await end(attempt, port, ending, ['Submitting']);
    return undefined;
  }
}

/** Reads the events to the end, keeps the lease, and ends the prompt when it is wanted or its time is over. */
async function follow(attempt: Submitted, port: AttemptPort, stream: PromptStream): Promise<void> {
  const { clock, signal } = attempt;
  const watch = guard(attempt, stream);
  const began = clock.elapsed();
  const spoken = transcript(longestResult);
  let last: PromptEvent | undefined;
  try {
    for await (const event of stream.events) {
      last = event;
      if (event.type === 'accepted')
        await port.advance(['Submitting'], (task) => moved(task, 'Running', { state: 'Running' }, clock.now()));
      if (event.type === 'update') spoken.add(event.payload.assistantMessage?.text ?? '');
      if (event.type === 'permission_requested') await watch.reject(event.payload);
    }
  } catch (error) {
    if (signal.aborted) throw error;
    await settleLost(attempt, port, watch, textOf(error));
    return;
  } finally {
    watch.stop();
  }
  if (signal.aborted) throw new Error('the controller is stopping');
  if (!last || !isTerminal(last)) {
    await settleLost(attempt, port, watch, 'the stream ended without a terminal event');
    return;
  }
  port.passed('running', clock.elapsed() - began);
  await settle(attempt, port, last, spoken.text(), watch.gaveUp());
}

/** What was said, up to the first part that goes beyond so many bytes. */
function transcript(most: number): { readonly add: (text: string) => void; readonly text: () => string } {
  const parts: string[] = [];
  let size = 0;
  return {
    add: (text) => {
      if (size > most) return;
      parts.push(text);
      size += Buffer.byteLength(text);
    },
    text: () => parts.join(''),
  };
}

/** The connection broke after the prompt was accepted. Only a proven settlement says more than that nobody knows. */
async function settleLost(attempt: Attempt, port: AttemptPort, watch: Guard, says: string): Promise<void> {
  const settlement = await watch.cancel('stream_disconnected');
  if (attempt.signal.aborted) throw new Error('the controller is stopping');
  const stop = settlement?.stopReason ?? settlement?.outcome;
  const lost: Ending = {
    state: 'OutcomeUnknown',
    reason: 'RuntimeLost',
    message: `the connection to the prompt was lost: ${says}`,
  };
  const ending: Ending =
    settlement?.outcome === 'failed'
      ? { state: 'Failed', reason: 'PromptFailed', message: `the prompt ended (${stop}): ${says}` }
      : settlement?.outcome === 'cancelled'
        ? cancellation(watch.gaveUp(), `${stop}, ${says}`)
        : lost;
  await end(attempt, port, ending, afterSubmission);
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

async function settle(
  attempt: Submitted,
  port: AttemptPort,
  event: PromptEvent,
  spoken: string,
  why: CancelReason | undefined,
): Promise<void> {
  const unknown = (reason: string, message: string): Ending => ({ state: 'OutcomeUnknown', reason, message: neutral(message) });
  switch (event.type) {
    case 'completed':
      return settleCompleted(attempt, port, event, spoken);
    case 'failed': {
      const { code, message } = event.payload;
      const ending = { state: 'Failed', reason: 'PromptFailed', message: neutral(`${code}: ${message}`) } as const;
      return end(attempt, port, ending, afterSubmission);
    }
    case 'cancelled': {
      const { stopReason, reason } = event.payload;
      return end(attempt, port, cancellation(why, neutral(reason ?? stopReason)), afterSubmission);
    }
    case 'outcome_unknown': {
      const { code, message } = event.payload;
      return end(attempt, port, unknown('RuntimeLost', `${code}: ${message}`), afterSubmission);
    }
    default:
      return end(attempt, port, unknown('MissingTerminal', 'the stream has no end'), afterSubmission);
  }
}

/** Receipt and answer first, then the state that relies on them, then the workspace, then success. */
async function settleCompleted(
  attempt: Submitted,
  port: AttemptPort,
  event: Extract<PromptEvent, { readonly type: 'completed' }>,
  spoken: string,
): Promise<void> {
  const { orders, clock, signal, task, instance } = attempt;
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
    requestDigest: event.identity.requestDigest,
    runtimeInstanceID: instance.runtimeInstanceID,
    stopReason: settlement.stopReason,
    settledAt: settlement.settledAt,
    settlementDigest: digestOfSettlement(settlement),
  };
  try {
    await port.storeResult(cutBytes(answerOf(event, spoken), longestResult, '...<truncated>'), receipt);
  } catch (error) {
    if (signal.aborted) throw error;
    const message = `the agent answered, but the answer could not be stored: ${textOf(error)}`;
    const ending = { state: 'OutcomeUnknown', reason: 'ExecutionEventPersistenceFailed', message } as const;
    await end(attempt, port, ending, afterSubmission);
    return;
  }
  await port.advance(afterSubmission, (now) => ({
    ...moved(now, 'Finalizing', { state: 'Settling' }, clock.now()),
    delivery: { state: 'Validating', outcome: 'Validating' },
  }));
  const delivery = await validate(attempt, settlement);
  await port.advance(['Settling'], (now) => (delivery ? undelivered(now, delivery, clock.now()) : succeeded(now, clock.now())));
  port.passed('settling', clock.elapsed() - began);
}

/** What the prompt left in its workspace, if that is more than a reader leaves. */
async function validate(attempt: Submitted, settlement: Settlement): Promise<Undelivered | undefined> {
  const { orders, client, clock, signal, thawed, maxDelta } = attempt;
  try {
    const operation = orders.operation('workspace-delta', clock.now());
    const { delta } = await client.workspaceDelta(operation, orders.runtimeSessionID, orders.delta(settlement, maxDelta), {
      signal,
    });
    if (delta.state === 'no_change') return undefined;
    const intent = thawed.plan.profile.workspaceIntent;
    const message = `the agent changed ${delta.changedFileCount} files of a workspace with intent ${intent}`;
    return { state: 'ReadOnlyWorkspaceModified', message };
  } catch (error) {
    if (signal.aborted) throw error;
    const message = `the workspace could not be validated: ${textOf(error)}`;
    return { state: 'DeliveryConflict', reason: 'WorkspaceValidationFailed', message };
  }
}

async function end({ clock }: Attempt, port: AttemptPort, ending: Ending, from: readonly string[]): Promise<void> {
  await port.advance(from, (task) => ended(task, ending, clock.now()));
}

/** Digest of the fact that the session of an attempt is gone. */
export function cleanupDigest(
  task: Task,
  orders: Pick<AttemptOrders, 'attempt' | 'promptID' | 'sessionUID'>,
  instance: Pick<ActiveInstance, 'runtimeInstanceID'>,
): string {
  return domainDigest('task-runtime-session-cleanup', {
    taskUID: task.metadata.uid ?? '',
    attempt: orders.attempt,
    promptID: orders.promptID,
    runtimeSessionUID: orders.sessionUID,
    runtimeSessionGeneration: 1,
    runtimeInstanceID: instance.runtimeInstanceID,
  });
}
