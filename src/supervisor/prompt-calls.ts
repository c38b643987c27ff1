/** Requests about one prompt of one session: start, keep alive, cancel. */
import type { ServerResponse } from 'node:http';
import { leaseProblem } from '../harness/prompts.js';
import type {
  CancelPromptRequest,
  CancelPromptResponse,
  RenewLeaseRequest,
  RenewLeaseResponse,
  StartPromptRequest,
} from '../harness/prompts.js';
import { milliseconds } from '../lib/instant.js';
import { protocol } from '../harness/protocol.js';
import { fresh } from '../harness/replay.js';
import { samePolicy } from './instance.js';
import type { Instance } from './instance.js';
import { processesOf } from './processes.js';
import { poison, startPrompt } from './prompt.js';
import { busy, Refusal, refusalOf } from './refusal.js';
import { endProcesses } from './session.js';
import type { Session } from './session.js';

/** Answers with a stream of events. Throws {@link Refusal} before the first of them. */
export async function beginPrompt(
  instance: Instance,
  id: string,
  request: StartPromptRequest,
  response: ServerResponse,
): Promise<void> {
  const { config } = instance.host;
  const { metadata } = request;
  // Most prompts that do not end well take their session with them; a repeat is to learn how it ended all the same.
  const gone = instance.remembered(id, metadata);
  const before = gone?.journal.classify(metadata, gone.fence);
  if (before && before.class !== 'fresh') throw refusalOf(before);
  const session = instance.find(id, metadata);
  const relation = session.journal.classify(metadata, session.fence);
  if (relation.class !== 'fresh') throw refusalOf(relation);
  const mismatch = foreignAuthorization(request) ?? policyMismatch(session, request);
  if (mismatch) throw mismatch;
  const problem = leaseProblem(request, config.limits, Date.now());
  if (problem !== undefined) throw new Refusal('invalid_request', problem);
  const draining = instance.drainState().requested || instance.lifecycle() !== 'ready';
  if (draining) throw busy('the instance takes no new prompts');
  if (session.state !== 'idle')
    throw new Refusal('already_accepted', `the session is ${session.state}, not idle`, { status: 409 });
  if (session.journal.isFull())
    throw new Refusal('session_poisoned', 'the session has no room for another operation', { status: 409 });
  const running = [...instance.sessions.values()].filter(({ prompt }) => prompt !== undefined).length;
  if (running >= config.limits.maxConcurrentPrompts) throw busy(`${running} prompts run, which is the limit`);
  const { agent, route } = session;
  if (!agent || !route) throw new Refusal('session_poisoned', 'the session has no agent', { status: 409 });
  await startPrompt(session, request, {
    limits: config.limits,
    model: config.profile.model,
    agent,
    route,
    response,
    redact: route.redact,
    timing: instance.host.timing,
    ended: (proven) => {
      instance.log.info('prompt ended', {
        session: id,
        prompt: metadata.promptID ?? '',
        as: session.last?.settlement.terminalEvent ?? 'not accepted',
        ...(session.last?.code === undefined ? {} : { code: session.last.code }),
      });
      if (!proven) instance.poisonInstance('processes of a session could not be ended');
      instance.settle(session);
    },
  });
}

/** The same lease for every repeat; a new one must follow the current. Source: dispatch.md §5.7. */
export async function renewLease(instance: Instance, id: string, request: RenewLeaseRequest): Promise<RenewLeaseResponse> {
  const session = instance.remembered(id, request.metadata) ?? instance.find(id, request.metadata);
  return session.journal.run(request.metadata, session.fence, () => {
    const foreign = foreignAuthorization(request);
    if (foreign) return Promise.reject(foreign);
    const { prompt } = session;
    if (!prompt) return Promise.reject(new Refusal('settled', 'no prompt runs', { status: 410 }));
    if (prompt.request.metadata.promptID !== request.metadata.promptID)
      return Promise.reject(new Refusal('digest_conflict', 'another prompt runs', { status: 409 }));
    const current = prompt.lease();
    const follows =
      request.expectedLeaseGeneration === current.generation &&
      request.lease.generation === current.generation + 1 &&
      milliseconds(request.lease.expiresAt) > milliseconds(current.expiresAt);
    if (!follows)
      return Promise.reject(
        new Refusal('stale_fence', 'the lease does not follow the current one, or does not end later', { status: 409 }),
      );
    const problem = policyMismatch(session, request) ?? leaseRefusal(instance, request);
    if (problem) return Promise.reject(problem);
    prompt.renew(request.lease);
    return Promise.resolve({ protocol, classification: fresh, lease: request.lease } as const);
  });
}

/**
 * Waits until the prompt is settled, at most until the request's own deadline. The first settlement stays, and a repeat has the first
 * answer. Unless the prompt was completed, no process of the session is left by then.
 */
export async function cancelPrompt(instance: Instance, id: string, request: CancelPromptRequest): Promise<CancelPromptResponse> {
  const { metadata } = request;
  const session = instance.remembered(id, metadata) ?? instance.find(id, metadata);
  const cancelled = async (): Promise<CancelPromptResponse> => {
    const { prompt } = session;
    const deadline = milliseconds(request.settlementDeadline);
    if (prompt?.request.metadata.promptID === metadata.promptID) {
      prompt?.cancel(request.reason, deadline - 2_000);
      await Promise.race([prompt?.settled, later(deadline)]);
    }
    const { last } = session;
    if (last?.promptID === metadata.promptID && last?.promptID !== undefined) {
      if (request.reason === 'stream_disconnected') await giveUpValidation(instance, session);
      return settledAnswer(session, last);
    }
    if (prompt) throw new Refusal('outcome_unknown', 'the prompt was not settled in time');
    throw new Refusal('digest_conflict', 'another prompt ran last', { status: 409 });
  };
  return session.journal.run(metadata, session.fence, cancelled, ({ settlement }) => ({
    phase: 'settled',
    terminalEvent: settlement.terminalEvent,
  }));
}

/** Whoever lost the stream did not read how the prompt ended, and will not ask what it changed. A cancel that merely came late changes nothing. */
async function giveUpValidation(instance: Instance, session: Session): Promise<void> {
  if (session.state !== 'validating') return;
  poison(session);
  const ended = await endProcesses(session);
  if (!ended) instance.poisonInstance('processes of a session could not be ended');
  instance.settle(session);
  if (!ended) throw new Refusal('outcome_unknown', 'processes of the session cannot be ended');
}

function settledAnswer(session: Session, { settlement, forced }: NonNullable<Session['last']>): CancelPromptResponse {
  const proven = settlement.outcome !== 'outcome_unknown';
  return {
    protocol,
    classification: fresh,
    barrierState: proven ? (forced ? 'forced_terminated' : 'settled') : 'outcome_unknown',
    settlementProven: proven,
    settlement,
    invalidatedPermissionRequests: 0,
    // What a completed prompt leaves alive is its session, not something that escaped a cancellation.
    liveDescendantCount: proven || session.owner === undefined ? 0 : processesOf(session.owner).length,
    forcedTermination: forced,
  };
}

/** A request that contradicts itself is invalid for every session. */
function foreignAuthorization({
  metadata,
  mcpAuthorization: grant,
}: StartPromptRequest | RenewLeaseRequest): Refusal | undefined {
  const own =
    grant.runtimeSessionUID === metadata.fence.runtimeSessionUID &&
    grant.sessionGeneration === metadata.fence.runtimeSessionGeneration &&
    grant.taskUID === metadata.taskUID &&
    grant.taskAttempt === metadata.taskAttempt &&
    grant.promptID === metadata.promptID;
  return own ? undefined : new Refusal('invalid_request', 'the mcpAuthorization is for another prompt');
}

function policyMismatch(session: Session, { mcpAuthorization }: StartPromptRequest | RenewLeaseRequest): Refusal | undefined {
  return samePolicy(mcpAuthorization, session.order.mcpConfiguration)
    ? undefined
    : new Refusal('stale_fence', 'the authorization does not have the policies of the session');
}

function leaseRefusal(instance: Instance, request: RenewLeaseRequest): Refusal | undefined {
  const problem = leaseProblem(request, instance.host.config.limits, Date.now());
  return problem === undefined ? undefined : new Refusal('invalid_request', problem);
}

/** A timer's longest time is three weeks and a half; no settlement takes as long as a minute. */
function later(at: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(0, at - Date.now()), 60_000)).unref());
}
