// Many Tasks at once, each with a sandbox of its own and a real agent.

import { readFileSync } from 'node:fs';

import { eventually } from './eventually.js';
import { applyObjects, example, isOver, taskLike } from './first-task.js';
import { modelRequests } from './model.js';
import { watch } from './watch.js';

/** @typedef {import('../../../src/api/index.js').Task} Task */
/** @typedef {{ readonly task: Task, readonly at: number }} Over `at`: milliseconds since the Tasks were asked for, when it was seen to be over */
/** @typedef {{ readonly over: ReadonlyMap<string, Over>, readonly prompts: ReadonlyMap<string, number>, readonly busy: number }} Many `prompts`: requests of the model for each; `busy`: share of the machine's processors that was in use, 0 to 1 */

/** @param {string} name */
const wordOf = (name) => name.toUpperCase().replaceAll('-', '_');

/**
 * @param {import('./model.js').Kubectl} kubectl
 * @param {{ readonly kubectl: string, readonly kubeconfig: string }} cluster
 * @param {import('./installation.js').Installation} installation
 * @param {readonly string[]} names
 * @param {number} seconds in which all of them must be over
 * @returns {Promise<Many>} of those that were over in time
 */
export async function runMany(kubectl, cluster, installation, names, seconds) {
  const { namespace = '' } = example.task.metadata;
  /** @type {Map<string, Over>} */
  const over = new Map();
  let since = NaN;
  const tasks = watch(cluster, `/apis/core.orka.ai/v1alpha1/namespaces/${namespace}/tasks`, ({ object, at }) => {
    const task = /** @type {Task} */ (/** @type {unknown} */ (object));
    const { name } = task.metadata;
    if (names.includes(name) && !over.has(name) && isOver(task)) over.set(name, { task, at: at - since });
  });
  try {
    const wanted = names.map((name) => taskLike(name, { prompt: `Reply exactly: ${wordOf(name)}` }));
    const before = processorTime();
    since = Date.now();
    await applyObjects(kubectl, wanted);
    const all = () => Promise.resolve(over.size === names.length ? true : undefined);
    await eventually('the end of all Tasks', all, seconds).catch(() => undefined);
    const after = processorTime();
    const asked = (await modelRequests(kubectl, installation.poolClass)).filter(({ path }) => path.startsWith('/v1/responses'));
    const prompts = new Map(names.map((name) => [name, asked.filter((one) => one.asked === wordOf(name)).length]));
    return { over, prompts, busy: 1 - (after.idle - before.idle) / (after.all - before.all) };
  } finally {
    tasks.stop();
  }
}

/** Time of all processors since boot, and what of it nobody wanted. */
function processorTime() {
  const [, ...fields] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').split(/\s+/).map(Number);
  const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, ...rest] = fields;
  const interrupts = rest.slice(0, 3).reduce((sum, one) => sum + one, 0);
  return { idle: idle + waiting, all: user + nice + system + idle + waiting + interrupts };
}
