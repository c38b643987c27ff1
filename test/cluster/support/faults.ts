/** What goes wrong with the parts of the cluster of this machine, and what mends it. */
import { readlinkSync } from 'node:fs';
import path from 'node:path';
import type { RuntimePoolClassSpec } from '../../../src/api/index.js';
import { component, containerdSocket } from '../components.js';
import type { ComponentKey } from '../components.js';
import { readProductImages } from '../info.js';
import { client } from '../kubectl.js';
import { end, running } from '../processes.js';
import { establishKinds, providerObjects } from '../provider.js';
import { run } from '../run.js';
import { inWork, node } from '../settings.js';
import { ensure } from '../up.js';
import { applyAll, cluster, eventually, kubectl } from './cluster.js';

/** Lasts from `begin` to `mend`. Mending what is whole changes nothing. */
export interface Fault {
  readonly begin: () => Promise<void>;
  readonly mend: () => Promise<void>;
}

/** Begins a fault, and mends it whatever happens. */
export async function during<T>(fault: Fault, body: () => Promise<T>): Promise<T> {
  try {
    await fault.begin();
    return await body();
  } finally {
    await fault.mend();
  }
}

const program = (name: string) => readlinkSync(inWork('bin', name));

/** The process of a component ends, and is started again as `up` starts it. @param grace milliseconds; without, it is killed */
export function ended(key: ComponentKey, grace = 0): Fault {
  return {
    begin: async () => {
      const record = running(component(key, program).name);
      if (record) await end([record], grace);
    },
    mend: async () => {
      await ensure(key, program);
    },
  };
}

/** The process of a component stands still, with all its connections. */
export function paused(key: ComponentKey): Fault {
  const send = (signal: NodeJS.Signals) => {
    const record = running(component(key, program).name);
    if (record) process.kill(record.pid, signal);
  };
  const resume = () => {
    send('SIGCONT');
  };
  return {
    begin: () => {
      process.once('exit', resume);
      send('SIGSTOP');
      return Promise.resolve();
    },
    mend: () => {
      process.off('exit', resume);
      resume();
      return Promise.resolve();
    },
  };
}

/** The four kinds of the provider are deleted, with all their objects, and installed again as `up` installs them. */
export const kindsDeleted: Fault = {
  begin: async () => {
    const names = providerKinds().map(({ metadata }) => metadata.name);
    await kubectl(['delete', 'crd', '--ignore-not-found', '--timeout=60s', ...names]);
  },
  mend: async () => {
    const admin = client(cluster.kubectl);
    const kinds = providerKinds();
    await admin.apply(kinds);
    await establishKinds(admin, kinds);
    // It ends when a kind is missing at its start, and would be started again by its Deployment.
    await ensure('provider', program);
  },
};

function providerKinds() {
  const folder = path.resolve(path.dirname(program('agent-sandbox-controller')), '../k8s');
  return providerObjects(folder).filter(({ kind }) => kind === 'CustomResourceDefinition');
}

/** Nothing is scheduled. */
export const cordoned: Fault = {
  begin: async () => {
    await kubectl(['cordon', node]);
  },
  mend: async () => {
    await kubectl(['uncordon', node]);
  },
};

/** While no new Pod is placed anywhere; the nodes of another cluster than that of this machine are left alone. */
export const unplaced = <T>(body: () => Promise<T>): Promise<T> => (cluster.node ? during(cordoned, body) : body());

/** A quota that leaves nothing. */
export function quota(namespace: string, resource: string): Fault {
  const named = ['resourcequota', 'outage', '-n', namespace];
  return {
    begin: async () => {
      const hard = { [resource]: '0' };
      await applyAll([
        { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'outage', namespace }, ...{ spec: { hard } } },
      ]);
      await eventually('a quota that counts', async () => {
        const status = await kubectl(['get', ...named, '-o', 'jsonpath={.status.hard}']);
        return status.includes(resource) ? true : undefined;
      });
    },
    mend: async () => {
      await kubectl(['delete', ...named, '--ignore-not-found']);
    },
  };
}

/** The image of the class is on the node no more. */
export function imageMissing({ runtime: { image } }: Pick<RuntimePoolClassSpec, 'runtime'>): Fault {
  const known = Object.values(readProductImages()).find(({ ref }) => ref === image);
  const spare = 'localhost/orka-outage:spare';
  const images = (...args: readonly string[]) => run('ctr', ['-a', containerdSocket, '-n', 'k8s.io', 'images', ...args]);
  const names = [image, ...(known ? [known.tag] : [])];
  return {
    begin: async () => {
      await images('tag', '--force', image, spare);
      await images('rm', ...names);
    },
    mend: async () => {
      if (!(await images('ls', '-q')).split('\n').includes(spare)) return;
      for (const name of names) await images('tag', '--force', spare, name);
      await images('rm', spare);
    },
  };
}

interface Amounts {
  readonly cpu?: string;
}
interface PodObject {
  readonly spec: {
    readonly nodeName?: string;
    readonly containers: readonly { readonly resources?: { readonly requests?: Amounts } }[];
  };
  readonly status: { readonly phase?: string };
}

/** A Pod has asked for all of the node that was left, but for a tenth of a core less than a sandbox asks for. */
export function nodeFull(image: string): Fault {
  const named = { name: 'outage-filler', namespace: 'default' };
  return {
    begin: async () => {
      const read = async (what: readonly string[]): Promise<unknown> => JSON.parse(await kubectl(['get', ...what, '-o', 'json']));
      const { status } = (await read(['node', node])) as { readonly status: { readonly allocatable: Amounts } };
      const { items } = (await read(['pods', '-A'])) as { readonly items: readonly PodObject[] };
      const asked = items
        .filter(({ spec, status: { phase } }) => spec.nodeName === node && phase !== 'Succeeded' && phase !== 'Failed')
        .flatMap(({ spec }) => spec.containers.map(({ resources }) => millicores(resources?.requests?.cpu)));
      const left = millicores(status.allocatable.cpu) - asked.reduce((sum, cpu) => sum + cpu, 0);
      await applyAll([filler(named, image, left - 50)]);
      await kubectl(['wait', '--for=condition=PodScheduled', `pod/${named.name}`, '-n', named.namespace, '--timeout=30s']);
    },
    mend: async () => {
      await kubectl(['delete', 'pod', named.name, '-n', named.namespace, '--ignore-not-found', '--timeout=60s']);
    },
  };
}

function filler(metadata: { readonly name: string; readonly namespace: string }, image: string, cpu: number) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'filler', image, command: ['sleep', '3600'], resources: { requests: { cpu: `${cpu}m` } } }],
    },
  };
}

function millicores(cpu = '0'): number {
  return cpu.endsWith('m') ? Number(cpu.slice(0, -1)) : Number(cpu) * 1000;
}

/** Nobody answers at the address of the cluster's DNS: its Service finds no Pod. */
export const dnsDown: Fault = {
  begin: () => dnsFinds('nobody', 0),
  mend: () => dnsFinds('kube-dns', 1),
};

async function dnsFinds(app: string, pods: number): Promise<void> {
  const service = ['service', 'kube-dns', '-n', 'kube-system'];
  await kubectl(['patch', ...service, '--type=merge', '-p', JSON.stringify({ spec: { selector: { 'k8s-app': app } } })]);
  const slices = ['endpointslices', '-n', 'kube-system', '-l', 'kubernetes.io/service-name=kube-dns'];
  await eventually(`DNS that is ${pods} Pods`, async () => {
    const found = await kubectl(['get', ...slices, '-o', 'jsonpath={.items[*].endpoints[*].addresses[0]}']);
    return found.split(' ').filter(Boolean).length === pods ? true : undefined;
  });
}
