/** One session: a user, a folder, an agent and a route to the model, made together and ended together. */
import path from 'node:path';
import type { Digest } from '../domain/digests.js';
import type { AgentConfiguration } from '../domain/profile.js';
import { sessionFence } from '../harness/fence.js';
import type { Fence } from '../harness/fence.js';
import { instant } from '../lib/instant.js';
import type { Instant } from '../lib/instant.js';
import type { Settlement } from '../harness/prompts.js';
import type { CreateSessionRequest, SessionDescriptor, SessionState } from '../harness/sessions.js';
import { startAgent } from './agent.js';
import type { Agent, AgentReports } from './agent.js';
import type { SupervisorConfig } from './config.js';
import { CreationError } from './creation-error.js';
import type { CreationStage } from '../harness/creation.js';
import type { Identities, SessionIdentity } from './identities.js';
import { createJournal } from './journal.js';
import type { Journal } from './journal.js';
import type { Log } from './log.js';
import { killAll } from './processes.js';
import type { ProcessOwner } from './processes.js';
import type { PromptRun } from './prompt.js';
import type { Provider, ProviderSession } from './provider.js';
import type { ProviderProxy, ProxyRoute } from './provider-proxy.js';
import { createSessionFolder, giveAway, removeSessionFolder, writePrivateFile } from './session-folder.js';
import type { SessionFolder } from './session-folder.js';
import { mayMove } from './session-state.js';
import { fillWorkspace } from './workspace.js';

/** What the sessions of one supervisor share. */
export interface SessionHost {
  readonly config: SupervisorConfig;
  readonly provider: Provider;
  readonly proxy: ProviderProxy;
  readonly identities: Identities;
  /** Agents keep the supervisor's user. Only for tests: nothing then separates sessions. */
  readonly sameUser: boolean;
  readonly timing: Timing;
}

/** Milliseconds that an agent has. Source: dispatch.md §6.4. */
export interface Timing {
  /** For each step of its greeting. */
  readonly initialize: number;
  /** To take a whole prompt. */
  readonly accept: number;
  /** To stop by itself once it is asked to. */
  readonly cancelGrace: number;
}

export const usualTiming: Timing = { initialize: 60_000, accept: 30_000, cancelGrace: 10_000 };

export interface Session {
  readonly order: CreateSessionRequest;
  readonly configuration: AgentConfiguration;
  readonly fence: Fence;
  readonly createdAt: Instant;
  readonly journal: Journal;
  state: SessionState;
  lastTransitionAt: Instant;
  identity?: SessionIdentity;
  folder?: SessionFolder;
  route?: ProxyRoute;
  owner?: ProcessOwner;
  agent?: Agent;
  /** The end of what its agent wrote to stderr. */
  stderr?: () => string;
  /** Its workspace, while that is being filled. */
  filling?: { readonly stop: () => void; readonly done: Promise<unknown> };
  /** Its workspace, while that is compared with what it began with. */
  reading?: { readonly stop: () => void; readonly done: Promise<unknown> };
  /** Its end, while that is under way. */
  closing?: Promise<boolean>;
  /** The end of its processes, while that is under way, and once it is proven: no more of them begin. */
  ending?: Promise<boolean>;
  /** The prompt that runs. */
  prompt?: PromptRun;
  /** How the last prompt ended. */
  last?: {
    readonly promptID: string;
    readonly settlement: Settlement;
    readonly digest: Digest;
    readonly forced: boolean;
    /** What a failure is called. */
    readonly code?: string;
  };
}

export function newSession(order: CreateSessionRequest, configuration: AgentConfiguration, pool: Fence): Session {
  const { runtimeSessionUID = '', runtimeSessionGeneration = 0 } = order.metadata.fence;
  const now = instant(Date.now());
  return {
    order,
    configuration,
    fence: sessionFence(pool, runtimeSessionUID, runtimeSessionGeneration),
    createdAt: now,
    journal: createJournal(),
    state: 'creating',
    lastTransitionAt: now,
  };
}

/** Throws for a step that the states of a session do not know: that would be a mistake of ours. */
export function move(session: Session, to: SessionState): void {
  if (session.state === to) return;
  if (!mayMove(session.state, to)) throw new Error(`a session cannot go from ${session.state} to ${to}`);
  session.state = to;
  session.lastTransitionAt = instant(Date.now());
}

/** Fills a new session until its agent waits for a prompt. Throws {@link CreationError}; what was begun is `closeSession`'s to end. */
export async function openSession(session: Session, host: SessionHost, log: Log): Promise<void> {
  const { order, fence, configuration } = session;
  const { runtimeSessionUID = '', runtimeSessionGeneration = 0 } = fence;
  const { config, provider } = host;
  const folder = await stage('path preparation', () => {
    session.identity = host.identities.next();
    return createSessionFolder(config.sessionBaseDir, runtimeSessionUID, runtimeSessionGeneration);
  });
  session.folder = folder;
  const route = await stage('provider proxy setup', () => {
    const { modelLimits } = config.profile;
    return host.proxy.addRoute({
      model: config.profile.model,
      maxTurns: configuration.maxTurns,
      ...(modelLimits ? { outputLimit: modelLimits.output } : {}),
    });
  });
  session.route = route;
  const about: ProviderSession = {
    configuration,
    toolPolicy: order.mcpConfiguration.toolPolicy,
    intent: order.workspace.intent,
    modelLimits: config.profile.modelLimits,
    home: folder.home,
    proxyUrl: route.url,
    proxyCredential: route.credential,
  };
  await stage('provider home preparation', () => {
    for (const [file, text] of Object.entries(provider.files(about))) writePrivateFile(file, text);
  });
  const identity = host.sameUser ? undefined : session.identity;
  await stage('ownership finalization', () => {
    giveAway(folder.root, identity);
  });
  await stage('workspace materialization', () => fill(session, folder, identity, host, log));
  session.agent = await stage('provider adapter initialization', () =>
    startAgent(
      {
        command: provider.command,
        authMethod: provider.authMethod,
        worker: provider.worker,
        literal: provider.literal,
        cwd: folder.workspace,
        env: { ...environment(folder), ...provider.env(about) },
        identity,
        session: {
          runtimeSessionID: order.runtimeSessionID,
          generation: runtimeSessionGeneration,
          profileDigest: config.profileDigest,
        },
        maxMessage: config.limits.maxRequestBytes,
        initializeTimeout: host.timing.initialize,
        model: configuration.model,
        isModel: provider.isModel,
        redact: route.redact,
        reports: reportsOf(order.runtimeSessionID, log),
      },
      (child) => {
        session.owner = child.owner;
        session.stderr = child.stderr;
      },
    ),
  );
}

/** The end of the session stops it. */
async function fill(
  session: Session,
  folder: SessionFolder,
  identity: SessionIdentity | undefined,
  { config }: SessionHost,
  log: Log,
): Promise<void> {
  const stop = new AbortController();
  const done = fillWorkspace({ order: session.order, folder, identity, signal: stop.signal }, config.artifacts, log);
  session.filling = { stop: () => stop.abort(), done: done.catch(() => undefined) };
  try {
    await done;
  } finally {
    delete session.filling;
  }
}

/** Late updates are logged at 1, 10, 100 and so on, so that a flood costs a few lines. */
function reportsOf(session: string, log: Log): AgentReports {
  return {
    skippedLine: (line) => {
      log.info('line of the agent skipped', { session, line });
    },
    lateUpdate: (count) => {
      if (/^10*$/.test(String(count))) log.info('updates without a prompt dropped', { session, count });
    },
  };
}

/** Ends everything of a session; `true` = proven that no process of it is left, and its files are gone. */
export function closeSession(session: Session): Promise<boolean> {
  // Two ends at once would kill each other's child that removes the files.
  session.closing ??= endAll(session).finally(() => {
    delete session.closing;
  });
  return session.closing;
}

/**
 * Ends every process of a session that takes no more work; `true` = proven. It happens once: a second signal to all processes of the user would
 * end the child that removes the files.
 */
export function endProcesses(session: Session): Promise<boolean> {
  session.ending ??= endAfterReading(session).then(
    (gone) => {
      if (!gone) delete session.ending;
      return gone;
    },
    (error: unknown) => {
      delete session.ending;
      throw error;
    },
  );
  return session.ending;
}

/** Our own reading comes to its end first: both sides would stop each other's children. */
async function endAfterReading({ reading, owner }: Session): Promise<boolean> {
  reading?.stop();
  await reading?.done;
  return owner === undefined || killAll(owner);
}

async function endAll(session: Session): Promise<boolean> {
  const { route, folder, filling } = session;
  route?.remove();
  filling?.stop();
  await filling?.done;
  const gone = await endProcesses(session);
  if (gone && folder) await removeSessionFolder(folder.root);
  return gone;
}

/** Lets go of what only a session that exists needs: a grave is kept for an hour. */
export function strip(session: Session): void {
  for (const member of ['agent', 'stderr', 'route', 'folder'] as const) Reflect.deleteProperty(session, member);
}

export function describeSession({ order, fence, state, agent, createdAt, lastTransitionAt }: Session): SessionDescriptor {
  return {
    runtimeSessionID: order.runtimeSessionID,
    runtimeSessionUID: fence.runtimeSessionUID ?? '',
    generation: fence.runtimeSessionGeneration ?? 0,
    runtimeInstanceID: fence.runtimeInstanceID,
    supervisorBootID: fence.supervisorBootID,
    runtimeProfileDigest: fence.runtimeProfileDigest,
    state,
    providerSessionID: agent?.providerSessionID ?? '',
    workspaceBaseline: order.workspace.baseline,
    createdAt,
    lastTransitionAt,
  };
}

/** The whole environment of an agent; it inherits nothing. */
function environment({ home, tmp, workspace, xdg }: SessionFolder): Record<string, string> {
  return {
    HOME: home,
    TMPDIR: tmp,
    XDG_CONFIG_HOME: path.join(xdg, 'config'),
    XDG_CACHE_HOME: path.join(xdg, 'cache'),
    XDG_DATA_HOME: path.join(xdg, 'data'),
    XDG_STATE_HOME: path.join(xdg, 'state'),
    ORKA_WORKSPACE: workspace,
    PWD: workspace,
    PATH: '/usr/local/bin:/usr/bin:/bin',
  };
}

async function stage<T>(name: CreationStage, step: () => T | Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    throw new CreationError(name, cause);
  }
}
