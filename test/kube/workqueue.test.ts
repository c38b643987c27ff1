import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createWorkqueue } from '../../src/kube/workqueue.js';
import type { Workqueue, WorkqueueOptions, WorkResult, WorkRun } from '../../src/kube/workqueue.js';
import { fakeClock, settle } from '../support/fake-clock.js';
import type { FakeClock } from '../support/fake-clock.js';

interface Bench {
  readonly queue: Workqueue;
  readonly clock: FakeClock;
  readonly runs: WorkRun[];
  /** Keys in the order in which their work began. */
  readonly begun: string[];
  readonly signals: AbortSignal[];
  readonly finish: (key: string, how?: WorkResult | Error) => Promise<void>;
}

/** A queue whose work lasts until the test says how it ends. */
function bench(options: Partial<WorkqueueOptions> = {}): Bench {
  const clock = fakeClock();
  const [runs, begun, signals]: [WorkRun[], string[], AbortSignal[]] = [[], [], []];
  const open = new Map<string, { resolve: (result: WorkResult) => void; reject: (error: Error) => void }>();
  const queue = createWorkqueue({
    work: (key, signal) => {
      if (open.has(key)) throw new Error(`two workers on ${key}`);
      begun.push(key);
      signals.push(signal);
      return new Promise((resolve, reject) => open.set(key, { resolve, reject }));
    },
    onRun: (run) => runs.push(run),
    clock,
    ...options,
  });
  return {
    queue,
    clock,
    runs,
    begun,
    signals,
    finish: async (key, how) => {
      const work = open.get(key);
      if (!work) throw new Error(`nobody works on ${key}`);
      open.delete(key);
      if (how instanceof Error) work.reject(how);
      else work.resolve(how);
      await settle();
    },
  };
}
const failed = new Error('no');

describe('a key', () => {
  test('is in the queue once, however often it is added', async () => {
    const { queue, begun, finish } = bench();
    for (const key of ['a', 'b', 'b', 'b']) queue.add(key);
    expect(queue.depth()).toBe(1);
    await finish('a');
    await finish('b');
    expect(begun).toEqual(['a', 'b']);
  });

  test('that is added while it runs, runs again, once, and never twice at a time', async () => {
    const { queue, begun, finish } = bench({ workers: 4 });
    for (let i = 0; i < 3; i++) queue.add('a');
    expect(begun).toEqual(['a']);
    await finish('a');
    expect(begun).toEqual(['a', 'a']);
    await finish('a');
    expect(begun).toEqual(['a', 'a']);
  });

  test('that is added while it runs gets in line behind those that wait', async () => {
    const { queue, begun, finish } = bench();
    for (const key of ['a', 'b', 'a']) queue.add(key);
    await finish('a');
    await finish('b');
    expect(begun).toEqual(['a', 'b', 'a']);
  });

  test('that failed runs again after 5 ms, then 10, 20 and so on up to 1000 s', async () => {
    const { queue, clock, runs, finish } = bench();
    queue.add('a');
    for (let i = 0; i < 20; i++) {
      await finish('a', failed);
      await clock.advance(runs.at(-1)?.nextIn ?? 0);
    }
    const waits = Array.from({ length: 20 }, (_, i) => Math.min(5 * 2 ** i, 1_000_000));
    expect(runs.map(({ nextIn }) => nextIn)).toEqual(waits);
    expect(runs.at(-1)).toMatchObject({ outcome: 'failed', error: failed, failures: 20 });
  });

  test.each([
    ['a success', undefined],
    ['a success that asks to come back', { requeueAfter: 1 }],
  ])('whose failures were followed by %s begins anew', async (_, success) => {
    const { queue, clock, runs, finish } = bench();
    queue.add('a');
    for (let i = 0; i < 3; i++) {
      await finish('a', failed);
      await clock.advance(100);
    }
    await finish('a', success);
    queue.add('a');
    await finish('a', failed);
    expect(runs.at(-1)).toMatchObject({ failures: 1, nextIn: 5 });
  });

  test('that is told to be forgotten begins anew', async () => {
    const { queue, clock, runs, finish } = bench();
    queue.add('a');
    await finish('a', failed);
    await clock.advance(5);
    queue.forget('a');
    await finish('a', failed);
    expect(runs.at(-1)?.nextIn).toBe(5);
  });

  test('whose work throws before it returns a promise has failed', async () => {
    const { queue, runs } = bench({
      work: () => {
        throw failed;
      },
    });
    queue.add('a');
    await settle();
    expect(runs).toMatchObject([{ outcome: 'failed', error: failed }]);
  });

  test('rests after its work is done, and no timer is left', async () => {
    const { queue, clock, begun, finish } = bench();
    queue.add('a');
    await finish('a');
    await clock.advance(10_000_000);
    expect([begun, clock.timers()]).toEqual([['a'], 0]);
  });
});

describe('requeueAfter', () => {
  test('runs the key again then', async () => {
    const { queue, clock, begun, finish } = bench();
    queue.add('a');
    await finish('a', { requeueAfter: 100 });
    await clock.advance(99);
    expect(begun).toHaveLength(1);
    await clock.advance(1);
    expect(begun).toHaveLength(2);
  });

  test('is replaced by what the next run returns', async () => {
    const { queue, clock, begun, finish } = bench();
    queue.add('a');
    await finish('a', { requeueAfter: 100 });
    queue.add('a');
    await finish('a', { requeueAfter: 500 });
    await clock.advance(499);
    expect(begun).toHaveLength(2);
    await clock.advance(1);
    expect(begun).toHaveLength(3);
  });
});

describe('addAfter', () => {
  test.each([
    ['the earlier one first', 10, 50],
    ['the later one first', 50, 10],
  ])('of two wishes the earliest counts: %s', async (_, one, other) => {
    const { queue, clock, begun, finish } = bench();
    queue.addAfter('a', one);
    queue.addAfter('a', other);
    await clock.advance(9);
    expect(begun).toEqual([]);
    await clock.advance(1);
    expect(begun).toEqual(['a']);
    await finish('a');
    await clock.advance(1000);
    expect(begun).toEqual(['a']);
  });

  test('is kept when the key runs before', async () => {
    const { queue, clock, begun, finish } = bench();
    queue.addAfter('a', 50);
    queue.add('a');
    await finish('a');
    await clock.advance(50);
    expect(begun).toEqual(['a', 'a']);
  });

  test('of nothing is add', () => {
    const { queue, begun } = bench();
    queue.addAfter('a', 0);
    expect(begun).toEqual(['a']);
  });
});

test('as many keys run at once as there are workers, the oldest first', async () => {
  const { queue, begun, finish } = bench({ workers: 2 });
  for (const key of ['a', 'b', 'c', 'd']) queue.add(key);
  expect(queue.running()).toEqual(['a', 'b']);
  await finish('b');
  expect(begun).toEqual(['a', 'b', 'c']);
});

test('a run tells how long the key waited and how long it took', async () => {
  const { queue, clock, runs, finish } = bench();
  queue.add('a');
  queue.add('b');
  await clock.advance(30);
  await finish('a');
  await clock.advance(12);
  await finish('b');
  expect(runs).toMatchObject([
    { key: 'a', waited: 0, took: 30 },
    { key: 'b', waited: 30, took: 12 },
  ]);
});

test('a listener that throws stops nothing', async () => {
  const { queue, begun, finish } = bench({
    onRun: () => {
      throw failed;
    },
  });
  for (const key of ['a', 'b']) queue.add(key);
  await finish('a');
  await finish('b');
  expect(begun).toEqual(['a', 'b']);
});

describe('shutDown', () => {
  test('begins nothing more and waits for what runs', async () => {
    const { queue, clock, begun, signals, finish } = bench();
    for (const key of ['a', 'b', 'a']) queue.add(key);
    queue.addAfter('c', 10);
    const over = queue.shutDown({ deadline: 1000 });
    for (const key of ['d', 'a']) queue.add(key);
    queue.addAfter('e', 1);
    await clock.advance(500);
    await finish('a', { requeueAfter: 1 });
    expect(await over).toEqual([]);
    await clock.advance(1000);
    expect([begun, queue.depth(), clock.timers(), signals[0]?.aborted]).toEqual([['a'], 0, 0, false]);
  });

  test('aborts what runs when the deadline is over, and waits for it a little', async () => {
    const { queue, clock, signals, finish } = bench();
    queue.add('a');
    const over = queue.shutDown({ deadline: 1000 });
    await clock.advance(999);
    expect(signals[0]?.aborted).toBe(false);
    await clock.advance(1);
    expect(signals[0]?.aborted).toBe(true);
    await finish('a', failed);
    expect(await over).toEqual([]);
  });

  test('names what does not end', async () => {
    const { queue, clock } = bench();
    queue.add('a');
    const over = queue.shutDown({ deadline: 1000, grace: 100 });
    await clock.advance(1100);
    expect(await over).toEqual(['a']);
  });

  test('may be called again, with less patience', async () => {
    const { queue, clock, signals, finish } = bench();
    queue.add('a');
    const patient = queue.shutDown({ deadline: 60_000 });
    const hasty = queue.shutDown({ deadline: 0 });
    await clock.advance(0);
    expect(signals[0]?.aborted).toBe(true);
    await finish('a');
    expect(await Promise.all([patient, hasty])).toEqual([[], []]);
    expect(await queue.shutDown({ deadline: 0 })).toEqual([]);
  });
});

/** What the queue must do, as simply as it can be said: lists instead of timers, and no concurrency. */
class Model {
  time = 0;
  ready: string[] = [];
  running: string[] = [];
  again = new Set<string>();
  wishes: { key: string; at: number; own: boolean; order: number }[] = [];
  failures = new Map<string, number>();
  begun: string[] = [];
  order = 0;

  constructor(readonly workers: number) {}

  add(key: string): void {
    if (this.running.includes(key)) this.again.add(key);
    else if (!this.ready.includes(key)) this.ready.push(key);
    this.begin();
  }

  begin(): void {
    while (this.running.length < this.workers && this.ready.length > 0) {
      const key = this.ready.shift()!;
      this.wishes = this.wishes.filter((wish) => wish.key !== key || !wish.own);
      this.running.push(key);
      this.begun.push(key);
    }
  }

  wish(key: string, wait: number, own: boolean): void {
    const same = this.wishes.find((wish) => wish.key === key && wish.own === own);
    if (same && same.at <= this.time + wait) return;
    this.wishes = [...this.wishes.filter((wish) => wish !== same), { key, at: this.time + wait, own, order: this.order++ }];
  }

  finish(key: string, how: WorkResult | Error): void {
    this.running = this.running.filter((one) => one !== key);
    if (how instanceof Error) {
      this.failures.set(key, (this.failures.get(key) ?? 0) + 1);
      this.wish(key, 5 * 2 ** (this.failures.get(key)! - 1), true);
    } else {
      this.failures.delete(key);
      if (how) this.wish(key, how.requeueAfter, true);
    }
    if (this.again.delete(key)) this.ready.push(key);
    this.begin();
  }

  advance(milliseconds: number): void {
    const end = this.time + milliseconds;
    for (;;) {
      const [due] = this.wishes.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at || a.order - b.order);
      if (!due) break;
      this.time = due.at;
      this.wishes = this.wishes.filter((wish) => wish !== due);
      this.add(due.key);
    }
    this.time = end;
  }
}

class Step implements fc.AsyncCommand<Model, Bench> {
  constructor(
    readonly name: string,
    readonly model: (model: Model) => void,
    readonly real: (real: Bench, before: Model) => void | Promise<void>,
    readonly possible: (model: Model) => boolean = () => true,
  ) {}
  check(model: Readonly<Model>): boolean {
    return this.possible(model);
  }
  async run(model: Model, real: Bench): Promise<void> {
    const before = Object.assign(new Model(model.workers), model);
    this.model(model);
    await this.real(real, before);
    expect(real.begun).toEqual(model.begun);
    expect([...real.queue.running()].sort()).toEqual([...model.running].sort());
    expect(real.queue.depth()).toBe(model.ready.length);
    expect(real.clock.timers()).toBe(model.wishes.length);
    expect(model.running.length).toBeLessThanOrEqual(model.workers);
  }
  toString(): string {
    return this.name;
  }
}

test('does what a simple model does, whatever happens in whatever order', async () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd');
  const wait = fc.integer({ min: 1, max: 60 });
  const how = fc.oneof(fc.constant(undefined), fc.constant(failed), fc.record({ requeueAfter: wait }));
  const commands = [
    key.map(
      (of) =>
        new Step(
          `add ${of}`,
          (model) => model.add(of),
          ({ queue }) => queue.add(of),
        ),
    ),
    fc.tuple(key, wait).map(
      ([of, after]) =>
        new Step(
          `add ${of} after ${after}`,
          (model) => model.wish(of, after, false),
          ({ queue }) => queue.addAfter(of, after),
        ),
    ),
    fc.tuple(fc.nat(3), how).map(([which, result]) => {
      const chosen = ({ running }: Model): string => running[which % running.length]!;
      return new Step(
        `finish ${which} with ${result instanceof Error ? 'an error' : JSON.stringify(result)}`,
        (model) => model.finish(chosen(model), result),
        (real, before) => real.finish(chosen(before), result),
        ({ running }) => running.length > 0,
      );
    }),
    wait.map(
      (time) =>
        new Step(
          `wait ${time}`,
          (model) => model.advance(time),
          ({ clock }) => clock.advance(time),
        ),
    ),
  ];
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 3 }), fc.commands(commands, { maxCommands: 60 }), (workers, steps) =>
      fc.asyncModelRun(() => ({ model: new Model(workers), real: bench({ workers }) }), steps),
    ),
    { numRuns: 300 },
  );
});
