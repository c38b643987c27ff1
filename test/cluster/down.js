// The end of a cluster: nothing of it stays on the machine but the logs.

import { existsSync, readdirSync, rmSync } from 'node:fs';

import { containerdSocket } from './components.js';
import { Failure, describe } from './failure.js';
import { ourRules, removeRules } from './firewall.js';
import { folderMarker } from './folder.js';
import * as host from './host.js';
import { end, findOurs, running } from './processes.js';
import { step } from './progress.js';
import { attempt } from './run.js';
import { inWork, work } from './settings.js';

/** Whoever would start again what is ended after it. */
const starters = [
  'kubelet',
  'agent-sandbox-controller',
  'kube-controller-manager',
  'kube-scheduler',
  'kube-router',
  'kube-proxy',
];

/** Containers end through containerd when it can be asked: it knows their shims and takes down their mounts. */
async function endContainers() {
  const ctr = (/** @type {readonly string[]} */ args) =>
    attempt('ctr', ['-a', containerdSocket, '-n', 'k8s.io', ...args], { timeout: 20_000 });
  if (!running('containerd')) return;
  const tasks = (await ctr(['tasks', 'ls', '-q'])).stdout.split('\n').filter(Boolean);
  if (tasks.length > 0) await ctr(['tasks', 'rm', '--force', ...tasks]);
}

async function endProcesses() {
  await end(
    starters.flatMap((name) => running(name) ?? []),
    3_000,
  );
  await endContainers();
  // Whoever forked while we looked is found in the next round.
  for (let round = 0; round < 5; round++) {
    const left = findOurs();
    if (left.length === 0) return;
    await end(left, round === 0 ? 3_000 : 0);
  }
  const left = findOurs();
  if (left.length > 0) throw new Failure(`Processes that do not end: ${left.map(({ pid }) => pid).join(', ')}`);
}

function removeFiles() {
  if (!existsSync(work)) return;
  // Below a mount may be somebody's files.
  const mounts = host.ourMounts();
  if (mounts.length > 0) throw new Failure(`Still mounted, so ${work} is kept:\n  ${mounts.join('\n  ')}`);
  for (const name of readdirSync(work).filter((entry) => entry !== 'log' && entry !== folderMarker))
    rmSync(inWork(name), { recursive: true, force: true });
}

/**
 * Takes down whatever there is of a cluster, whole or in pieces. Goes on after a part that fails, and fails in the end.
 *
 * @param {string} title
 */
export async function takeDown(title) {
  await step(title, async (report) => {
    /** @type {string[]} */
    const problems = [];
    const parts = /** @type {[string, () => unknown][]} */ ([
      ['processes', endProcesses],
      ['mounts', host.unmountAll],
      ['links', host.removeLinks],
      ['cgroups', host.removeCgroups],
      ['firewall rules', removeRules],
      ['kernel settings', host.restoreSysctls],
      ['stray files', host.removeStrayFiles],
      ['files', removeFiles],
    ]);
    for (const [name, part] of parts) {
      report(name);
      try {
        await part();
      } catch (error) {
        problems.push(`${name}: ${describe(error)}`);
      }
    }
    report('');
    if (problems.length > 0) throw new Failure(problems.join('\n'));
  });
}

/** @returns {Promise<string[]>} one line for each thing of a cluster that is on the machine */
export async function whatIsLeft() {
  return [
    ...findOurs().map(({ pid }) => `process ${pid}`),
    ...host.ourMounts().map((point) => `mount ${point}`),
    ...(await host.ourLinks()).map((name) => `link ${name}`),
    ...host.cgroupFolders().flatMap((folder) => (existsSync(folder) ? [`cgroup ${folder}`] : [])),
    ...(await ourRules()),
  ];
}
