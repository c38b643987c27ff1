/** Installations side by side, each in namespaces of its own and without a Deployment: their controllers are processes beside the cluster. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Manifest, RuntimePool } from '../../../src/api/index.js';
import type { ControllerSettings } from '../../../src/controller/settings.js';
import type { Family } from '../../../src/domain/plan.js';
import { watchedKinds } from '../../../src/controller/world.js';
import { kubeconfigAccess } from '../../../src/kube/kubeconfig.js';
import { get, refOf } from '../../../src/kube/client.js';
import type { ObjectRef } from '../../../src/kube/client.js';
import { create } from '../../../src/kube/create.js';
import { KubeError } from '../../../src/kube/errors.js';
import type { JsonObject } from '../../../src/lib/json.js';
import { sha256Hex } from '../../../src/lib/sha256.js';
import { readYaml } from '../../../src/render/yaml-read.js';
import { cluster, eventually, kube, kubectl, manager } from './cluster.js';
import { startDoomed } from './doomed.js';
import type { Doomed, Order, Point, Trace } from './doomed.js';
import { applyObjects, example, plainTaskLike, taskLike } from './first-task.js';
import { applyKinds, synthesize } from './installation.js';
import type { Installation, PublisherSettings } from './installation.js';
import { createWanting, poolsOf, wantsPool } from './pools.js';

const idlePoolTtl = 3_000;
const account = 'orka-workspaces-controller';
const wanting = 'wanting';

/** One installation, whose controller is one process after the other. */
export interface Lane {
  readonly installation: Installation;
  /** Everything that its controllers did since the last {@link Lane.forget}, in order. */
  readonly trace: () => readonly Trace[];
  readonly forget: () => void;
  /** The controller that leads; started when there is none. */
  readonly controller: () => Promise<Doomed>;
  /** Ends the controller without a word, and starts another one, which may end at a point. */
  readonly replace: (dies?: Point) => Promise<Doomed>;
  /** Another controller waits until the Lease of the one that leads runs out, and leads. @returns the one that led */
  readonly succeed: () => Promise<Doomed>;
  /** Waits until the controller has ended at a point, and for no other reason. */
  readonly died: (at: Point) => Promise<void>;
  /** A new pool, which somebody wants for as long as it is there. */
  readonly createPool: () => Promise<RuntimePool>;
  /** A Task that asks a model. @param word what it asks it to say @param order what it says before it asks */
  readonly createTask: (word: string, order?: string, family?: Family) => Promise<Manifest>;
  /** Gives the provider proxy another token; its model knows only the first one. */
  readonly rotateToken: () => Promise<void>;
  /** Takes the token away: until it is restored, no pool can start. */
  readonly withholdToken: () => Promise<void>;
  readonly restoreToken: () => Promise<void>;
  /** As instances record which token they were given. */
  readonly tokenGeneration: () => string;
  /** Ends what a scenario that failed left: by itself, or else without its finalizers. */
  readonly clean: () => Promise<void>;
  readonly remove: () => Promise<void>;
}

/** What differs between lanes. */
interface LaneOptions {
  /** Of its controllers, see {@link startDoomed}. */
  readonly group?: number | undefined;
  /** It reads the repositories of these forges. @default - none */
  readonly forges?: PublisherSettings['forges'];
}

/** @param token of the provider proxy, which all lanes share */
export async function createLane(name: string, token: string, { group = 0, forges }: LaneOptions = {}): Promise<Lane> {
  const namespaces = { controller: `${name}-system`, runtime: `${name}-runtimes`, tasks: `${name}-tasks` };
  const publisher = forges && { namespace: `${name}-publisher`, forges, resources: smallPublisher };
  const installation = await synthesize({ gates: true, namespaces, ...(publisher ? { publisher } : {}) });
  await applyKinds(kubectl, installation.dist);
  const objects = await installWithoutDeployment(name, installation, token);
  const poolOf = poolsOf(installation);
  const order = await orderFor(installation, publisher);
  const traces: Trace[] = [];
  let pools = 0;
  let current: Doomed | undefined;

  let shown = token;
  const { name: secretName, key } = installation.poolClass.providerProxy.tokenSecretRef;
  async function setToken(text: string | undefined): Promise<void> {
    const secret = { apiVersion: 'v1', kind: 'Secret', namespace: namespaces.controller, name: secretName };
    await patch(secret, { data: { [key]: text === undefined ? null : Buffer.from(text).toString('base64') } });
    shown = text ?? '';
  }

  async function end(): Promise<void> {
    if (!current) return;
    await current.kill();
    traces.push(...current.trace);
    current = undefined;
  }

  async function replace(dies?: Point): Promise<Doomed> {
    await end();
    await giveLeaseBack(namespaces.controller);
    current = await startDoomed({ ...order, ...(dies ? { dies } : {}) }, group);
    return current;
  }

  async function succeed(): Promise<Doomed> {
    const before = current ?? (await replace());
    current = await startDoomed(order, group);
    return before;
  }

  return {
    installation,
    trace: () => [...traces, ...(current?.trace ?? [])],
    forget: () => {
      traces.length = 0;
      (current?.trace as Trace[] | undefined)?.splice(0);
    },
    controller: async () => (current && !current.hasEnded() ? current : replace()),
    replace,
    succeed,
    died: async ({ effect, phase }) => {
      const doomed = current!;
      const timer = setTimeout(() => void doomed.kill(), 240_000);
      const how = await doomed.ended;
      clearTimeout(timer);
      const last = doomed.trace.findLast((line) => 'effect' in line);
      if (how !== 'SIGKILL' || last?.effect !== effect || last.phase !== phase)
        throw new Error(
          `the controller did not come to ${effect} ${phase}; it ended by ${how} after ${JSON.stringify(doomed.trace.slice(-8))}\n${doomed.log()}`,
        );
    },
    createPool: async () => {
      const pool = poolOf(`${name}-${++pools}`);
      const { tasks: namespace } = namespaces;
      await patch(
        { ...watchedKinds.tasks, namespace, name: wanting },
        { metadata: { labels: { [wantsPool]: pool.metadata.name } } },
      );
      return (await create(kube, pool, { manager })) as unknown as RuntimePool;
    },
    createTask: async (word, order, family = 'workspace') => {
      const name = word.toLowerCase().replaceAll('_', '-');
      const asking = { prompt: [order, `Reply exactly: ${word}`].filter(Boolean).join(' ') };
      const wanted = family === 'workspace' ? taskLike(name, asking) : plainTaskLike(name, asking);
      return create(kube, { ...wanted, metadata: { ...wanted.metadata, namespace: namespaces.tasks } }, { manager });
    },
    rotateToken: () => setToken(randomBytes(32).toString('base64url')),
    withholdToken: () => setToken(undefined),
    restoreToken: () => (shown === token ? Promise.resolve() : setToken(token)),
    tokenGeneration: () => sha256Hex(shown).slice(0, 16),
    clean: async () => {
      if (shown !== token) await setToken(token);
      await replace().catch(() => undefined);
      for (const kind of ['runtimepools.core.orka.ai', 'tasks.core.orka.ai'])
        await kubectl([
          'delete',
          kind,
          '--all',
          '-n',
          namespaces.tasks,
          `--field-selector=metadata.name!=${wanting}`,
          '--timeout=30s',
        ]).catch(() => unhold(namespaces.tasks, wanting));
    },
    remove: async () => {
      await end();
      await unhold(namespaces.tasks);
      const clusterScoped = objects.filter(({ metadata, kind }) => metadata.namespace === undefined && kind !== 'Namespace');
      for (const { kind, metadata } of clusterScoped) await kubectl(['delete', kind, metadata.name, '--ignore-not-found']);
      const all = [...Object.values(namespaces), ...(publisher ? [publisher.namespace] : [])];
      await kubectl(['delete', 'namespaces', '--ignore-not-found', '--timeout=120s', ...all]);
      installation.forget();
    },
  };
}

/** Several fit on one node. */
const smallPublisher = { requests: { cpu: '20m', memory: '64Mi', 'ephemeral-storage': '64Mi' } };

/** Everything but the kinds, which all share, and the Deployment of the controller. What is of the whole cluster gets a name of its own. */
async function installWithoutDeployment(name: string, installation: Installation, token: string): Promise<readonly Manifest[]> {
  const { manifests, namespaces, poolClass, deployment } = installation;
  const objects = manifests
    .filter((manifest) => manifest.kind !== 'CustomResourceDefinition' && manifest !== deployment)
    .map((manifest) => (manifest.kind.startsWith('ClusterRole') ? renamed(manifest, `${account}-${name}`) : manifest));
  const { name: secret, key } = poolClass.providerProxy.tokenSecretRef;
  const { metadata, ...rest } = example.agent;
  await createWanting(kubectl, namespaces.tasks, [wanting]);
  await applyObjects(kubectl, [
    ...objects,
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: secret, namespace: namespaces.controller },
      stringData: { [key]: token },
    },
    { ...rest, metadata: { ...metadata, namespace: namespaces.tasks } },
  ]);
  return objects;
}

function renamed(manifest: Manifest, name: string): Manifest {
  const reference = manifest['roleRef'] as JsonObject | undefined;
  return {
    ...manifest,
    metadata: { ...manifest.metadata, name },
    ...(reference ? { roleRef: { ...reference, name } } : {}),
  };
}

/** What the Deployment would run, with the rights of its account. */
async function orderFor({ namespaces }: Installation, publisher: PublisherSettings | undefined): Promise<Order> {
  const [config] = readYaml(readFileSync(cluster.kubeconfig, 'utf8'), cluster.kubeconfig);
  const admin = kubeconfigAccess(config?.value ?? null, cluster.kubeconfig);
  const { ca = '' } = await admin.credentials();
  const token = await kubectl(['create', 'token', account, '-n', namespaces.controller, '--duration=2h']);
  const settings: ControllerSettings = {
    controllerNamespace: namespaces.controller,
    runtimeNamespace: namespaces.runtime,
    taskNamespaces: [namespaces.tasks],
    apiPort: 8080,
    probePort: 0,
    idlePoolTtl,
    maxTasksPerNamespace: 0,
    taskTtlSeconds: -1,
    defaultProvider: 'agent-sandbox',
    gates: { agentSandbox: true, workspaceDispatch: true },
    forges: (publisher?.forges ?? []).map(({ host, port = 443 }) => (port === 443 ? host : `${host}:${port}`)),
    publisherNamespace: publisher?.namespace ?? '',
    version: 'crashes',
  };
  return {
    settings,
    access: { server: admin.server, ca, token: token.trim() },
    ...(publisher ? { hosts: await hostsOf(publisher) } : {}),
  };
}

/** The Service of a publisher, by name. */
async function hostsOf({ namespace }: PublisherSettings): Promise<Readonly<Record<string, string>>> {
  const address = await kubectl(['get', 'service', 'orka-publisher', '-n', namespace, '-o', 'jsonpath={.spec.clusterIP}']);
  return { [`orka-publisher.${namespace}.svc`]: address };
}

/** What its duration would do a quarter of a minute later. */
async function giveLeaseBack(namespace: string): Promise<void> {
  const lease: ObjectRef = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name: account };
  await patch(lease, { spec: { holderIdentity: null } }).catch(unlessGone);
}

/** Changes some members of whatever is there (RFC 7386). */
export async function patch(ref: ObjectRef, body: JsonObject): Promise<void> {
  await kube.request({ method: 'PATCH', path: await kube.pathOf(ref), contentType: 'application/merge-patch+json', body });
}

/** Lets go of what a failed run left; what is gone meanwhile is not held. */
async function unhold(namespace: string, but = ''): Promise<void> {
  for (const kind of [watchedKinds.tasks, watchedKinds.pools]) {
    const { items } = (await kube.request({ method: 'GET', path: await kube.pathOf({ ...kind, namespace }) })) as unknown as {
      readonly items: readonly Manifest[];
    };
    for (const { name } of items.map(({ metadata }) => metadata))
      if (name !== but) await patch({ ...kind, namespace, name }, { metadata: { finalizers: null } }).catch(unlessGone);
  }
}

function unlessGone(error: unknown): void {
  if (!(error instanceof KubeError) || error.code !== 'not-found') throw error;
}

/** Everything in the runtime namespace that is of one pool, the provider's part included, but for events. */
export async function objectsOf({ installation: { namespaces } }: Lane, poolUid: string): Promise<readonly Manifest[]> {
  const { services, policies, budgets, secrets, templates, warmPools, claims, sandboxes, pods } = watchedKinds;
  const kinds = [services, policies, budgets, secrets, templates, warmPools, claims, sandboxes, pods];
  const lists = await Promise.all(
    kinds.map(async (kind) => {
      const path = await kube.pathOf({ ...kind, namespace: namespaces.runtime });
      const list = (await kube.request({ method: 'GET', path })) as unknown as { readonly items: readonly Manifest[] };
      // The members of a list do not say their kind.
      return list.items.map((item) => ({ ...item, ...kind }));
    }),
  );
  return lists.flat().filter((object) => JSON.stringify(object).includes(poolUid));
}

export const poolNow = async (pool: RuntimePool): Promise<RuntimePool | undefined> =>
  (await get(kube, refOf(pool))) as unknown as RuntimePool | undefined;

export const eventuallyPool = (
  pool: RuntimePool,
  what: string,
  holds: (found: RuntimePool | undefined) => boolean,
  seconds = 240,
): Promise<RuntimePool | 'gone'> =>
  eventually(
    `RuntimePool ${pool.metadata.name} ${what}`,
    async () => {
      const found = await poolNow(pool);
      return holds(found) ? (found ?? 'gone') : undefined;
    },
    seconds,
  );
