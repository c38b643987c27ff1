/** A running prompt: what the agent says becomes events, and one of four things ends it. */
import type { ServerResponse } from 'node:http';
import type { Json } from '../lib/json.js';
import { instant, milliseconds } from '../harness/instant.js';
import type { Instant } from '../harness/instant.js';
import type { Limits } from '../harness/introspection.js';
import { digestOfSettlement } from '../harness/prompts.js';
import type { CancelReason, ContentBlock, Lease, StartPromptRequest } from '../harness/prompts.js';
import { acpVersion } from '../harness/protocol.js';
import { AcpError, within } from './acp.js';
import type { Agent } from './agent.js';
import { deferred } from './deferred.js';
import { createEventWriter } from './event-writer.js';
import type { Update } from '../harness/events.js';
import type { EventBody } from './event-writer.js';
import { cancelledPermission, permissionAnswer } from './permissions.js';
import { killAll, terminate } from './processes.js';
import { endOfAnswer, endOfError, failed, outcomeUnknown, settlementOf, tooLarge } from './prompt-end.js';
import type { TerminalBody } from './prompt-end.js';
import type { ProxyRoute } from './provider-proxy.js';
import { Refusal } from './refusal.js';
import { move } from './session.js';
import type { Session, Timing } from './session.js';
import { readUpdate, withoutContent } from './updates.js';

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

/** Milliseconds in which small pieces of text are joined, and bytes from which a piece goes out at once. */
const joinFor = 25;
const joinUpTo = 8 * 1024;
/** Characters of one event: whatever they are, their line is not too long. */
const mostJoined = 64 * 1024;

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
  const writer = createEventWriter(response, identityOf(session, request), limits);
  let lease = request.lease;
  let accepted = false;
  let over = false;
  let forcing = false;
  let reason: CancelReason | undefined;
  /** Why we ended a prompt ourselves; it wins over what the agent then says. */
  let failure: TerminalBody | undefined;
  let said = '';
  let finalAnswer = '';
  let pending = '';
  let joinTimer: NodeJS.Timeout | undefined;
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

  function send(event: EventBody): void {
    if (over || failure) return;
    const problem = writer.write(event);
    if (problem !== undefined) fail(problem, 'the agent says more than its stream can carry');
  }

  /** What is said beside the answer is left out rather than that it ends a prompt. */
  function sendUpdate(update: Update): void {
    const whole: EventBody = { type: 'update', payload: redacted(update, redact) };
    const event: EventBody = writer.fits(whole) ? whole : { type: 'update', payload: withoutContent(whole.payload) };
    if (writer.fits(event)) send(event);
  }

  function flush(): void {
    clearTimeout(joinTimer);
    joinTimer = undefined;
    const text = pending;
    pending = '';
    for (const part of partsOf(redact(text), mostJoined))
      send({ type: 'update', payload: { kind: 'assistant_message_chunk', assistantMessage: { text: part } } });
  }

  function onUpdate(raw: Json | undefined): void {
    // After a failure nothing is kept of what is still said.
    const update = over || failure ? undefined : readUpdate(raw);
    if (!update) return;
    accept();
    if (update.kind === 'event') {
      flush();
      sendUpdate(update.update);
      return;
    }
    said += update.text;
    if (update.final) finalAnswer += update.text;
    pending += update.text;
    if (said.length > 4 * limits.maxTerminalResultBytes) failWith(tooLarge(resultBytes(limits)));
    else if (pending.length >= joinUpTo) flush();
    else joinTimer ??= setTimeout(flush, joinFor);
  }

  function onOversized(kind: string | undefined): void {
    if (over || failure) return;
    accept();
    if (kind === 'agent_message_chunk') failWith(tooLarge(resultBytes(limits)));
    else if (kind === undefined) fail('message_too_large', 'the agent says more at once than can be read');
    else
      sendUpdate({
        kind: 'diagnostic',
        diagnostic: { code: 'update_omitted', message: `a ${kind} that was too long`, retryable: false },
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
    if (over || reason !== undefined) return;
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
    const proven = await killAll(agent.owner);
    if (proven)
      finish(
        { type: 'cancelled', payload: { stopReason: 'cancelled', ...(reason ? { reason } : {}) } },
        { proven, forced: true },
      );
    else finish(outcomeUnknown('processes of the session could not be ended', true), { proven, forced: true });
  }

  function finish(natural: TerminalBody, { proven, forced }: { readonly proven: boolean; readonly forced: boolean }): void {
    if (over) return;
    // Ended before it was accepted: the agent may have seen all of it.
    accept();
    flush();
    const end = presentable(failure && natural.type !== 'outcome_unknown' ? failure : natural);
    over = true;
    stopTimers();
    route.disable();
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
    for (const timer of [joinTimer, graceTimer, leaseTimer]) clearTimeout(timer);
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
    sequence: () => Math.max(1, writer.sequence()),
    cancel,
    fail,
    settled: settled.promise,
  };
  move(session, 'prompt_running');
  session.prompt = run;
  session.journal.put(metadata, 'recorded');
  route.enable(() => {
    fail('turn_limit', `more than ${session.configuration.maxTurns} calls of the model`);
  });
  const { written, answer } = agent.prompt(content, {
    update: onUpdate,
    oversized: onOversized,
    permission: (params) =>
      over || reason !== undefined ? cancelledPermission : permissionAnswer(session.order.mcpConfiguration.toolPolicy, params),
  });
  try {
    await within(written, deps.timing.accept, 'session/prompt');
  } catch (error) {
    if (!hasBegun()) {
      over = true;
      stopTimers();
      route.disable();
      delete session.prompt;
      session.journal.forget(metadata.operationID);
      poison(session);
      settled.resolve(undefined);
      deps.ended(true);
      throw new Refusal('session_poisoned', 'the agent could not be given the prompt', { status: 502, retryable: true });
    }
    finish(endOfError(error), { proven: true, forced: false });
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
      const text = redact(finalAnswer === '' ? said : finalAnswer);
      const end = endOfAnswer(value, { text, model: deps.model, maxBytes: resultBytes(limits) }, reason);
      // An agent tells of a model that did not answer as if that were the answer.
      const trouble = end.type === 'completed' ? route.trouble() : undefined;
      finish(trouble ? failed(trouble.code, trouble.message) : end, { proven: true, forced: false });
    },
    (error: unknown) => {
      // An agent that we are ending cannot answer any more; one that ends instead of stopping is proven to have ended. Both are told then.
      const told = error instanceof AcpError && error.code === 'answer';
      if (reason !== undefined && !told) void force();
      else finish(endOfError(error), { proven: true, forced: false });
    },
  );
  return run;
}

/** The line has other members, and so has the object in which a result is kept; escaping is measured on the line itself. */
function resultBytes({ maxTerminalResultBytes, maxEventLineBytes }: Limits): number {
  return Math.min(maxTerminalResultBytes, maxEventLineBytes) - 4096;
}

/** A text in parts of at most so many characters, none of them split in the middle of a surrogate pair. */
function partsOf(text: string, most: number): readonly string[] {
  const parts: string[] = [];
  for (let start = 0; start < text.length;) {
    const end = start + most;
    const cut = end < text.length && /[\ud800-\udbff]/.test(text.charAt(end - 1)) ? end - 1 : end;
    parts.push(text.slice(start, cut));
    start = cut;
  }
  return parts;
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
  throw new Refusal('invalid_request', 'text and resource_link content; artifacts are not part of this version');
}

/** Every text of an update, without secrets. */
function redacted<T>(value: T, redact: (text: string) => string): T {
  if (typeof value === 'string') return redact(value) as T;
  if (Array.isArray(value)) return value.map((item: unknown) => redacted(item, redact)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, redacted<unknown>(member, redact)])) as T;
}
