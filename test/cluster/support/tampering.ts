/** Pools that somebody tampers with, and what becomes of them. */
import type { Manifest, RuntimePool, RuntimePoolStatus, Task } from '../../../src/api/index.js';
import { labelKeys } from '../../../src/domain/labels.js';
import { baseName, childName, workspaceNames } from '../../../src/domain/names.js';
import type { ObjectRef } from '../../../src/kube/client.js';
import type { Json, JsonObject } from '../../../src/lib/json.js';
import type { Chronicle } from './chronicle.js';
import { eventOf } from './chronicle.js';
import { eventually, kube, kubectl } from './cluster.js';
import { credentialsIn } from './leaks.js';
import { applyObjects, example, poolNameOf, readPool, readTask, taskLike } from './first-task.js';
import { controllerLog } from './installed.js';
import type { Installed } from './installed.js';

const { namespace: taskNamespace = '' } = example.task.metadata;

/** Who tampers: an admin who is not the controller. */
export const somebody = 'somebody-else';

/** Names of what a pool has in the runtime namespace. */
export interface PoolObjects {
  readonly template: ObjectRef;
  readonly warmPool: ObjectRef;
  readonly claim: ObjectRef;
  readonly sandbox: ObjectRef;
  readonly pod: ObjectRef;
  /** By their suffix, as in `deny-all`. */
  readonly policy: (suffix: string) => ObjectRef;
}

const provider = 'extensions.agents.x-k8s.io/v1beta1';

export function objectsOf({ namespaces }: Installed, poolName: string): PoolObjects {
  const base = baseName(taskNamespace, poolName);
  const { templateName, warmPoolName, claimName } = workspaceNames(base);
  const at = (apiVersion: string, kind: string, name: string): ObjectRef => ({
    apiVersion,
    kind,
    name,
    namespace: namespaces.runtime,
  });
  return {
    template: at(provider, 'SandboxTemplate', templateName),
    warmPool: at(provider, 'SandboxWarmPool', warmPoolName),
    claim: at(provider, 'SandboxClaim', claimName),
    sandbox: at('agents.x-k8s.io/v1beta1', 'Sandbox', claimName),
    pod: at('v1', 'Pod', claimName),
    policy: (suffix) => at('networking.k8s.io/v1', 'NetworkPolicy', childName(base, suffix)),
  };
}

/** Changes an object whatever its state is, at once. */
export async function change(ref: ObjectRef, patch: JsonObject): Promise<Manifest> {
  return sent(ref, patch, 'application/merge-patch+json');
}

export async function changeByOperations(ref: ObjectRef, operations: readonly JsonObject[]): Promise<Manifest> {
  return sent(ref, operations, 'application/json-patch+json');
}

async function sent(ref: ObjectRef, body: Json, contentType: string): Promise<Manifest> {
  const query = { fieldManager: somebody };
  return (await kube.request({ method: 'PATCH', path: await kube.pathOf(ref), query, contentType, body })) as Manifest;
}

export async function deleteNow(ref: ObjectRef, propagationPolicy: 'Background' | 'Orphan' = 'Background'): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy };
  await kube.request({ method: 'DELETE', path: await kube.pathOf(ref), body });
}

/** Applies as a manager of its own, as `kubectl apply --server-side --force-conflicts` of a GitOps tool does. */
export async function applyAs(owner: string, manifest: Manifest): Promise<void> {
  await kubectl(['apply', '--server-side', '--force-conflicts', `--field-manager=${owner}`, '-f', '-'], JSON.stringify(manifest));
}

/** What is unique about the instance of a pool. */
export interface Instance {
  readonly claim: string;
  readonly sandbox: string;
  readonly pod: string;
  /** Public half of the bootstrap material that the Pod waits for. */
  readonly nonce: string;
}

/** UIDs and nonce of what stands now. */
export async function instanceOf(objects: PoolObjects): Promise<Instance> {
  const read = async (ref: ObjectRef) => (await kube.request({ method: 'GET', path: await kube.pathOf(ref) })) as Manifest;
  const [claim, sandbox, pod] = await Promise.all([read(objects.claim), read(objects.sandbox), read(objects.pod)]);
  return {
    claim: claim.metadata.uid ?? '',
    sandbox: sandbox.metadata.uid ?? '',
    pod: pod.metadata.uid ?? '',
    nonce: nonceOf(pod),
  };
}

function nonceOf({ spec }: Manifest): string {
  const { containers } = spec as {
    readonly containers: readonly { readonly env?: readonly { readonly name: string; readonly value?: string }[] }[];
  };
  const found = containers.flatMap(({ env = [] }) => env).find(({ name }) => name === 'ORKA_ACP_CREDENTIAL_BOOTSTRAP_NONCE');
  return found?.value ?? '';
}

/** A Task, and the pool that it was given, from the moment it was. */
export interface Demanded {
  readonly task: Task;
  readonly pool: RuntimePool;
  readonly objects: PoolObjects;
}

export async function demand(product: Installed, chronicle: Chronicle, name: string): Promise<Demanded> {
  await applyObjects(kubectl, [taskLike(name)]);
  const task = (await readTask(kubectl, { name, namespace: taskNamespace }))!;
  const pool = await demandedBy(chronicle, task);
  return { task, pool, objects: objectsOf(product, pool.metadata.name) };
}

/** The pool that a Task is bound to. */
export async function demandedBy(chronicle: Chronicle, { metadata }: Task): Promise<RuntimePool> {
  const bound = (await chronicle.first('tasks', ({ object }) => {
    const { status } = object as unknown as Task;
    return object.metadata.uid === metadata.uid && status?.execution?.runtimePoolUID !== undefined;
  })) as unknown as Task;
  const uid = bound.status?.execution?.runtimePoolUID;
  return (await chronicle.first('pools', ({ object }) => object.metadata.uid === uid)) as unknown as RuntimePool;
}

/**
 * What keeps demand for pools whose own Task is over: Tasks that wait for a class which nobody approved. A pool that nobody wants is not
 * started again.
 */
export const waiting = {
  /** A class, and an Agent for it. */
  objects: ({ poolClass, namespaces }: Installed): readonly Manifest[] => [
    {
      apiVersion: 'core.orka.ai/v1alpha1',
      kind: 'RuntimePoolClass',
      metadata: { name: 'never-approved', namespace: namespaces.controller },
      spec: { ...poolClass, providerKind: 'claude', approvedDigests: [`sha256:${'0'.repeat(64)}`] },
    },
    {
      ...example.agent,
      metadata: { name: 'waits-for-a-class', namespace: taskNamespace },
      spec: { ...example.agent.spec, runtime: { ...example.agent.spec.runtime, type: 'claude' } },
    },
  ],
  task: (name: string, pool: { readonly metadata: { readonly name: string } }): Manifest => {
    const task = taskLike(name, { agentRef: { name: 'waits-for-a-class' } });
    return {
      ...task,
      metadata: { ...task.metadata, labels: { [labelKeys.taskPool]: pool.metadata.name } },
    };
  },
};

/**
 * Lets another Task want the pool of a Task that was just applied, so that the pool stays when its own Task is over.
 * @returns what ends that
 */
export async function keepPoolOf(product: Installed, { metadata }: Pick<Task, 'metadata'>): Promise<() => Promise<void>> {
  const wanting = `${metadata.name}-waits`;
  await applyObjects(kubectl, waiting.objects(product));
  await applyObjects(kubectl, [waiting.task(wanting, { metadata: { name: await poolNameOf(kubectl, metadata) } })]);
  return async () => {
    await kubectl(['delete', 'tasks.core.orka.ai', wanting, '-n', taskNamespace, '--timeout=60s']);
    for (const object of waiting.objects(product))
      await kubectl(['delete', object.kind, object.metadata.name, '-n', object.metadata.namespace ?? '']);
  };
}

/** A pool that serves, takes work, and is wanted. */
export interface Serving extends Demanded {
  readonly before: Instance;
}

export async function serve(product: Installed, chronicle: Chronicle, name: string): Promise<Serving> {
  const demanded = await demand(product, chronicle, name);
  const { pool, objects } = demanded;
  await applyObjects(kubectl, [waiting.task(`${name}-waits`, pool)]);
  await chronicle.first(
    'tasks',
    ({ object }) => {
      const { metadata, status } = object as unknown as Task;
      return metadata.name === name && status?.phase === 'Succeeded';
    },
    240,
  );
  await told(chronicle, await takesWork(pool, () => true));
  return { ...demanded, before: await instanceOf(objects) };
}

const podOf = ({ status }: RuntimePool) => status?.activeInstance?.podUID;

/** The pool once it takes work, on an instance that is wanted. */
export const takesWork = (
  { metadata: { name } }: RuntimePool,
  isWanted: (podUid: string) => boolean,
  seconds = 240,
): Promise<RuntimePool> =>
  eventually(
    `RuntimePool ${name} takes work`,
    async () => {
      const pool = await readPool(kubectl, { name, namespace: taskNamespace });
      if (!pool) throw new Error(`RuntimePool ${name} is gone`);
      const { lifecycle, admissionState } = pool.status ?? {};
      const takes = lifecycle === 'Serving' && admissionState === 'Accepting' && isWanted(podOf(pool) ?? '');
      return takes ? pool : undefined;
    },
    seconds,
  );

/** Waits until a version that was read is on record: the watch tells it a moment later. */
export async function told(chronicle: Chronicle, { metadata: { resourceVersion } }: RuntimePool): Promise<void> {
  await chronicle.first('pools', ({ object }) => object.metadata.resourceVersion === resourceVersion).catch(() => undefined);
}

/** Statuses that a pool came to, oldest first. A version that changes something else has the status of before. */
export function statusesOf(chronicle: Chronicle, pool: RuntimePool, since = 0): readonly RuntimePoolStatus[] {
  const all = versionsOf(chronicle, pool).map(({ at, object }) => ({
    at,
    status: (object as unknown as RuntimePool).status ?? {},
  }));
  return all
    .filter(({ status }, index) => JSON.stringify(status) !== JSON.stringify(all[index - 1]?.status))
    .flatMap(({ at, status }) => (at >= since ? [status] : []));
}

const versionsOf = (chronicle: Chronicle, { metadata }: RuntimePool) =>
  chronicle.of('pools').filter(({ object }) => object.metadata.uid === metadata.uid);

/** UIDs of the Pods that credentials were ever meant for: it is on record before they are sent. */
export function boundPods(chronicle: Chronicle, pool: RuntimePool): ReadonlySet<string> {
  const records = versionsOf(chronicle, pool).flatMap(
    ({ object }) => object.metadata.annotations?.['orka.ai/bootstrap-instance-binding'] ?? [],
  );
  return new Set(records.map((text) => (JSON.parse(text) as { readonly workloadUID: string }).workloadUID));
}

/** What was said of a pool, in its status and in events about it. */
function saidOf(chronicle: Chronicle, pool: RuntimePool, since = 0): string {
  const statuses = statusesOf(chronicle, pool, since).map((status) => JSON.stringify(status));
  const events = chronicle
    .of('poolEvents')
    .filter((event) => event.at >= since && eventOf(event).about.uid === pool.metadata.uid)
    .map((event) => eventOf(event).says);
  return [...statuses, ...events].join('\n');
}

/** Every value that a Secret of a pool ever had, by Secret and key; the nonce is public. */
function credentialsSeen(chronicle: Chronicle): ReadonlyMap<string, string> {
  const entries = chronicle.of('secrets').flatMap(({ object }) =>
    Object.entries((object['data'] ?? {}) as Readonly<Record<string, string>>)
      .filter(([key]) => key !== 'bootstrap-nonce')
      .map(([key, value]): [string, string] => [
        `${object.metadata.name}/${key}`,
        Buffer.from(value, 'base64').toString('latin1'),
      ]),
  );
  return new Map(entries);
}

/** Kinds in which there was ever a credential of a pool, and the log of the controller if it has one. */
export async function exposed(product: Installed, chronicle: Chronicle): Promise<readonly string[]> {
  const credentials = credentialsSeen(chronicle);
  if (credentials.size === 0) throw new Error('no credential was ever seen');
  const kinds = ['tasks', 'pools', 'poolEvents', 'events', 'claims', 'templates', 'sandboxes', 'pods'] as const;
  const texts = kinds.map((kind): [string, string] => [kind, JSON.stringify(chronicle.of(kind))]);
  const all = [...texts, ['the log of the controller', await controllerLog(product, -1)] as const];
  for (const [what, text] of all) if (text.length < 1000) throw new Error(`there is nothing to look at of ${what}`);
  return all.flatMap(([what, text]) => (credentialsIn(text, credentials).length > 0 ? [what] : []));
}

/** UIDs of the claims that were made for a pool. */
export function claimsOf(chronicle: Chronicle, pool: RuntimePool): readonly string[] {
  const claims = chronicle
    .of('claims')
    .filter(({ object }) => object.metadata.labels?.[labelKeys.poolUid] === pool.metadata.uid)
    .map(({ object }) => object.metadata.uid ?? '');
  return [...new Set(claims)];
}

/** What became of a pool that served, after something was done to it. */
export interface Recovered extends Serving {
  readonly statuses: readonly RuntimePoolStatus[];
  readonly said: string;
  readonly after: Instance;
}

/** Tampers with a pool and waits until it takes work on another instance. */
export async function recovers(
  chronicle: Chronicle,
  serving: Serving,
  tamper: (serving: Serving) => Promise<unknown>,
): Promise<Recovered> {
  const { pool, before, objects } = serving;
  const since = Date.now();
  await tamper(serving);
  await told(chronicle, await takesWork(pool, (podUid) => podUid !== before.pod));
  return {
    ...serving,
    statuses: statusesOf(chronicle, pool, since),
    said: saidOf(chronicle, pool, since),
    after: await instanceOf(objects),
  };
}

/** Asks for the end of Tasks and pool; does not wait for it. */
export async function dismiss({ task, pool }: Demanded): Promise<void> {
  const { name } = task.metadata;
  const options = ['-n', taskNamespace, '--ignore-not-found', '--wait=false'];
  await kubectl(['delete', 'tasks.core.orka.ai', name, `${name}-waits`, ...options]);
  await kubectl(['delete', 'runtimepools.core.orka.ai', pool.metadata.name, ...options]);
}

/** Does what is asked with at most so many at once, in the order in which it is asked. */
export function limited(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  let busy = 0;
  const queue: (() => void)[] = [];
  const left = () => {
    busy -= 1;
    queue.shift()?.();
  };
  return async (work) => {
    if (busy >= most) await new Promise<void>((resolve) => queue.push(resolve));
    busy += 1;
    try {
      return await work();
    } finally {
      left();
    }
  };
}
