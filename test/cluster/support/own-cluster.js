// The cluster of this machine, for programs that a person starts.

import path from 'node:path';

import { Failure } from '../failure.js';
import { readInfo, readProductImages } from '../info.js';
import { client } from '../kubectl.js';
import { otherCluster, requireRoot } from '../preflight.js';
import { running } from '../processes.js';
import { run } from '../run.js';

/** @typedef {import('../info.js').ClusterInfo} ClusterInfo */
/** @typedef {import('./model.js').Kubectl} Kubectl */

const repository = path.resolve(import.meta.dirname, '../../..');

/** @returns {ClusterInfo | undefined} undefined when it is not up */
export function ownCluster() {
  const other = otherCluster();
  if (other) {
    throw new Failure(
      `KUBECONFIG names another cluster (${other}): what this does is for the cluster of this machine alone. Unset KUBECONFIG and run it again.`,
    );
  }
  requireRoot();
  return running('kube-apiserver') && running('kubelet') ? readInfo() : undefined;
}

/** @param {string} next another way to get one @returns {ClusterInfo} */
export function requireOwnCluster(next = '') {
  const info = ownCluster();
  if (info) return info;
  throw new Failure(
    `No cluster is up on this machine. Next: npm run cluster:up (about 15 minutes the first time, seconds afterwards)${next}.`,
  );
}

/** @param {ClusterInfo} info @returns {Kubectl} */
export const adminOf = (info) => client(info.kubectl).call;

/**
 * For programs that remove all Tasks in the end: refuses to begin beside somebody's.
 *
 * @param {Kubectl} kubectl
 * @param {(name: string) => boolean} isOurs may be left of an earlier run
 */
export async function refuseForeignTasks(kubectl, isOurs) {
  if ((await kubectl(['get', 'crd', 'tasks.core.orka.ai', '--ignore-not-found', '-o', 'name'])) === '') return;
  const names = '{range .items[*]}{.metadata.namespace}/{.metadata.name} {end}';
  const all = await kubectl(['get', 'tasks.core.orka.ai', '-A', '-o', `jsonpath=${names}`]);
  const others = all.split(' ').filter((name) => name !== '' && !isOurs(name.split('/')[1] ?? ''));
  if (others.length === 0) return;
  throw new Failure(
    `There are other Tasks, and this would remove them in the end: ${others.join(', ')}. Next: kubectl delete tasks.core.orka.ai --all -n ${others[0]?.split('/')[0] ?? ''}, and run this again.`,
  );
}

/** Builds what the cluster runs of this checkout, and loads it. @returns {Promise<string>} what there is now */
export async function buildImages() {
  // The lines that npm adds are of no use to whoever waits.
  await run('npm', ['run', '--silent', 'images'], { cwd: repository }).catch((/** @type {unknown} */ error) => {
    throw new Failure(`The images cannot be built. Next: npm run images shows why.\n${String(error)}`, { cause: error });
  });
  return Object.keys(readProductImages()).join(', ');
}
