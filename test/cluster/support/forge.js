// A forge in a Pod of its own: repositories over HTTPS behind a read and a write token, with an authority of its own.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { issueIdentity } from './identity.js';

/** @typedef {import('../../../src/api/index.js').Manifest} Manifest */
/** @typedef {import('../forge/seed.js').SeedRepository} SeedRepository */
/** @typedef {import('../forge/server.js').Switch} Switch */
/** @typedef {import('../forge/server.js').SeenRequest} SeenRequest */
/** @typedef {import('./model.js').Kubectl} Kubectl */

const namespace = 'orka-forge';
const name = 'forge';
const podLabels = { app: name };
const repositories = '/repositories';

/** Servers of the same repositories; each has switches of its own, which only the API server reaches. */
const servers = /** @type {const} */ ({
  /** Known to the publisher under its host alone. */
  usual: { port: 443, controlPort: 9080 },
  /** Known to the publisher by host and port. */
  other: { port: 8443, controlPort: 9081 },
  /** Not known to the publisher. */
  unlisted: { port: 9443, controlPort: 9082 },
});

/** @typedef {keyof typeof servers} ServerName */

/** Where the forge is, known before it runs. */
export const forgePlace = { namespace, podLabels, host: `${name}.${namespace}.svc.cluster.local`, servers };

/**
 * @param {string} repository as in `acme/app`
 * @param {ServerName} [server]
 */
export function forgeUrl(repository, server = 'usual') {
  const { port } = servers[server];
  return `https://${forgePlace.host}${port === 443 ? '' : `:${port}`}/${repository}.git`;
}

/**
 * A running forge.
 *
 * @typedef {object} Forge
 * @property {string} ca PEM
 * @property {string} key of the server, PEM
 * @property {{ readonly read: string, readonly write: string }} tokens
 * @property {(repositories: readonly SeedRepository[]) => Promise<Readonly<Record<string, Readonly<Record<string, string>>>>>} seed
 *   writes repositories; answers the OIDs of commits by repository and ref
 * @property {(wanted: Switch, server?: ServerName) => Promise<void>} set
 * @property {(server?: ServerName) => Promise<readonly SeenRequest[]>} requests since it started, oldest first
 */

/** @param {string} policyName @param {import('../../../src/lib/json.js').JsonObject} spec @returns {Manifest} */
const policy = (policyName, spec) => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: policyName, namespace },
  spec,
});

/**
 * Only these peers reach the forge, and it reaches nothing.
 *
 * @param {readonly import('../../../src/lib/json.js').JsonObject[]} peers as in a NetworkPolicy
 * @returns {readonly Manifest[]}
 */
const forgePolicies = (peers) => [
  policy('closed', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }),
  policy('peers', {
    podSelector: { matchLabels: podLabels },
    policyTypes: ['Ingress'],
    ingress: [{ from: peers, ports: Object.values(servers).map(({ port }) => ({ port, protocol: 'TCP' })) }],
  }),
];

/** Namespace of the publisher, as it is by default. */
export const publisherNamespace = 'orka-publisher';

/**
 * What the platform file says of the publisher, and of the forge on its usual port.
 *
 * @param {Forge} forge
 * @returns {import('./installation.js').PublisherSettings}
 */
export function publisherSettings({ ca }) {
  const { host, podLabels } = forgePlace;
  return { namespace: publisherNamespace, forges: [{ host, ca, private: true, peer: { namespace, podLabels } }] };
}

/** The publisher as a peer of a NetworkPolicy. @param {string} inNamespace */
export const publisherPeer = (inNamespace) => ({
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': inNamespace } },
  podSelector: { matchLabels: { 'orka.ai/network-role': 'workspace-publisher' } },
});

/** @param {ServerName} server @param {string} image */
function container(server, image) {
  const { port, controlPort } = servers[server];
  const token = (/** @type {string} */ key) => ({ secretKeyRef: { name, key } });
  return {
    name: server,
    image,
    command: ['/usr/local/bin/node', '/forge/server.js'],
    env: [
      { name: 'FORGE_ROOT', value: repositories },
      { name: 'FORGE_TLS_CERT', value: '/tls/tls.crt' },
      { name: 'FORGE_TLS_KEY', value: '/tls/tls.key' },
      { name: 'FORGE_PORT', value: String(port) },
      { name: 'FORGE_CONTROL_PORT', value: String(controlPort) },
      { name: 'FORGE_READ_TOKEN', valueFrom: token('read') },
      { name: 'FORGE_WRITE_TOKEN', valueFrom: token('write') },
    ],
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    readinessProbe: { tcpSocket: { port }, periodSeconds: 1 },
    volumeMounts: [
      { name: 'program', mountPath: '/forge', readOnly: true },
      { name: 'tls', mountPath: '/tls', readOnly: true },
      { name: 'repositories', mountPath: repositories },
    ],
  };
}

/** @param {string} image @returns {Manifest} */
const pod = (image) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace, labels: podLabels },
  spec: {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 0,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65532,
      fsGroup: 65532,
      seccompProfile: { type: 'RuntimeDefault' },
      sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
    },
    containers: /** @type {ServerName[]} */ (Object.keys(servers)).map((server) => container(server, image)),
    volumes: [
      { name: 'program', configMap: { name } },
      {
        name: 'tls',
        secret: {
          secretName: name,
          items: ['tls.crt', 'tls.key'].map((key) => ({ key, path: key })),
        },
      },
      { name: 'repositories', emptyDir: { sizeLimit: '2Gi' } },
    ],
  },
});

/** @param {string} file */
const source = (file) => readFileSync(new URL(`../forge/${file}`, import.meta.url), 'utf8');

/**
 * The forge as objects, without its namespace.
 *
 * @param {string} image
 * @param {Readonly<Record<string, string>>} secret
 * @param {readonly import('../../../src/lib/json.js').JsonObject[]} peers
 * @returns {readonly Manifest[]}
 */
const objectsOf = (image, secret, peers) => [
  { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, type: 'Opaque', stringData: secret },
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace },
    data: {
      'server.js': source('server.js'),
      'seed.js': source('seed.js'),
      'package.json': '{"type":"module"}',
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace },
    spec: {
      selector: podLabels,
      ports: Object.entries(servers).map(([server, { port }]) => ({ name: server, port, targetPort: port, protocol: 'TCP' })),
    },
  },
  ...forgePolicies(peers),
  pod(image),
];

/**
 * Starts the forge and waits until it listens.
 *
 * @param {Kubectl} kubectl
 * @param {{ readonly image: string, readonly peers: readonly import('../../../src/lib/json.js').JsonObject[] }} options `peers`: who reaches it, as in a NetworkPolicy
 * @returns {Promise<Forge>}
 */
export async function startForge(kubectl, { image, peers }) {
  await stopForge(kubectl);
  const { ca, cert, key } = await issueIdentity([forgePlace.host, `${name}.${namespace}.svc`]);
  const tokens = { read: randomBytes(24).toString('base64url'), write: randomBytes(24).toString('base64url') };
  const items = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    ...objectsOf(image, { 'tls.crt': cert, 'tls.key': key, ...tokens }, peers),
  ];
  await kubectl(['apply', '--server-side', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  await kubectl(['wait', '--for=condition=Ready', '--timeout=90s', '-n', namespace, `pod/${name}`]);
  const proxy = (/** @type {ServerName} */ server, /** @type {string} */ what) =>
    `/api/v1/namespaces/${namespace}/pods/${name}:${servers[server].controlPort}/proxy/-/${what}`;
  return {
    ca,
    key,
    tokens,
    seed: async (wanted) => {
      const program = ['/usr/local/bin/node', '/forge/seed.js', repositories];
      const written = await kubectl(
        ['exec', '-i', '-n', namespace, name, '-c', 'usual', '--', ...program],
        JSON.stringify(wanted),
      );
      return /** @type {Awaited<ReturnType<Forge['seed']>>} */ (JSON.parse(written));
    },
    set: async (wanted, server = 'usual') => {
      await kubectl(['create', '--raw', proxy(server, 'switch'), '-f', '-'], JSON.stringify(wanted));
    },
    requests: async (server = 'usual') =>
      /** @type {SeenRequest[]} */ (JSON.parse(await kubectl(['get', '--raw', proxy(server, 'requests')]))),
  };
}

/** @param {Kubectl} kubectl */
export async function stopForge(kubectl) {
  const made = [`pod/${name}`, `service/${name}`, `configmap/${name}`, `secret/${name}`];
  await kubectl(['delete', '--ignore-not-found', '--timeout=60s', '-n', namespace, ...made]);
  await kubectl(['delete', 'networkpolicies', '--all', '-n', namespace]);
}
