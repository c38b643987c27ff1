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
  const { maxResidentSessions = 1, maxRunningPrompts = 1, residentSessions = 0, runningPrompts = 0 } = capacity;
  // A session is counted by the instance as well as by its reservation. What is used without one closes admission, or the instance refuses.
  const sessions = Math.max(
    residentSessions,
    others.reduce((sum, { residentSlots }) => sum + residentSlots, 0),
  );
  const prompts = Math.max(
    runningPrompts,
    others.reduce((sum, { promptSlots }) => sum + promptSlots, 0),
  );
  if (sessions >= maxResidentSessions || prompts >= maxRunningPrompts || others.length >= 1000) return undefined;
  const own: PoolReservation = {
    ...holder,
    residentSlots: 1,
    promptSlots: 1,
    reservedAt: timestamp(now),
    expiresAt: timestamp(now + reservationLife),
  };
  const full = sessions + 1 >= maxResidentSessions || prompts + 1 >= maxRunningPrompts;
  return write(options, pool, [...others, own], full ? now : undefined);
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
