import { executionOutcomes } from '../../api/index.js';
import type { RuntimePool, Task } from '../../api/index.js';
import { annotationKeys, labelKeys } from '../../domain/labels.js';
import { isSettled } from '../task/observation.js';

/** What Tasks want of a pool. Times in milliseconds since 1970. */
export interface Demand {
  /** Tasks that may still want it. */
  readonly active: number;
  readonly queued: number;
  readonly finalizing: number;
  /** The last demand that is known: on record, or settled. Without a readable record nothing is ever reaped. */
  readonly lastAt: number;
  /** As the annotation of the pool has it. */
  readonly recordedAt: number;
  /** This process saw somebody want it, and did not record since that this is over. */
  readonly seen: boolean;
  /** `false`: the Tasks of the namespace cannot be read, so that there may be more of them, and none is no reason to end anything. */
  readonly known: boolean;
}

/** Milliseconds for which nobody need say again that a pool is wanted. Source: workload.md §2.10. */
const stampLife = 60_000;

/** Whether what is on record is too old to say that a pool is wanted; what nobody can read is old. */
export function isOutdated(recordedAt: number, now: number): boolean {
  return !(now - recordedAt < stampLife);
}

export function demandOnRecord({ metadata }: Pick<RuntimePool, 'metadata'>): number {
  return Date.parse(metadata.annotations?.[annotationKeys.lastDemandAt] ?? '');
}

/** Counts the Tasks of a pool. One that ended wants nothing, however early it ended. Source: workload.md §7.12. */
export function demandOf(pool: RuntimePool, tasks: readonly Task[], seen: boolean, known = true): Demand {
  const own = tasks.filter(
    (task) => task.metadata.namespace === pool.metadata.namespace && poolNameOf(task) === pool.metadata.name,
  );
  const wanting = own.filter((task) => !isSettled(task));
  const inState = (...states: readonly string[]) =>
    wanting.filter(({ status }) => states.includes(status?.execution?.state ?? '')).length;
  const recordedAt = demandOnRecord(pool);
  return {
    active: wanting.length,
    queued: inState('Queued', 'Reserved'),
    finalizing: inState('Settling'),
    lastAt: Math.max(recordedAt, ...own.flatMap(settledAt)),
    recordedAt,
    seen,
    known,
  };
}

/**
 * What should be on record and is not: while somebody wants the pool that it was wanted a minute ago at most, and once when that was over. A
 * Task that is deleted takes the time of its end along, so that this process says when it saw that.
 */
export function demandToRecord(demand: Demand, held: boolean, now: number): number | undefined {
  const { active, lastAt, recordedAt, seen } = demand;
  if (active > 0) return isOutdated(recordedAt, now) ? now : undefined;
  // Who still has a slot is not done with it; and what somebody made unreadable is to stay.
  if (held || Number.isNaN(recordedAt) || !demand.known) return undefined;
  if (seen) return now;
  return lastAt > recordedAt ? lastAt : undefined;
}

/** It is known that no Task wants the pool. */
export function isUndemanded({ active, known }: Demand): boolean {
  return known && active === 0;
}

/** Name of the pool that a Task is for. */
export function poolNameOf({ metadata, status }: Pick<Task, 'metadata' | 'status'>): string | undefined {
  return status?.execution?.runtimePoolName ?? metadata.labels?.[labelKeys.taskPool];
}

function settledAt({ status }: Task): readonly number[] {
  const { state, lastTransitionTime = '' } = status?.execution ?? {};
  const at = executionOutcomes.some((outcome) => outcome === state) ? Date.parse(lastTransitionTime) : NaN;
  return Number.isNaN(at) ? [] : [at];
}
