import { describe, test } from '@jest/globals';
import fc from 'fast-check';
import { decide } from '../../../src/controller/pool/decide.js';
import type { PoolDecision, PoolEffect } from '../../../src/controller/pool/decision.js';
import type { PoolObservation } from '../../../src/controller/pool/observation.js';
import { isIdle } from '../../../src/controller/pool/rule.js';
import { nextStatus } from '../../../src/controller/pool/status.js';
import {
  ago,
  claim,
  deleted,
  drainRequested,
  gone,
  having,
  knowing,
  now,
  observed,
  ofSession,
  plain,
  pod,
  probed,
  recording,
  rerendered,
  reservedBy,
  stages,
  stored,
  template,
  templateDigest,
  unwanted,
  unwantedSince,
  warmPool,
  withClaim,
  withPod,
  withStatus,
  withTemplate,
} from '../../support/pool-observation.js';
import { live } from '../../support/pool-model.js';
import type { Change } from '../../support/pool-observation.js';

const foreign = { owned: false };
const secondPod = { ...pod, uid: 'pod-uid-2', name: 'another' };
const refused = withClaim({ verdict: { state: 'refused', says: 'InvalidMetadata: no' } });
const claimedAt = (milliseconds: number): Change =>
  withClaim({ live: stored(claim, 'claim-uid', { creationTimestamp: ago(milliseconds) }) });
const idleNow = having({ demand: unwantedSince(now - 900_000) });

describe('whatever is observed', () => {
  const later_ = (at: number): Change => knowing({ probe: { ...probed({}, at) } });
  const pieces: readonly Change[] = [
    unwanted,
    deleted,
    gone,
    rerendered,
    refused,
    idleNow,
    withClaim(foreign),
    withClaim({ whole: false }),
    withClaim({ deleting: true }),
    withClaim({ verdict: { state: 'unseen' } }),
    withClaim({ verdict: { state: 'blocked', says: 'exceeded quota' } }),
    withClaim({ verdict: { state: 'ended', says: 'expired' } }),
    claimedAt(3_600_000),
    having({ orphans: [template] }),
    having({ strangers: [template] }),
    having({ unguarded: ['deny-all'] }),
    knowing({ probe: probed({ sessionIdentityCapacity: undefined }) }),
    withTemplate(foreign),
    withTemplate({ specDigest: 'another', whole: false }),
    having({ template: undefined }),
    having({ warmPool: undefined }),
    having({ warmPool: { live: warmPool, owned: false, whole: true } }),
    having({ claim: undefined }),
    having({ sandbox: undefined }),
    having({ pods: [] }),
    having({ pods: [pod, secondPod] }),
    having({ enabled: false }),
    having({ missingKinds: ['Sandbox'] }),
    having({ unservedFields: ['Sandbox.spec.x is not served'] }),
    having({ unreadableKinds: ['Sandbox'] }),
    having({ problem: { at: 'RuntimePool a/b', allowed: 'another' } }),
    having({ poolClass: { state: 'drifted', says: 'it changed' } }),
    having({ poolClass: { state: 'invalid', says: 'it is invalid' } }),
    having({ credentials: { state: 'lost' } }),
    having({ credentials: { state: 'ready', authSecretUid: 'another', tokenGeneration: 'x' } }),
    having({ credentials: { state: 'unusable', says: 'no' } }),
    having({ recycling: { count: 3, at: now - 1_000, because: 'it ended' } }),
    having({ demand: unwantedSince(NaN) }),
    ofSession,
    having({ cordonedNode: 'node-1' }),
    withPod({ address: undefined, unschedulable: { reason: 'Unschedulable', message: 'no room' } }),
    having({ neighbours: [{ ...observed('serving', plain, idleNow), placed: true }] }),
    withPod({ uid: 'pod-uid-2' }),
    withPod({ ready: false }),
    withPod({ address: undefined, deleting: true, ready: false }),
    withPod({ address: undefined, finished: true, ready: false }),
    withPod({ containerId: 'containerd://2' }),
    withPod({ waiting: 'CrashLoopBackOff', ready: false }),
    withPod({ identity: undefined }),
    recording({ instance: undefined }),
    recording({ instance: 'unreadable' }),
    recording({ instance: { authSecretUID: 'another', workloadUID: pod.uid } }),
    recording({ templateDigest: undefined }),
    recording({ templateDigest }),
    knowing({ suspect: true }),
    knowing({ attested: undefined }),
    knowing({ attested: undefined, undecided: { podUid: pod.uid, at: now, count: 2, says: 'no' } }),
    knowing({ seeded: undefined }),
    knowing({ seeding: 'conflict' }),
    knowing({ seeding: { failedAt: now, says: 'no' } }),
    knowing({ authenticated: 'unread' }),
    knowing({ authenticated: 'lost' }),
    knowing({ probe: undefined }),
    knowing({ probe: probed({ lifecycle: 'unhealthy' }) }),
    knowing({ probe: probed({ lifecycle: 'booting' }) }),
    knowing({ probe: probed(drainRequested) }),
    later_(now - 3_600_000),
    knowing({ probe: { podUid: pod.uid, at: now, error: 'no', since: now - 70_000 } }),
    reservedBy(30_000),
    reservedBy(-30_000),
    withStatus({ lifecycle: 'Quiescent' }),
    withStatus({ activeInstance: undefined }),
    withStatus({ lifecycle: 'Stopped', observedGeneration: 1 }),
    (o) => ({ ...o, isolation: o.isolation.map((one) => ({ ...one, state: 'changed' })) }),
    (o) => ({ ...o, isolation: o.isolation.map((one) => ({ ...one, state: 'foreign' })) }),
  ];
  const families: fc.Arbitrary<readonly Change[]> = fc.constantFrom([], [plain]);
  const observations: fc.Arbitrary<PoolObservation> = fc
    .tuple(fc.constantFrom(...stages), fc.array(fc.constantFrom(...pieces), { maxLength: 5 }), families)
    .map(([stage, changes, family]) => observed(stage, ...changes, ...family));
  const holds = (check: (o: PoolObservation, decision: PoolDecision) => boolean): void => {
    fc.assert(
      fc.property(observations, (o) => check(o, decide(o, now))),
      { numRuns: 3_000 },
    );
  };
  const touched = (effect: PoolEffect | undefined): readonly string[] => {
    if (effect?.do === 'delete-claim' || effect?.do === 'stop-workload') return [effect.claim.metadata.uid ?? ''];
    if (effect?.do === 'remove') return effect.objects.map(({ metadata }) => metadata.uid ?? '');
    if (effect?.do === 'ensure' || effect?.do === 'start-workload')
      return effect.objects.flatMap(({ live }) => live?.metadata.uid ?? []);
    return [];
  };

  test('a bounded number of steps leads to a pool that serves, rests, is gone, or says why it does neither', () => {
    const changing = fc.array(fc.nat({ max: pieces.length - 1 }), { maxLength: 5 });
    const lives = fc.tuple(fc.constantFrom(...stages), changing, fc.boolean());
    fc.assert(
      fc.property(lives, ([stage, changes, isPlain]) => {
        const pieced = changes.flatMap((index) => pieces[index] ?? []);
        const life = live(observed(stage, ...pieced, ...(isPlain ? [plain] : [])), now);
        const { end, message } = life;
        if (end === 'never' || (end !== 'Serving' && end !== 'Stopped' && end !== 'Gone' && message === ''))
          throw new Error(JSON.stringify({ stage, changes, isPlain, ...life }));
      }),
      { numRuns: 3_000 },
    );
  });

  test('there is a decision, and a wait is a number of milliseconds that is not below zero', () => {
    holds((_o, { wait }) => wait === undefined || (Number.isFinite(wait) && wait >= 0));
  });

  test('only the barrier of a quiet instance is looked at again without a pause', () => {
    holds((_o, { wait, status }) => wait !== 0 || status?.lifecycle === 'Quiescent');
  });

  test('a pool of one Task takes no work once its Task is over and has given its slot back', () => {
    holds((o, { status }) => !(o.ofOneTask && isIdle(o, now)) || status?.admission !== 'Accepting');
  });

  test('an effect is not waited for', () => {
    holds((_o, { effect, wait }) => effect === undefined || wait === undefined);
  });

  test('credentials are sent to the compared and bound Pod only', () => {
    holds((o, { effect }) => {
      if (effect?.do !== 'seed') return true;
      const { instance } = o.recorded;
      return (
        o.known.attested === effect.pod.uid &&
        typeof instance === 'object' &&
        instance.workloadUID === effect.pod.uid &&
        o.credentials.state === 'ready' &&
        instance.authSecretUID === o.credentials.authSecretUid
      );
    });
  });

  test('no claim is made while there is a claim, a Sandbox or a Pod', () => {
    holds((o, { effect }) => effect?.do !== 'create-claim' || (!o.claim && !o.sandbox && o.pods.length === 0));
  });

  test('a pool has nothing of the other kind', () => {
    const ofProvider = ['create-claim', 'delete-claim', 'attest', 'bind-instance', 'seed', 'record-template'];
    holds((o, { effect }) => {
      const others = o.family === 'plain' ? ofProvider : ['start-workload', 'stop-workload'];
      return effect === undefined || !others.includes(effect.do);
    });
  });

  test('a Deployment is asked for a Pod only when there is none', () => {
    holds((o, { effect }) => effect?.do !== 'start-workload' || (!o.claim && o.pods.length === 0));
  });

  test('no claim is made with credentials that a Pod was bound to', () => {
    holds((o, { effect }) => effect?.do !== 'create-claim' || o.recorded.instance === undefined);
  });

  test('nothing that is not owned is deleted or replaced', () => {
    holds((o, { effect }) => {
      const foreigners = [o.claim, o.template, o.warmPool].flatMap((one) => (one && !one.owned ? one.live.metadata.uid : []));
      const isolation = o.isolation.flatMap((one) => (one.state === 'foreign' ? one.live?.metadata.uid : []));
      return touched(effect).every((uid) => !foreigners.includes(uid) && !isolation.includes(uid));
    });
  });

  test('work is admitted only by an instance that answered, in its own Pod, under whole isolation', () => {
    holds((o, { status }) => {
      if (status?.admission !== 'Accepting') return true;
      const { probe } = o.known;
      return (
        o.isolation.every(({ state }) => state === 'whole') &&
        probe !== undefined &&
        !('error' in probe) &&
        o.pods.some(({ uid }) => uid === probe.podUid && (o.family === 'plain' || uid === o.known.attested))
      );
    });
  });

  test('saying the same twice changes nothing', () => {
    holds((o, { status }) => {
      if (!status) return true;
      const once = nextStatus(o, status, now);
      const twice = nextStatus({ ...o, pool: { ...o.pool, status: once } }, status, now + 1_000);
      return JSON.stringify(once) === JSON.stringify(twice);
    });
  });

  test('only reservations of the instance that stays are kept', () => {
    holds((o, { status }) => {
      if (!status) return true;
      const { capacity, activeInstance } = nextStatus(o, status, now);
      return (capacity?.reservations ?? []).every((one) => one.runtimeInstanceID === activeInstance?.runtimeInstanceID);
    });
  });

  test('without an instance nothing is counted', () => {
    holds((o, { status }) => {
      if (!status) return true;
      const { capacity = {}, activeInstance } = nextStatus(o, status, now);
      const { residentSessions, runningPrompts, pendingPermissions, liveDescendants } = capacity;
      const counted = [residentSessions, runningPrompts, pendingPermissions, liveDescendants];
      return activeInstance !== undefined || counted.every((count) => count === 0);
    });
  });
});
