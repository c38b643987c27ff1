import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Manifest, Task } from '../../src/api/index.js';
import { labelKeys } from '../../src/domain/labels.js';
import { readInfo } from './info.js';
import { requestsOf } from './support/audit.js';
import type { ApiRequest } from './support/audit.js';
import { cluster, eventually, kubectl } from './support/cluster.js';
import { controllerState, leaseName } from './support/controller-state.js';
import { explained, stopwatch } from './support/evidence.js';
import { unplaced } from './support/faults.js';
import { applyObjects, example, taskLike, taskOver } from './support/first-task.js';
import { startHistory } from './support/history.js';
import type { History } from './support/history.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { modelRequests } from './support/model.js';
import { usernameOf } from './support/rbac.js';

/** Milliseconds; two thousand are what a standby may wait between two looks at the Lease. */
const handsOverWithin = 15_000;
const rounds = [1, 2, 3];
const { namespace = '' } = example.task.metadata;
const writing = ['create', 'update', 'patch', 'delete'];

type Lease = Manifest & { readonly spec?: { readonly holderIdentity?: string } };

let product: Installed;
let history: History;
let requests: readonly ApiRequest[] = [];
const epochs: number[] = [];
/** Milliseconds from the request to delete the Pod of the leader to a Lease with another holder. */
const took: number[] = [];
/** Whether the Lease had no holder in between. */
const given: boolean[] = [];
const tasks: Task[] = [];
let answers = 0;

beforeAll(async () => {
  const since = Date.now();
  product = await installed({ gates: true, replicas: 2 });
  await applyObjects(kubectl, [example.agent]);
  history = startHistory(product);
  await explained(product, async () => {
    for (const round of rounds) await handedOver(round);
  });
  epochs.push((await controllerState(product)).epoch);
  const account = { namespace: product.namespaces.controller, name: leaseName };
  requests = cluster.node ? await requestsOf(readInfo()?.auditLog ?? '', usernameOf(account), since) : [];
  const asked = await modelRequests(kubectl, product.poolClass);
  answers = asked.filter(({ at, path }) => at >= since && path.startsWith('/v1/responses')).length;
}, 1_800_000);
afterAll(async () => {
  history.stop();
  await product.remove();
}, 600_000);

/** The Pod of the leader is deleted while a pool starts. */
async function handedOver(round: number): Promise<void> {
  const name = `handover-${round}`;
  const after = stopwatch(name);
  const before = await controllerState(product);
  epochs.push(before.epoch);
  const since = Date.now();
  const leader = before.holder.split('_')[0] ?? '';
  // Its Pod would be up before anybody tells the leader to end.
  await unplaced(async () => {
    await applyObjects(kubectl, [taskLike(name)]);
    expect(await history.first('claims', () => true, { since, seconds: 90 })).toBeDefined();
    after('claim');
    const told = Date.now();
    await kubectl(['delete', 'pod', leader, '-n', product.namespaces.controller, '--wait=false']);
    const holderOf = ({ metadata, spec }: Lease) => (metadata.name === leaseName ? (spec?.holderIdentity ?? '') : undefined);
    const isOther = (lease: Lease) => ![undefined, '', before.holder].includes(holderOf(lease));
    const lease = await history.first('leases', isOther, { since: told, seconds: 90 });
    took.push((lease?.at ?? NaN) - told);
    given.push(history.of('leases').some(({ at, object }) => at >= told && holderOf(object) === ''));
    after(`Lease taken over ${Math.round(took.at(-1) ?? NaN)} ms after the leader was told to end`);
  });
  tasks.push(await taskOver(kubectl, { name, namespace }, 180));
  after(tasks.at(-1)?.status?.phase ?? 'over');
  const pool = tasks.at(-1)?.metadata.labels?.[labelKeys.taskPool] ?? '';
  await kubectl(['delete', 'tasks.core.orka.ai', name, '-n', namespace, '--timeout=60s']);
  await kubectl(['delete', 'runtimepools.core.orka.ai', pool, '-n', namespace, '--ignore-not-found', '--wait=false']);
  await eventually('a standby', async () => {
    const { restarts } = await controllerState(product);
    const names = Object.keys(restarts);
    return names.length === 2 && !names.includes(leader) ? true : undefined;
  });
  // It has to see everything once before it can stand by.
  await kubectl([
    'wait',
    '--for=condition=Available',
    'deployment',
    leaseName,
    '-n',
    product.namespaces.controller,
    '--timeout=150s',
  ]);
}

test('a leader that is told to end hands over at once', () => {
  expect(given).toEqual(rounds.map(() => true));
  expect(took).toHaveLength(rounds.length);
  for (const one of took) expect(one).toBeLessThan(handsOverWithin);
});

test('each leader has a greater epoch than the one before', () => {
  expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b));
  expect(epochs).toHaveLength(rounds.length + 1);
});

test('no pool is written with an epoch of before once a newer one was', () => {
  for (const name of new Set(history.of('pools').map(({ object }) => object.metadata.name))) {
    const written = history
      .of('pools')
      .filter(({ object }) => object.metadata.name === name)
      .map(({ object }) => object.status?.controllerEpoch ?? 0);
    expect(written).toEqual([...written].sort((a, b) => a - b));
  }
});

test('a pool that was starting is served by the new leader: every Task succeeds, and the model is asked once for each', () => {
  expect(tasks.map(({ status }) => status?.phase)).toEqual(rounds.map(() => 'Succeeded'));
  expect(answers).toBe(rounds.length);
});

(cluster.node ? describe : describe.skip)('in the audit log (of the cluster of this machine)', () => {
  test('only one replica writes at any time: what one wrote begins after the last write of the one before', () => {
    // Whoever tries for a Lease that another one took first is refused, and wrote nothing.
    const written = requests.filter(({ target, code }) => code < 400 && writing.includes(target?.verb ?? ''));
    const writers = written.map(({ pod }) => pod);
    const turns = writers.filter((pod, index) => pod !== writers[index - 1]);
    expect(turns).toEqual([...new Set(turns)]);
    expect(turns).toHaveLength(rounds.length + 1);
  });
});
