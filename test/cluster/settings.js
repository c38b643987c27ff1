// Names, addresses and ports of the test cluster. A machine holds one such cluster: the addresses are fixed.

import { homedir } from 'node:os';
import path from 'node:path';

export const root = import.meta.dirname;

export const defaultWork = '/var/lib/orka-cluster';

/** Everything a run writes: state, sockets, logs, kubeconfigs. Short, because socket paths end at 107 bytes. */
export const work = path.resolve(process.env['ORKA_CLUSTER_DIR'] || defaultWork);

/** Built binaries, shared by all checkouts of this machine. */
export const cache = path.resolve(
  process.env['ORKA_CLUSTER_CACHE'] ??
    path.join(process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache'), 'orka-workspaces', 'cluster'),
);

/** The file a test gives to its client; the only account with cluster-admin rights. */
export const adminKubeconfig = path.join(work, 'admin.kubeconfig');

/** Set in the environment of each process we start and inherited by containerd's shims: what proves that a process is ours. */
export const markerName = 'ORKA_CLUSTER_PROCESS_OF';
export const marker = `${markerName}=${work}`;

/** Cgroup below which kubelet puts all pods, so that a container's process is known as ours by its cgroup. */
export const cgroup = 'orka-cluster';

export const node = 'node1';
export const bridge = 'orka0';
/** Node and API server address. Of the range reserved for benchmarks between networks, so that nobody's LAN uses it. */
export const nodeIp = '198.18.0.1';
export const serviceRange = '10.96.0.0/16';
export const apiServiceIp = '10.96.0.1';
export const dnsServiceIp = '10.96.0.10';
export const podRange = '10.244.0.0/24';

export const ports = /** @type {const} */ ({
  etcd: 12379,
  etcdPeer: 12380,
  apiserver: 6443,
  controllerManager: 10257,
  scheduler: 10259,
  kubelet: 10250,
  kubeletHealth: 10248,
  kubeProxyHealth: 10256,
  kubeProxyMetrics: 10249,
  providerMetrics: 18080,
  providerHealth: 18081,
});

/** @param {...string} parts */
export const inWork = (...parts) => path.join(work, ...parts);

/** @param {string} component */
export const logFile = (component) => inWork('log', `${component}.log`);
