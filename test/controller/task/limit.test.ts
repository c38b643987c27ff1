import { afterEach, expect, test } from '@jest/globals';
import type { Manifest, Task } from '../../../src/api/index.js';
import type { ClassVerdict } from '../../../src/controller/classes.js';
import { concernedBy, openTasksIn } from '../../../src/controller/concerned.js';
import type { Pause } from '../../../src/controller/pauses.js';
import { createTaskReconciler } from '../../../src/controller/task/reconcile.js';
import type { World } from '../../../src/controller/world.js';
import { finalizers } from '../../../src/domain/labels.js';
import { systemClock } from '../../../src/kube/clock.js';
import { keyOf, isNewer } from '../../../src/kube/store.js';
import { createWorkqueue } from '../../../src/kube/workqueue.js';
import { at, epoch, hosting, newTask, problemsOf, readyClass, worldOf } from '../../support/controlled-task.js';
import { eventually, pause } from '../../support/eventually.js';
import { foundBy } from '../../support/found-by.js';
import { memoryClient, refusal } from '../../support/memory-client.js';
import type { MemoryClient } from '../../support/memory-client.js';
import { agent } from '../../support/objects.js';

const coder = (name: string, type: 'codex' | 'claude' = 'codex') => ({
  ...agent({ model: { name: 'gpt-5.5' }, runtime: { type, defaultMaxTurns: 50 } }),
  metadata: { name, namespace: 'team-a', uid: name, generation: 1 },
});
const overIn = ({ status }: Task) => status?.phase === 'Failed';
const isTaken = ({ metadata }: Task) => metadata.finalizers?.includes(finalizers.task) === true;

/** A namespace with a limit, eight workers, an API server that takes its time, and a watch that lags behind it. */
function crowd(limit: number, verdict: (kind: string) => ClassVerdict = () => readyClass) {
  let most = 0;
  let pausedBy: Pause | undefined;
  const entered: string[] = [];
  const known = new Map<string, Manifest>();
  const problems: unknown[] = [];
  const learn = (object: Manifest) => {
    const before = known.get(keyOf(object));
    if (!before || isNewer(object.metadata.resourceVersion, before.metadata.resourceVersion)) known.set(keyOf(object), object);
  };
  const client: MemoryClient = memoryClient((before, after) => {
    problems.push(...problemsOf(before, after));
    if (after.kind !== 'Task') return;
    const written = after as unknown as Task;
    const others = tasks().filter(({ metadata }) => metadata.name !== after.metadata.name);
    const now = [...others, written];
    most = Math.max(most, now.filter((task) => isTaken(task) && !overIn(task)).length);
    if (!before || (!isTaken(before as unknown as Task) && isTaken(written))) entered.push(after.metadata.name);
    setTimeout(() => {
      learn(after);
      const concerned = concernedBy(
        { name: 'tasks', before, after },
        { tasks, tasksBy: () => [], pools: () => [], poolsOn: () => [], nextPlaces: reconciler.nextPlaces, now: Date.now() },
      );
      for (const key of concerned.tasks) queue.add(key);
    }, 15);
  });
  const tasks = () => [...client.stored.values()].filter(({ kind }) => kind === 'Task') as unknown as readonly Task[];
  const task = (name: string) => client.at('Task', name) as unknown as Task;
  client.before = async ({ method, path }) => {
    await pause((path.length * 7) % 10);
    if (method !== 'GET' && path.includes('unlucky')) throw refusal('forbidden');
  };
  const stored = worldOf(client);
  const world: World = {
    ...stored,
    tasks: {
      ...stored.tasks,
      get: (key) => known.get(key),
      list: () => [...known.values()],
      by: foundBy('tasks', () => [...known.values()]),
      wrote: learn,
    },
  };
  const stop = new AbortController();
  const reconciler = createTaskReconciler({
    client,
    world,
    classes: { of: verdict },
    hosting,
    manager: 'test',
    epoch,
    clock: systemClock,
    runtimeNamespace: 'orka-runtimes',
    endOf: () => undefined,
    record: () => undefined,
    namespaceUid: () => Promise.resolve('ns-uid'),
    credentialsOf: () => undefined,
    ledSince: Date.now(),
    onStep: () => undefined,
    leads: () => true,
    lookAgain: () => undefined,
    again: (key) => queue.add(key),
    onError: () => undefined,
    metrics: {
      attemptEnded: () => undefined,
      attemptPassed: () => undefined,
      sourceCalled: () => undefined,
      tokensUsed: () => undefined,
    },
    maxTasksPerNamespace: limit,
    pauseOf: () => pausedBy,
    signal: stop.signal,
  });
  const queue = createWorkqueue({ work: reconciler.reconcile, workers: 8 });
  open.push(async () => {
    stop.abort();
    await queue.shutDown({ deadline: 0, grace: 500 });
  });
  return {
    problems,
    task,
    /** All at once, in this order. */
    apply: (...all: readonly Task[]) => {
      for (const one of [coder('coder'), coder('other', 'claude')]) client.put(one);
      for (const one of all) learn(client.put(one));
      for (const one of all) queue.add(keyOf(one));
    },
    pause: (by: Pause | undefined) => {
      pausedBy = by;
      for (const key of openTasksIn(['team-a'], tasks(), Date.now())) queue.add(key);
    },
    settle: (name: string) => client.put({ ...task(name), status: { ...task(name).status, phase: 'Failed' } }),
    taken: () => entered.filter((name) => isTaken(task(name))),
    underWay: () =>
      tasks()
        .filter((one) => isTaken(one) && !overIn(one))
        .map(({ metadata }) => metadata.name),
    most: () => most,
  };
}

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of open.splice(0)) await end();
});

const just = at(Math.floor(Date.now() / 1000) * 1000);
const asking = (name: string, spec: Parameters<typeof newTask>[0] = {}) =>
  newTask({ prompt: 'say OK', ...spec }, { name, uid: `uid-of-${name}`, creationTimestamp: just });

test('ten Tasks that are applied together to a namespace of three go on three at a time, in the order of the queue', async () => {
  const it = crowd(3);
  const names = Array.from({ length: 10 }, (_, i) => `t${i}`);
  it.apply(...[...names].reverse().map((name) => asking(name)));
  for (const [i, name] of names.entries()) {
    await eventually(() => it.underWay().includes(name));
    await eventually(() => it.underWay().length === Math.min(3, names.length - i));
    it.settle(name);
  }
  expect(it.most()).toBe(3);
  expect(new Set(it.taken())).toEqual(new Set(names));
  expect(it.problems).toEqual([]);
});

test('one that waits for its class, or is refused, or may not be written, keeps no place from those behind it', async () => {
  const it = crowd(1, (kind) => (kind === 'codex' ? readyClass : { state: 'drifted', says: 'it was edited' }));
  it.apply(
    asking('waits-for-its-class', { priority: 900, agentRef: { name: 'other' } }),
    asking('refused', { priority: 900, prompt: '' }),
    asking('unlucky', { priority: 900 }),
    asking('able', { priority: 100 }),
    asking('able-too', { priority: 99 }),
  );
  await eventually(() => it.underWay().includes('able'));
  it.settle('able');
  await eventually(() => it.underWay().includes('able-too'));
  expect([it.most(), it.underWay()]).toEqual([1, ['able-too']]);
  expect(it.task('waits-for-its-class').status?.message).toContain('the class cannot be used');
});

test('Tasks that are created while new ones are paused take no place, and go on at once and in order when they are resumed', async () => {
  const it = crowd(2);
  it.apply(asking('running', { priority: 900 }));
  await eventually(() => it.underWay().includes('running'));
  it.pause('namespace');
  const names = ['first', 'second', 'third'];
  it.apply(...names.map((name, i) => asking(name, { priority: 500 - i })));
  await eventually(() => names.every((name) => it.task(name).status?.message?.includes('paused by namespace team-a') === true));
  expect(it.underWay()).toEqual(['running']);
  it.pause(undefined);
  await eventually(() => it.underWay().includes('first'));
  it.settle('running');
  await eventually(() => it.underWay().includes('second'));
  expect(it.most()).toBe(2);
  expect(new Set(it.taken())).toEqual(new Set(['running', 'first', 'second']));
  expect(it.problems).toEqual([]);
});
