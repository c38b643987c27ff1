// What one look at a pool takes among few and among many pools. `npm run bench`
import { createMemory } from '../../lib/controller/pool/memory.js';
import { observePool } from '../../lib/controller/pool/observe.js';
import { watchedKinds, worldIndexes } from '../../lib/controller/world.js';
import { commonLabels } from '../../lib/domain/labels.js';
import { poolKey } from '../../lib/domain/names.js';
import { createView } from '../../lib/kube/own-writes.js';
import { createStore } from '../../lib/kube/store.js';

const [namespace, runtime] = ['team-a', 'orka-runtimes'];

/** A pool, its Task, and the fifteen objects that it has in the runtime namespace, by kind. */
function objectsOf(n) {
  const name = `acp-ws-codex-${n}`;
  const uid = `uid-of-${name}`;
  const profile = { providerKind: 'codex', digest: `sha256:${'a'.repeat(64)}` };
  const spec = { runtimeNamespace: runtime, runtime: { image: 'i', profile }, executionWorkspace: {}, desiredReplicas: 1 };
  const labels = commonLabels({ poolNamespace: namespace, poolName: name, poolUid: uid, poolKey: poolKey(namespace, name) });
  const child = (kind, count) =>
    Array.from({ length: count }, (_, index) => [
      kind,
      {
        ...watchedKinds[kind],
        metadata: { name: `${name}-${kind}-${index}`, namespace: runtime, uid: `${name}-${kind}-${index}`, labels },
      },
    ]);
  return [
    ['pools', { ...watchedKinds.pools, metadata: { name, namespace, uid, generation: 1, resourceVersion: '1' }, spec }],
    [
      'tasks',
      {
        ...watchedKinds.tasks,
        metadata: { name: `task-${n}`, namespace, uid: `task-${n}`, resourceVersion: '1' },
        spec: {},
        status: { execution: { state: 'Running', runtimePoolName: name } },
      },
    ],
    ...['services', 'budgets', 'templates', 'warmPools', 'claims', 'sandboxes', 'pods'].flatMap((kind) => child(kind, 1)),
    ...child('policies', 5),
    ...child('secrets', 2),
  ];
}

/** @param {boolean} scans whether each question looks at every object, as it would without indexes */
function worldOf(many, scans) {
  const objects = Array.from({ length: many }, (_, n) => objectsOf(n)).flat();
  const watched = Object.keys(watchedKinds).map((name) => {
    const store = createStore((key, before, after) => view.changed(key, before, after));
    const view = createView(() => ({ ...store, reached: () => '1' }), { indexes: worldIndexes[name] });
    store.replace(objects.flatMap(([kind, object]) => (kind === name ? [object] : [])));
    const scan = (index, value) => view.list().filter((object) => worldIndexes[name][index](object) === value);
    return [name, { ...view, kind: watchedKinds[name], missing: () => false, ...(scans ? { by: scan } : {}) }];
  });
  return Object.fromEntries(watched);
}

/** Milliseconds of one look, the median of several rounds over ten pools. */
function look(many, scans) {
  const options = {
    world: worldOf(many, scans),
    classes: { of: () => ({ state: 'missing', says: 'there is none' }) },
    enabled: true,
    runtimeNamespace: runtime,
    idleTtl: 900_000,
    epoch: 1,
    tokenVersion: () => undefined,
  };
  const memories = Array.from({ length: 10 }, createMemory);
  const round = () => {
    for (const [n, memory] of memories.entries()) observePool(options, `${namespace}/acp-ws-codex-${n}`, memory);
  };
  const rounds = scans ? 5 : 200;
  for (let n = 0; n < rounds; n++) round();
  const times = Array.from({ length: rounds }, () => {
    const start = performance.now();
    round();
    return (performance.now() - start) / memories.length;
  });
  return times.sort((a, b) => a - b)[Math.floor(rounds / 2)];
}

const counts = [10, 100, 1_000];
const [ours, scanned] = [false, true].map((scans) => counts.map((many) => look(many, scans)));
console.log('\nOne look at a pool; the goal is that it does not grow with the number of pools (1 x)\n');
console.table(
  counts.map((many, index) => ({
    pools: many,
    'ours (ms)': ours[index].toFixed(4),
    'against 10 pools': `${(ours[index] / ours[0]).toFixed(1)} x`,
    'by scan (ms)': scanned[index].toFixed(4),
    'scan against 10 pools': `${(scanned[index] / scanned[0]).toFixed(1)} x`,
  })),
);
