import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { annotationKeys } from '../../src/domain/labels.js';
import { compareWaiting, effectivePriority, isPromoted, placeOf, waitingOf } from '../../src/domain/queue-order.js';
import type { Waiting } from '../../src/domain/queue-order.js';
import { task } from '../support/objects.js';

const now = Date.UTC(2030, 0, 1);
const seconds = (n: number) => n * 1000;
const waiting = (change: Partial<Waiting> = {}): Waiting => ({
  priority: 500,
  queuedAt: now,
  createdAt: now,
  namespace: 'team-a',
  name: 't',
  uid: 'u',
  ...change,
});
const since = (waited: number, change: Partial<Waiting> = {}) => waiting({ queuedAt: now - seconds(waited), ...change });

describe('a Task gains by waiting', () => {
  test.each([
    [0, 500, 500],
    [29, 500, 500],
    [30, 500, 525],
    [59, 500, 525],
    [60, 500, 550],
    [299, 500, 725],
    [299, 900, 1000],
    [90, 0, 75],
    [-60, 500, 500],
  ])('after %d s with priority %d it has %d', (waited, priority, effective) => {
    expect(effectivePriority(since(waited, { priority }), now)).toBe(effective);
  });

  test('and is promoted after five minutes, not earlier', () => {
    expect([isPromoted(since(299.999), now), isPromoted(since(300), now)]).toEqual([false, true]);
  });
});

describe('first is', () => {
  const first = (a: Waiting, b: Waiting) => Math.sign(compareWaiting(a, b, now));

  test.each<[string, Waiting, Waiting]>([
    ['the higher priority', waiting({ priority: 501 }), waiting({ priority: 500 })],
    [
      'the one that waited for longer, where that makes up for its priority',
      since(60, { priority: 460 }),
      waiting({ priority: 500 }),
    ],
    ['the promoted one, whatever the priority of the other', since(300, { priority: 0 }), since(299, { priority: 1000 })],
    [
      'among promoted ones the one that was queued first, whatever its priority',
      since(400, { priority: 0 }),
      since(399, { priority: 1000 }),
    ],
    ['with the same priority the one that was queued first', since(2), since(1)],
    ['then the one that was created first', waiting({ createdAt: now - 1 }), waiting()],
    ['then the one of the first namespace', waiting({ namespace: 'a', name: 'z' }), waiting({ namespace: 'b', name: 'a' })],
    ['then the one of the first name', waiting({ name: 'a', uid: 'z' }), waiting({ name: 'b', uid: 'a' })],
    ['then the one of the first UID', waiting({ uid: 'a' }), waiting({ uid: 'b' })],
  ])('%s', (_, a, b) => {
    expect([first(a, b), first(b, a)]).toEqual([-1, 1]);
  });

  test('the same in whatever order they are asked: the order is total', () => {
    const one = fc.record({
      priority: fc.integer({ min: 0, max: 1000 }),
      queuedAt: fc.integer({ min: now - 600_000, max: now + 5_000 }),
      createdAt: fc.integer({ min: now - 600_000, max: now }),
      namespace: fc.constantFrom('a', 'b'),
      name: fc.constantFrom('x', 'y', 'z'),
      uid: fc.constantFrom('1', '2', '3'),
    });
    fc.assert(
      fc.property(fc.array(one, { minLength: 2, maxLength: 8 }), (all) => {
        const sorted = [...all].sort((a, b) => compareWaiting(a, b, now));
        expect([...all].reverse().sort((a, b) => compareWaiting(a, b, now))).toEqual(sorted);
        sorted.forEach((a, i) => sorted.slice(i).forEach((b) => expect(compareWaiting(a, b, now)).toBeLessThanOrEqual(0)));
      }),
    );
  });

  test('always the same one of two, once it is promoted: nobody waits for ever', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1000 }), fc.integer({ min: 1, max: 1_000_000 }), (priority, later) => {
        const old = since(300, { priority: 0 });
        const young = waiting({ priority, queuedAt: old.queuedAt + later, uid: 'other' });
        expect(compareWaiting(old, young, now)).toBe(-1);
      }),
    );
  });
});

test('the place of one is how many come before it', () => {
  const others = [since(400, { uid: '1' }), waiting({ priority: 900, uid: '2' }), waiting({ priority: 100, uid: '3' })];
  expect(placeOf(waiting(), others, now)).toBe(2);
});

describe('of a Task counts', () => {
  const created = '2030-01-01T00:00:00Z';
  const stamped = (queuedAt?: string, change: { readonly priority?: number; readonly annotation?: string } = {}) => {
    const { priority, annotation } = change;
    const made = task(priority === undefined ? {} : { priority });
    const annotations: Record<string, string> = annotation === undefined ? {} : { [annotationKeys.queuedAt]: annotation };
    return waitingOf({
      ...made,
      metadata: { ...made.metadata, creationTimestamp: created, annotations },
      ...(queuedAt === undefined ? {} : { status: { execution: { queuedAt } } }),
    });
  };

  test('its priority, 500 by default, and the time at which its status says it was queued', () => {
    expect(stamped('2030-01-01T00:00:07Z')).toMatchObject({ priority: 500, queuedAt: now + 7_000 });
    expect(stamped(undefined, { priority: 0 }).priority).toBe(0);
  });

  test('its creation, where the status has no time, as a Task that an earlier version queued', () => {
    expect(stamped().queuedAt).toBe(now);
    expect(stamped(undefined, { annotation: '2030-01-01T00:00:07Z' }).queuedAt).toBe(now);
    expect(stamped('yesterday').queuedAt).toBe(now);
  });

  test('no time before its creation', () => {
    expect(stamped('1970-01-01T00:00:00Z').queuedAt).toBe(now);
  });

  test('no annotation: nobody promotes a Task by writing one', () => {
    fc.assert(
      fc.property(
        fc.date({ noInvalidDate: true }),
        fc.option(fc.date({ min: new Date(now), noInvalidDate: true })),
        (written, stored) => {
          const queuedAt = stored?.toISOString();
          expect(stamped(queuedAt, { annotation: written.toISOString() })).toEqual(stamped(queuedAt));
        },
      ),
    );
  });
});
