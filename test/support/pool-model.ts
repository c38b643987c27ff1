import type { Manifest } from '../../src/api/index.js';
import { decide } from '../../src/controller/pool/decide.js';
import type { PoolEffect } from '../../src/controller/pool/decision.js';
import type { PodView, PoolObservation } from '../../src/controller/pool/observation.js';
import { nextStatus } from '../../src/controller/pool/status.js';
import { finalizers } from '../../src/domain/labels.js';
import {
  claim,
  drainRequested,
  observed,
  plainRendered,
  pod,
  probed,
  rendered,
  sandbox,
  statusDocument,
  template,
  templateDigest,
  warmPool,
} from './pool-observation.js';

/** How the life of a pool went on until nothing happened any more. */
export interface Life {
  readonly end: 'Serving' | 'Stopped' | 'Gone' | 'Degraded' | 'Ambiguous' | 'never';
  readonly message: string;
  readonly steps: number;
  readonly done: readonly PoolEffect['do'][];
}

/** Steps that a pool may take from anywhere to where it rests. */
const mostSteps = 90;

/**
 * Lives on from an observation in a world that works: each effect does what it is for, the provider makes and ends sandboxes, and time passes
 * where nothing else happens. A pure model, so that thousands of lives take a second; what effects really do is tested elsewhere.
 */
export function live(from: PoolObservation, start: number): Life {
  let [o, now, pods] = [from, start, 0];
  const done: PoolEffect['do'][] = [];
  for (let steps = 0; steps < mostSteps; steps++) {
    if (isReleased(o)) return { end: 'Gone', message: '', steps, done };
    const { status, effect, wait } = decide(o, now);
    if (status) o = { ...o, pool: { ...o.pool, status: nextStatus(o, status, now) } };
    const { lifecycle = 'Starting', message = '' } = o.pool.status ?? {};
    if (effect) {
      done.push(effect.do);
      if (effect.do === 'remove-finalizer') return { end: 'Gone', message, steps, done };
      o = performed(o, effect, now);
      continue;
    }
    const rests = (['Serving', 'Stopped', 'Degraded', 'Ambiguous'] as const).find((one) => one === lifecycle);
    // Looking at it again and again is rest as well.
    if (rests && done.length >= 10 && done.slice(-10).every((one) => one === 'probe'))
      return { end: rests, message, steps, done };
    const before = o;
    o = provided(o, () => `${pod.uid}-${++pods}`);
    if (o !== before || wait === 0) continue;
    // Nothing is left that only time would bring about, or what time brings about is another look.
    if (wait === undefined || (rests && wait >= 10_000)) return { end: rests ?? 'never', message, steps, done };
    now += wait;
  }
  return { end: 'never', message: o.pool.status?.message ?? '', steps: mostSteps, done };
}

const isReleased = ({ pool: { metadata } }: PoolObservation) =>
  metadata.deletionTimestamp !== undefined && !metadata.finalizers?.includes(finalizers.pool);

function performed(o: PoolObservation, effect: PoolEffect, now: number): PoolObservation {
  const { metadata, spec } = o.pool;
  const pool = (change: object) => ({ ...o, pool: { ...o.pool, metadata: { ...metadata, ...change } } });
  const knowing = (change: Partial<PoolObservation['known']>) => ({ ...o, known: { ...o.known, ...change } });
  const recording = (change: Partial<PoolObservation['recorded']>) => ({ ...o, recorded: { ...o.recorded, ...change } });
  switch (effect.do) {
    case 'add-finalizer':
      return pool({ finalizers: [finalizers.pool] });
    case 'read-credentials':
      return { ...o, credentials: { state: 'unpublished' } };
    case 'create-credentials':
      return {
        ...o,
        credentials: { state: 'ready', authSecretUid: `auth-${now}`, tokenGeneration: '0123456789abcdef' },
        rendered: o.rendered ?? (o.family === 'plain' ? plainRendered : rendered),
        isolation: o.isolation.length > 0 ? o.isolation : observed('credentialed').isolation,
      };
    case 'retire-credentials':
      return { ...recording({ instance: undefined }), credentials: { state: 'unpublished' } };
    case 'unbind-instance':
      return recording({ instance: undefined });
    case 'read-instance-credentials':
      return knowing({ authenticated: 'ready' });
    case 'ensure':
      return effect.objects.reduce((all, { wanted }) => ensured(all, wanted), o);
    case 'record-demand': {
      const { demand } = o;
      const lastAt = Math.max(demand.lastAt, effect.at);
      return { ...o, demand: { ...demand, recordedAt: effect.at, lastAt, seen: demand.active > 0 } };
    }
    case 'record-template':
      return recording({ templateDigest: effect.digest });
    case 'create-claim':
      return {
        ...o,
        claim: { live: claim, owned: true, whole: true, deleting: false, verdict: { state: 'open' } },
        known: { ...o.known, ...unknown },
      };
    case 'delete-claim':
      return o.claim ? { ...o, claim: { ...o.claim, deleting: true } } : o;
    case 'start-workload':
      return {
        ...o,
        claim: {
          live: effect.objects[0]!.wanted,
          owned: true,
          whole: true,
          deleting: false,
          verdict: { state: 'open' },
          askedAt: now,
        },
        known: { ...o.known, ...unknown },
      };
    case 'stop-workload':
      return { ...o, claim: undefined };
    case 'attest':
      return knowing({ attested: effect.pod.uid, suspect: false, mismatch: undefined });
    case 'bind-instance':
      return recording({ instance: { authSecretUID: effect.authSecretUid, workloadUID: effect.podUid } });
    case 'seed':
      return knowing({
        seeded: { podUid: effect.pod.uid, containerId: effect.pod.containerId },
        seeding: undefined,
        probe: undefined,
      });
    case 'probe':
      return knowing({ probe: answered(effect.pod, now) });
    case 'drain':
      return knowing({
        probe: { ...answered(effect.pod, now), status: statusDocument({ uid: effect.pod.uid, change: drainRequested }) },
      });
    case 'remove':
      return without(o, effect.objects);
    case 'scale-to-zero':
      if (effect.instead) return { ...o, neighbours: [] };
      return { ...o, pool: { ...o.pool, spec: { ...spec, desiredReplicas: 0 } } };
    case 'delete-pool':
      return pool({ deletionTimestamp: new Date(now).toISOString() });
    case 'remove-finalizer':
      return o;
  }
}

const unknown = {
  attested: undefined,
  suspect: false,
  mismatch: undefined,
  seeded: undefined,
  seeding: undefined,
  probe: undefined,
};

const answered = ({ uid }: PodView, now: number) => ({ ...probed({}, now), podUid: uid, status: statusDocument({ uid }) });

function ensured(o: PoolObservation, wanted: Manifest): PoolObservation {
  if (wanted.kind === 'Deployment') {
    const revision = o.rendered?.templateRevision;
    return { ...o, template: { live: wanted, owned: true, whole: true, specDigest: '', revision } };
  }
  if (wanted.kind === 'SandboxTemplate') {
    const revision = o.rendered?.templateRevision;
    return { ...o, template: { live: template, owned: true, whole: true, specDigest: templateDigest, revision } };
  }
  if (wanted.kind === 'SandboxWarmPool') return { ...o, warmPool: { live: warmPool, owned: true, whole: true } };
  const isolation = o.isolation.map((one) => (one.wanted === wanted ? { ...one, state: 'whole' as const } : one));
  return { ...o, isolation };
}

function without(o: PoolObservation, objects: readonly Manifest[]): PoolObservation {
  const stays = (object: Manifest) => !objects.includes(object);
  return {
    ...o,
    template: o.template && stays(o.template.live) ? o.template : undefined,
    warmPool: o.warmPool && stays(o.warmPool.live) ? o.warmPool : undefined,
    staleSecrets: o.staleSecrets.filter(stays),
    remains: o.remains.filter(stays),
    ...(objects.some((one) => o.orphans.includes(one))
      ? { orphans: [], sandbox: undefined, pods: [], cordonedNode: undefined }
      : {}),
  };
}

/** What provider and kubelet do meanwhile; the same observation when there is nothing to do. */
function provided(o: PoolObservation, uid: () => string): PoolObservation {
  if (o.claim?.deleting || (!o.claim && (o.sandbox || o.pods.length > 0)))
    return { ...o, claim: undefined, sandbox: undefined, pods: [], cordonedNode: undefined };
  if (!o.claim || o.missingKinds.length > 0) return o;
  const dying = o.pods.some(({ deleting }) => deleting);
  if (o.pods.length > 0 && !dying && (o.sandbox || o.family === 'plain')) return o;
  return {
    ...o,
    sandbox: o.family === 'plain' ? undefined : (o.sandbox ?? sandbox),
    // Another Pod is on another node.
    ...(dying || o.pods.length === 0 ? { pods: [{ ...pod, uid: uid() }], cordonedNode: undefined } : {}),
  };
}
