// How the cluster is.

import { component, componentKeys } from './components.js';
import { readInfo } from './info.js';
import { client } from './kubectl.js';
import { running } from './processes.js';

/** @param {string[][]} rows */
function table(rows) {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/**
 * Prints the components and the node.
 *
 * @returns {Promise<boolean>} whether all of it is healthy
 */
export async function printStatus() {
  const info = readInfo();
  const components = await Promise.all(
    componentKeys.map(async (key) => {
      const { name, healthy } = component(key, () => '');
      const record = running(name);
      return { name, record, healthy: record !== undefined && (await healthy()) };
    }),
  );
  const rows = components.map(({ name, record, healthy }) => [
    name,
    record ? String(record.pid) : '-',
    healthy ? 'yes' : 'no',
    record?.since ?? '-',
  ]);
  console.log(table([['COMPONENT', 'PID', 'HEALTHY', 'SINCE'], ...rows]));
  if (!info) {
    console.log('\nNo cluster was brought up here (npm run cluster:up).');
    return false;
  }
  const kubectl = client(info.kubectl);
  const [ready, dns] = await Promise.all([
    kubectl.value(['node', info.node], '{.status.conditions[?(@.type=="Ready")].status}'),
    kubectl.value(['deployment', 'coredns', '-n', 'kube-system'], '{.status.availableReplicas}'),
  ]);
  const versions = Object.entries(info.versions).map(([name, version]) => `${name} ${version}`);
  console.log(`\nnode ${info.node} (${info.nodeIp}): ${ready === 'True' ? 'Ready' : `not ready (${ready || 'no answer'})`}`);
  console.log(`dns: ${dns === '1' ? 'available' : 'not available'}`);
  console.log(`versions: ${versions.join(', ')}`);
  console.log(`export KUBECONFIG=${info.kubeconfig}`);
  return components.every(({ healthy }) => healthy) && ready === 'True' && dns === '1';
}
