// How the cluster is.

import { component, componentKeys } from './components.js';
import { networkProblems } from './host.js';
import { readInfo, readProductImages } from './info.js';
import { client } from './kubectl.js';
import { findOurs, running } from './processes.js';
import { node } from './settings.js';
import { table } from './table.js';

/**
 * @typedef {object} Status
 * @property {{ name: string, pid: number | null, since: string | null, healthy: boolean }[]} components
 * @property {string[]} network what is wrong with the node's network
 * @property {string} ready the node's condition; empty without an answer
 * @property {boolean} dns
 * @property {boolean} healthy all of it
 */

/** @returns {Promise<Status>} */
async function look() {
  const info = readInfo();
  const kubectl = info && client(info.kubectl);
  const [components, network, ready = '', replicas] = await Promise.all([
    Promise.all(
      componentKeys.map(async (key) => {
        const { name, healthy } = component(key, () => '');
        const record = running(name);
        const isHealthy = record !== undefined && (await healthy());
        return { name, pid: record?.pid ?? null, since: record?.since ?? null, healthy: isHealthy };
      }),
    ),
    networkProblems(),
    kubectl?.value(['node', node], '{.status.conditions[?(@.type=="Ready")].status}'),
    kubectl?.value(['deployment', 'coredns', '-n', 'kube-system'], '{.status.availableReplicas}'),
  ]);
  const dns = replicas === '1';
  const healthy = components.every((one) => one.healthy) && network.length === 0 && ready === 'True' && dns;
  return { components, network, ready, dns, healthy };
}

/**
 * Prints the components and the node.
 *
 * @returns {Promise<boolean>} whether all of it is healthy
 */
export async function printStatus() {
  const info = readInfo();
  const { components, network, ready, dns, healthy } = await look();
  const rows = components.map((one) => [one.name, String(one.pid ?? '-'), one.healthy ? 'yes' : 'no', one.since ?? '-']);
  console.log(table([['COMPONENT', 'PID', 'HEALTHY', 'SINCE'], ...rows]));
  if (!info) {
    console.log(
      findOurs().length > 0
        ? '\nThe cluster is partly up (interrupted?): run npm run cluster:up again, or cluster:down.'
        : '\nNo cluster was brought up here (npm run cluster:up).',
    );
    return false;
  }
  const versions = Object.entries(info.versions).map(([name, version]) => `${name} ${version}`);
  console.log(`\nnode ${info.node} (${info.nodeIp}): ${ready === 'True' ? 'Ready' : `not ready (${ready || 'no answer'})`}`);
  console.log(`network: ${network.length === 0 ? 'yes' : `no: ${network.join('; ')}`}`);
  console.log(`dns: ${dns ? 'available' : 'not available'}`);
  console.log(`versions: ${versions.join(', ')}`);
  console.log(`export KUBECONFIG=${info.kubeconfig}`);
  return healthy;
}

/**
 * Prints what a test needs to know, with the product's images when they are built, and how the cluster is.
 *
 * @returns {Promise<boolean>} whether all of it is healthy
 */
export async function printJson() {
  const info = readInfo();
  const { components, network, healthy } = await look();
  const about = info && { ...info, images: { ...info.images, ...readProductImages() } };
  console.log(JSON.stringify({ ...about, components, network, healthy }, null, 2));
  return healthy;
}
