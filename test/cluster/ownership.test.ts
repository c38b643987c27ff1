/** A GitOps tool that applies with force, kubectl and the controller write the same objects: nobody undoes what another one did. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Manifest, ObjectMeta } from '../../src/api/index.js';
import { apply } from '../../src/kube/apply.js';
import { get } from '../../src/kube/client.js';
import { mergePatch } from '../../src/kube/patch.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { distFiles } from '../../src/render/dist.js';
import { readYaml } from '../../src/render/yaml-read.js';
import { toYamlStream } from '../../src/render/yaml.js';
import { cliBeside } from '../support/cli.js';
import { applyAll, cleanUp, cluster, eventually, kube, kubectl, namespace, platform, refOf } from './support/cluster.js';

const own = {
  controller: 'orka-ownership-controller',
  runtime: 'orka-ownership-runtimes',
  tasks: ['orka-ownership-tasks'],
} as const;

/** The output of a platform in namespaces of its own, without the kinds, which all installations share, and under other names where there is no namespace. */
const manifests: readonly Manifest[] = distFiles({
  ...platform,
  namespaces: own,
  controller: { ...platform.controller, replicas: 0 },
})
  .filter(({ path }) => path.startsWith('apply/') && !path.includes('crds'))
  .flatMap(({ path, text }) => readYaml(text, path).map(({ value }) => renamed(value as Manifest)));

function renamed(manifest: Manifest): Manifest {
  if (manifest.kind !== 'ClusterRole' && manifest.kind !== 'ClusterRoleBinding') return manifest;
  const { roleRef } = manifest as { readonly roleRef?: JsonObject };
  return {
    ...manifest,
    metadata: { ...manifest.metadata, name: 'orka-ownership-test' },
    ...(roleRef ? { roleRef: { ...roleRef, name: 'orka-ownership-test' } } : {}),
  };
}

const classes = manifests.filter(({ kind }) => kind === 'RuntimePoolClass');
let folder = '';
let file = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'orka-ownership-'));
  file = join(folder, 'dist.yaml');
  writeFileSync(file, toYamlStream(manifests));
  await applyAll(own.tasks.map((name) => namespace(name)));
  await gitops();
  // What Kubernetes itself writes to a new Deployment is written by then.
  for (const manifest of manifests.filter(({ kind }) => kind === 'Deployment'))
    await eventually(`Deployment ${manifest.metadata.name} looked at`, async () => {
      const { metadata, status } = (await get(kube, refOf(manifest))) as Manifest & {
        readonly status?: { readonly observedGeneration?: number };
      };
      return status?.observedGeneration === metadata.generation ? true : undefined;
    });
}, 300_000);
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  const scoped = manifests.filter(({ kind }) => kind.startsWith('ClusterRole')).map(refOf);
  const namespaces = [own.controller, own.runtime, ...own.tasks].map((name) => refOf(namespace(name)));
  await cleanUp([...scoped, ...namespaces]);
}, 600_000);

const gitops = (from = file): Promise<string> =>
  kubectl(['apply', '--server-side', '--force-conflicts', '--field-manager=argocd-controller', '-f', from]);
const byHand = (): Promise<string> => kubectl(['apply', '--server-side', '-f', file]);

/** What was stored last of each object: its version moves with every write, its generation with every change of the spec. */
async function stored(): Promise<readonly Pick<ObjectMeta, 'resourceVersion' | 'generation'>[]> {
  return Promise.all(
    manifests.map(async (manifest) => {
      const { resourceVersion, generation } = (await get(kube, refOf(manifest)))!.metadata;
      return { resourceVersion: resourceVersion ?? '', ...(generation === undefined ? {} : { generation }) };
    }),
  );
}
const generations = async () => (await stored()).map(({ generation }) => generation);

test('what one has applied with force the other applies without, and no object changes', async () => {
  await gitops();
  const before = await generations();
  await byHand();
  expect(await generations()).toEqual(before);
});

test('from then on neither writes anything, in whatever order they come', async () => {
  await gitops();
  await byHand();
  const before = await stored();
  for (const one of [gitops, byHand, byHand, gitops]) await one();
  expect(await stored()).toEqual(before);
});

test('our own apply takes part without force, and then sends nothing', async () => {
  const manager = 'orka-workspaces-controller';
  for (const manifest of manifests) await apply(kube, manifest, { manager });
  const before = await stored();
  const outcomes = await Promise.all(manifests.map((manifest) => apply(kube, manifest, { manager })));
  expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['unchanged']));
  await gitops();
  expect(await stored()).toEqual(before);
});

test('a status that the controller writes is neither overwritten nor in the way', async () => {
  for (const manifest of classes) {
    const { generation = 0, resourceVersion = '' } = (await get(kube, refOf(manifest)))!.metadata;
    const status = { observedGeneration: generation, conditions: [] as readonly Json[] };
    await mergePatch(
      kube,
      refOf(manifest),
      { status },
      { manager: 'orka-workspaces-controller', resourceVersion, subresource: 'status' },
    );
  }
  const before = await stored();
  await gitops();
  await byHand();
  expect(await stored()).toEqual(before);
  for (const manifest of classes) expect(await get(kube, refOf(manifest))).toMatchObject({ status: { observedGeneration: 1 } });
});

test('a difference is told before anything is written, with the name of who owns the field', async () => {
  const [first] = classes;
  const changed = { ...first, spec: { ...(first?.['spec'] as object), disruptionBudget: false } } as unknown as Manifest;
  const commit = join(folder, 'commit.yaml');
  writeFileSync(commit, toYamlStream([changed]));
  await gitops(commit);
  const { code, stdout } = await cliBeside(['diff', '-f', file], { env: { KUBECONFIG: cluster.kubeconfig } });
  expect(code).toBe(1);
  expect(stdout).toContain('  argocd-controller has otherwise: spec.disruptionBudget\n');
  await expect(byHand()).rejects.toThrow('conflict with "argocd-controller"');
  await expect(apply(kube, first!, { manager: 'orka-workspaces-controller' })).rejects.toMatchObject({ code: 'conflict' });
});
