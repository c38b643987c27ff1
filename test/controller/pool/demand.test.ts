import { describe, expect, test } from '@jest/globals';
import type { RuntimePool, Task } from '../../../src/api/index.js';
import { demandOf, demandToRecord, isUndemanded } from '../../../src/controller/pool/demand.js';
import { annotationKeys } from '../../../src/domain/labels.js';
import { at, boundTask, created, inState, newTask, poolOf, takenTask } from '../../support/controlled-task.js';

const { task: queued, plan } = boundTask();
const stamped = (stamp: string): RuntimePool => {
  const { metadata, ...pool } = poolOf(plan);
  return { ...pool, metadata: { ...metadata, annotations: { ...metadata.annotations, [annotationKeys.lastDemandAt]: stamp } } };
};
const pool = stamped(at(created));
const over = (seconds: number, state: 'Succeeded' | 'Cancelled' = 'Succeeded'): Task =>
  inState(queued, { state, outcome: state, lastTransitionTime: at(created + seconds * 1000) });
const of = (...tasks: readonly Task[]) => demandOf(pool, tasks, false);

describe('a pool is wanted', () => {
  test.each<[string, Task, object]>([
    ['by a Task that waits in its queue', queued, { active: 1, queued: 1, finalizing: 0 }],
    ['by one that has a slot', inState(queued, { state: 'Reserved' }), { active: 1, queued: 1, finalizing: 0 }],
    ['by one that runs', inState(queued, { state: 'Running' }), { active: 1, queued: 0, finalizing: 0 }],
    ['by one that is settled in a moment', inState(queued, { state: 'Settling' }), { active: 1, queued: 0, finalizing: 1 }],
    ['by one that is taken for it and about to be bound', takenTask(), { active: 1, queued: 0, finalizing: 0 }],
  ])('%s', (_, task, counts) => {
    expect(of(task)).toMatchObject(counts);
  });

  test.each<[string, Task]>([
    ['by one that is settled', over(1)],
    ['by one that ended before it was bound', { ...takenTask(), status: { phase: 'Failed' } }],
    ['by one that was not taken for it', newTask()],
    ['by one of another pool, whatever its label says', inState(queued, { runtimePoolName: 'another' })],
    ['by one of another namespace', { ...queued, metadata: { ...queued.metadata, namespace: 'team-b' } }],
  ])('not %s', (_, task) => {
    expect(of(task).active).toBe(0);
  });
});

describe('the last demand', () => {
  test.each<[string, readonly Task[], number]>([
    ['is what is on record', [], created],
    ['is when the last Task ended, if that was later', [over(5), over(9, 'Cancelled'), over(7)], created + 9_000],
    ['is what is on record, if that was later', [over(-5)], created],
  ])('%s', (_, tasks, lastAt) => {
    expect(of(...tasks).lastAt).toBe(lastAt);
  });

  test('is not known where nobody can read what is on record', () => {
    expect(demandOf(stamped('yesterday'), [over(5)], false).lastAt).toBeNaN();
  });
});

test('of Tasks that cannot be listed nothing is put on record, and that none is seen says nothing', () => {
  const unknown = demandOf(pool, [], true, false);
  expect([demandToRecord(unknown, false, created + 90_000), isUndemanded(unknown)]).toEqual([undefined, false]);
  expect(isUndemanded(demandOf(pool, [], false))).toBe(true);
});

describe('on record comes', () => {
  const now = created + 30_000;
  const late = created + 60_000;
  const seen = demandOf(pool, [], true);
  test.each<[string, number | undefined, number | undefined]>([
    ['nothing, where a Task wants it and that is on record', demandToRecord(of(queued), false, late - 1), undefined],
    ['that it is wanted, a minute later', demandToRecord(of(queued), false, late), late],
    [
      'that it is wanted, where the record is unreadable',
      demandToRecord(demandOf(stamped('x'), [queued], false), true, now),
      now,
    ],
    ['the end of what this process saw, though its Task is gone', demandToRecord(seen, false, now), now],
    ['not while a slot is held', demandToRecord(seen, true, now), undefined],
    ['the end of a Task that an earlier process saw', demandToRecord(of(over(5)), false, now), created + 5_000],
    ['nothing again', demandToRecord(demandOf(stamped(at(created + 5_000)), [over(5)], false), false, now), undefined],
    [
      'nothing, where nobody wants it and the record is unreadable',
      demandToRecord({ ...seen, recordedAt: NaN }, false, now),
      undefined,
    ],
  ])('%s', (_, found, expected) => {
    expect(found).toBe(expected);
  });
});
