import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { distFiles, header } from '../../src/render/dist.js';
import { identityOf } from '../../src/render/order.js';
import { compareOutput, OutputError, writeOutput } from '../../src/render/output.js';
import { readPlatform } from '../../src/render/platform.js';
import { readYaml } from '../../src/render/yaml-read.js';
import type { Manifest } from '../../src/api/index.js';

const platform = readPlatform(readFileSync('platform.yaml', 'utf8'), 'platform.yaml');
const files = distFiles(platform);
const manifests = (path: string): readonly Manifest[] =>
  readYaml(files.find((file) => file.path === path)?.text ?? '', path).map(({ value }) => value as unknown as Manifest);
const pathsIn = (folder: string) => files.map(({ path }) => path).filter((path) => path.startsWith(`${folder}/`));

test('the output is kustomization, what is applied and what is reviewed', () => {
  expect(files.map(({ path }) => path)).toEqual([
    'apply/0000-crds.k8s.yaml',
    'apply/0001-install.k8s.yaml',
    'apply/0002-classes.k8s.yaml',
    'kustomization.yaml',
    'review/codex-standard.plain.yaml',
    'review/codex-standard.workspace.yaml',
  ]);
});

test.each(files.map(({ path, text }) => [path, text] as const))('%s is what was reviewed', (_, text) => {
  expect(text).toMatchSnapshot();
});

test('the kustomization lists what is applied and nothing that is only reviewed', () => {
  expect(readYaml(files.find(({ path }) => path === 'kustomization.yaml')?.text ?? '', 'k')[0]?.value).toEqual({
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: pathsIn('apply'),
  });
});

test('everything that is only reviewed tells GitOps tools to leave it alone', () => {
  for (const path of pathsIn('review')) {
    for (const { metadata } of manifests(path))
      expect(metadata.annotations).toMatchObject({ 'config.kubernetes.io/local-config': 'true' });
  }
});

test('nothing that is applied or reviewed has an owner reference or the data of a Secret', () => {
  for (const path of [...pathsIn('apply'), ...pathsIn('review')]) {
    for (const manifest of manifests(path)) {
      expect(manifest.metadata).not.toHaveProperty('ownerReferences');
      if (manifest.kind === 'Secret')
        expect(Object.keys(manifest).sort()).toEqual(['apiVersion', 'immutable', 'kind', 'metadata', 'type']);
    }
  }
});

test('no object stands twice in what is applied', () => {
  const identities = pathsIn('apply').flatMap(manifests).map(identityOf);
  expect(new Set(identities).size).toBe(identities.length);
});

test('no role may write the spec of a class', () => {
  const rules = manifests('apply/0001-install.k8s.yaml').flatMap(
    (manifest) => (manifest['rules'] ?? []) as { resources: string[]; verbs: string[] }[],
  );
  const verbs = rules.filter(({ resources }) => resources.includes('runtimepoolclasses')).flatMap((rule) => rule.verbs);
  expect([...new Set(verbs)].sort()).toEqual(['list', 'watch']);
});

test('the class that is applied approves the digest that this renderer computes', () => {
  const [poolClass] = manifests('apply/0002-classes.k8s.yaml');
  const [pool] = manifests('review/codex-standard.workspace.yaml');
  const approved = (poolClass?.['spec'] as unknown as { approvedDigests: string[] }).approvedDigests;
  expect(pool?.metadata.annotations?.['orka.ai/runtime-pool-class']).toBe(`codex-standard@${approved[0]}`);
});

test('digests that the platform approves too are kept beside the own one', () => {
  const [first] = platform.classes;
  const other = `sha256:${'9'.repeat(64)}`;
  const text =
    distFiles({ ...platform, classes: [{ ...first!, alsoApprove: [other] }] }).find(({ path }) => path.includes('classes'))
      ?.text ?? '';
  expect(text.match(/- sha256:\w{64}/g)).toHaveLength(2);
  expect(text).toContain(other);
});

describe('an output folder', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'orka-dist-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const out = () => join(folder, 'dist');

  test('is written as a whole, and not touched when nothing changed', () => {
    expect(writeOutput(out(), files)).toHaveLength(files.length);
    const before = statSync(out()).ino;
    expect(writeOutput(out(), files)).toEqual([]);
    expect(statSync(out()).ino).toBe(before);
    expect(readdirSync(folder)).toEqual(['dist']);
  });

  test('is compared to the byte, with the name of what differs', () => {
    writeOutput(out(), files);
    writeFileSync(join(out(), 'kustomization.yaml'), `${header}resources: []\n`);
    rmSync(join(out(), 'apply/0000-crds.k8s.yaml'));
    writeFileSync(join(out(), 'review/old.yaml'), header);
    expect(compareOutput(out(), files)).toEqual([
      { path: 'apply/0000-crds.k8s.yaml', kind: 'missing' },
      { path: 'kustomization.yaml', kind: 'stale' },
      { path: 'review/old.yaml', kind: 'left-over' },
    ]);
  });

  test('loses what synth no longer writes', () => {
    writeOutput(out(), files);
    writeFileSync(join(out(), 'review/old.yaml'), header);
    writeOutput(out(), files);
    expect(existsSync(join(out(), 'review/old.yaml'))).toBe(false);
  });

  test('with a file of someone else is refused and left as it is', () => {
    mkdirSync(out());
    writeFileSync(join(out(), 'notes.txt'), 'mine');
    expect(() => writeOutput(out(), files)).toThrow(OutputError);
    expect(readdirSync(out())).toEqual(['notes.txt']);
    expect(readFileSync(join(out(), 'notes.txt'), 'utf8')).toBe('mine');
  });

  test('that is a file is refused', () => {
    writeFileSync(out(), 'mine');
    expect(() => writeOutput(out(), files)).toThrow(/found "a file", allowed: a folder/);
  });

  test('behind a link and ".." is the one that is compared as well', () => {
    mkdirSync(join(folder, 'elsewhere/inside'), { recursive: true });
    symlinkSync('elsewhere/inside', join(folder, 'link'));
    mkdirSync(out());
    writeFileSync(join(out(), 'notes.txt'), 'mine');
    expect(() => writeOutput(`${folder}/link/../dist`, files)).toThrow(OutputError);
    expect(readdirSync(out())).toEqual(['notes.txt']);
  });
});

test('what is written reads back as what was rendered', () => {
  for (const { text, path } of files) expect(readYaml(text, path).map(({ value }) => value).length).toBeGreaterThan(0);
});
