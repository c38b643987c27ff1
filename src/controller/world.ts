import type { Manifest, Task } from '../api/index.js';
import { apiVersion, runtimePoolClassKind, runtimePoolKind, taskKind, agentKind } from '../api/index.js';
import { labelKeys } from '../domain/labels.js';
import { isObject } from '../lib/json.js';
import type { KubeClient, ObjectKind } from '../kube/client.js';
import type { IndexFunction } from '../kube/indexer.js';
import { createView } from '../kube/own-writes.js';
import type { View } from '../kube/own-writes.js';
import { startReflector } from '../kube/reflector.js';
import type { Reflector } from '../kube/reflector.js';
import { poolNameOf } from './pool/demand.js';
import type { ControllerSettings } from './settings.js';
import { isBound, isSettled } from './task/observation.js';

/** The objects of one kind wherever we watch it, by `namespace/name`. */
export interface Watched<Index extends string = never> extends Omit<View, 'changed' | 'by'> {
  readonly by: (index: Index, value: string) => readonly Manifest[];
  readonly kind: ObjectKind;
  /** The server does not know the kind. */
  readonly missing: () => boolean;
  /**
   * What there is in a namespace can be known. `false`: the right to list it is missing, and an object that is not here may still be there.
   * @default any namespace
   */
  readonly readable: (namespace?: string) => boolean;
}

const provider = 'extensions.agents.x-k8s.io/v1beta1';

export const watchedKinds = {
  tasks: { apiVersion: apiVersion(taskKind), kind: 'Task' },
  agents: { apiVersion: apiVersion(agentKind), kind: 'Agent' },
  pools: { apiVersion: apiVersion(runtimePoolKind), kind: 'RuntimePool' },
  classes: { apiVersion: apiVersion(runtimePoolClassKind), kind: 'RuntimePoolClass' },
  services: { apiVersion: 'v1', kind: 'Service' },
  policies: { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
  budgets: { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' },
  secrets: { apiVersion: 'v1', kind: 'Secret' },
  deployments: { apiVersion: 'apps/v1', kind: 'Deployment' },
  templates: { apiVersion: provider, kind: 'SandboxTemplate' },
  warmPools: { apiVersion: provider, kind: 'SandboxWarmPool' },
  claims: { apiVersion: provider, kind: 'SandboxClaim' },
  sandboxes: { apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox' },
  pods: { apiVersion: 'v1', kind: 'Pod' },
  cordonedNodes: { apiVersion: 'v1', kind: 'Node' },
} as const satisfies Readonly<Record<string, ObjectKind>>;

export type WatchedName = keyof typeof watchedKinds;
/** What the controller knows of the cluster: every kind that it decides on, a moment ago. */
export type World = { readonly [Name in WatchedName]: Watched<keyof (typeof worldIndexes)[Name] & string> };

const ofPool = { pool: poolOf };
const label =
  (name: string): IndexFunction =>
  ({ metadata }) =>
    metadata.labels?.[name];

/** What the objects of a kind are found by, besides their keys. A look at one pool or Task must cost the same however many others there are. */
export const worldIndexes = {
  tasks: {
    /** Key of the pool that a Task is for. */
    pool: poolOfTask,
    /** Namespace of a Task that is not settled. */
    openIn: (task) => (isSettled(task as unknown as Task) ? undefined : task.metadata.namespace),
    /** Key of the Agent of a Task that is neither bound nor settled. */
    agent: agentOfTask,
  },
  agents: {},
  pools: {},
  classes: {},
  services: ofPool,
  policies: ofPool,
  budgets: ofPool,
  secrets: ofPool,
  deployments: ofPool,
  templates: ofPool,
  warmPools: ofPool,
  claims: ofPool,
  sandboxes: ofPool,
  pods: {
    pool: poolOf,
    poolUid: label(labelKeys.poolUid),
    poolKey: label(labelKeys.poolKey),
    uid: ({ metadata }) => metadata.uid,
    node: nodeOf,
  },
  cordonedNodes: {},
} as const satisfies Readonly<Record<WatchedName, Readonly<Record<string, IndexFunction>>>>;

const inTaskNamespaces: readonly WatchedName[] = ['tasks', 'agents', 'pools'];
/** Kinds of which only what carries our labels is watched. A Sandbox is the provider's own, and a Pod that lost its labels is still a Pod. */
const labelled: readonly WatchedName[] = [
  'services',
  'policies',
  'budgets',
  'secrets',
  'deployments',
  'templates',
  'warmPools',
  'claims',
];
/** What a pool is made of in the runtime namespace. */
export const childKinds: readonly WatchedName[] = [...labelled, 'sandboxes', 'pods'];
/** Without these there are no sandboxes at all. */
export const providerKinds: readonly WatchedName[] = ['templates', 'warmPools', 'claims', 'sandboxes'];

export interface WorldOptions {
  /** Something of a kind came, changed or went. Of nodes that is: was cordoned, or is not any more. */
  readonly onChange: (name: WatchedName, before: Manifest | undefined, after: Manifest | undefined) => void;
  readonly onMissing: (name: WatchedName, missing: boolean) => void;
  /** The objects of a kind can be listed somewhere, or not any more. */
  readonly onReadable: (name: WatchedName, readable: boolean) => void;
  /** The watch of a kind does not come back, or works again: `undefined`. */
  readonly onBroken: (name: WatchedName, error: unknown) => void;
  /** Of the watch of a kind; all of it is tried again. */
  readonly onError: (name: WatchedName, error: unknown) => void;
}

/** Begins to watch. `synced` resolves when everything that may be listed has been listed once. */
export function watchWorld(
  client: KubeClient,
  settings: Pick<ControllerSettings, 'controllerNamespace' | 'runtimeNamespace' | 'taskNamespaces'>,
  options: WorldOptions,
): { readonly world: World; readonly synced: Promise<void>; readonly stop: () => Promise<void> } {
  const reflectors: Reflector[] = [];

  function watch(name: WatchedName): Watched {
    const kind = watchedKinds[name];
    const namespaces = namespacesOf(name, settings);
    /** By namespace; that of a kind without namespaces has none. */
    const views = new Map<string | undefined, View>();
    const started = new Map<string | undefined, Reflector>();
    for (const namespace of namespaces) {
      const view = createView(() => reflector, { indexes: worldIndexes[name] });
      const reflector: Reflector = startReflector(client, {
        ...kind,
        ...(namespace === undefined ? {} : { namespace }),
        ...(name === 'cordonedNodes' ? { fieldSelector: 'spec.unschedulable=true' } : {}),
        ...(labelled.includes(name) ? { labelSelector: `${labelKeys.managedBy}=orka,${labelKeys.poolUid}` } : {}),
        ...keeping[name],
        onChange: (key, before, after) => {
          view.changed(key, before, after);
          options.onChange(name, before, after);
        },
        onMissing: (missing) => options.onMissing(name, missing),
        onReadable: (readable) => options.onReadable(name, readable),
        onError: (error) => options.onError(name, error),
        onBroken: (error) => options.onBroken(name, error),
      });
      views.set(namespace, view);
      started.set(namespace, reflector);
      reflectors.push(reflector);
    }
    const viewOf = (key: string) => views.get(key.includes('/') ? key.slice(0, key.indexOf('/')) : undefined);
    return {
      kind,
      get: (key) => viewOf(key)?.get(key),
      list: () => [...views.values()].flatMap((view) => view.list()),
      by: (index: string, value: string) => [...views.values()].flatMap((view) => view.by(index, value)),
      wrote: (object) => views.get(object.metadata.namespace)?.wrote(object),
      removed: (object) => views.get(object.metadata.namespace)?.removed(object),
      missing: () => [...started.values()].some((reflector) => reflector.missing()),
      readable: (namespace) => {
        const asked = namespace === undefined ? [...started.values()] : [started.get(namespace)];
        return asked.every((reflector) => reflector?.readable() === true);
      },
    };
  }

  const world = Object.fromEntries((Object.keys(watchedKinds) as WatchedName[]).map((name) => [name, watch(name)])) as World;
  return {
    world,
    synced: Promise.all(reflectors.map((reflector) => reflector.synced)).then(() => undefined),
    stop: async () => {
      await Promise.all(reflectors.map((reflector) => reflector.stop()));
    },
  };
}

function namespacesOf(
  name: WatchedName,
  settings: Pick<ControllerSettings, 'controllerNamespace' | 'runtimeNamespace' | 'taskNamespaces'>,
): readonly (string | undefined)[] {
  if (name === 'cordonedNodes') return [undefined];
  if (name === 'classes') return [settings.controllerNamespace];
  return inTaskNamespaces.includes(name) ? settings.taskNamespaces : [settings.runtimeNamespace];
}

/** A Node is a large object of which only the name counts here. */
function nameOnly({ apiVersion, kind, metadata: { name, uid, resourceVersion } }: Manifest): Manifest {
  return {
    apiVersion,
    kind,
    metadata: { name, ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }) },
  };
}

/** Values of Secrets are read when they are needed, and kept nowhere else. */
export function withoutData({ data: _data, stringData: _stringData, ...secret }: Manifest): Manifest {
  const { managedFields: _managedFields, ...metadata } = secret.metadata;
  return { ...secret, metadata };
}

/** Key of the pool that an object in the runtime namespace says it belongs to. A Sandbox says it in the labels of its Pod. */
export function poolOf(object: Manifest): string | undefined {
  const labels = poolLabelsOf(object);
  const [namespace, name] = [labels[labelKeys.poolNamespace], labels[labelKeys.poolName]];
  return namespace !== undefined && name !== undefined ? `${namespace}/${name}` : undefined;
}

/** Keys of the pools that have a Pod on a node. */
export function poolsOn({ pods }: Pick<World, 'pods'>, node: string): readonly string[] {
  return pods.by('node', node).flatMap((pod) => poolOf(pod) ?? []);
}

function poolOfTask(object: Manifest): string | undefined {
  const name = poolNameOf(object);
  return name === undefined ? undefined : `${object.metadata.namespace ?? ''}/${name}`;
}

function agentOfTask(object: Manifest): string | undefined {
  const task = object as unknown as Task;
  const name = task.spec.agentRef?.name;
  return isBound(task) || isSettled(task) || name === undefined ? undefined : `${task.metadata.namespace ?? ''}/${name}`;
}

/** Name of the node that a Pod is placed on. */
export function nodeOf({ spec }: Manifest): string | undefined {
  const name = isObject(spec) ? spec['nodeName'] : undefined;
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** Labels that say which pool an object belongs to. */
export function poolLabelsOf(object: Manifest): Readonly<Record<string, string>> {
  return object.kind === 'Sandbox' ? labelsOfSandbox(object) : (object.metadata.labels ?? {});
}

/** Labels that its Pod gets. */
function labelsOfSandbox({ spec }: Manifest): Readonly<Record<string, string>> {
  const template = isObject(spec) ? spec['podTemplate'] : undefined;
  const metadata = isObject(template) ? template['metadata'] : undefined;
  const labels = isObject(metadata) ? metadata['labels'] : undefined;
  return (isObject(labels) ? labels : {}) as Readonly<Record<string, string>>;
}

/** What is kept of an object, where that is not all of it. */
const keeping: Readonly<Partial<Record<WatchedName, { readonly keep: (object: Manifest) => Manifest }>>> = {
  secrets: { keep: withoutData },
  cordonedNodes: { keep: nameOnly },
};
