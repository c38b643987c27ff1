/** How Tasks, pools, claims and Pods changed, and when. */
import type { Manifest, RuntimePool, Task } from '../../../src/api/index.js';
import { cluster, eventually } from './cluster.js';
import type { Installation } from './installation.js';
import { watch } from './watch.js';

/** The members that explain why a Pod does not run. */
export type PodObject = Manifest & {
  readonly status?: {
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason?: string }[];
    readonly containerStatuses?: readonly { readonly state?: { readonly waiting?: { readonly reason?: string } } }[];
  };
};

/** The members that explain why a claim is not ready. */
export type ClaimObject = Manifest & {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly message?: string }[] };
};

type LeaseObject = Manifest & { readonly spec?: { readonly holderIdentity?: string; readonly renewTime?: string } };

interface Kinds {
  readonly tasks: Task;
  readonly pools: RuntimePool;
  readonly claims: ClaimObject;
  readonly pods: PodObject;
  readonly leases: LeaseObject;
}

/** One state of an object. */
export interface Seen<T> {
  /** Milliseconds since 1970, by the clock of the test. */
  readonly at: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: T;
}

export interface History {
  /** All that was seen of a kind, oldest first. */
  readonly of: <K extends keyof Kinds>(kind: K) => readonly Seen<Kinds[K]>[];
  /** Waits for the first state since a moment that is as asked; `undefined` = there was none in time. */
  readonly first: <K extends keyof Kinds>(
    kind: K,
    isIt: (object: Kinds[K]) => boolean,
    options: { readonly since: number; readonly seconds: number },
  ) => Promise<Seen<Kinds[K]> | undefined>;
  readonly stop: () => void;
}

export function startHistory({ namespaces: { tasks, runtime, controller } }: Pick<Installation, 'namespaces'>): History {
  const ours = '/apis/core.orka.ai/v1alpha1/namespaces';
  const paths: Readonly<Record<keyof Kinds, string>> = {
    tasks: `${ours}/${tasks}/tasks`,
    pools: `${ours}/${tasks}/runtimepools`,
    claims: `/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/${runtime}/sandboxclaims`,
    pods: `/api/v1/namespaces/${runtime}/pods`,
    leases: `/apis/coordination.k8s.io/v1/namespaces/${controller}/leases`,
  };
  const seen = new Map<keyof Kinds, Seen<Manifest>[]>();
  const of = <K extends keyof Kinds>(kind: K) => (seen.get(kind) ?? []) as unknown as readonly Seen<Kinds[K]>[];
  const watches = (Object.keys(paths) as (keyof Kinds)[]).map((kind) => {
    const all: Seen<Manifest>[] = [];
    seen.set(kind, all);
    return watch(cluster, paths[kind], (change) => all.push(change));
  });
  return {
    of,
    first: (kind, isIt, { since, seconds }) => {
      const find = () => of(kind).find(({ at, type, object }) => at >= since && type !== 'DELETED' && isIt(object));
      return eventually(kind, () => Promise.resolve(find()), seconds).catch(() => undefined);
    },
    stop: () => {
      for (const one of watches) one.stop();
    },
  };
}
