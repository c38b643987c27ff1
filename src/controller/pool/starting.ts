import { counted } from '../../lib/text.js';
import type { PoolDecision } from './decision.js';
import { isUndemanded } from './demand.js';
import { isGone } from './ending.js';
import { degraded, starting, timedOut } from './intents.js';
import type { ClaimVerdict, PoolObservation } from './observation.js';
import { backoff, goneSoon, recycled, withEnd } from './recycle.js';
import { candidate, coldStartTimeout, heldReservations, keepLive, keepSame, laterLook, whatOf } from './rule.js';
import type { PoolRule } from './rule.js';
import { makeRoom } from './room.js';

/** From a claim to a Pod that has an address. Source: workload.md §7.3–7.4. */

/** Milliseconds in which a provider that runs has looked at a claim. It takes a tenth of a second. Source: provider.md §4.3. */
const unseenFor = 5_000;
/** Milliseconds that the provider has for what a quota or an admission forbids; its own next try may be a quarter of an hour away. */
const blockedFor = 15_000;
/** Milliseconds until it is looked again whether the room that another pool gave was enough. */
const roomLook = 2_000;

export const claimGoing: PoolRule = (o) => (o.claim?.deleting ? goneSoon(o, `${whatOf(o)} is being deleted`) : undefined);

/** What no claim holds any more, as after an orphaning deletion, is ended by nobody else. */
export const orphaned: PoolRule = (o) =>
  !o.claim && o.orphans.length > 0
    ? { ...goneSoon(o, 'what the claim left behind is being deleted'), effect: { do: 'remove', objects: o.orphans } }
    : undefined;

export const claimAbsent: PoolRule = (o, now) => {
  if (o.claim) return undefined;
  if (!isGone(o)) return goneSoon(o, `${whatOf(o)} of before is not gone yet`);
  // What was there for Tasks that are over is not made again for nobody. What many share stays warm until nobody has asked for long enough.
  if (o.family === 'workspace' && o.demand.active === 0 && heldReservations(o, now).length === 0)
    return isUndemanded(o.demand)
      ? { effect: { do: 'scale-to-zero' } }
      : { status: degraded('the controller may not list the Tasks that may want this pool'), wait: laterLook };
  const { count, at, because } = o.recycling;
  const next = at + backoff(count);
  if (next > now) {
    const times = count === 1 ? 'once' : counted(count, 'time');
    const message = `${because}; ${whatOf(o)} was given up ${times}, the next follows at ${new Date(next).toISOString()}`;
    return { status: degraded(message), wait: next - now };
  }
  const claim = o.rendered?.claim;
  if (!claim) return undefined;
  // That it starts is said once there is something that starts.
  return o.family === 'workspace'
    ? { effect: { do: 'create-claim', claim } }
    : { effect: { do: 'start-workload', objects: [{ wanted: claim, live: o.template?.live }] } };
};

/** What the provider says of the claim. A refusal is kept, to be seen; what ended, or may pass, is tried again with another claim. */
export const claimRefused: PoolRule = (o, now) => {
  const verdict = o.claim?.verdict;
  if (!verdict || verdict.state === 'open') return undefined;
  if (verdict.state === 'unseen') return unseen(o, now);
  const { state, says } = verdict;
  if (state === 'ended') return recycled(o, 'claim-ended', `the provider ended the claim: ${says}`);
  const because = `${o.family === 'workspace' ? 'provider workspace claim is not ready' : 'the Deployment has no Pod'}: ${says}`;
  if (state === 'refused') return { status: degraded(because, keepLive(o)), wait: laterLook };
  if (candidate(o)) return undefined;
  const left = blockedFor - ageOfClaim(o, now);
  return left > 0 ? { status: degraded(because), wait: left } : recycled(o, 'claim-blocked', because);
};

/** Another claim would be seen no sooner. */
function unseen(o: PoolObservation, now: number): PoolDecision | undefined {
  if (o.sandbox || o.pods.length > 0) return undefined;
  const left = unseenFor - ageOfClaim(o, now);
  if (left > 0) return awaited(o, now, `${whatOf(o)} is being started`, left);
  const [who, what, controller] =
    o.family === 'workspace'
      ? ['the provider', 'claim', 'the agent-sandbox controller does not run, or does not handle claims']
      : ['Kubernetes', 'Deployment', 'the Deployment controller does not run'];
  const message = `${who} has not looked at the ${what} for ${unseenFor / 1000} s: ${controller}`;
  return { status: degraded(message) };
}

/** The provider replaces no Pod that ended by itself. One that is being deleted passes through the same phases, and is replaced. */
export const ended: PoolRule = (o) => {
  const pod = o.pods.find(({ finished, deleting }) => finished && !deleting);
  return pod && recycled(o, 'pod-ended', `Pod ${pod.name} ended`);
};

export const coldStart: PoolRule = (o, now) => {
  // A Pod may have its address long before its container runs.
  const stuck = o.pods.find(({ waiting, deleting }) => waiting !== undefined && !deleting);
  if (stuck) {
    const message = `the container does not start: ${stuck.waiting ?? ''}`;
    if (startIsOverdue(o, now)) return recycled(o, 'cold-start', message);
    return { status: degraded(withEnd(o, message), keepSame(o, stuck)), wait: laterLook };
  }
  if (candidate(o)) return undefined;
  // Another Pod would wait in the same queue.
  const unscheduled = o.pods.find((one) => one.unschedulable)?.unschedulable;
  if (unscheduled) {
    const { reason, message } = unscheduled;
    const status = degraded(`the Pod cannot be scheduled: ${message}`, 'none', { status: 'False', reason, message });
    const effect = makeRoom(o, now);
    return effect ? { status, effect } : { status, wait: o.neighbours.length > 0 ? roomLook : laterLook };
  }
  if (o.pool.status?.activeInstance && o.pods.some(({ uid }) => uid === o.pool.status?.activeInstance?.podUID))
    return { status: degraded(withEnd(o, 'the Pod of the instance is not ready'), 'keep'), wait: laterLook };
  const live = o.pods.filter(({ address }) => address !== undefined);
  const hindrance = live.length > 1 ? `there are ${live.map(({ name }) => name).join(' and ')}` : saidBy(o.claim?.verdict);
  return awaited(o, now, `${whatOf(o)} is being started${hindrance === undefined ? '' : `: ${hindrance}`}`);
};

/** Still starting, until the time that a cold start may take is over; then the sandbox is given up. */
export function awaited(o: PoolObservation, now: number, message: string, wait = Infinity): PoolDecision {
  const timeout = coldStartTimeout(o);
  const rollout = o.pool.status?.conditions?.find(({ type }) => type === 'RolloutReady');
  const current = rollout?.observedGeneration === o.pool.metadata.generation;
  // The condition keeps the time of the draining before it; the claim is never older than its start.
  const times = [Date.parse(rollout?.lastTransitionTime ?? ''), askedAt(o)];
  const known = times.filter((time) => time <= now);
  const began = current && rollout?.reason === 'RolloutStarting' && known.length > 0 ? Math.max(...known) : now;
  const over = (current && rollout?.reason === 'RolloutTimedOut') || now - began >= timeout;
  if (!over) return { status: starting(message), wait: Math.min(wait, began + timeout - now) };
  const because = `${message}; that takes longer than ${timeout / 1000} s`;
  return { ...recycled(o, 'cold-start', because), status: timedOut(because) };
}

function saidBy(verdict: ClaimVerdict | undefined): string | undefined {
  return verdict && 'says' in verdict ? verdict.says : undefined;
}

/** The claim is older than a cold start may take. */
export function startIsOverdue(o: PoolObservation, now: number): boolean {
  return ageOfClaim(o, now) >= coldStartTimeout(o);
}

function ageOfClaim(o: PoolObservation, now: number): number {
  const asked = askedAt(o);
  return Number.isNaN(asked) ? 0 : Math.max(now - asked, 0);
}

/** A claim is made for one instance. A Deployment outlives its Pods, so only who asked it knows when. */
function askedAt({ family, claim }: PoolObservation): number {
  return family === 'plain' ? (claim?.askedAt ?? NaN) : Date.parse(claim?.live.metadata.creationTimestamp ?? '');
}
