import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Manifest } from '../../src/api/index.js';
import { get } from '../../src/kube/client.js';
import { distFiles } from '../../src/render/dist.js';
import { writeOutput } from '../../src/render/output.js';
import { toYamlStream } from '../../src/render/yaml.js';
import { cliBeside } from '../support/cli.js';
import type { CliResult } from '../support/cli.js';
import { cleanUp, cluster, kube, kubectl, platform, refOf } from './support/cluster.js';

const name = 'orka-diff-test';
const inNamespace = { namespace: name };
const namespace: Manifest = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
const configMap = (value: string): Manifest => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings', ...inNamespace },
  data: { key: value, further: 'x' },
});
const secret = (value: string): Manifest => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'credentials', ...inNamespace },
  stringData: { token: value },
});
const policy: Manifest = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'closed', ...inNamespace },
  spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [], egress: [] },
};
const deployment: Manifest = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'idle', ...inNamespace },
  spec: {
    replicas: 0,
    selector: { matchLabels: { app: 'idle' } },
    template: { metadata: { labels: { app: 'idle' } }, spec: { containers: [{ name: 'idle', image: 'none.example/idle' }] } },
  },
};
const all = [namespace, configMap('1'), secret('one'), policy, deployment];

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'orka-diff-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await cleanUp([refOf(namespace)]);
}, 120_000);

function file(objects: readonly Manifest[]): string {
  const path = join(folder, 'objects.yaml');
  writeFileSync(path, toYamlStream(objects));
  return path;
}

const diff = (...args: readonly string[]): Promise<CliResult> =>
  cliBeside(['diff', ...args], { env: { KUBECONFIG: cluster.kubeconfig } });
const applied = (objects: readonly Manifest[]): Promise<string> =>
  kubectl(['apply', '--server-side', '--force-conflicts', '-f', file(objects)]);
const states = (stdout: string): readonly string[] => stdout.match(/^(?:same|changed|conflict|missing|error)/gm) ?? [];

describe('before anything is applied', () => {
  test('objects and the namespace that they are to be in are missing', async () => {
    const { code, stdout } = await diff('-f', file(all));
    expect({ code, states: states(stdout) }).toEqual({ code: 1, states: Array<string>(5).fill('missing') });
  });

  test('a namespace that nobody makes is an error', async () => {
    const { code, stdout } = await diff('-f', file([configMap('1')]));
    expect({ code, stdout }).toEqual({ code: 2, stdout: expect.stringContaining(`namespaces "${name}" not found`) });
  });

  test('a kind whose CRD is in the same set is missing, another one is an error', async () => {
    const schema = { openAPIV3Schema: { type: 'object' } };
    const crd: Manifest = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'widgets.diff.orka.test' },
      spec: {
        group: 'diff.orka.test',
        scope: 'Namespaced',
        names: { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    };
    const widget = (version: string): Manifest => ({
      apiVersion: `diff.orka.test/${version}`,
      kind: 'Widget',
      metadata: { name: 'w', namespace: 'default' },
    });
    const { code, stdout } = await diff('-f', file([crd, widget('v1')]));
    expect({ code, states: states(stdout) }).toEqual({ code: 1, states: ['missing', 'missing'] });
    expect((await diff('-f', file([crd, widget('v2')]))).code).toBe(2);
    expect(await get(kube, refOf(crd))).toBeUndefined();
  });
});

describe('after an apply', () => {
  beforeEach(async () => {
    await applied(all);
  }, 60_000);

  test('there is no drift', async () => {
    const { code, stdout } = await diff('-f', file(all));
    expect({ code, states: states(stdout) }).toEqual({ code: 0, states: Array<string>(5).fill('same') });
  });

  test('what the files have otherwise is shown, and nothing is stored', async () => {
    const before = await get(kube, refOf(configMap('1')));
    const { code, stdout } = await diff('-f', file([configMap('2')]));
    expect({ code, states: states(stdout) }).toEqual({ code: 1, states: ['changed'] });
    expect(stdout).toContain('\n-  key: "1"\n+  key: "2"\n');
    expect(await get(kube, refOf(configMap('1')))).toEqual(before);
  });

  test('what the files no longer have is shown as removed', async () => {
    const { metadata, apiVersion, kind } = configMap('1');
    const { stdout } = await diff('-f', file([{ apiVersion, kind, metadata, data: { key: '1' } }]));
    expect(stdout).toContain('\n-  further: x\n');
  });

  test('the value of a Secret is not shown', async () => {
    const { stdout, code } = await diff('-f', file([secret('another')]));
    expect({ code, states: states(stdout) }).toEqual({ code: 1, states: ['changed'] });
    expect(stdout).toContain('\n-  token: not shown\n+  token: not shown, differs\n');
    expect(stdout).not.toMatch(/another|one|YW5vdGhlcg|b25l/);
  });

  test('what kubectl edit changed is a conflict that names the field and the manager', async () => {
    const edited = '{"data":{"key":"by hand"}}';
    await kubectl(['patch', 'configmap', 'settings', '-n', name, '--field-manager=kubectl-edit', '--type=merge', '-p', edited]);
    const { code, stdout } = await diff('-f', file(all));
    expect({ code, states: states(stdout) }).toEqual({ code: 1, states: ['same', 'conflict', 'same', 'same', 'same'] });
    expect(stdout).toContain(`conflict  v1 ConfigMap ${name}/settings\n  kubectl-edit has otherwise: data.key\n`);
    expect(stdout).toContain('\n-  key: by hand\n+  key: "1"\n');
  });

  test('a rule that someone added to an empty list of a policy is seen', async () => {
    const opened = '{"spec":{"ingress":[{}]}}';
    await kubectl(['patch', 'networkpolicy', 'closed', '-n', name, '--field-manager=kubectl-edit', '--type=merge', '-p', opened]);
    const { code, stdout } = await diff('-f', file([policy]));
    expect({ code, states: states(stdout) }).toEqual({ code: 1, states: ['conflict'] });
    expect(stdout).toContain('kubectl-edit has otherwise: spec.ingress');
  });

  test('a field that another manager added is named and counts, unless the manager is allowed', async () => {
    await kubectl(['label', 'configmap', 'settings', '-n', name, 'colour=red', '--field-manager=painter']);
    const { code, stdout } = await diff('-f', file([configMap('1')]));
    expect({ code, states: states(stdout) }).toEqual({ code: 1, states: ['same'] });
    expect(stdout).toContain('  left to painter (not expected): metadata.labels.colour\n');
    expect((await diff('-f', file([configMap('1')]), '--allow-manager', 'painter')).code).toBe(0);
    await kubectl(['label', 'configmap', 'settings', '-n', name, 'colour-']);
  });

  test('an autoscaler that owns the replicas of a Deployment is in the way of files that name them', async () => {
    const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'idle', ...inNamespace } };
    await kube.request({
      method: 'PUT',
      path: `/apis/apps/v1/namespaces/${name}/deployments/idle/scale`,
      query: { fieldManager: 'autoscaler' },
      body: { ...scale, spec: { replicas: 1 } },
    });
    const { stdout } = await diff('-f', file([deployment]));
    expect(stdout).toContain('  autoscaler has otherwise: spec.replicas\n');
  });

  test('an object that the server refuses cannot be compared', async () => {
    const wrong = { ...policy, spec: { podSelector: {}, colour: 'red' } } as unknown as Manifest;
    const { code, stdout } = await diff('-f', file([wrong, configMap('1')]));
    expect({ code, states: states(stdout) }).toEqual({ code: 2, states: ['error', 'same'] });
    expect(stdout).toContain('colour');
  });
});

test('a server that is not there cannot be compared with', async () => {
  const kubeconfig = join(folder, 'nobody');
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      'current-context': 'a',
      contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
      clusters: [{ name: 'a', cluster: { server: 'https://127.0.0.1:9' } }],
      users: [{ name: 'a', user: {} }],
    }),
  );
  expect(await diff('-f', file(all), '--kubeconfig', kubeconfig)).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('ECONNREFUSED'),
  });
});

test('every object of an output folder can be compared', async () => {
  const dist = join(folder, 'dist');
  writeOutput(dist, distFiles(platform));
  const { code, stdout } = await diff('--dist', dist);
  expect(code).toBeLessThan(2);
  expect(states(stdout)).not.toContain('error');
});
