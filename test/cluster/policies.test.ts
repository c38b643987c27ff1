import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { App, Chart } from 'cdk8s';
import { ControllerInstall } from '../../src/constructs/install/controller-install.js';
import { refOf } from '../../src/kube/client.js';
import { manifestsOf } from '../../src/render/app.js';
import { applyAll, cleanUp, cluster, eventually, execIn, namespace, platform, readyPod } from './support/cluster.js';
import { outsideListener } from './support/outside.js';
import type { Outside } from './support/outside.js';
import { proxyService as serviceOf, role } from './support/model.js';
import { removePool, renderPool, startPool } from './support/pool.js';

const publisherNamespace = 'orka-publisher';
const [operationPort, artifactPort, forgePort] = [8443, 8080, 8443];
const artifacts = {
  namespace: publisherNamespace,
  podLabels: role('workspace-publisher'),
  url: `http://orka-publisher.${publisherNamespace}.svc:${artifactPort}`,
  port: artifactPort,
};
const pool = renderPool('task-policy-test', (spec) => ({ ...spec, network: { ...spec.network, artifacts } }));
const sandbox = { ...refOf(pool.claim!), apiVersion: 'v1', kind: 'Pod' };
const { node } = cluster;
const poolClass = platform.classes[0]!.spec;
const proxyNamespace = poolClass.providerProxy.namespace;
const other = 'orka-test-other';

/** A Pod that listens on ports, and from which connections can be tried. */
function peer(name: string, inNamespace: string, labels: Readonly<Record<string, string>>, ports: readonly number[]): Manifest {
  const listen = ports.map((port) => `httpd -f -p ${port} -h /tmp &`).join(' ');
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: inNamespace, labels: { app: name, ...labels } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'peer',
          image: node?.images['test']?.ref ?? 'busybox:stable',
          command: ['sh', '-c', `${listen} sleep 3600`],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          readinessProbe: { tcpSocket: { port: ports[0] ?? 0 }, periodSeconds: 1 },
        },
      ],
    },
  };
}

const proxy = peer('proxy', proxyNamespace, role('provider-auth-proxy'), [1337, 1338]);
const probePort = 8081;
const controllerLabels = { ...role('controller'), 'app.kubernetes.io/name': 'orka-workspaces-controller' };
const controller = peer('controller-stand-in', platform.namespaces.controller, controllerLabels, [
  platform.controller.apiPort,
  9090,
  probePort,
]);
const bystander = peer('bystander', platform.namespaces.controller, {}, [8080]);
const impostor = peer('impostor', other, role('controller'), [1337, 8080]);
const publisher = peer('publisher', publisherNamespace, role('workspace-publisher'), [artifactPort, operationPort, probePort]);
const publisherNeighbour = peer('neighbour', publisherNamespace, {}, [artifactPort]);
const forge = peer('forge-stand-in', 'orka-forge', {}, [forgePort]);
const peers = [proxy, controller, bystander, impostor, publisher, publisherNeighbour, forge];
const proxyService = serviceOf(poolClass, 'proxy');

/** The ingress policy of the controller, under another name, with the namespace of the provider proxy as the one that may scrape. */
function controllerIngress(): Manifest {
  const chart = new Chart(new App({ outdir: '/dev/null', recordConstructMetadata: false }), 'install');
  const { controller, namespaces, classes } = platform;
  const metrics = { podMonitor: false, scrapeFrom: [proxyNamespace] };
  new ControllerInstall(chart, 'controller', { ...controller, namespaces, metrics, classes: classes.map(({ spec }) => spec) });
  const policy = manifestsOf(chart).find(({ kind }) => kind === 'NetworkPolicy');
  if (!policy) throw new Error('the installation has no NetworkPolicy');
  return { ...policy, metadata: { ...policy.metadata, name: 'policy-test-controller-ingress' } };
}
const ingressPolicy = controllerIngress();

type Outcome = 'open' | 'closed';
const addresses = new Map<Manifest, string>();
let sandboxAddress = '';
let metadata: Outside | undefined;

/** Tries a connection from the sandbox; `closed` = refused, or no answer within these seconds. */
async function fromSandbox(host: string, port: number, seconds: number): Promise<Outcome> {
  const script = `const s=require('node:net').connect(${port},'${host}');const end=(t)=>{console.log(t);process.exit()};s.on('connect',()=>end('open'));s.on('error',()=>end('closed'));setTimeout(()=>end('closed'),${1000 * seconds})`;
  return (await execIn(sandbox, ['node', '-e', script])).trim() as Outcome;
}

async function fromPeer(from: Manifest, host: string, port: number, seconds: number): Promise<Outcome> {
  const script = `nc -w ${seconds} ${host} ${port} </dev/null >/dev/null 2>&1 && echo open || echo closed`;
  return (await execIn(refOf(from), ['sh', '-c', script])).trim() as Outcome;
}

/** Does a name resolve, which needs DNS over UDP? */
async function resolves(name: string, seconds: number): Promise<Outcome> {
  const script = `require('node:dns').promises.resolve4('${name}').then(()=>console.log('open'),()=>console.log('closed'));setTimeout(()=>{console.log('closed');process.exit()},${1000 * seconds}).unref()`;
  return (await execIn(sandbox, ['node', '-e', script])).trim() as Outcome;
}

interface Connection {
  readonly what: string;
  readonly allowed: boolean;
  /** @param seconds after which no answer means closed */
  readonly attempt: (seconds: number) => Promise<Outcome>;
}
/** Seconds in which an answer is to be expected, and after which none is. */
const patience: Readonly<Record<Outcome, number>> = { open: 15, closed: 3 };
const to = (of: Manifest, port: number) => (seconds: number) => fromSandbox(addresses.get(of) ?? '', port, seconds);
const byName: readonly Connection[] = [
  {
    what: 'a name of the cluster, by DNS',
    allowed: true,
    attempt: (seconds) => resolves(`vekil.${proxyNamespace}.svc.cluster.local`, seconds),
  },
  {
    what: 'the provider proxy, by its Service',
    allowed: true,
    attempt: (seconds) => fromSandbox(`vekil.${proxyNamespace}.svc`, 1337, seconds),
  },
];
const matrix: readonly Connection[] = [
  ...byName,
  { what: 'the provider proxy, on its port', allowed: true, attempt: to(proxy, 1337) },
  { what: "the controller's API, on its port", allowed: true, attempt: to(controller, platform.controller.apiPort) },
  { what: 'the provider proxy, on another port', allowed: false, attempt: to(proxy, 1338) },
  { what: 'the controller, on another port', allowed: false, attempt: to(controller, 9090) },
  { what: 'another Pod of the controller namespace', allowed: false, attempt: to(bystander, 8080) },
  { what: 'the archives of the publisher', allowed: true, attempt: to(publisher, artifactPort) },
  { what: 'the operations of the publisher', allowed: false, attempt: to(publisher, operationPort) },
  { what: 'the metrics of the publisher', allowed: false, attempt: to(publisher, probePort) },
  { what: 'another Pod of the publisher namespace', allowed: false, attempt: to(publisherNeighbour, artifactPort) },
  { what: 'a forge in the cluster', allowed: false, attempt: to(forge, forgePort) },
  { what: 'a Pod elsewhere, on the port of the proxy', allowed: false, attempt: to(impostor, 1337) },
  { what: 'a Pod elsewhere with the label of the controller', allowed: false, attempt: to(impostor, 8080) },
  { what: 'the API server, by its Service', allowed: false, attempt: (seconds) => fromSandbox('10.96.0.1', 443, seconds) },
  ...(node
    ? [
        {
          what: 'the API server, by its address',
          allowed: false,
          attempt: (seconds: number) => fromSandbox(node.ip, 6443, seconds),
        },
        {
          what: 'a link-local metadata address',
          allowed: false,
          attempt: (seconds: number) => fromSandbox(metadata?.address ?? '', metadata?.port ?? 0, seconds),
        },
      ]
    : []),
  {
    what: 'the metrics of the controller, from its own namespace',
    allowed: true,
    attempt: (seconds) => fromPeer(bystander, addresses.get(controller) ?? '', probePort, seconds),
  },
  {
    what: 'the metrics of the controller, from a namespace of metrics.scrapeFrom',
    allowed: true,
    attempt: (seconds) => fromPeer(proxy, addresses.get(controller) ?? '', probePort, seconds),
  },
  {
    what: 'the metrics of the controller, from another namespace',
    allowed: false,
    attempt: (seconds) => fromPeer(impostor, addresses.get(controller) ?? '', probePort, seconds),
  },
  { what: 'the metrics of the controller, from a sandbox', allowed: false, attempt: to(controller, probePort) },
  {
    what: 'port 8080 of the sandbox, from the controller',
    allowed: true,
    attempt: (seconds) => fromPeer(controller, sandboxAddress, 8080, seconds),
  },
  {
    what: 'port 8080 of the sandbox, from another Pod of the controller namespace',
    allowed: false,
    attempt: (seconds) => fromPeer(bystander, sandboxAddress, 8080, seconds),
  },
  {
    what: 'port 8080 of the sandbox, from a Pod elsewhere with the label of the controller',
    allowed: false,
    attempt: (seconds) => fromPeer(impostor, sandboxAddress, 8080, seconds),
  },
  {
    what: 'port 8080 of the sandbox, from the provider proxy',
    allowed: false,
    attempt: (seconds) => fromPeer(proxy, sandboxAddress, 8080, seconds),
  },
];

const underPolicies = ({ allowed }: Connection): Outcome => (allowed ? 'open' : 'closed');

/** Whether every one of these connections is as it should be, tried one after the other. */
async function areAll(
  connections: readonly Connection[],
  wanted: (connection: Connection) => Outcome,
): Promise<true | undefined> {
  for (const connection of connections) {
    const outcome = wanted(connection);
    if ((await connection.attempt(patience[outcome])) !== outcome) return undefined;
  }
  return true;
}

beforeAll(async () => {
  if (node) metadata = await outsideListener('orka-meta', '169.254.169.254', 80);
  await applyAll(
    [
      ...[platform.namespaces.controller, platform.namespaces.runtime, proxyNamespace, other],
      ...[publisherNamespace, 'orka-forge'],
    ].map((name) => namespace(name)),
  );
  await applyAll([proxyService, ...peers]);
  await startPool(pool);
  for (const one of peers) addresses.set(one, (await readyPod(refOf(one))).status.podIP ?? '');
  sandboxAddress = (await readyPod(sandbox)).status.podIP ?? '';
  // A Pod is ready before its Service leads to it.
  await eventually('names that lead to the proxy', () => areAll(byName, () => 'open'), 120);
}, 600_000);

afterAll(async () => {
  await removePool(pool);
  await cleanUp([...peers, proxyService, ingressPolicy].map(refOf));
  await metadata?.close();
}, 600_000);

describe('without the policies of a pool, the control run,', () => {
  test.each(matrix.map((connection) => ({ ...connection })))(
    '$what is open',
    async ({ attempt }) => {
      expect(await attempt(patience.open)).toBe('open');
    },
    60_000,
  );
});

describe('with the policies of a pool', () => {
  beforeAll(async () => {
    await applyAll([...pool.isolation, ingressPolicy]);
    // They take effect one after the other.
    await eventually('the policies are enforced', () => areAll(matrix, underPolicies), 180);
  }, 400_000);

  test.each(matrix.map((connection) => ({ ...connection, outcome: underPolicies(connection) })))(
    '$what is $outcome',
    async ({ attempt, outcome }) => {
      expect(await attempt(patience[outcome])).toBe(outcome);
    },
    60_000,
  );
});
