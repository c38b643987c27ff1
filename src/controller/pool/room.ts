import type { PoolEffect } from './decision.js';
import type { Neighbour, PodView, PoolObservation } from './observation.js';
import { isIdle, isUnwanted } from './rule.js';

/** What is done for a Pod that fits on no node: pools that nobody uses end, one after the other, the one that is idle for longest first. */

/** The scheduler looked for a node and found none. A Pod that is gated waits for something else. */
export function lacksNode(pods: readonly Pick<PodView, 'unschedulable'>[]): boolean {
  return pods.some(({ unschedulable }) => unschedulable?.reason === 'Unschedulable');
}

/** Ends at most one idle pool at a time. */
export function makeRoom(o: PoolObservation, now: number): PoolEffect | undefined {
  const { neighbours } = o;
  if (o.demand.active === 0 || neighbours.some((one) => isLeaving(one, now))) return undefined;
  const [pool] = neighbours
    .filter((one) => one.placed && !isUnwanted(one) && isIdle(one, now) && Number.isFinite(one.demand.lastAt))
    .sort((a, b) => a.demand.lastAt - b.demand.lastAt)
    .map((one) => one.pool);
  if (!pool) return undefined;
  const { namespace = '', name } = o.pool.metadata;
  const because = `it is idle, and a Pod of RuntimePool ${namespace}/${name} cannot be scheduled`;
  return { do: 'scale-to-zero', instead: { pool, because } };
}

/** What is in use ends in its own time, which may be long. */
function isLeaving(one: Neighbour, now: number): boolean {
  return one.placed && isIdle(one, now) && (one.ofOneTask || isUnwanted(one));
}
