import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Task } from '../../../src/api/index.js';
import { decide } from '../../../src/controller/task/decide.js';
import { hasPlace, nextBeside, quotaOf, standingAfter } from '../../../src/controller/task/places.js';
import type { Standing } from '../../../src/controller/task/places.js';
import { finalizers } from '../../../src/domain/labels.js';
import { compareWaiting, waitingOf } from '../../../src/domain/queue-order.js';
import { at, boundTask, created, inState, newTask, readyClass, seen, takenTask } from '../../support/controlled-task.js';

const now = created + 10_000;
const named = (task: Task, uid: string, metadata: Partial<Task['metadata']> = {}): Task => ({
  ...task,
  metadata: { ...task.metadata, name: uid, uid, ...metadata },
});
const mine = named(newTask(), 'mine');
const { task: bound } = boundTask();
const underWay = (uid: string, metadata: Partial<Task['metadata']> = {}) => named(bound, uid, metadata);
const settled = (uid: string) => named(inState(bound, { state: 'Succeeded', outcome: 'Succeeded' }), uid);
const standing = (known: Readonly<Record<string, Standing>>) => (task: Task) => known[task.metadata.uid ?? ''];
const nothing = standing({});

describe('of three places of a namespace', () => {
  const deleting = { deletionTimestamp: at(now) };
  test.each<[string, readonly Task[], Readonly<Record<string, Standing>>, number]>([
    ['all are free where there is nobody else', [], {}, 3],
    ['one is taken by a Task that is bound', [underWay('a')], {}, 2],
    ['one is taken by a Task that is let through, before its binding is seen', [named(newTask(), 'a')], { a: 'enters' }, 2],
    ['one is taken once by a Task that was let through and is bound', [underWay('a')], { a: 'enters' }, 2],
    ['none is taken by a Task that only carries finalizer and label', [named(takenTask(), 'a')], {}, 3],
    ['none is taken by a Task that is settled', [settled('a')], {}, 3],
    ['none is taken by a Task of another namespace', [underWay('a', { namespace: 'team-b' })], {}, 3],
    ['one is taken by a deleted Task that is still cleaned up', [underWay('a', deleting)], {}, 2],
    ['none is taken by a deleted Task that is released', [underWay('a', { ...deleting, finalizers: ['example.org/x'] })], {}, 3],
    ['fewer than none is none', ['a', 'b', 'c', 'd'].map((uid) => underWay(uid)), {}, 0],
  ])('%s', (_, others, known, free) => {
    expect(quotaOf(mine, [mine, ...others], 3, standing(known))?.free).toBe(free);
  });

  test('a Task that is bound, or settled, needs none', () => {
    expect([quotaOf(underWay('a'), [], 3, nothing), quotaOf(settled('a'), [], 3, nothing)]).toEqual([undefined, undefined]);
  });
});

describe('for a place a Task competes with', () => {
  const other = named(newTask(), 'other');
  test.each<[string, Task, Standing, readonly string[]]>([
    ['one that nobody looked at yet', other, undefined, ['other']],
    [
      'one that carries finalizer and label, and was not let through by this process',
      named(takenTask(), 'other'),
      undefined,
      ['other'],
    ],
    ['not one that waits for something else', other, 'held-up', []],
    ['not one that is let through', other, 'enters', []],
    ['not one that is bound', underWay('other'), undefined, []],
    ['not one that is settled', settled('other'), undefined, []],
    ['not one that is being deleted', named(newTask(), 'other', { deletionTimestamp: at(now) }), undefined, []],
    ['not one of another namespace', named(newTask(), 'other', { namespace: 'team-b' }), undefined, []],
    ['not itself', named(other, 'mine'), undefined, []],
  ])('%s', (_, one, known, names) => {
    const quota = quotaOf(mine, [mine, one], 3, standing({ other: known }));
    expect(quota?.contenders.map(({ uid }) => uid)).toEqual(names);
  });
});

test('who comes next is as many as there are places, first of the queue first', () => {
  const all = [
    underWay('a'),
    named(newTask({ priority: 100 }), 'last'),
    named(newTask(), 'second'),
    named(newTask({ priority: 900 }), 'stuck'),
    named(newTask({ priority: 800 }), 'first'),
    named(newTask({ priority: 1000 }), 'elsewhere', { namespace: 'team-b' }),
  ];
  const next = nextBeside(mine, all, 3, standing({ stuck: 'held-up' }), now);
  expect(next.map(({ metadata }) => metadata.name)).toEqual(['first', 'second']);
});

describe('once something was decided about a Task that is not bound', () => {
  const free = { limit: 1, free: 1, contenders: [], standing: undefined };
  const full = { ...free, free: 0 };
  const after = (change: Parameters<typeof seen>[1], task = mine, before?: Standing) => {
    const o = seen(task, { quota: free, ...change });
    return standingAfter(o, decide(o, now), before);
  };

  test.each<[string, Standing, Standing]>([
    ['it is let through while it is taken', after({}), 'enters'],
    ['it is let through while it is bound', after({}, takenTask()), 'enters'],
    ['it competes while it waits for a place', after({ quota: full }), undefined],
    [
      'it competes while others are first',
      after({ quota: { ...free, contenders: [{ ...waitingOf(mine), priority: 900 }] } }),
      undefined,
    ],
    [
      'it stays held up in a full namespace while its class cannot be used',
      after({ quota: { ...full, standing: 'held-up' }, poolClass: { state: 'drifted', says: 'x' } }, mine, 'held-up'),
      'held-up',
    ],
    [
      'it competes in a full namespace once it could go on',
      after({ quota: { ...full, standing: 'held-up' } }, mine, 'held-up'),
      undefined,
    ],
    ['it is held up while new Tasks are paused', after({ paused: 'namespace' }), 'held-up'],
    ['it gives its place up when new Tasks are paused', after({ paused: 'platform' }, takenTask(), 'enters'), 'held-up'],
    ['it is held up while its class cannot be used', after({ poolClass: { state: 'drifted', says: 'x' } }), 'held-up'],
    [
      'it is held up while its Agent may still come',
      after({ agent: undefined }, named(newTask({}, { creationTimestamp: at(now) }), 'mine')),
      'held-up',
    ],
    ['it is held up while it is refused', after({}, named(newTask({ prompt: '' }), 'mine')), 'held-up'],
    [
      'it is held up while it is cancelled for its deadline',
      after({ quota: full }, named(newTask({ timeout: '1s' }), 'mine')),
      'held-up',
    ],
    ['it is what it was while its Agent is read', after({ agent: 'unread' }, mine, 'held-up'), 'held-up'],
    [
      'it gives its place up when it cannot go on',
      after({ poolClass: { state: 'drifted', says: 'x' } }, takenTask(), 'enters'),
      'held-up',
    ],
    [
      'nothing need be known any more of one that is bound',
      after({ frozen: 'unread', quota: undefined }, bound, 'enters'),
      undefined,
    ],
  ])('%s', (_, found, expected) => {
    expect(found).toBe(expected);
  });
});

describe('whatever happens in whatever order', () => {
  interface One {
    readonly task: Task;
    readonly able: boolean;
    readonly standing: Standing;
  }
  const indices = fc.nat({ max: 5 });
  const steps = fc.array(
    fc.record({ do: fc.constantFrom('look', 'look', 'look', 'land', 'fail', 'settle', 'turn', 'wait' as const), whom: indices }),
    { maxLength: 60 },
  );
  const beginnings = fc.array(fc.record({ priority: fc.constantFrom(100, 500, 900), able: fc.boolean() }), {
    minLength: 6,
    maxLength: 6,
  });

  /** Tasks of one namespace as a process has them, each with what it remembers of it. */
  function namespaceOf(limit: number, begins: readonly { readonly priority: number; readonly able: boolean }[]) {
    let time = now;
    const all: One[] = begins.map(({ priority, able }, i) => ({
      task: named(newTask({ priority }), `t${i}`),
      able,
      standing: undefined,
    }));
    const tasks = () => all.map(({ task }) => task);
    const standingOf = (task: Task) => all.find((one) => one.task.metadata.uid === task.metadata.uid)?.standing;
    const isBound = ({ task }: One) => task.status?.agentExecutionBinding !== undefined && task.status.phase !== 'Failed';
    const change = (i: number, to: Partial<One>) => (all[i] = { ...all[i]!, ...to });
    return {
      all,
      held: () => all.filter((one) => isBound(one) || one.standing === 'enters').length,
      next: () =>
        nextBeside(mine, tasks(), limit, standingOf, time).map(({ metadata }) =>
          all.findIndex(({ task }) => task.metadata.uid === metadata.uid),
        ),
      /** Looks at one, and says whom it left behind that was before it. */
      look: (i: number): readonly Task[] => {
        const { task, able, standing: before } = all[i]!;
        const quota = quotaOf(task, tasks(), limit, standingOf);
        if (!quota) return [];
        const o = seen(task, { quota, poolClass: able ? readyClass : { state: 'drifted', says: 'x' } });
        const contenders = all.filter(
          (one) => one.standing === undefined && !isBound(one) && one.task !== task && one.task.status?.phase !== 'Failed',
        );
        const after = standingAfter(o, decide(o, time), before);
        expect(after === 'enters' && !hasPlace(o, time)).toBe(false);
        change(i, { standing: after });
        if (after !== 'enters' || before === 'enters') return [];
        return contenders
          .map((one) => one.task)
          .filter((other) => compareWaiting(waitingOf(other), waitingOf(task), time) < 0)
          .slice(quota.free - 1);
      },
      land: (i: number) => {
        const { standing: before, task } = all[i]!;
        if (before !== 'enters') return;
        change(i, {
          standing: undefined,
          task: named({ ...bound, spec: task.spec }, task.metadata.name, { finalizers: [finalizers.task] }),
        });
      },
      fail: (i: number) => all[i]!.standing === 'enters' && change(i, { standing: 'held-up' }),
      settle: (i: number) => {
        const one = all[i]!;
        if (isBound(one)) change(i, { task: { ...one.task, status: { ...one.task.status, phase: 'Failed' } } });
      },
      turn: (i: number) => change(i, { able: !all[i]!.able }),
      wait: () => (time += 45_000),
      isBound,
    };
  }

  test('no more Tasks have a place than there are, and nobody is let through before one that comes first', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), beginnings, steps, (limit, begins, all) => {
        const it = namespaceOf(limit, begins);
        for (const { do: what, whom } of all) {
          const passed = it[what](whom);
          if (what === 'look') expect(passed).toEqual([]);
          expect(it.held()).toBeLessThanOrEqual(limit);
        }
      }),
      { numRuns: 150 },
    );
  });

  test('no place stays free while somebody could use it, if only those look that come next', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), beginnings, steps, (limit, begins, all) => {
        const it = namespaceOf(limit, begins);
        for (const { do: what, whom } of all) it[what](whom);
        it.all.forEach((one, i) => one.standing === 'held-up' && it.look(i));
        for (let looks = 0; it.next().length > 0 && looks < 20; looks++) it.look(it.next()[0]!);
        const able = it.all.filter(
          (one) => one.able && !it.isBound(one) && one.standing !== 'enters' && one.task.status?.phase !== 'Failed',
        );
        expect(able.length === 0 || it.held() === limit).toBe(true);
      }),
      { numRuns: 150 },
    );
  });
});
