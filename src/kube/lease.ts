import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Manifest } from '../api/index.js';
import { isObject } from '../lib/json.js';
import type { JsonObject } from '../lib/json.js';
import { jittered } from './backoff.js';
import { get } from './client.js';
import type { KubeClient, ObjectRef } from './client.js';
import { microTime, sleep, systemClock } from './clock.js';
import type { Clock } from './clock.js';
import { create } from './create.js';
import { askedWait, KubeError } from './errors.js';
import type { KubeErrorCode } from './errors.js';
import { update } from './update.js';

export interface ElectionOptions {
  readonly namespace: string;
  /** Of the Lease. */
  readonly name: string;
  /** Field manager, at most 128 characters. */
  readonly manager: string;
  /**
   * The highest epoch that anything still bears; asked only when the Lease does not say it, so that no epoch is given twice. A failure is
   * reported, and the Lease stays as it is.
   */
  readonly highestEpoch: () => Promise<number>;
  /** Called once, when a leadership ended against our will; its signal is aborted already. Nothing is tried after that. */
  readonly onLost: (reason: Error) => void;
  /** Whatever went wrong; all of it is tried again. */
  readonly onError: (error: unknown) => void;
  /** @default the host's name and a random UUID */
  readonly identity?: string;
  /** Milliseconds after which others may take a Lease that is not renewed. @default 15000 */
  readonly duration?: number;
  /** Milliseconds between renewals. @default 5000 */
  readonly renewEvery?: number;
  /** Milliseconds without a renewal after which we give up: less than `duration`, so that we have stopped before others begin. @default 10000 */
  readonly renewWithin?: number;
  /** Milliseconds between looks at a Lease that someone else holds: how long one that was given back stays without a leader. @default 1000 */
  readonly lookEvery?: number;
  /** Milliseconds between tries of what failed. @default 2000 */
  readonly retryEvery?: number;
  readonly clock?: Clock;
  readonly random?: () => number;
}

export interface Leadership {
  /** Greater than any epoch before it. */
  readonly epoch: number;
  /** Aborted when the leadership ends, lost or released. */
  readonly signal: AbortSignal;
  /** Whether it lasts at this very moment: a process that was stopped for a while learns it here before its timers run. */
  readonly holds: () => boolean;
}

/** One try to lead, until it is released or lost. */
export interface Election {
  readonly identity: string;
  /** Settles when we lead; `undefined` when the election was released before that. Never rejects. */
  readonly leading: Promise<Leadership | undefined>;
  /** Gives the Lease back, so that the next one takes it at once. Never throws; a Lease that cannot be given back expires. May be called often. */
  readonly release: () => Promise<void>;
}

/** What a PUT answers when the object is in another state, or gone. */
const changed: readonly KubeErrorCode[] = ['conflict', 'not-found'];
/** What a PUT answers when the account, its Role or the namespace went before us: nobody is left to take over. */
const uninstalled: readonly KubeErrorCode[] = ['unauthorized', 'forbidden', 'kind-missing'];
/** No number of slow requests may cost the leadership. */
const urgent = true;
const epochAnnotation = 'orka.ai/controller-epoch';

/**
 * Leads while it holds a Lease. One who waits looks at it now and then, and takes it when it is given back, or has not changed for its
 * duration: measured from when *we* saw the change, since the clock of the holder is not ours. Taking it is one PUT that names us and adds one
 * to the annotation `orka.ai/controller-epoch`, or one POST when there is no Lease. Each renewal is one PUT; whatever else was written into the
 * Lease meanwhile stays.
 *
 * A leadership is lost when the Lease names someone else, has another epoch or is gone, or when it could not be renewed for `renewWithin`, counted
 * from when the last renewal was sent. Others wait for `duration`, counted from when they saw it, which is later: so no two lead at a time.
 *
 * Throws `RangeError` for times that would not keep that.
 */
export function elect(client: KubeClient, options: ElectionOptions): Election {
  const {
    manager,
    identity = `${hostname()}_${randomUUID()}`,
    duration = 15_000,
    renewEvery = 5_000,
    renewWithin = 10_000,
    lookEvery = 1_000,
    retryEvery = 2_000,
    clock = systemClock,
    random = Math.random,
  } = options;
  if (!(0 < renewEvery && renewEvery < renewWithin && renewWithin < duration)) {
    throw new RangeError(`a Lease of ${duration} ms cannot be renewed every ${renewEvery} ms and within ${renewWithin} ms`);
  }
  const ref: ObjectRef = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    namespace: options.namespace,
    name: options.name,
  };
  /** The caller wants no more. */
  const releasing = new AbortController();
  /** The leadership is over. */
  const ended = new AbortController();
  const over = AbortSignal.any([releasing.signal, ended.signal]);
  /** The Lease as we wrote or read it last, while it is ours. */
  let held: Manifest | undefined;
  /** Until when, in `clock.elapsed()`, nobody else can have taken it. */
  let validUntil = 0;
  let cancelDeadline = (): void => undefined;

  function report(error: unknown): void {
    try {
      options.onError(error);
    } catch {
      // Nobody is left to tell.
    }
  }

  /** @param began when the request was sent that holds the Lease: others may have seen it change at any moment since */
  function hold(lease: Manifest, began: number): void {
    held = lease;
    validUntil = began + renewWithin;
    cancelDeadline();
    cancelDeadline = clock.after(validUntil - clock.elapsed(), () => {
      lose(`it could not be renewed for ${renewWithin} ms`);
    });
  }

  function end(): void {
    cancelDeadline();
    held = undefined;
    validUntil = 0;
    ended.abort();
  }

  function lose(why: string): void {
    if (ended.signal.aborted) return;
    end();
    try {
      options.onLost(new Error(`the Lease ${options.namespace}/${options.name} is lost: ${why}`));
    } catch (error) {
      report(error);
    }
  }

  /** Waits for a free Lease and takes it. Answers the epoch, or nothing when nobody wants it any more. */
  async function campaign(): Promise<number | undefined> {
    let seen: { readonly version: string | undefined; readonly at: number } | undefined;
    while (!releasing.signal.aborted) {
      let wait = jittered(lookEvery, random);
      try {
        const lease = await get(client, ref, { timeout: renewEvery, signal: releasing.signal, urgent });
        const version = lease?.metadata.resourceVersion;
        if (seen?.version !== version) seen = undefined;
        seen ??= { version, at: clock.elapsed() };
        if (!lease || isFree(lease, clock.elapsed() - seen.at)) {
          const epoch = await take(lease);
          if (epoch !== undefined) return epoch;
        }
      } catch (error) {
        if (!over.aborted) report(error);
        wait = Math.max(jittered(retryEvery, random), Math.min(askedWait(error), duration));
      }
      await sleep(clock, wait, releasing.signal);
    }
    return undefined;
  }

  function isFree(lease: Manifest, unchanged: number): boolean {
    const { holderIdentity, leaseDurationSeconds } = specOf(lease);
    // Our own name: the answer to a PUT of ours was lost.
    if (typeof holderIdentity !== 'string' || holderIdentity === '' || holderIdentity === identity) return true;
    // Somebody may have made it shorter than its holder thinks.
    return unchanged >= Math.max(duration, typeof leaseDurationSeconds === 'number' ? leaseDurationSeconds * 1000 : 0);
  }

  /** Nothing when someone was faster. */
  async function take(lease: Manifest | undefined): Promise<number | undefined> {
    const epoch = 1 + (epochOf(lease) ?? (await highest()));
    if (releasing.signal.aborted) return undefined;
    const now = microTime(clock.now());
    const { leaseTransitions, ...spec } = specOf(lease);
    const wanted: Manifest = {
      ...(lease ?? { apiVersion: ref.apiVersion, kind: ref.kind }),
      metadata: {
        ...(lease?.metadata ?? { name: options.name, namespace: options.namespace }),
        annotations: { ...lease?.metadata.annotations, [epochAnnotation]: String(epoch) },
      },
      spec: {
        ...spec,
        holderIdentity: identity,
        leaseDurationSeconds: Math.ceil(duration / 1000),
        acquireTime: now,
        renewTime: now,
        leaseTransitions: lease ? 1 + (typeof leaseTransitions === 'number' ? leaseTransitions : 0) : 0,
      },
    };
    const began = clock.elapsed();
    try {
      const taken = lease
        ? await put(lease, wanted, renewEvery)
        : await create(client, wanted, { manager, timeout: renewEvery, urgent });
      hold(taken, began);
      return epoch;
    } catch (error) {
      // A missing namespace is `not-found` as well, for a POST.
      if (isOneOf(error, lease ? changed : ['already-exists'])) return undefined;
      throw error;
    }
  }

  async function highest(): Promise<number> {
    const epoch = await options.highestEpoch();
    if (Number.isSafeInteger(epoch) && epoch >= 0) return epoch;
    throw new RangeError(`the highest epoch cannot be ${epoch}`);
  }

  async function put(before: Manifest, wanted: Manifest, timeout: number): Promise<Manifest> {
    const { uid = '', resourceVersion = '' } = before.metadata;
    return (await update(client, wanted, { manager, uid, resourceVersion, timeout: Math.max(1, timeout), urgent })).object;
  }

  /** Renews until the leadership ends. */
  async function renew(epoch: number): Promise<void> {
    let wait = renewEvery;
    for (;;) {
      await sleep(clock, wait, over);
      if (over.aborted || !held) return;
      const began = clock.elapsed();
      const left = validUntil - began;
      if (left <= 0) {
        lose(`it could not be renewed for ${renewWithin} ms`);
        return;
      }
      try {
        const spec = { ...specOf(held), leaseDurationSeconds: Math.ceil(duration / 1000), renewTime: microTime(clock.now()) };
        // A connection may be dead: there must be time for another one.
        const lease = await put(held, { ...held, spec }, Math.min(renewEvery, left / 2));
        if (ended.signal.aborted) return;
        hold(lease, began);
        wait = Math.max(0, renewEvery - (clock.elapsed() - began));
      } catch (error) {
        const soon = retryEvery / 10;
        if (isOneOf(error, changed)) {
          await look(epoch, (validUntil - clock.elapsed()) / 2);
          wait = jittered(soon, random);
        } else {
          report(error);
          const asked = Math.min(askedWait(error), (validUntil - clock.elapsed()) / 2);
          wait = Math.max(asked, jittered(retryEvery, random) - (clock.elapsed() - began), soon);
        }
      }
    }
  }

  /** What a Lease means that was written behind us: by a PUT of ours whose answer was lost, by someone who annotated it, or by another leader. */
  async function look(epoch: number, timeout: number): Promise<void> {
    try {
      const lease = await get(client, ref, { timeout: Math.max(1, timeout), signal: ended.signal, urgent });
      if (ended.signal.aborted) return;
      const { holderIdentity } = specOf(lease);
      if (!lease) lose('it is gone');
      else if (holderIdentity !== identity) lose(`it is held by ${JSON.stringify(holderIdentity ?? 'nobody')}`);
      else if (epochOf(lease) !== epoch) lose(`its epoch is no longer ${epoch}`);
      else held = lease;
    } catch (error) {
      if (!ended.signal.aborted) report(error);
    }
  }

  /** Without a holder, and with the shortest duration for those who look at it alone. What was written meanwhile is read once. */
  async function giveBack(lease: Manifest): Promise<void> {
    for (let before: Manifest | undefined = lease, tries = 0; before && tries < 2; tries++) {
      const { holderIdentity, ...spec } = specOf(before);
      if (holderIdentity !== identity) return;
      try {
        await put(
          before,
          { ...before, spec: { ...spec, leaseDurationSeconds: 1, renewTime: microTime(clock.now()) } },
          renewEvery,
        );
        return;
      } catch (error) {
        if (!isOneOf(error, changed)) throw error;
        before = await get(client, ref, { timeout: renewEvery, urgent });
      }
    }
  }

  let tell: (leadership: Leadership | undefined) => void = () => undefined;
  const leading = new Promise<Leadership | undefined>((resolve) => {
    tell = resolve;
  });

  async function run(): Promise<void> {
    const epoch = await campaign();
    if (epoch === undefined || releasing.signal.aborted) {
      tell(undefined);
      return;
    }
    tell({ epoch, signal: ended.signal, holds: () => !ended.signal.aborted && clock.elapsed() < validUntil });
    await renew(epoch);
  }

  const running = run().catch(report);
  let released: Promise<void> | undefined;

  async function release(): Promise<void> {
    releasing.abort();
    await running;
    const lease = held;
    end();
    if (!lease) return;
    await giveBack(lease).catch((error: unknown) => {
      if (!isOneOf(error, uninstalled)) report(error);
    });
  }

  return { identity, leading, release: () => (released ??= release()) };
}

function specOf(lease: Manifest | undefined): JsonObject {
  const spec = lease?.['spec'];
  return isObject(spec) ? spec : {};
}

function epochOf(lease: Manifest | undefined): number | undefined {
  const text = lease?.metadata.annotations?.[epochAnnotation];
  const epoch = text !== undefined && /^[1-9]\d*$/.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(epoch) && epoch > 0 ? epoch : undefined;
}

function isOneOf(error: unknown, codes: readonly KubeErrorCode[]): boolean {
  return error instanceof KubeError && codes.includes(error.code);
}
