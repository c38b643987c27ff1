import type { PoolReservation, RuntimePool } from '../../api/index.js';
import { finalizers } from '../../domain/labels.js';
import type { Family } from '../../domain/plan.js';
import type { PoolDecision, StatusIntent } from './decision.js';
import { isUndemanded } from './demand.js';
import type { PodView, PoolObservation } from './observation.js';

/** A row of a table: what to do in one situation; `undefined` = this is another situation. */
export type PoolRule = (o: PoolObservation, now: number) => PoolDecision | undefined;

/** Milliseconds until a fault that nothing announces is looked at again. */
export const laterLook = 10_000;

/** Scaled to zero, or being deleted. */
export function isUnwanted({ pool }: Pick<PoolObservation, 'pool'>): boolean {
  return pool.metadata.deletionTimestamp !== undefined || (pool.spec.desiredReplicas ?? 0) === 0;
}

/** A deleted pool may have other finalizers than ours; without ours, we leave it alone. */
export function isReleased({ metadata }: Pick<RuntimePool, 'metadata'>): boolean {
  return metadata.deletionTimestamp !== undefined && !metadata.finalizers?.includes(finalizers.pool);
}

/** Slots of Tasks that use the instance, or are about to. */
export function heldReservations({ pool }: Pick<PoolObservation, 'pool'>, now: number): readonly PoolReservation[] {
  return (pool.status?.capacity?.reservations ?? []).filter(({ expiresAt }) => Date.parse(expiresAt) > now);
}

/** No Task wants it, none has a slot, and it hosts nothing that a Task may come back to. Source: workload.md §7.12. */
export function isIdle(o: Pick<PoolObservation, 'pool' | 'family' | 'demand'>, now: number): boolean {
  // A session in a sandbox is kept by its Task alone.
  const hostsSession = o.family === 'plain' && (o.pool.status?.capacity?.residentSessions ?? 0) > 0;
  return isUndemanded(o.demand) && heldReservations(o, now).length === 0 && !hostsSession;
}

/** The one Pod that may be an instance: it has an address and nobody ends it. */
export function candidate({ pods }: PoolObservation): PodView | undefined {
  const live = pods.filter(({ address }) => address !== undefined);
  return live.length === 1 ? live[0] : undefined;
}

/** The recorded instance stays on record, if there is one. */
export const keepLive = ({ pool }: PoolObservation): StatusIntent['instance'] => (pool.status?.activeInstance ? 'keep' : 'none');

/** It stays on record if this is its Pod. */
export const keepSame = ({ pool }: PoolObservation, pod: PodView): StatusIntent['instance'] =>
  pool.status?.activeInstance?.podUID === pod.uid ? 'keep' : 'none';

/** The id appears after the container was first seen; only another one is another start. */
export function sameContainer(known: string | undefined, found: string | undefined): boolean {
  return known === undefined || found === undefined || known === found;
}

/** What there is one of in a pool of this family, for people. */
export const whatOf = ({ family }: PoolObservation): string => (family === 'workspace' ? 'the sandbox' : 'the instance');

/** Milliseconds that a start may take; a drain for a rollout as well. Source: workload.md §7.1. */
export function coldStartTimeout({ pool }: PoolObservation): number {
  return (pool.spec.coldStartTimeoutSeconds ?? 120) * 1000;
}

/** A rule that only pools of one family have. */
export function onlyOf(family: Family, rule: PoolRule): PoolRule {
  return (o, now) => (o.family === family ? rule(o, now) : undefined);
}

/** The first rule of a table that knows the situation. */
export function firstOf(rules: readonly PoolRule[]): PoolRule {
  return (o, now) => {
    for (const rule of rules) {
      const decision = rule(o, now);
      if (decision) return decision;
    }
    return undefined;
  };
}
