import type { EndCause, PoolDecision, PoolEffect, RecycleCause } from './decision.js';
import { degraded, reasoned, stopping } from './intents.js';
import type { PoolObservation } from './observation.js';
import { laterLook } from './rule.js';

/** What ends the instance. `undefined` = it ends already, or there is none. */
export function endOf(o: PoolObservation, cause: EndCause, because: string): PoolEffect | undefined {
  if (!o.claim || o.claim.deleting) return undefined;
  const claim = o.claim.live;
  return { do: o.family === 'workspace' ? 'delete-claim' : 'stop-workload', claim, cause, because };
}

/** Gives the instance up: what asked for it asks no more, and what comes next begins anew. */
export function recycled(o: PoolObservation, cause: RecycleCause, because: string): PoolDecision {
  const failed = degraded(because);
  const status =
    cause === 'restarted' ? reasoned(failed, { AdmissionReady: restartDetected, RolloutReady: restartDetected }) : failed;
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
export function goneSoon({ pool }: PoolObservation, message: string): PoolDecision {
  const reason = pool.status?.conditions?.find(({ type }) => type === 'AdmissionReady')?.reason ?? '';
  const reasons = stoppingReasons.find(([begun]) => begun.test(reason))?.[1];
  const status = stopping(message);
  return { status: reasons ? reasoned(status, reasons) : status };
}

/** Milliseconds between given-up sandboxes: 0, 1, 2, 4 … 60 s. */
export function backoff(count: number): number {
  return count === 0 ? 0 : Math.min(1_000 * 2 ** (count - 1), 60_000);
}
