/**
 * Classes with patches as people write them, right and nearly right, and what becomes of each: the objects of its two families, or the error
 * of `compile`. `test/render/class-patches.test.ts` asks synth, `test/cluster/class-patches.test.ts` an API server.
 */
import fc from 'fast-check';
import type { ClassPatch, Manifest, RuntimePoolClassSpec } from '../../src/api/index.js';
import { RenderError } from '../../src/constructs/errors.js';
import { resolveFacts } from '../../src/domain/facts.js';
import type { PoolIdentity } from '../../src/domain/facts.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { isObject } from '../../src/lib/json.js';
import { compile } from '../../src/render/compile.js';
import { instantiate, renderedObjects } from '../../src/render/instantiate.js';
import { poolClass } from './objects.js';

const digest = (digit: string): string => `sha256:${digit.repeat(64)}`;

const pool: PoolIdentity = {
  namespace: 'team-a',
  name: 'acp-ws-codex-0123456789ab',
  uid: '11111111-1111-1111-1111-111111111111',
  generation: 1,
  trustNamespace: 'team-a',
  profile: {
    protocolVersion: 'orka.harness.v2',
    digest: digest('1'),
    digestSchemaVersion: 'v1',
    model: 'gpt-5',
    modelLimits: { context: 200_000, output: 8_000 },
    workspaceIntent: 'write',
    agentConfigurationDigest: digest('2'),
    toolPolicyDigest: digest('3'),
    approvalPolicyDigest: digest('4'),
    mcpConfigurationDigest: digest('5'),
    proxyCredentialRole: 'provider',
    proxyCredentialScope: 'pool',
  } as unknown as PoolIdentity['profile'],
};
const instance = { controllerEpoch: 7, tokenGeneration: '0123456789abcdef' };
const bootstrap = { authSecret: { name: 'auth' }, providerSecret: { name: 'provider' }, nonce: 'bm9uY2U', publicKey: 'a2V5' };

/** Everything that a class renders for one workspace pool and one plain pool. */
export function objectsOfClass(spec: RuntimePoolClassSpec): readonly Manifest[] {
  const compiled = compile(spec);
  return [resolveFacts(pool, instance, bootstrap), resolveFacts(pool, instance, { replicas: 1 })].flatMap((facts) =>
    renderedObjects(instantiate(compiled, facts, compiled.frozen)),
  );
}

/** The objects of a class that synth accepts; `undefined` = refused with a RenderError. */
export function acceptedObjects(spec: RuntimePoolClassSpec): readonly Manifest[] | undefined {
  try {
    return objectsOfClass(spec);
  } catch (error) {
    if (error instanceof RenderError) return undefined;
    throw error;
  }
}

const of = <T extends Json>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);
const some = <T extends Readonly<Record<string, fc.Arbitrary<Json>>>>(members: T): fc.Arbitrary<JsonObject> =>
  fc.record(members, { requiredKeys: [] });
const few = (items: fc.Arbitrary<Json>, minLength = 0): fc.Arbitrary<Json> => fc.array(items, { minLength, maxLength: 3 });

const labelKey = of('team', 'example.com/zone', 'topology.kubernetes.io/zone', 'kubernetes.io/hostname');
const labelValue = of('a', 'us-east-1', 'B_2.c');
const labels = fc.dictionary(labelKey, labelValue, { maxKeys: 2 }) as fc.Arbitrary<JsonObject>;
const expressions = of<JsonObject>(
  { key: 'team', operator: 'In', values: ['a', 'b'] },
  { key: 'team', operator: 'NotIn', values: ['a'] },
  { key: 'example.com/zone', operator: 'Exists' },
  { key: 'team', operator: 'DoesNotExist' },
);
const nodeExpressions = fc.oneof(expressions, of<JsonObject>({ key: 'size', operator: 'Gt', values: ['4'] }));
const selector = some({ matchLabels: labels, matchExpressions: few(expressions) });
const seconds = fc.integer({ min: 0, max: 600 });

const tolerations = of<JsonObject>(
  { operator: 'Exists' },
  { key: 'dedicated', operator: 'Equal', value: 'agents', effect: 'NoSchedule' },
  { key: 'dedicated', value: 'agents' },
  { key: 'example.com/gpu', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 },
);
const nodeTerm = some({
  matchExpressions: few(nodeExpressions),
  matchFields: of<Json>([{ key: 'metadata.name', operator: 'In', values: ['node1'] }], []),
});
const podTerm = fc
  .tuple(labelKey, some({ labelSelector: selector, namespaceSelector: selector, namespaces: few(of('team-a', 'b')) }))
  .map(([topologyKey, rest]): JsonObject => ({ topologyKey, ...rest }));
const weighted = (name: string, term: fc.Arbitrary<Json>): fc.Arbitrary<JsonObject> =>
  fc.tuple(fc.integer({ min: 1, max: 100 }), term).map(([weight, one]) => ({ weight, [name]: one }));
const podSide = some({
  requiredDuringSchedulingIgnoredDuringExecution: few(podTerm),
  preferredDuringSchedulingIgnoredDuringExecution: few(weighted('podAffinityTerm', podTerm)),
});
const affinity = some({
  nodeAffinity: some({
    requiredDuringSchedulingIgnoredDuringExecution: few(nodeTerm, 1).map((nodeSelectorTerms) => ({ nodeSelectorTerms })),
    preferredDuringSchedulingIgnoredDuringExecution: few(weighted('preference', nodeTerm)),
  }),
  podAffinity: podSide,
  podAntiAffinity: podSide,
});
const spread = of<JsonObject>(
  { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule', minDomains: 2 },
  { maxSkew: 2, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway', nodeTaintsPolicy: 'Honor' },
  {
    maxSkew: 1,
    topologyKey: 'topology.kubernetes.io/zone',
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchLabels: { team: 'a' } },
    matchLabelKeys: ['pod-template-hash'],
  },
);
const variable = fc
  .tuple(of('HTTPS_PROXY', 'NO_PROXY', 'my.var', 'A B'), fc.string({ maxLength: 20 }))
  .map(([name, value]): JsonObject => ({ name, value }));
const scratchNames = of('cache', 'more', 'a-b');
const emptyDirs = of<JsonObject>({ sizeLimit: '1Gi' }, { sizeLimit: '64Mi', medium: 'Memory' });
const mountOptions = of<JsonObject>(
  {},
  { readOnly: true },
  { readOnly: true, recursiveReadOnly: 'IfPossible' },
  { mountPropagation: 'HostToContainer' },
  { subPath: 'a/b' },
  { subPathExpr: '$(HTTPS_PROXY)' },
);
const trafficRule = fc
  .tuple(labels, labels, of('TCP', 'UDP', 'SCTP'), fc.integer({ min: 1, max: 65535 }))
  .map(([a, b, protocol, port]): JsonObject => ({
    to: [
      {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'x', ...a } },
        podSelector: { matchLabels: { app: 'x', ...b } },
      },
    ],
    ports: [{ protocol, port }],
  }));

type Operation = ClassPatch['operations'][number];
const add = (path: string, value: fc.Arbitrary<Json>): fc.Arbitrary<readonly Operation[]> =>
  value.map((one) => [{ op: 'add', path, value: one }]);
const annotation = (at: string): fc.Arbitrary<readonly Operation[]> =>
  fc
    .tuple(of('team', 'example.com~1owner', 'Example.COM~1Owner'), fc.string({ maxLength: 30 }))
    .map(([key, value]) => [{ op: 'add', path: `${at}/metadata/annotations/${key}`, value }]);

/** Operations on the Pod template at a pointer. */
function podOperations(at: string): fc.Arbitrary<readonly Operation[]> {
  const spec = `${at}/spec`;
  const container = `${spec}/containers/0`;
  return fc.oneof(
    annotation(at),
    add(`${spec}/tolerations`, few(tolerations)),
    add(`${spec}/affinity`, affinity),
    add(`${spec}/topologySpreadConstraints`, few(spread)),
    add(`${container}/env/-`, variable),
    add(`${spec}/hostUsers`, fc.boolean()),
    add(`${spec}/imagePullSecrets`, few(of<JsonObject>({ name: 'registry' }, { name: 'other.example' }))),
    add(`${spec}/nodeSelector/example.com~1pool`, labelValue),
    add(`${spec}/preemptionPolicy`, of('Never', 'PreemptLowerPriority')),
    add(`${spec}/priorityClassName`, of('agents', 'system.low')),
    add(`${spec}/schedulerName`, of('default-scheduler', 'other')),
    add(`${spec}/terminationGracePeriodSeconds`, seconds),
    ...['livenessProbe/failureThreshold', 'livenessProbe/initialDelaySeconds', 'readinessProbe/periodSeconds'].map((path) =>
      add(`${container}/${path}`, seconds),
    ),
    fc.tuple(scratchNames, emptyDirs, mountOptions).map(([name, emptyDir, options]): readonly Operation[] => [
      { op: 'add', path: `${spec}/volumes/-`, value: { name, emptyDir } },
      {
        op: 'add',
        path: `${container}/volumeMounts/-`,
        value: { name, mountPath: `/mnt/${name}`, ...options },
      },
    ]),
  );
}

const patch = (kind: string, operations: fc.Arbitrary<readonly Operation[]>, suffix?: string): fc.Arbitrary<ClassPatch> =>
  operations.map((all) => ({ target: { kind, ...(suffix === undefined ? {} : { suffix }) }, operations: all }));

const patches: fc.Arbitrary<ClassPatch> = fc.oneof(
  { weight: 6, arbitrary: patch('SandboxTemplate', podOperations('/spec/podTemplate')) },
  { weight: 6, arbitrary: patch('Deployment', podOperations('/spec/template')) },
  { weight: 2, arbitrary: patch('NetworkPolicy', add('/spec/egress/-', trafficRule), 'dns-egress') },
  {
    weight: 1,
    arbitrary: patch('NetworkPolicy', add('/spec/egress/0/ports/-', of({ protocol: 'TCP', port: 8443 })), 'dns-egress'),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('Service', 'PodDisruptionBudget')
      .chain((kind) => patch(kind, add('/metadata/annotations', labels))),
  },
);

/** One slip somewhere in a value: another type, a text that is none, a member too many, too few or misspelled. */
interface Slip {
  readonly place: number;
  readonly what: number;
}
const slips: readonly ((value: Json) => Json)[] = [
  () => null,
  () => 'Bad_Name',
  () => '',
  () => 5,
  () => -1,
  () => 1.5,
  () => true,
  () => ({}),
  () => [],
  (value) => (typeof value === 'string' ? [value] : JSON.stringify(value)),
  (value) => (isObject(value) ? { ...value, unknownMember: 'x' } : 'all'),
  (value) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value).map(([name, one], index) => [index === 0 ? `${name}s` : name, one]))
      : 70_000,
  (value) => (isObject(value) ? Object.fromEntries(Object.entries(value).slice(1)) : 'a b'),
  (value) => (Array.isArray(value) ? [...(value as Json[]), ...(value as Json[])] : '../x'),
  () => 2 ** 40,
  () => 'x'.repeat(300),
  () => '1e1.5',
  () => '1e999',
  () => '-1Gi',
];

const sizeOf = (value: Json | undefined): number =>
  1 + (typeof value === 'object' && value !== null ? Object.values(value).reduce<number>((sum, one) => sum + sizeOf(one), 0) : 0);

function slipped(value: Json, { place, what }: Slip): Json {
  let rest = place % sizeOf(value);
  const walk = (node: Json): Json => {
    if (rest-- === 0) return slips[what % slips.length]!(node);
    if (Array.isArray(node)) return (node as readonly Json[]).map(walk);
    return isObject(node) ? Object.fromEntries(Object.entries(node).map(([name, one]) => [name, walk(one ?? null)])) : node;
  };
  return walk(value);
}

const slip: fc.Arbitrary<Slip> = fc.record({ place: fc.nat({ max: 10_000 }), what: fc.nat({ max: slips.length - 1 }) });

const sometimes = (share: number): fc.Arbitrary<Slip | undefined> =>
  fc.oneof({ weight: share, arbitrary: slip }, { weight: 100 - share, arbitrary: fc.constant(undefined) });

const maybeSlipped = (patched: fc.Arbitrary<ClassPatch>): fc.Arbitrary<ClassPatch> =>
  fc.tuple(patched, sometimes(45)).map(([one, wrong]) => {
    if (!wrong) return one;
    const operations = one.operations.map((operation, index) =>
      index === wrong.place % one.operations.length
        ? { ...operation, value: slipped(operation.value ?? null, wrong) }
        : operation,
    );
    return { ...one, operations };
  });

const settings = fc.record({
  runtimeClassName: fc.constantFrom(undefined, 'gvisor', 'kata.v2'),
  nodeSelector: labels,
  tolerations: few(tolerations),
  size: of<Json>('1Gi', 2147483648, '1e9', '1.5Gi', '+1Gi', '.5Gi', '5.Gi', '1E', '1E3', '1n', '1e30'),
  cpu: of<Json>('2', 4, '2500m', '3e0', '1.0000001', '250000001n', '1e30'),
});

const plainClasses = fc
  .tuple(settings, fc.boolean(), fc.constantFrom('codex' as const, 'opencode' as const))
  .map(([{ runtimeClassName, nodeSelector, tolerations: tolerated, size, cpu }, disruptionBudget, providerKind]) => {
    const { pod, ...rest } = poolClass({ disruptionBudget, providerKind });
    return {
      ...rest,
      pod: {
        ...(runtimeClassName === undefined ? {} : { runtimeClassName }),
        resources: { ...pod.resources, limits: { ...pod.resources.limits, cpu } },
        volumes: { ...pod.volumes, sessions: size },
        placement: { nodeSelector, tolerations: tolerated },
      },
    } as unknown as RuntimePoolClassSpec;
  });

/** Classes of which about a half are right in all. */
const patchedClasses: fc.Arbitrary<RuntimePoolClassSpec> = fc
  .tuple(plainClasses, sometimes(10), fc.array(maybeSlipped(patches), { minLength: 1, maxLength: 2 }))
  .map(([spec, wrong, ofClass]) => ({
    ...(wrong ? { ...spec, pod: slipped(spec.pod as unknown as Json, wrong) as unknown as RuntimePoolClassSpec['pod'] } : spec),
    patches: ofClass,
  }));

/** Deterministic: the same number gives the same classes. */
export const sampleClasses = (count: number, seed = 5): readonly RuntimePoolClassSpec[] =>
  fc.sample(patchedClasses, { numRuns: count, seed });
