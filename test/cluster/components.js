// The components that run as processes of the machine: their configuration, their command and how each shows its health.

import { existsSync, mkdirSync, statfsSync } from 'node:fs';

import { put } from './files.js';
import { kubeconfig, pki } from './pki.js';
import { answersOk } from './probe.js';
import { attempt } from './run.js';
import { serviceProblem } from './service-rules.js';
import { apiServiceIp, cgroup, dnsServiceIp, inWork, node, nodeIp, podRange, ports, serviceRange } from './settings.js';

/** @typedef {import('./processes.js').Command} Command */
/**
 * @typedef {Command & { healthy: () => Promise<boolean>, patience: number, listens: readonly [address: string, port: number][], prepare?: () => Promise<void> }} Component
 * `patience`: milliseconds from its start until it must be healthy; `listens`: what must be free before its start; `prepare`: called
 * before its start
 */

export const containerdSocket = inWork('containerd', 'containerd.sock');
const overlayMagic = 0x794c7630;

/** @param {string} pauseImage */
function containerdConfig(pauseImage) {
  // An overlay cannot be mounted on top of an overlay, which is what the work folder is when the machine is a container.
  const snapshotter = statfsSync(inWork()).type === overlayMagic ? 'native' : 'overlayfs';
  return `version = 2
root = "${inWork('containerd', 'root')}"
state = "${inWork('containerd', 'state')}"
[grpc]
  address = "${containerdSocket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${inWork('containerd', 'opt')}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  # Without CAP_SYS_RESOURCE a lower score than our own cannot be set, and no pod would start.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "${snapshotter}"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "${inWork('containerd', 'runc')}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${inWork('cni')}"
`;
}

export const cniNetwork = 'orka-cluster';

// With the bridge plug-in traffic between two pods of one node may pass by the firewall; ptp routes all of it.
const cniConfig = {
  cniVersion: '0.4.0',
  name: cniNetwork,
  plugins: [
    {
      type: 'ptp',
      ipMasq: false,
      ipam: {
        type: 'host-local',
        dataDir: inWork('cni-ipam'),
        ranges: [[{ subnet: podRange }]],
        routes: [{ dst: '0.0.0.0/0' }],
      },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
};

const kubeletConfig = {
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  address: nodeIp,
  port: ports.kubelet,
  healthzBindAddress: '127.0.0.1',
  healthzPort: ports.kubeletHealth,
  authentication: { anonymous: { enabled: false }, x509: { clientCAFile: pki('ca.crt') }, webhook: { enabled: true } },
  authorization: { mode: 'Webhook' },
  tlsCertFile: pki('kubelet.crt'),
  tlsPrivateKeyFile: pki('kubelet.key'),
  containerRuntimeEndpoint: `unix://${containerdSocket}`,
  clusterDNS: [dnsServiceIp],
  clusterDomain: 'cluster.local',
  cgroupDriver: 'cgroupfs',
  cgroupRoot: `/${cgroup}`,
  cgroupsPerQOS: true,
  enforceNodeAllocatable: [],
  failCgroupV1: false,
  failSwapOn: false,
  // A full disk must fail a test with its own message, not by pods that vanish.
  evictionHard: {},
  imageGCHighThresholdPercent: 100,
  imageGCLowThresholdPercent: 99,
  // Off, the node reports no ephemeral storage, and pods that ask for some are never scheduled.
  localStorageCapacityIsolation: true,
  protectKernelDefaults: false,
  makeIPTablesUtilChains: false,
  oomScoreAdj: 0,
  syncFrequency: '2s',
  volumePluginDir: inWork('volume-plugins'),
  podLogsDir: inWork('pod-logs'),
};

const kubeProxyConfig = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'nftables',
  clusterCIDR: podRange,
  hostnameOverride: node,
  bindAddress: nodeIp,
  healthzBindAddress: `127.0.0.1:${ports.kubeProxyHealth}`,
  metricsBindAddress: `127.0.0.1:${ports.kubeProxyMetrics}`,
  clientConnection: { kubeconfig: kubeconfig('kube-proxy') },
  // Zero leaves the machine's own values.
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
};

const auditPolicy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata' }],
};

export const auditLog = inWork('log', 'audit.log');
const config = (/** @type {string} */ file) => inWork('config', file);

/** Writes all configuration files. @param {{ pauseImage: string }} images */
export function writeConfiguration({ pauseImage }) {
  for (const folder of ['config', 'cni', 'log']) mkdirSync(inWork(folder), { recursive: true });
  put(config('containerd.toml'), containerdConfig(pauseImage));
  put(inWork('cni', '10-ptp.conflist'), JSON.stringify(cniConfig, null, 2));
  put(config('kubelet.json'), JSON.stringify(kubeletConfig, null, 2));
  put(config('kube-proxy.json'), JSON.stringify(kubeProxyConfig, null, 2));
  put(config('audit.json'), JSON.stringify(auditPolicy, null, 2));
}

/** @param {Readonly<Record<string, string | number | boolean>>} values */
const flags = (values) => Object.entries(values).map(([name, value]) => `--${name}=${value}`);

/** @param {string} component */
const clientFlags = (component) => ({
  kubeconfig: kubeconfig(component),
  'authentication-kubeconfig': kubeconfig(component),
  'authorization-kubeconfig': kubeconfig(component),
  'bind-address': '127.0.0.1',
  'tls-cert-file': pki(`${component}.crt`),
  'tls-private-key-file': pki(`${component}.key`),
  'leader-elect': false,
});

/** @param {(program: string) => string} program @returns {Component} */
const etcd = (program) => ({
  name: 'etcd',
  program: program('etcd'),
  args: flags({
    'data-dir': inWork('etcd'),
    // As kubeadm sets it: without it the API server has no bookmarks for kinds that do not change.
    'watch-progress-notify-interval': '5s',
    'listen-client-urls': `http://127.0.0.1:${ports.etcd}`,
    'advertise-client-urls': `http://127.0.0.1:${ports.etcd}`,
    'listen-peer-urls': `http://127.0.0.1:${ports.etcdPeer}`,
    'initial-advertise-peer-urls': `http://127.0.0.1:${ports.etcdPeer}`,
    'initial-cluster': `default=http://127.0.0.1:${ports.etcdPeer}`,
    'unsafe-no-fsync': true,
  }),
  healthy: () => answersOk(`http://127.0.0.1:${ports.etcd}/health`),
  patience: 30_000,
  listens: [
    ['127.0.0.1', ports.etcd],
    ['127.0.0.1', ports.etcdPeer],
  ],
});

/** @param {(program: string) => string} program @returns {Component} */
const apiserver = (program) => ({
  name: 'kube-apiserver',
  program: program('kube-apiserver'),
  args: flags({
    'etcd-servers': `http://127.0.0.1:${ports.etcd}`,
    'bind-address': nodeIp,
    'advertise-address': nodeIp,
    'secure-port': ports.apiserver,
    'tls-cert-file': pki('apiserver.crt'),
    'tls-private-key-file': pki('apiserver.key'),
    'client-ca-file': pki('ca.crt'),
    'service-account-key-file': pki('sa.pub'),
    'service-account-signing-key-file': pki('sa.key'),
    'service-account-issuer': 'https://kubernetes.default.svc',
    'service-cluster-ip-range': serviceRange,
    'authorization-mode': 'Node,RBAC',
    'enable-admission-plugins': 'NodeRestriction',
    'allow-privileged': true,
    'kubelet-certificate-authority': pki('ca.crt'),
    'kubelet-client-certificate': pki('kubelet-client.crt'),
    'kubelet-client-key': pki('kubelet-client.key'),
    // Otherwise exec and logs look the node's name up in DNS, where it is not.
    'kubelet-preferred-address-types': 'InternalIP',
    'audit-policy-file': config('audit.json'),
    'audit-log-path': auditLog,
    'audit-log-maxsize': 100,
    'audit-log-maxbackup': 2,
  }),
  inputs: [config('audit.json'), ...['ca.crt', 'apiserver.crt', 'sa.pub', 'kubelet-client.crt'].map(pki)],
  healthy: () => answersOk(`https://${nodeIp}:${ports.apiserver}/readyz`),
  patience: 90_000,
  listens: [[nodeIp, ports.apiserver]],
});

/** @param {(program: string) => string} program @returns {Component} */
const controllerManager = (program) => ({
  name: 'kube-controller-manager',
  program: program('kube-controller-manager'),
  args: flags({
    ...clientFlags('controller-manager'),
    'secure-port': ports.controllerManager,
    'service-account-private-key-file': pki('sa.key'),
    'root-ca-file': pki('ca.crt'),
    'use-service-account-credentials': true,
    // A range of exactly one block: the node gets the one that the CNI configuration names, even after it was deleted.
    'allocate-node-cidrs': true,
    'cluster-cidr': podRange,
    'node-cidr-mask-size': 24,
    'service-cluster-ip-range': serviceRange,
  }),
  inputs: [kubeconfig('controller-manager'), pki('sa.key')],
  healthy: () => answersOk(`https://127.0.0.1:${ports.controllerManager}/healthz`),
  patience: 60_000,
  listens: [['127.0.0.1', ports.controllerManager]],
});

/** @param {(program: string) => string} program @returns {Component} */
const scheduler = (program) => ({
  name: 'kube-scheduler',
  program: program('kube-scheduler'),
  args: flags({ ...clientFlags('scheduler'), 'secure-port': ports.scheduler }),
  inputs: [kubeconfig('scheduler')],
  healthy: () => answersOk(`https://127.0.0.1:${ports.scheduler}/healthz`),
  patience: 60_000,
  listens: [['127.0.0.1', ports.scheduler]],
});

/** @returns {Component} */
const containerd = () => ({
  name: 'containerd',
  program: '/usr/bin/containerd',
  args: ['--config', config('containerd.toml')],
  inputs: [config('containerd.toml')],
  healthy: async () => (await attempt('ctr', ['-a', containerdSocket, 'version'], { timeout: 5_000 })).status === 0,
  patience: 30_000,
  listens: [],
});

/** @param {(program: string) => string} program @returns {Component} */
const kubelet = (program) => ({
  name: 'kubelet',
  program: program('kubelet'),
  args: flags({
    config: config('kubelet.json'),
    kubeconfig: kubeconfig('kubelet'),
    'root-dir': inWork('kubelet'),
    'hostname-override': node,
    'node-ip': nodeIp,
  }),
  inputs: [config('kubelet.json'), kubeconfig('kubelet'), pki('kubelet.crt')],
  healthy: () => answersOk(`http://127.0.0.1:${ports.kubeletHealth}/healthz`),
  patience: 60_000,
  listens: [
    [nodeIp, ports.kubelet],
    ['127.0.0.1', ports.kubeletHealth],
  ],
});

/** Whether traffic to Services is sent on: kube-proxy does not notice when somebody removes its rules. */
async function servicesAreRouted() {
  const { stdout } = await attempt('nft', ['list', 'table', 'ip', 'kube-proxy']);
  return serviceProblem(stdout, apiServiceIp) === undefined;
}

/** At its start kube-proxy takes chains of endpoints that are there for complete, whatever is in them. */
async function forgetServices() {
  for (const family of ['ip', 'ip6']) await attempt('nft', ['delete', 'table', family, 'kube-proxy']);
}

/** @param {(program: string) => string} program @returns {Component} */
const kubeProxy = (program) => ({
  name: 'kube-proxy',
  program: program('kube-proxy'),
  args: flags({ config: config('kube-proxy.json') }),
  inputs: [config('kube-proxy.json'), kubeconfig('kube-proxy')],
  healthy: async () => (await answersOk(`http://127.0.0.1:${ports.kubeProxyHealth}/livez`)) && (await servicesAreRouted()),
  prepare: forgetServices,
  patience: 60_000,
  listens: [
    ['127.0.0.1', ports.kubeProxyHealth],
    ['127.0.0.1', ports.kubeProxyMetrics],
  ],
});

/** Whether traffic is sent through kube-router's chains: it puts back a missing jump only when a pod or policy changes, or minutes later. */
async function policiesAreEnforced() {
  const rules = (await attempt('iptables', ['-w', '-S'])).stdout.split('\n');
  return ['INPUT', 'FORWARD', 'OUTPUT'].every((chain) =>
    rules.some((rule) => rule.startsWith(`-A ${chain} `) && rule.endsWith(` -j KUBE-ROUTER-${chain}`)),
  );
}

/** Enforces NetworkPolicies and does nothing else of what it can do. @param {(program: string) => string} program @returns {Component} */
const kubeRouter = (program) => ({
  name: 'kube-router',
  program: program('kube-router'),
  args: flags({
    kubeconfig: kubeconfig('kube-router'),
    'hostname-override': node,
    'run-firewall': true,
    'run-router': false,
    'run-service-proxy': false,
    'run-loadbalancer': false,
    'enable-cni': false,
    'disable-source-dest-check': false,
    'service-cluster-ip-range': serviceRange,
    'metrics-port': 0,
    // It would listen on every address of the machine, and answers before it knows whether it can work.
    'health-port': 0,
  }),
  inputs: [kubeconfig('kube-router')],
  healthy: policiesAreEnforced,
  patience: 60_000,
  listens: [],
});

export const providerKubeconfig = kubeconfig('agent-sandbox-controller');

/** @param {(program: string) => string} program @returns {Component} */
const provider = (program) => ({
  name: 'agent-sandbox-controller',
  program: program('agent-sandbox-controller'),
  args: flags({
    kubeconfig: providerKubeconfig,
    extensions: true,
    'leader-elect': false,
    'metrics-bind-address': `127.0.0.1:${ports.providerMetrics}`,
    'health-probe-bind-address': `127.0.0.1:${ports.providerHealth}`,
  }),
  inputs: existsSync(providerKubeconfig) ? [providerKubeconfig] : [],
  healthy: () => answersOk(`http://127.0.0.1:${ports.providerHealth}/readyz`),
  patience: 60_000,
  listens: [
    ['127.0.0.1', ports.providerMetrics],
    ['127.0.0.1', ports.providerHealth],
  ],
});

const makers = {
  etcd,
  containerd,
  apiserver,
  controllerManager,
  scheduler,
  kubelet,
  kubeProxy,
  kubeRouter,
  provider,
};

/** @typedef {keyof typeof makers} ComponentKey */

/**
 * A component as it has to run now.
 *
 * @param {ComponentKey} key
 * @param {(program: string) => string} program path of a built program
 */
export const component = (key, program) => makers[key](program);

export const componentKeys = /** @type {readonly ComponentKey[]} */ (Object.keys(makers));
