import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RuntimePool, Task } from '../../src/api/index.js';
import { labelKeys } from '../../src/domain/labels.js';
import { applyAll, cluster, eventually, kubectl, platform } from './support/cluster.js';
import { controllerState, leaseName } from './support/controller-state.js';
import type { ControllerState } from './support/controller-state.js';
import { explained, stopwatch } from './support/evidence.js';
import {
  cordoned,
  dnsDown,
  during as whileFaulty,
  ended,
  imageMissing,
  kindsDeleted,
  nodeFull,
  paused,
  quota,
} from './support/faults.js';
import type { Fault } from './support/faults.js';
import { applyObjects, example, marker, readPool, taskLike, taskOver } from './support/first-task.js';
import { startHistory } from './support/history.js';
import type { ClaimObject, History, PodObject, Seen } from './support/history.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { modelRequests } from './support/model.js';
import { waiting } from './support/tampering.js';

/** Milliseconds within which a cause must be told once it can be known. */
const soon = 5_000;
/** Seconds that a recovery may take, with the waits of the provider, of the scheduler and of the kubelet, on a slow machine. */
const recovery = 180;
/** Milliseconds of the ten for which a Lease can wait that a controller surely has when the server can be asked again. */
const surelyWaits = 8_000;
/** Milliseconds after which a claim that its provider has not looked at says that something is wrong; a look takes 50. */
const providerIdle = 5_000;

const { namespace = '' } = example.task.metadata;
const { runtime } = platform.namespaces;
const poolClass = platform.classes[0]!.spec;
const testImage = cluster.node?.images['test']?.ref ?? '';
/** Whose processes can be ended and stopped. */
const onThisMachine = cluster.node ? describe : describe.skip;
const begun: Fault[] = [];

let product: Installed;
let history: History;

beforeAll(async () => {
  if (!cluster.node) return;
  product = await installed({ gates: true });
  await applyObjects(kubectl, [example.agent, ...waiting.objects(product)]);
  history = startHistory(product);
}, 300_000);
afterAll(async () => {
  if (!cluster.node) return;
  const mended = await Promise.allSettled(begun.map(({ mend }) => mend()));
  history.stop();
  await kubectl(['delete', 'runtimepoolclasses.core.orka.ai', 'never-approved', '-n', product.namespaces.controller]);
  await product.remove();
  expect(mended.filter(({ status }) => status === 'rejected')).toEqual([]);
}, 600_000);

/** A hook that runs out of time does not end what it waits for: it is mended once more at the end. */
function during<T>(fault: Fault, body: () => Promise<T>): Promise<T> {
  begun.push(fault);
  return whileFaulty(fault, body);
}

/** Asks for an answer that the model gives after some seconds. */
async function demand(name: string, seconds = 0): Promise<number> {
  const since = Date.now();
  const spec = seconds > 0 ? { prompt: `Wait ${seconds} seconds. Reply exactly: ${marker}` } : {};
  await applyAll([taskLike(name, spec)]);
  return since;
}

/** The name of the pool of a Task. */
const poolNameOf = (name: string) =>
  eventually(`a pool for Task ${name}`, () => {
    const found = history.of('tasks').findLast(({ object }) => object.metadata.name === name)?.object;
    return Promise.resolve(found?.metadata.labels?.[labelKeys.taskPool]);
  });

type Within = readonly [since: number, seconds: number];
const firstTask = (name: string, isIt: (task: Task) => boolean, [since, seconds]: Within) =>
  history.first('tasks', (task) => task.metadata.name === name && isIt(task), { since, seconds });
const firstPool = (name: string, isIt: (pool: RuntimePool) => boolean, [since, seconds]: Within) =>
  history.first('pools', (pool) => pool.metadata.name === name && isIt(pool), { since, seconds });
const isServing = ({ status }: RuntimePool) => status?.lifecycle === 'Serving';
/** Something happened to it. One that could not be asked in time is asked again: a supervisor may be slow. */
const isDisturbed = ({ object }: Seen<RuntimePool>) =>
  !isServing(object) && object.status?.message?.startsWith('the instance cannot be asked') !== true;

/** Deletes a Task, and begins the deletion of its pool. @returns the name of the pool */
async function deletionOf(name: string): Promise<string> {
  const pool = await poolNameOf(name);
  await kubectl(['delete', 'tasks.core.orka.ai', name, '-n', namespace, '--ignore-not-found', '--timeout=60s']);
  await kubectl(['delete', 'runtimepools.core.orka.ai', pool, '-n', namespace, '--ignore-not-found', '--wait=false']);
  return pool;
}

/** Waits for the end of a pool that is being deleted; `undefined` = not in time. */
const endOf = (pool: string) =>
  eventually(
    'the end of the pool',
    async () => ((await readPool(kubectl, { name: pool, namespace })) ? undefined : true),
    180,
  ).catch(() => undefined);

/** Deletes a Task and its pool: what it had of the node is free for the next one. */
async function givenUp(name: string): Promise<void> {
  const pool = await deletionOf(name);
  if (!(await endOf(pool))) throw new Error(`RuntimePool ${pool} does not end`);
}

/** How often the model was asked for an answer since a moment. */
const answersSince = async (since: number) =>
  (await modelRequests(kubectl, poolClass)).filter(({ at, path }) => at >= since && path.startsWith('/v1/responses')).length;

const millisecondsFrom = (since: number | undefined, seen: Seen<unknown> | undefined) => (seen?.at ?? NaN) - (since ?? NaN);

onThisMachine.each<{
  readonly what: string;
  readonly name: string;
  readonly fault: Fault;
  /** When whoever reads the objects of the pool could know it. */
  readonly knowable: (pool: string, within: Within) => Promise<number | undefined>;
  readonly cause: RegExp;
  readonly condition: { readonly type: string; readonly status: string; readonly reason: unknown };
  /** Seconds for which the cause lasts. @default 5 */
  readonly lasts?: number;
}>([
  {
    what: 'while the controller of the provider does not run',
    name: 'outage-provider',
    fault: ended('provider'),
    knowable: async (pool, within) => {
      const seen = await firstClaim(pool, () => true, within);
      return seen && seen.at + providerIdle;
    },
    cause: /provider/,
    condition: { type: 'AdmissionReady', status: 'False', reason: 'AdmissionClosed' },
    lasts: 10,
  },
  {
    what: 'while a quota admits no Pod',
    name: 'outage-quota-pods',
    fault: quota(runtime, 'pods'),
    knowable: async (pool, within) =>
      (
        await firstClaim(
          pool,
          ({ status }) => status?.conditions?.some(({ message }) => message?.includes('exceeded quota')) === true,
          within,
        )
      )?.at,
    cause: /exceeded quota/,
    condition: { type: 'QuotaReady', status: 'False', reason: 'QuotaRejected' },
    lasts: 20,
  },
  {
    what: 'while a quota admits no Secret of the controller itself',
    name: 'outage-quota-secrets',
    fault: quota(runtime, 'count/secrets'),
    knowable: async (pool, within) => (await firstPool(pool, () => true, within))?.at,
    cause: /exceeded quota/,
    condition: { type: 'QuotaReady', status: 'False', reason: 'QuotaRejected' },
  },
  {
    what: 'while the image is not on the node',
    name: 'outage-image',
    fault: imageMissing(poolClass),
    knowable: async (pool, within) =>
      (
        await firstPod(
          pool,
          ({ status }) =>
            status?.containerStatuses?.some(({ state }) => /^ErrImage|^ImagePull/.test(state?.waiting?.reason ?? '')) === true,
          within,
        )
      )?.at,
    cause: /ErrImage|ImagePullBackOff/,
    condition: { type: 'RolloutReady', status: 'False', reason: 'RolloutFailed' },
  },
  {
    what: 'while nothing is scheduled',
    name: 'outage-cordoned',
    fault: cordoned,
    knowable: unscheduled,
    cause: /cannot be scheduled.*unschedulable/,
    condition: { type: 'SchedulingReady', status: 'False', reason: 'Unschedulable' },
  },
  {
    what: 'while the node is full',
    name: 'outage-full',
    fault: nodeFull(testImage),
    knowable: unscheduled,
    cause: /cannot be scheduled.*Insufficient cpu/,
    condition: { type: 'SchedulingReady', status: 'False', reason: 'Unschedulable' },
  },
])('$what', ({ what, name, fault, knowable, cause, condition, lasts = 5 }) => {
  const tells = ({ status }: RuntimePool | Task) => cause.test(status?.message ?? '');
  let known: number | undefined;
  let pool: Seen<RuntimePool> | undefined;
  let task: Seen<Task> | undefined;
  let serving: Seen<RuntimePool> | undefined;
  let over: Task | undefined;
  let answers = 0;

  beforeAll(async () => {
    const after = stopwatch(what);
    const since = Date.now();
    let poolName = '';
    await during(fault, async () => {
      after('begun');
      await demand(name);
      poolName = await poolNameOf(name);
      known = await knowable(poolName, [since, 90]);
      after('knowable');
      [pool, task] = await Promise.all([firstPool(poolName, tells, [since, 60]), firstTask(name, tells, [since, 60])]);
      after(`${pool ? '' : 'not '}told by the pool, ${task ? '' : 'not '}by the Task`);
      await sleep((known ?? 0) + lasts * 1000 - Date.now());
    });
    after('mended');
    const mended = Date.now();
    serving = await firstPool(poolName, isServing, [mended, recovery]);
    after(serving ? 'Serving' : 'not Serving');
    over = await taskOver(kubectl, { name, namespace }, recovery).catch(() => undefined);
    after(over?.status?.phase ?? 'not over');
    answers = await answersSince(since);
  }, 800_000);
  afterAll(() => givenUp(name), 400_000);

  test('the pool says why, within five seconds of it being knowable', () => {
    expect(pool?.object.status).toMatchObject({ admissionState: 'Closed', message: expect.stringMatching(cause) });
    expect(millisecondsFrom(known, pool)).toBeLessThan(soon);
  });

  test('the condition that it belongs to says so', () => {
    expect(pool?.object.status?.conditions).toContainEqual(expect.objectContaining(condition));
  });

  test('the Task that waits says it too', () => {
    expect(task?.object.status).toMatchObject({ phase: 'Pending', message: expect.stringMatching(cause) });
    expect(millisecondsFrom(known, task)).toBeLessThan(soon);
  });

  test('the pool serves once it is over, without help', () => {
    expect(serving?.object.status).toMatchObject({ lifecycle: 'Serving', activeInstance: expect.anything() });
  });

  test('the Task succeeds then, and the model is asked once', () => {
    expect(over?.status?.phase).toBe('Succeeded');
    expect(answers).toBe(1);
  });
});

function firstClaim(pool: string, isIt: (claim: ClaimObject) => boolean, [since, seconds]: Within) {
  const ofPool = (claim: ClaimObject) => claim.metadata.labels?.[labelKeys.poolName] === pool && isIt(claim);
  return history.first('claims', ofPool, { since, seconds });
}

function firstPod(pool: string, isIt: (pod: PodObject) => boolean, [since, seconds]: Within) {
  const ofPool = (pod: PodObject) => pod.metadata.labels?.[labelKeys.poolName] === pool && isIt(pod);
  return history.first('pods', ofPool, { since, seconds });
}

async function unscheduled(pool: string, within: Within): Promise<number | undefined> {
  const isIt = ({ status }: PodObject) =>
    status?.conditions?.some((one) => one.type === 'PodScheduled' && one.status === 'False') === true;
  return (await firstPod(pool, isIt, within))?.at;
}

onThisMachine('while DNS does not answer', () => {
  const name = 'outage-dns';
  let serving: Seen<RuntimePool> | undefined;
  let over: Task | undefined;

  beforeAll(async () => {
    const after = stopwatch('DNS');
    await during(dnsDown, async () => {
      const since = await demand(name);
      serving = await firstPool(await poolNameOf(name), isServing, [since, recovery]);
      after(serving ? 'Serving' : 'not Serving');
      await sleep(3_000);
    });
    after('mended');
    over = await taskOver(kubectl, { name, namespace }, recovery).catch(() => undefined);
    after(over?.status?.phase ?? 'not over');
  }, 800_000);
  afterAll(() => givenUp(name), 400_000);

  test('a pool starts all the same: nothing between controller and sandbox needs a name', () => {
    expect(serving?.object.status?.lifecycle).toBe('Serving');
  });

  test('the Task succeeds once its agent finds the model', () => {
    expect(over?.status).toMatchObject({ phase: 'Succeeded' });
  });
});

onThisMachine('while the provider does not run, a pool that serves', () => {
  const name = 'outage-provider-serving';
  let poolName = '';
  let meanwhile: readonly Seen<RuntimePool>[] = [];
  let over: Task | undefined;
  let gone: true | undefined;

  beforeAll(async () => {
    const after = stopwatch('provider ended under a pool that serves');
    const since = await demand(name, 12);
    poolName = await poolNameOf(name);
    await firstTask(name, ({ status }) => status?.execution?.state === 'Running', [since, recovery]);
    after('Running');
    await during(ended('provider'), async () => {
      const begin = Date.now();
      over = await taskOver(kubectl, { name, namespace }, recovery).catch(() => undefined);
      after(over?.status?.phase ?? 'not over');
      meanwhile = history.of('pools').filter(({ at, object }) => at > begin && object.metadata.name === poolName);
      gone = await endOf(await deletionOf(name));
      after(gone ? 'pool gone' : 'pool not gone');
    });
  }, 800_000);

  test('goes on serving', () => {
    expect(meanwhile.filter(isDisturbed)).toEqual([]);
  });

  test('ends the prompt that runs in it, and the Task succeeds', () => {
    expect(over?.status?.phase).toBe('Succeeded');
  });

  test('can be deleted', () => {
    expect(gone).toBe(true);
  });
});

onThisMachine('while the kinds of the provider are not installed', () => {
  const [before, meanwhile] = ['outage-kinds-before', 'outage-kinds-meanwhile'];
  const cause = 'agent-sandbox provider CRDs are not installed';
  const tells = ({ status }: RuntimePool | Task) => status?.message?.includes(cause) === true;
  let deletedAt = 0;
  let servedThen: Seen<RuntimePool> | undefined;
  let startedThen: Seen<RuntimePool> | undefined;
  let task: Seen<Task> | undefined;
  let gone: true | undefined;
  let serving: Seen<RuntimePool> | undefined;
  let over: Task | undefined;

  beforeAll(async () => {
    const after = stopwatch('kinds deleted');
    await demand(before);
    const first = await poolNameOf(before);
    // Without another Task that wants it the pool would end with its own.
    const pool = await eventually(`RuntimePool ${first}`, () => readPool(kubectl, { name: first, namespace }));
    await applyAll([waiting.task(`${before}-waits`, pool)]);
    await explained(product, () => taskOver(kubectl, { name: before, namespace }, recovery));
    let second = '';
    await during(kindsDeleted, async () => {
      deletedAt = Date.now();
      after('deleted');
      await demand(meanwhile);
      second = await poolNameOf(meanwhile);
      [servedThen, startedThen, task] = await Promise.all([
        // Four watches end, in any order.
        firstPool(first, (one) => tells(one) && one.status?.message?.includes('SandboxClaim') === true, [deletedAt - 60_000, 60]),
        firstPool(second, tells, [deletedAt, 60]),
        firstTask(meanwhile, tells, [deletedAt, 60]),
      ]);
      after(`told: ${[servedThen, startedThen, task].map(Boolean).join(', ')}`);
      await kubectl(['delete', 'tasks.core.orka.ai', `${before}-waits`, '-n', namespace, '--wait=false']);
      gone = await endOf(await deletionOf(before));
      after(gone ? 'pool gone' : 'pool not gone');
    });
    const mended = Date.now();
    after('mended');
    serving = await firstPool(second, isServing, [mended, 240]);
    after(serving ? 'Serving' : 'not Serving');
    over = await taskOver(kubectl, { name: meanwhile, namespace }, recovery).catch(() => undefined);
    after(over?.status?.phase ?? 'not over');
  }, 1_200_000);
  afterAll(() => givenUp(meanwhile), 400_000);

  test('a pool that served is Degraded within five seconds, and names them', () => {
    expect(servedThen?.object.status).toMatchObject({ lifecycle: 'Degraded', admissionState: 'Closed' });
    expect(millisecondsFrom(deletedAt, servedThen)).toBeLessThan(soon);
  });

  test('a pool that is asked for is Degraded, and so says its Task', () => {
    expect(startedThen?.object.status?.lifecycle).toBe('Degraded');
    expect(task?.object.status).toMatchObject({ phase: 'Pending', message: expect.stringContaining(cause) });
  });

  test('a pool can be deleted: what is of a missing kind is absent', () => {
    expect(gone).toBe(true);
  });

  test('the pool serves once they are installed again, without help', () => {
    expect(serving?.object.status?.lifecycle).toBe('Serving');
  });

  test('the Task succeeds then', () => {
    expect(over?.status?.phase).toBe('Succeeded');
  });
});

/** What happens to a prompt that runs, and to a pool that starts, while the API server cannot write. */
async function withoutWrites(name: string, fault: Fault, seconds: number) {
  const after = stopwatch(name);
  const [running, starting] = [`${name}-running`, `${name}-starting`];
  const since = await demand(running, seconds + 30);
  await explained(product, async () => {
    const state = await firstTask(running, ({ status }) => status?.execution?.state === 'Running', [since, recovery]);
    if (!state) throw new Error('no prompt runs');
  });
  const before = await controllerState(product);
  after('Running');
  // The Lease has just been renewed: it is known how long the next renewal may take.
  const now = Date.now();
  const renewed = await history.first('leases', ({ metadata }) => metadata.name === leaseName, { since: now, seconds: 60 });
  if (!renewed) throw new Error('the Lease is not renewed');
  await demand(starting);
  await during(fault, () => sleep(seconds * 1000));
  const withheld = Date.now() - renewed.at;
  after(`mended, ${(withheld / 1000).toFixed(1)} s after the Lease was renewed`);
  const over = await taskOver(kubectl, { name: running, namespace }, 240);
  after(`${running} ${over.status?.phase}`);
  const other = await taskOver(kubectl, { name: starting, namespace }, 240);
  after(`${starting} ${other.status?.phase}`);
  const pool = await poolNameOf(running);
  const disturbed = history
    .of('pools')
    .filter(({ object }) => object.metadata.name === pool && object.spec.desiredReplicas !== 0)
    .filter((seen) => seen.at > now && isDisturbed(seen))
    .map(({ object }) => object.status);
  const state = await controllerState(product);
  const restarts = restartsOf(state) - restartsOf(before);
  const result = {
    before,
    after: state,
    restarts,
    /** As it may, when the server took long to come back. */
    gaveUp: withheld > surelyWaits && restarts > 0,
    over,
    other,
    disturbed,
    answers: await answersSince(since),
  };
  await givenUp(running);
  await givenUp(starting);
  return result;
}

type Outcome = Awaited<ReturnType<typeof withoutWrites>>;
const restartsOf = ({ restarts }: ControllerState) => Object.values(restarts).reduce((all, one) => all + one, 0);

function hasGivenUp({ restarts, after }: Outcome): void {
  expect(restarts).toBe(1);
  expect(after.exitCodes).toEqual([1]);
}

function isUnknown({ over, answers }: Outcome): void {
  expect(over.status).toMatchObject({ phase: 'Failed', execution: { state: 'OutcomeUnknown', reason: 'RuntimeLost' } });
  expect(answers).toBe(2);
}

onThisMachine.each<{ readonly what: string; readonly name: string; readonly fault: Fault; readonly seconds: number }>([
  { what: 'while the API server is started again', name: 'outage-api', fault: ended('apiserver'), seconds: 1 },
  { what: 'while etcd stands still for less than a Lease can wait', name: 'outage-etcd', fault: paused('etcd'), seconds: 5 },
])('$what', ({ name, fault, seconds }) => {
  let outcome: Outcome;
  beforeAll(async () => {
    outcome = await withoutWrites(name, fault, seconds);
  }, 1_200_000);

  test('the controller goes on, and leads', () => {
    if (outcome.gaveUp) hasGivenUp(outcome);
    else expect(outcome.after).toEqual(outcome.before);
  });

  test('the prompt that runs ends, and its Task succeeds', () => {
    if (outcome.gaveUp) isUnknown(outcome);
    else expect(outcome.over.status?.phase).toBe('Succeeded');
  });

  test('its pool serves for as long as the Task wants it', () => {
    if (!outcome.gaveUp) expect(outcome.disturbed).toEqual([]);
  });

  test('the pool that starts serves, and its Task succeeds', () => {
    expect(outcome.other.status?.phase).toBe('Succeeded');
  });

  test('the model is asked once for each of them', () => {
    expect(outcome.answers).toBe(2);
  });
});

onThisMachine('while etcd stands still for longer than a Lease can wait', () => {
  let outcome: Outcome;
  beforeAll(async () => {
    outcome = await withoutWrites('outage-lease', paused('etcd'), 13);
  }, 1_200_000);

  test('the controller gives up its leadership: it ends with code 1, once, and the kubelet starts it again', () => {
    hasGivenUp(outcome);
  });

  test('it leads again with a greater epoch', () => {
    expect(outcome.after.epoch).toBeGreaterThan(outcome.before.epoch);
  });

  test('what came of the prompt that ran is not known, and it is not sent again', () => {
    isUnknown(outcome);
  });

  test('the Task that waited succeeds under the new leader', () => {
    expect(outcome.other.status?.phase).toBe('Succeeded');
  });
});
