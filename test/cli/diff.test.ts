import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toYamlStream } from '../../src/render/yaml.js';
import type { Manifest } from '../../src/api/index.js';
import { cliBeside } from '../support/cli.js';
import type { CliResult } from '../support/cli.js';
import { discovery, fakeApi, reply } from '../support/fake-api.js';
import type { FakeApi } from '../support/fake-api.js';

const configMap = (name: string, data: Readonly<Record<string, string>>): Manifest => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'a' },
  data,
});
const secret = (data: Readonly<Record<string, string>>): Manifest => ({ ...configMap('s', data), kind: 'Secret' });

let folder = '';
let api: FakeApi | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'orka-diff-'));
});
afterEach(async () => {
  rmSync(folder, { recursive: true, force: true });
  await api?.close();
  api = undefined;
});

/** A server with these objects, that would store what is applied as it comes; `refusals` by the name of the object. */
async function serve(
  live: readonly (Manifest & { readonly metadata: object })[],
  refusals: Readonly<Record<string, { readonly code: number; readonly message?: string; readonly details?: object }>> = {},
): Promise<string> {
  api = await fakeApi((request, response) => {
    const kinds = discovery(request.path);
    const name = request.path.slice(request.path.lastIndexOf('/') + 1);
    const refusal = refusals[name];
    const object = live.find(({ metadata }) => metadata.name === name);
    if (kinds) reply(response, 200, kinds);
    else if (request.method === 'GET') {
      reply(response, object ? 200 : 404, object ?? { kind: 'Status', reason: 'NotFound', details: { name } });
    } else if (refusal && request.query.get('force') === 'false') {
      reply(response, refusal.code, { kind: 'Status', reason: 'Refused', ...refusal });
    } else reply(response, 200, JSON.parse(request.body));
  });
  return kubeconfig(api.url);
}

function kubeconfig(server: string): string {
  const file = join(folder, 'kubeconfig');
  writeFileSync(
    file,
    JSON.stringify({
      'current-context': 'here',
      contexts: [
        { name: 'here', context: { cluster: 'c', user: 'u' } },
        { name: 'there', context: { cluster: 'c', user: 'u', namespace: 'there' } },
      ],
      clusters: [{ name: 'c', cluster: { server } }],
      users: [{ name: 'u', user: { token: 't' } }],
    }),
  );
  return file;
}

function write(name: string, objects: readonly Manifest[]): string {
  const file = join(folder, name);
  writeFileSync(file, toYamlStream(objects));
  return file;
}

const diff = (args: readonly string[], options?: Parameters<typeof cliBeside>[1]): Promise<CliResult> =>
  cliBeside(['diff', ...args], options);

test('without drift every object is listed as the same and the exit code is 0', async () => {
  const config = await serve([configMap('x', { k: '1' }), configMap('y', {})]);
  const file = write('a.yaml', [configMap('x', { k: '1' }), configMap('y', {})]);
  expect(await diff(['-f', file, '--kubeconfig', config])).toEqual({
    code: 0,
    stdout: 'same      v1 ConfigMap a/x\nsame      v1 ConfigMap a/y\n',
    stderr: '2 objects: 2 same; no drift\n',
  });
});

test('what differs is shown as lines, what is missing is named, and the exit code is 1', async () => {
  const config = await serve([configMap('x', { k: '1' })]);
  const file = write('a.yaml', [configMap('x', { k: '2' }), configMap('y', {})]);
  const { code, stdout, stderr } = await diff(['-f', file, '--kubeconfig', config]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: '2 objects: 1 changed, 1 missing; drift\n' });
  expect(stdout.split('\n')).toEqual(
    expect.arrayContaining(['changed   v1 ConfigMap a/x', '-  k: "1"', '+  k: "2"', 'missing   v1 ConfigMap a/y']),
  );
});

test('several files, standard input and Lists are compared in the order in which they are given', async () => {
  const config = await serve([]);
  const list = { apiVersion: 'v1', kind: 'List', metadata: { name: '' }, items: [configMap('c', {}), configMap('d', {})] };
  const args = ['-f', write('b.yaml', [configMap('b', {})]), '-', '-f', write('a.yaml', [configMap('a', {})])];
  const { stdout } = await diff([...args, '--kubeconfig', config], { input: JSON.stringify(list) });
  expect(stdout.match(/a\/\w/g)).toEqual(['a/b', 'a/c', 'a/d', 'a/a']);
});

test('--dist compares what the kustomization of a folder lists', async () => {
  const config = await serve([configMap('x', {})]);
  mkdirSync(join(folder, 'dist/apply'), { recursive: true });
  write('dist/apply/0.yaml', [configMap('x', {})]);
  write('dist/not-listed.yaml', [configMap('y', {})]);
  writeFileSync(join(folder, 'dist/kustomization.yaml'), 'apiVersion: x\nkind: Kustomization\nresources: [apply/0.yaml]\n');
  const expected = { code: 0, stdout: 'same      v1 ConfigMap a/x\n' };
  expect(await diff(['--dist', '--kubeconfig', config], { cwd: folder })).toMatchObject(expected);
  expect(await diff(['--dist', join(folder, 'dist'), '--kubeconfig', config])).toMatchObject(expected);
});

test('KUBECONFIG names the cluster, --context the context and its namespace', async () => {
  const KUBECONFIG = await serve([]);
  const { metadata: _metadata, ...rest } = configMap('x', {});
  const file = write('a.yaml', [{ ...rest, metadata: { name: 'x' } }]);
  await diff(['-f', file], { env: { KUBECONFIG } });
  expect(api?.received.at(-1)?.path).toBe('/api/v1/namespaces/default/configmaps/x');
  await diff(['-f', file, '--context', 'there'], { env: { KUBECONFIG } });
  expect(api?.received.at(-1)?.path).toBe('/api/v1/namespaces/there/configmaps/x');
});

test('--field-manager says who applies', async () => {
  const config = await serve([]);
  await diff(['-f', write('a.yaml', [configMap('x', {})]), '--kubeconfig', config, '--field-manager', 'argocd-controller']);
  expect(api?.received.at(-1)?.query.get('fieldManager')).toBe('argocd-controller');
});

test('fields that others own and that are wanted otherwise are a conflict', async () => {
  const causes = [{ reason: 'FieldManagerConflict', field: '.data.k', message: 'conflict with "kubectl-edit" using v1' }];
  const config = await serve([configMap('x', { k: '1' })], { x: { code: 409, details: { causes } } });
  const { code, stdout } = await diff(['-f', write('a.yaml', [configMap('x', { k: '2' })]), '--kubeconfig', config]);
  expect(code).toBe(1);
  expect(stdout).toContain('conflict  v1 ConfigMap a/x\n  kubectl-edit has otherwise: data.k\n--- ');
  expect(stdout).toContain('\n+  k: "2"\n');
});

describe('further fields of another manager', () => {
  const liveOf = (manager: string): Manifest => {
    const managedFields = [{ manager, operation: 'Update', fieldsV1: { 'f:metadata': { 'f:labels': { 'f:l': {} } } } }];
    const object = configMap('x', {});
    return { ...object, metadata: { ...object.metadata, managedFields } };
  };

  test.each([
    ['are drift and named', 'kubectl-label', [], 1, '  left to kubectl-label (not expected): metadata.labels.l\n'],
    ['are no drift when the manager is allowed', 'x', ['--allow-manager', 'x'], 0, '  left to x: metadata.labels.l\n'],
    ['are no drift when they are of the provider', 'agent-sandbox-controller', [], 0, '  left to agent-sandbox-controller: '],
  ])('%s', async (_, manager, args, expected, line) => {
    const config = await serve([liveOf(manager)]);
    const { code, stdout } = await diff(['-f', write('a.yaml', [configMap('x', {})]), '--kubeconfig', config, ...args]);
    expect(code).toBe(expected);
    expect(stdout).toContain(`same      v1 ConfigMap a/x\n${line}`);
  });
});

describe('of a Secret', () => {
  test('only the names of keys are shown, and which of them differ', async () => {
    const config = await serve([secret({ same: 'c2FtZQ==', other: 'b2xk', old: 'Z29uZQ==' })]);
    const file = write('a.yaml', [secret({ same: 'c2FtZQ==', other: 'bmV3', fresh: 'ZnJlc2g=' })]);
    const { stdout, stderr } = await diff(['-f', file, '--kubeconfig', config]);
    expect(stdout.split('\n').filter((line) => /^[-+ ] {2}\w+: not/.test(line))).toEqual([
      '-  old: not shown',
      '-  other: not shown',
      '+  fresh: not shown',
      '+  other: not shown, differs',
      '   same: not shown',
    ]);
    expect(stdout + stderr).not.toMatch(/c2FtZQ|b2xk|Z29uZQ|bmV3|ZnJlc2g/);
  });

  test('the words of the server are not repeated', async () => {
    const config = await serve([], { s: { code: 422, message: 'data.k: Invalid value: "hunter2"' } });
    const { code, stdout, stderr } = await diff(['-f', write('a.yaml', [secret({})]), '--kubeconfig', config, '-o', 'json']);
    expect(code).toBe(2);
    expect(stdout).toContain('"error": "invalid (HTTP 422)"');
    expect(stdout + stderr).not.toContain('hunter2');
  });
});

test('-o json has one shape', async () => {
  const config = await serve([configMap('x', { k: '1' })], { y: { code: 422, message: 'no such field' } });
  const file = write('a.yaml', [configMap('x', { k: '2' }), configMap('y', {})]);
  const { code, stdout } = await diff(['-f', file, '--kubeconfig', config, '-o', 'json']);
  expect(code).toBe(2);
  expect(JSON.parse(stdout)).toEqual({
    manager: 'kubectl',
    objects: [
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        namespace: 'a',
        name: 'x',
        state: 'changed',
        diff: expect.stringContaining('-  k: "1"\n+  k: "2"\n'),
        conflicts: [],
        others: [],
        error: null,
      },
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        namespace: 'a',
        name: 'y',
        state: 'error',
        diff: null,
        conflicts: [],
        others: [],
        error: 'no such field',
      },
    ],
    counts: { same: 0, changed: 1, missing: 0, conflict: 0, error: 1 },
    drift: true,
  });
});

describe('exit code 2', () => {
  const file = () => write('a.yaml', [configMap('x', {})]);

  test('a server that refuses one object is told beside the others', async () => {
    const config = await serve([configMap('y', {})], { x: { code: 422, message: 'no such field' } });
    const both = write('b.yaml', [configMap('x', {}), configMap('y', {})]);
    expect(await diff(['-f', both, '--kubeconfig', config])).toEqual({
      code: 2,
      stdout: 'error     v1 ConfigMap a/x\n  no such field\nsame      v1 ConfigMap a/y\n',
      stderr: '2 objects: 1 same, 1 error; not all could be compared\n',
    });
  });

  test('an object that is refused because its CRD is not up to date says so', async () => {
    const pool = { apiVersion: 'core.orka.ai/v1alpha1', kind: 'RuntimePool', metadata: { name: 'p', namespace: 'a' } };
    const crd = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'runtimepools.core.orka.ai' },
      spec: { group: 'core.orka.ai', names: { kind: 'RuntimePool' }, versions: [{ name: 'v1alpha1', served: true }] },
    };
    const config = await serve([], { p: { code: 422, message: 'no such field' } });
    const { stdout } = await diff(['-f', write('b.yaml', [crd, pool]), '--kubeconfig', config]);
    expect(stdout).toContain('no such field (its CRD of the same set differs in the cluster; apply that first)');
  });

  test('a server that does not answer', async () => {
    const result = await diff(['-f', file(), '--kubeconfig', kubeconfig('http://127.0.0.1:9')]);
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('ECONNREFUSED') });
  });

  test.each<[string, () => readonly string[], string]>([
    ['nothing to compare', () => [], 'found "nothing to compare"'],
    ['files and a folder', () => ['-f', file(), '--dist'], 'found "--filename and --dist"'],
    ['a field manager without a name', () => ['-f', file(), '--field-manager', ''], 'diff: --field-manager: found ""'],
    ['a form of output', () => ['-f', file(), '-o', 'yaml'], 'diff: --output: found "yaml"'],
    ['a file that cannot be read', () => ['-f', join(folder, 'none.yaml')], 'no such file or directory'],
    ['standard input twice', () => ['-f', '-', '-f', '-'], 'standard input once'],
    ['an object without a name', () => ['-f', write('b.yaml', [{ ...configMap('', {}) }])], 'metadata.name: found ""'],
    [
      'an object twice',
      () => ['-f', write('b.yaml', [configMap('x', {}), configMap('x', {})])],
      'b.yaml, line 8: metadata.name: found "/ConfigMap/a/x"',
    ],
    ['a context that is not there', () => ['-f', file(), '--context', 'none'], 'contexts: found "none"'],
    ['a folder without kustomization', () => ['--dist', folder], 'kustomization.yaml: no such file or directory'],
  ])('%s', async (_, args, says) => {
    const KUBECONFIG = kubeconfig('http://127.0.0.1:9');
    const { code, stdout, stderr } = await diff(args(), { env: { KUBECONFIG } });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(says);
  });

  test.each([
    ['an empty stream', ''],
    ['documents that are empty', '---\n---\n'],
    ['an empty List', 'apiVersion: v1\nkind: List\nitems: []\n'],
  ])('%s is no proof that nothing drifted', async (_, input) => {
    const KUBECONFIG = kubeconfig('http://127.0.0.1:9');
    expect(await diff(['-f', '-'], { input, env: { KUBECONFIG } })).toEqual({
      code: 2,
      stdout: '',
      stderr: 'error: standard input: found "no object", allowed: at least one object to compare\n',
    });
    expect((await diff(['-f', file(), '-f', '-'], { input, env: { KUBECONFIG } })).code).toBe(2);
  });

  test('a kustomization without resources is no proof that nothing drifted', async () => {
    writeFileSync(
      join(folder, 'kustomization.yaml'),
      'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n',
    );
    const { code, stderr } = await diff(['--dist', folder], { env: { KUBECONFIG: kubeconfig('http://127.0.0.1:9') } });
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'error: diff: found "no object", allowed: at least one object to compare\n',
    });
  });

  test('several kubeconfigs in KUBECONFIG', async () => {
    const { code, stderr } = await diff(['-f', file()], { env: { KUBECONFIG: '/a:/b' } });
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'error: KUBECONFIG: found ["/a","/b"], allowed: one file; --kubeconfig names another\n',
    });
  });

  test('a text that is no object is not quoted', async () => {
    const { code, stderr } = await diff(['-f', '-'], { input: 'stringData: {password: hunter2}\n' });
    expect(code).toBe(2);
    expect(stderr).not.toContain('hunter2');
  });
});
