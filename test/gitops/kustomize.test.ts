import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { isObject } from '../../src/lib/json.js';
import { readYaml } from '../../src/render/yaml-read.js';
import { toYaml, toYamlStream } from '../../src/render/yaml.js';
import { fullAgent, fullClass, fullTask } from '../api/samples.js';

const noKubectl = spawnSync('kubectl', ['version', '--client']).status === 0 ? '' : ' (skipped: no kubectl on the PATH)';
const withKubectl = noKubectl === '' ? test : test.skip;

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'orka-kustomize-'));
  for (const name of ['gitops', 'dist']) cpSync(name, join(folder, name), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What kustomize makes of a kustomization of the folder and of these objects. */
function built(kustomization: JsonObject, objects: readonly object[] = []): readonly Manifest[] {
  mkdirSync(join(folder, 'overlay'));
  if (objects.length > 0) writeFileSync(join(folder, 'overlay/objects.yaml'), toYamlStream(objects as readonly Json[]));
  writeFileSync(join(folder, 'overlay/kustomization.yaml'), toYaml(kustomization));
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', 'overlay'], { cwd: folder, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return readYaml(stdout, 'kustomize').map(({ value }) => value as Manifest);
}

const object = (apiVersion: string, kind: string, name: string, body: object = {}) =>
  ({ apiVersion, kind, metadata: { name, namespace: 'team-a' }, ...body }) as unknown as Manifest;
const core = 'core.orka.ai/v1alpha1';
const extensions = 'extensions.agents.x-k8s.io/v1beta1';

/** Every text of a value, with its path. */
function texts(value: Json | undefined, path = ''): readonly (readonly [string, string])[] {
  if (typeof value === 'string') return [[path, value]];
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap((item, index) => texts(item, `${path}[${index}]`));
  return isObject(value) ? Object.entries(value).flatMap(([name, member]) => texts(member, `${path}.${name}`)) : [];
}

describe(`a name prefix reaches${noKubectl}`, () => {
  const reference = { name: 'referred' };
  const podSpec = {
    serviceAccountName: 'referred',
    imagePullSecrets: [reference],
    volumes: [
      { name: 'a', secret: { secretName: 'referred' } },
      { name: 'b', configMap: reference },
      { name: 'c', persistentVolumeClaim: { claimName: 'referred' } },
      { name: 'd', projected: { sources: [{ secret: reference }, { configMap: reference }] } },
    ],
    ...Object.fromEntries(
      ['containers', 'initContainers'].map((list) => [
        list,
        [
          {
            name: list,
            image: 'image.example/a',
            env: [
              { name: 'A', valueFrom: { secretKeyRef: { name: 'referred', key: 'k' } } },
              { name: 'B', valueFrom: { configMapKeyRef: { name: 'referred', key: 'k' } } },
            ],
            envFrom: [{ secretRef: reference }, { configMapRef: reference }],
          },
        ],
      ]),
    ),
  };
  const credentials = Object.fromEntries(
    ['readCredentialRef', 'publicationReadCredentialRef', 'publicationCredentialRef', 'forgeCredentialRef'].map((name) => [
      name,
      reference,
    ]),
  );
  const objects = [
    ...['Secret', 'ConfigMap', 'ServiceAccount', 'PersistentVolumeClaim'].map((kind) => object('v1', kind, 'referred')),
    object(core, 'Agent', 'referred', {
      spec: {
        ...fullAgent.spec,
        secretRef: reference,
        systemPrompt: { configMapRef: { name: 'referred', key: 'k' } },
        skills: [{ name: 's', configMapRef: { name: 'referred', key: 'k' } }],
        coordination: { enabled: true, allowedAgents: [reference] },
        providerRef: undefined,
        tools: undefined,
        model: undefined,
        execution: undefined,
      },
    }),
    object(core, 'Task', 'referred', {
      spec: {
        agentRef: reference,
        priorTaskRef: reference,
        secretRef: reference,
        workspace: credentials,
        env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'referred', key: 'k' } } }],
      },
    }),
    object(core, 'RuntimePoolClass', 'referred', {
      spec: {
        ...fullClass.spec,
        providerProxy: { ...fullClass.spec.providerProxy, tokenSecretRef: { name: 'referred', key: 'token' } },
      },
    }),
    object(extensions, 'SandboxTemplate', 'referred', { spec: { podTemplate: { spec: podSpec } } }),
    object(extensions, 'SandboxWarmPool', 'referred', { spec: { sandboxTemplateRef: reference } }),
    object(extensions, 'SandboxClaim', 'referred', { spec: { warmPoolRef: reference } }),
    object('agents.x-k8s.io/v1beta1', 'Sandbox', 'referred', { spec: { podTemplate: { spec: podSpec } } }),
  ];
  const kustomization = (components: readonly string[]) => ({ namePrefix: 'pre-', resources: ['objects.yaml'], components });
  const left = (manifests: readonly Manifest[]) =>
    manifests.flatMap((manifest) =>
      texts(manifest).flatMap(([path, text]) => (text === 'referred' ? [`${manifest.kind}${path}`] : [])),
    );

  withKubectl('every reference of our kinds and of the provider', () => {
    const manifests = built(kustomization(['../gitops/kustomize']), objects);
    expect(manifests).toHaveLength(objects.length);
    expect(left(manifests)).toEqual([]);
    expect(new Set(manifests.map(({ metadata }) => metadata.name))).toEqual(new Set(['pre-referred']));
  });

  withKubectl('none of them without the component', () => {
    expect(left(built(kustomization([]), objects)).length).toBeGreaterThan(30);
  });

  withKubectl('no reference to something that the kustomization does not make', () => {
    const [task] = built(kustomization(['../gitops/kustomize']), [object(core, 'Task', 'referred', { spec: fullTask.spec })]);
    expect(task?.['spec']).toMatchObject({ agentRef: fullTask.spec.agentRef, secretRef: fullTask.spec.secretRef });
  });
});

withKubectl(`the output goes through kustomize without loss${noKubectl}`, () => {
  const manifests = built({ resources: ['../dist'] });
  const written = ['0000-crds', '0001-install', '0002-classes'].flatMap(
    (name) => spawnSync('cat', [join(folder, `dist/apply/${name}.k8s.yaml`)], { encoding: 'utf8' }).stdout,
  );
  const wanted = written.flatMap((text) => readYaml(text, 'dist').map(({ value }) => value as Manifest));
  const key = ({ kind, metadata }: Manifest) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
  const byKey = (all: readonly Manifest[]) => Object.fromEntries(all.map((one) => [key(one), one]));
  expect(byKey(manifests)).toEqual(byKey(wanted));
});

withKubectl(`sync waves are annotations, beside those that are there${noKubectl}`, () => {
  const extra = [object(extensions, 'SandboxClaim', 'x'), object(core, 'Task', 'x'), object(core, 'Agent', 'x')];
  const annotated = { ...object(extensions, 'SandboxTemplate', 'x'), metadata: { name: 'x', annotations: { own: 'yes' } } };
  const manifests = built({ resources: ['../dist', 'objects.yaml'], components: ['../gitops/sync-waves'] }, [
    ...extra,
    annotated,
  ]);
  const waves = new Map(
    manifests.map(({ kind, metadata }) => [kind, metadata.annotations?.['argocd.argoproj.io/sync-wave'] ?? '0']),
  );
  expect(Object.fromEntries(waves)).toEqual({
    Namespace: '-3',
    CustomResourceDefinition: '-3',
    NetworkPolicy: '-2',
    SandboxTemplate: '-1',
    ServiceAccount: '0',
    ClusterRole: '0',
    ClusterRoleBinding: '0',
    Role: '0',
    RoleBinding: '0',
    Service: '0',
    Deployment: '0',
    RuntimePoolClass: '1',
    Agent: '1',
    SandboxClaim: '1',
    Task: '2',
  });
  expect(manifests.find(({ kind }) => kind === 'SandboxTemplate')?.metadata.annotations).toMatchObject({ own: 'yes' });
});

withKubectl(`the health checks are added to the ConfigMap of Argo CD${noKubectl}`, () => {
  const argocd = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'argocd-cm', namespace: 'argocd' },
    data: { url: 'x' },
  };
  const [merged, ...others] = built({ resources: ['objects.yaml'], components: ['../gitops/argocd'] }, [argocd]);
  expect(others).toEqual([]);
  expect(merged?.metadata.name).toBe('argocd-cm');
  expect(Object.keys(merged?.['data'] as object).sort()).toEqual([
    'resource.customizations.health.core.orka.ai_RuntimePool',
    'resource.customizations.health.core.orka.ai_RuntimePoolClass',
    'resource.customizations.health.core.orka.ai_Task',
    'url',
  ]);
});
