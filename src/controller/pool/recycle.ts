import type { PodEndCause } from '../../domain/pod-end.js';
import type { EndCause, PoolDecision, PoolEffect, RecycleCause } from './decision.js';
import { degraded, reasoned, stopping } from './intents.js';
import type { PoolObservation } from './observation.js';
import { laterLook } from './rule.js';

/** What ends the instance. `undefined` = it ends already, or there is none. */
export function endOf(o: PoolObservation, cause: EndCause, because: string): PoolEffect | undefined {
  if (!o.claim || o.claim.deleting) return undefined;
  const claim = o.claim.live;
  const by = endCauseOf(o, cause);
  return {
    do: o.family === 'workspace' ? 'delete-claim' : 'stop-workload',
    claim,
    cause,
    because,
    ...(by === undefined ? {} : { by }),
  };
}

/** What ended the instance, if that is not what was planned. A Pod that we delete ourselves is deleted as well. */
function endCauseOf({ ended }: PoolObservation, cause: EndCause): PodEndCause | undefined {
  return cause === 'planned' && ended?.cause === 'PodDeleted' ? undefined : ended?.cause;
}

/** A text about an instance that is not there any more, with how it came to its end. */
export function withEnd({ ended }: Pick<PoolObservation, 'ended'>, text: string): string {
  return ended === undefined ? text : `${text}: ${ended.says}`;
}

/** Causes that follow from the end of a Pod or its container. */
const lossCauses: readonly RecycleCause[] = ['pod-ended', 'restarted', 'instance-changed', 'cold-start'];

/** Gives the instance up: what asked for it asks no more, and what comes next begins anew. */
export function recycled(o: PoolObservation, cause: RecycleCause, says: string): PoolDecision {
  const lost = lossCauses.includes(cause);
  const because = lost ? withEnd(o, says) : says;
  const failed = degraded(because);
  const status =
    cause === 'restarted'
      ? reasoned(failed, { AdmissionReady: restartDetected, RolloutReady: restartDetected })
      : lost && o.ended
        ? reasoned(failed, { RolloutReady: o.ended.cause })
        : failed;
  const effect = endOf(o, cause, because);
  return effect ? { status, effect } : { status, wait: laterLook };
}

/** Its volumes may hold what the boot before it left. */
export const startedAgain = 'the supervisor was started again in place';

/** Barriers that an ending goes through, by why it was begun. Source: workload.md §1.5. */
const restartDetected = 'SupervisorRestartDetected';
const stoppingReasons: readonly (readonly [RegExp, { readonly AdmissionReady: string; readonly RolloutReady?: string }])[] = [
  [/^SupervisorRestart/, { AdmissionReady: 'SupervisorRestartStopping', RolloutReady: 'SupervisorRestartStopping' }],
  [/^IdentityCapacity/, { AdmissionReady: 'IdentityCapacityStopping' }],
];

/** The sandbox is on its way out; why is what the conditions have said since it was begun. */
export function goneSoon(o: PoolObservation, message: string): PoolDecision {
  const reason = o.pool.status?.conditions?.find(({ type }) => type === 'AdmissionReady')?.reason ?? '';
  const reasons = stoppingReasons.find(([begun]) => begun.test(reason))?.[1];
  const status = stopping(o.ended && o.ended.cause !== 'PodDeleted' ? withEnd(o, message) : message);
  return { status: reasons ? reasoned(status, reasons) : status };
}

/** Milliseconds between given-up sandboxes: 0, 1, 2, 4 … 60 s. */
export function backoff(count: number): number {
  return count === 0 ? 0 : Math.min(1_000 * 2 ** (count - 1), 60_000);
}
