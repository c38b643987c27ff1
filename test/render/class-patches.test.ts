import { beforeAll, describe, expect, test } from '@jest/globals';
import type { ClassPatch, Manifest, RuntimePoolClassSpec } from '../../src/api/index.js';
import { checkSchema, isSchemaKind } from '../../src/constructs/check-schema.js';
import type { Json } from '../../src/lib/json.js';
import { compile } from '../../src/render/compile.js';
import { objectsOfClass, acceptedObjects, sampleClasses } from '../support/patched-classes.js';
import { poolClass } from '../support/objects.js';

type Operation = ClassPatch['operations'][number];

const add = (path: string, value: Json): Operation => ({ op: 'add', path, value });
const refusal = (spec: RuntimePoolClassSpec): string => {
  try {
    compile(spec);
  } catch (error) {
    return (error as Error).message;
  }
  return 'accepted';
};
const scratch = { name: 'cache', emptyDir: { sizeLimit: '1Gi' } };
const mount = (options: Readonly<Record<string, Json>>): readonly Operation[] => [
  add('/spec/volumes/-', scratch),
  add('/spec/containers/0/volumeMounts/-', { name: 'cache', mountPath: '/cache', ...options }),
];
const one = (path: string, value: Json): readonly Operation[] => [add(path, value)];
const required = 'requiredDuringSchedulingIgnoredDuringExecution';
const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
const spread = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' };

/** Operations below the Pod template; the field that is wrong, what stands there, and what may. */
const wrong: readonly (readonly [string, readonly Operation[], string, RegExp])[] = [
  [
    'a number as the value of a variable',
    one('/spec/containers/0/env/0', { name: 'X', value: 5 }),
    'spec.containers[0].env[0].value',
    /found 5, allowed: text/,
  ],
  [
    'a name of a variable that is none',
    one('/spec/containers/0/env/0', { name: 'A=B', value: '' }),
    'spec.containers[0].env',
    /found "A=B", allowed: .*without "="/,
  ],
  [
    'a misspelled member of a variable',
    one('/spec/containers/0/env/0', { name: 'X', valu: '' }),
    'spec.containers[0].env[0].valu',
    /no such field \(did you mean value\?\)/,
  ],
  ['text as tolerations', one('/spec/tolerations', 'all'), 'spec.tolerations', /found "all", allowed: a list/],
  [
    'a toleration of nothing',
    one('/spec/tolerations', [{ operator: 'Equal' }]),
    'spec.tolerations[0].key',
    /found nothing, allowed: a key, or operator Exists/,
  ],
  [
    'a toleration that exists with a value',
    one('/spec/tolerations', [{ key: 'a', operator: 'Exists', value: 'b' }]),
    'spec.tolerations[0].value',
    /found "b"/,
  ],
  [
    'a toleration with an unknown effect',
    one('/spec/tolerations', [{ operator: 'Exists', effect: 'Never' }]),
    'spec.tolerations[0].effect',
    /found "Never", allowed: NoExecute, NoSchedule or PreferNoSchedule/,
  ],
  [
    'seconds of a toleration that evicts nobody',
    one('/spec/tolerations', [{ operator: 'Exists', tolerationSeconds: 5 }]),
    'spec.tolerations[0].tolerationSeconds',
    /found 5, allowed: .*NoExecute/,
  ],
  ['a number as affinity', one('/spec/affinity', 3), 'spec.affinity', /found 3, allowed: an object/],
  [
    'a node affinity without terms',
    one('/spec/affinity', { nodeAffinity: { [required]: { nodeSelectorTerms: [] } } }),
    `spec.affinity.nodeAffinity.${required}.nodeSelectorTerms`,
    /at least one term/,
  ],
  [
    'a weight of 0',
    one('/spec/affinity', { podAffinity: { [preferred]: [{ weight: 0, podAffinityTerm: { topologyKey: 'a' } }] } }),
    `spec.affinity.podAffinity.${preferred}[0].weight`,
    /found 0, allowed: 1 to 100/,
  ],
  [
    'a label key for both sides',
    one('/spec/affinity', {
      podAntiAffinity: { [required]: [{ topologyKey: 'a', labelSelector: {}, matchLabelKeys: ['x'], mismatchLabelKeys: ['x'] }] },
    }),
    `spec.affinity.podAntiAffinity.${required}[0].matchLabelKeys`,
    /found "x"/,
  ],
  [
    'a skew of 0',
    one('/spec/topologySpreadConstraints', [{ ...spread, maxSkew: 0 }]),
    'spec.topologySpreadConstraints[0].maxSkew',
    /found 0, allowed: at least 1/,
  ],
  [
    'domains of a constraint that schedules anyway',
    one('/spec/topologySpreadConstraints', [{ ...spread, whenUnsatisfiable: 'ScheduleAnyway', minDomains: 2 }]),
    'spec.topologySpreadConstraints[0].minDomains',
    /DoNotSchedule only/,
  ],
  ['a number as priority class', one('/spec/priorityClassName', 5), 'spec.priorityClassName', /found 5, allowed: text/],
  [
    'a name of a priority class that is none',
    one('/spec/priorityClassName', 'Not_A_Name'),
    'spec.priorityClassName',
    /found "Not_A_Name", allowed: a DNS subdomain/,
  ],
  [
    'an unknown preemption policy',
    one('/spec/preemptionPolicy', 'Sometimes'),
    'spec.preemptionPolicy',
    /allowed: Never or PreemptLowerPriority/,
  ],
  ['text as hostUsers', one('/spec/hostUsers', 'no'), 'spec.hostUsers', /found "no", allowed: true or false/],
  ['null as hostUsers', one('/spec/hostUsers', null), 'spec.hostUsers', /found null/],
  [
    'a pull secret that no Secret can be',
    one('/spec/imagePullSecrets', [{ name: '' }]),
    'spec.imagePullSecrets',
    /names of Secrets/,
  ],
  ['a label of nodes with a space', one('/spec/nodeSelector/pool', 'a b'), 'spec.nodeSelector[pool]', /found "a b"/],
  [
    'a fraction of a second',
    one('/spec/terminationGracePeriodSeconds', 1.5),
    'spec.terminationGracePeriodSeconds',
    /found 1.5, allowed: an integer/,
  ],
  [
    'a negative period',
    one('/spec/containers/0/livenessProbe/periodSeconds', -1),
    'spec.containers[0].livenessProbe.periodSeconds',
    /found -1, allowed: a number from 0/,
  ],
  [
    'mounts that reach the node',
    mount({ mountPropagation: 'Bidirectional' }),
    'spec.containers[0].volumeMounts[3].mountPropagation',
    /found "Bidirectional", allowed: None or HostToContainer/,
  ],
  [
    'an unknown word of propagation',
    mount({ mountPropagation: 'Both' }),
    'spec.containers[0].volumeMounts[3].mountPropagation',
    /allowed: Bidirectional, HostToContainer or None/,
  ],
  [
    'a path out of its volume',
    mount({ subPath: '../etc' }),
    'spec.containers[0].volumeMounts[3].subPath',
    /relative path without/,
  ],
  [
    'a mount that is recursively read-only and writable',
    mount({ recursiveReadOnly: 'Enabled' }),
    'spec.containers[0].volumeMounts[3].recursiveReadOnly',
    /found "Enabled"/,
  ],
  [
    'a volume whose name is none',
    one('/spec/volumes/-', { ...scratch, name: 'Bad_Name' }),
    'spec.volumes[3].name',
    /found "Bad_Name", allowed: a DNS label/,
  ],
  [
    'a size that is none',
    one('/spec/volumes/-', { name: 'cache', emptyDir: { sizeLimit: '1 GB' } }),
    'spec.volumes[3].emptyDir.sizeLimit',
    /found "1 GB", allowed: a quantity/,
  ],
  [
    'an unknown medium',
    one('/spec/volumes/-', { name: 'cache', emptyDir: { sizeLimit: '1Gi', medium: 'Tape' } }),
    'spec.volumes',
    /found .*Tape.*, allowed: emptyDir/,
  ],
  ['a number as an annotation', one('/metadata/annotations/team', 5), 'metadata.annotations.team', /found 5, allowed: text/],
  [
    'a key of an annotation that is none',
    one('/metadata/annotations/a b', 'x'),
    'metadata.annotations',
    /found "a b", allowed: a qualified name/,
  ],
  [
    'a number of a probe that the API server replaces',
    [{ op: 'replace', path: '/spec/containers/0/livenessProbe/failureThreshold', value: 0 }],
    'spec.containers[0].livenessProbe.failureThreshold',
    /found 0, allowed: a number from 1/,
  ],
  ['no name of a scheduler', one('/spec/schedulerName', ''), 'spec.schedulerName', /found "", allowed: the name of a scheduler/],
  [
    'a grace period below zero',
    [{ op: 'replace', path: '/spec/terminationGracePeriodSeconds', value: -1 }],
    'spec.terminationGracePeriodSeconds',
    /found -1/,
  ],
  ...['/proc', '/etc/orka', '/x/../tmp', '/opt/orka-workspaces/lib'].map(
    (mountPath) => [`a mount at ${mountPath}`, mount({ mountPath }), 'spec.containers[0].volumeMounts', /outside \/bin/] as const,
  ),
];

/** The operations at the Pod template of a kind; its volumes start where `volumes` counts. */
function patched(kind: 'SandboxTemplate' | 'Deployment', operations: readonly Operation[]): RuntimePoolClassSpec {
  const at = kind === 'Deployment' ? '/spec/template' : '/spec/podTemplate';
  return poolClass({
    patches: [
      { target: { kind }, operations: operations.map((operation) => ({ ...operation, path: `${at}${operation.path}` })) },
    ],
  });
}

describe('a patch of a template is refused with its place, what was found and what is allowed, that brings', () => {
  test.each(wrong)('%s', (_, operations, field, says) => {
    const text = refusal(patched('SandboxTemplate', operations));
    expect(text).toMatch(/^pool\/workspace\/patches\[0\] of SandboxTemplate: /);
    expect(text).toContain(`: spec.podTemplate.${field}: `);
    expect(text).toMatch(says);
  });
});

describe('a patch of a Deployment is refused as well that brings', () => {
  test.each(wrong)('%s', (_, operations) => {
    expect(refusal(patched('Deployment', operations))).toMatch(
      /^pool\/plain\/patches\[0\] of Deployment: .*: found .*, allowed: /,
    );
  });
});

test.each<[string, Operation, RegExp]>([
  ['of ours', add('/metadata/annotations', { 'orka.ai/x': 'y' }), /found \["orka.ai\/.*allowed: annotations outside orka\.ai/],
  ['of the provider', add('/metadata/annotations', { 'agents.x-k8s.io/x': 'y' }), /allowed: annotations outside orka\.ai/],
  ['that is no member of an object', add('/metadata/annotations/__proto__', 'y'), /allowed: names other than __proto__/],
])('a patch of an annotation %s is refused', (_, operation, says) => {
  expect(refusal(poolClass({ patches: [{ target: { kind: 'SandboxTemplate' }, operations: [operation] }] }))).toMatch(says);
});

describe('a patch of another object is refused that brings', () => {
  const rule = (members: Readonly<Record<string, Json>>): Json => ({
    to: [{ namespaceSelector: { matchLabels: { a: 'b' } }, podSelector: { matchLabels: { c: 'd' } } }],
    ports: [{ protocol: 'TCP', port: 443 }],
    ...members,
  });
  const egress = (value: Json): ClassPatch => ({
    target: { kind: 'NetworkPolicy', suffix: 'dns-egress' },
    operations: [add('/spec/egress/-', value)],
  });
  const annotations = (kind: string, value: Json): ClassPatch => ({
    target: { kind },
    operations: [add('/metadata/annotations', value)],
  });
  test.each([
    [
      'an unknown member of an egress rule',
      egress(rule({ prots: [] })),
      /spec\.egress\[1\]\.prots: found \[\], allowed: no such field \(did you mean ports\?\)/,
    ],
    ['an ingress peer in an egress rule', egress(rule({ from: [] })), /spec\.egress\[1\]\.from: .*no such field/],
    [
      'an unknown member of a port',
      egress(rule({ ports: [{ protocol: 'TCP', port: 443, name: 'x' }] })),
      /spec\.egress\[1\]\.ports\[0\]\.name: .*no such field/,
    ],
    [
      'an unknown protocol',
      egress(rule({ ports: [{ protocol: 'HTTP', port: 443 }] })),
      /ports\[0\]\.protocol: found "HTTP", allowed: SCTP, TCP or UDP/,
    ],
    [
      'a number as a label of a peer',
      egress(rule({ to: [{ podSelector: { matchLabels: { a: 5 } } }] })),
      /matchLabels\.a: found 5, allowed: text/,
    ],
    [
      'a number as an annotation of the Service',
      annotations('Service', { a: 5 }),
      /of Service: metadata\.annotations\.a: found 5, allowed: text/,
    ],
    [
      'a list as annotations of the budget',
      annotations('PodDisruptionBudget', []),
      /of PodDisruptionBudget: metadata\.annotations: found \[\], allowed: an object/,
    ],
    [
      'a key with a space',
      annotations('Service', { 'a b': '' }),
      /metadata\.annotations: found "a b", allowed: a qualified name/,
    ],
    ['more annotations than an object may have', annotations('Service', { a: 'x'.repeat(256 * 1024) }), /at most 262144 bytes/],
  ])('%s', (_, patch, says) => {
    expect(refusal(poolClass({ patches: [patch] }))).toMatch(says);
  });
});

test.each([
  [
    { operator: 'Equal' as const },
    /spec\.pod\.placement\.tolerations\[0\]\.key: found nothing, allowed: a key, or operator Exists/,
  ],
  [{}, /tolerations\[0\]\.key: found nothing/],
  [{ key: 'a', operator: 'Exists' as const, value: 'b' }, /tolerations\[0\]\.value: found "b"/],
  [{ key: 'not valid' }, /tolerations\[0\]\.key: found "not valid"/],
  [{ key: 'a', effect: 'NoSchedule' as const, tolerationSeconds: 1 }, /tolerations\[0\]\.tolerationSeconds: found 1/],
])('a class with the toleration %j is refused', (toleration, says) => {
  const { pod } = poolClass();
  expect(refusal(poolClass({ pod: { ...pod, placement: { nodeSelector: {}, tolerations: [toleration] } } }))).toMatch(says);
});

const hex = 'a'.repeat(64);
test.each([`https://r/x@sha256:${hex}`, `UPPER/X@sha256:${hex}`, `:@sha256:${hex}`, `r/x:@sha256:${hex}`, `r//x@sha256:${hex}`])(
  'a class with the image %s is refused',
  (image) => {
    const { runtime } = poolClass();
    expect(refusal(poolClass({ runtime: { ...runtime, image } }))).toMatch(/spec\.runtime\.image: found .*, allowed: <host>/);
  },
);

describe('a class is refused with the setting that is wrong:', () => {
  const { pod, providerProxy } = poolClass();
  const amounts = (change: Partial<Record<'requests' | 'limits', object>>) => ({
    requests: { ...pod.resources.requests, ...change.requests },
    limits: { ...pod.resources.limits, ...change.limits },
  });
  test.each<readonly [string, Partial<RuntimePoolClassSpec>, RegExp]>([
    [
      'a volume of no size',
      { pod: { ...pod, volumes: { ...pod.volumes, tmp: 0 } } },
      /: spec\.pod\.volumes\.tmp: found 0, allowed: a positive/,
    ],
    [
      'a size with a broken exponent',
      { pod: { ...pod, volumes: { ...pod.volumes, home: '1e1.5' } } },
      /: spec\.pod\.volumes\.home: found "1e1.5"/,
    ],
    [
      'a negative request',
      { pod: { ...pod, resources: amounts({ requests: { memory: '-1' } }) } },
      /: spec\.pod\.resources\.requests\.memory: found "-1"/,
    ],
    [
      'a limit below its request',
      { pod: { ...pod, resources: amounts({ limits: { cpu: '1m' } }) } },
      /: spec\.pod\.resources\.limits\.cpu: found "1m", allowed: at least the request, 250m/,
    ],
    [
      'a key that no Secret has',
      { providerProxy: { ...providerProxy, tokenSecretRef: { name: 'a', key: '..' } } },
      /: spec\.providerProxy\.tokenSecretRef\.key: found "\.\."/,
    ],
  ])('%s', (_, change, says) => {
    expect(refusal(poolClass(change))).toMatch(says);
  });
});

describe('of 200 classes with right and nearly right settings and patches', () => {
  const accepted: Manifest[] = [];
  const counts = { accepted: 0, refused: 0 };
  beforeAll(() => {
    for (const spec of sampleClasses(200)) {
      const objects = acceptedObjects(spec);
      counts[objects ? 'accepted' : 'refused']++;
      accepted.push(...(objects ?? []));
    }
  });

  test('many are accepted, and many refused with an error of ours', () => {
    expect(counts.accepted).toBeGreaterThan(60);
    expect(counts.refused).toBeGreaterThan(60);
  });

  test('every object of those that are accepted fits the schema of its kind', () => {
    for (const object of accepted) {
      const kind = `${object.apiVersion}/${object.kind}`;
      expect(isSchemaKind(kind) ? checkSchema(kind, object) : kind).toEqual([]);
    }
  });
});

test('there is a schema for every kind that a pool renders', () => {
  const kinds = new Set(objectsOfClass(poolClass()).map(({ apiVersion, kind }) => `${apiVersion}/${kind}`));
  expect([...kinds].filter((kind) => !isSchemaKind(kind))).toEqual([]);
  expect([...kinds].sort()).toEqual([
    'apps/v1/Deployment',
    'extensions.agents.x-k8s.io/v1beta1/SandboxClaim',
    'extensions.agents.x-k8s.io/v1beta1/SandboxTemplate',
    'extensions.agents.x-k8s.io/v1beta1/SandboxWarmPool',
    'networking.k8s.io/v1/NetworkPolicy',
    'policy/v1/PodDisruptionBudget',
    'v1/Service',
  ]);
});

describe('readinessGracePeriodSeconds of the warm pool, a field of agent-sandbox v1.0.12,', () => {
  const graceful = (value: Json): RuntimePoolClassSpec =>
    poolClass({
      patches: [{ target: { kind: 'SandboxWarmPool' }, operations: one('/spec/readinessGracePeriodSeconds', value) }],
    });

  test('is a patch of a class', () => {
    const warmPool = compile(graceful(60)).workspace.workload.find(({ manifest }) => manifest.kind === 'SandboxWarmPool');
    expect(warmPool?.manifest['spec']).toMatchObject({ replicas: 0, readinessGracePeriodSeconds: 60 });
  });

  test.each<Json>([29, '60', 30.5])('is refused: %j', (value) => {
    expect(refusal(graceful(value))).toMatch(/spec\.readinessGracePeriodSeconds: found .*, allowed: /);
  });

  test('is all of a warm pool that a class may patch', () => {
    const patch = { target: { kind: 'SandboxWarmPool' }, operations: one('/spec/replicas', 5) };
    expect(refusal(poolClass({ patches: [patch] }))).toContain('allowed: operations on spec/readinessGracePeriodSeconds');
  });
});
