// What is checked before anything is changed.

import { existsSync, readFileSync, readdirSync, readlinkSync, statSync, statfsSync } from 'node:fs';
import path from 'node:path';

import { Failure } from './failure.js';
import { commandLine, otherWorkFolder, pids } from './processes.js';
import { run } from './run.js';
import { adminKubeconfig, cache, podRange, serviceRange, work } from './settings.js';

/** @returns {string | undefined} KUBECONFIG, when it names something else than this cluster */
export function otherCluster() {
  const value = process.env['KUBECONFIG'];
  return value && path.resolve(value) !== adminKubeconfig ? value : undefined;
}

/** @param {string} kubeconfig as of KUBECONFIG: one file, or several with colons between */
export function requireKubeconfig(kubeconfig) {
  if (kubeconfig.split(path.delimiter).some((file) => existsSync(file))) return;
  throw new Failure(`KUBECONFIG names ${kubeconfig}, which does not exist. Unset it for the cluster of this machine.`);
}

export function requireRoot() {
  if (process.platform !== 'linux') throw new Failure(`The test cluster runs on Linux only; this is ${process.platform}.`);
  if (process.getuid?.() !== 0) {
    throw new Failure('The test cluster needs root: it mounts, makes network namespaces and firewall rules. Run it with sudo.');
  }
}

/** Addresses, rules and cgroup are the machine's: a second cluster would get, or take down, those of the first. */
export function requireOnlyCluster() {
  const other = otherWorkFolder();
  if (other)
    throw new Failure(
      `A cluster with its files in ${other} runs on this machine. Set ORKA_CLUSTER_DIR=${other} to work with it.`,
    );
}

/** @param {string} folder @returns {string} the folder, or the nearest above it that exists */
export function nearest(folder) {
  let at = folder;
  while (!existsSync(at)) at = path.dirname(at);
  return at;
}

/**
 * @param {{ command: string }} go
 * @param {number} buildMegabytes what building will take; 0 when everything is in the cache
 * @param {number} runMegabytes what the work folder will take
 */
export async function requireSpace(go, buildMegabytes, runMegabytes) {
  /** @type {[string, number][]} */
  const needs = [[work, runMegabytes]];
  if (buildMegabytes > 0) {
    const [goCache = '', goModules = ''] = (await run(go.command, ['env', 'GOCACHE', 'GOMODCACHE'])).trim().split('\n');
    needs.push([goCache, buildMegabytes * 0.69], [goModules, buildMegabytes * 0.23], [cache, buildMegabytes * 0.08]);
  }
  /** @type {Map<number, { folders: string[], needed: number, free: number }>} */
  const devices = new Map();
  for (const [folder, megabytes] of needs) {
    const at = nearest(folder);
    const { bavail, bsize } = statfsSync(at);
    const device = devices.get(statSync(at).dev) ?? { folders: [], needed: 0, free: (bavail * bsize) / 1e6 };
    devices.set(statSync(at).dev, { ...device, folders: [...device.folders, folder], needed: device.needed + megabytes });
  }
  for (const { folders, needed, free } of devices.values()) {
    if (free >= needed) continue;
    const gigabytes = (/** @type {number} */ value) => `${(value / 1000).toFixed(1)} GB`;
    throw new Failure(
      `Not enough disk space: ${gigabytes(needed)} are needed for ${folders.join(', ')}, ${gigabytes(free)} are free. ` +
        'Nothing was changed. ORKA_CLUSTER_DIR and ORKA_CLUSTER_CACHE name other places.',
    );
  }
}

/**
 * Listening TCP sockets of the machine.
 *
 * @returns {{ address: string, port: number, inode: string }[]} IPv4 addresses dotted; any IPv6 address as `::`
 */
function listeners() {
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
    (existsSync(file) ? readFileSync(file, 'utf8') : '')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === '0A')
      .map((fields) => {
        const [address = '', port = ''] = (fields[1] ?? '').split(':');
        const bytes = [6, 4, 2, 0].map((at) => parseInt(address.slice(at, at + 2), 16));
        return { address: address.length === 8 ? bytes.join('.') : '::', port: parseInt(port, 16), inode: fields[9] ?? '' };
      }),
  );
}

/** @param {string} inode @returns {number | undefined} */
function ownerOf(inode) {
  return pids().find((pid) => {
    try {
      const folder = `/proc/${pid}/fd`;
      return readdirSync(folder).some((fd) => readlinkSync(path.join(folder, fd)) === `socket:[${inode}]`);
    } catch {
      return false;
    }
  });
}

/**
 * @param {readonly { name: string, listens: readonly [address: string, port: number][] }[]} components those about to be started
 * @param {(pid: number) => boolean} [mayHold] processes that will be ended before
 * @returns {string[]} one line for each port that is taken
 */
export function portProblems(components, mayHold = () => false) {
  const taken = listeners();
  const overlap = (/** @type {string} */ a, /** @type {string} */ b) =>
    a === b || [a, b].some((one) => one === '0.0.0.0' || one === '::');
  return components.flatMap(({ name, listens }) =>
    listens.flatMap(([address, port]) => {
      const other = taken.find((socket) => socket.port === port && overlap(socket.address, address));
      if (!other) return [];
      const pid = ownerOf(other.inode);
      if (pid !== undefined && mayHold(pid)) return [];
      const owner =
        pid === undefined ? 'a process that cannot be seen from here' : `process ${pid}: ${commandLine(pid).slice(0, 100)}`;
      return [`  ${name} needs ${address}:${port}, which is used by ${owner}`];
    }),
  );
}

/** @param {Parameters<typeof portProblems>} asked */
export function requireFreePorts(...asked) {
  const problems = portProblems(...asked);
  if (problems.length > 0)
    throw new Failure(['Ports are in use:', ...problems, 'Stop what uses them and run this again.'].join('\n'));
}

/** @param {string} text as in `10.0.0.0/8` or `10.0.0.1` */
function range(text) {
  const [address = '', length = '32'] = text.split('/');
  const start = address.split('.').reduce((value, byte) => value * 256 + Number(byte), 0);
  return { first: start, last: start + 2 ** (32 - Number(length)) - 1 };
}

/**
 * Refuses a machine whose own networks overlap those of the cluster.
 *
 * @param {(device: string) => boolean} ours
 */
export async function requireFreeNetworks(ours) {
  const routes = (await run('ip', ['-4', 'route', 'show'])).split('\n');
  for (const line of routes) {
    const [target = '', device = ''] = /^(\d[\d./]*) .*dev (\S+)/.exec(line)?.slice(1) ?? [];
    if (!target || ours(device)) continue;
    const theirs = range(target);
    for (const wanted of [podRange, serviceRange]) {
      const { first, last } = range(wanted);
      if (theirs.first <= last && first <= theirs.last) {
        throw new Failure(`The cluster's network ${wanted} overlaps ${target}, which this machine reaches by ${device}.`);
      }
    }
  }
}
