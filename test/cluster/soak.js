// Tasks for a while, under faults that a seed decides: node test/cluster/soak.js. Says how they ended, and what is left.

import { linkSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { readlinkSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { component } from './components.js';
import { Failure } from './failure.js';
import { differences, snapshot } from './leftovers.js';
import { end, running } from './processes.js';
import { step } from './progress.js';
import { inWork, work } from './settings.js';
import { socketsOf } from './support/metrics.js';
import { eventually } from './support/eventually.js';
import { applyObjects, example, isOver, taskLike } from './support/first-task.js';
import { applyKinds, ensureProxyToken, install, leftovers, removeTasks, synthesize, uninstall } from './support/installation.js';
import { credentialsIn, credentialsOf } from './support/leaks.js';
import { modelRequests, startModel, stopModel } from './support/model.js';
import { adminOf, buildImages, refuseForeignTasks, requireOwnCluster } from './support/own-cluster.js';
import { killIn } from './support/sandbox-processes.js';
import { planSoak } from './support/soak-plan.js';
import { watch } from './support/watch.js';
import { runProgram } from './support/program.js';
import { table } from './table.js';
import { ensure } from './up.js';

/** @typedef {import('../../src/api/index.js').Manifest} Manifest */
/** @typedef {import('../../src/api/index.js').Task} Task */
/** @typedef {import('./support/model.js').Kubectl} Kubectl */
/** @typedef {import('./support/installation.js').Installation} Installation */

const usage = `usage: node test/cluster/soak.js
  runs Tasks under random faults, and compares what there is before and after; ends with 1 when something is left, leaks or ran twice
  [--minutes <number>]  how long Tasks and faults go on; 15
  [--seed <number>]     decides which faults and Tasks there are, and when; another one each time by default
  [--no-build]          with the images that are there`;

/** Seconds for the last Tasks to end, and for what is left to go. */
const patience = 180;
/** Tasks that live at the same time; more wait for their turn. */
const atOnce = 6;
/** Sockets of a controller when nothing happens: its watches, and 32 connections that its transport keeps. */
const mostSockets = 50;
/** What of the machine a soak may not change. */
const compared = ['processes of the cluster', 'mounts', 'network namespaces', 'links'];
const small = { cpu: '10m', memory: '32Mi' };
const leaseName = 'orka-workspaces-controller';

function parse() {
  try {
    const { values } = parseArgs({
      options: {
        minutes: { type: 'string', default: '15' },
        seed: { type: 'string', default: String(Math.floor(Math.random() * 1e6)) },
        'no-build': { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h' },
      },
    });
    const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
    if (!(minutes > 0) || !Number.isInteger(seed) || seed < 0)
      throw new Error('--minutes takes a number above zero, --seed a whole one.');
    return { minutes, seed, build: !values['no-build'], help: values.help };
  } catch (error) {
    throw new Failure(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

/** What there is of a kind, as it was seen last, and all that there ever was. @param {import('./info.js').ClusterInfo} info @param {string} collection */
function follow(info, collection) {
  /** By UID. @type {Map<string, { readonly object: Manifest, readonly gone: boolean }>} */
  const seen = new Map();
  const { stop } = watch(info, collection, ({ type, object }) =>
    seen.set(object.metadata.uid ?? '', { object, gone: type === 'DELETED' }),
  );
  return {
    all: () => [...seen.values()],
    /** A list after a lost watch says nothing of what went meanwhile. @param {readonly string[]} uids that are there */
    only: (uids) => {
      for (const [uid, { object }] of seen) if (!uids.includes(uid)) seen.set(uid, { object, gone: true });
    },
    live: () => [...seen.values()].filter(({ gone }) => !gone).map(({ object }) => object),
    stop,
  };
}

/**
 * Logs of containers and components, and the credentials that must not be in them. Files of Pods are kept by a second name: they would go with
 * their Pods.
 *
 * @param {Kubectl} kubectl
 * @param {Installation} installation
 */
function keepLogs(kubectl, installation) {
  const folder = mkdtempSync(path.join(work, 'soak-logs-'));
  /** Bytes of each component's log before. */
  const before = new Map(componentLogs().map((file) => [file, statSync(file).size]));
  /** @type {Map<string, string>} */
  const credentials = new Map();
  const pods = inWork('pod-logs');
  async function look() {
    for (const pod of readdirSync(pods).filter((name) => !name.startsWith('kube-system_')))
      for (const file of readdirSync(path.join(pods, pod), { recursive: true, encoding: 'utf8' }).filter((name) =>
        name.endsWith('.log'),
      ))
        try {
          linkSync(path.join(pods, pod, file), path.join(folder, `${pod}-${file.replaceAll('/', '-')}`));
        } catch {
          // It is known, or has just gone.
        }
    const found = await credentialsOf(kubectl, installation).catch(() => []);
    for (const [key, value] of found) credentials.set(`${key} ${value.slice(0, 4)}…`, value);
  }
  let over = false;
  const looking = (async () => {
    for (; !over; await sleep(1_000)) await look().catch(() => undefined);
  })();
  return {
    /** @returns {Promise<{ readonly credentials: number, readonly files: number, readonly leaks: readonly string[] }>} */
    judge: async () => {
      over = true;
      await looking;
      await look();
      const ofPods = readdirSync(folder).map((name) => [name, readFileSync(path.join(folder, name), 'utf8')]);
      const ofComponents = componentLogs().map((file) => [
        path.basename(file),
        readFileSync(file)
          .subarray(before.get(file) ?? 0)
          .toString('utf8'),
      ]);
      const all = [...ofPods, ...ofComponents];
      const leaks = all.flatMap(([name = '', text = '']) => credentialsIn(text, credentials).map((key) => `${key} in ${name}`));
      return { credentials: credentials.size, files: all.length, leaks };
    },
    forget: () => {
      over = true;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const componentLogs = () =>
  readdirSync(inWork('log'))
    .filter((name) => name.endsWith('.log'))
    .map((name) => inWork('log', name));

/**
 * @typedef {object} Soaked
 * @property {Kubectl} kubectl
 * @property {Installation} installation
 * @property {ReturnType<typeof follow>} tasks
 * @property {ReturnType<typeof follow>} pools
 * @property {ReturnType<typeof follow>} pods of sandboxes
 */

/** @template T @param {readonly T[]} among @param {number} target @returns {T | undefined} */
const pick = (among, target) => among[Math.floor(target * among.length)];

/**
 * What each fault does. `undefined` = there was nothing that it could happen to.
 *
 * @param {Soaked} soaked
 * @returns {Readonly<Record<import('./support/soak-plan.js').FaultName, (target: number) => Promise<string | undefined>>>}
 */
function faultsOn({ kubectl, installation, tasks, pools, pods }) {
  const { namespaces, deployment, manifests } = installation;
  const remove = async (/** @type {string} */ kind, /** @type {Manifest | undefined} */ object) => {
    if (!object) return undefined;
    const { name, namespace = '' } = object.metadata;
    await kubectl(['delete', kind, name, '-n', namespace, '--ignore-not-found', '--wait=false']);
    return name;
  };
  const kill = (/** @type {'agent' | 'supervisor'} */ who, /** @type {number} */ target) => {
    const pod = pick(pods.live(), target);
    return Promise.resolve(pod && killIn(pod.metadata.uid ?? '', who) > 0 ? pod.metadata.name : undefined);
  };
  const going = (/** @type {Manifest} */ { metadata }) => metadata.deletionTimestamp !== undefined;
  return {
    'controller killed': async () => {
      const selected = ['pods', '-n', namespaces.controller, '-l', `app.kubernetes.io/name=${deployment.metadata.name}`];
      await kubectl(['delete', ...selected, '--grace-period=0', '--force', '--wait=false']);
      return deployment.metadata.name;
    },
    'Pod deleted': (target) => remove('pods', pick(pods.live(), target)),
    'agent killed': (target) => kill('agent', target),
    'supervisor killed': (target) => kill('supervisor', target),
    'Task deleted': (target) => {
      const active = tasks.live().filter((task) => !going(task) && !isOver(asTask(task)));
      return remove('tasks.core.orka.ai', pick(active, target));
    },
    'pool deleted': (target) =>
      remove(
        'runtimepools.core.orka.ai',
        pick(
          pools.live().filter((pool) => !going(pool)),
          target,
        ),
      ),
    'class drifted': async () => {
      const poolClass = manifests.find(({ kind }) => kind === 'RuntimePoolClass');
      if (!poolClass) return undefined;
      const { name, namespace = '' } = poolClass.metadata;
      const approve = (/** @type {readonly string[]} */ approvedDigests) =>
        kubectl([
          ...['patch', 'runtimepoolclasses.core.orka.ai', name, '-n', namespace, '--type=merge'],
          ...['-p', JSON.stringify({ spec: { approvedDigests } })],
        ]);
      await approve([`sha256:${'0'.repeat(64)}`]);
      await sleep(3_000);
      await approve(/** @type {{ approvedDigests: readonly string[] }} */ (poolClass['spec']).approvedDigests);
      return name;
    },
    'API server restarted': async () => {
      const program = (/** @type {string} */ name) => readlinkSync(inWork('bin', name));
      const record = running(component('apiserver', program).name);
      if (record) await end([record], 0);
      await ensure('apiserver', program);
      return 'apiserver';
    },
    'Lease taken': async () => {
      const spec = { holderIdentity: 'somebody-else', renewTime: new Date().toISOString().replace('Z', '000Z') };
      const named = ['lease', leaseName, '-n', namespaces.controller];
      await kubectl(['patch', ...named, '--type=merge', '-p', JSON.stringify({ spec })]);
      return leaseName;
    },
  };
}

/** @param {Manifest} object */
const asTask = (object) => /** @type {Task} */ (/** @type {unknown} */ (object));

/** @param {Manifest} object */
function endingOf(object) {
  const { phase, execution, delivery } = asTask(object).status ?? {};
  const told = delivery?.state === 'DeliveryConflict' ? [delivery.state, delivery.reason] : [execution?.state, execution?.reason];
  return [phase ?? 'Pending', ...told].filter((one, index, all) => one !== undefined && all.indexOf(one) === index).join(' ');
}

/** Waits for what may be in the way for a moment. @template T @param {() => Promise<T>} call @returns {Promise<T>} */
async function patiently(call) {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (tries >= 20) throw error;
      await sleep(500);
    }
  }
}

/** @param {readonly string[]} of */
function counted(of) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const one of of) counts.set(one, (counts.get(one) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a).map(([what, times]) => [what, String(times)]);
}

/**
 * @param {Soaked} soaked
 * @param {ReturnType<typeof planSoak>} plan
 * @param {number} time milliseconds after which no other Task is made
 * @param {(state: string) => void} report
 */
async function run(soaked, plan, time, report) {
  const { kubectl, tasks } = soaked;
  const begun = Date.now();
  const until = (/** @type {number} */ at) => sleep(Math.max(0, begun + at - Date.now()));
  const perform = faultsOn(soaked);
  /** @type {string[]} */
  const happened = [];
  let made = 0;
  async function makeTasks() {
    for (const { at, name, order, timeout } of plan.tasks) {
      await until(at);
      const active = () => tasks.live().filter((task) => !isOver(asTask(task))).length;
      await eventually('room for a Task', () => Promise.resolve(active() < atOnce ? true : undefined), patience);
      // On a slow machine not all of them find room in time.
      if (Date.now() > begun + time) return;
      const prompt = `${order} Reply exactly: ${wordOf(name)}`.trim();
      await patiently(() => applyObjects(kubectl, [taskLike(name, { prompt, timeout })]));
      report(`${++made} Tasks, ${happened.length} faults`);
    }
  }
  async function makeFaults() {
    for (const { at, fault, target } of plan.faults) {
      await until(at);
      const whom = await patiently(() => perform[fault](target));
      console.log(
        `${((Date.now() - begun) / 1000).toFixed(1).padStart(7)} s  ${fault}${whom === undefined ? ': nothing there' : ` ${whom}`}`,
      );
      if (whom !== undefined) happened.push(fault);
    }
  }
  await Promise.all([makeTasks(), makeFaults()]);
  return happened;
}

/** @param {string} name */
const wordOf = (name) => name.toUpperCase().replaceAll('-', '_');

/** @param {Kubectl} kubectl @param {string} resource @param {string} namespace @returns {Promise<readonly Manifest[]>} */
const listed = async (kubectl, resource, namespace) =>
  /** @type {{ items: readonly Manifest[] }} */ (JSON.parse(await kubectl(['get', resource, '-n', namespace, '-o', 'json'])))
    .items;

/**
 * Waits until every Task is over or gone. @returns those that are not
 *
 * @param {Soaked} soaked
 */
async function unended({ kubectl, installation, tasks }) {
  const active = async () => {
    const all = await listed(kubectl, 'tasks.core.orka.ai', installation.namespaces.tasks);
    tasks.only(all.map(({ metadata }) => metadata.uid ?? ''));
    return all.filter((task) => task.metadata.deletionTimestamp !== undefined || !isOver(asTask(task)));
  };
  const none = async () => ((await active()).length === 0 ? true : undefined);
  await eventually('the end of all Tasks', none, patience).catch(() => undefined);
  return (await active()).map(
    (task) => `${task.metadata.name} is ${endingOf(task)}${task.metadata.deletionTimestamp ? ', and being deleted' : ''}`,
  );
}

/** Deletes Tasks and pools. @param {Soaked} soaked @returns {Promise<readonly string[]>} what does not go */
async function undeleted({ kubectl, installation }) {
  const kinds = ['tasks.core.orka.ai', 'runtimepools.core.orka.ai'];
  const { tasks: namespace } = installation.namespaces;
  for (const kind of kinds) await kubectl(['delete', kind, '--all', '-n', namespace, '--wait=false']);
  const left = async () => [
    ...(await Promise.all(kinds.map((kind) => listed(kubectl, kind, namespace)))).flat(),
    ...(await leftovers(kubectl, installation)),
  ];
  const none = async () => ((await left()).length === 0 ? true : undefined);
  await eventually('nothing left', none, patience).catch(() => undefined);
  return (await left()).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
}

/**
 * @param {Soaked} soaked
 * @param {ReturnType<typeof planSoak>} plan
 * @returns {Promise<readonly string[]>} words that the model was asked for twice, without an agent that had to ask again
 */
async function askedTwice({ kubectl, installation }, { tasks }) {
  const asked = (await modelRequests(kubectl, installation.poolClass)).filter(({ path: at }) => at.startsWith('/v1/responses'));
  const times = (/** @type {string} */ name) => asked.filter((one) => one.asked === wordOf(name)).length;
  return tasks
    .filter(({ name, asksAgain }) => !asksAgain && times(name) > 1)
    .map(({ name }) => `${name}: ${times(name)} prompts`);
}

async function main() {
  const { minutes, seed, build, help } = parse();
  if (help) {
    console.log(usage);
    return;
  }
  const info = requireOwnCluster();
  const kubectl = adminOf(info);
  await refuseForeignTasks(kubectl, (name) => name.startsWith('soak-'));
  if (build) await step('images', async (report) => report(await buildImages()));
  const installation = await synthesize({ gates: true, idlePoolTtl: '10s', requests: small });
  const { namespaces, poolClass, image } = installation;
  const plan = planSoak(seed, minutes);
  const before = await snapshot();
  console.log(`seed ${seed}: ${plan.tasks.length} Tasks and ${plan.faults.length} faults in ${minutes} min`);
  const logs = keepLogs(kubectl, installation);
  const ours = '/apis/core.orka.ai/v1alpha1/namespaces';
  /** @type {Soaked | undefined} */
  let soaked;
  /** @type {string[]} */
  const wrong = [];
  try {
    await step('install', async () => {
      await applyKinds(kubectl, installation.dist);
      await install(kubectl, installation);
      await removeTasks(kubectl, installation);
      await startModel(kubectl, poolClass, { image, token: await ensureProxyToken(kubectl, installation) });
      await applyObjects(kubectl, [example.agent]);
    });
    soaked = {
      kubectl,
      installation,
      tasks: follow(info, `${ours}/${namespaces.tasks}/tasks`),
      pools: follow(info, `${ours}/${namespaces.tasks}/runtimepools`),
      pods: follow(info, `/api/v1/namespaces/${namespaces.runtime}/pods`),
    };
    const here = soaked;
    const happened = await step(`${minutes} min of Tasks and faults`, (report) => run(here, plan, minutes * 60_000, report));
    wrong.push(...(await step('the end of all Tasks', () => unended(here))));
    const ends = here.tasks.all().map(({ object, gone }) => (gone ? `deleted, ${endingOf(object)}` : endingOf(object)));
    wrong.push(...(await askedTwice(here, plan)));
    wrong.push(...(await step('deletion', () => undeleted(here))).map((one) => `left: ${one}`));
    const sockets = await eventually(
      'a quiet controller',
      async () => {
        const found = await socketsOf(kubectl, installation);
        return found <= mostSockets ? found : undefined;
      },
      20,
    ).catch(() => NaN);
    if (Number.isNaN(sockets)) wrong.push(`the controller holds more than ${mostSockets} sockets`);
    const judged = await step('logs', () => logs.judge());
    wrong.push(...judged.leaks.map((one) => `a credential: ${one}`));
    console.log(`\n${table([['FAULT', 'TIMES'], ...counted(happened)], '  ')}`);
    console.log(`\n${table([['TASKS ENDED AS', 'TIMES'], ...counted(ends)], '  ')}`);
    console.log(
      `\n${judged.credentials} credentials were looked for in ${judged.files} logs; the controller holds ${sockets} sockets.`,
    );
  } finally {
    for (const one of [soaked?.tasks, soaked?.pools, soaked?.pods]) one?.stop();
    logs.forget();
    await step('removal', async () => {
      wrong.push(...(await uninstall(kubectl, installation)).map((one) => `left behind: ${one}`));
      await stopModel(kubectl, poolClass);
    });
    installation.forget();
  }
  const changed = async () => {
    const lines = differences(before, await snapshot());
    return lines.filter((line) => compared.some((subject) => line.startsWith(`+ ${subject}: `)));
  };
  await eventually('the machine as it was', async () => ((await changed()).length === 0 ? true : undefined), 30).catch(
    () => undefined,
  );
  wrong.push(...(await changed()));
  if (wrong.length > 0)
    throw new Failure(`${wrong.join('\n')}\n\nThe same again: npm run soak -- --minutes ${minutes} --seed ${seed}`);
  console.log(`\nseed ${seed}: every Task ended, no prompt ran twice, and nothing is left.`);
}

await runProgram(main);
