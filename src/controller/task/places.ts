import type { Task } from '../../api/index.js';
import { finalizers } from '../../domain/labels.js';
import { compareWaiting, placeOf, waitingOf } from '../../domain/queue-order.js';
import type { Waiting } from '../../domain/queue-order.js';
import type { TaskDecision } from './decision.js';
import { isBound, isSettled } from './observation.js';
import type { TaskObservation } from './observation.js';

/**
 * What a process knows of a Task that is not bound. `enters`: it was let through, and its binding may be stored any moment. `held-up`: it
 * waits for something else than a place, or is being refused. `undefined`: it could go on, for all that is known.
 */
export type Standing = 'enters' | 'held-up' | undefined;

/** The places of a namespace, as one of its Tasks finds them that is not bound yet. */
export interface Quota {
  /** How many Tasks may be under way at once. */
  readonly limit: number;
  /** Places that nobody has, and nobody is about to take. */
  readonly free: number;
  /** Others that could use one. */
  readonly contenders: readonly Waiting[];
  /** Of this one: who was let through is not asked again, and who waits for something else says that first. */
  readonly standing: Standing;
}

export type StandingOf = (task: Task) => Standing;

/** What a Task finds among the Tasks of its namespace. `undefined` = it needs no place, or has one. Source: dispatch.md §2.1. */
export function quotaOf(task: Task, all: readonly Task[], limit: number, standingOf: StandingOf): Quota | undefined {
  if (isBound(task) || isSettled(task)) return undefined;
  const others = all.filter(({ metadata }) => isNeighbour(metadata, task) && metadata.uid !== task.metadata.uid);
  return {
    limit,
    free: freeOf(others, limit, standingOf),
    contenders: others.filter((other) => contends(other, standingOf)).map(waitingOf),
    standing: standingOf(task),
  };
}

/** Only as many go on as there are places, in the order of the queue. */
export function hasPlace({ task, quota }: Pick<TaskObservation, 'task' | 'quota'>, now: number): boolean {
  return !quota || quota.standing === 'enters' || placeOf(waitingOf(task), quota.contenders, now) < quota.free;
}

/** Who may go on now in the namespace of a Task: the first of the queue, one for each free place. */
export function nextBeside(
  task: Pick<Task, 'metadata'>,
  all: readonly Task[],
  limit: number,
  standingOf: StandingOf,
  now: number,
): readonly Task[] {
  const near = all.filter(({ metadata }) => isNeighbour(metadata, task));
  return near
    .filter((one) => contends(one, standingOf))
    .sort((a, b) => compareWaiting(waitingOf(a), waitingOf(b), now))
    .slice(0, freeOf(near, limit, standingOf));
}

/** What others should know of a Task once this was decided about it. */
export function standingAfter(o: TaskObservation, { effect, forPlace }: TaskDecision, before: Standing): Standing {
  if (o.frozen !== 'unbound') return undefined;
  switch (effect?.do) {
    case 'take':
    case 'bind':
      return 'enters';
    // What is read decides.
    case 'read-agent':
    case 'read-system-prompt':
      return before;
    case 'say':
    case undefined:
      return forPlace ? undefined : 'held-up';
    default:
      return 'held-up';
  }
}

function freeOf(tasks: readonly Task[], limit: number, standingOf: StandingOf): number {
  return Math.max(limit - tasks.filter((task) => isUnderWay(task, standingOf)).length, 0);
}

/** Finalizer and label are for everybody to write, and say nothing here. */
function isUnderWay(task: Task, standingOf: StandingOf): boolean {
  const { deletionTimestamp, finalizers: held = [] } = task.metadata;
  if (isSettled(task) || (deletionTimestamp !== undefined && !held.includes(finalizers.task))) return false;
  return isBound(task) || standingOf(task) === 'enters';
}

function contends(task: Task, standingOf: StandingOf): boolean {
  const waits = !isSettled(task) && !isBound(task) && task.metadata.deletionTimestamp === undefined;
  return waits && standingOf(task) === undefined;
}

function isNeighbour({ namespace }: Task['metadata'], { metadata }: Pick<Task, 'metadata'>): boolean {
  return namespace === metadata.namespace;
}
