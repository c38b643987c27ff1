// What the cluster changes on the machine besides processes, and how that is taken back.

import { existsSync, mkdirSync, readFileSync, readdirSync, readlinkSync, rmSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { cniNetwork } from './components.js';
import { put } from './files.js';
import { bootId } from './processes.js';
import { attempt, run } from './run.js';
import { bridge, cgroup, inWork, nodeIp, podRange, serviceRange, work } from './settings.js';

/** Kernel settings that we or one of our components set. */
export const sysctls = [
  'net/ipv4/ip_forward',
  // Follows forwarding, but not back to a value of its own; so it is restored after it.
  'net/ipv4/conf/all/accept_redirects',
  'net/ipv4/conf/all/route_localnet',
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'kernel/keys/root_maxkeys',
  'kernel/keys/root_maxbytes',
];

const cgroupMount = '/sys/fs/cgroup';
const unified = existsSync(path.join(cgroupMount, 'cgroup.controllers'));

/** @param {string} name */
export function readSysctl(name) {
  try {
    return readFileSync(path.join('/proc/sys', name), 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** @param {string} name @param {string} value */
const writeSysctl = (name, value) => writeFileSync(path.join('/proc/sys', name), value);

const before = inWork('host.json');

/** @typedef {{ boot: string, sysctls: Record<string, string>, tables: string[], chains: string[] }} HostState */

/** @returns {HostState | undefined} the machine as it was before the cluster came */
export function stateBefore() {
  try {
    return /** @type {HostState} */ (JSON.parse(readFileSync(before, 'utf8')));
  } catch {
    return undefined;
  }
}

/** @returns {string[]} the cluster's cgroup in each hierarchy */
export function cgroupFolders() {
  const parents = unified ? [cgroupMount] : readdirSync(cgroupMount).map((name) => path.join(cgroupMount, name));
  return parents.map((parent) => path.join(parent, cgroup));
}

/**
 * The nft tables (`<family> <table>`) and chains (`<family> <table> <chain>`) of the machine; `idle` are the chains that have no
 * rule and let everything pass.
 *
 * @returns {Promise<{ tables: string[], chains: string[], idle: string[] }>}
 */
export async function firewallState() {
  const { stdout } = await attempt('nft', ['-j', 'list', 'ruleset']);
  /** @typedef {{ family: string, table: string, name: string, chain: string, policy?: string }} Entry */
  const { nftables = [] } = /** @type {{ nftables?: Record<string, Entry>[] }} */ (JSON.parse(stdout || '{}'));
  const all = (/** @type {string} */ kind) => nftables.flatMap((entry) => entry[kind] ?? []);
  const chainName = (/** @type {Entry} */ { family, table, name }) => `${family} ${table} ${name}`;
  const used = new Set(all('rule').map(({ family, table, chain }) => `${family} ${table} ${chain}`));
  return {
    tables: all('table').map(({ family, name }) => `${family} ${name}`),
    chains: all('chain').map(chainName),
    idle: all('chain').flatMap((chain) => (chain.policy === 'accept' && !used.has(chainName(chain)) ? [chainName(chain)] : [])),
  };
}

export const guardTable = 'ip orka-cluster';

// Nothing that runs in a pod reaches the network of the machine, whatever a test forgets to forbid.
const podsStayHere = `table ${guardTable}
delete table ${guardTable}
table ${guardTable} {
  chain forward {
    type filter hook forward priority -10; policy accept;
    ip saddr ${podRange} oifname "veth*" accept
    ip saddr ${podRange} oifname "${bridge}" accept
    ip saddr ${podRange} reject with icmp type admin-prohibited
  }
}
`;

/** Notes how the machine is, once, and gives it the bridge, the cgroup and the forwarding that the node needs. */
export async function prepareHost() {
  if (!stateBefore()) {
    const values = sysctls.flatMap((name) => {
      const value = readSysctl(name);
      return value === undefined ? [] : [[name, value]];
    });
    const { tables, chains } = await firewallState();
    const state = { boot: bootId, sysctls: Object.fromEntries(values), tables, chains };
    put(before, JSON.stringify(state, null, 2));
  }
  const link = await attempt('ip', ['link', 'show', bridge]);
  if (link.status !== 0) await run('ip', ['link', 'add', bridge, 'type', 'bridge']);
  await run('ip', ['address', 'replace', `${nodeIp}/32`, 'dev', bridge]);
  await run('ip', ['link', 'set', bridge, 'up']);
  // Service addresses stay on this machine, also when it has no default route.
  await run('ip', ['route', 'replace', serviceRange, 'dev', bridge, 'src', nodeIp]);
  await run('nft', ['-f', '-'], { input: podsStayHere });
  if (unified) {
    for (const controller of ['cpuset', 'cpu', 'memory', 'hugetlb', 'pids', 'io']) {
      try {
        writeFileSync(path.join(cgroupMount, 'cgroup.subtree_control'), `+${controller}`);
      } catch {
        // Not in this kernel, or not delegated: kubelet says which one it misses.
      }
    }
  }
  for (const folder of cgroupFolders()) {
    try {
      mkdirSync(folder, { recursive: true });
    } catch {
      // A hierarchy without controllers that is mounted read-only; kubelet does not look there.
    }
  }
  writeSysctl('net/ipv4/ip_forward', '1');
}

/** @returns {Promise<string[]>} what of the node's network is not as `prepareHost` made it */
export async function networkProblems() {
  const guard = (await attempt('nft', ['list', 'table', ...guardTable.split(' ')])).stdout;
  const addresses = (await attempt('ip', ['-o', '-4', 'address', 'show', 'dev', bridge])).stdout;
  const routes = (await attempt('ip', ['-4', 'route', 'show', serviceRange])).stdout;
  return [
    ...(guard.includes('reject') ? [] : [`nft table ${guardTable}, which keeps pods from the machine's networks, is missing`]),
    ...(readSysctl('net/ipv4/ip_forward') === '1' ? [] : ['net.ipv4.ip_forward is not 1']),
    ...(addresses.includes(` ${nodeIp}/`) ? [] : [`link ${bridge} has no address ${nodeIp}`]),
    ...(routes.includes(bridge) ? [] : [`${serviceRange} has no route to ${bridge}`]),
  ];
}

/** @returns {string[]} mount points of the cluster, deepest first */
export function ourMounts() {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => (line.split(' ')[4] ?? '').replaceAll('\\040', ' '))
    .filter((point) => point.startsWith(`${work}/`))
    .reverse();
}

/** Unmounts all that is mounted below the work folder. */
export async function unmountAll() {
  // Mounts may lie on top of each other, so look again until none is left.
  for (let round = 0; round < 10; round++) {
    const points = ourMounts();
    if (points.length === 0) return;
    for (let at = 0; at < points.length; at += 50) {
      const some = points.slice(at, at + 50);
      await attempt('umount', round < 5 ? some : ['--lazy', ...some]);
    }
    if (round > 0) await sleep(200);
  }
}

/** @param {string} folder */
function removeCgroup(folder) {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeCgroup(path.join(folder, entry.name));
  }
  rmdirSync(folder);
}

/** Removes the cgroups; their processes must be gone. A dying process may hold one for a moment. */
export async function removeCgroups() {
  for (const folder of cgroupFolders()) {
    for (let round = 1; ; round++) {
      try {
        removeCgroup(folder);
        break;
      } catch (error) {
        if (round === 300) throw error;
        await sleep(100);
      }
    }
  }
}

const podNetwork = podRange.replace(/\d+\/\d+$/, '');

/** Links of the cluster: its bridge, and the host's ends of pods, which have an address of the pod network. @returns {Promise<string[]>} */
export async function ourLinks() {
  const { stdout } = await attempt('ip', ['-o', 'link', 'show']);
  const names = stdout.split('\n').map((line) => /^\d+: ([^:@]+)/.exec(line)?.[1] ?? '');
  const addresses = (await attempt('ip', ['-o', '-4', 'address', 'show'])).stdout;
  const onPodNetwork = new Set(
    addresses.split('\n').flatMap((line) => (line.includes(` inet ${podNetwork}`) ? [line.split(/\s+/)[1] ?? ''] : [])),
  );
  return names.filter((name) => name === bridge || (name.startsWith('veth') && onPodNetwork.has(name)));
}

/** A pod's link goes with its network namespace, a moment after the last process; what stays is removed here. */
export async function removeLinks() {
  for (let round = 0; round < 20 && (await ourLinks()).some((name) => name !== bridge); round++) await sleep(100);
  for (const name of await ourLinks()) await attempt('ip', ['link', 'delete', name]);
}

export function restoreSysctls() {
  const state = stateBefore();
  if (state?.boot !== bootId) return;
  for (const [name, value] of Object.entries(state.sysctls)) if (readSysctl(name) !== value) writeSysctl(name, value);
}

/**
 * Removes entries of a folder, when they are ours.
 *
 * @param {string} folder
 * @param {(file: string) => boolean} ours
 */
function removeOurs(folder, ours) {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) if (ours(path.join(folder, name))) rmSync(path.join(folder, name), { force: true });
}

/** Removes folders that hold nothing, in the given order. @param {readonly string[]} folders */
function removeEmpty(folders) {
  for (const folder of folders) {
    try {
      rmdirSync(folder);
    } catch {
      // Somebody uses it, or it never was.
    }
  }
}

/** @param {string} file */
function linksToUs(file) {
  try {
    return readlinkSync(file).startsWith(`${work}/`);
  } catch {
    return false;
  }
}

/** @param {string} folder */
const namesIn = (folder) => (existsSync(folder) ? readdirSync(folder) : []);

/** Files at places that the components do not let us choose. Called while the work folder still says which are ours. */
export function removeStrayFiles() {
  removeOurs('/var/log/containers', linksToUs);
  const pods = namesIn(inWork('containerd', 'root', 'io.containerd.grpc.v1.cri', 'sandboxes'));
  removeOurs('/var/lib/cni/results', (file) => file.includes(`/${cniNetwork}-`) || pods.some((id) => file.includes(id)));
  // Shims that were killed leave their sockets; one that no process has bound is nobody's.
  const bound = readFileSync('/proc/net/unix', 'utf8');
  removeOurs('/run/containerd/s', (file) => !bound.includes(file));
  const plugins = '/var/lib/kubelet/device-plugins';
  // A cluster that is not ours would use the same ports, so this socket is the one of our kubelet.
  if (stateBefore()) removeOurs(plugins, (file) => /^kubelet(?:\.sock|_internal_checkpoint)$/.test(path.basename(file)));
  removeEmpty(['/var/log/containers', '/var/lib/cni/results', '/var/lib/cni', plugins, '/var/lib/kubelet', '/run/containerd/s']);
  removeEmpty(['/run/containerd']);
}
