import type { PoolReservation, RuntimePool } from '../../api/index.js';
import type { KubeClient } from '../../kube/client.js';
import { timestamp } from '../../kube/clock.js';
import { mergeChange } from '../../lib/json.js';
import { patchWatched } from '../patch.js';
import type { World } from '../world.js';

export interface ReserveOptions {
  readonly client: KubeClient;
  readonly world: World;
  readonly manager: string;
  readonly signal?: AbortSignal;
}

/** Slots of the one instance that nobody uses or holds. Source: workload.md §7.11. */
export function freeSlots(pool: RuntimePool, now: number): number {
  const held = pool.status?.capacity?.reservations ?? [];
  return slotsLeft(
    pool,
    held.filter(({ expiresAt }) => Date.parse(expiresAt) > now),
  );
}

/** A reservation is held until its session is gone: whoever is counted as resident is among the holders, unless an attempt left a session. */
function slotsLeft({ spec, status }: RuntimePool, held: readonly PoolReservation[]): number {
  const { residentSessions = 0, runningPrompts = 0, ...most } = status?.capacity ?? {};
  const { maxResidentSessions = 1, maxRunningPrompts = 1 } = { ...spec.capacity, ...most };
  const sessions = held.reduce((sum, { residentSlots }) => sum + residentSlots, 0);
  const prompts = held.reduce((sum, { promptSlots }) => sum + promptSlots, 0);
  const left = [
    maxResidentSessions - Math.max(sessions, residentSessions),
    maxRunningPrompts - Math.max(prompts, runningPrompts),
  ];
  return Math.max(Math.min(...left), 0);
}

/** Who a reservation is for. */
export type Holder = Pick<PoolReservation, 'poolUID' | 'taskUID' | 'attempt' | 'controllerEpoch' | 'runtimeInstanceID'>;

export const reservationLife = 120_000;

/**
 * Takes the only way into a sandbox: a slot of its one instance, by compare-and-set on the pool's status. `undefined` = it is not to be had
 * now. The pool may be written by others at the same time, which is a `conflict`. Source: workload.md §7.11.
 */
export async function reserve(
  options: ReserveOptions,
  pool: RuntimePool,
  holder: Holder,
  now: number,
): Promise<RuntimePool | undefined> {
  const { lifecycle, admissionState, activeInstance, capacity = {} } = pool.status ?? {};
  const current =
    activeInstance?.runtimeInstanceID === holder.runtimeInstanceID && activeInstance.controllerEpoch === holder.controllerEpoch;
  const { uid, generation, deletionTimestamp } = pool.metadata;
  const asked = uid === holder.poolUID && deletionTimestamp === undefined && pool.status?.observedGeneration === generation;
  if (lifecycle !== 'Serving' || admissionState !== 'Accepting' || !current || !asked) return undefined;
  const others = (capacity.reservations ?? []).filter(
    (one) =>
      one.taskUID !== holder.taskUID &&
      one.controllerEpoch === holder.controllerEpoch &&
      one.runtimeInstanceID === holder.runtimeInstanceID &&
      Date.parse(one.expiresAt) > now,
  );
  const left = slotsLeft(pool, others);
  if (left === 0 || others.length >= 1000) return undefined;
  const own: PoolReservation = {
    ...holder,
    residentSlots: 1,
    promptSlots: 1,
    reservedAt: timestamp(now),
    expiresAt: timestamp(now + reservationLife),
  };
  return write(options, pool, [...others, own], left === 1 ? now : undefined);
}

/** Holds a slot for longer. `undefined` = it is not ours any more. */
export async function renew(
  options: ReserveOptions,
  pool: RuntimePool,
  holder: Holder,
  now: number,
): Promise<RuntimePool | undefined> {
  const all = pool.status?.capacity?.reservations ?? [];
  if (!all.some((one) => isHeldBy(one, holder))) return undefined;
  const renewed = all.map((one) => (isHeldBy(one, holder) ? { ...one, expiresAt: timestamp(now + reservationLife) } : one));
  return write(options, pool, renewed, undefined);
}

/** Gives a slot back; one that is not held changes nothing. */
export async function release(options: ReserveOptions, pool: RuntimePool, holder: Holder): Promise<void> {
  const all = pool.status?.capacity?.reservations ?? [];
  if (all.some((one) => isHeldBy(one, holder)))
    await write(
      options,
      pool,
      all.filter((one) => !isHeldBy(one, holder)),
      undefined,
    );
}

function isHeldBy(one: PoolReservation, holder: Holder): boolean {
  return (['poolUID', 'taskUID', 'attempt', 'controllerEpoch', 'runtimeInstanceID'] as const).every(
    (name) => one[name] === holder[name],
  );
}

/** One write says both: the slot is taken, and nobody else need try. */
async function write(
  { client, world, manager, signal }: ReserveOptions,
  pool: RuntimePool,
  reservations: readonly PoolReservation[],
  fullSince: number | undefined,
): Promise<RuntimePool> {
  const before = pool.status ?? {};
  const full = 'the instance is at capacity';
  const after = {
    ...before,
    capacity: {
      ...before.capacity,
      reservations,
      reservedSessions: reservations.reduce((sum, { residentSlots }) => sum + residentSlots, 0),
      reservedPrompts: reservations.reduce((sum, { promptSlots }) => sum + promptSlots, 0),
    },
    ...(fullSince === undefined
      ? {}
      : {
          admissionState: 'Closed' as const,
          message: full,
          conditions: (before.conditions ?? []).map((condition) =>
            condition.type === 'AdmissionReady'
              ? {
                  ...condition,
                  status: 'False' as const,
                  reason: 'AtCapacity',
                  message: full,
                  lastTransitionTime: timestamp(fullSince),
                }
              : condition,
          ),
        }),
  };
  const change = mergeChange(before, after);
  const object = await patchWatched(
    client,
    world.pools,
    pool,
    { status: change ?? {} },
    { manager, subresource: 'status', signal },
  );
  return object as unknown as RuntimePool;
}
