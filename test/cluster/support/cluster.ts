import { readFileSync } from 'node:fs';
import { createClient, get, refOf } from '../../../src/kube/client.js';
import type { KubeClient, ObjectRef } from '../../../src/kube/client.js';
import { kubeconfigAccess } from '../../../src/kube/kubeconfig.js';
import { apply } from '../../../src/kube/apply.js';
import { createTransport } from '../../../src/kube/transport.js';
import type { Manifest } from '../../../src/api/index.js';
import type { Json } from '../../../src/lib/json.js';
import { readPlatform } from '../../../src/render/platform.js';
import type { Platform } from '../../../src/render/platform.js';
import { readYaml } from '../../../src/render/yaml-read.js';
import { readInfo } from '../info.js';
import { platformFile } from '../images/platform.js';
import { attempt } from '../run.js';
import { eventually } from './eventually.js';

/** The cluster under test: the one that KUBECONFIG names, or the one of this machine. */
export interface TestCluster {
  readonly kubeconfig: string;
  readonly kubectl: string;
  /** Present with access to the node: the cluster of this machine. */
  readonly node?: { readonly ip: string; readonly images: Readonly<Record<string, { readonly ref: string }>> };
}

export const cluster: TestCluster = findCluster();

function findCluster(): TestCluster {
  const other = process.env['KUBECONFIG'];
  const info = readInfo();
  if (other !== undefined && other !== '' && other !== info?.kubeconfig) return { kubeconfig: other, kubectl: 'kubectl' };
  if (!info) throw new Error('there is no cluster: run npm run cluster:up, or set KUBECONFIG');
  return { kubeconfig: info.kubeconfig, kubectl: info.kubectl, node: { ip: info.nodeIp, images: info.images } };
}

/** The platform of the images that were built for this cluster. */
export const platform: Platform = readPlatform(readFileSync(platformFile, 'utf8'), platformFile);

const [config] = readYaml(readFileSync(cluster.kubeconfig, 'utf8'), cluster.kubeconfig);
const transport = createTransport(kubeconfigAccess(config?.value ?? null, cluster.kubeconfig), {
  userAgent: 'orka-workspaces-test',
});
export const kube: KubeClient = createClient(transport);
export const manager = 'orka-workspaces-test';

/** kubectl as admin; throws with what it said unless it succeeds. */
export async function kubectl(args: readonly string[], input?: string): Promise<string> {
  const { status, stdout, stderr } = await attempt(
    cluster.kubectl,
    ['--kubeconfig', cluster.kubeconfig, ...args],
    input === undefined ? {} : { input },
  );
  if (status !== 0) throw new Error(`kubectl ${args.join(' ')}: ended with ${status}\n${stderr}${stdout}`);
  return stdout;
}

/** What a command in a Pod's container printed. */
export function execIn(pod: ObjectRef, command: readonly string[]): Promise<string> {
  return kubectl(['exec', '-n', pod.namespace ?? 'default', pod.name, '--', ...command]);
}

export async function applyAll(manifests: readonly Manifest[]): Promise<void> {
  for (const manifest of manifests) await apply(kube, manifest, { manager, force: true });
}

/** A namespace that is there before a test and is left for the next ones. */
export function namespace(name: string, labels: Readonly<Record<string, string>> = {}): Manifest {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, ...(Object.keys(labels).length > 0 ? { labels } : {}) } };
}

/** The phase and conditions of a Pod. */
export interface PodStatus {
  readonly phase?: string;
  readonly podIP?: string;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}

export async function readyPod(ref: ObjectRef, seconds = 180): Promise<Manifest & { readonly status: PodStatus }> {
  return eventually(
    `Pod ${ref.namespace}/${ref.name} ready`,
    async () => {
      const pod = (await get(kube, ref)) as (Manifest & { readonly status: PodStatus }) | undefined;
      return pod?.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ? pod : undefined;
    },
    seconds,
  );
}

/** Waits until an object is gone. */
export async function gone(ref: ObjectRef, seconds = 180): Promise<void> {
  await eventually(
    `${ref.kind} ${ref.namespace ?? ''}/${ref.name} gone`,
    async () => ((await get(kube, ref)) ? undefined : true),
    seconds,
  );
}

/** Deletes objects and waits until they are gone; those that are not there do not count. */
export async function cleanUp(refs: readonly ObjectRef[]): Promise<void> {
  for (const ref of refs) {
    const path = await kube.pathOf(ref);
    const body: Json = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Foreground',
      gracePeriodSeconds: ref.kind === 'Pod' ? 0 : null,
    };
    await kube.request({ method: 'DELETE', path, body }).catch(() => undefined);
  }
  for (const ref of refs) await gone(ref);
}

export { eventually, refOf };
