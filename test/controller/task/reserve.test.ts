import { describe, expect, test } from '@jest/globals';
import type { PoolReservation, RuntimePool } from '../../../src/api/index.js';
import { release, renew, reserve } from '../../../src/controller/task/reserve.js';
import type { Holder } from '../../../src/controller/task/reserve.js';
import { at, boundTask, created, epoch, poolOf, worldOf } from '../../support/controlled-task.js';
import { memoryClient } from '../../support/memory-client.js';

const now = created + 1_000;
const { plan } = boundTask();
const holder: Holder = {
  poolUID: 'pool-uid-1',
  taskUID: 'task-1',
  attempt: 1,
  controllerEpoch: epoch,
  runtimeInstanceID: 'pod-uid-1.boot-1',
};
const held = (change: Partial<PoolReservation> = {}): PoolReservation => ({
  ...holder,
  taskUID: 'task-2',
  residentSlots: 1,
  promptSlots: 1,
  reservedAt: at(created),
  expiresAt: at(now + 60_000),
  ...change,
});

function stored(status: Partial<NonNullable<RuntimePool['status']>> = {}, metadata: Partial<RuntimePool['metadata']> = {}) {
  const client = memoryClient();
  const pool = poolOf(plan, status);
  const first = client.put({ ...pool, metadata: { ...pool.metadata, ...metadata } }) as unknown as RuntimePool;
  const options = { client, world: worldOf(client), manager: 'test' };
  const pool_ = () => client.at('RuntimePool', plan.poolName) as unknown as RuntimePool;
  return { client, options, first, pool: pool_, writes: () => client.asked.filter((one) => one.startsWith('PATCH')) };
}

const capacity = (reservations: readonly PoolReservation[], more: object = {}) => ({
  capacity: { maxResidentSessions: 1, maxRunningPrompts: 1, residentSessions: 0, runningPrompts: 0, reservations, ...more },
});

describe('a slot', () => {
  test('is taken, and the last one closes admission in the same write', async () => {
    const { options, first, pool, writes } = stored();
    await reserve(options, first, holder, now);
    expect(writes()).toHaveLength(1);
    expect(pool().status).toMatchObject({
      admissionState: 'Closed',
      message: 'the instance is at capacity',
      capacity: {
        reservedSessions: 1,
        reservedPrompts: 1,
        reservations: [{ ...holder, residentSlots: 1, promptSlots: 1, reservedAt: at(now), expiresAt: at(now + 120_000) }],
      },
      conditions: [{ type: 'AdmissionReady', status: 'False', reason: 'AtCapacity' }],
    });
  });

  test('that is not the last one leaves admission open', async () => {
    const { options, first, pool } = stored(capacity([], { maxResidentSessions: 2, maxRunningPrompts: 2 }));
    await reserve(options, first, holder, now);
    expect(pool().status?.admissionState).toBe('Accepting');
  });

  test.each([
    ['another Task holds it', capacity([held()])],
    ['a session is resident', capacity([], { residentSessions: 1 })],
    ['a prompt runs', capacity([], { runningPrompts: 1 })],
    ['the pool does not serve', { lifecycle: 'Draining' as const }],
    ['admission is closed', { admissionState: 'Closed' as const }],
    ['there is no instance', { activeInstance: undefined }],
    ['the instance is of another epoch', { activeInstance: { controllerEpoch: 2 } as never }],
    ['the pool was looked at in another generation', { observedGeneration: 1 }],
  ])('is not to be had when %s', async (_, status) => {
    const { options, first, writes } = stored(status);
    expect(await reserve(options, first, holder, now)).toBeUndefined();
    expect(writes()).toEqual([]);
  });

  test('of a pool with another UID, or one that is being deleted, is not to be had', async () => {
    for (const metadata of [{ uid: 'pool-uid-2' }, { deletionTimestamp: at(now) }]) {
      const { options, first } = stored({}, metadata);
      expect(await reserve(options, first, holder, now)).toBeUndefined();
    }
  });

  test.each([
    ['expired', { expiresAt: at(now) }],
    ['of another epoch', { controllerEpoch: 2 }],
    ['of another instance', { runtimeInstanceID: 'pod-uid-0.boot-0' }],
    ['its own from an earlier try', { taskUID: 'task-1' }],
  ])('that is held by a record that is %s is free, and the record goes', async (_, change) => {
    const { options, first, pool } = stored(capacity([held(change)]));
    await reserve(options, first, holder, now);
    expect(pool().status?.capacity?.reservations).toEqual([expect.objectContaining({ taskUID: 'task-1', reservedAt: at(now) })]);
  });

  test('is not taken on a pool that was written since', async () => {
    const { client, options, first } = stored();
    client.put({ ...first, metadata: { ...first.metadata, labels: { x: 'y' } } });
    await expect(reserve(options, first, holder, now)).rejects.toMatchObject({ code: 'conflict' });
  });
});

describe('a slot that is held', () => {
  test('is held for longer', async () => {
    const { options, first, pool } = stored(capacity([held({ taskUID: 'task-1' }), held()]));
    await renew(options, first, holder, now);
    expect(pool().status?.capacity?.reservations?.map(({ expiresAt }) => expiresAt)).toEqual([
      at(now + 120_000),
      at(now + 60_000),
    ]);
  });

  test('is not renewed by who does not hold it', async () => {
    for (const change of [{}, { taskUID: 'task-1', attempt: 2 }, { taskUID: 'task-1', controllerEpoch: 2 }]) {
      const { options, first, writes } = stored(capacity([held(change)]));
      expect(await renew(options, first, holder, now)).toBeUndefined();
      expect(writes()).toEqual([]);
    }
  });

  test('is given back once; that again changes nothing', async () => {
    const { options, first, pool, writes } = stored(capacity([held({ taskUID: 'task-1' }), held()]));
    await release(options, first, holder);
    expect(pool().status?.capacity).toMatchObject({ reservedSessions: 1, reservations: [{ taskUID: 'task-2' }] });
    await release(options, pool(), holder);
    expect(writes()).toHaveLength(1);
  });
});
