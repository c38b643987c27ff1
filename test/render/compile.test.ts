import { describe, expect, test } from '@jest/globals';
import { Testing } from 'cdk8s';
import fc from 'fast-check';
import type { ClassPatch, Manifest, RuntimePoolClassSpec } from '../../src/api/index.js';
import { PlainPool } from '../../src/constructs/plain-pool.js';
import { WorkspacePool } from '../../src/constructs/workspace-pool.js';
import { RenderError } from '../../src/constructs/errors.js';
import { factNames } from '../../src/domain/facts.js';
import type { Facts, PlainFacts, WorkspaceFacts } from '../../src/domain/facts.js';
import { placeholder } from '../../src/domain/placeholders.js';
import { canonicalJson } from '../../src/lib/canonical-json.js';
import type { Json } from '../../src/lib/json.js';
import { classDigest, compile, objectsOf } from '../../src/render/compile.js';
import { instantiate, renderedObjects } from '../../src/render/instantiate.js';
import { poolClass, workspaceFacts } from '../support/objects.js';

/** The same pool from the constructs alone. */
function fromConstructs(
  of: RuntimePoolClassSpec,
  facts: Facts,
): { objects: Manifest[]; secrets: unknown; templateRevision: string } {
  const chart = Testing.chart();
  if ('bootstrapNonce' in facts) {
    const pool = new WorkspacePool(chart, 'pool', { poolClass: of, facts: facts });
    const resources = [...pool.isolation.resources, pool.template.resource, pool.warmPool.resource, pool.claim.resource];
    return {
      objects: resources.map((resource) => resource.manifest()),
      secrets: pool.secrets,
      templateRevision: pool.templateRevision,
    };
  }
  const pool = new PlainPool(chart, 'pool', { poolClass: of, facts: facts });
  return {
    objects: [...pool.isolation.resources, pool.deployment].map((resource) => resource.manifest()),
    secrets: pool.secrets,
    templateRevision: pool.templateRevision,
  };
}

const label = fc.stringMatching(/^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$/);
const free = fc.string({ unit: 'grapheme', maxLength: 40 });
const inLabels = ['poolNamespace', 'poolName', 'poolUid', 'poolKey', 'controllerEpoch', 'tokenGeneration'];
const facts = (names: readonly string[]): fc.Arbitrary<Record<string, string>> =>
  fc.record(Object.fromEntries(names.map((name) => [name, name.endsWith('Name') || inLabels.includes(name) ? label : free])));
const classes: fc.Arbitrary<RuntimePoolClassSpec> = fc
  .record({
    kind: fc.constantFrom('codex' as const, 'opencode' as const),
    disruptionBudget: fc.boolean(),
    tolerations: fc.array(fc.record({ key: fc.constant('dedicated'), operator: fc.constant('Exists' as const) }), {
      maxLength: 2,
    }),
    patched: fc.boolean(),
  })
  .map(({ kind, disruptionBudget, tolerations, patched }) => {
    const base = poolClass();
    const patches: ClassPatch[] = patched
      ? [
          {
            target: { kind: 'SandboxTemplate' },
            operations: [{ op: 'add', path: '/spec/podTemplate/spec/priorityClassName', value: 'agents' }],
          },
        ]
      : [];
    return poolClass({
      providerKind: kind,
      disruptionBudget,
      patches,
      pod: { ...base.pod, placement: { nodeSelector: {}, tolerations } },
    });
  });

describe('instantiating a compiled class gives what the constructs give on the same facts', () => {
  test('for workspace pools', () => {
    fc.assert(
      fc.property(classes, facts(factNames.workspace), (of, values) => {
        const compiled = compile(of);
        const pool = values as unknown as WorkspaceFacts;
        const rendered = instantiate(compiled, pool, compiled.frozen);
        expect({
          objects: renderedObjects(rendered),
          secrets: rendered.secrets,
          templateRevision: rendered.templateRevision,
        }).toEqual(fromConstructs(of, pool));
      }),
      { numRuns: 40 },
    );
  });

  test('for plain pools', () => {
    fc.assert(
      fc.property(classes, facts(factNames.plain), fc.constantFrom(0, 1), (of, values, replicas) => {
        const compiled = compile(of);
        const pool = { ...values, replicas } as unknown as PlainFacts;
        const rendered = instantiate(compiled, pool, compiled.frozen);
        expect({
          objects: renderedObjects(rendered),
          secrets: rendered.secrets,
          templateRevision: rendered.templateRevision,
        }).toEqual(fromConstructs(of, pool));
      }),
      { numRuns: 40 },
    );
  });
});

describe('a compiled class', () => {
  test('differs from every pool of it only in whole leaves', () => {
    const compiled = compile(poolClass());
    const rendered = renderedObjects(instantiate(compiled, workspaceFacts(), compiled.frozen));
    objectsOf(compiled.workspace).forEach(({ manifest, leaves }, index) => {
      const differing = new Set(differences(manifest, rendered[index]));
      expect([...differing].sort()).toEqual(leaves.map(({ path }) => path.join('/')).sort());
    });
  });

  test('has the same digest every time, and another one after any change of its settings', () => {
    const digest = classDigest(compile(poolClass()));
    expect(classDigest(compile(poolClass()))).toBe(digest);
    const changes: Partial<RuntimePoolClassSpec>[] = [
      { disruptionBudget: false },
      { attestation: 'AdmissionAware' },
      { workspace: { maxArtifactBytes: 1 } },
      {
        patches: [{ target: { kind: 'Service' }, operations: [{ op: 'add', path: '/metadata/annotations', value: { a: 'b' } }] }],
      },
    ];
    for (const change of changes) expect(classDigest(compile(poolClass(change)))).not.toBe(digest);
  });

  test('has a digest that does not depend on the digests that are approved', () => {
    expect(classDigest(compile(poolClass({ approvedDigests: [`sha256:${'e'.repeat(64)}`] })))).toBe(
      classDigest(compile(poolClass())),
    );
  });

  test('names no Secret in any object that the provider sees', () => {
    const compiled = compile(poolClass());
    const values = workspaceFacts({ authSecretName: 'hidden-auth', providerSecretName: 'hidden-provider' });
    const rendered = instantiate(compiled, values, compiled.frozen);
    expect(JSON.stringify(renderedObjects(rendered))).not.toContain('hidden');
    expect(rendered.secrets.map(({ manifest }) => manifest.metadata.name)).toEqual(['hidden-auth', 'hidden-provider']);
  });

  test('is refused when its settings look like a place-holder', () => {
    const spec = poolClass();
    const like = poolClass({ network: { ...spec.network, dns: { namespace: placeholder('poolName'), podLabels: { a: 'b' } } } });
    expect(() => compile(like)).toThrow(expect.objectContaining({ code: 'fact-misplaced' }));
  });

  test('is refused with the field, what was found and what is allowed', () => {
    const tagged = poolClass({
      runtime: { image: 'registry.example/acp-codex:latest', adapterDigests: { a: `sha256:${'1'.repeat(64)}` } },
    });
    expect(() => compile(tagged)).toThrow(
      /RuntimePoolClass codex\/standard: spec.runtime.image: found "registry.example\/acp-codex:latest", allowed: /,
    );
    const outside = poolClass({ providerProxy: { ...poolClass().providerProxy, url: 'http://evil.example:1337' } });
    expect(() => compile(outside)).toThrow(/spec.providerProxy.url: found "http:\/\/evil.example:1337", allowed: .*vekil-system/);
  });
});

describe('a class with artifacts', () => {
  const artifacts = {
    namespace: 'orka-publisher',
    podLabels: { 'orka.ai/network-role': 'workspace-publisher' },
    url: 'http://orka-publisher.orka-publisher.svc:8080/',
    port: 8080,
  };
  const network = { ...poolClass().network, artifacts };
  const objects = (spec: RuntimePoolClassSpec, family: 'workspace' | 'plain') =>
    objectsOf(compile(spec)[family]).map(({ manifest }) => manifest);
  const named = (manifests: readonly Manifest[]) => manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  const extra = `NetworkPolicy ${placeholder('artifactEgressName')}`;

  test.each(['workspace', 'plain'] as const)('has one more policy in a %s pool, before the budget and the workload', (family) => {
    const without = named(objects(poolClass(), family));
    const found = named(objects(poolClass({ network }), family));
    expect(found.filter((name) => name !== extra)).toEqual(without);
    expect(found.indexOf(extra)).toBe(found.indexOf(`NetworkPolicy ${placeholder('controllerEgressName')}`) + 1);
  });

  test('opens the port of the publisher, and nothing else, to its sandboxes', () => {
    const policy = objects(poolClass({ network }), 'workspace').find(
      ({ metadata }) => metadata.name === placeholder('artifactEgressName'),
    );
    expect(policy?.['spec']).toEqual({
      podSelector: { matchLabels: { 'orka.ai/runtime-pool-key': placeholder('poolKey') } },
      policyTypes: ['Egress'],
      egress: [
        {
          to: [
            {
              namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'orka-publisher' } },
              podSelector: { matchLabels: { 'orka.ai/network-role': 'workspace-publisher' } },
            },
          ],
          ports: [{ protocol: 'TCP', port: 8080 }],
        },
      ],
    });
  });

  test('tells its supervisors where to download, and other classes name the controller as before', () => {
    const url = (spec: RuntimePoolClassSpec) =>
      /"ORKA_ACP_ARTIFACT_API_URL","value":"([^"]*)"/.exec(JSON.stringify(objects(spec, 'workspace')))?.[1];
    expect(url(poolClass({ network }))).toBe('http://orka-publisher.orka-publisher.svc:8080');
    expect(url(poolClass())).toBe('http://orka-api.orka-system.svc:8080');
  });

  test('has a digest of its own; that of a class without artifacts is the one of earlier versions', () => {
    expect(classDigest(compile(poolClass()))).toBe('sha256:0e439084174f8696f6b7edfe3dc0dc143c08850e240ffcf10ac652ad43427854');
    expect(classDigest(compile(poolClass({ network })))).not.toBe(classDigest(compile(poolClass())));
  });

  test.each([
    ['url', { ...artifacts, url: 'http://orka-publisher.other.svc:8080' }, 'orka-publisher'],
    ['podLabels', { ...artifacts, podLabels: {} }, 'podLabels, addresses or both'],
    ['podLabels', { ...artifacts, podLabels: { 'a b': 'c' } }, ''],
    ['addresses', { ...artifacts, addresses: ['169.254.169.254/32'] }, 'metadata service'],
    ['', { ...artifacts, namespace: 'orka-runtimes', url: 'http://orka-publisher.orka-runtimes.svc:8080' }, 'of its own'],
  ])('is refused for a bad %s', (member, bad, allowed) => {
    expect(() => compile(poolClass({ network: { ...network, artifacts: bad as unknown as typeof artifacts } }))).toThrow(
      new RegExp(`spec.network.${member === '' ? 'runtimeNamespace' : `artifacts.${member}`}.*${allowed}`),
    );
  });

  test('may add peers to the sixth policy by a patch, and no range of addresses', () => {
    const patched = (value: Json) =>
      poolClass({
        network,
        patches: [
          {
            target: { kind: 'NetworkPolicy', suffix: 'artifact-egress' },
            operations: [{ op: 'add', path: '/spec/egress/0/to/-', value }],
          },
        ],
      });
    expect(() => compile(patched({ ipBlock: { cidr: '10.0.0.0/8' } }))).toThrow(/no ipBlock/);
    const pods = { namespaceSelector: { matchLabels: { a: 'b' } }, podSelector: { matchLabels: { c: 'd' } } };
    expect(() => compile(patched(pods))).not.toThrow();
  });
});

describe('the revision of a template', () => {
  const revision = (facts: WorkspaceFacts, spec = poolClass()) => {
    const compiled = compile(spec);
    return instantiate(compiled, facts, compiled.frozen).templateRevision;
  };

  test('is the canonical digest of the template without it', () => {
    const compiled = compile(poolClass());
    const { workload, templateRevision } = instantiate(compiled, workspaceFacts(), compiled.frozen);
    const { podTemplate } = (
      workload[0] as unknown as { spec: { podTemplate: { metadata: { annotations: Record<string, string> } } } }
    ).spec;
    const { 'orka.ai/runtime-template-revision': written, ...annotations } = podTemplate.metadata.annotations;
    expect(written).toBe(templateRevision);
    expect(canonicalJson({ ...podTemplate, metadata: { ...podTemplate.metadata, annotations } }).length).toBeGreaterThan(1000);
  });

  test.each([
    'bootstrapPublicKey',
    'bootstrapNonce',
    'controllerEpoch',
    'tokenGeneration',
    'profileDigest',
    'poolGeneration',
  ] as const)('changes when only %s changes', (name) => {
    expect(revision(workspaceFacts({ [name]: 'other' }))).not.toBe(revision(workspaceFacts()));
  });

  test('does not change with the names of objects around the Pod', () => {
    expect(revision(workspaceFacts({ claimName: 'other', authSecretName: 'another' }))).toBe(revision(workspaceFacts()));
  });
});

test('a pool that was frozen with other values than the class has is refused by field', () => {
  const compiled = compile(poolClass());
  expect(() => instantiate(compiled, workspaceFacts(), { ...compiled.frozen, image: 'other' })).toThrow(
    /spec.runtime.image: found "other"/,
  );
  expect(() => instantiate(compiled, workspaceFacts(), { ...compiled.frozen, adapterDigests: {} })).toThrow(
    expect.objectContaining({ code: 'frozen-value' }),
  );
});

test('what two pools share is frozen', () => {
  const compiled = compile(poolClass());
  const [first] = instantiate(compiled, workspaceFacts(), compiled.frozen).isolation;
  expect(() => ((first as unknown as { spec: { ports: { port: number }[] } }).spec.ports[0] = { port: 1 })).toThrow(TypeError);
});

describe('a patch of a class', () => {
  const patched = (patch: ClassPatch) => compile(poolClass({ patches: [patch] }));
  const template = (...operations: ClassPatch['operations'][number][]): ClassPatch => ({
    target: { kind: 'SandboxTemplate' },
    operations,
  });
  const at = '/spec/podTemplate';
  const container = `${at}/spec/containers/0`;
  const env = `${container}/env`;
  const policy = (suffix: string, operation: ClassPatch['operations'][number]): ClassPatch => ({
    target: { kind: 'NetworkPolicy', suffix },
    operations: [operation],
  });

  test('is part of the compiled objects and of the revision', () => {
    const compiled = patched(template({ op: 'add', path: '/spec/podTemplate/spec/priorityClassName', value: 'agents' }));
    const facts = workspaceFacts();
    const rendered = instantiate(compiled, facts, compiled.frozen);
    expect(rendered.workload[0]).toHaveProperty('spec.podTemplate.spec.priorityClassName', 'agents');
    const plain = compile(poolClass());
    expect(rendered.templateRevision).not.toBe(instantiate(plain, facts, plain.frozen).templateRevision);
  });

  test('may add a variable, before or after those of the contract', () => {
    for (const path of [`${env}/0`, `${env}/-`])
      expect(() => patched(template({ op: 'add', path, value: { name: 'HTTPS_PROXY', value: '' } }))).not.toThrow();
  });

  test.each([
    ['the name', { op: 'replace', path: '/metadata/name', value: 'x' }],
    ['an identity label', { op: 'remove', path: '/metadata/labels/orka.ai~1runtime-pool-uid' }],
    ['a label of the Pod', { op: 'add', path: `${at}/metadata/labels/x`, value: 'y' }],
    ['a fact in the environment', { op: 'replace', path: `${env}/4/value`, value: '7' }],
    ['a variable that is there', { op: 'replace', path: `${env}/12`, value: { name: 'A', value: 'b' } }],
    ['the whole environment', { op: 'replace', path: env, value: [] }],
    ['everything', { op: 'replace', path: '/spec', value: {} }],
    ['a fact, by copying it', { op: 'copy', from: `${env}/4`, path: `${env}/-` }],
    [
      'a fact, by moving it',
      { op: 'move', from: `${at}/metadata/annotations/orka.ai~1runtime-profile-digest`, path: `${at}/metadata/annotations/x` },
    ],
    ['an annotation that carries a fact', { op: 'remove', path: `${at}/metadata/annotations/orka.ai~1runtime-profile-digest` }],
    ['the image', { op: 'replace', path: `${container}/image`, value: `evil.example/x@sha256:${'e'.repeat(64)}` }],
    ['the containers', { op: 'add', path: `${at}/spec/containers/-`, value: { name: 'x', image: 'x' } }],
    ['the command', { op: 'add', path: `${container}/command`, value: ['/bin/sh'] }],
    ['the security context', { op: 'replace', path: `${container}/securityContext/privileged`, value: true }],
    ['the limits', { op: 'replace', path: `${container}/resources/limits/cpu`, value: '-1' }],
    ['where probes go', { op: 'add', path: `${container}/livenessProbe/httpGet/host`, value: '169.254.169.254' }],
    ['host ports', { op: 'add', path: `${container}/ports/0/hostPort`, value: 8080 }],
    ['host aliases', { op: 'add', path: `${at}/spec/hostAliases`, value: [{ ip: '1.2.3.4', hostnames: ['vekil'] }] }],
    ['DNS', { op: 'add', path: `${at}/spec/dnsConfig`, value: { nameservers: ['8.8.8.8'] } }],
    ['the service account', { op: 'add', path: `${at}/spec/serviceAccount`, value: 'x' }],
    ['the token', { op: 'replace', path: `${at}/spec/automountServiceAccountToken`, value: true }],
    ['the node', { op: 'add', path: `${at}/spec/nodeName`, value: 'x' }],
    ['the node selector of the contract', { op: 'replace', path: `${at}/spec/nodeSelector/kubernetes.io~1os`, value: 'windows' }],
    ['volume claims', { op: 'add', path: '/spec/volumeClaimTemplates', value: [] }],
    ['who isolates the sandbox', { op: 'replace', path: '/spec/networkPolicyManagement', value: 'Managed' }],
    ['finalizers', { op: 'add', path: '/metadata/finalizers', value: ['x/y'] }],
    ['owners', { op: 'add', path: '/metadata/ownerReferences', value: [] }],
    ['what the API does not have', { op: 'add', path: '/unknown', value: 1 }],
  ] as const)('may not touch %s', (_, operation) => {
    expect(() => patched(template(operation))).toThrow(expect.objectContaining({ code: 'patch-refused' }));
  });

  test.each([
    ['SandboxClaim', undefined, { op: 'add', path: '/spec/additionalPodMetadata', value: { labels: { a: 'b' } } }],
    ['SandboxWarmPool', undefined, { op: 'replace', path: '/spec/replicas', value: 5 }],
    ['NetworkPolicy', 'deny-all', { op: 'add', path: '/spec/egress/-', value: {} }],
    ['Secret', undefined, { op: 'add', path: '/data', value: {} }],
    ['NetworkPolicy', 'control-in', { op: 'add', path: '/spec/policyTypes/-', value: 'Egress' }],
    ['NetworkPolicy', 'dns-egress', { op: 'add', path: '/spec/podSelector/matchLabels/x', value: 'y' }],
    ['Service', undefined, { op: 'replace', path: '/spec/type', value: 'LoadBalancer' }],
    ['PodDisruptionBudget', undefined, { op: 'replace', path: '/spec/minAvailable', value: 0 }],
  ] as const)('may not touch a %s (%s) so', (kind, suffix, operation) => {
    const patch = { target: { kind, ...(suffix ? { suffix } : {}) }, operations: [operation] };
    expect(() => patched(patch)).toThrow(expect.objectContaining({ code: 'patch-refused' }));
  });

  test('may open another path to named Pods of a named namespace, port by port', () => {
    const path = {
      to: [{ namespaceSelector: { matchLabels: { a: 'b' } }, podSelector: { matchLabels: { c: 'd' } } }],
      ports: [{ protocol: 'TCP', port: 443 }],
    };
    const compiled = patched(policy('provider-proxy-egress', { op: 'add', path: '/spec/egress/-', value: path }));
    expect(JSON.stringify(compiled.workspace.isolation)).toContain('443');
  });

  test.each([
    ['a rule without peers', { op: 'replace', path: '/spec/egress/0/to', value: [] }],
    ['a rule without ports', { op: 'replace', path: '/spec/egress/0/ports', value: [] }],
    ['a whole namespace', { op: 'replace', path: '/spec/egress/0/to/0/podSelector', value: {} }],
    ['Pods of all namespaces', { op: 'remove', path: '/spec/egress/0/to/0/namespaceSelector' }],
    ['an address range', { op: 'add', path: '/spec/egress/0/to/-', value: { ipBlock: { cidr: '0.0.0.0/0' } } }],
    ['a range of ports', { op: 'add', path: '/spec/egress/0/ports/0/endPort', value: 65535 }],
    ['what is no rule', { op: 'add', path: '/spec/egress/-', value: null }],
    ['what is no list', { op: 'replace', path: '/spec/egress', value: 'x' }],
  ] as const)('is refused when it leaves %s', (_, operation) => {
    expect(() => patched(policy('dns-egress', operation))).toThrow(expect.objectContaining({ code: 'rule-violated' }));
  });

  test.each([
    ['a host path', { op: 'add', path: `${at}/spec/volumes/-`, value: { name: 'x', hostPath: { path: '/' } } }],
    [
      'a volume with a second source',
      { op: 'add', path: `${at}/spec/volumes/-`, value: { name: 'x', emptyDir: { sizeLimit: '1Gi' }, hostPath: { path: '/' } } },
    ],
    ['a volume without a size', { op: 'add', path: `${at}/spec/volumes/-`, value: { name: 'x', emptyDir: { sizeLimit: null } } }],
    [
      'a volume of a name that is there',
      { op: 'add', path: `${at}/spec/volumes/-`, value: { name: 'tmp', emptyDir: { sizeLimit: '1Gi' } } },
    ],
    [
      'a mount over ours by a detour',
      { op: 'add', path: `${container}/volumeMounts/-`, value: { name: 'tmp', mountPath: '/x/../sessions' } },
    ],
    ['a mount over ours', { op: 'add', path: `${container}/volumeMounts/-`, value: { name: 'tmp', mountPath: '/sessions/x' } }],
    [
      'a credential from a Secret',
      { op: 'add', path: `${env}/-`, value: { name: 'K', valueFrom: { secretKeyRef: { name: 'a', key: 'b' } } } },
    ],
    [
      'a field and a Secret',
      {
        op: 'add',
        path: `${env}/-`,
        value: { name: 'K', valueFrom: { fieldRef: { fieldPath: 'x' }, secretKeyRef: { name: 'a', key: 'b' } } },
      },
    ],
    [
      'a variable of ours',
      { op: 'add', path: `${env}/-`, value: { name: 'ORKA_ACP_PROVIDER_PROXY_BASE_URL', value: 'http://evil' } },
    ],
    ['a new variable in our name', { op: 'add', path: `${env}/-`, value: { name: 'ORKA_ACP_NEW', value: 'x' } }],
    ...(
      [
        ['NODE_OPTIONS', '--inspect=0.0.0.0'],
        ['NODE_TLS_REJECT_UNAUTHORIZED', '0'],
        ['LD_PRELOAD', '/tmp/x.so'],
      ] as const
    ).map(([name, value]) => [`the variable ${name}`, { op: 'add', path: `${env}/-`, value: { name, value } }] as const),
    ['a network annotation', { op: 'add', path: `${at}/metadata/annotations/k8s.v1.cni.cncf.io~1networks`, value: 'evil' }],
    ['null among the variables', { op: 'add', path: `${env}/-`, value: null }],
  ] as const)('is refused when it brings %s', (_, operation) => {
    expect(() => patched(template(operation))).toThrow(expect.objectContaining({ code: 'rule-violated' }));
  });

  test('is refused for a Deployment as for a template', () => {
    const operation = {
      op: 'add' as const,
      path: '/spec/template/spec/containers/0/env/-',
      value: { name: 'ORKA_ACP_MODEL', value: 'evil' },
    };
    expect(() => patched({ target: { kind: 'Deployment' }, operations: [operation] })).toThrow(
      expect.objectContaining({ code: 'rule-violated' }),
    );
  });

  test('fails when a test in it does not hold, also for objects', () => {
    const asking = (value: Json) => () => patched(template({ op: 'test', path: `${at}/spec/nodeSelector`, value }));
    expect(asking({ 'kubernetes.io/os': 'linux' })).not.toThrow();
    for (const value of [{ not: 'there' }, null, []])
      expect(asking(value)).toThrow(expect.objectContaining({ code: 'patch-failed' }));
  });

  test.each([
    ['add', `${at}/spec/priorityClassName`],
    ['replace', `${at}/spec/terminationGracePeriodSeconds`],
  ] as const)('fails when %s has no value', (op, path) => {
    expect(() => patched(template({ op, path }))).toThrow(RenderError);
  });

  test('applies as a whole or not at all', () => {
    const failing = template(
      { op: 'add', path: '/spec/podTemplate/spec/priorityClassName', value: 'x' },
      { op: 'test', path: '/spec/service', value: true },
    );
    expect(() => patched(failing)).toThrow(expect.objectContaining({ code: 'patch-failed' }));
  });

  test('names exactly one object', () => {
    expect(() =>
      patched({ target: { kind: 'NetworkPolicy' }, operations: [{ op: 'test', path: '/kind', value: 'NetworkPolicy' }] }),
    ).toThrow(/suffix control-in/);
    expect(() => patched({ target: { kind: 'Ingress' }, operations: [{ op: 'test', path: '/kind', value: 'x' }] })).toThrow(
      RenderError,
    );
  });
});

function differences(a: Json | undefined, b: Json | undefined, path = ''): string[] {
  if (typeof a === 'object' && a !== null && typeof b === 'object' && b !== null) {
    const names = new Set([...Object.keys(a), ...Object.keys(b)]);
    return [...names].flatMap((name) =>
      differences((a as Record<string, Json>)[name], (b as Record<string, Json>)[name], path === '' ? name : `${path}/${name}`),
    );
  }
  return a === b ? [] : [path];
}
