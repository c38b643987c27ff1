// RuntimePools that no Task asks for: what a controller would make for a Task, made by hand, and somebody who wants it.

import { eventually } from './eventually.js';
import { applyObjects, example, taskLike } from './first-task.js';
import { watch } from './watch.js';

/** @typedef {import('../../../src/api/index.js').Manifest} Manifest */
/** @typedef {import('../../../src/api/index.js').RuntimePoolClassSpec} PoolClassSpec */
/** @typedef {import('./installation.js').Installation} Installation */
/** @typedef {import('./model.js').Kubectl} Kubectl */

// What is shipped makes them; its types are those of what it is built from.
const lib = new URL('../../../lib/', import.meta.url);
const { planTask } = /** @type {typeof import('../../../src/domain/plan.js')} */ (
  await import(new URL('domain/plan.js', lib).href)
);
const { approve } = /** @type {typeof import('../../../src/render/approve.js')} */ (
  await import(new URL('render/approve.js', lib).href)
);
const { renderRuntimePool } = /** @type {typeof import('../../../src/render/runtime-pool.js')} */ (
  await import(new URL('render/runtime-pool.js', lib).href)
);

export const wantsPool = 'orka.ai/runtime-pool';
const held = 'example.com/held';

/**
 * Makes pools as the controller of an installation would, one for each UID of a Task, which need not exist.
 *
 * @param {Installation} installation
 * @returns {(taskUid: string, change?: { readonly desiredReplicas?: number }) => Manifest}
 */
export function poolsOf({ manifests, namespaces: { tasks: namespace } }) {
  const found = manifests.find(({ kind }) => kind === 'RuntimePoolClass');
  if (!found) throw new Error('the installation has no class');
  const spec = /** @type {PoolClassSpec} */ (/** @type {unknown} */ (found['spec']));
  const poolClass = approve({ name: found.metadata.name, spec, alsoApprove: [] });
  return (uid, { desiredReplicas = 1 } = {}) => {
    const task = taskLike(uid);
    const plan = planTask({
      task: { ...task, metadata: { ...task.metadata, namespace, uid, generation: 1 } },
      agent: { ...example.agent, metadata: { ...example.agent.metadata, namespace, uid: 'agent', generation: 1 } },
      poolClass: poolClass.compiled.spec,
      defaultProvider: 'agent-sandbox',
    });
    if ('problem' in plan) throw new Error(JSON.stringify(plan.problem));
    const demandedAt = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    const pool = renderRuntimePool(plan, { poolClass, demandedAt });
    return /** @type {Manifest} */ ({
      ...pool,
      spec: { .../** @type {Record<string, import('../../../src/lib/json.js').Json>} */ (pool['spec']), desiredReplicas },
    });
  };
}

/**
 * Tasks that are being deleted and were never taken, so that nobody runs them. Each wants the pool that its label {@link wantsPool} names for
 * as long as it is there. To be made while no controller runs.
 *
 * @param {Kubectl} kubectl
 * @param {string} namespace
 * @param {readonly string[]} names
 */
export async function createWanting(kubectl, namespace, names) {
  const tasks = names.map((name) => {
    const task = taskLike(name);
    return { ...task, metadata: { ...task.metadata, namespace, finalizers: [held] } };
  });
  await applyObjects(kubectl, [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, ...tasks]);
  await kubectl(['delete', 'tasks.core.orka.ai', ...names, '-n', namespace, '--wait=false']);
}

/**
 * @param {Kubectl} kubectl
 * @param {string} namespace
 * @param {string} name
 * @param {string} pool
 */
export const letWant = (kubectl, namespace, name, pool) =>
  kubectl(['label', 'tasks.core.orka.ai', name, '-n', namespace, '--overwrite', `${wantsPool}=${pool}`]);

/** @typedef {'created' | 'Serving' | 'Stopped' | 'deletion asked' | 'gone'} Moment */

/**
 * Watches the pools of a namespace.
 *
 * @param {{ readonly kubectl: string, readonly kubeconfig: string }} cluster
 * @param {string} namespace
 */
export function watchPools(cluster, namespace) {
  /** By name. @type {Map<string, Map<Moment, number>>} */
  const seen = new Map();
  const one = watch(cluster, `/apis/core.orka.ai/v1alpha1/namespaces/${namespace}/runtimepools`, ({ type, object, at }) => {
    const { metadata, status } = /** @type {import('../../../src/api/index.js').RuntimePool} */ (/** @type {unknown} */ (object));
    const moments = seen.get(metadata.name) ?? new Map();
    seen.set(metadata.name, moments);
    const note = (/** @type {Moment} */ moment) => moments.has(moment) || moments.set(moment, at);
    note('created');
    if (status?.lifecycle === 'Serving' || status?.lifecycle === 'Stopped') note(status.lifecycle);
    if (metadata.deletionTimestamp !== undefined) note('deletion asked');
    if (type === 'DELETED') note('gone');
  });
  const at = (/** @type {string} */ name, /** @type {Moment} */ moment) => seen.get(name)?.get(moment);
  return {
    at,
    /** @param {string} name @param {Moment} moment @param {number} [seconds] @returns {Promise<number>} milliseconds since the epoch */
    until: (name, moment, seconds = 120) =>
      eventually(`RuntimePool ${name} ${moment}`, () => Promise.resolve(at(name, moment)), seconds),
    stop: one.stop,
  };
}
/**
 * @param {Kubectl} kubectl
 * @param {string} namespace
 * @param {readonly string[]} names
 */
export async function removeWanting(kubectl, namespace, names) {
  for (const name of names)
    await kubectl([
      'patch',
      'tasks.core.orka.ai',
      name,
      '-n',
      namespace,
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":null}}',
    ]).catch((/** @type {unknown} */ error) => {
      if (!String(error).includes('NotFound')) throw error;
    });
}
