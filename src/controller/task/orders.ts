import type { ActiveInstance, RuntimePool, Task } from '../../api/index.js';
import { emptyWorkspaceDigest, promptId, sessionWorkspaceDigest } from '../../domain/digests.js';
import { sessionUid } from '../../domain/names.js';
import type { Repository } from '../../domain/repository/repository.js';
import { downloadOperationId } from '../../domain/source-effects.js';
import type { PreparedSource, ResolvedSource } from '../../domain/source-plan.js';
import type { AskedSource } from '../../domain/source-refusals.js';
import type { Thawed } from '../../domain/thaw.js';
import type { DeltaOrder } from '../../harness/deltas.js';
import { sessionFence } from '../../harness/fence.js';
import type { Fence } from '../../harness/fence.js';
import { instant } from '../../lib/instant.js';
import type { Operation } from '../../harness/metadata.js';
import { mcpConfiguration } from '../../harness/profile.js';
import type { McpConfiguration } from '../../harness/profile.js';
import { profileDigestSchemaVersion } from '../../harness/protocol.js';
import type { Lease, McpAuthorization, Settlement } from '../../harness/prompts.js';
import { digestOfSettlement } from '../../harness/prompts.js';
import type { SessionOrder } from '../../harness/sessions.js';
import type { ArtifactRequest } from '../../source/artifact-capability.js';

/** Milliseconds. Source: dispatch.md §4.4, §12. */
export const leaseLife = 90_000;
export const operationLife = 30_000;
const promptLife = 60_000;
const deltaEntries = 100_000;

/** Who asks, and about which session: all that its end needs. Source: dispatch.md §4.4. */
export interface SessionOrders {
  readonly attempt: number;
  readonly promptID: string;
  readonly sessionUID: string;
  /** From 1; what was tried for the same Task before it has lower ones. */
  readonly sessionGeneration: number;
  readonly runtimeSessionID: string;
  readonly operation: (verb: string, now: number, scope?: 'session' | 'prompt') => Operation;
}

/** The repository of a session: its commit, and the archive of its tree. */
export interface SessionSource {
  readonly asked: AskedSource;
  readonly repository: Repository;
  readonly relativeRoot: string | undefined;
  readonly resolved: ResolvedSource;
  readonly prepared: PreparedSource;
}

/** Everything that one attempt asks of its instance, made of what is frozen. Source: dispatch.md §4.4. */
export interface AttemptOrders extends SessionOrders {
  /** Verb of the operation that begins the session. */
  readonly createVerb: string;
  readonly session: SessionOrder;
  readonly source: SessionSource | undefined;
  /** The one-shot download of the archive into this generation of the session. */
  readonly download: ArtifactRequest | undefined;
  /** Digest of what the session's workspace starts from. */
  readonly workspaceDigest: string;
  readonly mcp: McpConfiguration;
  readonly lease: (generation: number, now: number) => { readonly lease: Lease; readonly mcpAuthorization: McpAuthorization };
  readonly delta: (settlement: Settlement, maxBytes: number) => DeltaOrder;
}

/** Generations: of the pool when the instance was started, and of the session. */
interface Generations {
  readonly pool: number;
  readonly session: number;
}

/** Each Task has a session of its own. */
export function sessionOrdersOf(
  task: Task,
  pool: RuntimePool,
  instance: ActiveInstance,
  generations: Generations,
): SessionOrders {
  const taskUID = task.metadata.uid ?? '';
  const attempt = task.status?.execution?.attempt ?? 1;
  const promptID = promptId(taskUID, attempt);
  const sessionUID = sessionUid(taskUID);
  const fence = sessionFence(fenceOf(pool, instance, generations.pool), sessionUID, generations.session);
  return {
    attempt,
    promptID,
    sessionUID,
    sessionGeneration: generations.session,
    runtimeSessionID: `runtime-${sessionUID}-g${generations.session}`,
    operation: (verb, now, scope = 'prompt') => ({
      fence,
      taskUID,
      taskAttempt: attempt,
      ...(scope === 'prompt' ? { promptID } : {}),
      operationID: `${verb}-${promptID}`,
      expiresAt: instant(now + (verb.startsWith('start-prompt') ? promptLife : operationLife)),
    }),
  };
}

/** The session begins with its repository, or in an empty workspace. The pool is served in its present generation. */
export function ordersOf(
  task: Task,
  pool: RuntimePool,
  instance: ActiveInstance,
  { plan, mcpConfiguration: frozen }: Thawed,
  sessionGeneration = 1,
  source?: SessionSource,
): AttemptOrders {
  const taskUID = task.metadata.uid ?? '';
  const session = sessionOrdersOf(task, pool, instance, { pool: pool.metadata.generation ?? 0, session: sessionGeneration });
  const { attempt, promptID, sessionUID, runtimeSessionID } = session;
  const mcp = mcpConfiguration(frozen, []);
  const baseline = source ? baselineOf(source) : emptyBaseline(taskUID);
  const intent = plan.profile.workspaceIntent;
  return {
    ...session,
    createVerb: sessionGeneration === 1 ? 'create-session' : `create-session-g${sessionGeneration}`,
    mcp,
    session: {
      runtimeSessionID,
      profile: plan.profile as SessionOrder['profile'],
      agentConfiguration: plan.configuration,
      mcpConfiguration: mcp,
      workspace: { intent, baseline, ...(source?.relativeRoot === undefined ? {} : { relativeRoot: source.relativeRoot }) },
    },
    source,
    download: source && downloadOf(task, session, source),
    workspaceDigest: workspaceDigestOf(intent, source),
    lease: (generation, now) => {
      const lease = { generation, issuedAt: instant(now), expiresAt: instant(now + leaseLife) };
      const mcpAuthorization = {
        runtimeSessionUID: sessionUID,
        sessionGeneration,
        taskUID,
        taskAttempt: attempt,
        promptID,
        leaseGeneration: generation,
        ...mcp,
        expiresAt: lease.expiresAt,
      };
      return { lease, mcpAuthorization };
    },
    delta: (settlement, maxBytes) => ({
      deltaID: `delta-${promptID}`,
      intent,
      verifiedBaseline: baseline,
      promptSettlementDigest: digestOfSettlement(settlement),
      limits: { maxBytes, maxEntries: deltaEntries },
    }),
  };
}

function emptyBaseline(taskUID: string): SessionOrder['workspace']['baseline'] {
  return { repositoryIdentity: `empty:${taskUID}`, revision: 'empty', treeDigest: emptyWorkspaceDigest(taskUID) };
}

/** Source: repository.md §2.3. */
function baselineOf({ repository, resolved, prepared }: SessionSource): SessionOrder['workspace']['baseline'] {
  return {
    repositoryIdentity: repository.id,
    revision: resolved.baselineOID,
    treeDigest: prepared.manifestDigest,
    artifact: prepared.artifact,
  };
}

function workspaceDigestOf(intent: string, source: SessionSource | undefined): string {
  if (!source)
    return sessionWorkspaceDigest({
      intent,
      relativeRoot: '',
      repositoryIdentity: 'empty',
      revision: 'empty',
      sourceRef: '',
      treeDigest: '',
    });
  return sessionWorkspaceDigest({
    intent,
    relativeRoot: source.relativeRoot ?? '',
    repositoryIdentity: source.repository.id,
    revision: source.resolved.baselineOID,
    sourceRef: source.resolved.sourceRef,
    treeDigest: source.prepared.manifestDigest,
  });
}

function downloadOf(
  { metadata }: Task,
  { promptID, attempt, sessionGeneration }: SessionOrders,
  { prepared: { artifact } }: SessionSource,
): ArtifactRequest {
  return {
    operation: 'download',
    objectDigest: artifact.digest,
    identity: { namespace: metadata.namespace ?? '', taskID: metadata.uid ?? '' },
    contentLength: artifact.sizeBytes,
    mediaType: artifact.mediaType,
    operationID: downloadOperationId(promptID, attempt, sessionGeneration),
  };
}

/** Source: dispatch.md §5.4. */
function fenceOf(pool: RuntimePool, instance: ActiveInstance, generation: number): Fence {
  return {
    runtimeInstanceID: instance.runtimeInstanceID,
    supervisorBootID: instance.bootID,
    controllerEpoch: instance.controllerEpoch,
    runtimePoolUID: pool.metadata.uid ?? '',
    runtimePoolGeneration: generation,
    runtimeProfileDigest: instance.profileDigest as Fence['runtimeProfileDigest'],
    profileDigestSchemaVersion,
  };
}
