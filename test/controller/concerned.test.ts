import { describe, expect, test } from '@jest/globals';
import type { Manifest, Task } from '../../src/api/index.js';
import { concernedBy, openTasksIn } from '../../src/controller/concerned.js';
import type { WatchedChange } from '../../src/controller/concerned.js';
import { at, boundTask, created, inState, newTask, poolOf, takenTask } from '../support/controlled-task.js';
import { foundBy } from '../support/found-by.js';
import { agent, poolClass } from '../support/objects.js';

const { task: bound, plan } = boundTask();
const named = (task: Task, name: string, metadata: Partial<Task['metadata']> = {}): Task => ({
  ...task,
  metadata: { ...task.metadata, name, uid: name, ...metadata },
});
const manifest = (object: object): Manifest => object as Manifest;
const pool = manifest(poolOf(plan));
const over = inState(bound, { state: 'Succeeded', outcome: 'Succeeded' });
const session = { runtimeSessionUID: 's' };
const receipt = { ...session, runtimeSessionCleanupDigest: `sha256:${'a'.repeat(64)}` };

const tasks: readonly Task[] = [
  named(newTask(), 'unbound'),
  named(takenTask(), 'taken'),
  named(newTask({ agentRef: { name: 'another' } }), 'of-another-agent'),
  named(newTask(), 'elsewhere', { namespace: 'team-b' }),
  named(bound, 'bound'),
  named({ ...newTask(), status: { phase: 'Failed' } }, 'refused'),
  named(inState(over, receipt), 'done'),
];
const of = (change: WatchedChange, all = tasks) =>
  concernedBy(change, {
    tasks: () => all,
    tasksBy: (index, key) => foundBy('tasks', () => all)(index, key) as unknown as readonly Task[],
    pools: () => [poolOf(plan)],
    poolsOn: (node) => [`team-a/pool-on-${node}`],
    nextPlaces: ({ metadata }) => [`${metadata.namespace ?? ''}/first`, `${metadata.namespace ?? ''}/second`],
    now: created,
  });
const changed = (name: WatchedChange['name'], object: object): WatchedChange => ({
  name,
  before: manifest(object),
  after: manifest(object),
});
const poolKey = `team-a/${plan.poolName}`;

test('a change of an Agent concerns the Tasks of its namespace that refer to it and are not bound', () => {
  const coder = { ...agent(), metadata: { name: newTask().spec.agentRef?.name ?? '', namespace: 'team-a' } };
  expect(of(changed('agents', coder))).toEqual({ tasks: ['team-a/unbound', 'team-a/taken'], pools: [], classes: [] });
});

describe('a change of a class concerns', () => {
  const codex = { metadata: { name: 'codex', namespace: 'orka-system' }, spec: poolClass() };
  const claude = { ...codex, spec: poolClass({ providerKind: 'claude' }) };
  const unbound = ['team-a/unbound', 'team-a/taken', 'team-a/of-another-agent', 'team-b/elsewhere'];

  test('itself, its pools, their Tasks, and Tasks that are not bound yet', () => {
    const concerned = of(changed('classes', codex));
    expect(concerned).toEqual({ tasks: [...unbound, 'team-a/bound'], pools: [poolKey], classes: ['orka-system/codex'] });
  });

  test('no pool and no bound Task of another kind', () => {
    expect(of(changed('classes', claude))).toMatchObject({ tasks: unbound, pools: [] });
  });

  test('those that it was the class of before', () => {
    const change: WatchedChange = { name: 'classes', before: manifest(codex), after: manifest(claude) };
    expect(of(change)).toMatchObject({ tasks: [...unbound, 'team-a/bound'], pools: [poolKey] });
  });
});

describe('a change of a Task concerns', () => {
  const change = (before: Task | undefined, after: Task | undefined): WatchedChange => ({
    name: 'tasks',
    before: before && manifest(before),
    after: after && manifest(after),
  });
  const gone = { ...bound, metadata: { ...bound.metadata, deletionTimestamp: at(created) } };
  const waiters = ['team-a/first', 'team-a/second'];

  test.each<[string, WatchedChange, readonly string[], readonly string[]]>([
    ['itself', change(undefined, newTask()), [], []],
    ['its pool', change(newTask(), bound), [], [poolKey]],
    ['the pool that its label named before', change(takenTask(), newTask()), [], [poolKey]],
    ['who waits for its place once it is settled', change(bound, over), waiters, [poolKey]],
    ['who waits for its place once it is gone', change(bound, undefined), waiters, [poolKey]],
    ['nobody else while it is only being deleted', change(bound, gone), [], [poolKey]],
    ['nobody else when it was settled before', change(over, undefined), [], [poolKey]],
  ])('%s', (_, one, others, pools) => {
    expect(of(one)).toEqual({ tasks: ['team-a/t1', ...others], pools, classes: [] });
  });
});

describe('a change of a pool concerns', () => {
  const ofPool = (...all: readonly Task[]) => of(changed('pools', pool), all);

  test('itself, and its Tasks in the order of the queue', () => {
    const all = [named(bound, 'low'), named({ ...bound, spec: { ...bound.spec, priority: 900 } }, 'high')];
    expect(ofPool(...all)).toEqual({ tasks: ['team-a/high', 'team-a/low'], pools: [poolKey], classes: [] });
  });

  test.each<[string, Task, boolean]>([
    ['a settled Task whose session may be left', inState(over, session), true],
    ['a settled Task that is being deleted', named(over, 't1', { deletionTimestamp: at(created) }), true],
    ['not a settled Task whose session is gone', inState(over, receipt), false],
    ['not a settled Task that had no session', over, false],
    ['not a Task of another pool', inState(bound, { runtimePoolName: 'another' }), false],
    ['not a Task of another namespace', named(bound, 't1', { namespace: 'team-b' }), false],
  ])('%s', (_, task, concerned) => {
    expect(ofPool(task).tasks.length > 0).toBe(concerned);
  });
});

test('a change of what a pool is made of concerns the pool that it belongs to, and the one that it belonged to', () => {
  const labelled = (name: string) =>
    manifest({
      kind: 'Secret',
      metadata: { name: 's', labels: { 'orka.ai/runtime-pool-namespace': 'team-a', 'orka.ai/runtime-pool-name': name } },
    });
  const concerned = of({ name: 'secrets', before: labelled('one'), after: labelled('another') });
  expect(concerned).toEqual({ tasks: [], pools: ['team-a/one', 'team-a/another'], classes: [] });
  expect(of({ name: 'pods', before: undefined, after: manifest({ kind: 'Pod', metadata: { name: 'p' } }) }).pools).toEqual([]);
});

test('a node that is cordoned, or is not any more, concerns the pools that have a Pod on it', () => {
  const node = manifest({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' } });
  const concerned = { tasks: [], pools: ['team-a/pool-on-node-1'], classes: [] };
  expect(of({ name: 'cordonedNodes', before: undefined, after: node })).toEqual(concerned);
  expect(of({ name: 'cordonedNodes', before: node, after: undefined })).toEqual(concerned);
});

test('a namespace that is resumed concerns its Tasks that are not over, the first of the queue first', () => {
  const early = named(newTask(), 'early', { creationTimestamp: at(created - 60_000) });
  const keys = openTasksIn(['team-a'], [...tasks, early], created);
  expect(keys[0]).toBe('team-a/early');
  expect([...keys].sort()).toEqual(['bound', 'early', 'of-another-agent', 'taken', 'unbound'].map((name) => `team-a/${name}`));
  expect(openTasksIn(['team-b'], tasks, created)).toEqual(['team-b/elsewhere']);
});
