import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crd, kinds } from '../../src/api/index.js';
import type { Manifest } from '../../src/api/index.js';
import { kindGaps } from '../../src/domain/kind-gaps.js';
import { get } from '../../src/kube/client.js';
import { valueAt } from '../../src/lib/json.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { distFiles } from '../../src/render/dist.js';
import { writeOutput } from '../../src/render/output.js';
import { readYaml } from '../../src/render/yaml-read.js';
import { applyAll, kube, kubectl, namespace, platform, refOf } from './support/cluster.js';
import { applyDist } from './support/installation.js';

const files = distFiles(platform);
const manifestsIn = (folder: string): readonly Manifest[] =>
  files
    .filter(({ path }) => path.startsWith(`${folder}/`))
    .flatMap(({ path, text }) => readYaml(text, path).map(({ value }) => value as Manifest));
let out = '';

beforeAll(async () => {
  out = mkdtempSync(join(tmpdir(), 'orka-install-'));
  writeOutput(join(out, 'dist'), files);
  await applyAll(platform.namespaces.tasks.map((name) => namespace(name)));
  await applyDist(kubectl, join(out, 'dist'));
  // What Kubernetes writes to the status of the Deployment would look like a change.
  const { metadata } = manifestsIn('apply').find(({ kind }) => kind === 'Deployment')!;
  const rollout = ['rollout', 'status', 'deployment', metadata.name, '-n', platform.namespaces.controller];
  await kubectl([...rollout, '--timeout=150s']);
}, 300_000);
afterAll(() => rmSync(out, { recursive: true, force: true }));

test.each(['apply', 'review'])(
  'everything in %s passes a server-side dry run with strict validation',
  async (folder) => {
    const printed = await kubectl([
      'apply',
      '--server-side',
      '--dry-run=server',
      '--validate=strict',
      '--force-conflicts',
      '--field-manager=review',
      '-f',
      join(out, 'dist', folder),
    ]);
    expect(printed.trim().split('\n')).toHaveLength(manifestsIn(folder).length);
  },
  150_000,
);

test('the published schemas of the kinds have no gap to those that the controller needs', async () => {
  const document = await kube.request({ method: 'GET', path: '/openapi/v3/apis/core.orka.ai/v1alpha1' });
  const served = Object.values(valueAt(document, ['components', 'schemas']) as JsonObject);
  const gaps = kinds.flatMap((kind) => {
    const needed = valueAt(crd(kind), ['spec', 'versions', '0', 'schema', 'openAPIV3Schema']);
    const own = served.find((schema) => {
      const names = valueAt(schema ?? null, ['x-kubernetes-group-version-kind']);
      return Array.isArray(names) && names.some((name) => valueAt(name as Json, ['kind']) === kind.kind);
    });
    return kindGaps(kind.kind, needed, own);
  });
  expect(gaps).toEqual([]);
});

test('applying again changes nothing', async () => {
  const versions = async () =>
    Promise.all(
      manifestsIn('apply').map(async (manifest) => [
        refOf(manifest),
        (await get(kube, refOf(manifest)))?.metadata.resourceVersion,
      ]),
    );
  const before = await versions();
  await applyDist(kubectl, join(out, 'dist'));
  expect(await versions()).toEqual(before);
}, 150_000);

test('the kustomization applies the same objects', async () => {
  const printed = await kubectl(['apply', '--server-side', '--dry-run=server', '-k', join(out, 'dist')]);
  expect(printed.trim().split('\n')).toHaveLength(manifestsIn('apply').length);
}, 150_000);

test('the API server knows the short names and prints the columns of the CRDs', async () => {
  expect(await kubectl(['get', 'rtpc', '-n', platform.namespaces.controller])).toMatch(
    /NAME +PROVIDER +CLASS +READY +REASON +AGE\ncodex-standard +codex +standard/,
  );
  expect(await kubectl(['get', 'rtpool,tasks.core.orka.ai,agents.core.orka.ai', '-A', '--ignore-not-found'])).toBe('');
}, 150_000);
