import type { PoolReservation } from '../../api/index.js';
import type { PoolDecision } from './decision.js';
import type { PoolObservation } from './observation.js';

/** A row of a table: what to do in one situation; `undefined` = this is another situation. */
export type PoolRule = (o: PoolObservation, now: number) => PoolDecision | undefined;

/** Milliseconds until a fault that nothing announces is looked at again. */
export const laterLook = 10_000;

/** Scaled to zero, or being deleted. */
export function isUnwanted({ pool }: PoolObservation): boolean {
  return pool.metadata.deletionTimestamp !== undefined || (pool.spec.desiredReplicas ?? 0) === 0;
}

/** Slots of Tasks that use the instance, or are about to. */
export function heldReservations({ pool }: PoolObservation, now: number): readonly PoolReservation[] {
  return (pool.status?.capacity?.reservations ?? []).filter(({ expiresAt }) => Date.parse(expiresAt) > now);
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
