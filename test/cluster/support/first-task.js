// The Task of the deploy guide, as a user applies and reads it.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';

import { eventually } from './eventually.js';

/** @typedef {import('../../../src/api/index.js').Agent} Agent */
/** @typedef {import('../../../src/api/index.js').RuntimePool} RuntimePool */
/** @typedef {import('../../../src/api/index.js').Task} Task */
/** @typedef {import('./model.js').Kubectl} Kubectl */
/** @typedef {{ readonly name: string, readonly namespace?: string | undefined }} Named */

export const exampleFile = path.resolve(import.meta.dirname, '../../../examples/smoke.yaml');

/** What the example's prompt asks for. */
export const marker = 'ORKA_LIVE_SANDBOX_OK';

const documents = parseAllDocuments(readFileSync(exampleFile, 'utf8')).map(
  (document) => /** @type {{ kind: string }} */ (document.toJS()),
);

/** The Agent and the Task of the example. */
export const example = {
  agent: /** @type {Agent} */ (/** @type {unknown} */ (documents.find(({ kind }) => kind === 'Agent'))),
  task: /** @type {Task} */ (/** @type {unknown} */ (documents.find(({ kind }) => kind === 'Task'))),
};

/**
 * A Task like that of the example.
 *
 * @param {string} name
 * @param {Partial<Task['spec']>} [spec]
 * @returns {Task}
 */
export const taskLike = (name, spec = {}) => ({
  ...example.task,
  metadata: { ...example.task.metadata, name },
  spec: { ...example.task.spec, ...spec },
});

/**
 * The same without a workspace of its own.
 *
 * @param {string} name
 * @param {Partial<Task['spec']>} [spec]
 * @returns {Task}
 */
export function plainTaskLike(name, spec = {}) {
  const { execution: _none, ...rest } = taskLike(name, spec).spec;
  return { ...taskLike(name), spec: /** @type {Task['spec']} */ (rest) };
}

/** @param {Kubectl} kubectl @param {readonly object[]} items */
export const applyObjects = (kubectl, items) =>
  kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));

/**
 * @param {Kubectl} kubectl
 * @param {string} resource as in `task`
 * @param {Named} named
 * @returns {Promise<unknown>} undefined when there is none
 */
export async function read(kubectl, resource, { name, namespace = '' }) {
  const found = await kubectl(['get', resource, name, '-n', namespace, '--ignore-not-found', '-o', 'json']);
  return found === '' ? undefined : /** @type {unknown} */ (JSON.parse(found));
}

/** @param {Kubectl} kubectl @param {Named} named */
export const readTask = async (kubectl, named) =>
  /** @type {Task | undefined} */ (await read(kubectl, 'tasks.core.orka.ai', named));

/** @param {Kubectl} kubectl @param {Named} named */
export const readPool = async (kubectl, named) =>
  /** @type {RuntimePool | undefined} */ (await read(kubectl, 'runtimepools.core.orka.ai', named));

/** @param {Task | undefined} task */
export const isOver = (task) => ['Succeeded', 'Failed', 'Cancelled'].includes(task?.status?.phase ?? '');

/**
 * The Task once it is over.
 *
 * @param {Kubectl} kubectl
 * @param {Named} named
 * @param {number} seconds
 * @returns {Promise<Task>}
 */
export const taskOver = (kubectl, named, seconds) =>
  eventually(
    `the end of Task ${named.name}`,
    async () => {
      const task = await readTask(kubectl, named);
      return task && isOver(task) ? task : undefined;
    },
    seconds,
  );

/**
 * Name of the pool of a Task, which is known before there is the pool.
 *
 * @param {Kubectl} kubectl
 * @param {Named} named the Task
 * @returns {Promise<string>}
 */
export const poolNameOf = (kubectl, named) =>
  eventually(
    `a pool for Task ${named.name}`,
    async () => (await readTask(kubectl, named))?.metadata.labels?.['orka.ai/runtime-pool'],
  );

/**
 * The pool of a Task once it serves.
 *
 * @param {Kubectl} kubectl
 * @param {Named} named the Task
 * @param {number} seconds
 * @returns {Promise<RuntimePool>}
 */
export const poolServing = (kubectl, named, seconds) =>
  eventually(
    `a serving pool for Task ${named.name}`,
    async () => {
      const task = await readTask(kubectl, named);
      const name = task?.status?.execution?.runtimePoolName;
      if (isOver(task) && name === undefined) throw new Error(`Task ${named.name} is over: ${task?.status?.message ?? ''}`);
      const pool = name === undefined ? undefined : await readPool(kubectl, { name, namespace: named.namespace });
      return pool?.status?.lifecycle === 'Serving' ? pool : undefined;
    },
    seconds,
  );

/**
 * The answer of a Task, as its user reads it.
 *
 * @param {Kubectl} kubectl
 * @param {Named} named
 */
export const answerOf = (kubectl, { name, namespace = '' }) =>
  kubectl(['get', 'configmap', `${name}-result`, '-n', namespace, '-o', 'jsonpath={.data.result}']);
