import { expect, test } from '@jest/globals';
import type { Manifest, RuntimePool } from '../../../src/api/index.js';
import { createMemory } from '../../../src/controller/pool/memory.js';
import { observePool } from '../../../src/controller/pool/observe.js';
import { sweep } from '../../../src/controller/pool/sweep.js';
import { createTaskMemory } from '../../../src/controller/task/memory.js';
import { observeTask } from '../../../src/controller/task/observe.js';
import { watchedKinds, worldIndexes } from '../../../src/controller/world.js';
import type { WatchedName, World } from '../../../src/controller/world.js';
import { commonLabels } from '../../../src/domain/labels.js';
import { poolKey } from '../../../src/domain/names.js';
import { createView } from '../../../src/kube/own-writes.js';
import { createStore, keyOf } from '../../../src/kube/store.js';
import { boundTask, hosting, inState, poolOf, readyClass } from '../../support/controlled-task.js';
import { memoryClient } from '../../support/memory-client.js';
import { runningStatus } from '../../support/pool-observation.js';

const { task, plan } = boundTask();
const serving = poolOf(plan, { lifecycle: 'Serving', admissionState: 'Accepting' });

/** A pool, the Task that waits for it, and all that it has in the runtime namespace. */
function objectsOf(n: number): readonly (readonly [WatchedName, Manifest])[] {
  const name = `pool-${n}`;
  const namespace = serving.metadata.namespace ?? '';
  const pool = { ...serving, metadata: { ...serving.metadata, name, uid: `uid-of-${name}` } };
  const waiting = inState(task, { state: 'Queued', runtimePoolName: name });
  const metadata = { ...waiting.metadata, name: `task-${n}`, uid: `task-uid-${n}`, labels: { 'orka.ai/runtime-pool': name } };
  const labels = commonLabels({
    poolNamespace: namespace,
    poolName: name,
    poolUid: pool.metadata.uid,
    poolKey: poolKey(namespace, name),
  });
  const child = (kind: WatchedName, suffix: string): readonly [WatchedName, Manifest] => [
    kind,
    {
      ...watchedKinds[kind],
      metadata: { name: `${name}-${suffix}`, namespace: 'orka-runtimes', uid: `${name}-${kind}`, resourceVersion: '1', labels },
      ...(kind === 'pods' ? { spec: { nodeName: 'node-1' }, status: runningStatus('10.0.0.7') } : {}),
    },
  ];
  return [
    ['pools', pool],
    ['tasks', { ...waiting, metadata }],
    ...(['services', 'policies', 'budgets', 'secrets', 'templates', 'claims', 'pods'] as const).map((kind) => child(kind, kind)),
  ];
}

/** Real views of so many pools. Listing all objects of a kind throws; objects that an index finds are counted. */
function worldOf(many: number) {
  let visited = 0;
  const objects = Array.from({ length: many }, (_, n) => objectsOf(n)).flat();
  const watched = (Object.keys(watchedKinds) as WatchedName[]).map((name) => {
    const store = createStore((key, before, after) => view.changed(key, before, after));
    const view = createView(() => ({ ...store, reached: () => '1' }), { indexes: worldIndexes[name] });
    store.replace(objects.flatMap(([kind, object]) => (kind === name ? [object] : [])));
    const by = (index: string, value: string) => {
      const found = view.by(index, value);
      visited += found.length;
      return found;
    };
    const list = () => {
      throw new Error(`all ${name} are listed`);
    };
    return [name, { ...view, kind: watchedKinds[name], missing: () => false, readable: () => true, by, list }] as const;
  });
  return { world: Object.fromEntries(watched) as unknown as World, visited: () => visited };
}

const common = { classes: { of: () => readyClass }, runtimeNamespace: 'orka-runtimes', endOf: () => undefined, epoch: 1 };

async function looksAtOneOf(many: number): Promise<readonly number[]> {
  const { world, visited } = worldOf(many);
  const key = `${serving.metadata.namespace ?? ''}/pool-1`;
  const options = { ...common, world, enabled: true, idleTtl: 900_000, tokenVersion: () => undefined, fieldGapsOf: () => [] };
  const o = observePool(options, key, createMemory());
  expect([o?.demand.active, o?.pods.length, o?.remains.length]).toEqual([1, 1, 4]);
  const ofPool = visited();
  const pool = world.pools.get(key) as unknown as RuntimePool;
  await sweep(
    { client: memoryClient(), world, runtimeNamespace: 'orka-runtimes' },
    key,
    pool.metadata.uid,
    new AbortController().signal,
  );
  const ofSweep = visited() - ofPool;
  const taskKey = keyOf({ metadata: { namespace: task.metadata.namespace, name: 'task-1' } });
  const waiting = { ...common, world, hosting, ledSince: 0, standingOf: () => undefined, credentialsOf: () => undefined };
  expect(observeTask(waiting, taskKey, createTaskMemory())?.pool?.metadata.name).toBe('pool-1');
  return [ofPool, ofSweep, visited() - ofPool - ofSweep];
}

test('a look at a pool, a sweep and a look at a Task visit as many objects among a hundred pools as among two', async () => {
  const among = await looksAtOneOf(2);
  expect(among[0]).toBeGreaterThan(0);
  expect(await looksAtOneOf(100)).toEqual(among);
});
