// Pools that come and go for a while: node test/cluster/churn.js. Says what is left of them, in the cluster and in the controller.

import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { Failure } from './failure.js';
import { step } from './progress.js';
import { count, requestsOf } from './support/audit.js';
import { eventually } from './support/eventually.js';
import { metricsOf, socketsOf } from './support/metrics.js';
import { applyObjects } from './support/first-task.js';
import { applyKinds, ensureProxyToken, install, leftovers, synthesize, uninstall } from './support/installation.js';
import { adminOf, buildImages, refuseForeignTasks, requireOwnCluster } from './support/own-cluster.js';
import { createWanting, letWant, poolsOf, removeWanting, watchPools } from './support/pools.js';
import { runProgram } from './support/program.js';
import { table } from './table.js';

const usage = `usage: node test/cluster/churn.js
  creates and deletes pools, and compares objects, sockets and memory before and after; ends with 1 when something is left or goes in circles
  [--pools <number>]    how many; 200
  [--minutes <number>]  over how long at least; 10
  [--at-once <number>]  how many live at the same time; 5
  [--no-build]          with the images that are there`;

/** More is a loop: one life takes about half of it. Requests without watches and the Lease. */
const mostRequests = 100;
/** Sockets and MB that may come and go by themselves. */
const slack = { sockets: 3, memory: 40 };
/** Every how manieth pool is deleted while it starts. */
const early = 4;

function parse() {
  try {
    const { values } = parseArgs({
      options: {
        pools: { type: 'string', default: '200' },
        minutes: { type: 'string', default: '10' },
        'at-once': { type: 'string', default: '5' },
        'no-build': { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h' },
      },
    });
    const [pools, minutes, atOnce] = [Number(values.pools), Number(values.minutes), Number(values['at-once'])];
    if (![pools, atOnce].every((one) => Number.isInteger(one) && one > 0) || !(minutes >= 0))
      throw new Error('--pools and --at-once take whole numbers above zero, --minutes a number.');
    return { pools, minutes, atOnce, build: !values['no-build'], help: values.help };
  } catch (error) {
    throw new Failure(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

/** @param {import('./support/model.js').Kubectl} kubectl @param {import('./support/installation.js').Installation} installation */
async function figures(kubectl, installation) {
  const metrics = await metricsOf(kubectl, installation);
  return {
    memory: metrics('process_resident_memory_bytes') / 1e6,
    heap: metrics('nodejs_heap_size_used_bytes') / 1e6,
    handles: metrics('nodejs_active_resources_total'),
    sockets: await socketsOf(kubectl, installation),
    conflicts: metrics('rest_client_requests_total', 'code="409"'),
    failures: metrics('controller_runtime_reconcile_errors_total'),
    restarts: metrics('process_start_time_seconds'),
  };
}

async function main() {
  const { pools: many, minutes, atOnce, build, help } = parse();
  if (help) {
    console.log(usage);
    return;
  }
  const info = requireOwnCluster();
  const kubectl = adminOf(info);
  await refuseForeignTasks(kubectl, (name) => name.startsWith('churn-'));
  if (build) await step('images', async (report) => report(await buildImages()));
  const installation = await synthesize({ gates: true });
  const { namespaces, deployment } = installation;
  const wanting = Array.from({ length: atOnce }, (_, n) => `churn-wanting-${n}`);
  const pools = watchPools(info, namespaces.tasks);
  const poolOf = poolsOf(installation);
  const nothingLeft = () =>
    eventually(
      'nothing left of the pools',
      async () => ((await leftovers(kubectl, installation)).length === 0 ? true : undefined),
      30,
    );

  /** @param {number} n @param {string} whom of those who want pools */
  async function life(n, whom) {
    const pool = poolOf(`churn-${n}`);
    const { name } = pool.metadata;
    await letWant(kubectl, namespaces.tasks, whom, name);
    await applyObjects(kubectl, [pool]);
    if (n % early === 0) await sleep(Math.random() * 2_000);
    else await pools.until(name, 'Serving');
    await kubectl(['delete', 'runtimepools.core.orka.ai', name, '-n', namespaces.tasks, '--wait=false']);
    await pools.until(name, 'gone');
  }
  /** @param {number} from @param {number} to @param {number} pause milliseconds from the begin of one to that of the next, for each of those who want pools */
  async function lives(from, to, pause) {
    let next = from;
    await Promise.all(
      wanting.map(async (whom) => {
        for (let n = next++; n < to; n = next++) {
          const begun = Date.now();
          await life(n, whom);
          await sleep(Math.max(0, begun + pause - Date.now()));
        }
      }),
    );
    await nothingLeft();
  }

  try {
    await step('install', async () => {
      await applyKinds(kubectl, installation.dist);
      await removeWanting(kubectl, namespaces.tasks, wanting);
      await createWanting(kubectl, namespaces.tasks, wanting);
      await install(kubectl, installation);
      await ensureProxyToken(kubectl, installation);
    });
    await step(`${atOnce * 2} pools, to warm up`, () => lives(many, many + atOnce * 2, 0));
    await sleep(6_000);
    const before = await figures(kubectl, installation);
    const begun = Date.now();
    await step(`${many} pools over ${minutes} min`, async (report) => {
      await lives(0, many, (minutes * 60_000 * atOnce) / many);
      report(`${((Date.now() - begun) / 60_000).toFixed(1)} min`);
    });
    const ended = Date.now();
    // Connections that are idle are closed by then.
    await sleep(6_000);
    const after = await figures(kubectl, installation);
    const username = `system:serviceaccount:${namespaces.controller}:${deployment.metadata.name}`;
    const all = (await requestsOf(info.auditLog, username, begun)).filter(({ at }) => at <= ended);
    const work = count(all.filter(({ what, watch }) => !watch && !what.endsWith(' leases')));
    const perLife = work.requests / many;
    const rows = /** @type {const} */ (['memory', 'heap', 'handles', 'sockets', 'conflicts', 'failures']).map((what) => [
      what,
      before[what].toFixed(0),
      after[what].toFixed(0),
    ]);
    console.log(`\n${table([['', 'BEFORE', 'AFTER'], ...rows], '  ')}`);
    const sorts = [...work.by].map(([what, n]) => [what, (n / many).toFixed(1)]);
    console.log(
      `\n${table([['REQUEST', 'IN A LIFE'], ['all, without watches and the Lease', perLife.toFixed(1)], ...sorts], '  ')}`,
    );
    const wrong = [
      ...(after.restarts === before.restarts ? [] : ['the controller was started again meanwhile']),
      ...(perLife <= mostRequests ? [] : [`${perLife.toFixed(0)} requests in a life: something goes in circles`]),
      ...(after.sockets - before.sockets <= slack.sockets ? [] : [`sockets are left: ${before.sockets} → ${after.sockets}`]),
      ...(after.memory - before.memory <= slack.memory
        ? []
        : [`memory is left: ${before.memory.toFixed(0)} → ${after.memory.toFixed(0)} MB`]),
    ];
    if (wrong.length > 0) throw new Failure(wrong.join('\n'));
    console.log('\nNothing is left of the pools, and the controller holds what it held before.');
  } finally {
    pools.stop();
    await removeWanting(kubectl, namespaces.tasks, wanting);
    const left = await uninstall(kubectl, installation);
    installation.forget();
    if (left.length > 0) console.log(`\nLeft behind, and removed by hand:\n  ${left.join('\n  ')}`);
  }
}

await runProgram(main);
