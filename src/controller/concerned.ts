import type { Manifest, RuntimePool, RuntimePoolClass, Task } from '../api/index.js';
import { compareWaiting, waitingOf } from '../domain/queue-order.js';
import { keyOf } from '../kube/store.js';
import { poolNameOf } from './pool/demand.js';
import { isBound, isSettled } from './task/observation.js';
import { poolOf } from './world.js';
import type { WatchedName } from './world.js';

/** An object of a kind came, went, or was changed. */
export interface WatchedChange {
  readonly name: WatchedName;
  readonly before: Manifest | undefined;
  readonly after: Manifest | undefined;
}

/** What there is, asked only by changes that concern many. */
export interface Concerning {
  readonly tasks: () => readonly Task[];
  /** Tasks by the key of their pool, or of the Agent that they wait to be bound to. */
  readonly tasksBy: (index: 'pool' | 'agent', key: string) => readonly Task[];
  readonly pools: () => readonly RuntimePool[];
  /** Keys of the pools that have a Pod on a node. */
  readonly poolsOn: (node: string) => readonly string[];
  /** Keys of the Tasks that may go on now in the namespace of one whose place is free, the first of the queue first. */
  readonly nextPlaces: (task: Pick<Task, 'metadata'>) => readonly string[];
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Keys of what must be decided on again, Tasks in the order of their queue. */
export interface Concerned {
  readonly tasks: readonly string[];
  readonly pools: readonly string[];
  readonly classes: readonly string[];
}

/** Who must look at a change: whom the object belongs to now, and whom it belonged to, since its labels may be what was changed. */
export function concernedBy({ name, before, after }: WatchedChange, known: Concerning): Concerned {
  const both = [before, after].flatMap((object) => object ?? []);
  switch (name) {
    case 'tasks':
      return ofTask(before as Task | undefined, after as Task | undefined, known);
    case 'agents':
      return of({
        tasks: both.flatMap((agent) => known.tasksBy('agent', keyOf(agent))).map(keyOf),
      });
    case 'classes':
      return ofClass(both as unknown as readonly RuntimePoolClass[], known);
    case 'pools':
      return of({ tasks: both.slice(-1).flatMap((pool) => tasksOf(pool, known)), pools: both.map(keyOf) });
    case 'cordonedNodes':
      return of({ pools: both.flatMap(({ metadata }) => known.poolsOn(metadata.name)) });
    default:
      return of({ pools: both.flatMap((object) => poolOf(object) ?? []) });
  }
}

function of({ tasks = [], pools = [], classes = [] }: Partial<Concerned>): Concerned {
  return { tasks: [...new Set(tasks)], pools: [...new Set(pools)], classes: [...new Set(classes)] };
}

/** Itself, its pool, and who waits for the place that it gave up. */
function ofTask(before: Task | undefined, after: Task | undefined, { nextPlaces }: Concerning): Concerned {
  const both = [before, after].flatMap((task) => task ?? []);
  const frees = before && !isSettled(before) && (!after || isSettled(after));
  return of({
    tasks: [...both.map(keyOf), ...(frees ? nextPlaces(before) : [])],
    pools: both.flatMap((task) => {
      const name = poolNameOf(task);
      return name === undefined ? [] : [`${task.metadata.namespace ?? ''}/${name}`];
    }),
  });
}

/** What runs with its kind, and every Task that may come to. */
function ofClass(both: readonly RuntimePoolClass[], { tasks, pools }: Concerning): Concerned {
  const isOf = (kind: string | undefined) => both.some(({ spec }) => spec.providerKind === kind);
  const open = tasks().filter(
    (task) => !isSettled(task) && (!isBound(task) || isOf(task.status?.agentExecutionBinding?.runtimeType)),
  );
  return of({
    tasks: open.map(keyOf),
    pools: pools()
      .filter(({ spec }) => isOf(spec.runtime.profile.providerKind))
      .map(keyOf),
    classes: both.map(keyOf),
  });
}

/** Tasks of a pool that something is still to be done for: a slot, or an instance to ask, may be there by now. */
function tasksOf(pool: Manifest, { tasksBy, now }: Concerning): readonly string[] {
  return tasksBy('pool', keyOf(pool))
    .filter((task) => !isDone(task))
    .sort((a, b) => compareWaiting(waitingOf(a), waitingOf(b), now))
    .map(keyOf);
}

/** Tasks of some namespaces that are not over, in the order of their queue. */
export function openTasksIn(namespaces: readonly string[], tasks: readonly Task[], now: number): readonly string[] {
  return tasks
    .filter((task) => namespaces.includes(task.metadata.namespace ?? '') && !isSettled(task))
    .sort((a, b) => compareWaiting(waitingOf(a), waitingOf(b), now))
    .map(keyOf);
}

/** Settled, and nothing is left of it. */
function isDone(task: Task): boolean {
  const { runtimeSessionUID, runtimeSessionCleanupDigest } = task.status?.execution ?? {};
  const left = runtimeSessionUID !== undefined && runtimeSessionCleanupDigest === undefined;
  return isSettled(task) && !left && task.metadata.deletionTimestamp === undefined;
}
