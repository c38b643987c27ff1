// The product, shown to a person: node test/cluster/demo.js. Step by step, on the cluster of this machine.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';

import { Failure } from './failure.js';
import { keptText } from './kept.js';
import { seconds, step } from './progress.js';
import { eventually } from './support/eventually.js';
import { answerOf, example, exampleFile, isOver, marker, readPool, readTask, taskOver } from './support/first-task.js';
import { ensureProxyToken, install, leftovers, removeTasks, synthesize, uninstall } from './support/installation.js';
import { modelRequests, startModel, stopModel } from './support/model.js';
import { adminOf, buildImages, ownCluster, refuseForeignTasks, requireOwnCluster } from './support/own-cluster.js';
import { watch } from './support/watch.js';
import { runProgram } from './support/program.js';
import { table } from './table.js';

/** @typedef {import('./support/model.js').Kubectl} Kubectl */
/** @typedef {import('./support/installation.js').Installation} Installation */
/** @typedef {import('./support/first-task.js').Task} Task */
/** @typedef {import('./support/first-task.js').RuntimePool} RuntimePool */

const usage = `usage: node test/cluster/demo.js
  installs the controller on this machine's test cluster, runs a Task in a sandbox of its own and takes all of it away again
  [--up]        bring the cluster up first when there is none; without it, you are asked
  [--keep]      leave the controller, with both switches on, for Tasks of your own; says how to remove it
  [--no-build]  with the images that are there`;

const named = { name: example.task.metadata.name, namespace: example.task.metadata.namespace ?? '' };
const isOurs = (/** @type {string} */ name) => name === named.name;
const provider = 'system:serviceaccount:agent-sandbox-system:agent-sandbox-controller';
const plain = !process.stdout.isTTY || process.env['NO_COLOR'] !== undefined;
const bold = (/** @type {string} */ text) => (plain ? text : `\u001b[1m${text}\u001b[0m`);

/** @param {string} title */
const chapter = (title) => console.log(`\n${bold(title)}`);
const indent = '           ';
/** Something to read, below the step that it belongs to. @param {string} text */
const show = (text) => console.log(text.replace(/^(?=.)/gm, indent));

function parse() {
  try {
    return parseArgs({
      options: {
        up: { type: 'boolean' },
        keep: { type: 'boolean' },
        'no-build': { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    throw new Failure(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

/** @param {boolean} wanted without a question */
async function ensureCluster(wanted) {
  const info = ownCluster();
  if (info) return info;
  if (!wanted && !(await agreed())) return requireOwnCluster(', or npm run demo -- --up');
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'cli.js'), 'up'], { stdio: 'inherit' });
  const status = await new Promise((resolve) => child.once('close', resolve));
  if (status !== 0) throw new Failure('The cluster did not come up. Next: npm run cluster:status says what is missing.');
  return requireOwnCluster();
}

async function agreed() {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const question = 'No cluster is up. Start one now? It takes about 15 minutes the first time, seconds afterwards. [y/N] ';
    return /^y(es)?$/i.test((await terminal.question(question)).trim());
  } finally {
    terminal.close();
  }
}

/** @param {readonly (readonly [what: string, value: string | number | undefined])[]} facts */
const showFacts = (facts) => show(table(facts.map(([what, value]) => [what, String(value ?? '-')])));

/** @param {Kubectl} kubectl @param {Installation} installation */
async function refusedWithoutSwitches(kubectl, installation) {
  chapter('2. Both switches are off, as in a new platform.yaml: a Task is refused before anything exists');
  await step(`kubectl apply -f examples/${path.basename(exampleFile)}`, () => kubectl(['apply', '-f', exampleFile]));
  const task = await step('the Task is answered', () => taskOver(kubectl, named, 60));
  showFacts([
    ['phase', task.status?.phase],
    ['workspace', `${task.status?.executionWorkspace?.phase} / ${task.status?.executionWorkspace?.reason}`],
  ]);
  show(task.status?.message ?? '');
  const pools = await kubectl(['get', 'runtimepools.core.orka.ai', '-A', '--ignore-not-found', '-o', 'name']);
  const made = await leftovers(kubectl, installation);
  show(
    `pools: ${pools === '' ? 'none' : pools.trim()}; in ${installation.namespaces.runtime}: ${made.length === 0 ? 'nothing' : made.length}`,
  );
  await kubectl(['delete', 'tasks.core.orka.ai', named.name, '-n', named.namespace, '--timeout=60s']);
}

/** Prints how Task, pool and what is in the sandbox's namespace change, until the Task is over. @param {import('./info.js').ClusterInfo} info @param {Kubectl} kubectl @param {Installation} installation */
async function runExample(info, kubectl, installation) {
  const started = performance.now();
  /** @type {Map<string, string>} */
  const last = new Map();
  const tell = (/** @type {string} */ who, /** @type {string} */ state) => {
    if (state === '' || last.get(who) === state) return;
    last.set(who, state);
    show(`${`+${seconds(started)}`.padEnd(9)} ${who.padEnd(8)} ${state}`);
  };
  const said = (/** @type {readonly (string | undefined)[]} */ parts) => parts.filter(Boolean).join(' / ');
  const core = `/apis/core.orka.ai/v1alpha1/namespaces/${named.namespace}`;
  const { runtime } = installation.namespaces;
  /** @type {ReturnType<typeof sandboxRows> | undefined} */
  let rows;
  const watches = [
    watch(info, `${core}/tasks`, ({ type, object }) => {
      const { status } = /** @type {Task} */ (/** @type {unknown} */ (object));
      if (type !== 'DELETED') tell('Task', said([status?.phase, status?.execution?.state]));
    }),
    watch(info, `${core}/runtimepools`, ({ type, object }) => {
      const { metadata, status } = /** @type {RuntimePool} */ (/** @type {unknown} */ (object));
      // It hosts one Task at a time: closed while it serves means taken.
      const taken = status?.lifecycle === 'Serving' && status.admissionState === 'Closed';
      if (status?.lifecycle === 'Serving') rows ??= sandboxRows(kubectl, installation);
      const state = said([status?.lifecycle, taken ? 'taken by the Task' : status?.admissionState]);
      if (type !== 'DELETED')
        tell('pool', state === '' ? metadata.name : `${state}${last.has('pool') ? '' : ` (${metadata.name})`}`);
    }),
    watch(info, `/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/${runtime}/sandboxclaims`, ({ type, object }) => {
      if (type === 'ADDED') tell('claim', object.metadata.name);
    }),
    watch(info, `/api/v1/namespaces/${runtime}/pods`, ({ type, object }) => {
      const { phase = '' } = /** @type {{ phase?: string }} */ (object['status'] ?? {});
      if (type !== 'DELETED') tell('Pod', phase);
    }),
  ];
  try {
    await kubectl(['apply', '-f', exampleFile]);
    const task = await taskOver(kubectl, named, 240);
    if (task.status?.phase === 'Succeeded') return { task, rows: (await rows) ?? [] };
    throw new Failure(`The Task ended as ${task.status?.phase}: ${task.status?.message ?? 'no message'}`);
  } finally {
    for (const one of watches) one.stop();
  }
}

/** @param {Kubectl} kubectl @param {Installation} installation @param {Task} task */
async function showAnswer(kubectl, installation, task) {
  const answer = await answerOf(kubectl, named);
  showFacts([
    ['asked', example.task.spec.prompt],
    ['answered', answer],
    ['workspace', `${task.status?.executionWorkspace?.phase} / ${task.status?.executionWorkspace?.reason}`],
  ]);
  const requests = (await modelRequests(kubectl, installation.poolClass)).filter(({ path }) => path === '/v1/responses');
  show(
    `The model was asked ${requests.length === 1 ? 'once' : `${requests.length} times`}, ${requests.every(({ authorized }) => authorized) ? 'with' : 'WITHOUT'} the token that only its proxy and the controller know.`,
  );
  if (answer !== marker) throw new Failure(`The answer is not ${marker}.`);
}

/**
 * Prints the objects around a sandbox. They end with its Task, so this runs while the Task does.
 *
 * @param {Kubectl} kubectl
 * @param {Installation} installation
 */
async function sandboxRows(kubectl, installation) {
  const { runtime } = installation.namespaces;
  const found = await leftovers(kubectl, installation);
  return found.filter(({ metadata }) => metadata.namespace === runtime).map(({ kind, metadata }) => [kind, metadata.name]);
}

/** @param {Kubectl} kubectl @param {Installation} installation @param {readonly (readonly string[])[]} rows */
async function showSandbox(kubectl, installation, rows) {
  const { runtime } = installation.namespaces;
  show(table(rows));
  const canRead = await kubectl(['auth', 'can-i', 'get', 'secrets', '-n', runtime, `--as=${provider}`]).catch(() => 'no');
  show(`May the sandbox provider read Secrets there? ${canRead.trim()}`);
}

/** @param {Kubectl} kubectl @param {Installation} installation @param {Task} task */
async function takeAway(kubectl, installation, task) {
  const { runtime } = installation.namespaces;
  const pool = task.status?.execution?.runtimePoolName ?? '';
  await step('the sandbox has ended with its Task', () =>
    eventually(
      'an empty runtime namespace',
      async () => ((await sandboxRows(kubectl, installation)).length === 0 ? true : undefined),
      120,
    ),
  );
  show(`${runtime}: no claim, sandbox, Pod, template, warm pool, Service, policy or Secret; no RuntimePool ${pool}`);
  await step(`kubectl delete task ${named.name}`, () =>
    kubectl(['delete', 'tasks.core.orka.ai', named.name, '-n', named.namespace, '--timeout=120s']),
  );
  await step('nothing is left', () =>
    eventually('nothing', async () => ((await leftovers(kubectl, installation)).length === 0 ? true : undefined), 30),
  );
  show(`${named.namespace}: no snapshot, no result`);
}

async function main() {
  const { up = false, keep = false, help, 'no-build': noBuild = false } = parse();
  if (help) {
    console.log(usage);
    return;
  }
  chapter('1. A cluster, the images, the controller');
  const info = await ensureCluster(up);
  const kubectl = adminOf(info);
  show(`Kubernetes ${info.versions['kubernetes']}, agent-sandbox ${info.versions['agent-sandbox']}, ${info.kubeconfig}`);
  await refuseForeignTasks(kubectl, isOurs);
  if (!noBuild) await step('images', async (report) => report(await buildImages()));
  const off = await synthesize({ gates: false });
  /** @type {Installation | undefined} */
  let on;
  let kept = false;
  try {
    await step('npm run synth, kubectl apply', () => install(kubectl, off));
    await step('a model behind the provider proxy', async () => {
      await startModel(kubectl, off.poolClass, { image: off.image, token: await ensureProxyToken(kubectl, off) });
    });
    await removeTasks(kubectl, off);
    await refusedWithoutSwitches(kubectl, off);

    chapter('3. The operator sets both switches and applies again: the same Task runs in a sandbox of its own');
    const running = (on = await synthesize({ gates: true }));
    await step('gates: {agentSandbox: true, workspaceDispatch: true}', () => install(kubectl, running));
    show(`kubectl apply -f examples/${path.basename(exampleFile)}`);
    const { task, rows } = await step('the Task is over', () => runExample(info, kubectl, running));

    chapter('4. The answer');
    await showAnswer(kubectl, running, task);

    chapter('5. What there is around the sandbox');
    await showSandbox(kubectl, running, rows);

    chapter('6. The pool goes by itself, and the Task is deleted');
    await takeAway(kubectl, running, task);
    if (keep) {
      kept = true;
      console.log(
        `\n${keptText({ kubeconfig: info.kubeconfig, kubectl: info.kubectl, example: `examples/${path.basename(exampleFile)}` }, running)}`,
      );
      return;
    }
    await step('the installation is removed', async () => {
      const left = await uninstall(kubectl, off);
      await stopModel(kubectl, off.poolClass);
      if (left.length > 0) throw new Failure(`Left behind, and removed by hand: ${left.join(', ')}`);
    });
    console.log(
      '\nThe cluster stays up. Next: npm run demo -- --keep for Tasks of your own, npm run cluster:down to take it away.',
    );
  } catch (error) {
    throw new Failure(`${messageOf(error)}\n${await look(kubectl, off)}`, { cause: error });
  } finally {
    off.forget();
    if (!kept) on?.forget();
  }
}

/** @param {unknown} error */
const messageOf = (error) => (error instanceof Error ? error.message : String(error));

/** What the controller said last, and where to look. @param {Kubectl} kubectl @param {Installation} installation */
async function look(kubectl, { namespaces, deployment }) {
  const place = `deployment/${deployment.metadata.name} -n ${namespaces.controller}`;
  const log = await kubectl(['logs', ...place.split(' '), '--tail=12']).catch(messageOf);
  const task = await readTask(kubectl, named).catch(() => undefined);
  const poolName = task?.status?.execution?.runtimePoolName;
  const pool = poolName ? await readPool(kubectl, { ...named, name: poolName }).catch(() => undefined) : undefined;
  return [
    '',
    ...(task && !isOver(task)
      ? [`The Task is ${task.status?.phase ?? 'not looked at'}: ${task.status?.execution?.message ?? task.status?.message ?? ''}`]
      : []),
    ...(pool ? [`The pool is ${pool.status?.lifecycle ?? 'not looked at'}: ${pool.status?.message ?? ''}`] : []),
    'The controller said last:',
    ...log
      .trimEnd()
      .split('\n')
      .map((line) => `  | ${line.slice(0, 300)}`),
    `Next: kubectl logs ${place}, kubectl get tasks.core.orka.ai,rtpool -n ${namespaces.tasks} -o yaml. Running the demo again cleans up first.`,
  ].join('\n');
}

await runProgram(main, { what: 'the demo', tell: messageOf });
