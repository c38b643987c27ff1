import type { Task, TaskExecutionStatus } from '../../api/index.js';
import type { ErrorCode } from '../../harness/errors.js';
import type { PromptStream } from '../../harness/client.js';
import { HarnessError } from '../../harness/errors.js';
import type { Capabilities } from '../../harness/introspection.js';
import { isStrictlyGoverned } from '../../harness/introspection.js';
import { sleep } from '../../kube/clock.js';
import { redacted } from '../../domain/redaction.js';
import { describeFinding } from '../../lib/errors.js';
import { cutBytes } from '../../lib/text.js';
import type { Thawed } from '../../domain/thaw.js';
import type { PodEnd } from '../../domain/pod-end.js';
import { end } from './attempt-port.js';
import type { Attempt, AttemptEnd, AttemptPort, AttemptResult } from './attempt-port.js';
import { causeOf, workspaceCauseOf } from './cause.js';
import { deadlineOf } from './decide.js';
import type { Ending } from './decision.js';
import { follow } from './follow.js';
import { moved } from './status.js';

const beforeSending: readonly string[] = ['SessionStarting', 'Submitting'];
export const sessionWait = 90_000;
/** Between tries of a prompt that an instance has no room for. */
const capacityPause = 1_000;
/** Codes with which a supervisor answers a prompt that it does not begin. */
const refusing: readonly ErrorCode[] = [
  'invalid_request',
  'unauthenticated',
  'forbidden',
  'expired',
  'stale_fence',
  'session_poisoned',
];

/**
 * One prompt, from an empty instance to a settled Task. It is sent at most once, whatever happens. Never throws: the result says what became
 * of the session, also after a failure. Source: dispatch.md §4.4–4.5.
 */
export async function runAttempt(attempt: Attempt, port: AttemptPort): Promise<AttemptResult> {
  let session: AttemptResult['session'] = 'none';
  const watched: AttemptPort = {
    ...port,
    step: (name, take) => {
      if (name === 'create-session') session = 'open';
      return port.step(name, take);
    },
  };
  const end = await goThrough(attempt, watched).catch((error: unknown): AttemptEnd => ({ outcome: 'failed', error }));
  return { session: attempt.lost.aborted ? 'gone' : session, ...end };
}

/** @returns `session: 'none'` when the instance refused to begin one */
async function goThrough(attempt: Attempt, port: AttemptPort): Promise<AttemptEnd & { readonly session?: 'none' }> {
  const { client, clock, signal, thawed } = attempt;
  const capabilities = await client.capabilities({ signal });
  checkCapabilities(capabilities, thawed);
  const starting = await port.step('write-session-starting', () =>
    port.advance(['Queued'], (task) => moved(task, 'Running', startingSession(attempt), clock.now())),
  );
  if (await endUnwanted(attempt, port, starting)) return settled;
  const over = await startSession(attempt, port);
  if (over) return over;
  if (await endUnwanted(attempt, port, starting)) return settled;
  // One that drains would refuse the prompt, and that would be the end of the Task.
  if (!port.serves()) return queuedAgain(attempt, port, 'RuntimeLost', 'its instance is being ended');
  const submitting = await port.step('write-submitting', () =>
    port.advance(['SessionStarting'], (task) => moved(task, 'Running', { state: 'Submitting' }, clock.now())),
  );
  if (await endUnwanted(attempt, port, submitting)) return settled;
  const sent = await submit(attempt, port, capabilities, submitting);
  const maxDelta = capabilities.limits.maxWorkspaceDeltaBytes;
  if (sent) await follow({ ...attempt, maxDelta, leasedAt: sent.leasedAt }, port, sent.stream);
  return settled;
}

const settled = { outcome: 'settled' } as const;

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

/**
 * `undefined` = the session is there. What fails otherwise than for good is tried again in another session: nothing was sent yet.
 * Source: dispatch.md §4.4, §9.4.
 */
async function startSession(
  attempt: Attempt,
  port: AttemptPort,
): Promise<(AttemptEnd & { readonly session?: 'none' }) | undefined> {
  const { orders, client, clock, signal, cancelled, lost, task } = attempt;
  try {
    const permitted = orders.download && (await port.authorize(orders.download));
    if (permitted && 'says' in permitted) {
      const blocked = { state: 'Failed', reason: 'CredentialBlocked', message: permitted.says } as const;
      await end(attempt, port, blocked, beforeSending);
      return { ...settled, session: 'none' };
    }
    const order = permitted ? { ...orders.session, workspaceArtifactAuthorization: permitted.authorization } : orders.session;
    await port.step('create-session', () =>
      client.createSession(orders.operation(orders.createVerb, clock.now(), 'session'), order, {
        signal: AbortSignal.any([signal, cancelled, lost]),
        timeout: Math.min(sessionWait, deadlineOf(attempt) - clock.now()),
      }),
    );
    return undefined;
  } catch (error) {
    if (await endUnwanted(attempt, port, task)) return settled;
    const atCapacity = error instanceof HarnessError && error.retryable && error.response?.code === 'rate_limited';
    if (atCapacity)
      return { ...(await queuedAgain(attempt, port, 'AtCapacity', 'its instance is at capacity')), session: 'none' };
    return notStarted(attempt, port, error);
  }
}

async function notStarted(attempt: Attempt, port: AttemptPort, error: unknown): Promise<AttemptEnd> {
  const { lost, lastTry, lastDownload, orders } = attempt;
  if (!lost.aborted) port.report(error);
  const gone = port.ended()?.says ?? (lost.aborted ? 'its instance is gone' : undefined);
  const workspace = gone === undefined && orders.source ? workspaceCauseOf(error, orders.source) : undefined;
  const failedDownload = workspace?.isDownload === true;
  const forGood = error instanceof HarnessError && error.response !== undefined && !error.retryable;
  if (!lost.aborted && (forGood || lastTry || (failedDownload && lastDownload))) {
    const { reason = 'RuntimeSessionStartFailed' } = workspace ?? {};
    const message = workspace ? describeFinding(workspace.finding) : (gone ?? causeOf(error));
    await end(attempt, port, { state: 'Failed', reason, message }, beforeSending);
    return settled;
  }
  const because = gone ?? workspace?.finding.says ?? causeOf(error);
  return {
    ...(await queuedAgain(attempt, port, 'RuntimeSessionStartFailed', because)),
    ...(failedDownload ? { failedDownload } : {}),
  };
}

async function queuedAgain(
  { clock }: Attempt,
  port: AttemptPort,
  reason: NonNullable<TaskExecutionStatus['reason']>,
  because: string,
): Promise<AttemptEnd> {
  const message = cutBytes(redacted(because), 1_000, '...<truncated>');
  await port.advance(['SessionStarting'], (stored) =>
    moved(stored, 'Pending', { state: 'Queued', reason, message }, clock.now()),
  );
  return { outcome: 'queued', because };
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
    runtimeSessionGeneration: orders.sessionGeneration,
    runtimeSessionSupervisorBootID: instance.bootID,
    runtimeSessionProfileDigest: thawed.plan.profileDigest,
    runtimeSessionMCPDigest: thawed.plan.profile.mcpConfigurationDigest,
    runtimeSessionWorkspaceDigest: orders.workspaceDigest as `sha256:${string}`,
  } as const;
}

/**
 * `undefined` = the Task is settled already. Sent again only after an answer that says it was refused for now; only the proof that nothing
 * was written, or a refusal by the supervisor itself, says that the prompt was not accepted. Source: dispatch.md §4.5.
 */
async function submit(
  attempt: Attempt,
  port: AttemptPort,
  { limits }: Capabilities,
  submitting: Task,
): Promise<{ readonly stream: PromptStream; readonly leasedAt: number } | undefined> {
  const { orders, client, clock, signal, lost, thawed } = attempt;
  for (let refusals = 0; ; refusals++) {
    const verb = refusals === 0 ? 'start-prompt' : `start-prompt-retry-${refusals}`;
    const leasedAt = clock.elapsed();
    try {
      const stream = await port.step('start-prompt', () =>
        client.prompt(
          orders.operation(verb, clock.now()),
          {
            runtimeSessionID: orders.runtimeSessionID,
            ...orders.lease(1, clock.now()),
            input: { content: [{ type: 'text', text: thawed.prompt }] },
            limits,
          },
          { signal: AbortSignal.any([signal, lost]), timeout: 60_000 },
        ),
      );
      return { stream, leasedAt };
    } catch (error) {
      if (signal.aborted) throw error;
      const answer = error instanceof HarnessError ? error : undefined;
      if (answer?.retryable !== true || answer.response?.code !== 'rate_limited') {
        port.report(error);
        const instance = answer?.response ? port.ended() : await port.endReported();
        await end(attempt, port, notSubmitted(error, instance), ['Submitting']);
        return undefined;
      }
      const message = 'its instance takes no other prompt for now';
      if (refusals === 0)
        await port.advance(['Submitting'], (task) =>
          moved(task, 'Running', { state: 'Submitting', reason: 'AtCapacity', message }, clock.now()),
        );
      await sleep(clock, capacityPause, signal);
      if (await endUnwanted(attempt, port, submitting)) return undefined;
    }
  }
}

function notSubmitted(error: unknown, instance: PodEnd | undefined): Ending {
  const { evidence, response } = error instanceof HarnessError ? error : {};
  // A request that was sent before may have begun.
  const isRefused = response !== undefined && refusing.includes(response.code) && response.classification?.class !== 'duplicate';
  const unsent = evidence === 'zero_bytes_written' || isRefused;
  const message = instance ? `${instance.says}: ${causeOf(error)}` : causeOf(error);
  const why = instance ? { cause: instance.cause } : {};
  return unsent
    ? { state: 'Failed', reason: 'PromptNotAccepted', message, ...why }
    : { state: 'OutcomeUnknown', reason: 'RuntimeLost', message: `whether the prompt ran is not known: ${message}`, ...why };
}
