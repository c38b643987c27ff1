// What one Task costs on the test cluster, in time and in API requests: node test/cluster/bench.js. Nothing else may use the cluster meanwhile.

import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { Failure } from './failure.js';
import { step } from './progress.js';
import { count, requestsOf } from './support/audit.js';
import { eventually } from './support/eventually.js';
import { applyObjects, example, isOver, taskLike } from './support/first-task.js';
import { applyKinds, ensureProxyToken, install, leftovers, removeTasks, synthesize, uninstall } from './support/installation.js';
import { runMany } from './support/many-tasks.js';
import { metricsOf } from './support/metrics.js';
import { modelRequests, startModel, stopModel } from './support/model.js';
import { adminOf, buildImages, refuseForeignTasks, requireOwnCluster } from './support/own-cluster.js';
import { benchPools, wanting } from './support/pool-bench.js';
import { createWanting, removeWanting } from './support/pools.js';
import { benchRepository } from './support/repository-bench.js';
import { startTimeline, steps } from './support/timeline.js';
import { runProgram } from './support/program.js';
import { table } from './table.js';

const usage = `usage: node test/cluster/bench.js
  runs Tasks one after the other, each with a pool of its own, then some on one pool, then 10 and 30 at once, then pools without Tasks, then Tasks on a repository, and prints medians
  [--runs <number>]   how many Tasks, and how many pools; 5
  [--idle <seconds>]  how long the controller is listened to while nothing happens: without pools, with stopped and with serving ones; 60
  [--only <part>]     tasks: one after the other; plain: on one pool that they share; many: at once; pools: without Tasks; repository: what one adds
  [--json <file>]     write all that was measured as well
  [--no-build]        with the images that are there`;

/** What the reference implementation of the contract needs on the same cluster, and what we want. */
const reference = { serving: 3_800, succeeded: 12_100, requests: 466, life: 735 };
const goals = { serving: 3_000, succeeded: 3_000, own: 150, requests: 120, life: 80, second: 600 };
/** So many at once; milliseconds until half of them and all of them are over. */
const atOnce = [
  { many: 10, reference: { median: 29_000, last: 41_000 } },
  { many: 30, reference: { median: 67_000, last: 106_000 } },
];
/** What a sandbox asks of the node, so that thirty fit on it. */
const small = { cpu: '10m', memory: '32Mi' };
const parts = /** @type {const} */ (['tasks', 'plain', 'many', 'pools', 'repository']);

/** @typedef {{ readonly times: ReadonlyMap<import('./support/timeline.js').Step, number>, readonly prompted: number, readonly gone: number }} Run `prompted`: the model was asked; `gone`: nothing was left */

function parse() {
  try {
    const { values } = parseArgs({
      options: {
        runs: { type: 'string', default: '5' },
        idle: { type: 'string', default: '60' },
        only: { type: 'string' },
        json: { type: 'string' },
        'no-build': { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h' },
      },
    });
    const [runs, idle] = [Number(values.runs), Number(values.idle)];
    if (!Number.isInteger(runs) || runs < 1) throw new Error('--runs takes a whole number above zero.');
    if (!Number.isInteger(idle) || idle < 0) throw new Error('--idle takes a whole number of seconds.');
    const only = parts.filter((part) => values.only === undefined || values.only === part);
    if (only.length === 0) throw new Error(`--only takes ${parts.join(', ')}.`);
    return { runs, idle, only, json: values.json, build: !values['no-build'], help: values.help };
  } catch (error) {
    throw new Failure(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

/** @param {readonly number[]} values */
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

/** @param {readonly number[]} values */
const spread = (values) => `${Math.min(...values).toFixed(0)} … ${Math.max(...values).toFixed(0)}`;

/**
 * One Task, from `kubectl apply` until nothing is left of it.
 *
 * @param {import('./support/model.js').Kubectl} kubectl
 * @param {import('./support/installation.js').Installation} installation
 * @param {ReturnType<typeof startTimeline>} timeline
 * @param {string} name
 * @returns {Promise<Run>}
 */
async function runTask(kubectl, installation, timeline, name) {
  const task = taskLike(name);
  const { namespace = '' } = task.metadata;
  timeline.restart();
  await applyObjects(kubectl, [task]);
  // Asking again and again would be measured as well.
  const over = await eventually(
    `the end of Task ${name}`,
    () => Promise.resolve(isOver(timeline.task()) ? timeline.task() : undefined),
    180,
  );
  if (over.status?.phase !== 'Succeeded') {
    throw new Failure(`Task ${name} ended as ${over.status?.phase ?? 'nothing'}: ${over.status?.message ?? 'no message'}`);
  }
  const times = timeline.times();
  const asked = (await modelRequests(kubectl, installation.poolClass)).filter(({ path }) => path === '/v1/responses').at(-1);
  const pool = over.status.execution?.runtimePoolName ?? '';
  await kubectl(['delete', 'tasks.core.orka.ai', name, '-n', namespace, '--timeout=120s']);
  await kubectl(['delete', 'runtimepools.core.orka.ai', pool, '-n', namespace, '--ignore-not-found', '--timeout=180s']);
  await eventually('nothing left of the Task', async () =>
    (await leftovers(kubectl, installation)).length === 0 ? true : undefined,
  );
  return { times, prompted: asked?.at ?? NaN, gone: Date.now() };
}

/** @param {readonly Run[]} runs */
function printTimes(runs) {
  const since = (/** @type {import('./support/timeline.js').Step} */ name) =>
    runs.map(({ times }) => (times.get(name) ?? NaN) - (times.get('Task created') ?? NaN));
  const rows = steps.slice(1).map((name, index) => {
    const own = since(name).map((value, run) => value - (since(steps[index] ?? 'Task created')[run] ?? 0));
    return [name, median(since(name)).toFixed(0), median(own).toFixed(0), spread(since(name)), notes[name] ?? ''];
  });
  const asked = runs.map(({ times, prompted }) => prompted - (times.get('Task created') ?? NaN));
  const row = ['model asked', median(asked).toFixed(0), '', spread(asked), 'by the clock of the model, on the same machine'];
  rows.splice(steps.indexOf('prompt submitted'), 0, row);
  console.log(`\nMilliseconds since the Task was created, medians of ${runs.length}`);
  console.log(table([['STEP', 'SINCE CREATED', 'SINCE LAST', 'FROM … TO', ''], ...rows], '  '));
  /** @typedef {import('./support/timeline.js').Step} Step */
  const between = (/** @type {Step} */ from, /** @type {Step} */ to) =>
    median(since(to).map((value, run) => value - (since(from)[run] ?? 0)));
  const provider = between('claim created', 'Pod running');
  const agent = between('session starting', 'prompt ended');
  const shares = /** @type {const} */ ([
    ['provider and kubelet', provider, 'claim created → Pod running'],
    ['agent', agent, 'session starting → prompt ended'],
    [
      'controller, and the supervisor before a session',
      median(since('Succeeded')) - provider - agent,
      `the rest; goal < ${goals.own}`,
    ],
  ]);
  console.log('\nWhere the time goes');
  console.log(
    table(
      shares.map(([who, time, what]) => [who, `${time.toFixed(0)} ms`, what]),
      '  ',
    ),
  );
}

/**
 * What the controller says of itself.
 *
 * @param {import('./support/model.js').Kubectl} kubectl
 * @param {import('./support/installation.js').Installation} installation
 * @returns {Promise<Record<'cpu' | 'memory' | 'runs' | 'worked', number>>} seconds of CPU, bytes, runs of its queues and seconds that they took
 */
async function ownFigures(kubectl, installation) {
  const metrics = await metricsOf(kubectl, installation);
  return {
    cpu: metrics('process_cpu_seconds_total'),
    memory: metrics('process_resident_memory_bytes'),
    runs: metrics('workqueue_work_duration_seconds_count'),
    worked: metrics('workqueue_work_duration_seconds_sum'),
  };
}

/** @type {Readonly<Partial<Record<string, string>>>} */
const notes = {
  Serving: `reference ${reference.serving}, goal ≤ ${goals.serving}`,
  Succeeded: `reference ${reference.succeeded}, goal ≤ ${goals.succeeded}`,
};

/**
 * @param {readonly Run[]} runs
 * @param {readonly import('./support/audit.js').ApiRequest[]} requests of the controller
 */
function printRequests(runs, requests) {
  const between = (/** @type {number} */ from, /** @type {number} */ to) =>
    count(requests.filter(({ at }) => at >= from && at <= to));
  const created = (/** @type {Run} */ { times }) => times.get('Task created') ?? NaN;
  const untilSucceeded = runs.map((run) => between(created(run), run.times.get('Succeeded') ?? NaN));
  const life = runs.map((run) => between(created(run), run.gone));
  const total = (/** @type {readonly ReturnType<typeof count>[]} */ counts) => counts.map((one) => one.requests);
  console.log(`\nAPI requests of the controller, medians of ${runs.length}, without watches`);
  console.log(
    table(
      [
        ['', 'REQUESTS', 'FROM … TO', 'WATCHES OPENED', ''],
        [
          'until Succeeded',
          String(median(total(untilSucceeded))),
          spread(total(untilSucceeded)),
          String(median(untilSucceeded.map(({ watches }) => watches))),
          `reference ${reference.requests}, goal < ${goals.requests}`,
        ],
        [
          'whole life, deletion included',
          String(median(total(life))),
          spread(total(life)),
          String(median(life.map(({ watches }) => watches))),
          `reference ${reference.life}, goal < ${goals.life}`,
        ],
      ],
      '  ',
    ),
  );
  const sorts = [...new Set(life.flatMap(({ by }) => [...by.keys()]))];
  const of = (/** @type {readonly ReturnType<typeof count>[]} */ counts, /** @type {string} */ what) =>
    median(counts.map(({ by }) => by.get(what) ?? 0));
  const rows = sorts
    .map((what) => ({ what, until: of(untilSucceeded, what), whole: of(life, what) }))
    .filter(({ whole }) => whole > 0)
    .sort((a, b) => b.whole - a.whole);
  console.log(
    `\n${table([['REQUEST', 'UNTIL SUCCEEDED', 'WHOLE LIFE'], ...rows.map(({ what, until, whole }) => [what, String(until), String(whole)])], '  ')}`,
  );
  return { untilSucceeded, life };
}

/**
 * Tasks one after the other, and then nothing for a while.
 *
 * @param {object} options
 * @param {import('./support/model.js').Kubectl} options.kubectl
 * @param {import('./info.js').ClusterInfo} options.info
 * @param {import('./support/installation.js').Installation} options.installation
 * @param {string} options.username of the controller
 * @param {number} options.runs
 * @param {number} options.idle seconds
 * @returns {Promise<object>} all that was measured
 */
async function benchTasks({ kubectl, info, installation, username, runs, idle }) {
  const timeline = startTimeline(info, installation.namespaces);
  /** @type {Run[]} */
  const done = [];
  const begun = Date.now();
  let before = await ownFigures(kubectl, installation);
  // The first one also loads what nothing has loaded yet; it does not count.
  for (let run = 0; run <= runs; run++) {
    const name = `bench-${run}`;
    await step(run === 0 ? 'a first Task, to warm up' : `Task ${run} of ${runs}`, async (report) => {
      const one = await runTask(kubectl, installation, timeline, name);
      const took = (one.times.get('Succeeded') ?? NaN) - (one.times.get('Task created') ?? NaN);
      report(`Succeeded after ${(took / 1000).toFixed(1)} s`);
      if (run > 0) done.push(one);
    });
    if (run === 0) before = await ownFigures(kubectl, installation);
  }
  timeline.stop();
  const after = await ownFigures(kubectl, installation);
  const quiet = Date.now();
  if (idle > 0) await step(`idle for ${idle} s`, () => sleep(idle * 1000));
  const ended = Date.now();
  const requests = await requestsOf(info.auditLog, username, begun);
  if (requests.length === 0) throw new Failure(`${info.auditLog} has no request of ${username}: is it the controller's account?`);
  printTimes(done);
  const each = (/** @type {keyof typeof after} */ what) => (after[what] - before[what]) / runs;
  console.log(
    `\nThe controller itself, for each Task, deletion included: ${(each('cpu') * 1000).toFixed(0)} ms of CPU, ${each('runs').toFixed(0)} runs of its queues that took ` +
      `${(each('worked') * 1000).toFixed(0)} ms, waiting for others included; its memory is ${(after.memory / 1e6).toFixed(0)} MB`,
  );
  const counts = printRequests(done, requests);
  const idled = count(requests.filter(({ at }) => at >= quiet && at <= ended));
  const perMinute = idle > 0 ? (idled.requests * 60_000) / (ended - quiet) : NaN;
  if (idle > 0) {
    const sorts = [...idled.by].map(([what, times]) => `${times} × ${what}`).join(', ');
    console.log(`\nIdle: ${perMinute.toFixed(1)} requests a minute (${sorts || 'none'})`);
  }
  const tidy = (/** @type {ReturnType<typeof count>} */ { by, ...rest }) => ({ ...rest, by: Object.fromEntries(by) });
  const all = done.map(({ times, prompted, gone }, run) => ({
    times: Object.fromEntries(times),
    prompted,
    gone,
    untilSucceeded: tidy(counts.untilSucceeded[run] ?? count([])),
    life: tidy(counts.life[run] ?? count([])),
  }));
  return { reference, goals, runs: all, idlePerMinute: perMinute };
}

/**
 * Tasks without a workspace, one after the other: the first one has a pool made, which the others find.
 *
 * @param {object} options
 * @param {import('./support/model.js').Kubectl} options.kubectl
 * @param {import('./info.js').ClusterInfo} options.info
 * @param {import('./support/installation.js').Installation} options.installation
 * @param {number} options.runs
 * @returns {Promise<object>} all that was measured
 */
async function benchPlain({ kubectl, info, installation, runs }) {
  const { namespace = '' } = example.task.metadata;
  const timeline = startTimeline(info, installation.namespaces);
  /** @type {number[]} */
  const took = [];
  try {
    await step(`${runs + 1} Tasks on one pool`, async (report) => {
      for (let run = 0; run <= runs; run++) {
        timeline.restart();
        const name = `bench-plain-${run}`;
        await applyObjects(kubectl, [taskLike(name, { execution: {} })]);
        const ended = () => Promise.resolve(timeline.times().has('Succeeded') || isOver(timeline.task()) ? true : undefined);
        await eventually(`the end of Task ${name}`, ended, 120);
        const { phase, message } = timeline.task()?.status ?? {};
        if (phase !== 'Succeeded') throw new Failure(`Task ${name} ended as ${phase ?? 'nothing'}: ${message ?? 'no message'}`);
        took.push((timeline.times().get('Succeeded') ?? NaN) - (timeline.times().get('Task created') ?? NaN));
        await kubectl(['delete', 'tasks.core.orka.ai', name, '-n', namespace, '--timeout=60s']);
      }
      report(took.map((one) => `${one.toFixed(0)} ms`).join(', '));
    });
  } finally {
    timeline.stop();
    await kubectl(['delete', 'runtimepools.core.orka.ai', '--all', '-n', namespace, '--timeout=120s']);
  }
  const [first = NaN, ...later] = took;
  const rows = [
    ['the first one, with its pool', `${first.toFixed(0)} ms`, ''],
    ['each other one, median', `${median(later).toFixed(0)} ms`, `goal ≤ ${goals.second}`],
  ];
  console.log(`\nTasks on one pool that they share, created → Succeeded\n${table(rows, '  ')}`);
  return { first, later };
}

/**
 * Tasks at once, each with a sandbox of its own and a real agent.
 *
 * @param {object} options
 * @param {import('./support/model.js').Kubectl} options.kubectl
 * @param {import('./info.js').ClusterInfo} options.info
 * @param {import('./support/installation.js').Installation} options.installation
 * @param {string} options.username of the controller
 * @returns {Promise<readonly object[]>} all that was measured
 */
async function benchMany({ kubectl, info, installation, username }) {
  const { namespace = '' } = example.task.metadata;
  const rows = [];
  const measured = [];
  for (const { many, reference: before } of atOnce) {
    const names = Array.from({ length: many }, (_, index) => `bench-${many}-${index + 1}`);
    const [first, since] = [await ownFigures(kubectl, installation), Date.now()];
    const { over, prompts, busy } = await step(`${many} Tasks at once`, async (report) => {
      const found = await runMany(kubectl, info, installation, names, 300);
      report(`${found.over.size} are over`);
      return found;
    });
    const then = await ownFigures(kubectl, installation);
    for (const kind of ['tasks.core.orka.ai', 'runtimepools.core.orka.ai'])
      await kubectl(['delete', kind, '--all', '-n', namespace, '--timeout=300s']);
    const { requests } = count(
      (await requestsOf(info.auditLog, username, since)).filter(({ what }) => !what.endsWith(' leases')),
    );
    const times = [...over.values()].map(({ at }) => at);
    const well = [...over.values()].filter(({ task }) => task.status?.phase === 'Succeeded').length;
    const twice = [...prompts.values()].filter((one) => one > 1).length;
    const [half, last] = [median(times), Math.max(...times)];
    rows.push(
      ...[
        ['succeeded', `${well} of ${many}`, ''],
        ['prompts sent twice', String(twice), 'goal 0'],
        ['median', `${(half / 1000).toFixed(1)} s`, `reference ${before.median / 1000}, goal ≤ ${before.median / 2000}`],
        ['last', `${(last / 1000).toFixed(1)} s`, `reference ${before.last / 1000}, goal ≤ ${before.last / 2000}`],
        ['requests of each, deletion included', (requests / many).toFixed(0), `goal < ${goals.life}`],
        ['processors of the node in use', `${(busy * 100).toFixed(0)} %`, 'of all the time until the last'],
        ['CPU of the controller', `${(then.cpu - first.cpu).toFixed(1)} s`, 'until the last'],
        ['memory of the controller', `${(then.memory / 1e6).toFixed(0)} MB`, ''],
      ].map(([what = '', found = '', note = '']) => [`${many} at once: ${what}`, found, note]),
    );
    measured.push({ many, well, twice, median: half, last, requests, busy, cpu: then.cpu - first.cpu, memory: then.memory });
  }
  console.log(`\nTasks at once\n${table(rows, '  ')}`);
  return measured;
}

/**
 * @param {import('./support/model.js').Kubectl} kubectl
 * @param {import('./support/installation.js').Installation} installation
 * @param {number} replicas of the controller
 */
async function scale(kubectl, { namespaces, deployment }, replicas) {
  const where = ['-n', namespaces.controller];
  await kubectl(['scale', 'deployment', deployment.metadata.name, ...where, `--replicas=${replicas}`]);
  await kubectl(['rollout', 'status', 'deployment', deployment.metadata.name, ...where, '--timeout=60s']);
  if (replicas > 0) return;
  const pods = ['pods', '-l', `app.kubernetes.io/name=${deployment.metadata.name}`];
  await kubectl(['wait', '--for=delete', ...pods, ...where, '--timeout=60s']);
}

/** @param {Parameters<typeof benchMany>[0]} where */
async function withSmallSandboxes(where) {
  const other = await synthesize({ gates: true, requests: small });
  try {
    await step('sandboxes that ask for little', () => install(where.kubectl, other));
    return await benchMany(where);
  } finally {
    await step('sandboxes as they were', () => install(where.kubectl, where.installation));
    other.forget();
  }
}

/** @param {Parameters<typeof benchPools>[0]} where */
async function withSomebodyWanting(where) {
  const { kubectl, installation } = where;
  await step('somebody who wants pools', async () => {
    await scale(kubectl, installation, 0);
    await createWanting(kubectl, installation.namespaces.tasks, [wanting]);
    await scale(kubectl, installation, 1);
  });
  return benchPools(where);
}

async function main() {
  const { runs, idle, only, json, build, help } = parse();
  if (help) {
    console.log(usage);
    return;
  }
  const info = requireOwnCluster();
  const kubectl = adminOf(info);
  await refuseForeignTasks(kubectl, (name) => /^bench-(?:[\d-]+|plain-\d+|wanting|(?:without|cold|warm|memory)-\w+)$/.test(name));
  if (build) await step('images', async (report) => report(await buildImages()));
  const installation = await synthesize({ gates: true });
  const { namespaces, deployment, poolClass, image } = installation;
  const username = `system:serviceaccount:${namespaces.controller}:${deployment.metadata.name}`;
  try {
    await step('install', async () => {
      await applyKinds(kubectl, installation.dist);
      await removeWanting(kubectl, namespaces.tasks, [wanting]);
      await install(kubectl, installation);
      await removeTasks(kubectl, installation);
      await startModel(kubectl, poolClass, { image, token: await ensureProxyToken(kubectl, installation) });
      await applyObjects(kubectl, [example.agent]);
    });
    const where = { kubectl, info, installation, username };
    const ofTasks = only.includes('tasks') ? await benchTasks({ ...where, runs, idle }) : {};
    const plain = only.includes('plain') ? await benchPlain({ ...where, runs }) : {};
    const many = only.includes('many') ? await withSmallSandboxes(where) : [];
    const pools = only.includes('pools') ? await withSomebodyWanting({ ...where, runs, idle }) : {};
    const repository = only.includes('repository') ? await benchRepository({ kubectl, info, runs }) : {};
    if (json !== undefined) {
      writeFileSync(json, `${JSON.stringify({ ...ofTasks, plain, many, pools, repository }, null, 2)}\n`);
      console.log(`\n${json} has all of it.`);
    }
  } finally {
    await removeWanting(kubectl, namespaces.tasks, [wanting]);
    const left = await uninstall(kubectl, installation);
    await stopModel(kubectl, poolClass);
    installation.forget();
    if (left.length > 0) console.log(`\nLeft behind, and removed by hand:\n  ${left.join('\n  ')}`);
  }
}

await runProgram(main);
