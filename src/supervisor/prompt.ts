/** A running prompt: what the agent says becomes events, and one of four things ends it. */
import type { ServerResponse } from 'node:http';
import type { Json } from '../lib/json.js';
import { instant, milliseconds } from '../lib/instant.js';
import type { Instant } from '../lib/instant.js';
import type { Limits } from '../harness/introspection.js';
import type { Update } from '../harness/events.js';
import { digestOfSettlement } from '../harness/prompts.js';
import type { CancelReason, ContentBlock, Lease, StartPromptRequest } from '../harness/prompts.js';
import { acpVersion } from '../harness/protocol.js';
import { counted, fitBytes } from '../lib/text.js';
import { AcpError, within } from './acp.js';
import type { Agent } from './agent.js';
import { AnswerText } from './answer-text.js';
import { deferred } from './deferred.js';
import { EventWriter } from './event-writer.js';
import { cancelledPermission, permissionAnswer } from './permissions.js';
import { killAll, terminate } from './processes.js';
import {
  cancelled,
  endOfAnswer,
  endOfError,
  failed,
  outcomeUnknown,
  raiseMaxTurns,
  settlementOf,
  tooLarge,
  usageOf,
} from './prompt-end.js';
import type { TerminalBody } from './prompt-end.js';
import type { ProxyRoute } from './provider-proxy.js';
import { Refusal } from './refusal.js';
import { move } from './session.js';
import type { Session, Timing } from './session.js';
import { UpdateQueue } from './update-queue.js';
import { readUpdate } from './updates.js';

export interface PromptRun {
  readonly request: StartPromptRequest;
  readonly startedAt: Instant;
  readonly lease: () => Lease;
  /** Replaces the lease; checked by the caller. */
  readonly renew: (lease: Lease) => void;
  /** Number of the last event. */
  readonly sequence: () => number;
  /** Asks the agent to stop, and ends its processes if it does not. Later calls do nothing. */
  readonly cancel: (reason: CancelReason, graceEnds?: number) => void;
  /** Asks the agent to stop, and says why in the end of the prompt. */
  readonly fail: (code: string, message: string) => void;
  /** Resolves once the session remembers how the prompt ended. */
  readonly settled: Promise<void>;
}

export interface PromptDeps {
  readonly limits: Limits;
  readonly model: string;
  /** The session's agent and route; both exist in an idle session. */
  readonly agent: Agent;
  readonly route: ProxyRoute;
  readonly response: ServerResponse;
  /** Takes secrets out of a text. */
  readonly redact: (text: string) => string;
  /** Told once, after the session's state says how the prompt ended. `proven`: no process is left that could still act. */
  readonly ended: (proven: boolean) => void;
  readonly timing: Timing;
}

/**
 * Sends a prompt to an idle session's agent. Returns at the acceptance boundary: the whole request has reached the agent and the first
 * event has been written. Throws {@link Refusal} if the agent could not be reached, which poisons the session.
 */
export async function startPrompt(session: Session, request: StartPromptRequest, deps: PromptDeps): Promise<PromptRun> {
  const { limits, agent, route, response, redact } = deps;
  const { metadata } = request;
  const content = request.input.content.map((block) => promptBlock(block, agent.literal));
  const startedAt = instant(Date.now());
  const settled = deferred<undefined>();
  const writer = new EventWriter(response, identityOf(session, request), limits);
  const queue = new UpdateQueue(writer, { redact, maxBufferedEvents: limits.maxBufferedEvents });
  let lease = request.lease;
  let accepted = false;
  let over = false;
  let forcing = false;
  /** It is known how the prompt ends. */
  let ending = false;
  let reason: CancelReason | undefined;
  /** Why we ended a prompt ourselves; it wins over what the agent then says. */
  let failure: TerminalBody | undefined;
  const said = new AnswerText();
  let graceTimer: NodeJS.Timeout | undefined;
  let leaseTimer: NodeJS.Timeout | undefined;

  const hasBegun = () => accepted;
  const isOver = () => over;

  function accept(): void {
    if (accepted) return;
    accepted = true;
    session.journal.put(metadata, 'accepted');
    writer.write({ type: 'accepted', payload: { acceptedAt: writer.stamp(), lease, acpVersion } });
  }

  function onUpdate(raw: Json | undefined): void {
    // After a failure nothing is kept of what is still said.
    const update = ending || failure ? undefined : readUpdate(raw, redact);
    if (!update) return;
    accept();
    if (update.kind === 'retry') {
      onRetry();
      return;
    }
    if (update.kind === 'event') {
      if (update.update.kind === 'tool_call') said.complete();
      send(update.update);
      return;
    }
    said.add(update);
    if (said.size > 4 * limits.maxTerminalResultBytes) failWith(tooLarge(resultBytes(limits)));
    else queue.addText(update.text);
  }

  function onRetry(): void {
    if (ending || failure || !said.retry()) return;
    send({
      kind: 'diagnostic',
      diagnostic: { code: 'model_retry', message: 'the model broke off; it is asked again', retryable: true },
    });
  }

  function send(update: Update): void {
    if (!queue.addUpdate(update)) fail('event_buffer_overflow', 'the agent says more than its stream can carry');
  }

  function onOversized(kind: string | undefined): void {
    if (ending || failure) return;
    accept();
    if (kind === 'agent_message_chunk') failWith(tooLarge(resultBytes(limits)));
    else if (kind === undefined) fail('message_too_large', 'the agent says more at once than can be read');
    else
      send({
        kind: 'diagnostic',
        diagnostic: { code: 'update_omitted', message: `a ${fitBytes(kind, 64, '…')} that was too long`, retryable: false },
      });
  }

  function fail(code: string, message: string): void {
    failWith(failed(code, message));
  }

  function failWith(end: TerminalBody): void {
    failure ??= end;
    cancel('user_requested');
  }

  function cancel(why: CancelReason, graceEnds = Infinity): void {
    // How it ends is known; only its reader is not waited for any more.
    if (ending) queue.stop();
    if (ending || reason !== undefined) return;
    reason = why;
    move(session, 'cancelling');
    agent.cancel();
    const grace = Math.max(0, Math.min(deps.timing.cancelGrace, graceEnds - Date.now()));
    graceTimer = setTimeout(() => {
      void force();
    }, grace);
  }

  async function force(): Promise<void> {
    if (forcing) return;
    forcing = true;
    await terminate(agent.owner, 500);
    await conclude(cancelled(reason), true);
  }

  /** The first end counts. Only a prompt that was completed leaves its agent alive; the end of any other proves that nothing is left. */
  async function conclude(natural: TerminalBody, forced = false): Promise<void> {
    if (ending) return;
    ending = true;
    route.disable();
    if (natural.type === 'completed' && reason === undefined && !failure) {
      await queue.drained();
      finish(natural, { proven: true, forced });
      return;
    }
    const proven = await killAll(agent.owner);
    finish(proven ? natural : outcomeUnknown('processes of the session could not be ended', true), { proven, forced });
  }

  function finish(natural: TerminalBody, { proven, forced }: { readonly proven: boolean; readonly forced: boolean }): void {
    if (over) return;
    // Ended before it was accepted: the agent may have seen all of it.
    accept();
    queue.pump();
    queue.stop();
    const end = presentable(failure && natural.type !== 'outcome_unknown' ? failure : natural);
    over = true;
    stopTimers();
    const settledAt = writer.stamp();
    const settlement = settlementOf(end, settledAt);
    session.last = {
      promptID: metadata.promptID ?? '',
      settlement,
      digest: digestOfSettlement(settlement),
      forced,
      ...('code' in end.payload ? { code: end.payload.code } : {}),
    };
    delete session.prompt;
    session.journal.put(metadata, 'settled', end.type);
    if (end.type === 'completed' && session.state === 'prompt_running') move(session, 'validating');
    else poison(session);
    writer.end(end, settledAt);
    settled.resolve(undefined);
    deps.ended(proven);
  }

  /** A result that makes too long a line is too large, and no text of the agent's tells a secret. */
  function presentable(end: TerminalBody): TerminalBody {
    const fitting = writer.fits(end) ? end : tooLarge(resultBytes(limits));
    return fitting.type === 'completed' ? fitting : ({ ...fitting, payload: redacted(fitting.payload, redact) } as TerminalBody);
  }

  function stopTimers(): void {
    for (const timer of [graceTimer, leaseTimer]) clearTimeout(timer);
  }

  function watchLease(): void {
    clearTimeout(leaseTimer);
    leaseTimer = setTimeout(
      () => {
        cancel('lease_expired');
      },
      Math.max(0, milliseconds(lease.expiresAt) - Date.now()),
    );
  }

  const run: PromptRun = {
    request,
    startedAt,
    lease: () => lease,
    renew: (renewed) => {
      lease = renewed;
      watchLease();
    },
    sequence: () => Math.max(1, writer.sequence),
    cancel,
    fail,
    settled: settled.promise,
  };
  move(session, 'prompt_running');
  session.prompt = run;
  session.journal.put(metadata, 'recorded');
  route.enable(() => {
    const { maxTurns } = session.configuration;
    fail('turn_limit', `more than ${counted(maxTurns, 'call')} of the model, as many as maxTurns allows; ${raiseMaxTurns}`);
  }, onRetry);
  const { written, answer } = agent.prompt(content, {
    update: onUpdate,
    oversized: onOversized,
    permission: (params) =>
      over || reason !== undefined ? cancelledPermission : permissionAnswer(session.order.mcpConfiguration.toolPolicy, params),
  });
  try {
    await within(written, Math.min(deps.timing.accept, leftOf(lease)), 'session/prompt');
  } catch (error) {
    if (!hasBegun()) {
      over = true;
      queue.stop();
      stopTimers();
      route.disable();
      delete session.prompt;
      session.journal.forget(metadata.operationID);
      poison(session);
      settled.resolve(undefined);
      deps.ended(true);
      throw new Refusal('session_poisoned', 'the agent could not be given the prompt', { status: 502, retryable: true });
    }
    await conclude(endOfError(error, undefined));
  }
  if (isOver()) return run;
  accept();
  watchLease();
  response.once('close', () => {
    cancel('stream_disconnected');
  });
  // Whoever left before that was heard of by nobody.
  if (response.closed) cancel('stream_disconnected');
  answer.then(
    (value) => {
      const text = redact(said.text);
      const end = endOfAnswer(value, { text, model: deps.model, maxBytes: resultBytes(limits) }, reason);
      // An agent tells of a model that did not answer as if that were the answer.
      const trouble = end.type === 'completed' ? route.trouble() : undefined;
      const told = trouble ? failed(trouble.code, trouble.message) : end;
      // Only the event of a completed prompt has a place for the tokens that it cost.
      const usage = told.type === 'completed' ? {} : usageOf(value);
      if (Object.keys(usage).length > 0) queue.addUpdate({ kind: 'usage', usage });
      void conclude(told);
    },
    (error: unknown) => {
      // An agent that we are ending cannot answer any more; one that ends instead of stopping is proven to have ended. Both are told then.
      const told = error instanceof AcpError && error.code === 'answer';
      if (reason !== undefined && !told) void force();
      else void conclude(endOfError(error, reason));
    },
  );
  return run;
}

/** Milliseconds in which a prompt may be accepted: its reader refuses the acceptance of a lease that has ended. */
function leftOf({ expiresAt }: Lease): number {
  return Math.max(0, milliseconds(expiresAt) - Date.now() - 100);
}

/** The line has other members, and so has the object in which a result is kept; escaping is measured on the line itself. */
function resultBytes({ maxTerminalResultBytes, maxEventLineBytes }: Limits): number {
  return Math.min(maxTerminalResultBytes, maxEventLineBytes) - 4096;
}

/** From wherever a session stands. */
export function poison(session: Session): void {
  if (session.state === 'prompt_running') move(session, 'cancelling');
  if (session.state !== 'deleting' && session.state !== 'deleted') move(session, 'poisoned');
}

function identityOf({ fence }: Session, { metadata }: StartPromptRequest) {
  return {
    runtimeInstanceID: fence.runtimeInstanceID,
    supervisorBootID: fence.supervisorBootID,
    runtimeSessionUID: fence.runtimeSessionUID ?? '',
    runtimeSessionGeneration: fence.runtimeSessionGeneration ?? 0,
    taskUID: metadata.taskUID ?? '',
    taskAttempt: metadata.taskAttempt ?? 0,
    promptID: metadata.promptID ?? '',
    requestDigest: metadata.requestDigest,
  };
}

function promptBlock(block: ContentBlock, literal: (text: string) => string): Json {
  if (block.type === 'text' && block.text !== undefined) return { type: 'text', text: literal(block.text) };
  if (block.type === 'resource_link' && block.uri !== undefined)
    return {
      type: 'resource_link',
      uri: block.uri,
      name: block.name ?? block.uri,
      ...(block.mimeType ? { mimeType: block.mimeType } : {}),
    };
  throw new Refusal('invalid_request', 'only text and resource_link content can be sent: artifacts are not part of this version');
}

/** Every text of an update, without secrets. */
function redacted<T>(value: T, redact: (text: string) => string): T {
  if (typeof value === 'string') return redact(value) as T;
  if (Array.isArray(value)) return value.map((item: unknown) => redacted(item, redact)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, redacted<unknown>(member, redact)])) as T;
}
