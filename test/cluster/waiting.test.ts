/** Tasks that wait for a place in their namespace, and pools that wait for Tasks. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Manifest, RuntimePoolClassSpec, Task } from '../../src/api/index.js';
import { finalizers } from '../../src/domain/labels.js';
import { approve } from '../../src/render/approve.js';
import { applyAll, cleanUp, eventually, kubectl, namespace as namespaceOf } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import { applyObjects, example, isOver, plainTaskLike, readTask, taskOver } from './support/first-task.js';
import { startHistory } from './support/history.js';
import type { History } from './support/history.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';

const { namespace = '' } = example.task.metadata;
const limit = 2;
/** Milliseconds. */
const idleTtl = 10_000;

let product: Installed;
let history: History;

beforeAll(async () => {
  product = await installed({ gates: true, maxTasksPerNamespace: limit, idlePoolTtl: `${idleTtl / 1000}s` });
  history = startHistory(product);
  await applyObjects(kubectl, [example.agent]);
}, 600_000);
afterAll(async () => {
  history.stop();
  await product.remove();
}, 600_000);

const asking = (name: string, seconds: number): Task =>
  plainTaskLike(name, { prompt: `Wait ${seconds} seconds. Reply exactly: ${name.toUpperCase().replaceAll('-', '_')}` });
const versions = (name: string) => history.of('tasks').filter(({ object }) => object.metadata.name === name);
const isUnderWay = (task: Task) => task.metadata.finalizers?.includes(finalizers.task) === true && !isOver(task);

/** Names of the Tasks that are under way after each change that was seen. */
function underWay(): readonly (readonly string[])[] {
  const now = new Map<string, Task>();
  return history.of('tasks').map(({ type, object }) => {
    if (type === 'DELETED') now.delete(object.metadata.name);
    else now.set(object.metadata.name, object);
    return [...now.values()].filter(isUnderWay).map(({ metadata }) => metadata.name);
  });
}

describe('five Tasks that are applied together to a namespace that may have two', () => {
  const names = ['a', 'b', 'c', 'd', 'e'].map((letter) => `waits-${letter}`);
  let over: readonly Task[] = [];
  let columns = '';

  beforeAll(async () => {
    const after = stopwatch('five Tasks');
    await explained(product, async () => {
      await applyObjects(
        kubectl,
        names.map((name) => asking(name, 2)),
      );
      columns = await eventually(
        'a Task that says that it waits',
        async () => {
          const table = await kubectl(['get', 'tasks.core.orka.ai', 'waits-e', '-n', namespace, '--no-headers']);
          return table.includes('at once') ? table : undefined;
        },
        60,
      );
      over = await Promise.all(names.map((name) => taskOver(kubectl, { name, namespace }, 180)));
    });
    after('over');
  }, 300_000);

  test('all succeed', () => {
    expect(over.map(({ status }) => status?.phase)).toEqual(names.map(() => 'Succeeded'));
  });

  test('two are under way, and never more', () => {
    expect(Math.max(...underWay().map((now) => now.length))).toBe(limit);
  });

  test('begin in the order of the queue', () => {
    const begun = [...new Set(underWay().flat())];
    expect([...begun].sort()).toEqual(names);
    // Of as many as may be under way at once either may be written first.
    for (const [index, name] of names.slice(limit).entries())
      expect(begun.indexOf(name)).toBeGreaterThan(begun.indexOf(names[index]!));
  });

  test('follow at once when a place is free', () => {
    const settled = names.map((name) => versions(name).find(({ object }) => isOver(object))?.at ?? 0).sort((a, b) => a - b);
    const begun = names.map((name) => versions(name).find(({ object }) => isUnderWay(object))?.at ?? Infinity);
    const waited = begun.slice(limit).map((at, i) => at - (settled[i] ?? 0));
    // Whoever is not told looks again ten seconds later.
    expect(Math.max(...waited)).toBeLessThan(9_000);
  });

  const says = `namespace ${namespace} has as many Tasks under way as it may have at once (${limit})`;

  test('that wait are pending and say why, in their status and in the columns', () => {
    const waited = versions('waits-e').find(({ object }) => object.status?.message !== undefined)?.object;
    expect(waited?.status).toMatchObject({ phase: 'Pending', message: expect.stringContaining(says) });
    expect(columns).toMatch(new RegExp(`Pending.*${says.replaceAll(/[()]/g, '\\$&')}`));
  });

  test('that wait say why in one event', async () => {
    const events = await kubectl(['get', 'events.events.k8s.io', '-n', namespace, '-o', 'json']);
    const { items } = JSON.parse(events) as {
      readonly items: readonly {
        readonly reason: string;
        readonly note: string;
        readonly regarding: { readonly uid: string };
      }[];
    };
    // An earlier Task of the name has events for an hour.
    const { uid } = versions('waits-e')[0]!.object.metadata;
    const told = items.filter(({ reason, regarding }) => reason === 'NamespaceTaskLimitReached' && regarding.uid === uid);
    expect(told.map(({ note }) => note)).toEqual([expect.stringContaining(says)]);
  });
});

test('a pool whose only Task was deleted while it ran stays for its idle time, and not for less', async () => {
  const name = 'runs-and-goes';
  const after = stopwatch(name);
  await explained(product, async () => {
    await applyObjects(kubectl, [asking(name, 180)]);
    const running = await history.first(
      'tasks',
      ({ metadata, status }) => metadata.name === name && status?.phase === 'Running',
      {
        since: 0,
        seconds: 150,
      },
    );
    expect(running).toBeDefined();
    // What is on record of its pool says by then nothing of how long it was wanted.
    await new Promise((resolve) => setTimeout(resolve, idleTtl + 2_000));
    after('deleted');
    await kubectl(['delete', 'tasks.core.orka.ai', name, '-n', namespace, '--timeout=60s']);
  });
  after('gone');
  const since = versions(name).findLast(({ object }) => object.status?.phase === 'Running')?.at ?? 0;
  const idle = await history.first('pools', ({ spec }) => spec.desiredReplicas === 0, { since, seconds: 60 });
  after('idle');
  // As it is written, and not as it was seen, which may be later.
  const settled = versions(name).find(({ object }) => isOver(object))?.object.status?.execution?.lastTransitionTime ?? '';
  expect((idle?.at ?? 0) - Date.parse(settled)).toBeGreaterThanOrEqual(idleTtl);
}, 400_000);

describe('a class that is changed, and approved, while a Task runs', () => {
  const [before, since] = ['runs-before', 'comes-after'];
  const statuses = () =>
    Promise.all([before, since].map(async (name) => (await taskOver(kubectl, { name, namespace }, 180)).status));
  let ends: Awaited<ReturnType<typeof statuses>> = [];

  beforeAll(async () => {
    const after = stopwatch('a changed class');
    ends = await explained(product, async () => {
      await applyObjects(kubectl, [asking(before, 30)]);
      const isRunning = ({ metadata, status }: Task) => metadata.name === before && status?.execution?.state === 'Running';
      expect(await history.first('tasks', isRunning, { since: 0, seconds: 150 })).toBeDefined();
      const digest = await readDigest();
      await deliver(changedClass());
      // Until the controller has seen it, a Task is for the class as it was.
      await eventually('a class that the controller has read again', async () => (await readDigest()) !== digest || undefined);
      await applyObjects(kubectl, [asking(since, 1)]);
      after('changed');
      return statuses();
    });
    after('over');
  }, 500_000);

  afterAll(async () => {
    await deliver(ownClass());
  });

  test('lets that one end', () => {
    expect(ends[0]).toMatchObject({ phase: 'Succeeded' });
  });

  test('gives a Task that comes after it a pool of the same name that is made from the class as it is now', () => {
    expect(ends[1]).toMatchObject({ phase: 'Succeeded' });
    const [one, other] = ends.map((status) => status?.execution);
    expect(other?.runtimePoolName).toBe(one?.runtimePoolName);
    expect(other?.runtimePoolUID).not.toBe(one?.runtimePoolUID);
  });
});

describe('a namespace that is paused while one Task runs', () => {
  const [running, created] = ['runs-on', 'waits-for-resume'];
  const annotate = (change: string) => kubectl(['annotate', 'namespace', namespace, change, '--overwrite']);
  let message = '';
  let ends: readonly Task[] = [];
  let resumed = 0;

  beforeAll(async () => {
    const after = stopwatch('a paused namespace');
    await explained(product, async () => {
      await applyObjects(kubectl, [asking(running, 5)]);
      const isRunning = ({ metadata, status }: Task) => metadata.name === running && status?.execution?.state === 'Running';
      expect(await history.first('tasks', isRunning, { since: 0, seconds: 150 })).toBeDefined();
      await annotate('orka.ai/paused=true');
      await applyObjects(kubectl, [asking(created, 1)]);
      const says = ({ metadata, status }: Task) => metadata.name === created && status?.message !== undefined;
      message = (await history.first('tasks', says, { since: 0, seconds: 60 }))?.object.status?.message ?? '';
      const first = await taskOver(kubectl, { name: running, namespace }, 180);
      after('paused; the one that ran is over');
      resumed = Date.now();
      await annotate('orka.ai/paused-');
      ends = [first, await taskOver(kubectl, { name: created, namespace }, 180)];
      after('resumed and over');
    });
  }, 500_000);
  afterAll(async () => {
    await annotate('orka.ai/paused-');
  });

  test('lets that one end', () => {
    expect(ends[0]?.status?.phase).toBe('Succeeded');
  });

  test('holds back a new one, which says why, until it is resumed', () => {
    expect(message).toBe(
      `new Tasks are paused by namespace ${namespace} (annotation orka.ai/paused); this one waits until they are resumed`,
    );
    expect(versions(created).find(({ object }) => isUnderWay(object))?.at ?? 0).toBeGreaterThan(resumed);
    expect(ends[1]?.status?.phase).toBe('Succeeded');
  });
});

const deliver = (poolClass: Manifest) => kubectl(['apply', '--server-side', '-f', '-'], JSON.stringify(poolClass));

const ownClass = (): Manifest => product.manifests.find(({ kind }) => kind === 'RuntimePoolClass')!;

/** What the controller last made of the class that is there. */
const readDigest = async () => {
  const { name, namespace: own = '' } = ownClass().metadata;
  return kubectl(['get', 'runtimepoolclasses.core.orka.ai', name, '-n', own, '-o', 'jsonpath={.status.digest}']);
};

/** The class with a little more memory asked for, and the digest that follows from it. */
function changedClass(): Manifest {
  const poolClass = ownClass();
  const spec = poolClass['spec'] as unknown as RuntimePoolClassSpec;
  const requests = { ...spec.pod.resources.requests, memory: '160Mi' };
  const changed = { ...spec, pod: { ...spec.pod, resources: { ...spec.pod.resources, requests } } };
  const { compiled } = approve({ name: poolClass.metadata.name, spec: changed, alsoApprove: [] });
  return { ...poolClass, spec: compiled.spec };
}

test('a Task of a namespace that is not served says so after a minute, and has no phase', async () => {
  const place = 'orka-test-unserved';
  await explained(product, async () => {
    try {
      await applyAll([namespaceOf(place)]);
      const task = asking('unserved', 1);
      await applyObjects(kubectl, [{ ...task, metadata: { ...task.metadata, namespace: place } }]);
      const status = await eventually('a message', async () => {
        const read = (await readTask(kubectl, { name: 'unserved', namespace: place }))?.status;
        return read?.message === undefined ? undefined : read;
      });
      expect(status).toEqual({
        message: expect.stringContaining(`does not serve namespace ${place}; the operator of the platform adds it`),
      });
    } finally {
      await cleanUp([{ apiVersion: 'v1', kind: 'Namespace', name: place }]);
    }
  });
}, 300_000);
