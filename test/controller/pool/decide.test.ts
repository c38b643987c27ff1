import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { format, resolveConfig } from 'prettier';
import { decide } from '../../../src/controller/pool/decide.js';
import type { Demand } from '../../../src/controller/pool/demand.js';
import type { Status } from '../../../src/harness/introspection.js';
import type { PoolDecision } from '../../../src/controller/pool/decision.js';
import type { Neighbour } from '../../../src/controller/pool/observation.js';
import {
  ago,
  bootID,
  capabilities,
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
  rendered,
  rerendered,
  reservedBy,
  stages,
  statusDocument,
  stored,
  template,
  unwanted,
  unwantedSince,
  wantedBy,
  warmPool,
  withClaim,
  withPod,
  withStatus,
  withTemplate,
} from '../../support/pool-observation.js';
import type { Change, Stage } from '../../support/pool-observation.js';
import { pageOf } from '../../support/pool-page.js';

const decided = (stage: Stage, ...changes: readonly Change[]): PoolDecision => decide(observed(stage, ...changes), now);

const sessionsFailing = {
  ...drainRequested,
  drain: { acceptingNewSessions: false, requested: true, requestedAt: ago(1_000), reason: 'session_creation_failed' },
};

/** A decision in a few words: `lifecycle/admission reason instance`, effect, wait. */
function said({ status, effect, wait }: PoolDecision) {
  const { RolloutReady } = status?.conditions ?? {};
  return {
    ...(status
      ? {
          status: `${status.lifecycle}/${status.admission}${RolloutReady ? ` ${RolloutReady.reason}` : ''}`,
          instance: typeof status.instance === 'string' ? status.instance : 'this',
        }
      : {}),
    ...(effect ? { effect: effect.do } : {}),
    ...(wait === undefined ? {} : { wait }),
  };
}
const failed = (instance: 'keep' | 'none' = 'none') => ({ status: 'Degraded/Closed RolloutFailed', instance });
const later = { wait: 10_000 };
const foreign = { owned: false };
const secondPod = { ...pod, uid: 'pod-uid-2', name: 'another' };
const refused = withClaim({ verdict: { state: 'refused', says: 'InvalidMetadata: no' } });
const claimedAt = (milliseconds: number): Change =>
  withClaim({ live: stored(claim, 'claim-uid', { creationTimestamp: ago(milliseconds) }) });
const unasked = having({ demand: unwantedSince(now) });
const idleNow = having({ demand: unwantedSince(now - 900_000) });
const { pool } = observed('serving');

test('each stage of a start has one next step, in this order', () => {
  expect(stages.map((stage) => [stage, decided(stage).effect?.do])).toEqual([
    ['new', 'add-finalizer'],
    ['protected', 'read-credentials'],
    ['readable', 'create-credentials'],
    ['credentialed', 'ensure'],
    ['isolated', 'ensure'],
    ['templated', 'record-template'],
    ['recorded', 'ensure'],
    ['pooled', 'create-claim'],
    ['claimed', undefined],
    ['materialized', 'attest'],
    ['attested', 'bind-instance'],
    ['bound', 'seed'],
    ['seeded', 'probe'],
    ['probed', undefined],
    ['serving', undefined],
  ]);
});

test('isolation is made before the template, which is made together with the warm pool', () => {
  const ensured = (['credentialed', 'isolated', 'recorded'] as const).map((stage) => {
    const { effect } = decided(stage);
    return effect?.do === 'ensure' ? effect.objects.map(({ wanted }) => wanted.kind) : [];
  });
  expect(ensured).toEqual([
    rendered.isolation.map(({ kind }) => kind),
    ['SandboxTemplate', 'SandboxWarmPool'],
    ['SandboxWarmPool'],
  ]);
});

interface Row {
  readonly row: string;
  readonly stage: Stage;
  readonly changes: readonly Change[];
  readonly is: Partial<ReturnType<typeof said>>;
}

/** Every situation that stands here, for the page of them. */
const page: { readonly group: string; readonly rows: readonly Row[] }[] = [];
let current = '';
const group = (title: string, body: () => void): void => {
  describe(title, () => {
    current = title;
    body();
  });
};

const table = (rows: readonly Row[]): void => {
  page.push({ group: current, rows });
  test.each(rows.map((row) => ({ ...row })))('$row', ({ stage, changes, is }) => {
    expect(said(decided(stage, ...changes))).toEqual(is);
  });
};

group('guards that come before everything else (§7.2, §7.3)', () => {
  table([
    {
      row: 'a deleted pool without our finalizer is no business of ours any more',
      stage: 'new',
      changes: [deleted],
      is: {},
    },
    {
      row: "someone else's claim is reported and not touched",
      stage: 'serving',
      changes: [withClaim(foreign)],
      is: { ...failed(), ...later },
    },
    {
      row: "someone else's template is reported and not touched",
      stage: 'serving',
      changes: [withTemplate(foreign)],
      is: { ...failed(), ...later },
    },
    {
      row: "someone else's warm pool is reported and not touched",
      stage: 'serving',
      changes: [having({ warmPool: { live: warmPool, owned: false, whole: true } })],
      is: { ...failed(), ...later },
    },
    {
      row: "someone else's isolation object is reported and not touched",
      stage: 'isolated',
      changes: [
        (o) => ({ ...o, isolation: o.isolation.map((one, index) => (index === 0 ? { ...one, state: 'foreign' } : one)) }),
      ],
      is: { ...failed(), ...later },
    },
    {
      row: 'a Secret with the labels of the pool that no controller made is reported and not touched',
      stage: 'serving',
      changes: [having({ strangers: [template] })],
      is: { ...failed('keep'), ...later },
    },
    {
      row: 'such a Secret does not keep a pool from ending',
      stage: 'serving',
      changes: [having({ strangers: [template] }), unwanted],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', effect: 'drain' },
    },
    {
      row: 'a claim that was changed is deleted',
      stage: 'serving',
      changes: [withClaim({ whole: false })],
      is: { effect: 'delete-claim' },
    },
    {
      row: 'a changed claim that is being deleted already is waited for',
      stage: 'bound',
      changes: [withClaim({ whole: false, deleting: true })],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none' },
    },
    {
      row: 'two ready Pods are ambiguous, and nothing is done to either',
      stage: 'serving',
      changes: [having({ pods: [pod, secondPod] })],
      is: { status: 'Ambiguous/Ambiguous RuntimeAmbiguous', instance: 'none', ...later },
    },
    {
      row: 'two ready Pods do not keep a pool from ending',
      stage: 'serving',
      changes: [having({ pods: [pod, secondPod] }), unwanted, withStatus({ activeInstance: undefined })],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none', effect: 'delete-claim' },
    },
    {
      row: 'a pool that cannot be run says so',
      stage: 'protected',
      changes: [having({ problem: { at: 'RuntimePool a/b', field: 'spec', allowed: 'something else' } })],
      is: { ...failed(), ...later },
    },
    {
      row: 'a pool that cannot be run still ends',
      stage: 'claimed',
      changes: [having({ problem: { at: 'RuntimePool a/b', field: 'spec', allowed: 'something else' } }), unwanted],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none', effect: 'delete-claim' },
    },
    {
      row: 'while children cannot be listed, nothing is made or ended, and the fence is kept',
      stage: 'serving',
      changes: [having({ unreadableKinds: ['SandboxClaim'], claim: undefined, sandbox: undefined, pods: [] })],
      is: { ...failed('keep'), ...later },
    },
    {
      row: 'a deleted pool keeps its finalizer while children cannot be listed',
      stage: 'serving',
      changes: [gone, having({ unreadableKinds: ['Pod'], template: undefined, warmPool: undefined, remains: [] }), deleted],
      is: { ...failed('keep'), ...later },
    },
    {
      row: 'an idle time that is over ends no pool whose Tasks cannot be listed',
      stage: 'serving',
      changes: [having({ demand: { ...unwantedSince(now - 3_600_000), known: false } })],
      is: said(decided('serving')),
    },
    {
      row: 'a sandbox that is gone is not made again while its Tasks cannot be listed',
      stage: 'pooled',
      changes: [having({ demand: { ...unwantedSince(now), known: false } })],
      is: { ...failed(), ...later },
    },
    {
      row: 'a pool at rest is not deleted while its Tasks cannot be listed',
      stage: 'pooled',
      changes: [
        unwanted,
        withStatus({ lifecycle: 'Stopped', observedGeneration: 1 }),
        having({ demand: { ...unwantedSince(now - 36_000_000), known: false } }),
      ],
      is: { status: 'Stopped/Closed ScaledToZero', instance: 'none' },
    },
    {
      row: 'missing kinds of the provider are said',
      stage: 'protected',
      changes: [having({ missingKinds: ['SandboxClaim'] })],
      is: { ...failed(), ...later },
    },
    {
      row: 'fields that the installed provider does not serve are said, before anything is made',
      stage: 'protected',
      changes: [having({ unservedFields: ['SandboxWarmPool.spec.x is not served'] })],
      is: { ...failed(), ...later },
    },
    {
      row: 'an instance that runs is kept, although the provider serves less than before',
      stage: 'serving',
      changes: [having({ unservedFields: ['SandboxWarmPool.spec.x is not served'] })],
      is: said(decided('serving')),
    },
    {
      row: 'a pool ends although fields are not served',
      stage: 'pooled',
      changes: [having({ unservedFields: ['SandboxWarmPool.spec.x is not served'] }), gone, deleted],
      is: said(decided('pooled', gone, deleted)),
    },
    {
      row: 'a pool ends although kinds of the provider are missing',
      stage: 'pooled',
      changes: [having({ missingKinds: ['SandboxClaim'], template: undefined, warmPool: undefined }), deleted],
      is: { effect: 'remove-finalizer' },
    },
  ]);

  test('what a foreign object is called stands in the message', () => {
    expect(decided('serving', withClaim(foreign)).status?.message).toContain(`SandboxClaim orka-runtimes/${claim.metadata.name}`);
  });
});

group('what keeps a wanted pool from being run (§7.3)', () => {
  table([
    {
      row: 'a class that is missing closes admission and keeps the fence',
      stage: 'serving',
      changes: [having({ poolClass: { state: 'missing', says: 'there is none' } })],
      is: { ...failed('keep'), ...later },
    },
    {
      row: 'an instance of a class that changed drains',
      stage: 'serving',
      changes: [having({ poolClass: { state: 'drifted', name: 'codex', says: 'it changed' } })],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', effect: 'drain' },
    },
    {
      row: 'a sandbox that is gone is not made again when no Task wants it',
      stage: 'pooled',
      changes: [ofSession, having({ demand: unwantedSince(now) })],
      is: { effect: 'scale-to-zero' },
    },
    {
      row: 'a pool of a class that changed waits while a Task wants it',
      stage: 'protected',
      changes: [having({ poolClass: { state: 'drifted', name: 'codex', says: 'it changed' } })],
      is: failed(),
    },
    {
      row: 'a pool of a class that changed is deleted when nobody wants it',
      stage: 'protected',
      changes: [
        ofSession,
        having({ poolClass: { state: 'drifted', name: 'codex', says: 'it changed' } }),
        having({ demand: unwantedSince(now) }),
      ],
      is: { ...failed(), effect: 'delete-pool' },
    },
    {
      row: 'an instance of a pool that was made from the class as it was before drains',
      stage: 'serving',
      changes: [having({ poolClass: { state: 'outdated', name: 'codex', says: 'it changed' } })],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', effect: 'drain' },
    },
    {
      row: 'then its pool is deleted, so that Tasks that want it have one made from the class as it is now',
      stage: 'protected',
      changes: [having({ poolClass: { state: 'outdated', name: 'codex', says: 'it changed' } })],
      is: { ...failed(), effect: 'delete-pool' },
    },
    {
      row: 'a provider that is switched off closes admission and keeps the instance as it is',
      stage: 'serving',
      changes: [having({ enabled: false })],
      is: { status: 'Serving/Closed', instance: 'keep' },
    },
    {
      row: 'a provider that is switched off begins nothing',
      stage: 'pooled',
      changes: [having({ enabled: false })],
      is: failed(),
    },
    {
      row: 'a provider that is switched off keeps no instance whose Pod is not ready',
      stage: 'serving',
      changes: [having({ enabled: false }), withPod({ ready: false })],
      is: failed(),
    },
    {
      row: 'an instance of a class that changed is given up when a policy of it is gone: it cannot be made again',
      stage: 'serving',
      changes: [having({ poolClass: { state: 'drifted', name: 'codex', says: 'it changed' }, unguarded: ['deny-all'] })],
      is: { ...failed(), effect: 'delete-claim' },
    },
    {
      row: 'a pool ends although the provider is switched off',
      stage: 'serving',
      changes: [having({ enabled: false }), unwanted],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', effect: 'drain' },
    },
    {
      row: 'a claim that the provider refuses is kept',
      stage: 'claimed',
      changes: [refused],
      is: { ...failed(), ...later },
    },
    {
      row: 'a refused claim does not keep another template from being rolled out',
      stage: 'claimed',
      changes: [refused, rerendered],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none', effect: 'delete-claim' },
    },
    {
      row: 'a claim that the provider ended is given up',
      stage: 'claimed',
      changes: [withClaim({ verdict: { state: 'ended', says: 'ClaimExpired: it expired' } })],
      is: { ...failed(), effect: 'delete-claim' },
    },
    {
      row: 'a refused claim does not keep a pool from ending',
      stage: 'claimed',
      changes: [refused, unwanted],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none', effect: 'delete-claim' },
    },
    {
      row: 'credentials that cannot be used are said, and looked at again',
      stage: 'protected',
      changes: [having({ credentials: { state: 'unusable', says: 'there is no token' } })],
      is: { ...failed(), ...later },
    },
    {
      row: 'reading credentials again changes no status',
      stage: 'protected',
      changes: [withStatus({ lifecycle: 'Degraded' })],
      is: { effect: 'read-credentials' },
    },
    {
      row: 'lost credentials end the claim',
      stage: 'serving',
      changes: [having({ credentials: { state: 'lost' } })],
      is: { ...failed(), effect: 'delete-claim' },
    },
    {
      row: 'lost credentials are waited for while the old sandbox is there',
      stage: 'materialized',
      changes: [having({ credentials: { state: 'lost' } }), withClaim({ deleting: true })],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none' },
    },
    {
      row: 'lost credentials are replaced when nothing uses them',
      stage: 'pooled',
      changes: [having({ credentials: { state: 'lost' } })],
      is: { effect: 'retire-credentials' },
    },
  ]);
});

group('template integrity (§4 a)', () => {
  const changed = withTemplate({ specDigest: `sha256:${'8'.repeat(64)}`, whole: false });
  table([
    {
      row: 'no record and something runs: the claim is deleted',
      stage: 'claimed',
      changes: [recording({ templateDigest: undefined })],
      is: { ...failed(), effect: 'delete-claim' },
    },
    {
      row: 'no record, nothing runs, not as rendered: it is replaced',
      stage: 'templated',
      changes: [changed],
      is: { effect: 'ensure' },
    },
    {
      row: 'no record, nothing runs, as rendered: it is recorded',
      stage: 'templated',
      changes: [],
      is: { effect: 'record-template' },
    },
    {
      row: 'recorded as it is: nothing is done',
      stage: 'pooled',
      changes: [],
      is: { effect: 'create-claim' },
    },
    {
      row: 'recorded otherwise and something runs: the claim is deleted',
      stage: 'serving',
      changes: [changed],
      is: { ...failed(), effect: 'delete-claim' },
    },
    {
      row: 'recorded otherwise, and only a Pod is left: it is waited for',
      stage: 'serving',
      changes: [changed, having({ claim: undefined })],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none' },
    },
    {
      row: 'recorded otherwise, nothing runs, not as rendered: it is replaced',
      stage: 'pooled',
      changes: [changed],
      is: { effect: 'ensure' },
    },
  ]);
});

group('rollout (§7.5)', () => {
  table([
    {
      row: 'nothing runs: the template is replaced',
      stage: 'pooled',
      changes: [rerendered],
      is: { effect: 'ensure' },
    },
    {
      row: 'an instance that was never admitted is not asked',
      stage: 'seeded',
      changes: [rerendered],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none', effect: 'delete-claim' },
    },
    {
      row: 'work that was admitted is finished first',
      stage: 'serving',
      changes: [rerendered, reservedBy(1_000)],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', wait: 1_000 },
    },
    {
      row: 'an admitted instance drains',
      stage: 'serving',
      changes: [rerendered],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', effect: 'drain' },
    },
    {
      row: 'credentials of an earlier epoch are read for it',
      stage: 'serving',
      changes: [rerendered, knowing({ authenticated: 'unread' })],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', effect: 'read-instance-credentials' },
    },
    {
      row: 'a claim that is being deleted is waited for',
      stage: 'serving',
      changes: [rerendered, withClaim({ deleting: true })],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none' },
    },
  ]);

  const drainingSince = (milliseconds: number, reason = 'RolloutDraining'): Change =>
    withStatus({
      lifecycle: 'Draining',
      conditions: [
        {
          type: 'RolloutReady',
          status: 'Unknown',
          reason,
          message: '',
          observedGeneration: 1,
          lastTransitionTime: ago(milliseconds),
        },
      ],
    });
  table([
    {
      row: 'a drain that takes too long is said, and the instance stays',
      stage: 'serving',
      changes: [rerendered, reservedBy(60_000), drainingSince(120_000)],
      is: { status: 'Degraded/Closed RolloutTimedOut', instance: 'keep', wait: 1_000 },
    },
    {
      row: 'it is still said a moment later',
      stage: 'serving',
      changes: [rerendered, reservedBy(60_000), drainingSince(0, 'RolloutTimedOut')],
      is: { status: 'Degraded/Closed RolloutTimedOut', instance: 'keep', wait: 1_000 },
    },
    {
      row: 'it ends when it is quiet after all',
      stage: 'serving',
      changes: [rerendered, knowing({ probe: probed(drainRequested) }), drainingSince(0, 'RolloutTimedOut')],
      is: { status: 'Quiescent/Draining RolloutQuiescent', instance: 'keep', wait: 0 },
    },
    {
      row: 'a drain of a pool that is not wanted has all the time that it takes',
      stage: 'serving',
      changes: [unwanted, reservedBy(60_000), drainingSince(3_600_000)],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', wait: 1_000 },
    },
  ]);

  test('the reason of the drain names the revision', () => {
    const { effect } = decided('serving', rerendered);
    expect(effect?.do === 'drain' ? effect.reason : '').toBe(`runtime_pool_rollout_${'9'.repeat(16)}`);
  });

  test('Secrets of other epochs are not removed before the last instance of another template is gone', () => {
    const stale = having({ staleSecrets: [template] });
    expect(decided('serving', stale, rerendered).effect?.do).toBe('drain');
    expect(decided('pooled', stale).effect?.do).toBe('remove');
  });
});

group('isolation', () => {
  const broken =
    (state: 'absent' | 'changed'): Change =>
    (o) => ({ ...o, isolation: o.isolation.map((one, index) => (index === 0 ? { ...one, state } : one)) });
  table([
    {
      row: 'an absent object closes admission of a live instance in the same pass',
      stage: 'serving',
      changes: [broken('absent')],
      is: { ...failed('keep'), effect: 'ensure' },
    },
    {
      row: 'a changed object closes admission of a live instance in the same pass',
      stage: 'serving',
      changes: [broken('changed')],
      is: { ...failed('keep'), effect: 'ensure' },
    },
    {
      row: 'a draining instance does not run without it',
      stage: 'serving',
      changes: [broken('absent'), unwanted],
      is: { ...failed('keep'), effect: 'ensure' },
    },
    {
      row: 'it is not made again for a stopped pool',
      stage: 'pooled',
      changes: [broken('absent'), unwanted],
      is: { status: 'Stopped/Closed ScaledToZero', instance: 'none' },
    },
    {
      row: 'it is not made again for a pool that is being deleted',
      stage: 'claimed',
      changes: [broken('absent'), deleted],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none', effect: 'delete-claim' },
    },
  ]);

  test('only what is broken is repaired', () => {
    const { effect } = decided('serving', broken('changed'));
    expect(effect?.do === 'ensure' ? effect.objects.length : 0).toBe(1);
  });
});

group('from a claim to a Pod (§7.3, §7.4)', () => {
  const starting = { status: 'Starting/Closed RolloutStarting', instance: 'none' };
  table([
    {
      row: 'a claim that is being deleted is waited for',
      stage: 'bound',
      changes: [withClaim({ deleting: true })],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none' },
    },
    {
      row: 'no claim is made while a Sandbox is there',
      stage: 'materialized',
      changes: [having({ claim: undefined, pods: [] })],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none' },
    },
    {
      row: 'no claim is made while a Pod is there',
      stage: 'materialized',
      changes: [having({ claim: undefined, sandbox: undefined })],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none' },
    },
    {
      row: 'credentials that were given to a Pod are not used for the next',
      stage: 'bound',
      changes: [gone],
      is: { effect: 'retire-credentials' },
    },
    {
      row: 'credentials that were made since are kept; only the binding goes',
      stage: 'bound',
      changes: [gone, recording({ instance: { authSecretUID: 'former-uid', workloadUID: pod.uid } })],
      is: { effect: 'unbind-instance' },
    },
    {
      row: 'an unreadable binding without anything that runs is dropped with the credentials',
      stage: 'bound',
      changes: [gone, recording({ instance: 'unreadable' })],
      is: { effect: 'retire-credentials' },
    },
    {
      row: 'a sandbox is started for two minutes',
      stage: 'claimed',
      changes: [],
      is: { ...starting, wait: 120_000 },
    },
    {
      row: 'a container that does not start is said, though the Pod has its address',
      stage: 'materialized',
      changes: [withPod({ ready: false, waiting: 'ErrImagePull' })],
      is: { ...failed(), ...later },
    },
    {
      row: 'a container that does not start is given up when a start takes no longer',
      stage: 'materialized',
      changes: [withPod({ ready: false, waiting: 'ErrImagePull' }), claimedAt(120_000)],
      is: { ...failed(), effect: 'delete-claim' },
    },
    {
      row: 'a claim that the provider does not look at is said after five seconds',
      stage: 'claimed',
      changes: [withClaim({ verdict: { state: 'unseen' } }), claimedAt(5_000)],
      is: failed(),
    },
    {
      row: 'a reason that no known release of the provider has is shown, and waited for like any start',
      stage: 'claimed',
      changes: [withClaim({ verdict: { state: 'open', says: 'SomethingNew: no' } })],
      is: { ...starting, wait: 120_000 },
    },
    {
      row: 'until then it is waited for',
      stage: 'claimed',
      changes: [withClaim({ verdict: { state: 'unseen' } })],
      is: { ...starting, wait: 4_000 },
    },
    {
      row: 'what a quota forbids is said at once, and tried again by the provider for a while',
      stage: 'claimed',
      changes: [withClaim({ verdict: { state: 'blocked', says: 'exceeded quota' } })],
      is: { status: 'Degraded/Closed', instance: 'none', wait: 14_000 },
    },
    {
      row: 'then by us, with another claim',
      stage: 'claimed',
      changes: [withClaim({ verdict: { state: 'blocked', says: 'exceeded quota' } }), claimedAt(15_000)],
      is: { status: 'Degraded/Closed', instance: 'none', effect: 'delete-claim' },
    },
    {
      row: 'what a quota forbids beside an instance that runs is no business of it',
      stage: 'serving',
      changes: [withClaim({ verdict: { state: 'blocked', says: 'exceeded quota' } })],
      is: { status: 'Serving/Accepting ExactInstanceReady', instance: 'this' },
    },
    {
      row: 'a Sandbox and a Pod that no claim holds any more are deleted',
      stage: 'materialized',
      changes: [having({ claim: undefined, orphans: [template] })],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none', effect: 'remove' },
    },
    {
      row: 'a Pod that someone made beside the claim is not touched while the claim is there',
      stage: 'materialized',
      changes: [having({ orphans: [template] })],
      is: { effect: 'attest' },
    },
    {
      row: 'a Pod that cannot be scheduled is said',
      stage: 'materialized',
      changes: [withPod({ address: undefined, unschedulable: { reason: 'Unschedulable', message: 'no nodes' } })],
      is: { ...failed(), ...later },
    },
    {
      row: 'the Pod of the instance is dying: its fence is kept',
      stage: 'serving',
      changes: [withPod({ address: undefined, deleting: true, ready: false })],
      is: { ...failed('keep'), ...later },
    },
    {
      row: 'a Pod that ended by itself is given up',
      stage: 'serving',
      changes: [withPod({ address: undefined, finished: true, ready: false })],
      is: { ...failed(), effect: 'delete-claim' },
    },
    {
      row: 'a Pod that its node evicted is given up, and the condition says so',
      stage: 'serving',
      changes: [
        withPod({ address: undefined, finished: true, ready: false }),
        having({ ended: { cause: 'Evicted', says: 'its Pod was evicted by its node: memory' } }),
      ],
      is: { status: 'Degraded/Closed Evicted', instance: 'none', effect: 'delete-claim' },
    },
    {
      row: 'a Pod that ended because it is deleted is not given up',
      stage: 'claimed',
      changes: [having({ pods: [{ ...pod, address: undefined, finished: true, deleting: true, ready: false }] })],
      is: { ...starting, wait: 120_000 },
    },
  ]);

  const startedAt = (milliseconds: number): Change =>
    withStatus({
      conditions: [
        {
          type: 'RolloutReady',
          status: 'Unknown',
          reason: 'RolloutStarting',
          message: '',
          observedGeneration: 1,
          lastTransitionTime: ago(milliseconds),
        },
      ],
    });

  test('a cold start that takes too long is said, and given up', () => {
    const decision = decided('claimed', startedAt(120_000), claimedAt(120_000));
    expect(said(decision)).toEqual({ status: 'Degraded/Closed RolloutTimedOut', instance: 'none', effect: 'delete-claim' });
  });

  test('a cold start that takes too long is waited for to the moment', () => {
    expect(decided('claimed', startedAt(119_000), claimedAt(119_000)).wait).toBe(1_000);
  });

  test('the time of a draining before it does not count as time of the start', () => {
    expect(said(decided('claimed', startedAt(3_600_000), claimedAt(1_000)))).toEqual({ ...starting, wait: 119_000 });
  });

  test('what hinders the provider is said while it is waited for', () => {
    const says = 'WarmPoolNotFound: there is none';
    expect(decided('claimed', withClaim({ verdict: { state: 'open', says } })).status?.message).toContain(says);
  });

  test('the reason of the scheduler is the reason of SchedulingReady', () => {
    const unschedulable = { reason: 'Unschedulable', message: 'no nodes' };
    const { status } = decided('materialized', withPod({ address: undefined, unschedulable }));
    expect(status?.conditions.SchedulingReady).toEqual({ status: 'False', ...unschedulable });
  });

  test('each sandbox that was given up makes the next one come later, up to a minute', () => {
    const waits = [0, 1, 2, 3, 7, 20].map(
      (count) => decided('pooled', having({ recycling: { count, at: now, because: 'it ended' } })).wait,
    );
    expect(waits).toEqual([undefined, 1_000, 2_000, 4_000, 60_000, 60_000]);
  });

  test('the message of a pause names the cause', () => {
    const because = 'the provider cannot: exceeded quota';
    const { status } = decided('pooled', having({ recycling: { count: 3, at: now, because } }));
    expect(status?.message).toContain(because);
    expect(status?.conditions.QuotaReady).toMatchObject({ status: 'False', reason: 'QuotaRejected' });
  });

  test('the message of a pause is the same for as long as it lasts', () => {
    const paused = observed('pooled', having({ recycling: { count: 4, at: now, because: 'it ended' } }));
    expect(decide(paused, now + 3_000).status?.message).toBe(decide(paused, now).status?.message);
  });
});

group('from a Pod to an instance (§4, §5.4, §7.4)', () => {
  const recycled = { ...failed(), effect: 'delete-claim' } as const;
  const restarted = { status: 'Degraded/Closed SupervisorRestartDetected', instance: 'none', effect: 'delete-claim' } as const;
  const failing = { podUid: pod.uid, at: now, error: 'ECONNREFUSED', since: now };
  table([
    {
      row: 'a Pod whose Sandbox is not seen yet is not compared',
      stage: 'materialized',
      changes: [having({ sandbox: undefined })],
      is: { status: 'Starting/Closed RolloutStarting', instance: 'none', wait: 120_000 },
    },
    {
      row: 'a Pod without an address is neither compared nor bound',
      stage: 'materialized',
      changes: [withPod({ address: undefined })],
      is: { status: 'Starting/Closed RolloutStarting', instance: 'none', wait: 120_000 },
    },
    {
      row: 'a chain that is seen to differ from what was compared is compared again',
      stage: 'serving',
      changes: [knowing({ suspect: true })],
      is: { effect: 'attest' },
    },
    {
      row: 'another Pod is compared before anything else',
      stage: 'serving',
      changes: [withPod({ uid: 'pod-uid-2' })],
      is: { effect: 'attest' },
    },
    {
      row: 'a Pod that is not as rendered is given up',
      stage: 'materialized',
      changes: [knowing({ mismatch: { podUid: pod.uid, finding: { at: 'Pod a/b', allowed: 'nothing' } } })],
      is: recycled,
    },
    {
      row: 'while admission cannot be asked about a Pod, it is not decided, and not bound either',
      stage: 'materialized',
      changes: [knowing({ undecided: { podUid: pod.uid, at: now, count: 1, says: 'no' } })],
      is: { status: 'Degraded/Closed RolloutFailed', instance: 'none', wait: 1_000 },
    },
    {
      row: 'admission is asked ever later, at most every ten seconds',
      stage: 'materialized',
      changes: [knowing({ undecided: { podUid: pod.uid, at: now, count: 30, says: 'no' } })],
      is: { status: 'Degraded/Closed RolloutFailed', instance: 'none', wait: 10_000 },
    },
    {
      row: 'admission is asked again when the pause is over',
      stage: 'materialized',
      changes: [knowing({ undecided: { podUid: pod.uid, at: now - 1_000, count: 1, says: 'no' } })],
      is: { effect: 'attest' },
    },
    {
      row: 'what could not be decided of another Pod says nothing of this one',
      stage: 'materialized',
      changes: [knowing({ undecided: { podUid: 'another', at: now, count: 1, says: 'no' } })],
      is: { effect: 'attest' },
    },
    {
      row: 'an instance that was changed and of which nothing is decided takes no work, and stays',
      stage: 'serving',
      changes: [knowing({ attested: undefined, undecided: { podUid: pod.uid, at: now, count: 1, says: 'no' } })],
      is: { status: 'Degraded/Closed RolloutFailed', instance: 'keep', wait: 1_000 },
    },
    {
      row: 'a Pod that was not bound is given up when another was',
      stage: 'attested',
      changes: [recording({ instance: { authSecretUID: 'auth-uid', workloadUID: 'another' } })],
      is: recycled,
    },
    {
      row: 'a Pod that was bound to other credentials is given up',
      stage: 'attested',
      changes: [recording({ instance: { authSecretUID: 'another', workloadUID: pod.uid } })],
      is: recycled,
    },
    {
      row: 'a Pod with an unreadable binding is given up',
      stage: 'attested',
      changes: [recording({ instance: 'unreadable' })],
      is: recycled,
    },
    {
      row: 'a Pod that another party has seeded is given up',
      stage: 'bound',
      changes: [knowing({ seeding: 'conflict' })],
      is: recycled,
    },
    {
      row: 'credentials that could not be delivered are delivered again a second later',
      stage: 'bound',
      changes: [knowing({ seeding: { failedAt: now, says: 'ECONNREFUSED' } })],
      is: { status: 'Starting/Closed RolloutStarting', instance: 'none', wait: 1_000 },
    },
    {
      row: 'a second later it is',
      stage: 'bound',
      changes: [knowing({ seeding: { failedAt: now - 1_000, says: 'ECONNREFUSED' } })],
      is: { effect: 'seed' },
    },
    {
      row: 'an admitted instance keeps its fence while credentials cannot be delivered again',
      stage: 'serving',
      changes: [knowing({ seeded: undefined, seeding: { failedAt: now, says: 'ECONNREFUSED' } })],
      is: { ...failed('keep'), wait: 1_000 },
    },
    {
      row: 'an instance that does not answer keeps the fence of the same Pod',
      stage: 'serving',
      changes: [knowing({ probe: failing })],
      is: { ...failed('keep'), wait: 1_000 },
    },
    {
      row: 'an instance that does not answer keeps no fence of another Pod',
      stage: 'serving',
      changes: [
        withStatus({ activeInstance: { ...observed('serving').pool.status!.activeInstance!, podUID: 'another' } }),
        knowing({ probe: failing }),
      ],
      is: { ...failed(), wait: 1_000 },
    },
    {
      row: 'an instance that does not answer is asked again a second later',
      stage: 'serving',
      changes: [knowing({ probe: { ...failing, at: now - 1_000 } })],
      is: { ...failed('keep'), effect: 'probe' },
    },
    {
      row: 'the answer of another Pod counts for nothing',
      stage: 'seeded',
      changes: [knowing({ probe: { ...probed(), podUid: 'another' } })],
      is: { effect: 'probe' },
    },
    {
      row: 'a container that was started again is given up, before it is asked anything',
      stage: 'serving',
      changes: [withPod({ containerId: 'containerd://2' })],
      is: restarted,
    },
    {
      row: 'another boot in the same Pod is given up',
      stage: 'serving',
      changes: [
        knowing({
          probe: {
            ...probed(),
            status: {
              ...probed().status,
              fence: { ...probed().status.fence, supervisorBootID: 'boot-2', runtimeInstanceID: `${pod.uid}.boot-2` },
            },
          },
        }),
      ],
      is: restarted,
    },
    {
      row: 'an unhealthy instance is given up',
      stage: 'serving',
      changes: [knowing({ probe: probed({ lifecycle: 'unhealthy' }) })],
      is: recycled,
    },
    {
      row: 'an instance that drains, whoever asked it to, is ended once it is quiet',
      stage: 'serving',
      changes: [knowing({ probe: probed(drainRequested) })],
      is: { status: 'Quiescent/Draining RolloutQuiescent', instance: 'keep', wait: 0 },
    },
    {
      row: 'an instance that drains because sessions could not be created in it is ended likewise',
      stage: 'serving',
      changes: [knowing({ probe: probed(sessionsFailing) }), withStatus({ lifecycle: 'Quiescent' })],
      is: { status: 'Quiescent/Draining RolloutQuiescent', instance: 'keep', effect: 'delete-claim' },
    },
    {
      row: 'an instance that was never admitted and does not answer is given up when a start takes no longer',
      stage: 'seeded',
      changes: [claimedAt(120_000), knowing({ probe: failing })],
      is: recycled,
    },
    {
      row: 'an instance that was never admitted and is not what it was started as is given up likewise',
      stage: 'probed',
      changes: [claimedAt(120_000), withPod({ identity: undefined })],
      is: recycled,
    },
    {
      row: 'an admitted instance that does not answer is not given up for it',
      stage: 'serving',
      changes: [claimedAt(3_600_000), knowing({ probe: failing })],
      is: { ...failed('keep'), wait: 1_000 },
    },
    {
      row: 'an instance that boots is starting',
      stage: 'probed',
      changes: [knowing({ probe: probed({ lifecycle: 'booting' }) })],
      is: { status: 'Starting/Closed RolloutStarting', instance: 'none', wait: 1_000 },
    },
    {
      row: 'an instance that is not what it was started as takes nothing',
      stage: 'probed',
      changes: [
        knowing({
          probe: { ...probed(), status: { ...probed().status, fence: { ...probed().status.fence, controllerEpoch: 6 } } },
        }),
      ],
      is: { ...failed(), ...later },
    },
    {
      row: 'an instance in a Pod whose identity cannot be read takes nothing',
      stage: 'probed',
      changes: [withPod({ identity: undefined })],
      is: { ...failed(), ...later },
    },
    {
      row: 'an instance whose Pod is not ready is asked every second',
      stage: 'serving',
      changes: [withPod({ ready: false }), knowing({ probe: probed({}, now - 1_000) })],
      is: { effect: 'probe' },
    },
    {
      row: 'one exact instance takes work, and nothing is done until something changes',
      stage: 'serving',
      changes: [],
      is: { status: 'Serving/Accepting ExactInstanceReady', instance: 'this' },
    },
    {
      row: 'a reserved slot is free again when its time is over',
      stage: 'serving',
      changes: [reservedBy(90_000)],
      is: { status: 'Serving/Closed ExactInstanceReady', instance: 'this', wait: 90_000 },
    },
    {
      row: 'a reservation whose time is over holds nothing',
      stage: 'serving',
      changes: [reservedBy(-1)],
      is: { status: 'Serving/Accepting ExactInstanceReady', instance: 'this' },
    },
    {
      row: 'an instance with a resident session is full, and looked at again',
      stage: 'serving',
      changes: [
        knowing({
          probe: probed({
            pressure: { residentSessions: 1, activePrompts: 0, queuedAdmissions: 0, pendingPermissions: 0, liveDescendants: 0 },
          }),
        }),
      ],
      is: { status: 'Serving/Closed ExactInstanceReady', instance: 'this', ...later },
    },
  ]);

  test('an instance that drained because sessions could not be created in it counts as given up', () => {
    const { effect } = decided('serving', knowing({ probe: probed(sessionsFailing) }), withStatus({ lifecycle: 'Quiescent' }));
    expect(effect).toMatchObject({ cause: 'sessions-failed', because: 'sessions could not be created in the instance' });
  });

  const identities = (remaining: number): Change =>
    knowing({ probe: probed({ sessionIdentityCapacity: { total: 10_000, remaining, exhaustionReserve: 1 } }) });
  table([
    {
      row: 'an instance with identities left takes work',
      stage: 'serving',
      changes: [identities(2)],
      is: { status: 'Serving/Accepting ExactInstanceReady', instance: 'this' },
    },
    {
      row: 'an instance without identities drains',
      stage: 'serving',
      changes: [identities(1)],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', effect: 'drain' },
    },
    {
      row: 'an instance that says nothing of its identities drains as well',
      stage: 'serving',
      changes: [knowing({ probe: probed({ sessionIdentityCapacity: undefined }) })],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', effect: 'drain' },
    },
    {
      row: 'work that was admitted is finished before an instance without identities drains',
      stage: 'serving',
      changes: [identities(1), reservedBy(1_000)],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', wait: 1_000 },
    },
    {
      row: 'an instance that has no identities from the start is given up, ever later',
      stage: 'probed',
      changes: [identities(0)],
      is: recycled,
    },
  ]);

  test('an instance without identities says so in the reason of AdmissionReady, at each barrier', () => {
    const reasons = [
      decided('serving', identities(1)),
      decided('serving', knowing({ probe: { ...probed({ ...drainRequested, sessionIdentityCapacity: undefined }) } })),
    ].map(({ status }) => status?.conditions.AdmissionReady?.reason);
    expect(reasons).toEqual(['IdentityCapacityDraining', 'IdentityCapacityQuiescent']);
  });

  test('what stops because it was started again, or has no identities, still says so', () => {
    const during = (reason: string) =>
      decided(
        'serving',
        withClaim({ deleting: true }),
        withStatus({
          conditions: [{ type: 'AdmissionReady', status: 'False', reason, message: '', lastTransitionTime: ago(0) }],
        }),
      ).status?.conditions;
    expect(during('SupervisorRestartDetected')).toMatchObject({
      AdmissionReady: { reason: 'SupervisorRestartStopping' },
      RolloutReady: { reason: 'SupervisorRestartStopping' },
    });
    expect(during('IdentityCapacityQuiescent')?.AdmissionReady?.reason).toBe('IdentityCapacityStopping');
  });

  test('a full instance says that it is at capacity', () => {
    expect(decided('serving', reservedBy(1_000)).status?.conditions.AdmissionReady?.reason).toBe('AtCapacity');
  });

  test('an admitted instance is the Pod, boot and epoch that answered', () => {
    expect(decided('probed').status?.instance).toMatchObject({
      podUID: pod.uid,
      podAddress: '10.0.0.7',
      bootID,
      runtimeInstanceID: `${pod.uid}.${bootID}`,
      controllerEpoch: 7,
    });
  });
});

group('an unused pool that Tasks share (§7.12)', () => {
  table([
    {
      row: 'it is scaled to zero after the idle time',
      stage: 'serving',
      changes: [ofSession, idleNow],
      is: { effect: 'scale-to-zero' },
    },
    {
      row: 'until then it is waited for',
      stage: 'serving',
      changes: [ofSession, having({ demand: unwantedSince(now - 899_000) })],
      is: { status: 'Serving/Accepting ExactInstanceReady', instance: 'this', wait: 1_000 },
    },
    {
      row: 'not while a slot is held, however long nobody asked',
      stage: 'serving',
      changes: [ofSession, idleNow, reservedBy(30_000)],
      is: { status: 'Serving/Closed ExactInstanceReady', instance: 'this', wait: 30_000 },
    },
    {
      row: 'also when it cannot be run',
      stage: 'claimed',
      changes: [ofSession, idleNow, withClaim(foreign)],
      is: { effect: 'scale-to-zero' },
    },
    {
      row: 'one that is switched off is looked at when its time is over',
      stage: 'serving',
      changes: [ofSession, having({ enabled: false, demand: unwantedSince(now - 899_000) })],
      is: { status: 'Serving/Closed', instance: 'keep', wait: 1_000 },
    },
    {
      row: 'that nobody wants it any more is recorded first, however long it was wanted',
      stage: 'serving',
      changes: [ofSession, having({ demand: { ...unwantedSince(now - 900_000), seen: true } })],
      is: { effect: 'record-demand' },
    },
    {
      row: 'so is the end of a Task that another process saw',
      stage: 'serving',
      changes: [ofSession, having({ demand: { ...unwantedSince(now - 900_000), lastAt: now - 30_000 } })],
      is: { effect: 'record-demand' },
    },
    {
      row: 'not before its slot is given back',
      stage: 'serving',
      changes: [ofSession, having({ demand: { ...unwantedSince(now - 900_000), seen: true } }), reservedBy(30_000)],
      is: { status: 'Serving/Closed ExactInstanceReady', instance: 'this', wait: 30_000 },
    },
    {
      row: 'that it is wanted is recorded once a minute',
      stage: 'serving',
      changes: [ofSession, having({ demand: { ...wantedBy(1), recordedAt: now - 60_000 } })],
      is: { effect: 'record-demand' },
    },
    {
      row: 'not more often',
      stage: 'serving',
      changes: [ofSession, having({ demand: { ...wantedBy(1), recordedAt: now - 59_999 } })],
      is: { status: 'Serving/Accepting ExactInstanceReady', instance: 'this' },
    },
    {
      row: 'that it is wanted is recorded where nobody can read when it was',
      stage: 'serving',
      changes: [ofSession, having({ demand: { ...wantedBy(1), recordedAt: NaN } })],
      is: { effect: 'record-demand' },
    },
    {
      row: 'nothing is recorded of a pool that is being deleted',
      stage: 'recorded',
      changes: [ofSession, deleted, having({ demand: { ...unwantedSince(now), seen: true } })],
      is: { effect: 'remove' },
    },
    {
      row: 'without a readable time it is never reaped',
      stage: 'serving',
      changes: [ofSession, having({ demand: unwantedSince(NaN) })],
      is: { status: 'Serving/Accepting ExactInstanceReady', instance: 'this' },
    },
  ]);

  test('the end of demand is when it was seen, or when the last Task ended, if nobody here saw that', () => {
    const at = (demand: Demand) => {
      const { effect } = decided('serving', ofSession, having({ demand }));
      return effect?.do === 'record-demand' ? effect.at : undefined;
    };
    const before = unwantedSince(now - 900_000);
    expect([at({ ...before, seen: true }), at({ ...before, lastAt: now - 30_000 })]).toEqual([now, now - 30_000]);
  });

  const unused = (lastAt: number): Change => having({ demand: unwantedSince(lastAt) });
  const stoppedStatus = withStatus({ lifecycle: 'Stopped', observedGeneration: 1 });
  table([
    {
      row: 'a stopped pool of a class that changed is deleted at once',
      stage: 'pooled',
      changes: [
        ofSession,
        unwanted,
        unused(now),
        stoppedStatus,
        having({ poolClass: { state: 'outdated', name: 'codex', says: 'it changed' } }),
      ],
      is: { status: 'Stopped/Closed ScaledToZero', instance: 'none', effect: 'delete-pool' },
    },
    {
      row: 'so is a stopped pool that Tasks shared',
      stage: 'pooled',
      changes: [
        plain,
        unwanted,
        unused(now),
        stoppedStatus,
        having({ poolClass: { state: 'drifted', name: 'codex', says: 'it changed' } }),
      ],
      is: { status: 'Stopped/Closed ScaledToZero', instance: 'none', effect: 'delete-pool' },
    },
    {
      row: 'a stopped pool is deleted after twice the idle time',
      stage: 'pooled',
      changes: [ofSession, unwanted, unused(now - 1_800_000), stoppedStatus],
      is: { status: 'Stopped/Closed ScaledToZero', instance: 'none', effect: 'delete-pool' },
    },
    {
      row: 'not before its stop is on record',
      stage: 'pooled',
      changes: [ofSession, unwanted, unused(now - 1_800_000)],
      is: { status: 'Stopped/Closed ScaledToZero', instance: 'none' },
    },
    {
      row: 'not while a Task wants it',
      stage: 'pooled',
      changes: [ofSession, unwanted, stoppedStatus, having({ demand: wantedBy(1) })],
      is: { status: 'Stopped/Closed ScaledToZero', instance: 'none' },
    },
    {
      row: 'until then it is waited for to the moment',
      stage: 'pooled',
      changes: [ofSession, unwanted, unused(now - 1_799_000), stoppedStatus],
      is: { status: 'Stopped/Closed ScaledToZero', instance: 'none', wait: 1_000 },
    },
  ]);
});

group('a pool of one Task', () => {
  const over = having({ demand: unwantedSince(now) });
  const resting = withStatus({ lifecycle: 'Stopped', observedGeneration: 1 });
  table([
    {
      row: 'it is scaled to zero as soon as its Task is over',
      stage: 'serving',
      changes: [over],
      is: { effect: 'scale-to-zero' },
    },
    {
      row: 'its Task is waited for while it has its slot',
      stage: 'serving',
      changes: [over, reservedBy(30_000)],
      is: { status: 'Serving/Closed ExactInstanceReady', instance: 'this', wait: 30_000 },
    },
    {
      row: 'it serves a Task whose attempt is queued again',
      stage: 'serving',
      changes: [having({ demand: { ...unwantedSince(now - 900_000), active: 1, queued: 1, recordedAt: now } })],
      is: { status: 'Serving/Accepting ExactInstanceReady', instance: 'this' },
    },
    {
      row: 'it ends as well when its Task was deleted',
      stage: 'serving',
      changes: [having({ demand: { ...unwantedSince(now), seen: true } })],
      is: { effect: 'scale-to-zero' },
    },
    {
      row: 'it ends where nobody can read when it was wanted',
      stage: 'serving',
      changes: [having({ demand: unwantedSince(NaN) })],
      is: { effect: 'scale-to-zero' },
    },
    {
      row: 'it ends before it has started',
      stage: 'claimed',
      changes: [over],
      is: { effect: 'scale-to-zero' },
    },
    {
      row: 'it is deleted as soon as its stop is on record',
      stage: 'pooled',
      changes: [unwanted, over, resting],
      is: { status: 'Stopped/Closed ScaledToZero', instance: 'none', effect: 'delete-pool' },
    },
    {
      row: 'its stop is recorded first',
      stage: 'pooled',
      changes: [unwanted, over],
      is: { status: 'Stopped/Closed ScaledToZero', instance: 'none' },
    },
    {
      row: 'it is not deleted while its Task wants it again',
      stage: 'pooled',
      changes: [unwanted, resting],
      is: { status: 'Stopped/Closed ScaledToZero', instance: 'none' },
    },
  ]);
});

group('a Pod that cannot be scheduled', () => {
  const unscheduled = (reason = 'Unschedulable'): Change =>
    withPod({ address: undefined, node: undefined, unschedulable: { reason, message: 'Insufficient cpu' } });
  const neighbour = (name: string, idleFor: number, ...changes: readonly Change[]): Neighbour => {
    const { pool, ...rest } = observed('serving', plain, having({ demand: unwantedSince(now - idleFor) }), ...changes);
    return { ...rest, pool: { ...pool, metadata: { ...pool.metadata, name } }, placed: true };
  };
  const [short, long] = [neighbour('short', 1_000), neighbour('long', 5_000)];
  const busy = [
    neighbour('wanted', 9_000, having({ demand: wantedBy(1) })),
    neighbour('reserved', 9_000, reservedBy(1_000)),
    neighbour('resident', 9_000, withStatus({ capacity: { residentSessions: 1 } })),
    neighbour('unreadable', NaN),
    { ...neighbour('nowhere', 9_000), placed: false },
  ];
  const beside = (...neighbours: readonly Neighbour[]) => having({ neighbours });
  table([
    {
      row: 'makes an idle pool end',
      stage: 'materialized',
      changes: [unscheduled(), beside(short)],
      is: { ...failed(), effect: 'scale-to-zero' },
    },
    {
      row: 'leaves pools alone that are in use, or have no Pod on a node',
      stage: 'materialized',
      changes: [unscheduled(), beside(...busy)],
      is: { ...failed(), wait: 2_000 },
    },
    {
      row: 'waits for the room of a pool that is ending',
      stage: 'materialized',
      changes: [unscheduled(), beside(short, neighbour('ending', 1_000, unwanted))],
      is: { ...failed(), wait: 2_000 },
    },
    {
      row: 'waits for the room of a pool whose only Task is over',
      stage: 'materialized',
      changes: [unscheduled(), beside(short, { ...neighbour('over', 0), ofOneTask: true })],
      is: { ...failed(), wait: 2_000 },
    },
    {
      row: 'does not wait for an ending pool that still has work',
      stage: 'materialized',
      changes: [unscheduled(), beside(short, neighbour('ending', 1_000, unwanted, reservedBy(1_000)))],
      is: { ...failed(), effect: 'scale-to-zero' },
    },
    {
      row: 'makes no pool end for a pool that no Task wants',
      stage: 'materialized',
      changes: [plain, unscheduled(), unasked, beside(short)],
      is: { ...failed(), wait: 2_000 },
    },
  ]);

  test('makes the pool end that is idle for longest, and says for whom', () => {
    const { effect } = decided('materialized', unscheduled(), beside(short, long));
    expect(effect).toMatchObject({ do: 'scale-to-zero', instead: { pool: { metadata: { name: 'long' } } } });
    expect(effect?.do === 'scale-to-zero' ? effect.instead?.because : '').toContain(pool.metadata.name);
  });
});

group('a pool on a cordoned node', () => {
  const cordoned = having({ cordonedNode: 'node-1' });
  const draining = { status: 'Draining/Draining RolloutDraining', instance: 'keep' };
  table([
    {
      row: 'drains while a Task waits for it',
      stage: 'serving',
      changes: [cordoned],
      is: { ...draining, effect: 'drain' },
    },
    {
      row: 'finishes the work that was admitted first',
      stage: 'serving',
      changes: [cordoned, reservedBy(60_000)],
      is: { ...draining, wait: 1_000 },
    },
    {
      row: 'loses its sandbox when it is quiet',
      stage: 'serving',
      changes: [cordoned, knowing({ probe: probed(drainRequested) }), withStatus({ lifecycle: 'Quiescent' })],
      is: { status: 'Quiescent/Draining RolloutQuiescent', instance: 'keep', effect: 'delete-claim' },
    },
    {
      row: 'loses a sandbox that never took work at once',
      stage: 'seeded',
      changes: [cordoned],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none', effect: 'delete-claim' },
    },
    {
      row: 'drains also when its class cannot be used',
      stage: 'serving',
      changes: [cordoned, having({ poolClass: { state: 'missing', says: 'there is none' } })],
      is: { ...draining, effect: 'drain' },
    },
    {
      row: 'is scaled to zero when it is idle, before its idle time is over',
      stage: 'serving',
      changes: [plain, cordoned, unasked],
      is: { effect: 'scale-to-zero' },
    },
    {
      row: 'that a Deployment keeps loses its Pod when it is quiet',
      stage: 'serving',
      changes: [plain, cordoned, knowing({ probe: probed(drainRequested) }), withStatus({ lifecycle: 'Quiescent' })],
      is: { status: 'Quiescent/Draining RolloutQuiescent', instance: 'keep', effect: 'stop-workload' },
    },
  ]);

  test('says why, in its status and to its instance', () => {
    const { status, effect } = decided('serving', cordoned);
    expect(status?.message).toContain('node node-1 is cordoned');
    expect(effect).toMatchObject({ do: 'drain', reason: 'runtime_pool_node_cordoned' });
  });
});

group('scale to zero (§7.6b)', () => {
  const stopping = { status: 'Stopping/Closed RolloutStopping', instance: 'none' };
  const draining = { status: 'Draining/Draining RolloutDraining', instance: 'keep' };
  const quiet = { status: 'Quiescent/Draining RolloutQuiescent', instance: 'keep' };
  const notTheOne = (since: number) => {
    const { status, ...rest } = probed(drainRequested);
    return { ...rest, since, status: { ...status, fence: { ...status.fence, controllerEpoch: 6 } } };
  };
  const failing = (since: number, at = now) => ({ podUid: pod.uid, at, error: 'ECONNREFUSED', since: since });
  table([
    {
      row: 'a claim that is being deleted is waited for',
      stage: 'claimed',
      changes: [unwanted, withClaim({ deleting: true })],
      is: stopping,
    },
    {
      row: 'a Pod that is left is waited for',
      stage: 'materialized',
      changes: [unwanted, having({ claim: undefined })],
      is: stopping,
    },
    {
      row: 'a Pod that no claim holds any more is deleted',
      stage: 'materialized',
      changes: [unwanted, having({ claim: undefined, orphans: [template] })],
      is: { ...stopping, effect: 'remove' },
    },
    {
      row: 'an instance that was started again in place has nothing that could be drained',
      stage: 'serving',
      changes: [unwanted, withPod({ containerId: 'containerd://2' })],
      is: { status: 'Degraded/Closed SupervisorRestartDetected', instance: 'none', effect: 'delete-claim' },
    },
    {
      row: 'an instance that does not prove to be the one is not believed that it is quiet',
      stage: 'serving',
      changes: [unwanted, knowing({ probe: notTheOne(now) })],
      is: { ...failed('keep'), wait: 1_000 },
    },
    {
      row: 'after a minute it is ended without proof as well',
      stage: 'serving',
      changes: [unwanted, knowing({ probe: notTheOne(now - 60_000) })],
      is: { ...stopping, effect: 'delete-claim' },
    },
    {
      row: 'an instance that was never admitted is not asked',
      stage: 'seeded',
      changes: [unwanted],
      is: { ...stopping, effect: 'delete-claim' },
    },
    {
      row: 'work that was admitted is finished first',
      stage: 'serving',
      changes: [unwanted, reservedBy(60_000)],
      is: { ...draining, wait: 1_000 },
    },
    {
      row: 'an instance whose Pod is gone has nothing to drain',
      stage: 'serving',
      changes: [unwanted, having({ pods: [] })],
      is: { ...stopping, effect: 'delete-claim' },
    },
    {
      row: 'an instance whose credentials are lost is ended without proof',
      stage: 'serving',
      changes: [unwanted, knowing({ authenticated: 'lost' })],
      is: { ...stopping, effect: 'delete-claim' },
    },
    {
      row: 'an instance that does not answer keeps its fence',
      stage: 'serving',
      changes: [unwanted, knowing({ probe: failing(now - 59_000) })],
      is: { ...failed('keep'), wait: 1_000 },
    },
    {
      row: 'an instance that does not answer is asked every second',
      stage: 'serving',
      changes: [unwanted, knowing({ probe: failing(now - 59_000, now - 1_000) })],
      is: { ...failed('keep'), effect: 'probe' },
    },
    {
      row: 'after a minute without an answer it is ended without proof',
      stage: 'serving',
      changes: [unwanted, knowing({ probe: failing(now - 60_000) })],
      is: { ...stopping, effect: 'delete-claim' },
    },
    {
      row: 'that another Pod did not answer long ago proves nothing',
      stage: 'serving',
      changes: [unwanted, knowing({ probe: { ...failing(0), podUid: 'another' } })],
      is: { ...draining, effect: 'probe' },
    },
    {
      row: 'an instance that was not asked yet is looked at first',
      stage: 'serving',
      changes: [unwanted, knowing({ probe: undefined })],
      is: { ...draining, effect: 'probe' },
    },
    {
      row: 'an instance that accepts work is drained',
      stage: 'serving',
      changes: [unwanted],
      is: { ...draining, effect: 'drain' },
    },
    {
      row: 'an instance that is not quiet yet is looked at again',
      stage: 'serving',
      changes: [
        unwanted,
        knowing({
          probe: probed({
            ...drainRequested,
            pressure: { residentSessions: 0, activePrompts: 0, queuedAdmissions: 0, pendingPermissions: 0, liveDescendants: 1 },
          }),
        }),
      ],
      is: { ...draining, wait: 250 },
    },
    {
      row: 'that it is quiet is recorded first',
      stage: 'serving',
      changes: [unwanted, knowing({ probe: probed(drainRequested) })],
      is: { ...quiet, wait: 0 },
    },
    {
      row: 'and then its claim is deleted',
      stage: 'serving',
      changes: [unwanted, knowing({ probe: probed(drainRequested) }), withStatus({ lifecycle: 'Quiescent' })],
      is: { ...quiet, effect: 'delete-claim' },
    },
  ]);

  test('a drained instance is not counted as one that was given up', () => {
    const { effect } = decided(
      'serving',
      unwanted,
      knowing({ probe: probed(drainRequested) }),
      withStatus({ lifecycle: 'Quiescent' }),
    );
    expect(effect).toMatchObject({ do: 'delete-claim', cause: 'planned' });
  });
});

group('deletion (§7.9, §7.10)', () => {
  const service = stored(rendered.isolation[0]!, 'service-uid');
  table([
    {
      row: 'an instance drains before its pool goes',
      stage: 'serving',
      changes: [deleted],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', effect: 'drain' },
    },
    {
      row: 'a reservation delays no deletion',
      stage: 'serving',
      changes: [deleted, reservedBy(60_000)],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', effect: 'drain' },
    },
    {
      row: 'a foreign claim keeps the finalizer',
      stage: 'pooled',
      changes: [deleted, having({ claim: { ...observed('claimed').claim!, owned: false } })],
      is: { ...failed(), ...later },
    },
  ]);

  test('the workload goes first, then isolation and Secrets, and the finalizer last', () => {
    const removed = ({ effect }: PoolDecision) => (effect?.do === 'remove' ? effect.objects.map(({ kind }) => kind) : effect?.do);
    expect([
      removed(decided('pooled', deleted, having({ remains: [service] }))),
      removed(decided('isolated', deleted, having({ remains: [service] }))),
      removed(decided('isolated', deleted)),
    ]).toEqual([['SandboxWarmPool', 'SandboxTemplate'], ['Service'], 'remove-finalizer']);
  });
});

group('a pool that a Deployment keeps (§3.9)', () => {
  const start = { status: 'Starting/Closed RolloutStarting', instance: 'none' };
  const taken: Change = (o) => reservedBy(60_000)(withStatus({ capacity: { residentSessions: 1 } })(o));
  const session = { runtimeSessionUID: 'session-task-uid-1' } as NonNullable<Status['sessions']>[number];
  const inUse = (sessions: readonly (typeof session)[]) =>
    knowing({
      probe: {
        ...probed({ sessions, pressure: { ...probed().status.pressure, residentSessions: 1 } }),
        capabilities: { ...capabilities, limits: { ...capabilities.limits, maxResidentSessions: 2, maxConcurrentPrompts: 2 } },
      },
    });
  const forMany: Change = (o) => ({
    ...o,
    pool: { ...o.pool, spec: { ...o.pool.spec, capacity: { maxResidentSessions: 10, maxRunningPrompts: 4 } } },
  });
  table([
    { row: 'its Deployment is made without a Pod', stage: 'isolated', changes: [plain], is: { effect: 'ensure' } },
    { row: 'and then asked for one', stage: 'pooled', changes: [plain], is: { effect: 'start-workload' } },
    {
      row: 'also when nobody wants it just now',
      stage: 'pooled',
      changes: [plain, unasked],
      is: { effect: 'start-workload' },
    },
    { row: 'a Pod is waited for', stage: 'claimed', changes: [plain], is: { ...start, wait: 120_000 } },
    {
      row: 'a Deployment that Kubernetes does not look at is said after five seconds',
      stage: 'claimed',
      changes: [plain, withClaim({ verdict: { state: 'unseen' }, askedAt: now - 5_000 })],
      is: failed(),
    },
    {
      row: 'what forbids the Pod is said at once, and tried again by Kubernetes for a while',
      stage: 'claimed',
      changes: [plain, withClaim({ verdict: { state: 'blocked', says: 'FailedCreate: no' } })],
      is: { ...failed(), wait: 14_000 },
    },
    {
      row: 'then by us, later and later',
      stage: 'claimed',
      changes: [plain, withClaim({ verdict: { state: 'blocked', says: 'FailedCreate: no' }, askedAt: now - 15_000 })],
      is: { ...failed(), effect: 'stop-workload' },
    },
    {
      row: 'a Pod is asked at once: nothing is compared or delivered',
      stage: 'materialized',
      changes: [plain],
      is: { effect: 'probe' },
    },
    {
      row: 'one that answers takes work',
      stage: 'probed',
      changes: [plain],
      is: { status: 'Serving/Accepting ExactInstanceReady', instance: 'this' },
    },
    {
      row: 'a session that its Task holds a slot for is counted once',
      stage: 'serving',
      changes: [plain, forMany, taken, inUse([session])],
      is: { status: 'Serving/Accepting ExactInstanceReady', instance: 'this', wait: 10_000 },
    },
    {
      row: 'one that nobody holds a slot for is counted as well',
      stage: 'serving',
      changes: [plain, forMany, taken, inUse([])],
      is: { status: 'Serving/Closed ExactInstanceReady', instance: 'this', wait: 10_000 },
    },
    {
      row: 'another container is asked before it is used',
      stage: 'serving',
      changes: [plain, knowing({ probe: { ...probed(), containerId: 'containerd://0' } })],
      is: { effect: 'probe' },
    },
    {
      row: 'another boot in the same Pod is given up',
      stage: 'serving',
      changes: [plain, knowing({ probe: { ...probed(), status: statusDocument({ uid: pod.uid, boot: 'boot-2' }) } })],
      is: { status: 'Degraded/Closed SupervisorRestartDetected', instance: 'none', effect: 'stop-workload' },
    },
    {
      row: 'another Pod of the Deployment is the instance when it answers',
      stage: 'serving',
      changes: [plain, withPod({ uid: 'pod-uid-2' })],
      is: { effect: 'probe' },
    },
    {
      row: 'a Deployment that someone changed is given up',
      stage: 'serving',
      changes: [plain, withTemplate({ whole: false })],
      is: { ...failed(), effect: 'stop-workload' },
    },
    {
      row: 'one that asks for several Pods as well',
      stage: 'serving',
      changes: [plain, withClaim({ whole: false })],
      is: { effect: 'stop-workload' },
    },
    {
      row: 'a changed one at zero is replaced',
      stage: 'pooled',
      changes: [plain, withTemplate({ whole: false })],
      is: { effect: 'ensure' },
    },
    {
      row: 'one that is rendered otherwise drains first',
      stage: 'serving',
      changes: [plain, rerendered],
      is: { status: 'Draining/Draining RolloutDraining', instance: 'keep', effect: 'drain' },
    },
    { row: 'and is replaced when nothing runs', stage: 'pooled', changes: [plain, rerendered], is: { effect: 'ensure' } },
    {
      row: 'a drained instance is ended by scaling to zero',
      stage: 'serving',
      changes: [plain, unwanted, knowing({ probe: probed(drainRequested) }), withStatus({ lifecycle: 'Quiescent' })],
      is: { status: 'Quiescent/Draining RolloutQuiescent', instance: 'keep', effect: 'stop-workload' },
    },
    {
      row: 'a Pod that ended by itself is given up',
      stage: 'serving',
      changes: [plain, withPod({ finished: true, address: undefined, ready: false })],
      is: { ...failed(), effect: 'stop-workload' },
    },
    {
      row: 'and is removed when its Deployment is at zero',
      stage: 'pooled',
      changes: [plain, having({ pods: [pod], orphans: [pod.live] })],
      is: { status: 'Stopping/Closed RolloutStopping', instance: 'none', effect: 'remove' },
    },
    {
      row: 'it is scaled to zero after the idle time',
      stage: 'serving',
      changes: [plain, idleNow],
      is: { effect: 'scale-to-zero' },
    },
    {
      row: 'not while it hosts a session',
      stage: 'serving',
      changes: [plain, idleNow, withStatus({ capacity: { residentSessions: 1 } })],
      is: { status: 'Serving/Accepting ExactInstanceReady', instance: 'this' },
    },
    {
      row: 'a stopped pool is kept for whoever comes next',
      stage: 'pooled',
      changes: [
        plain,
        unwanted,
        withStatus({ lifecycle: 'Stopped', observedGeneration: 1 }),
        having({ demand: unwantedSince(now - 1_800_000) }),
      ],
      is: { status: 'Stopped/Closed ScaledToZero', instance: 'none' },
    },
    { row: 'a deleted one takes its Deployment along', stage: 'pooled', changes: [plain, deleted], is: { effect: 'remove' } },
  ]);
});

/** `WRITE_DOCS=1 npm run jest -- pool/decide` writes the page that is compared here. */
test('docs/pool-states.md has every situation that is tested here, and what is done in it', async () => {
  const file = 'docs/pool-states.md';
  const wanted = await format(pageOf(page), { ...(await resolveConfig(file)), parser: 'markdown' });
  if (process.env['WRITE_DOCS']) writeFileSync(file, wanted);
  expect(existsSync(file) ? readFileSync(file, 'utf8') : '').toBe(wanted);
});
