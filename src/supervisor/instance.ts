/** Everything one supervisor runs: its sessions, what is left of old ones, and whether it takes more. */
import { emptyWorkspaceDigest } from '../domain/digests.js';
import { agentConfigurationDigest, profileDigest } from '../domain/profile.js';
import type { AgentConfiguration } from '../domain/profile.js';
import { fenceMismatch } from '../harness/fence.js';
import type { Fence } from '../harness/fence.js';
import { instant, milliseconds, zeroInstant } from '../lib/instant.js';
import { sessionsFailed } from '../harness/introspection.js';
import type { DrainState, Lifecycle } from '../harness/introspection.js';
import type { MutationMetadata } from '../harness/metadata.js';
import { policyProblem } from '../harness/profile.js';
import type { McpConfiguration } from '../harness/profile.js';
import { protocol } from '../harness/protocol.js';
import { fresh } from '../harness/replay.js';
import type {
  CreateSessionRequest,
  CreateSessionResponse,
  DeleteSessionRequest,
  DeleteSessionResponse,
  SessionState,
  Tombstone,
} from '../harness/sessions.js';
import { equalJson } from '../lib/json.js';
import { checkArchivePath } from '../source/archive-rules.js';
import { artifactId, workspaceMediaType } from '../source/protocol.js';
import { creationRefusal, isNoFaultOfInstance } from './creation-error.js';
import { createJournal } from './journal.js';
import type { Journal } from './journal.js';
import type { Log } from './log.js';
import { poison } from './prompt.js';
import { busy, Refusal, refusalOf } from './refusal.js';
import { closeSession, describeSession, move, newSession, openSession, strip } from './session.js';
import type { Session, SessionHost } from './session.js';

export interface Instance {
  readonly host: SessionHost;
  readonly log: Log;
  /** Operations that concern no session. */
  readonly journal: Journal;
  readonly sessions: ReadonlyMap<string, Session>;
  readonly lifecycle: () => Lifecycle;
  readonly drainState: () => DrainState;
  /** Stops taking sessions and removes those that do nothing. The first reason stays. */
  readonly drain: (reason: string) => void;
  readonly createSession: (request: CreateSessionRequest) => Promise<CreateSessionResponse>;
  readonly deleteSession: (runtimeSessionID: string, request: DeleteSessionRequest) => Promise<DeleteSessionResponse>;
  /** The session of a path, once the fence of a request is known to be its own. */
  readonly find: (runtimeSessionID: string, metadata: MutationMetadata) => Session;
  /** A session that is gone, for as long as it is remembered, if the fence of a request is its own. */
  readonly remembered: (runtimeSessionID: string, metadata: MutationMetadata) => Session | undefined;
  /** Called when a session stopped doing something: removes it if nothing can come of it any more. */
  readonly settle: (session: Session) => void;
  /** Whether a prompt runs, is being ended, or awaits its delta. */
  readonly isSettling: () => boolean;
  /** Ends every running prompt as failed. */
  readonly failPrompts: (code: string, message: string) => void;
  /** Nothing more may happen here: the authority of every session ends. The controller recycles an instance that says it is unhealthy. */
  readonly poisonInstance: (why: string) => void;
  /** Ends every session; `true` = proven that nothing is left. */
  readonly close: () => Promise<boolean>;
}

interface Grave {
  readonly session: Session;
  readonly tombstone: Tombstone;
}

const tombstoneLife = 60 * 60_000;
/** Failures in a row after which an instance takes no more sessions, so that the controller replaces it. */
const mostFailures = 3;
/** States from which a session comes to rest by itself, or by the one request that its controller still owes. */
const settlingStates: readonly SessionState[] = ['prompt_running', 'cancelling', 'validating'];

export function createInstance(host: SessionHost, log: Log): Instance {
  const { config } = host;
  const sessions = new Map<string, Session>();
  const graves = new Map<string, Grave>();
  const journal = createJournal();
  /** Sessions that are being made. */
  const opening = new Set<Promise<unknown>>();
  let closing = false;
  let failures = 0;
  let lifecycle: Lifecycle = 'ready';
  let requested: { readonly at: string; readonly reason: string } | undefined;

  const isAccepting = () => !closing && !requested && lifecycle === 'ready' && hasIdentities();
  const hasIdentities = () => host.identities.capacity().remaining > host.identities.capacity().exhaustionReserve;

  function bury(session: Session): Tombstone {
    for (const [id, { tombstone }] of graves)
      if (milliseconds(tombstone.deletedAt) + tombstoneLife < Date.now()) graves.delete(id);
    const tombstone: Tombstone = {
      runtimeSessionUID: session.fence.runtimeSessionUID ?? '',
      runtimeSessionGeneration: session.fence.runtimeSessionGeneration ?? 0,
      runtimeProfileDigest: session.fence.runtimeProfileDigest,
      deletedAt: instant(Date.now()),
      operations: session.journal.records(),
    };
    strip(session);
    graves.set(session.order.runtimeSessionID, { session, tombstone });
    sessions.delete(session.order.runtimeSessionID);
    return tombstone;
  }

  /** Ends a session; the instance is lost if that cannot be proven. */
  async function remove(session: Session): Promise<boolean> {
    move(session, 'deleting');
    const gone = await closeSession(session).catch((error: unknown) => {
      log.error('session cannot be removed', error, { session: session.order.runtimeSessionID });
      return false;
    });
    if (gone) move(session, 'deleted');
    else poisonInstance('a session could not be removed');
    return gone;
  }

  async function retire(session: Session): Promise<void> {
    if (await remove(session)) bury(session);
    log.info('session removed', { session: session.order.runtimeSessionID });
  }

  function settle(session: Session): void {
    const idle = requested !== undefined && session.state === 'idle';
    if (sessions.has(session.order.runtimeSessionID) && (session.state === 'poisoned' || idle)) void retire(session);
  }

  function drain(reason: string): void {
    if (!requested) {
      requested = { at: instant(Date.now()), reason };
      log.info('drain requested', { reason });
    }
    if (lifecycle === 'ready' || lifecycle === 'booting') lifecycle = reason === 'process_shutdown' ? 'terminating' : 'draining';
    for (const session of [...sessions.values()]) settle(session);
  }

  function poisonInstance(why: string): void {
    log.error('instance poisoned', why);
    lifecycle = 'unhealthy';
    host.proxy.revoke();
  }

  function admit(request: CreateSessionRequest): AgentConfiguration {
    const problem = orderProblem(request, host);
    if (problem) throw problem;
    if (graves.has(request.runtimeSessionID) || sessionOf(request.metadata.fence))
      throw new Refusal('stale_fence', 'this generation of the session was deleted, or exists under another operation');
    if (!isAccepting()) throw busy('the instance takes no new sessions');
    if (sessions.size >= config.limits.maxResidentSessions)
      throw busy(`all ${config.limits.maxResidentSessions} sessions are in use`);
    if (!request.agentConfiguration) throw busy('agentConfiguration is missing');
    return request.agentConfiguration;
  }

  function tracked<T>(work: Promise<T>): Promise<T> {
    opening.add(work);
    const done = () => opening.delete(work);
    work.then(done, done);
    return work;
  }

  function sessionOf({ runtimeSessionUID: uid, runtimeSessionGeneration: generation }: Fence): Session | undefined {
    const all = [...sessions.values(), ...[...graves.values()].map(({ session }) => session)];
    return all.find(({ fence }) => fence.runtimeSessionUID === uid && (fence.runtimeSessionGeneration ?? 0) >= (generation ?? 0));
  }

  async function createSession(request: CreateSessionRequest): Promise<CreateSessionResponse> {
    const { metadata } = request;
    checkPool(metadata.fence, config.fence);
    const known = sessions.get(request.runtimeSessionID) ?? graves.get(request.runtimeSessionID)?.session;
    const before = known?.journal.classify(metadata, known.fence);
    if (known && before && before.class !== 'fresh') {
      if (before.class === 'duplicate' && before.phase === 'applied' && known.state !== 'deleted')
        return { protocol, classification: before, session: { ...describeSession(known), state: 'idle' } };
      throw refusalOf(before);
    }
    const expired = journal.classify(metadata, { ...config.fence });
    if (expired.class === 'expired') throw refusalOf(expired);
    const session = newSession(request, admit(request), config.fence);
    sessions.set(request.runtimeSessionID, session);
    session.journal.put(metadata, 'recorded');
    try {
      await tracked(openSession(session, host, log));
      if (closing) throw new Error('the instance ends');
    } catch (error) {
      const redact = redactOf(session);
      const said = redact(error instanceof Error ? error.message : String(error));
      const stderr = redact(session.stderr?.() ?? '').slice(-2000);
      log.error('session not created', said, { session: request.runtimeSessionID, stderr });
      poison(session);
      if (await remove(session)) bury(session);
      // Another instance would not make it either.
      if (!isNoFaultOfInstance(error) && ++failures >= mostFailures) drain(sessionsFailed);
      throw creationRefusal(error, redact);
    }
    failures = 0;
    move(session, 'idle');
    session.journal.put(metadata, 'applied');
    session.agent?.closed.then(
      () => {
        if (session.state !== 'idle') return;
        poison(session);
        settle(session);
      },
      () => undefined,
    );
    const answer = { protocol, classification: fresh, session: describeSession(session) } as const;
    settle(session);
    return answer;
  }

  function find(id: string, metadata: MutationMetadata): Session {
    const session = sessions.get(id);
    if (!session) throw new Refusal('invalid_request', 'session not found', { status: 404 });
    const mismatch = fenceMismatch(metadata.fence, session.fence, { session: true });
    if (mismatch !== undefined) throw refusalOf({ class: 'stale_fence', fenceMismatch: mismatch });
    return session;
  }

  async function deleteSession(id: string, request: DeleteSessionRequest): Promise<DeleteSessionResponse> {
    const { metadata } = request;
    const grave = graves.get(id);
    if (grave) {
      const repeat = grave.session.journal.classify(metadata, grave.session.fence);
      if (repeat.class === 'duplicate') return { protocol, classification: repeat, state: 'deleted', tombstone: grave.tombstone };
      if (repeat.class !== 'fresh') throw refusalOf(repeat);
    }
    const session = find(id, metadata);
    const relation = session.journal.classify(metadata, session.fence);
    if (relation.class !== 'fresh') throw refusalOf(relation);
    const conflict = (says: string) => new Refusal('already_accepted', says, { status: 409, retryable: true });
    if (session.prompt) {
      session.prompt.cancel('user_requested');
      throw conflict('the session runs a prompt, which is being cancelled');
    }
    if (session.state === 'deleting' || session.state === 'creating' || session.state === 'cancelling')
      throw conflict(`the session is ${session.state}`);
    if (session.state !== 'idle' && session.state !== 'poisoned')
      throw new Refusal('session_poisoned', `the session is ${session.state}`, { status: 409 });
    session.journal.put(metadata, 'recorded');
    if (!(await remove(session))) throw new Refusal('session_poisoned', 'the session cannot be removed');
    session.journal.put(metadata, 'deleted');
    return { protocol, classification: fresh, state: 'deleted', tombstone: bury(session) };
  }

  return {
    host,
    log,
    journal,
    sessions,
    lifecycle: () => lifecycle,
    drainState: () => ({
      acceptingNewSessions: isAccepting(),
      requested: requested !== undefined,
      requestedAt: requested?.at ?? zeroInstant,
      ...(requested ? { reason: requested.reason } : {}),
    }),
    drain,
    createSession,
    deleteSession,
    find,
    remembered: (id, { fence }) => {
      const session = graves.get(id)?.session;
      return session && fenceMismatch(fence, session.fence, { session: true }) === undefined ? session : undefined;
    },
    settle,
    isSettling: () => [...sessions.values()].some(({ state }) => settlingStates.includes(state)),
    failPrompts: (code, message) => {
      for (const { prompt } of sessions.values()) prompt?.fail(code, message);
    },
    poisonInstance,
    close: async () => {
      closing = true;
      host.proxy.revoke();
      for (const session of sessions.values()) poison(session);
      const end = () => Promise.all([...sessions.values()].map((session) => closeSession(session).catch(() => false)));
      await end();
      // What was being made when this began has a process now, or never will.
      await Promise.allSettled(opening);
      const all = await end();
      return all.every((gone) => gone);
    },
  };
}

/** The credential of a route is worth nothing any more, but a log is no place for it. */
function redactOf({ route }: Session): (text: string) => string {
  return route ? route.redact : (text) => text;
}

function checkPool(given: Fence, own: Fence): void {
  const mismatch = fenceMismatch(given, own, { session: false });
  if (mismatch !== undefined) throw refusalOf({ class: 'stale_fence', fenceMismatch: mismatch });
}

/** Why an order can never become a session of this instance. */
function orderProblem(request: CreateSessionRequest, { config }: SessionHost): Refusal | undefined {
  const invalid = (says: string) => new Refusal('invalid_request', says);
  const { profile, agentConfiguration: agent, workspace, mcpConfiguration: mcp } = request;
  if (profileDigest(profile) !== config.profileDigest)
    return refusalOf({ class: 'stale_fence', fenceMismatch: 'runtime_profile' });
  if (agent && (agent.providerKind !== config.profile.providerKind || agent.model !== config.profile.model))
    return invalid('the provider or the model is not that of this instance');
  if (agent && agentConfigurationDigest(agent) !== config.profile.agentConfigurationDigest)
    return invalid('the agentConfiguration does not have the digest in the profile');
  if (!samePolicy(mcp, config.profile)) return invalid('the policies do not have the digests in the profile');
  if (mcp.toolPolicy.tools.some(({ source }) => source !== 'provider_native'))
    return invalid('brokered tools are not available: the MCP broker is not part of this version');
  if (workspace.intent !== config.profile.workspaceIntent)
    return invalid(`workspace intent ${workspace.intent} is not that of the profile, ${config.profile.workspaceIntent}`);
  if (workspace.intent !== 'read')
    return invalid(`workspace intent ${workspace.intent} is not available: publication is not part of this version`);
  if (request.bootstrap || request.bootstrapArtifactAuthorization)
    return invalid('a transcript cannot be used: session reuse is not part of this version');
  const problem = workspace.baseline.artifact ? repositoryProblem(request, config) : emptyProblem(request);
  return problem === undefined ? undefined : invalid(problem);
}

function emptyProblem({
  workspace,
  workspaceArtifactAuthorization,
  metadata: { taskUID = '' },
}: CreateSessionRequest): string | undefined {
  if (workspaceArtifactAuthorization ?? workspace.relativeRoot) return 'a root or an authorization needs an artifact';
  const empty = { repositoryIdentity: `empty:${taskUID}`, revision: 'empty', treeDigest: emptyWorkspaceDigest(taskUID) };
  return equalJson(workspace.baseline, empty) ? undefined : 'the baseline is not the empty workspace of the Task';
}

function repositoryProblem(
  { workspace: { baseline, relativeRoot }, workspaceArtifactAuthorization: authorization }: CreateSessionRequest,
  { artifacts }: SessionHost['config'],
): string | undefined {
  const { artifact, revision, repositoryIdentity } = baseline;
  if (!artifacts) return 'repositories are not available: the instance has no artifact API (ORKA_ACP_ARTIFACT_API_URL)';
  if (!artifact || !authorization) return 'workspaceArtifactAuthorization is missing';
  if (repositoryIdentity.startsWith('empty:') || !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(revision) || /^0+$/.test(revision))
    return 'the baseline has an artifact, and is not a commit of a repository';
  if (artifact.mediaType !== workspaceMediaType) return `the artifact is not of the type ${workspaceMediaType}`;
  if (artifact.artifactID !== artifactId(artifact.digest)) return 'the artifactID is not that of the digest';
  if (artifact.sizeBytes < 1 || artifact.sizeBytes > artifacts.maxBytes)
    return `the artifact has ${artifact.sizeBytes} bytes, allowed are 1 to ${artifacts.maxBytes}`;
  const rootProblem = relativeRoot ? checkArchivePath(Buffer.from(relativeRoot)) : undefined;
  return rootProblem && `relativeRoot: ${rootProblem.says}`;
}

/** Whether a policy is the one that the profile was made of, and its digests follow from it. */
export function samePolicy(
  policy: McpConfiguration,
  digests: Pick<McpConfiguration, 'toolPolicyDigest' | 'approvalPolicyDigest' | 'mcpConfigurationDigest'>,
): boolean {
  const same =
    policy.toolPolicyDigest === digests.toolPolicyDigest &&
    policy.approvalPolicyDigest === digests.approvalPolicyDigest &&
    policy.mcpConfigurationDigest === digests.mcpConfigurationDigest;
  return same && policyProblem(policy) === undefined;
}
