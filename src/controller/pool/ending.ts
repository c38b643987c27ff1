import type { Manifest, PoolLifecycle } from '../../api/index.js';
import { podTemplateAt } from '../../constructs/template-revision.js';
import { short } from '../../domain/digests.js';
import { describeFinding } from '../../lib/errors.js';
import { isQuiescent } from '../../harness/introspection.js';
import { instanceProblem } from './accept.js';
import type { EndCause, PoolDecision, RecycleCause, StatusIntent } from './decision.js';
import { isUndemanded } from './demand.js';
import { degraded, drainTimedOut, draining, quiescent, reasoned, stopped, stopping } from './intents.js';
import type { PodView, PoolObservation } from './observation.js';
import { endOf, goneSoon, recycled, startedAgain, withEnd } from './recycle.js';
import { coldStartTimeout, firstOf, heldReservations, isUnwanted, sameContainer, whatOf } from './rule.js';
import type { PoolRule } from './rule.js';

/** Milliseconds that an instance which cannot prove that it is quiet is waited for before it is ended all the same. */
const unprovenAfter = 60_000;
/** Milliseconds between looks at a draining instance: at first, and when it takes its time. */
const [soon, patient] = [250, 2_000];

/** How an ending differs from others. */
export interface EndPlan {
  /** What the instance is told. */
  readonly reason: string;
  /** The same for people, added to the messages. @default nothing is added */
  readonly because?: string;
  /** Why one that never took work is ended, if that counts as given up. @default it was planned */
  readonly unused?: RecycleCause;
  /** Why one that took work is ended, if that counts as given up. @default it was planned */
  readonly used?: { readonly cause: RecycleCause; readonly because: string };
  /** Reasons of AdmissionReady while it lasts. @default AdmissionClosed */
  readonly admission?: Readonly<Partial<Record<PoolLifecycle, string>>>;
  /** A drain that takes longer than the pool's cold start may is said. @default however long it takes */
  readonly bounded?: boolean;
}

/**
 * How an instance ends: admission closes, the instance drains and says that it is quiet, that is recorded, and only then its claim is
 * deleted. One that was never admitted has nothing to drain. Source: workload.md §7.6b, §7.9–7.10.
 */
export const ending: PoolRule = (o, now) => (isUnwanted(o) ? end(o, now, { reason: 'runtime_pool_scale_to_zero' }) : undefined);

/** The instance was started from another template than the one that is rendered now. Source: workload.md §7.5. */
export const rollingOut: PoolRule = (o, now) => {
  const revision = o.rendered?.templateRevision;
  if (!o.template || revision === undefined || o.template.revision === revision) return undefined;
  if (isGone(o)) {
    const wanted = o.rendered?.workload.find(holdsTemplate);
    return wanted && { effect: { do: 'ensure', objects: [{ wanted, live: o.template.live }] } };
  }
  return end(o, now, { reason: `runtime_pool_rollout_${short(revision)}`, bounded: true });
};

/** A pool on a cordoned node finishes its work and ends; if Tasks want it, it starts on another node. */
export const cordoned: PoolRule = (o, now) =>
  o.cordonedNode === undefined
    ? undefined
    : end(o, now, { reason: 'runtime_pool_node_cordoned', because: `node ${o.cordonedNode} is cordoned` });

/** Has the template that Pods are made from. */
export const holdsTemplate = ({ kind }: Manifest): boolean => kind in podTemplateAt;

/** No claim, no Sandbox and no Pod. */
export function isGone({ claim, sandbox, pods }: PoolObservation): boolean {
  return !claim && !sandbox && pods.length === 0;
}

export function isBeingDeleted({ pool }: PoolObservation): boolean {
  return pool.metadata.deletionTimestamp !== undefined;
}

export function end(o: PoolObservation, now: number, plan: EndPlan): PoolDecision {
  const steps = [gone, going, workPending, neverAdmitted(plan), instanceLost, restartedInPlace, unauthenticated, drained(plan)];
  const decision = firstOf(steps)(o, now) ?? { status: draining('the instance is draining'), wait: nextLook(o, now) };
  return decision.status ? { ...decision, status: said(o, now, plan, decision.status) } : decision;
}

function said(o: PoolObservation, now: number, plan: EndPlan, before: StatusIntent): StatusIntent {
  const { admission, bounded, because } = plan;
  const status = because === undefined ? before : { ...before, message: `${before.message}: ${because}` };
  if (bounded && status.lifecycle === 'Draining' && takesTooLong(o, now))
    return drainTimedOut(`${status.message}; that takes longer than ${coldStartTimeout(o) / 1000} s`);
  const reason = admission?.[status.lifecycle];
  return reason === undefined ? status : reasoned(status, { AdmissionReady: reason });
}

function takesTooLong(o: PoolObservation, now: number): boolean {
  const rollout = o.pool.status?.conditions?.find(({ type }) => type === 'RolloutReady');
  if (rollout?.observedGeneration !== o.pool.metadata.generation) return false;
  if (rollout?.reason === 'RolloutTimedOut') return true;
  return rollout?.reason === 'RolloutDraining' && now - Date.parse(rollout.lastTransitionTime) >= coldStartTimeout(o);
}

const gone: PoolRule = (o, now) => {
  if (!isGone(o)) return undefined;
  if (isBeingDeleted(o)) return finalized(o);
  const recorded = o.pool.status;
  const atRest = recorded?.lifecycle === 'Stopped' && recorded.observedGeneration === o.pool.metadata.generation;
  // Nothing is ever started again from a class as it was before.
  const superseded = o.poolClass.state === 'outdated' || o.poolClass.state === 'drifted';
  if (superseded && atRest && isUndemanded(o.demand)) return { status: stopped(), effect: { do: 'delete-pool' } };
  // What many share is kept for the next.
  if (o.family === 'plain') return { status: stopped() };
  const left = o.ofOneTask ? 0 : o.demand.lastAt + 2 * o.idleTtl - now;
  if (atRest && isUndemanded(o.demand) && left <= 0) return { status: stopped(), effect: { do: 'delete-pool' } };
  return { status: stopped(), ...(isUndemanded(o.demand) && left > 0 ? { wait: left } : {}) };
};

/** Workload first, then what isolated it, then the Secrets; the finalizer goes when nothing is left. */
function finalized(o: PoolObservation): PoolDecision {
  const workload = [o.warmPool, o.template].flatMap((child) => (child ? [child.live] : []));
  const stages: readonly (readonly Manifest[])[] = [workload, o.remains];
  const objects = stages.find((stage) => stage.length > 0);
  return objects ? { effect: { do: 'remove', objects } } : { effect: { do: 'remove-finalizer' } };
}

/** What no claim holds any more is ended by nobody else. */
const going: PoolRule = (o) => {
  if (o.claim && !o.claim.deleting) return undefined;
  const decision = goneSoon(o, `${whatOf(o)} is being deleted`);
  return !o.claim && o.orphans.length > 0 ? { ...decision, effect: { do: 'remove', objects: o.orphans } } : decision;
};

/** Somebody is about to use the instance, or is finishing. */
const workPending: PoolRule = (o, now) => {
  if (heldReservations(o, now).length === 0 || isBeingDeleted(o)) return undefined;
  return { status: draining('work that was admitted is finished first'), wait: 1_000 };
};

const neverAdmitted =
  ({ unused }: EndPlan): PoolRule =>
  (o) => {
    if (!o.claim || o.pool.status?.activeInstance !== undefined) return undefined;
    const because = 'the sandbox never took work, and is not wanted as it is';
    return unused === undefined ? ended(o, 'planned', because) : recycled(o, unused, because);
  };

/** The Pod that had the sessions is gone, and with it whatever could be drained. */
const instanceLost: PoolRule = (o) => (instanceOf(o) ? undefined : ended(o, 'planned', withEnd(o, 'the instance is gone')));

/** What its boot before had is gone as well, and nobody can say that it was quiet. */
const restartedInPlace: PoolRule = (o) => {
  const pod = instanceOf(o);
  const { seeded, probe } = o.known;
  if (!pod) return undefined;
  const boot = probe?.podUid === pod.uid && !('error' in probe) ? probe.status.fence.supervisorBootID : undefined;
  const sameBoot = boot === undefined || boot === o.pool.status?.activeInstance?.bootID;
  const same = sameBoot && (seeded?.podUid !== pod.uid || sameContainer(seeded.containerId, pod.containerId));
  return same ? undefined : recycled(o, 'restarted', startedAgain);
};

/** Only the instance itself can say that it is quiet, and only if it proves to be the one. */
const unauthenticated: PoolRule = (o, now) => {
  const pod = instanceOf(o);
  if (!pod || !o.claim) return undefined;
  if (o.known.authenticated === 'unread' && pod.identity)
    return {
      status: draining('the instance is asked to drain'),
      effect: { do: 'read-instance-credentials', epoch: pod.identity.controllerEpoch },
    };
  const doubt = doubtOf(o, pod);
  if (!doubt) return undefined;
  const because = `the instance could not be asked whether it is quiet (${doubt.says}), and is ended without proof`;
  if (now - doubt.since >= unprovenAfter) return ended(o, 'unproven', because);
  const status = degraded(`the instance cannot be drained: ${doubt.says}`, 'keep');
  const asked = o.known.probe?.at ?? 0;
  return now - asked >= 1_000 ? { status, effect: { do: 'probe', pod } } : { status, wait: 1_000 };
};

/** Why nothing that it says counts, and since when. Without credentials it can never be asked. */
function doubtOf(o: PoolObservation, pod: PodView): { readonly says: string; readonly since: number } | undefined {
  if (o.known.authenticated === 'lost' || !pod.identity) return { says: 'its credentials are lost', since: 0 };
  const { probe } = o.known;
  if (probe?.podUid !== pod.uid) return undefined;
  if ('error' in probe) return { says: probe.error, since: probe.since };
  const finding = instanceProblem(o.pool, pod, pod.identity, probe);
  return finding && { says: `its identity changed before the drain: ${describeFinding(finding)}`, since: probe.since };
}

const drained =
  ({ reason, used }: EndPlan): PoolRule =>
  (o, now) => {
    const pod = instanceOf(o);
    const { probe } = o.known;
    if (!pod || !o.claim) return undefined;
    const status = draining('the instance is draining');
    if (probe?.podUid !== pod.uid || 'error' in probe) return { status, effect: { do: 'probe', pod } };
    if (!probe.status.drain.requested) return { status, effect: { do: 'drain', pod, reason } };
    if (!isQuiescent(probe.status))
      return now - probe.at >= nextLook(o, now) ? { status, effect: { do: 'probe', pod } } : undefined;
    const quiet = quiescent('the instance is quiet');
    // The barrier is on record before what it allows.
    if (o.pool.status?.lifecycle !== 'Quiescent') return { status: quiet, wait: 0 };
    const { cause, because } = used ?? { cause: 'planned', because: 'the instance is drained and quiet' };
    return { ...ended(o, cause, because), status: quiet };
  };

function ended(o: PoolObservation, cause: EndCause, because: string): PoolDecision | undefined {
  const effect = endOf(o, cause, because);
  return effect && { status: stopping(because), effect };
}

/** What is quiet at once is seen at once; a prompt that is waited for is not asked four times a second. */
function nextLook({ known: { probe } }: PoolObservation, now: number): number {
  if (!probe || 'error' in probe) return soon;
  return now - Date.parse(probe.status.drain.requestedAt) > 5_000 ? patient : soon;
}

/** The Pod of the recorded instance, while it can be spoken to. */
function instanceOf(o: PoolObservation): PodView | undefined {
  const uid = o.pool.status?.activeInstance?.podUID;
  return o.pods.find((pod) => pod.uid === uid && pod.address !== undefined);
}
