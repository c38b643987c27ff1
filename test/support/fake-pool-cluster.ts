import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Manifest, RuntimePool, RuntimePoolClassSpec } from '../../src/api/index.js';
import { createClasses } from '../../src/controller/classes.js';
import { PodEnds } from '../../src/controller/pod-ends.js';
import { createPoolReconciler } from '../../src/controller/pool/reconcile.js';
import type { PoolReconciler, PoolSignals } from '../../src/controller/pool/reconcile.js';
import { watchedKinds } from '../../src/controller/world.js';
import type { Watched, WatchedName, World } from '../../src/controller/world.js';
import { labelKeys } from '../../src/domain/labels.js';
import type { Family } from '../../src/domain/plan.js';
import type { Digest } from '../../src/domain/digests.js';
import type { Capabilities, Status } from '../../src/harness/introspection.js';
import type { KubeClient } from '../../src/kube/client.js';
import type { Clock } from '../../src/kube/clock.js';
import type { KubeEvent } from '../../src/kube/events.js';
import { KubeError } from '../../src/kube/errors.js';
import type { KubeErrorCode } from '../../src/kube/errors.js';
import type { KubeRequest } from '../../src/kube/transport.js';
import type { WorkResult } from '../../src/kube/workqueue.js';
import { equalJson, isObject } from '../../src/lib/json.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { classDigest, compile } from '../../src/render/compile.js';
import { foundBy } from './found-by.js';
import { capabilities, classSpec, materialized, now, runningStatus, statusDocument, storedPool } from './pool-observation.js';

/** The token that instances show to the provider's proxy. */
export const providerToken = 'provider-token-0123456789-0123456789';
let clusters = 0;

export interface Sent {
  readonly method: string;
  readonly kind: string;
  readonly name: string;
  readonly body: string;
  /** Nothing is to be stored. */
  readonly dryRun: boolean;
  /** Field manager. */
  readonly manager: string | undefined;
}

/**
 * A pool's surroundings in this process: an API server that knows uids, resourceVersions, generations, finalizers and preconditions; a
 * provider that turns a claim into a Sandbox and a Pod; and the supervisor in that Pod, over real HTTP.
 */
export interface FakePoolCluster {
  readonly sent: readonly Sent[];
  readonly events: readonly KubeEvent[];
  /** Steps of the pool's life that have no event. */
  readonly milestones: readonly string[];
  readonly pool: () => RuntimePool | undefined;
  readonly objects: (kind: string) => readonly Manifest[];
  readonly put: (object: Manifest) => Manifest;
  readonly remove: (kind: string, name: string) => void;
  readonly supervisor: FakeSupervisor;
  /** Kinds that the controller may not list. */
  readonly unreadable: Set<WatchedName>;
  /** Fields that the installed provider does not serve. */
  readonly unserved: string[];
  /** What mutating admission makes of a Pod that is created, be it in a dry run. */
  readonly admission: { mutate: (pod: Manifest) => Manifest };
  /** What the provider does with a claim. */
  readonly provider: FakeProvider;
  readonly clock: Clock;
  /** Next request that matches fails so; `done`: after it was carried out. */
  readonly fail: (matching: (sent: Sent) => boolean, code: KubeErrorCode | 'crash', done?: boolean) => void;
  /** A controller without memory, of this epoch. What `onEffect` throws ends it there. */
  readonly start: (epoch?: number, onEffect?: PoolSignals['effect']) => PoolReconciler;
  /** Reconciles as the queue would until nothing happens any more, or something holds. */
  readonly run: (reconciler: PoolReconciler, until?: () => boolean, most?: number) => Promise<WorkResult>;
  readonly key: string;
  readonly close: () => Promise<void>;
}

interface FakeProvider {
  /** It makes a Sandbox and a Pod. */
  starts: boolean;
  /** Its Ready condition, which it writes on claim and Sandbox; `undefined` = it writes none. */
  ready: { readonly status: 'True' | 'False'; readonly reason: string; readonly message: string } | undefined;
}

interface FakeSupervisor {
  /** Bodies of the deliveries that were taken. */
  readonly seeds: string[];
  /** Each delivery that came, taken or not. */
  readonly deliveries: { readonly podUid: string; readonly body: string }[];
  boot: string;
  seeded: boolean;
  drained: boolean;
  drains: number;
  /** The instance cannot be reached. */
  silent: boolean;
}

/** Compiling takes longer than most tests. */
const digests = new Map<string, Digest>();
function digestWith(change: Partial<RuntimePoolClassSpec>): Digest {
  const key = JSON.stringify(change);
  const digest = digests.get(key) ?? classDigest(compile({ ...classSpec, ...change }));
  digests.set(key, digest);
  return digest;
}

/** @param change what the class of the pool has other than usual */
export async function fakePoolCluster(
  change: Partial<RuntimePoolClassSpec> = {},
  family: Family = 'workspace',
): Promise<FakePoolCluster> {
  const mounted = family === 'plain';
  const spec: RuntimePoolClassSpec = { ...classSpec, ...change };
  const digest = digestWith(change);
  // Another part of the loopback than others use, and another address than the cluster before: who still runs there is not heard here. The port
  // is the supervisor's own.
  const podAddress = `127.83.${process.pid % 250}.${(clusters++ % 250) + 1}`;
  const objects = new Map<string, Manifest>();
  const sent: Sent[] = [];
  const unreadable = new Set<WatchedName>();
  const events: KubeEvent[] = [];
  const milestones: string[] = [];
  const failures: { matching: (one: Sent) => boolean; code: KubeErrorCode | 'crash'; done: boolean }[] = [];
  const admission: FakePoolCluster['admission'] = { mutate: (pod) => pod };
  const unserved: string[] = [];
  const provider: FakeProvider = { starts: true, ready: undefined };
  let version = 100;
  let [uids, at] = [0, now];
  const keyOf = (kind: string, name: string) => `${kind} ${name}`;
  const clock: Clock = {
    now: () => at,
    elapsed: () => at,
    after: (wait, run) => {
      const timer = setTimeout(() => {
        at += wait;
        run();
      });
      return () => clearTimeout(timer);
    },
  };
  const podEnds = new PodEnds();
  const supervisor: FakeSupervisor = {
    seeds: [],
    deliveries: [],
    boot: 'boot-1',
    seeded: mounted,
    drained: false,
    drains: 0,
    silent: false,
  };

  function put(object: Manifest): Manifest {
    const before = objects.get(keyOf(object.kind, object.metadata.name));
    const generation = before?.metadata.generation ?? 0;
    const changed = !before || !equalJson(before['spec'], object['spec']);
    const metadata = {
      ...object.metadata,
      uid: before?.metadata.uid ?? `${object.kind}-${++uids}`,
      resourceVersion: String(++version),
      generation: changed ? generation + 1 : generation,
      creationTimestamp: before?.metadata.creationTimestamp ?? new Date(at).toISOString(),
    };
    const stored = { ...object, metadata } as unknown as Manifest;
    objects.set(keyOf(object.kind, object.metadata.name), stored);
    if (object.kind === 'Pod') podEnds.saw(before, stored);
    return stored;
  }

  function remove(kind: string, name: string): void {
    if (kind === 'Pod') podEnds.saw(objects.get(keyOf(kind, name)), undefined);
    objects.delete(keyOf(kind, name));
  }

  function refuse(code: KubeErrorCode, name: string): never {
    throw new KubeError(code, { at: name, says: `refused: ${code}`, status: 409 });
  }

  function carryOut({ method, kind, name, dryRun }: Sent, body: JsonObject): Manifest {
    const before = objects.get(keyOf(kind, name));
    if (method === 'POST') {
      if (before) refuse('already-exists', name);
      const object = body as unknown as Manifest;
      const admitted = kind === 'Pod' ? admission.mutate(object) : object;
      return dryRun ? admitted : put(admitted);
    }
    if (!before) return refuse('not-found', name);
    if (method === 'GET') return before;
    const wanted = (method === 'DELETE' ? body['preconditions'] : body['metadata']) as JsonObject;
    const stale = (['uid', 'resourceVersion'] as const).some(
      (member) => wanted[member] !== undefined && wanted[member] !== before.metadata[member],
    );
    if (stale) refuse('conflict', name);
    if (method === 'DELETE') {
      const held = Boolean(before.metadata.finalizers?.length) || body['propagationPolicy'] === 'Foreground';
      if (!held) remove(kind, name);
      else
        put({
          ...before,
          metadata: { ...before.metadata, deletionTimestamp: new Date(at).toISOString() },
        });
      return before;
    }
    const after = (method === 'PUT' ? body : merged(before, body)) as Manifest;
    const next = put({ ...after, metadata: { ...before.metadata, ...after.metadata } });
    if (next.metadata.deletionTimestamp !== undefined && !next.metadata.finalizers?.length) remove(kind, name);
    return next;
  }

  const client: KubeClient = {
    pathOf: ({ kind, name = '' }) => Promise.resolve(`/${kind}/${name}`),
    stream: () => {
      throw new Error('nothing is watched here');
    },
    request: async ({ method, path, body, query = {} }: KubeRequest): Promise<JsonObject> => {
      await Promise.resolve();
      const content = (body ?? {}) as JsonObject & { metadata?: { name?: string } };
      const [, kind = '', named = ''] = path.split('/');
      const one: Sent = {
        method,
        kind,
        name: named === '' ? (content.metadata?.name ?? '') : named,
        body: body === undefined ? '' : JSON.stringify(body),
        dryRun: query['dryRun'] === 'All',
        manager: query['fieldManager'] as string | undefined,
      };
      sent.push(one);
      const index = failures.findIndex(({ matching }) => matching(one));
      const [failure] = index < 0 ? [] : failures.splice(index, 1);
      if (failure?.done) carryOut(one, content);
      if (failure?.code === 'crash') throw new Error('the process ends here');
      if (failure) refuse(failure.code, one.name);
      // Answers are copies, as answers over HTTP are.
      return structuredClone(carryOut(one, content));
    },
  };

  function watched(name: WatchedName): Watched {
    const kind = watchedKinds[name];
    const hidden = (object: Manifest): Manifest => {
      const { data: _data, ...rest } = object;
      return name === 'secrets' ? rest : object;
    };
    // What lies in the namespace of the workload is watched by its labels, but for the provider's own Sandboxes.
    const isWatched = ({ metadata: { namespace, labels = {} } }: Manifest) =>
      namespace !== 'orka-system' &&
      (namespace !== 'orka-runtimes' ||
        name === 'sandboxes' ||
        (labels[labelKeys.managedBy] === 'orka' && labelKeys.poolUid in labels));
    const own = () => [...objects.values()].filter((one) => one.kind === kind.kind && isWatched(one));
    return {
      kind,
      get: (key) =>
        own()
          .map(hidden)
          .find(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}` === key),
      list: () => own().map(hidden),
      by: foundBy(name, () => own().map(hidden)),
      wrote: () => undefined,
      removed: () => undefined,
      missing: () => false,
      readable: () => !unreadable.has(name),
    };
  }
  const world = Object.fromEntries((Object.keys(watchedKinds) as WatchedName[]).map((name) => [name, watched(name)])) as World;

  /** What provider and kubelet do meanwhile. */
  function provide(): void {
    if (mounted) {
      deploy();
      return;
    }
    const [claim] = [...objects.values()].filter(({ kind }) => kind === 'SandboxClaim');
    if (!claim?.metadata.labels?.[labelKeys.poolUid]) return;
    const { name } = claim.metadata;
    if (claim.metadata.deletionTimestamp !== undefined) {
      for (const kind of ['Pod', 'Sandbox', 'SandboxClaim']) remove(kind, name);
      Object.assign(supervisor, { seeded: false, drained: false, boot: `${supervisor.boot}+` });
      return;
    }
    for (const kind of ['SandboxClaim', 'Sandbox']) tellReady(kind, name);
    const template = [...objects.values()].find(({ kind }) => kind === 'SandboxTemplate');
    if (!provider.starts || !template || objects.has(keyOf('Pod', name))) return;
    const sandbox = put(materialized(template, claim, { sandbox: '', pod: '' }).sandbox);
    const { pod } = materialized(template, claim, { sandbox: sandbox.metadata.uid ?? '', pod: '' });
    put({ ...admission.mutate(pod), status: runningStatus(podAddress) });
  }

  function tellReady(kind: string, name: string): void {
    const object = objects.get(keyOf(kind, name));
    if (!object || !provider.ready) return;
    const condition = { type: 'Ready', observedGeneration: object.metadata.generation ?? 0, ...provider.ready };
    const status = { conditions: [condition] };
    if (!equalJson(object['status'], status)) put({ ...object, status });
  }

  /** What the controllers of Deployment and ReplicaSet do. */
  function deploy(): void {
    const [deployment] = objectsOf('Deployment');
    const [pod] = objectsOf('Pod');
    const { replicas, template } = (deployment?.['spec'] ?? {}) as { replicas?: number; template?: JsonObject };
    if (deployment && !deployment.metadata.deletionTimestamp) {
      const seen = { observedGeneration: deployment.metadata.generation };
      if (!equalJson(deployment['status'], seen)) put({ ...deployment, status: seen });
    }
    const ends = !deployment || deployment.metadata.deletionTimestamp !== undefined || replicas === 0;
    if (pod && ends) {
      remove('Pod', pod.metadata.name);
      Object.assign(supervisor, { drained: false, boot: `${supervisor.boot}+` });
    }
    if (deployment?.metadata.deletionTimestamp !== undefined) remove('Deployment', deployment.metadata.name);
    if (pod || ends) return;
    Object.assign(supervisor, { drained: false, boot: `${supervisor.boot}+` });
    const { metadata, spec: podSpec } = template as { metadata: Manifest['metadata']; spec: JsonObject };
    const name = `${deployment.metadata.name}-${++uids}`;
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid: 'replicaset-uid', controller: true };
    const made = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, name, namespace: 'orka-runtimes', ownerReferences: [owner] },
    };
    put({ ...made, spec: podSpec, status: runningStatus(podAddress) });
  }

  const server = await serve(podAddress, (request, body, response) => {
    const [pod] = [...objects.values()].filter(({ kind }) => kind === 'Pod');
    if (!pod || supervisor.silent) {
      response.socket?.destroy();
      return;
    }
    const containers = (pod['spec'] as JsonObject)['containers'] as readonly JsonObject[];
    const env = (containers.find(({ name }) => name === 'runtime')?.['env'] ?? []) as readonly {
      name: string;
      value?: string;
    }[];
    const value = (name: string) => Number(env.find((one) => one.name === name)?.value);
    const document = statusDocument({ uid: pod.metadata.uid ?? '', boot: supervisor.boot });
    const status: Status = {
      ...document,
      fence: {
        ...document.fence,
        controllerEpoch: value('ORKA_ACP_CONTROLLER_EPOCH'),
        runtimePoolGeneration: value('ORKA_ACP_RUNTIME_POOL_GENERATION'),
        runtimePoolUID: objectsOf('RuntimePool')[0]?.metadata.uid ?? '',
      },
      ...(supervisor.drained
        ? {
            lifecycle: 'draining' as const,
            drain: { acceptingNewSessions: false, requested: true, requestedAt: new Date(at).toISOString() },
          }
        : {}),
    };
    const answers: Readonly<Record<string, () => readonly [number, Capabilities | Status | JsonObject | undefined]>> = {
      'PUT /v2/credential-bootstrap': () => {
        supervisor.deliveries.push({ podUid: pod.metadata.uid ?? '', body });
        if (supervisor.seeded) return [404, undefined];
        supervisor.seeded = true;
        supervisor.seeds.push(body);
        return [201, undefined];
      },
      'GET /v2/capabilities': () => [supervisor.seeded || mounted ? 200 : 404, capabilities],
      'GET /v2/status': () => [supervisor.seeded || mounted ? 200 : 404, status],
      'PUT /v2/drain': () => {
        supervisor.drained = true;
        supervisor.drains++;
        const drain = { acceptingNewSessions: false, requested: true, requestedAt: new Date(at).toISOString() };
        return [200, { protocol: 'orka.harness.v2', classification: { class: 'fresh' }, drain }];
      },
    };
    const [code, answer] = answers[`${request.method ?? ''} ${request.url ?? ''}`]?.() ?? [404, undefined];
    response.writeHead(code, { 'content-type': 'application/json' }).end(answer && JSON.stringify(answer));
  });

  const objectsOf = (kind: string) => [...objects.values()].filter((one) => one.kind === kind);
  const stored = put(storedPool(spec, digest, family));
  const key = `${stored.metadata.namespace ?? ''}/${stored.metadata.name}`;
  // Somebody wants it.
  put({
    apiVersion: 'core.orka.ai/v1alpha1',
    kind: 'Task',
    metadata: {
      name: 'wanting',
      namespace: stored.metadata.namespace ?? '',
      labels: { [labelKeys.taskPool]: stored.metadata.name },
    },
    status: { execution: { state: 'Queued' } },
  });
  put({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'provider-proxy', namespace: 'orka-system' },
    data: { token: Buffer.from(providerToken).toString('base64') },
  });
  const approved = { ...spec, approvedDigests: [digest] };
  const poolClass = {
    apiVersion: 'core.orka.ai/v1alpha1',
    kind: 'RuntimePoolClass',
    metadata: { name: 'codex', namespace: 'orka-system', uid: 'class-uid', generation: 1 },
    spec: approved as unknown as JsonObject,
  };

  return {
    sent,
    events,
    milestones,
    key,
    clock,
    supervisor,
    unreadable,
    unserved,
    admission,
    provider,
    put,
    remove,
    pool: () => objectsOf('RuntimePool')[0] as unknown as RuntimePool | undefined,
    objects: objectsOf,
    fail: (matching, code, done = false) => failures.push({ matching, code, done }),
    start: (epoch = 7, onEffect = () => undefined) =>
      createPoolReconciler({
        client,
        world,
        classes: createClasses(() => [poolClass]),
        manager: 'controller',
        statusManager: 'status',
        controllerNamespace: 'orka-system',
        runtimeNamespace: 'orka-runtimes',
        endOf: (podUid, containerId) => podEnds.of(podUid, containerId),
        tokenVersion: (name) => objects.get(keyOf('Secret', name))?.metadata.resourceVersion,
        epoch,
        clock,
        enabled: true,
        idleTtl: 900_000,
        fieldGapsOf: () => unserved,
        record: (event) => events.push(event),
        signals: {
          milestone: (_pool, what) => milestones.push(what),
          status: () => undefined,
          effect: onEffect,
          attested: () => undefined,
        },
      }),
    run: async (reconciler, until, most = 60) => {
      for (let round = 0; round < most; round++) {
        const before = version;
        const result = await reconciler.reconcile(key, new AbortController().signal);
        provide();
        if (until?.()) return result;
        // Whatever changed is told; time passes only where nothing else happens.
        if (version !== before) continue;
        if (result === undefined || (until === undefined && result.requeueAfter > 5_000)) return result;
        at += result.requeueAfter;
      }
      throw new Error(`nothing comes to rest: ${JSON.stringify(sent.slice(-6).map(({ method, kind }) => `${method} ${kind}`))}`);
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function serve(
  address: string,
  answer: (request: IncomingMessage, body: string, response: ServerResponse) => void,
): Promise<Server> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => answer(request, Buffer.concat(chunks).toString(), response));
  });
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject);
    server.listen(8080, address, resolve);
  });
  return server;
}

function merged(target: Json | undefined, change: Json | undefined): Json {
  if (!isObject(change)) return change ?? null;
  const result = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [name, value] of Object.entries(change)) {
    if (value === null) result.delete(name);
    else result.set(name, merged(result.get(name), value));
  }
  return Object.fromEntries(result);
}
