import type { Manifest, RuntimePool, RuntimePoolClassSpec } from '../../src/api/index.js';
import { activeInstance } from '../../src/controller/pool/accept.js';
import type { Demand } from '../../src/controller/pool/demand.js';
import { serving } from '../../src/controller/pool/intents.js';
import type { PodView, PoolObservation, Probe } from '../../src/controller/pool/observation.js';
import { podView } from '../../src/controller/pool/pod-view.js';
import { nextStatus } from '../../src/controller/pool/status.js';
import { nameHash } from '../../src/domain/provider-pod.js';
import { resolveFacts } from '../../src/domain/facts.js';
import { finalizers } from '../../src/domain/labels.js';
import type { Digest } from '../../src/domain/digests.js';
import { planTask } from '../../src/domain/plan.js';
import type { Family } from '../../src/domain/plan.js';
import { zeroInstant } from '../../src/lib/instant.js';
import type { Capabilities, Status } from '../../src/harness/introspection.js';
import type { JsonObject } from '../../src/lib/json.js';
import { canonicalJson } from '../../src/lib/canonical-json.js';
import { digestOf } from '../../src/lib/sha256.js';
import { classDigest, compile } from '../../src/render/compile.js';
import { instantiate } from '../../src/render/instantiate.js';
import { renderRuntimePool } from '../../src/render/runtime-pool.js';
import { agent, poolClass, task } from './objects.js';

/** When the observations are made. */
export const now = Date.UTC(2030, 0, 1);
export const ago = (milliseconds: number): string => new Date(now - milliseconds).toISOString().replace(/\.\d+Z$/, 'Z');
const epoch = 7;
const tokenGeneration = '0123456789abcdef';
export const bootID = 'boot-1';

export const classSpec: RuntimePoolClassSpec = poolClass();
const compiled = compile(classSpec);
const digest = classDigest(compiled);

/** A stored pool of one Task, as it was when it had just been made of a class. */
export function storedPool(poolClass = classSpec, digestOfClass = digest, family: Family = 'workspace'): RuntimePool {
  const wanted = task();
  const { execution: _own, ...withoutWorkspace } = wanted.spec;
  const asking = family === 'workspace' ? wanted : { ...wanted, spec: withoutWorkspace };
  const plan = planTask({ task: asking, agent: agent(), poolClass, defaultProvider: '' });
  if ('problem' in plan) throw new Error(JSON.stringify(plan.problem));
  const rendered = renderRuntimePool(plan, { poolClass: { name: 'codex', digest: digestOfClass }, demandedAt: ago(0) });
  const spec = { ...(rendered['spec'] as JsonObject), desiredReplicas: 1, coldStartTimeoutSeconds: 120 };
  const metadata = { ...rendered.metadata, uid: 'pool-uid-1', generation: 1, resourceVersion: '1' };
  return { ...rendered, metadata, spec } as unknown as RuntimePool;
}

const pool = storedPool();
const { profile } = pool.spec.runtime;
const identity = {
  namespace: pool.metadata.namespace ?? '',
  name: pool.metadata.name,
  uid: 'pool-uid-1',
  generation: 1,
  trustNamespace: pool.spec.trustDomain.namespace,
  profile,
};
const facts = resolveFacts(
  identity,
  { controllerEpoch: epoch, tokenGeneration },
  {
    authSecret: { random: 'a'.repeat(24) },
    providerSecret: { random: 'b'.repeat(24) },
    nonce: 'n'.repeat(43),
    publicKey: 'p'.repeat(43),
  },
);
export const rendered = instantiate(compiled, facts, compiled.frozen);

/** An object as the server keeps it. */
export function stored(object: Manifest, uid: string, change: JsonObject = {}): Manifest {
  const metadata = { ...object.metadata, uid, resourceVersion: '10', generation: 1, creationTimestamp: ago(1_000), ...change };
  return { ...object, metadata };
}

const [wantedTemplate, wantedWarmPool] = ['SandboxTemplate', 'SandboxWarmPool'].map((kind) => {
  const found = rendered.workload.find((one) => one.kind === kind);
  if (!found) throw new Error(kind);
  return found;
}) as [Manifest, Manifest];
export const template = stored(wantedTemplate, 'template-uid');
export const warmPool = stored(wantedWarmPool, 'warm-pool-uid');
export const claim = stored(rendered.claim!, 'claim-uid');

/** What the provider makes of a claim, and the node of that. Source: provider.md §3.1. */
export function materialized(
  from: Manifest,
  of: Manifest,
  uids: { readonly sandbox: string; readonly pod: string },
): { readonly sandbox: Manifest; readonly pod: Manifest } {
  const { metadata, spec } = (from['spec'] as JsonObject)['podTemplate'] as {
    metadata: { labels: JsonObject; annotations: JsonObject };
    spec: JsonObject;
  };
  const { name, namespace = '', uid = '' } = of.metadata;
  const own = {
    'agents.x-k8s.io/claim-uid': uid,
    'agents.x-k8s.io/sandbox-template-ref-hash': nameHash(from.metadata.name),
  };
  const owner = (kind: string, owning: string, apiVersion: string) => [
    { apiVersion, kind, name, uid: owning, controller: true, blockOwnerDeletion: true },
  ];
  const labels = { ...metadata.labels, ...own };
  const sandbox = {
    apiVersion: 'agents.x-k8s.io/v1beta1',
    kind: 'Sandbox',
    metadata: {
      name,
      namespace,
      uid: uids.sandbox,
      resourceVersion: '11',
      labels: own,
      annotations: { 'agents.x-k8s.io/sandbox-template-ref': from.metadata.name },
      ownerReferences: owner('SandboxClaim', uid, of.apiVersion),
    },
    spec: { podTemplate: { metadata: { labels, annotations: metadata.annotations }, spec } },
  };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      uid: uids.pod,
      resourceVersion: '12',
      labels: { ...labels, 'agents.x-k8s.io/sandbox-name-hash': nameHash(name) },
      annotations: metadata.annotations,
      ownerReferences: owner('Sandbox', uids.sandbox, 'agents.x-k8s.io/v1beta1'),
    },
    spec,
    status: runningStatus('10.0.0.7'),
  };
  return { sandbox: sandbox, pod: pod as unknown as Manifest };
}

export function runningStatus(podIP: string): JsonObject {
  return {
    phase: 'Running',
    podIP,
    conditions: [{ type: 'Ready', status: 'True' }],
    containerStatuses: [{ name: 'runtime', containerID: 'containerd://1', state: { running: {} } }],
  };
}

const chain = materialized(template, claim, { sandbox: 'sandbox-uid', pod: 'pod-uid' });
export const { sandbox } = chain;
export const pod: PodView = podView(chain.pod);

export const capabilities: Capabilities = {
  protocol: 'orka.harness.v2',
  transport: 'http+ndjson',
  acpVersion: 'acp.v1',
  runtimeProfileDigest: profile.digest as Digest,
  profileDigestSchemaVersion: 1,
  adapterDigests: profile.adapterDigests as Capabilities['adapterDigests'],
  limits: {
    maxResidentSessions: 1,
    maxConcurrentPrompts: 1,
    maxRequestBytes: 2 ** 20,
    maxEventLineBytes: 2 ** 20,
    maxTerminalResultBytes: 2 ** 20,
    maxBufferedEvents: 100,
    maxUpdateEventsPerSecond: 100,
    minPromptLeaseMillis: 5_000,
    maxPromptLeaseMillis: 120_000,
    maxPendingPermissions: 32,
    maxWorkspaceDeltaBytes: 2 ** 20,
  },
  provider: {
    providerKinds: ['codex'],
    models: [profile.model],
    supportsPermissions: true,
    supportsCancel: true,
    supportsTools: true,
  },
  workspaceGovernance: {
    mode: 'strict-governed',
    trusted: false,
    orkaOwnedWorkspaceDeltas: true,
    promptScopedBrokerAuthorization: true,
    noDirectSCMPublication: true,
    orkaOwnedCleanRoomPublication: true,
    exactInstanceFencing: true,
    duplicateSafeMutations: true,
    cancellationSettlement: true,
  },
  supportsDrain: true,
  supportsPublicationFinalization: false,
};

export function statusDocument(of: { readonly uid: string; readonly boot?: string; readonly change?: Partial<Status> }): Status {
  const boot = of.boot ?? bootID;
  return {
    protocol: 'orka.harness.v2',
    fence: {
      runtimeInstanceID: `${of.uid}.${boot}`,
      supervisorBootID: boot,
      controllerEpoch: epoch,
      runtimePoolUID: 'pool-uid-1',
      runtimePoolGeneration: 1,
      runtimeProfileDigest: profile.digest as Digest,
      profileDigestSchemaVersion: 1,
    },
    lifecycle: 'ready',
    drain: { acceptingNewSessions: true, requested: false, requestedAt: zeroInstant },
    sessions: [],
    activePrompts: [],
    pendingPermissions: [],
    pressure: { residentSessions: 0, activePrompts: 0, queuedAdmissions: 0, pendingPermissions: 0, liveDescendants: 0 },
    sessionIdentityCapacity: { total: 10_000, remaining: 10_000, exhaustionReserve: 1 },
    timestamp: ago(0),
    ...of.change,
  };
}

/** An answer of the one instance, made just now. */
export const probed = (change: Partial<Status> = {}, at = now): Exclude<Probe, { readonly error: string }> => ({
  podUid: pod.uid,
  at,
  since: at,
  capabilities,
  status: statusDocument({ uid: pod.uid, change }),
});
export const drainRequested: Partial<Status> = {
  lifecycle: 'draining',
  drain: { acceptingNewSessions: false, requested: true, requestedAt: ago(1_000) },
};

export const templateDigest = digestOf(canonicalJson(template['spec'] ?? null));

/** How far a pool has come. Each has everything of those before it. */
export const stages = [
  'new',
  'protected',
  'readable',
  'credentialed',
  'isolated',
  'templated',
  'recorded',
  'pooled',
  'claimed',
  'materialized',
  'attested',
  'bound',
  'seeded',
  'probed',
  'serving',
] as const;
export type Stage = (typeof stages)[number];

export type Change = (o: PoolObservation) => PoolObservation;

/** A consistent observation of a pool that has come so far, with one thing changed. */
export function observed(stage: Stage, ...changes: readonly Change[]): PoolObservation {
  const reached = (other: Stage) => stages.indexOf(stage) >= stages.indexOf(other);
  const named = { ...pool.metadata, ...(reached('protected') ? { finalizers: [finalizers.pool] } : {}) };
  const base: PoolObservation = {
    pool: { ...pool, metadata: named },
    family: 'workspace',
    ofOneTask: true,
    problem: undefined,
    poolClass: { state: 'ready', name: 'codex', compiled, digest },
    enabled: true,
    missingKinds: [],
    unservedFields: [],
    unreadableKinds: [],
    epoch,
    demand: wantedBy(1),
    idleTtl: 900_000,
    credentials: reached('credentialed')
      ? { state: 'ready', authSecretUid: 'auth-uid', tokenGeneration }
      : { state: reached('readable') ? 'unpublished' : 'unread' },
    rendered: reached('credentialed') ? rendered : undefined,
    isolation: reached('credentialed')
      ? rendered.isolation.map((wanted, index) =>
          reached('isolated')
            ? { wanted, live: stored(wanted, `isolation-${index}`), state: 'whole' }
            : { wanted, live: undefined, state: 'absent' },
        )
      : [],
    template: reached('templated')
      ? { live: template, owned: true, whole: true, specDigest: templateDigest, revision: rendered.templateRevision }
      : undefined,
    warmPool: reached('pooled') ? { live: warmPool, owned: true, whole: true } : undefined,
    claim: reached('claimed')
      ? { live: claim, owned: true, whole: true, deleting: false, verdict: { state: 'open' } }
      : undefined,
    sandbox: reached('materialized') ? sandbox : undefined,
    pods: reached('materialized') ? [pod] : [],
    ended: undefined,
    cordonedNode: undefined,
    orphans: [],
    unguarded: [],
    staleSecrets: [],
    strangers: [],
    remains: [],
    recorded: {
      templateDigest: reached('recorded') ? templateDigest : undefined,
      instance: reached('bound') ? { authSecretUID: 'auth-uid', workloadUID: pod.uid } : undefined,
    },
    known: {
      attested: reached('attested') ? pod.uid : undefined,
      suspect: false,
      mismatch: undefined,
      undecided: undefined,
      seeded: reached('seeded') ? { podUid: pod.uid, containerId: pod.containerId } : undefined,
      seeding: undefined,
      authenticated: reached('credentialed') ? 'ready' : 'unread',
      probe: reached('probed') ? probed() : undefined,
    },
    neighbours: [],
    recycling: { count: 0, at: 0, because: '' },
  };
  return changes.reduce((o, change) => change(o), reached('serving') ? served(base) : base);
}

const pressure = {
  maxResidentSessions: 1,
  maxRunningPrompts: 1,
  residentSessions: 0,
  runningPrompts: 0,
  pendingPermissions: 0,
  liveDescendants: 0,
};

function served(o: PoolObservation): PoolObservation {
  const instance = activeInstance(pod, pod.identity!, probed().status, now);
  return { ...o, pool: { ...o.pool, status: nextStatus(o, serving(instance, pressure, false), now - 60_000) } };
}

/** So many Tasks want the pool, which is on record. */
export const wantedBy = (active: number): Demand => ({ ...unwantedSince(now), active, queued: active });
/** Nobody wants the pool since then, which is on record. */
export function unwantedSince(at: number): Demand {
  return { active: 0, queued: 0, finalizing: 0, lastAt: at, recordedAt: at, seen: false, known: true };
}

/** Changes some members of an observation. */
export const having =
  (change: Partial<PoolObservation>): Change =>
  (o) => ({ ...o, ...change });
export const knowing =
  (change: Partial<PoolObservation['known']>): Change =>
  (o) => ({ ...o, known: { ...o.known, ...change } });
export const recording =
  (change: Partial<PoolObservation['recorded']>): Change =>
  (o) => ({ ...o, recorded: { ...o.recorded, ...change } });
export const withStatus =
  (change: NonNullable<RuntimePool['status']>): Change =>
  (o) => ({ ...o, pool: { ...o.pool, status: { ...o.pool.status, ...change } } });
export const withPod =
  (change: Partial<PodView>): Change =>
  (o) => ({ ...o, pods: [{ ...pod, ...change }] });
export const withClaim =
  (change: Partial<NonNullable<PoolObservation['claim']>>): Change =>
  (o) => ({ ...o, claim: o.claim && { ...o.claim, ...change } });
export const withTemplate =
  (change: Partial<NonNullable<PoolObservation['template']>>): Change =>
  (o) => ({ ...o, template: o.template && { ...o.template, ...change } });

/** A workspace that the Tasks of a Session share. */
export const ofSession: Change = having({ ofOneTask: false });
/** Scaled to zero. */
export const unwanted: Change = (o) => ({ ...o, pool: { ...o.pool, spec: { ...o.pool.spec, desiredReplicas: 0 } } });
export const deleted: Change = (o) => ({
  ...o,
  pool: { ...o.pool, metadata: { ...o.pool.metadata, deletionTimestamp: ago(1_000) } },
});
/** Neither claim nor Sandbox nor Pod. */
export const gone: Change = having({ claim: undefined, sandbox: undefined, pods: [] });
/** Rendered anew, as after a change of generation or epoch. */
export const rerendered: Change = (o) => ({
  ...o,
  rendered: o.rendered && { ...o.rendered, templateRevision: `sha256:${'9'.repeat(64)}` },
});
export const reservedBy = (expiresIn: number): Change =>
  withStatus({
    capacity: {
      reservations: [
        {
          poolUID: 'pool-uid-1',
          taskUID: 'task-uid-1',
          attempt: 1,
          controllerEpoch: epoch,
          runtimeInstanceID: `${pod.uid}.${bootID}`,
          residentSlots: 1,
          promptSlots: 1,
          reservedAt: ago(0),
          expiresAt: new Date(now + expiresIn).toISOString(),
        },
      ],
    },
  });

const plainFacts = ([0, 1] as const).map((replicas) =>
  instantiate(compiled, resolveFacts(identity, { controllerEpoch: epoch, tokenGeneration }, { replicas }), compiled.frozen),
);
const [atZero, atOne] = plainFacts.map(({ workload }) => workload[0]!) as [Manifest, Manifest];
export const plainRendered = { ...plainFacts[0]!, claim: atOne };
const deployment = stored(atZero, 'deployment-uid');
/** Who asked for the Pod of a Deployment knows when. */
export const plainClaim = stored(atOne, 'deployment-uid');

/** The same pool if a Deployment keeps it: no provider, no delivery, nothing to compare. */
export const plain: Change = (o) => ({
  ...o,
  family: 'plain',
  ofOneTask: false,
  rendered: o.rendered && {
    ...plainRendered,
    templateRevision: o.rendered === rendered ? plainRendered.templateRevision : o.rendered.templateRevision,
  },
  template: o.template && {
    ...o.template,
    live: o.claim ? plainClaim : deployment,
    revision: plainRendered.templateRevision,
  },
  warmPool: undefined,
  claim: o.claim && { ...o.claim, live: plainClaim, askedAt: now - 1_000 },
  sandbox: undefined,
  recorded: { templateDigest: undefined, instance: undefined },
  known: {
    ...o.known,
    attested: undefined,
    seeded: undefined,
    seeding: undefined,
    mismatch: undefined,
    undecided: undefined,
    suspect: false,
  },
});
