import type { Manifest } from '../../api/index.js';
import { short } from '../../domain/digests.js';
import { isQuiescent } from '../../harness/introspection.js';
import type { PoolDecision } from './decision.js';
import { degraded, draining, quiescent, stopped, stopping } from './intents.js';
import type { PodView, PoolObservation } from './observation.js';
import { firstOf, heldReservations, isUnwanted } from './rule.js';
import type { PoolRule } from './rule.js';

/** Milliseconds for which an instance that cannot be asked is waited for before it is ended without proof. */
const unprovenAfter = 60_000;
const nextLook = 250;

/**
 * How an instance ends: admission closes, the instance drains and says that it is quiet, that is recorded, and only then its claim is
 * deleted. One that was never admitted has nothing to drain. Source: workload.md §7.6b, §7.9–7.10.
 */
export const ending: PoolRule = (o, now) => (isUnwanted(o) ? end(o, now, 'runtime_pool_scale_to_zero') : undefined);

/** The instance was started from another template than the one that is rendered now. Source: workload.md §7.5. */
export const rollingOut: PoolRule = (o, now) => {
  const revision = o.rendered?.templateRevision;
  if (!o.template || revision === undefined || o.template.revision === revision) return undefined;
  if (isGone(o)) {
    const wanted = o.rendered?.workload.find(({ kind }) => kind === 'SandboxTemplate');
    return wanted && { effect: { do: 'ensure', objects: [{ wanted, live: o.template.live }] } };
  }
  return end(o, now, `runtime_pool_rollout_${short(revision)}`);
};

/** No claim, no Sandbox and no Pod. */
export function isGone({ claim, sandbox, pods }: PoolObservation): boolean {
  return !claim && !sandbox && pods.length === 0;
}

export function end(o: PoolObservation, now: number, reason: string): PoolDecision {
  return (
    firstOf([gone, going, workPending, neverAdmitted, instanceLost, unauthenticated, drained(reason)])(o, now) ?? {
      status: draining('the instance is draining'),
      wait: nextLook,
    }
  );
}

const gone: PoolRule = (o, now) => {
  if (!isGone(o)) return undefined;
  if (o.pool.metadata.deletionTimestamp !== undefined) return finalized(o);
  const idleFor = now - o.demand.lastAt;
  const recorded = o.pool.status;
  const atRest = recorded?.lifecycle === 'Stopped' && recorded.observedGeneration === o.pool.metadata.generation;
  if (atRest && o.demand.active === 0 && idleFor >= 2 * o.idleTtl) return { status: stopped(), effect: { do: 'delete-pool' } };
  const left = 2 * o.idleTtl - idleFor;
  return { status: stopped(), ...(o.demand.active === 0 && left > 0 ? { wait: left } : {}) };
};

/** Workload first, then what isolated it, then the Secrets; the finalizer goes when nothing is left. */
function finalized(o: PoolObservation): PoolDecision {
  const workload = [o.warmPool, o.template].flatMap((child) => (child ? [child.live] : []));
  const stages: readonly (readonly Manifest[])[] = [workload, o.remains];
  const objects = stages.find((stage) => stage.length > 0);
  return objects ? { effect: { do: 'remove', objects } } : { effect: { do: 'remove-finalizer' } };
}

const going: PoolRule = (o) =>
  o.claim === undefined || o.claim.deleting ? { status: stopping('the sandbox is being deleted') } : undefined;

/** Somebody is about to use the instance, or is finishing. */
const workPending: PoolRule = (o, now) => {
  if (heldReservations(o, now).length === 0 || isBeingDeleted(o)) return undefined;
  return { status: draining('work that was admitted is finished first'), wait: 1_000 };
};

const neverAdmitted: PoolRule = (o) =>
  o.claim && o.pool.status?.activeInstance === undefined
    ? {
        status: stopping('the sandbox never took work'),
        effect: {
          do: 'delete-claim',
          claim: o.claim.live,
          recycle: false,
          warn: false,
          because: 'the pool is not wanted, and its sandbox never took work',
        },
      }
    : undefined;

/** The Pod that had the sessions is gone, and with it whatever could be drained. */
const instanceLost: PoolRule = (o) =>
  o.claim && !instanceOf(o)
    ? {
        status: stopping('the instance is gone'),
        effect: { do: 'delete-claim', claim: o.claim.live, recycle: false, warn: false, because: 'the instance is gone' },
      }
    : undefined;

const unauthenticated: PoolRule = (o, now) => {
  const pod = instanceOf(o);
  if (!pod || !o.claim) return undefined;
  if (o.known.authenticated === 'unread' && pod.identity)
    return {
      status: draining('the instance is asked to drain'),
      effect: { do: 'read-instance-credentials', epoch: pod.identity.controllerEpoch },
    };
  const { probe } = o.known;
  const failing = probe?.podUid === pod.uid && 'error' in probe ? probe : undefined;
  if (o.known.authenticated === 'ready' && pod.identity && !failing) return undefined;
  const says = failing?.error ?? 'its credentials are lost';
  const since = failing?.failingSince ?? 0;
  if (now - since < unprovenAfter && failing) {
    if (now - failing.at >= 1_000)
      return { status: degraded(`the instance cannot be drained: ${says}`, 'keep'), effect: { do: 'probe', pod } };
    return { status: degraded(`the instance cannot be drained: ${says}`, 'keep'), wait: 1_000 };
  }
  const because = `the instance could not be asked whether it is quiet (${says}), and is ended without proof`;
  return { status: stopping(because), effect: { do: 'delete-claim', claim: o.claim.live, recycle: false, warn: true, because } };
};

const drained =
  (reason: string): PoolRule =>
  (o, now) => {
    const pod = instanceOf(o);
    const { probe } = o.known;
    if (!pod || !o.claim) return undefined;
    const status = draining('the instance is draining');
    if (probe?.podUid !== pod.uid || 'error' in probe) return { status, effect: { do: 'probe', pod } };
    if (!probe.status.drain.requested) return { status, effect: { do: 'drain', pod, reason } };
    if (!isQuiescent(probe.status)) return now - probe.at >= nextLook ? { status, effect: { do: 'probe', pod } } : undefined;
    const recorded = o.pool.status?.lifecycle === 'Quiescent';
    const quiet = quiescent('the instance is quiet');
    // The barrier is on record before what it allows.
    if (!recorded) return { status: quiet, wait: 0 };
    return {
      status: quiet,
      effect: {
        do: 'delete-claim',
        claim: o.claim.live,
        recycle: false,
        warn: false,
        because: 'the instance is drained and quiet',
      },
    };
  };

/** The Pod of the recorded instance, while it can be spoken to. */
function instanceOf(o: PoolObservation): PodView | undefined {
  const uid = o.pool.status?.activeInstance?.podUID;
  return o.pods.find((pod) => pod.uid === uid && pod.address !== undefined);
}

export function isBeingDeleted({ pool }: PoolObservation): boolean {
  return pool.metadata.deletionTimestamp !== undefined;
}
