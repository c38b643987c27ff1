import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { eventually, kubectl } from './support/cluster.js';
import { controllerState } from './support/controller-state.js';
import type { ControllerState } from './support/controller-state.js';
import { explained, stopwatch } from './support/evidence.js';
import { applyObjects, example, isOver, taskLike } from './support/first-task.js';
import { startHistory } from './support/history.js';
import type { History } from './support/history.js';
import { leftovers } from './support/installation.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { metricsOf } from './support/metrics.js';
import { modelRequests } from './support/model.js';

/** Far below the 110 Pods that a node runs. */
const many = 30;
/** Seconds for all of them; a fast machine of two cores starts about one in a second. */
const patience = 600;
/** Of one Task from its creation until nothing is left, with all that is done again because somebody else was faster. */
const mostRequests = 150;
/** Idle connections to the API server that its transport may keep. */
const keptAlive = 32;
const { namespace = '' } = example.task.metadata;
const names = Array.from({ length: many }, (_, index) => `many-${String(index + 1).padStart(2, '0')}`);

/** What the controller has, and what it has done. */
interface Figures {
  readonly requests: number;
  readonly conflicts: number;
  readonly claimsMade: number;
  readonly claimsEnded: number;
  /** Of these, because a sandbox did not start in its time. */
  readonly coldStarts: number;
  readonly failedRuns: number;
  readonly files: number;
  readonly memory: number;
}

let product: Installed;
let history: History;
let served: ReadonlySet<string> = new Set();
/** How each Task ended, by name. */
let ended: ReadonlyMap<string, string> = new Map();
let answers = 0;
let before: Figures | undefined;
let after: Figures | undefined;
let states: readonly ControllerState[] = [];
let objects: readonly (readonly string[])[] = [];
let left: readonly Manifest[] = [];

async function figures(): Promise<Figures> {
  const sum = await metricsOf(kubectl, product);
  return {
    requests: sum('rest_client_requests_total'),
    conflicts: sum('rest_client_requests_total', 'code="409"'),
    claimsMade: sum('orka_workspaces_pool_effects_total', 'effect="create-claim"'),
    claimsEnded: sum('orka_workspaces_pool_effects_total', 'effect="delete-claim"'),
    coldStarts: sum('orka_workspaces_pool_sandboxes_ended_total', 'cause="cold-start"'),
    failedRuns: sum('controller_runtime_reconcile_errors_total'),
    files: sum('process_open_fds'),
    memory: sum('process_resident_memory_bytes'),
  };
}

/** All that a Task or a pool could have, but for events and what Kubernetes makes itself. */
async function allObjects(): Promise<readonly string[]> {
  const kinds = [
    ...['tasks.core.orka.ai', 'runtimepools.core.orka.ai', 'secrets', 'configmaps', 'services', 'pods'],
    ...['networkpolicies', 'poddisruptionbudgets', 'sandboxes', 'sandboxclaims', 'sandboxtemplates', 'sandboxwarmpools'],
  ];
  const list = (where: string) => kubectl(['get', kinds.join(','), '-n', where, '-o', 'name']);
  const all = await Promise.all([product.namespaces.tasks, product.namespaces.runtime].map(list));
  return all.join('').split('\n').sort();
}

function servingPools(): ReadonlySet<string> {
  const serving = history.of('pools').filter(({ object }) => object.status?.lifecycle === 'Serving');
  return new Set(serving.map(({ object }) => object.metadata.name));
}

/** Waits, but not for ever. */
const allOf = (seen: () => { readonly size: number }) =>
  eventually('all of them', () => Promise.resolve(seen().size === many ? true : undefined), patience).catch(() => undefined);

function outcomes(): ReadonlyMap<string, string> {
  const over = history.of('tasks').filter(({ object }) => isOver(object));
  return new Map(
    over.map(({ object: { metadata, status } }) => [
      metadata.name,
      [status?.phase, status?.execution?.reason, status?.message].filter(Boolean).join(': '),
    ]),
  );
}

beforeAll(async () => {
  const said = stopwatch(`${many} pools at once`);
  const since = Date.now();
  product = await installed({ gates: true, requests: { cpu: '10m', memory: '32Mi' } });
  await applyObjects(kubectl, [example.agent]);
  history = startHistory(product);
  const started = [await allObjects(), await controllerState(product)] as const;
  before = await figures();
  said('installed');
  await explained(product, async () => {
    await applyObjects(
      kubectl,
      names.map((name) => taskLike(name)),
    );
    said('demanded');
    await allOf(servingPools);
    served = servingPools();
    said(`${served.size} served`);
    await allOf(outcomes);
    ended = outcomes();
    said(`${ended.size} Tasks over, ${[...ended.values()].filter((one) => one === 'Succeeded').length} of them well`);
    for (const kind of ['tasks.core.orka.ai', 'runtimepools.core.orka.ai'])
      await kubectl(['delete', kind, '--all', '-n', namespace, `--timeout=${patience}s`]);
    said('deleted');
  });
  await eventually('nothing left', async () => ((await leftovers(kubectl, product)).length === 0 ? true : undefined), 120).catch(
    () => undefined,
  );
  left = await leftovers(kubectl, product);
  objects = [started[0], await allObjects()];
  states = [started[1], await controllerState(product)];
  after = await figures();
  const asked = await modelRequests(kubectl, product.poolClass);
  answers = asked.filter(({ at, path }) => at >= since && path.startsWith('/v1/responses')).length;
  said(
    `${difference('requests')} requests, ${difference('conflicts')} conflicts, ${difference('files')} more open files, ` +
      `${Math.round(difference('memory') / 1e6)} MB more`,
  );
}, 2_700_000);
afterAll(async () => {
  history.stop();
  await product.remove();
}, 600_000);

const difference = (name: keyof Figures) => (after?.[name] ?? NaN) - (before?.[name] ?? NaN);

test(`all of ${many} pools that are asked for at once serve`, () => {
  expect(served.size).toBe(many);
});

test('all their Tasks end: well, or because so many agents at once start too slowly on so small a machine', () => {
  expect([...ended.keys()].sort()).toEqual(names);
  const others = [...ended.values()].filter((outcome) => outcome !== 'Succeeded');
  expect(others.filter((outcome) => !/RuntimeSessionStartFailed|provider adapter initialization/.test(outcome))).toEqual([]);
});

test('no Task has the model asked twice', () => {
  expect(answers).toBeLessThanOrEqual(many);
});

test('each pool has one claim, which is ended once, and another one only where a sandbox did not start in its time', () => {
  expect(difference('claimsMade') - difference('coldStarts')).toBe(many);
  expect(difference('claimsEnded')).toBe(difference('claimsMade'));
});

test('nothing is done over and over: requests of each pool are bounded, and no run fails', () => {
  expect(difference('requests') / many).toBeLessThan(mostRequests);
  expect(difference('failedRuns')).toBe(0);
});

test('writers that are in each other’s way are few: of ten requests less than one is a conflict', () => {
  expect(difference('conflicts')).toBeLessThan(difference('requests') / 10);
});

test('the controller is the one that it was, and leads', () => {
  expect(states[1]).toEqual(states[0]);
});

test('all of it goes away again', () => {
  expect(left.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([]);
  expect(objects[1]).toEqual(objects[0]);
});

test('the controller keeps no more connections than it has for requests, and not much memory', () => {
  expect(difference('files')).toBeLessThanOrEqual(keptAlive);
  expect(difference('memory')).toBeLessThan(150e6);
});
