// The work folder: `down` empties it, so only a folder that is known to be the cluster's is touched.

import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';

import { Failure } from './failure.js';
import { nearest } from './preflight.js';
import { defaultWork, inWork, work } from './settings.js';

/** What says that the folder is the cluster's; `down` leaves it, as it does the logs. */
export const folderMarker = '.orka-cluster';

/** Runs made folders without the marker at first: what is in those. */
const ownNames = new Set(
  (
    'admin.kubeconfig bin cluster.json cni cni-ipam config containerd etcd host.json images kubeconfig kubelet log pki pod-logs ' +
    'platform.yaml product-images run volume-plugins'
  ).split(' '),
);
const ownLog = /^(?:etcd|containerd|kube[a-z-]*|agent-sandbox-controller|audit[\w.-]*)\.log$/;

/** @param {readonly string[]} names */
function isOfAnEarlierRun(names) {
  if (work !== defaultWork) return false;
  if (names.includes('admin.kubeconfig') && names.includes('pki')) return true;
  const logs = names.includes('log') ? readdirSync(inWork('log')) : [];
  return names.every((name) => ownNames.has(name)) && logs.every((name) => ownLog.test(name));
}

/** @returns {readonly string[]} */
function entries() {
  const found = nearest(work);
  if (!statSync(found).isDirectory()) throw new Failure(`${found} is a file: ORKA_CLUSTER_DIR has to name a folder.`);
  return found === work ? readdirSync(work) : [];
}

/** Refuses a work folder that holds something and is not the cluster's. Changes nothing. */
export function requireOwnFolder() {
  const names = entries();
  if (names.length === 0 || names.includes(folderMarker) || isOfAnEarlierRun(names)) return;
  throw new Failure(
    `${work} is not empty and not a folder of the test cluster: nothing was changed. Name another with ORKA_CLUSTER_DIR.`,
  );
}

/** Makes the work folder and marks it. */
export function claimFolder() {
  requireOwnFolder();
  try {
    mkdirSync(work, { recursive: true, mode: 0o755 });
    if (!existsSync(inWork(folderMarker))) writeFileSync(inWork(folderMarker), 'A test cluster keeps its files here.\n');
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    throw new Failure(`${work} cannot be made or written (${code}).`, { cause: error });
  }
}
