import type { Task } from '../api/index.js';

/** One that waits for a slot. Times in milliseconds since 1970. */
export interface Waiting {
  /** 0 … 1000, as its Task says. */
  readonly priority: number;
  readonly queuedAt: number;
  readonly createdAt: number;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

const defaultPriority = 500;
const highest = 1000;
const ageStep = { every: 30_000, adds: 25 };
const promotedAfter = 5 * 60_000;

/**
 * What a Task is in the order of its queue. Only the status decides: users write annotations. A Task without a time of queueing, as an
 * earlier version left it, waits since its creation, and none waits since before that.
 */
export function waitingOf({ metadata, spec, status }: Task): Waiting {
  const createdAt = timeOf(metadata.creationTimestamp) ?? 0;
  return {
    priority: spec.priority ?? defaultPriority,
    queuedAt: Math.max(timeOf(status?.execution?.queuedAt) ?? createdAt, createdAt),
    createdAt,
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
  };
}

/** Its priority and what it gained by waiting, at most 1000. */
export function effectivePriority({ priority, queuedAt }: Waiting, now: number): number {
  const steps = Math.floor(Math.max(now - queuedAt, 0) / ageStep.every);
  return Math.min(priority + steps * ageStep.adds, highest);
}

/** One that waited for so long comes before all others, whatever their priority. */
export function isPromoted({ queuedAt }: Waiting, now: number): boolean {
  return now - queuedAt >= promotedAfter;
}

/**
 * Order in which slots are given, as a comparison for sorting: the promoted first, among themselves by time alone; then by effective priority;
 * ties by the time of queueing, of creation, and names. Two different Tasks are never equal. Source: dispatch.md §4.1.
 */
export function compareWaiting(a: Waiting, b: Waiting, now: number): number {
  const [promotedA, promotedB] = [isPromoted(a, now), isPromoted(b, now)];
  if (promotedA !== promotedB) return promotedA ? -1 : 1;
  const byPriority = promotedA ? 0 : effectivePriority(b, now) - effectivePriority(a, now);
  return (
    byPriority ||
    a.queuedAt - b.queuedAt ||
    a.createdAt - b.createdAt ||
    compareText(a.namespace, b.namespace) ||
    compareText(a.name, b.name) ||
    compareText(a.uid, b.uid)
  );
}

/** How many of these come before one. */
export function placeOf(one: Waiting, others: readonly Waiting[], now: number): number {
  return others.filter((other) => compareWaiting(other, one, now) < 0).length;
}

function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

function timeOf(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? undefined : time;
}
