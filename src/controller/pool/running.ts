import { describeFinding } from '../../lib/errors.js';
import { activeInstance, instanceProblem } from './accept.js';
import type { PoolDecision, StatusIntent } from './decision.js';
import { end, isBeingDeleted, isGone, rollingOut } from './ending.js';
import { degraded, draining, serving, starting, stopping, timedOut } from './intents.js';
import type { PodView, PoolObservation, Probe } from './observation.js';
import { firstOf, heldReservations, isUnwanted, laterLook } from './rule.js';
import type { PoolRule } from './rule.js';

/** How a wanted pool gets from nothing to an instance that takes work, and stays there. Source: workload.md §7.3–7.4. */
export const running: PoolRule = (o, now) =>
  firstOf([
    classUnusable,
    switchedOff,
    claimRefused,
    credentialsConsumed,
    credentialsUnknown,
    credentialsLost,
    templateChanged,
    rollingOut,
    workloadAbsent,
    secretsStale,
    claimGoing,
    claimAbsent,
    ended,
    coldStart,
    notAttested,
    notBound,
    notSeeded,
    notProbed,
    notAccepted,
    restarted,
    unhealthy,
    admitting,
  ])(o, now);

/** Never rendered again from another class: a pool of one that changed ends as if it were not wanted, and the Task says why. */
const classUnusable: PoolRule = (o, now) => {
  const { poolClass, demand } = o;
  if (poolClass.state === 'ready') return undefined;
  if (poolClass.state !== 'drifted') return { status: degraded(poolClass.says, keepLive(o)), wait: laterLook };
  if (!isGone(o)) return end(o, now, 'runtime_pool_class_changed');
  return { status: degraded(poolClass.says), ...(demand.active === 0 ? { effect: { do: 'delete-pool' } } : {}) };
};

const switchedOff: PoolRule = (o) =>
  o.enabled ? undefined : { status: degraded('the provider is switched off (--agent-sandbox-enabled)', keepLive(o)) };

const claimRefused: PoolRule = (o) => {
  if (!o.claim || o.claim.deleting || o.claim.verdict.state === 'open') return undefined;
  return { status: degraded(`provider workspace claim is not ready: ${o.claim.verdict.says}`, keepLive(o)), wait: laterLook };
};

/** Bootstrap material serves one Pod only. What was made since for another epoch was given to none. */
const credentialsConsumed: PoolRule = (o) => {
  const bound = o.recorded.instance;
  if (bound === undefined || !isGone(o)) return undefined;
  const unused = o.credentials.state === 'ready' && bound !== 'unreadable' && bound.authSecretUID !== o.credentials.authSecretUid;
  return { effect: unused ? { do: 'unbind-instance' } : { do: 'retire-credentials' } };
};

const credentialsUnknown: PoolRule = (o) => {
  const { credentials } = o;
  if (credentials.state === 'unread') return { ...preparing(o), effect: { do: 'read-credentials' } };
  if (credentials.state === 'unusable') return { status: degraded(credentials.says, keepLive(o)), wait: laterLook };
  return credentials.state === 'unpublished' ? { effect: { do: 'create-credentials' } } : undefined;
};

const credentialsLost: PoolRule = (o) => {
  if (o.credentials.state !== 'lost') return undefined;
  const because = 'the private Secret of the pool is gone';
  if (o.claim && !o.claim.deleting) return recycled(o, because);
  return isGone(o) ? { effect: { do: 'retire-credentials' } } : { status: stopping(because) };
};

/** Its spec is recorded when it is ours to the letter; any other spec was written by someone else. Source: workload.md §4 (a). */
const templateChanged: PoolRule = (o) => {
  const { template, recorded } = o;
  if (!template || recorded.templateDigest === template.specDigest) return undefined;
  if (isGone(o)) {
    if (template.whole) return { effect: { do: 'record-template', digest: template.specDigest } };
    const wanted = o.rendered?.workload.find(({ kind }) => kind === 'SandboxTemplate');
    return wanted && { effect: { do: 'ensure', objects: [{ wanted, live: template.live }] } };
  }
  const because =
    recorded.templateDigest === undefined
      ? 'the template has no controller-owned integrity record'
      : 'the template failed its controller-owned integrity check';
  return o.claim && !o.claim.deleting ? recycled(o, because) : { status: stopping(because) };
};

/** Comes before everything that would begin or end an instance: what still runs must not run without it. */
export const isolationBroken: PoolRule = (o) => {
  const broken = o.isolation.filter(({ state }) => state !== 'whole');
  if (broken.length === 0 || isBeingDeleted(o) || (isUnwanted(o) && isGone(o))) return undefined;
  const effect = { do: 'ensure', objects: broken } as const;
  const names = broken.map(({ wanted }) => `${wanted.kind} ${wanted.metadata.name}`).join(', ');
  return isLive(o) ? { status: degraded(`isolation is being repaired: ${names}`, 'keep'), effect } : { effect };
};

const workloadAbsent: PoolRule = (o) => {
  const objects = (o.rendered?.workload ?? []).flatMap((wanted) => {
    const child = wanted.kind === 'SandboxTemplate' ? o.template : o.warmPool;
    const whole = child && (wanted.kind === 'SandboxTemplate' || o.warmPool?.whole === true);
    return whole ? [] : [{ wanted, live: child?.live }];
  });
  const [next] = objects;
  return next && { effect: { do: 'ensure', objects: [next] } };
};

const secretsStale: PoolRule = (o) =>
  o.staleSecrets.length > 0 ? { effect: { do: 'remove', objects: o.staleSecrets } } : undefined;

const claimGoing: PoolRule = (o) => (o.claim?.deleting ? { status: stopping('the sandbox is being deleted') } : undefined);

const claimAbsent: PoolRule = (o, now) => {
  if (o.claim) return undefined;
  if (!isGone(o)) return { status: stopping('the old sandbox is not gone yet') };
  // What was there for Tasks that are over is not made again for nobody.
  if (o.demand.active === 0 && heldReservations(o, now).length === 0) return { effect: { do: 'scale-to-zero' } };
  const next = o.recycling.at + backoff(o.recycling.count);
  if (next > now) {
    const message = `the sandbox was given up ${o.recycling.count} times; the next follows at ${new Date(next).toISOString()}`;
    return { status: degraded(message), wait: next - now };
  }
  const claim = o.rendered?.claim;
  return claim && { status: starting('the sandbox is asked for'), effect: { do: 'create-claim', claim } };
};

/** The provider replaces no Pod that ended by itself. One that is being deleted passes through the same phases, and is replaced. */
const ended: PoolRule = (o) => {
  const pod = o.pods.find(({ finished, deleting }) => finished && !deleting);
  return pod && recycled(o, `Pod ${pod.name} ended by itself`);
};

const coldStart: PoolRule = (o, now) => {
  // A Pod may have its address long before its container runs.
  const stuck = o.pods.find(({ waiting, deleting }) => waiting !== undefined && !deleting);
  if (stuck) {
    return { status: degraded(`the container does not start: ${stuck.waiting ?? ''}`, keepSame(o, stuck)), wait: laterLook };
  }
  if (candidate(o)) return undefined;
  const unscheduled = o.pods.find((one) => one.unschedulable)?.unschedulable;
  if (unscheduled) {
    const { reason, message } = unscheduled;
    return {
      status: degraded(`the Pod cannot be scheduled: ${message}`, 'none', { status: 'False', reason, message }),
      wait: laterLook,
    };
  }
  if (o.pool.status?.activeInstance && o.pods.some(({ uid }) => uid === o.pool.status?.activeInstance?.podUID))
    return { status: degraded('the Pod of the instance is not ready', 'keep'), wait: laterLook };
  const hindrance = o.claim?.verdict.says;
  return awaited(o, now, `the sandbox is being started${hindrance === undefined ? '' : `: ${hindrance}`}`);
};

/** Compared before it is bound, seeded or asked anything, and again when something that was watched differs from it. */
const notAttested: PoolRule = (o, now) => {
  const pod = candidate(o);
  if (!pod) return undefined;
  if (o.known.mismatch?.podUid === pod.uid)
    return recycled(o, `the materialization does not match what was rendered: ${describeFinding(o.known.mismatch.finding)}`);
  if (o.known.attested === pod.uid && !o.known.suspect) return undefined;
  if (!o.sandbox) return awaited(o, now, 'the Sandbox is not there yet');
  return { effect: { do: 'attest', pod } };
};

const notBound: PoolRule = (o) => {
  const pod = candidate(o);
  if (!pod || o.credentials.state !== 'ready') return undefined;
  const { authSecretUid } = o.credentials;
  const bound = o.recorded.instance;
  if (bound === undefined) return { effect: { do: 'bind-instance', authSecretUid, podUid: pod.uid } };
  const same = bound !== 'unreadable' && bound.authSecretUID === authSecretUid && bound.workloadUID === pod.uid;
  return same ? undefined : recycled(o, 'the physical instance changed after credentials were bound to another');
};

const notSeeded: PoolRule = (o, now) => {
  const pod = candidate(o);
  if (!pod) return undefined;
  const { seeded, seeding } = o.known;
  if (seeding === 'conflict') return recycled(o, 'the instance was credential-seeded by another party');
  if (seeded?.podUid === pod.uid)
    return sameContainer(seeded.containerId, pod.containerId) ? undefined : recycled(o, startedAgain);
  if (!seeding || now - seeding.failedAt >= 1_000) return { effect: { do: 'seed', pod } };
  const message = `credentials cannot be delivered: ${seeding.says}`;
  return keepSame(o, pod) === 'keep' ? { status: degraded(message, 'keep'), wait: 1_000 } : awaited(o, now, message, 1_000);
};

const notProbed: PoolRule = (o, now) => {
  const pod = candidate(o);
  const { probe } = o.known;
  if (!pod) return undefined;
  if (probe?.podUid !== pod.uid) return { effect: { do: 'probe', pod } };
  const failed =
    'error' in probe ? { status: degraded(`the instance cannot be asked: ${probe.error}`, keepSame(o, pod)) } : undefined;
  const left = probe.at + goodFor(pod, probe) - now;
  if (left <= 0) return { ...failed, effect: { do: 'probe', pod } };
  return failed && { ...failed, wait: left };
};

/** Milliseconds for which an answer counts. Whoever is well and not in use says so when that changes, by its Pod or by its Task. */
function goodFor({ ready }: PodView, probe: Probe): number {
  if ('error' in probe || probe.status.lifecycle === 'booting' || !ready) return 1_000;
  const { lifecycle, pressure } = probe.status;
  return lifecycle === 'ready' && pressure.residentSessions + pressure.activePrompts === 0 ? Infinity : laterLook;
}

const notAccepted: PoolRule = (o) => {
  const pod = candidate(o);
  const { probe } = o.known;
  if (!pod || !probe || 'error' in probe) return undefined;
  const finding = pod.identity
    ? instanceProblem(o.pool, pod, pod.identity, probe)
    : { at: `Pod ${pod.name}`, field: 'env', allowed: 'the literal values that it was rendered with' };
  return finding && { status: degraded(describeFinding(finding), keepSame(o, pod)), wait: laterLook };
};

const startedAgain = 'the supervisor was started again in place';

/** Its volumes may hold what the boot before it left. */
const restarted: PoolRule = (o) => {
  const recorded = o.pool.status?.activeInstance;
  const { probe } = o.known;
  if (!recorded || !probe || 'error' in probe || recorded.podUID !== probe.podUid) return undefined;
  const same = recorded.bootID === probe.status.fence.supervisorBootID;
  return same ? undefined : recycled(o, startedAgain);
};

const unhealthy: PoolRule = (o) => {
  const { probe } = o.known;
  if (!probe || 'error' in probe) return undefined;
  if (probe.status.lifecycle === 'unhealthy') return recycled(o, 'the instance says that it is unhealthy');
  const { lifecycle, drain } = probe.status;
  if (drain.requested || lifecycle === 'draining' || lifecycle === 'terminating')
    return { status: draining('the instance is draining'), wait: laterLook };
  return lifecycle === 'booting' ? { status: starting('the instance is booting'), wait: 1_000 } : undefined;
};

const admitting: PoolRule = (o, now) => {
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
  const reserved = heldReservations(o, now);
  const sessions = reserved.reduce((sum, { residentSlots }) => sum + residentSlots, counters.residentSessions);
  const prompts = reserved.reduce((sum, { promptSlots }) => sum + promptSlots, counters.runningPrompts);
  const full = sessions >= counters.maxResidentSessions || prompts >= counters.maxRunningPrompts;
  const status = serving(activeInstance(pod, pod.identity, probe.status, now), counters, full);
  const wait = probe.at + goodFor(pod, probe) - now;
  return wait === Infinity ? { status } : { status, wait };
};

/** The one Pod that may be an instance: it has an address and nobody ends it. */
function candidate({ pods }: PoolObservation): PodView | undefined {
  const live = pods.filter(({ address }) => address !== undefined);
  return live.length === 1 ? live[0] : undefined;
}

function isLive({ pool }: PoolObservation): boolean {
  return pool.status?.activeInstance !== undefined;
}

const keepLive = (o: PoolObservation): StatusIntent['instance'] => (isLive(o) ? 'keep' : 'none');
const keepSame = (o: PoolObservation, pod: PodView): StatusIntent['instance'] =>
  o.pool.status?.activeInstance?.podUID === pod.uid ? 'keep' : 'none';

/** Said once: reading again what may have been mended is no change. */
const preparing = ({ pool }: PoolObservation): Pick<PoolDecision, 'status'> =>
  [undefined, 'Stopped'].includes(pool.status?.lifecycle) ? { status: starting('the pool is being prepared') } : {};

function recycled(o: PoolObservation, because: string): PoolDecision {
  return o.claim && !o.claim.deleting
    ? { status: degraded(because), effect: { do: 'delete-claim', claim: o.claim.live, recycle: true, warn: true, because } }
    : { status: degraded(because), wait: laterLook };
}

/** Still starting, until the time that a cold start may take is over. */
function awaited(o: PoolObservation, now: number, message: string, wait?: number): PoolDecision {
  const timeout = (o.pool.spec.coldStartTimeoutSeconds ?? 120) * 1000;
  const rollout = o.pool.status?.conditions?.find(({ type }) => type === 'RolloutReady');
  const current = rollout?.observedGeneration === o.pool.metadata.generation;
  const over = current && rollout?.reason === 'RolloutTimedOut';
  // The condition keeps the time of the draining before it; the claim is never older than its start.
  const times = [rollout?.lastTransitionTime, o.claim?.live.metadata.creationTimestamp].map((time) => Date.parse(time ?? ''));
  const known = times.filter((time) => time <= now);
  const began = current && rollout?.reason === 'RolloutStarting' && known.length > 0 ? Math.max(...known) : now;
  if (over || now - began >= timeout)
    return { status: timedOut(`${message}; that takes longer than ${timeout / 1000} s`), wait: wait ?? laterLook };
  return { status: starting(message), wait: Math.min(wait ?? Infinity, began + timeout - now) };
}

/** Between given-up sandboxes: 0, 1, 2, 4 … 60 s. */
function backoff(count: number): number {
  return count === 0 ? 0 : Math.min(1_000 * 2 ** (count - 1), 60_000);
}

/** The id appears after the container was first seen; only another one is another start. */
function sameContainer(known: string | undefined, found: string | undefined): boolean {
  return known === undefined || found === undefined || known === found;
}
