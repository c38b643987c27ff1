import type { PoolReservation } from '../../api/index.js';
import { sessionUid } from '../../domain/names.js';
import { describeFinding } from '../../lib/errors.js';
import { activeInstance, instanceProblem } from './accept.js';
import { end } from './ending.js';
import type { EndPlan } from './ending.js';
import { sessionsFailed } from '../../harness/introspection.js';
import type { Status } from '../../harness/introspection.js';
import type { PoolDecision, StatusIntent } from './decision.js';
import { degraded, serving, starting } from './intents.js';
import type { PodView, PoolObservation, Probe } from './observation.js';
import { backoff, recycled, startedAgain } from './recycle.js';
import { candidate, heldReservations, keepSame, laterLook, sameContainer } from './rule.js';
import type { PoolRule } from './rule.js';
import { awaited, startIsOverdue } from './starting.js';

/** From a Pod that has an address to an instance that takes work. Source: workload.md §4–5, §7.4. */

/**
 * Compared before it is bound, seeded or asked anything, and again when something that was watched differs from it. Not before it has an address:
 * what is compared is to be what credentials are sent to a moment later, and its container still starts meanwhile.
 */
export const notAttested: PoolRule = (o, now) => {
  const pod = candidate(o);
  if (!pod) return undefined;
  if (o.known.mismatch?.podUid === pod.uid)
    return recycled(
      o,
      'not-attested',
      `the materialization does not match what was rendered: ${describeFinding(o.known.mismatch.finding)}`,
    );
  if (o.known.attested === pod.uid && !o.known.suspect) return undefined;
  if (!o.sandbox) return awaited(o, now, 'the Sandbox is not there yet');
  const { undecided } = o.known;
  const left = undecided?.podUid === pod.uid ? undecided.at + Math.min(backoff(undecided.count), laterLook) - now : 0;
  if (undecided && left > 0) {
    const message = `it is undecided whether the Pod is what admission makes of it, which cannot be asked: ${undecided.says}`;
    return { status: degraded(message, keepSame(o, pod)), wait: left };
  }
  return { effect: { do: 'attest', pod } };
};

export const notBound: PoolRule = (o) => {
  const pod = candidate(o);
  if (!pod || o.credentials.state !== 'ready') return undefined;
  const { authSecretUid } = o.credentials;
  const bound = o.recorded.instance;
  if (bound === undefined) return { effect: { do: 'bind-instance', authSecretUid, podUid: pod.uid } };
  const same = bound !== 'unreadable' && bound.authSecretUID === authSecretUid && bound.workloadUID === pod.uid;
  return same
    ? undefined
    : recycled(o, 'instance-changed', 'the physical instance changed after credentials were bound to another');
};

export const notSeeded: PoolRule = (o, now) => {
  const pod = candidate(o);
  if (!pod) return undefined;
  const { seeded, seeding } = o.known;
  if (seeding === 'conflict') return recycled(o, 'seed-conflict', 'the instance was credential-seeded by another party');
  if (seeded?.podUid === pod.uid)
    return sameContainer(seeded.containerId, pod.containerId) ? undefined : recycled(o, 'restarted', startedAgain);
  if (!seeding || now - seeding.failedAt >= 1_000) return { effect: { do: 'seed', pod } };
  const message = `credentials cannot be delivered: ${seeding.says}`;
  return keepSame(o, pod) === 'keep' ? { status: degraded(message, 'keep'), wait: 1_000 } : awaited(o, now, message, 1_000);
};

export const notProbed: PoolRule = (o, now) => {
  const pod = candidate(o);
  const { probe } = o.known;
  if (!pod) return undefined;
  if (probe?.podUid !== pod.uid || !sameContainer(probe.containerId, pod.containerId)) return { effect: { do: 'probe', pod } };
  const failed =
    'error' in probe ? { status: degraded(`the instance cannot be asked: ${probe.error}`, keepSame(o, pod)) } : undefined;
  const left = probe.at + goodFor(pod, probe) - now;
  if (left <= 0) return { ...failed, effect: { do: 'probe', pod } };
  return failed && neverRight(o, now, { ...failed, wait: left });
};

/** Milliseconds for which an answer counts. Whoever is well and not in use says so when that changes, by its Pod or by its Task. */
function goodFor({ ready }: PodView, probe: Probe): number {
  if ('error' in probe || probe.status.lifecycle === 'booting' || !ready) return 1_000;
  const { lifecycle, pressure } = probe.status;
  return lifecycle === 'ready' && pressure.residentSessions + pressure.activePrompts === 0 ? Infinity : laterLook;
}

export const notAccepted: PoolRule = (o, now) => {
  const pod = candidate(o);
  const { probe } = o.known;
  if (!pod || !probe || 'error' in probe) return undefined;
  const finding = pod.identity
    ? instanceProblem(o.pool, pod, pod.identity, probe)
    : { at: `Pod ${pod.name}`, field: 'env', allowed: 'the literal values that it was rendered with' };
  return finding && neverRight(o, now, { status: degraded(describeFinding(finding), keepSame(o, pod)), wait: laterLook });
};

/** One that was admitted stays, to be drained; one that never was is given up like any start that takes too long. */
function neverRight(o: PoolObservation, now: number, decision: PoolDecision & { readonly status: StatusIntent }): PoolDecision {
  if (decision.status.instance === 'keep' || !startIsOverdue(o, now)) return decision;
  return recycled(o, 'cold-start', decision.status.message);
}

/** Its volumes may hold what the boot before it left. */
export const restarted: PoolRule = (o) => {
  const recorded = o.pool.status?.activeInstance;
  const { probe } = o.known;
  if (!recorded || !probe || 'error' in probe || recorded.podUID !== probe.podUid) return undefined;
  const same = recorded.bootID === probe.status.fence.supervisorBootID;
  return same ? undefined : recycled(o, 'restarted', startedAgain);
};

/** Each boot has a number of user ids that are never used twice; another one begins before they are gone. Source: workload.md §7.7. */
export const identitiesExhausted: PoolRule = (o, now) => {
  const { probe } = o.known;
  if (!probe || 'error' in probe || !isExhausted(probe.status)) return undefined;
  return end(o, now, {
    reason: 'session_identity_capacity',
    unused: 'identity-capacity',
    admission: {
      Draining: 'IdentityCapacityDraining',
      Quiescent: 'IdentityCapacityQuiescent',
      Stopping: 'IdentityCapacityStopping',
    },
  });
};

/** One that says nothing of it is as good as exhausted. */
function isExhausted({ sessionIdentityCapacity: capacity }: Status): boolean {
  return !capacity || capacity.remaining <= capacity.exhaustionReserve;
}

export const unhealthy: PoolRule = (o, now) => {
  const { probe } = o.known;
  if (!probe || 'error' in probe) return undefined;
  if (probe.status.lifecycle === 'unhealthy') return recycled(o, 'unhealthy', 'the instance says that it is unhealthy');
  const { lifecycle, drain } = probe.status;
  // One that drains never takes work again, whoever asked it to.
  if (drain.requested || lifecycle === 'draining' || lifecycle === 'terminating')
    return end(o, now, { reason: 'runtime_pool_drained_instance', ...givenUp(drain.reason) });
  return lifecycle === 'booting' ? { status: starting('the instance is booting'), wait: 1_000 } : undefined;
};

/** An instance in which no session begins counts as given up: the next one may be no better. */
function givenUp(reason: string | undefined): Pick<EndPlan, 'used'> {
  const because = 'sessions could not be created in the instance';
  return reason === sessionsFailed ? { used: { cause: 'sessions-failed', because } } : {};
}

/** Slots that Tasks hold, and those that are used without one: what was left behind, or is about to be. */
function slotsInUse(reserved: readonly PoolReservation[], { pressure, sessions, activePrompts }: Status) {
  const holders = new Set(reserved.map(({ taskUID }) => taskUID));
  const seen = new Set(reserved.map(({ taskUID }) => sessionUid(taskUID)));
  const ofHolders = {
    sessions: (sessions ?? []).filter(({ runtimeSessionUID }) => seen.has(runtimeSessionUID)).length,
    prompts: (activePrompts ?? []).filter(({ taskUID }) => holders.has(taskUID)).length,
  };
  return {
    sessions: reserved.reduce((sum, one) => sum + one.residentSlots, pressure.residentSessions - ofHolders.sessions),
    prompts: reserved.reduce((sum, one) => sum + one.promptSlots, pressure.activePrompts - ofHolders.prompts),
  };
}

export const admitting: PoolRule = (o, now) => {
  const pod = candidate(o);
  const { probe } = o.known;
  if (!pod?.identity || !probe || 'error' in probe) return undefined;
  const { pressure } = probe.status;
  const { limits } = probe.capabilities;
  const { maxResidentSessions = 1, maxRunningPrompts = 1 } = o.pool.spec.capacity ?? {};
  const counters = {
    maxResidentSessions: Math.min(maxResidentSessions, limits.maxResidentSessions),
    maxRunningPrompts: Math.min(maxRunningPrompts, limits.maxConcurrentPrompts),
    residentSessions: pressure.residentSessions,
    runningPrompts: pressure.activePrompts,
    pendingPermissions: pressure.pendingPermissions,
    liveDescendants: pressure.liveDescendants,
  };
  const { sessions, prompts } = slotsInUse(heldReservations(o, now), probe.status);
  const full = sessions >= counters.maxResidentSessions || prompts >= counters.maxRunningPrompts;
  const status = serving(activeInstance(pod, pod.identity, probe.status, now), counters, full);
  const wait = probe.at + goodFor(pod, probe) - now;
  return wait === Infinity ? { status } : { status, wait };
};
