import type { Manifest, PoolLifecycle, RuntimePool } from '../../api/index.js';
import { patchWatched } from '../patch.js';
import type { Classes } from '../classes.js';
import type { PodEnds } from '../pod-ends.js';
import { KubeError } from '../../kube/errors.js';
import type { KubeEvent } from '../../kube/events.js';
import type { WorkResult } from '../../kube/workqueue.js';
import { mergeChange } from '../../lib/json.js';
import type { JsonObject } from '../../lib/json.js';
import type { CompiledPool } from '../../render/compile.js';
import { perform } from './act.js';
import type { Performed, PoolActOptions, PoolWork } from './act.js';
import { decide } from './decide.js';
import type { PoolEffect, StatusIntent } from './decision.js';
import { ForeignObjectError } from './ensure.js';
import { degraded } from './intents.js';
import { createMemory, isDeleting, learnContainer, missesClaim } from './memory.js';
import type { AuthMaterial, PoolMemory } from './memory.js';
import type { PoolObservation } from './observation.js';
import { observePool } from './observe.js';
import { keepLive } from './rule.js';
import { nextStatus } from './status.js';
import { sweep } from './sweep.js';

export interface PoolReconcilerOptions extends PoolActOptions {
  readonly classes: Pick<Classes, 'of'>;
  /** The operator's switch for the provider. */
  readonly enabled: boolean;
  readonly idleTtl: number;
  /** Fields of the provider's objects that a class needs and the installed provider does not serve. */
  readonly fieldGapsOf: (compiled: CompiledPool) => readonly string[];
  readonly endOf: PodEnds['of'];
  readonly record: (event: KubeEvent) => void;
  readonly signals: PoolSignals;
}

type PoolMilestone = 'Draining' | 'Stopping' | 'PoolDeleted' | 'PoolEnded';

type AttestResult = 'whole' | 'differs' | 'undecided' | 'incomplete';

/** What is told of pools as it happens, for whoever counts or watches. */
export interface PoolSignals {
  /** A step of a pool's life that has no event. */
  readonly milestone: (pool: RuntimePool, what: PoolMilestone, note: string) => void;
  /** A status was written. `took`: milliseconds in the lifecycle before it, if that is another and this process saw it begin. */
  readonly status: (pool: RuntimePool, before: PoolLifecycle | undefined, took: number | undefined) => void;
  /** `conflicted`: somebody else wrote the object since it was looked at. */
  readonly effect: (effect: PoolEffect, phase: 'begins' | 'performed' | 'conflicted') => void;
  /** The chain of a Pod was compared. `undecided`: admission could not be asked; `incomplete`: not all of it could be read, or was there. */
  readonly attested: (result: AttestResult) => void;
}

export interface PoolReconciler {
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<WorkResult>;
  /** Credentials of a pool's instance; `undefined` when they are not known in this process. Never to be written anywhere. */
  readonly credentialsOf: (key: string, epoch: number) => AuthMaterial | undefined;
  /** The instance changed by what was asked of it: it is looked at again. */
  readonly lookAgain: (key: string) => void;
}

/** Steps that one run takes before others get their turn. */
const mostSteps = 40;
const watchedFor = 1_000;
/** Milliseconds of serving after which earlier failures are forgiven. */
const forgivenAfter = 300_000;

/** Runs pools: observe, decide, write the status, act, and again, until nothing is to be done at once. */
export function createPoolReconciler(options: PoolReconcilerOptions): PoolReconciler {
  const { signals } = options;
  const memories = new Map<string, { readonly uid: string; readonly memory: PoolMemory }>();

  /** What is remembered of the pool of that name belongs to that pool only, not to another of its name. */
  function memoryOf(key: string): PoolMemory {
    const uid = options.world.pools.get(key)?.metadata.uid ?? '';
    const known = memories.get(key);
    if (known?.uid === uid) return known.memory;
    const memory = createMemory();
    memories.set(key, { uid, memory });
    return memory;
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<WorkResult> {
    const pool = options.world.pools.get(key) as unknown as RuntimePool | undefined;
    if (!pool) {
      memories.delete(key);
      return (await sweep(options, key, undefined, signal)) ? { requeueAfter: watchedFor } : undefined;
    }
    // What is known of it may be out of date for long: nothing is decided on that.
    if (!options.world.pools.readable(pool.metadata.namespace)) return undefined;
    const memory = memoryOf(key);
    // A token that could not be used may have been mended.
    if (memory.token && 'says' in memory.token) memory.token = undefined;
    try {
      // What another pool of the name left would be in the way as something foreign.
      if (!memory.swept || pool.status?.lifecycle === 'Degraded')
        memory.swept = !(await sweep(options, key, pool.metadata.uid, signal));
      return await steps(key, memory, signal);
    } catch (error) {
      return await failed(key, memory, error, signal);
    }
  }

  async function steps(key: string, memory: PoolMemory, signal: AbortSignal): Promise<WorkResult> {
    let last = '';
    for (let step = 0; step < mostSteps && !signal.aborted; step++) {
      const o = observePool(options, key, memory);
      if (!o) return undefined;
      learnContainer(memory, o.pods);
      if (o.demand.active > 0) memory.wanted = true;
      if (missesClaim(memory, o)) tellEnded(o.pool, 'the claim was deleted by someone else');
      const decision = decide(o, options.clock.now());
      // What is tried in vain again and again would be announced again and again.
      const vain = decision.effect !== undefined && decision.effect.do === memory.refused;
      const pool = decision.status && !vain ? await writeStatus(o, memory, decision.status, signal) : o.pool;
      if (decision.status?.lifecycle === 'Serving' && options.clock.now() - memory.recycling.at > forgivenAfter)
        memory.recycling = { count: 0, at: 0, because: '' };
      if (!decision.effect) {
        if (decision.wait === 0) continue;
        return decision.wait === undefined ? undefined : { requeueAfter: decision.wait };
      }
      last = decision.effect.do;
      const work: PoolWork = {
        options,
        // What was decided on, and our own status: an effect on a pool that someone else wrote since is a conflict.
        o: { ...o, pool },
        compiled: o.poolClass.state === 'ready' ? o.poolClass.compiled : undefined,
        memory,
        signal,
      };
      if ((await attempt(work, decision.effect)) === 'watch') return { requeueAfter: watchedFor };
    }
    // What is done again and again without an end is a defect; the queue makes its waits longer and longer.
    if (!signal.aborted) throw new Error(`pool ${key} does not settle: ${last} is done over and over`);
    return undefined;
  }

  async function attempt(work: PoolWork, effect: PoolEffect): Promise<Performed> {
    const { memory } = work;
    try {
      signals.effect(effect, 'begins');
      const performed = await perform(work, effect);
      signals.effect(effect, 'performed');
      if (effect.do === 'attest') signals.attested(resultOf(memory));
      const ends = effect.do === 'delete-claim' || effect.do === 'stop-workload';
      const unplanned = ends && (effect.cause !== 'planned' || effect.by !== undefined);
      if (ends && unplanned && isDeleting(memory, effect.claim)) tellEnded(work.o.pool, effect.because);
      if (effect.do === 'delete-pool') signals.milestone(work.o.pool, 'PoolDeleted', 'it has no demand any more');
      if (effect.do === 'remove-finalizer') signals.milestone(work.o.pool, 'PoolEnded', 'nothing is left of it');
      if (effect.do === 'scale-to-zero' && effect.instead) tellRoom(effect.instead);
      if (memory.refused === effect.do) memory.refused = undefined;
      return performed;
    } catch (error) {
      if (isLasting(error)) memory.refused = effect.do;
      if (isConflict(error)) signals.effect(effect, 'conflicted');
      throw error;
    }
  }

  /** @returns the pool with its new status */
  async function writeStatus(
    o: PoolObservation,
    memory: PoolMemory,
    intent: StatusIntent,
    signal: AbortSignal,
  ): Promise<RuntimePool> {
    const before = (o.pool.status ?? {}) as JsonObject;
    const now = options.clock.now();
    const after = nextStatus(o, intent, now);
    const change = mergeChange(before, after);
    if (!change) return o.pool;
    const object = await patchWatched(
      options.client,
      options.world.pools,
      o.pool,
      { status: change },
      {
        manager: options.statusManager,
        subresource: 'status',
        signal,
      },
    );
    const { lifecycle, message } = o.pool.status ?? {};
    const moved = lifecycle !== intent.lifecycle;
    const { entered } = memory;
    const took = moved && entered && entered.lifecycle === lifecycle ? now - entered.at : undefined;
    if (moved) memory.entered = { lifecycle: intent.lifecycle, at: now };
    signals.status(object as unknown as RuntimePool, lifecycle, took);
    if (moved && (intent.lifecycle === 'Draining' || intent.lifecycle === 'Stopping'))
      signals.milestone(object as unknown as RuntimePool, intent.lifecycle, intent.message);
    if (moved || (isFault(intent) && message !== after.message)) tell(object, intent);
    return object as unknown as RuntimePool;
  }

  function tell(pool: Manifest, intent: StatusIntent): void {
    const { lifecycle, message } = intent;
    if (!told.includes(lifecycle)) return;
    const type = isFault(intent) ? 'Warning' : 'Normal';
    options.record({ regarding: pool, type, reason: lifecycle, action: 'Reconcile', note: message });
  }

  function tellEnded(pool: RuntimePool, because: string): void {
    const regarding = pool as unknown as Manifest;
    const [reason, action] = pool.spec.executionWorkspace
      ? ['SandboxEnded', 'DeleteClaim']
      : ['InstanceEnded', 'ScaleDeployment'];
    options.record({ regarding, type: 'Warning', reason, action, note: because });
  }

  function tellRoom({ pool, because }: { readonly pool: RuntimePool; readonly because: string }): void {
    const regarding = pool as unknown as Manifest;
    options.record({ regarding, type: 'Normal', reason: 'RoomNeeded', action: 'ScaleToZero', note: because });
  }

  /** What was refused is said; what is only out of date is looked at again. */
  async function failed(key: string, memory: PoolMemory, error: unknown, signal: AbortSignal): Promise<WorkResult> {
    if (isConflict(error)) return { requeueAfter: 20 };
    const o = isLasting(error) ? observePool(options, key, memory) : undefined;
    if (!o) throw error;
    await writeStatus(o, memory, degraded((error as Error).message, keepLive(o)), signal);
    return { requeueAfter: 10_000 };
  }

  return {
    reconcile,
    credentialsOf: (key, epoch) => {
      const material = memories.get(key)?.memory.auth.get(epoch);
      return material === 'lost' ? undefined : material;
    },
    lookAgain: (key) => {
      const memory = memories.get(key)?.memory;
      if (memory) memory.probe = undefined;
    },
  };
}

function isConflict(error: unknown): boolean {
  return error instanceof KubeError && error.code === 'conflict';
}

function resultOf({ mismatch, attested, undecided }: PoolMemory): AttestResult {
  if (mismatch) return 'differs';
  if (undecided) return 'undecided';
  return attested ? 'whole' : 'incomplete';
}

const told: readonly string[] = ['Serving', 'Stopped', 'Degraded', 'Ambiguous'];

function isFault({ lifecycle }: StatusIntent): boolean {
  return lifecycle === 'Degraded' || lifecycle === 'Ambiguous';
}

/** The server understood the request and does not want it: quota, admission, RBAC, validation. Or something foreign is in the way. */
function isLasting(error: unknown): boolean {
  if (error instanceof ForeignObjectError) return true;
  return error instanceof KubeError && ['forbidden', 'invalid', 'kind-missing'].includes(error.code);
}
