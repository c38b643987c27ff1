// What pools cost: the time until they serve and until they are gone, requests in their lives, and requests while nothing happens to them.

import { setTimeout as sleep } from 'node:timers/promises';

import { step } from '../progress.js';
import { table } from '../table.js';
import { count, requestsOf } from './audit.js';
import { eventually } from './eventually.js';
import { metricsOf } from './metrics.js';
import { applyObjects } from './first-task.js';
import { leftovers } from './installation.js';
import { letWant, poolsOf, watchPools } from './pools.js';

/** @typedef {import('./model.js').Kubectl} Kubectl */
/** @typedef {import('./installation.js').Installation} Installation */
/** @typedef {import('./audit.js').ApiRequest} ApiRequest */

/** The Task that wants the pools; made before there is a controller. */
export const wanting = 'bench-wanting';
const stoppedPools = 50;
const servingPools = 10;

/** What the reference implementation of the contract needs on the same cluster, and what we want. Milliseconds, requests, requests a minute, MB. */
const reference = { serving: 3_800, deletion: 7_400, idle: 269, stopped: 2_069, serving10: 2_234 };
const goals = { serving: 1_700, answered: 150, deletion: 3_000, requests: 60, memory: 130 };

/** @param {readonly number[]} values */
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

/** Leases are renewed whatever there is; watches begin again now and then. @param {ApiRequest} request */
const isWork = ({ what, watch }) => !watch && !what.endsWith(' leases');

/**
 * @param {object} options
 * @param {Kubectl} options.kubectl
 * @param {import('../info.js').ClusterInfo} options.info
 * @param {Installation} options.installation
 * @param {string} options.username of the controller
 * @param {number} options.runs
 * @param {number} options.idle seconds; 0 leaves out what is measured while nothing happens
 * @returns {Promise<object>} all that was measured
 */
export async function benchPools({ kubectl, info, installation, username, runs, idle }) {
  const { namespaces } = installation;
  const poolOf = poolsOf(installation);
  const pools = watchPools(info, namespaces.tasks);
  const begun = Date.now();

  /** @param {string} uid */
  async function serve(uid) {
    const pool = poolOf(uid);
    const { name } = pool.metadata;
    await letWant(kubectl, namespaces.tasks, wanting, name);
    await applyObjects(kubectl, [pool]);
    await pools.until(name, 'Serving');
    return name;
  }
  /** @param {readonly string[]} names */
  async function remove(names) {
    await kubectl(['delete', 'runtimepools.core.orka.ai', ...names, '-n', namespaces.tasks, '--wait=false']);
    for (const name of names) await pools.until(name, 'gone', 180);
    await eventually('nothing left of the pools', async () =>
      (await leftovers(kubectl, installation)).length === 0 ? true : undefined,
    );
  }
  /** When the supervisor of a pool was ready to be asked, by its own clock, which is that of this machine. @param {string} name */
  async function answered(name) {
    const uid = await kubectl([
      'get',
      'runtimepools.core.orka.ai',
      name,
      '-n',
      namespaces.tasks,
      '-o',
      'jsonpath={.metadata.uid}',
    ]);
    const log = await kubectl(['logs', '-n', namespaces.runtime, '-l', `orka.ai/runtime-pool-uid=${uid}`, '--tail=-1']);
    const line = log.split('\n').find((one) => one.includes('"awaiting credentials"'));
    return line === undefined ? NaN : Date.parse(/** @type {{ time: string }} */ (JSON.parse(line)).time);
  }

  try {
    /** @type {{ name: string, answered: number }[]} */
    const lives = [];
    for (let run = 0; run <= runs; run++) {
      await step(run === 0 ? 'a first pool, to warm up' : `pool ${run} of ${runs}`, async (report) => {
        const name = await serve(`bench-life-${run}`);
        const life = { name, answered: await answered(name) };
        // What is written once it serves is over by then.
        await sleep(1_000);
        await remove([name]);
        report(`served after ${((pools.at(name, 'Serving') ?? NaN) - (pools.at(name, 'created') ?? NaN)).toFixed(0)} ms`);
        if (run > 0) lives.push(life);
      });
    }
    const span = (
      /** @type {string} */ name,
      /** @type {import('./pools.js').Moment} */ from,
      /** @type {import('./pools.js').Moment} */ to,
    ) => (pools.at(name, to) ?? NaN) - (pools.at(name, from) ?? NaN);

    /** @param {string} what @param {() => Promise<readonly string[]>} make */
    async function atRest(what, make) {
      const names = await step(`${what}, made`, make);
      // What follows a start is over by then.
      await sleep(5_000);
      const from = Date.now();
      await step(`${what}, left alone for ${idle} s`, () => sleep(idle * 1000));
      const to = Date.now();
      const metrics = await metricsOf(kubectl, installation);
      const memory = metrics('process_resident_memory_bytes') / 1e6;
      await step(`${what}, removed`, () => remove(names));
      return { what, from, to, memory };
    }
    const rests =
      idle === 0
        ? []
        : [
            await atRest(`${stoppedPools} stopped pools`, async () => {
              const made = Array.from({ length: stoppedPools }, (_, n) => poolOf(`bench-stopped-${n}`, { desiredReplicas: 0 }));
              await applyObjects(kubectl, made);
              for (const { metadata } of made) await pools.until(metadata.name, 'Stopped');
              return made.map(({ metadata }) => metadata.name);
            }),
            await atRest(`${servingPools} serving pools`, async () => {
              const names = [];
              for (let n = 0; n < servingPools; n++) names.push(await serve(`bench-serving-${n}`));
              return names;
            }),
          ];

    const requests = await requestsOf(info.auditLog, username, begun);
    const between = (/** @type {number} */ from, /** @type {number} */ to) => requests.filter(({ at }) => at >= from && at <= to);
    const inLife = lives.map(({ name }) =>
      count(between(pools.at(name, 'created') ?? 0, pools.at(name, 'gone') ?? 0).filter(isWork)),
    );
    const measured = {
      serving: median(lives.map(({ name }) => span(name, 'created', 'Serving'))),
      answered: median(lives.map((life) => (pools.at(life.name, 'Serving') ?? NaN) - life.answered)),
      deletion: median(lives.map(({ name }) => span(name, 'deletion asked', 'gone'))),
      requests: median(inLife.map((one) => one.requests)),
      rests: rests.map(({ what, from, to, memory }) => {
        const all = between(from, to);
        const perMinute = (/** @type {number} */ n) => (n * 60_000) / (to - from);
        const work = count(all.filter(isWork));
        return {
          what,
          perMinute: perMinute(count(all).requests),
          work: Object.fromEntries([...work.by].map(([verb, n]) => [verb, perMinute(n)])),
          watches: perMinute(all.filter(({ watch }) => watch).length),
          memory,
        };
      }),
      lives: inLife.map(({ requests: n, by }) => ({ requests: n, by: Object.fromEntries(by) })),
    };
    print(measured, runs);
    return { reference, goals, ...measured };
  } finally {
    pools.stop();
  }
}

/**
 * @param {{ serving: number, answered: number, deletion: number, requests: number, rests: readonly { what: string, perMinute: number, work: Record<string, number>, watches: number, memory: number }[], lives: readonly { by: Record<string, number> }[] }} measured
 * @param {number} runs
 */
function print({ serving, answered, deletion, requests, rests, lives }, runs) {
  const rows = [
    ['created → Serving', `${serving.toFixed(0)} ms`, `reference ${reference.serving}, goal ≤ ${goals.serving}`],
    ['supervisor can be asked → Serving', `${answered.toFixed(0)} ms`, `goal ≤ ${goals.answered}`],
    ['deletion asked → gone, idle', `${deletion.toFixed(0)} ms`, `reference ${reference.deletion}, goal ≤ ${goals.deletion}`],
    ['requests in its life, without the Lease', String(requests), `goal < ${goals.requests}`],
  ];
  console.log(`\nA pool without a Task, medians of ${runs}`);
  console.log(table([['', 'MEASURED', ''], ...rows], '  '));
  const sorts = [...new Set(lives.flatMap(({ by }) => Object.keys(by)))];
  const of = (/** @type {string} */ sort) => median(lives.map(({ by }) => by[sort] ?? 0));
  const most = sorts.map((sort) => [sort, of(sort)]).sort(([, a], [, b]) => Number(b) - Number(a));
  console.log(`\n${table([['REQUEST', 'IN A LIFE'], ...most.map(([sort, n]) => [String(sort), String(n)])], '  ')}`);
  if (rests.length === 0) return;
  const atRest = rests.map(({ what, perMinute, work, watches, memory }) => [
    what,
    perMinute.toFixed(1),
    Object.entries(work)
      .map(([sort, n]) => `${n.toFixed(1)} × ${sort}`)
      .join(', ') || 'the Lease only',
    watches.toFixed(1),
    `${memory.toFixed(0)} MB`,
  ]);
  console.log(
    `\nAt rest, each minute; reference ${reference.stopped} with 50 stopped, ${reference.serving10} with 10 serving; goal: the Lease only, < ${goals.memory} MB`,
  );
  console.log(table([['', 'REQUESTS', 'BESIDE THE LEASE', 'WATCHES BEGUN AGAIN', 'MEMORY'], ...atRest], '  '));
}
