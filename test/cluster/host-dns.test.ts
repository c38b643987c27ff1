/** DNS and a proxy with the network of the node: what addresses of a class open, and that nothing else is open. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { refOf } from '../../src/kube/client.js';
import { applyAll, cluster, eventually, execIn, namespace, platform, readyPod } from './support/cluster.js';
import { answerAddress, hostDns } from './support/host-dns.js';
import type { HostDns } from './support/host-dns.js';
import { removePool, renderPool, startPool } from './support/pool.js';
import type { RenderedPool } from '../../src/render/instantiate.js';

const [address, neighbour, otherPort] = ['169.254.20.10', '169.254.20.11', 8053];
const byAddress = renderPool('task-host-dns', (spec) => ({
  ...spec,
  providerProxy: { ...spec.providerProxy, podLabels: {}, addresses: [`${neighbour}/32`] },
  network: { ...spec.network, dns: { ...spec.network.dns, podLabels: {}, addresses: [`${address}/32`] } },
}));
const proxyPort = platform.classes[0]!.spec.providerProxy.podPort;
/** The selector of NodeLocal DNSCache, which selects nothing. */
const bySelector = renderPool('task-host-dns-selector', (spec) => ({
  ...spec,
  network: { ...spec.network, dns: { ...spec.network.dns, podLabels: { 'k8s-app': 'node-local-dns' } } },
}));
const pools = [byAddress, bySelector];

type Outcome = 'open' | 'closed';
const inSandbox = async ({ claim }: RenderedPool, script: string): Promise<string> =>
  (await execIn({ ...refOf(claim!), apiVersion: 'v1', kind: 'Pod' }, ['node', '-e', script])).trim();

/** Asks a DNS server for a name. */
const resolves = (pool: RenderedPool, server: string) => async (): Promise<Outcome> => {
  const script = `const r=new (require('node:dns').promises.Resolver)({timeout:1000,tries:3});r.setServers(['${server}']);r.resolve4('model.example').then(([a])=>console.log(a),()=>console.log('closed'))`;
  const answer = await inSandbox(pool, script);
  return answer === answerAddress ? 'open' : 'closed';
};
const connects = (pool: RenderedPool, host: string, port: number) => async (): Promise<Outcome> => {
  const script = `const s=require('node:net').connect(${port},'${host}');const end=(t)=>{console.log(t);process.exit()};s.on('connect',()=>end('open'));s.on('error',()=>end('closed'));setTimeout(()=>end('closed'),3000)`;
  return (await inSandbox(pool, script)) as Outcome;
};

const matrix: readonly { readonly what: string; readonly allowed: boolean; readonly attempt: () => Promise<Outcome> }[] = [
  { what: 'a name, by an address of the class', allowed: true, attempt: resolves(byAddress, address) },
  { what: 'an address of the class over TCP', allowed: true, attempt: connects(byAddress, address, 53) },
  { what: 'the provider proxy, by its address', allowed: true, attempt: connects(byAddress, neighbour, proxyPort) },
  { what: 'the port of the proxy at the address of DNS', allowed: false, attempt: connects(byAddress, address, proxyPort) },
  { what: 'the provider proxy, by its selector', allowed: false, attempt: connects(bySelector, neighbour, proxyPort) },
  { what: 'another port of the address of DNS', allowed: false, attempt: connects(byAddress, address, otherPort) },
  { what: 'a name, by another address of the node', allowed: false, attempt: resolves(byAddress, neighbour) },
  { what: 'a name, by the selector of the Pods of that DNS', allowed: false, attempt: resolves(bySelector, address) },
  { what: 'that DNS over TCP, by the selector of its Pods', allowed: false, attempt: connects(bySelector, address, 53) },
];

// The node's own addresses are needed.
const onNode = cluster.node ? describe : describe.skip;
let dns: HostDns | undefined;

onNode('a resolver with the network of the node', () => {
  beforeAll(async () => {
    dns = await hostDns('orka-host-dns', [address, neighbour], [otherPort, proxyPort]);
    await applyAll([platform.namespaces.controller, platform.namespaces.runtime].map((name) => namespace(name)));
    for (const pool of pools) await startPool(pool);
    for (const { claim } of pools) await readyPod({ ...refOf(claim!), apiVersion: 'v1', kind: 'Pod' });
  }, 600_000);

  afterAll(async () => {
    for (const pool of pools) await removePool(pool);
    await dns?.close();
  }, 600_000);

  describe('without policies, the control run,', () => {
    test.each(matrix.map((row) => ({ ...row })))(
      '$what is open',
      async ({ attempt }) => {
        expect(await attempt()).toBe('open');
      },
      60_000,
    );
  });

  describe('with the policies of the pools', () => {
    beforeAll(async () => {
      for (const { isolation } of pools) await applyAll(isolation);
      await eventually(
        'the policies are enforced',
        async () => {
          for (const { attempt, allowed } of matrix) if ((await attempt()) !== (allowed ? 'open' : 'closed')) return undefined;
          return true;
        },
        180,
      );
    }, 400_000);

    test.each(matrix.map((row) => ({ ...row, outcome: row.allowed ? 'open' : 'closed' })))(
      '$what is $outcome',
      async ({ attempt, outcome }) => {
        expect(await attempt()).toBe(outcome);
      },
      60_000,
    );
  });
});
