import type { Manifest } from '../api/index.js';
import type { Finding } from '../lib/errors.js';
import { equalJson, fieldPath, isObject } from '../lib/json.js';
import type { Json, JsonObject, Path } from '../lib/json.js';
import { quantityValue } from '../lib/quantity.js';

/** Keys of the provider (v1.0.3). Source: provider.md §3.1. */
const providerKeys = {
  claimUid: 'agents.x-k8s.io/claim-uid',
  templateRef: 'agents.x-k8s.io/sandbox-template-ref',
  templateRefHash: 'agents.x-k8s.io/sandbox-template-ref-hash',
  nameHash: 'agents.x-k8s.io/sandbox-name-hash',
  propagatedLabels: 'agents.x-k8s.io/propagated-labels',
  propagatedAnnotations: 'agents.x-k8s.io/propagated-annotations',
} as const;

/** What a pool's claim was materialised into, as it is stored right now. */
export interface Materialization {
  readonly template: Manifest;
  readonly claim: Manifest;
  readonly sandbox: Manifest;
  readonly pod: Manifest;
}

/** The first thing that is not as rendered. `check` is the row of the contract's table. */
export interface Mismatch {
  readonly check: number;
  readonly finding: Finding;
}

/** The provider's name hash: FNV-1a, 32 bits, over UTF-8. Source: provider.md §2. */
export function nameHash(name: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, '0');
}

/**
 * Is the chain claim → Sandbox → Pod exactly what was rendered, but for what the API server and the provider are known to add?
 *
 * Asked before an instance is bound, seeded or probed. A template that was changed together with Sandbox and Pod passes: its own
 * integrity record catches that. Source: workload.md §4 (c), corrections.md item 29, provider.md §3.1 for the labels of v1.0.3.
 */
export function attest({ template, claim, sandbox, pod }: Materialization): Mismatch | undefined {
  const claimUid = claim.metadata.uid ?? '';
  const expected = podTemplateOf(template);
  const actual = podTemplateOf(sandbox);
  const sandboxAt = `Sandbox ${sandbox.metadata.namespace ?? ''}/${sandbox.metadata.name}`;
  const podAt = `Pod ${pod.metadata.namespace ?? ''}/${pod.metadata.name}`;
  const differs = (check: number, at: string, field: string, found: unknown, allowed: unknown): Mismatch => ({
    check,
    finding: { at, field, found, allowed: typeof allowed === 'string' ? allowed : JSON.stringify(allowed ?? 'nothing') },
  });
  const own = { [providerKeys.claimUid]: claimUid, [providerKeys.templateRefHash]: nameHash(template.metadata.name) };
  const podLabels = { ...expected.labels, ...own };

  if (claimUid === '' || controllerOf(sandbox) !== claimUid) {
    return differs(1, sandboxAt, 'metadata.ownerReferences', controllerOf(sandbox), `the claim ${claimUid} as controller`);
  }
  if (sandbox.metadata.labels?.[providerKeys.claimUid] !== claimUid) {
    return differs(
      2,
      sandboxAt,
      `metadata.labels[${providerKeys.claimUid}]`,
      sandbox.metadata.labels?.[providerKeys.claimUid],
      claimUid,
    );
  }
  if (sandbox.metadata.annotations?.[providerKeys.templateRef] !== template.metadata.name) {
    const found = sandbox.metadata.annotations?.[providerKeys.templateRef];
    return differs(3, sandboxAt, `metadata.annotations[${providerKeys.templateRef}]`, found, template.metadata.name);
  }
  const sandboxSpec = firstDifference(normalPodSpec(expected.spec), normalPodSpec(actual.spec));
  if (sandboxSpec || managesNetwork(template)) {
    const { path = ['networkPolicyManagement'], found, wanted } = sandboxSpec ?? { found: 'Managed', wanted: 'Unmanaged' };
    return differs(4, sandboxAt, fieldPath(['spec', 'podTemplate', 'spec', ...path]), found, wanted);
  }
  const volumes = [specOf(template)['volumeClaimTemplates'], specOf(sandbox)['volumeClaimTemplates']];
  if (!equalJson(compact(volumes[0] ?? null), compact(volumes[1] ?? null)))
    return differs(5, sandboxAt, 'spec.volumeClaimTemplates', volumes[1], volumes[0]);
  if (!equalJson(actual.annotations, expected.annotations)) {
    return differs(6, sandboxAt, 'spec.podTemplate.metadata.annotations', actual.annotations, expected.annotations);
  }
  if (actual.labels[providerKeys.claimUid] !== claimUid) {
    return differs(
      7,
      sandboxAt,
      `spec.podTemplate.metadata.labels[${providerKeys.claimUid}]`,
      actual.labels[providerKeys.claimUid],
      claimUid,
    );
  }
  if (!equalJson(actual.labels, podLabels))
    return differs(8, sandboxAt, 'spec.podTemplate.metadata.labels', actual.labels, podLabels);
  if (sandbox.metadata.uid === undefined || controllerOf(pod) !== sandbox.metadata.uid) {
    return differs(
      9,
      podAt,
      'metadata.ownerReferences',
      controllerOf(pod),
      `the Sandbox ${sandbox.metadata.uid ?? ''} as controller`,
    );
  }
  const wantedLabels = { ...podLabels, [providerKeys.nameHash]: nameHash(sandbox.metadata.name) };
  if (!equalJson(pod.metadata.labels ?? {}, wantedLabels))
    return differs(10, podAt, 'metadata.labels', pod.metadata.labels, wantedLabels);
  const annotations = without(pod.metadata.annotations ?? {}, [
    providerKeys.propagatedLabels,
    providerKeys.propagatedAnnotations,
  ]);
  if (!equalJson(annotations, actual.annotations))
    return differs(11, podAt, 'metadata.annotations', annotations, actual.annotations);
  const podSpec = firstDifference(normalPodSpec(actual.spec), normalPodSpec(specOf(pod), actual.spec));
  return podSpec && differs(12, podAt, fieldPath(['spec', ...podSpec.path]), podSpec.found, podSpec.wanted);
}

/** A claim that asks for exactly the pool's sandbox. Ours asks for nothing else, so nothing else may stand there. */
export function claimMatches(claim: Manifest, warmPoolName: string): boolean {
  const { warmPoolRef, ...rest } = compact(specOf(claim)) as JsonObject;
  return equalJson(warmPoolRef, { name: warmPoolName }) && Object.keys(rest).length === 0;
}

/** Is an object a pool's own: in its namespace and with every label of the pool, exactly? Foreign objects are never touched. */
export function isOwned(object: Manifest, namespace: string, labels: Readonly<Record<string, string>>): boolean {
  const found = object.metadata.labels ?? {};
  return object.metadata.namespace === namespace && Object.entries(labels).every(([name, value]) => found[name] === value);
}

function specOf(object: Manifest): JsonObject {
  const spec = object['spec'];
  return isObject(spec) ? spec : {};
}

function podTemplateOf(object: Manifest) {
  const template = specOf(object)['podTemplate'];
  const { metadata, spec } = (isObject(template) ? template : {}) as {
    metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
    spec?: JsonObject;
  };
  return { labels: metadata?.labels ?? {}, annotations: metadata?.annotations ?? {}, spec: spec ?? {} };
}

/** With a managed policy the provider also rewrites DNS; our templates never ask for one. */
function managesNetwork(template: Manifest): boolean {
  return specOf(template)['networkPolicyManagement'] !== 'Unmanaged';
}

function controllerOf(object: Manifest): string | undefined {
  return object.metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;
}

function without(map: Readonly<Record<string, string>>, names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(map).filter(([name]) => !names.includes(name)));
}

const podDefaults: JsonObject = {
  dnsPolicy: 'ClusterFirst',
  restartPolicy: 'Always',
  terminationGracePeriodSeconds: 30,
  schedulerName: 'default-scheduler',
  enableServiceLinks: true,
  serviceAccountName: 'default',
};
const containerDefaults: JsonObject = { terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File' };
const probeDefaults: JsonObject = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };
const neverCompared = ['nodeName', 'priority', 'preemptionPolicy', 'overhead', 'serviceAccount'];
const automaticTolerations = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];

/**
 * A Pod spec with the server's defaults written out, and without what admission and scheduling may add. `base` is the spec that it is
 * compared with: pull secrets and a priority class are compared only if that has some.
 */
function normalPodSpec(spec: JsonObject, base: JsonObject = spec): JsonObject {
  const ignored = [
    ...neverCompared,
    ...['imagePullSecrets', 'priorityClassName'].filter((name) => compact(base[name] ?? null) === undefined),
  ];
  const tolerations = (Array.isArray(spec['tolerations']) ? (spec['tolerations'] as readonly JsonObject[]) : []).filter(
    ({ key, operator, effect }) =>
      !(operator === 'Exists' && effect === 'NoExecute' && automaticTolerations.some((one) => one === key)),
  );
  const containers = (name: string) => ((spec[name] ?? []) as readonly JsonObject[]).map(normalContainer);
  const written = {
    ...podDefaults,
    ...(compact(spec) as JsonObject | undefined),
    tolerations,
    containers: containers('containers'),
    initContainers: containers('initContainers'),
  };
  return compact(Object.fromEntries(Object.entries(written).filter(([name]) => !ignored.includes(name)))) as JsonObject;
}

function normalContainer(container: JsonObject): JsonObject {
  const list = (name: string) => (container[name] ?? []) as readonly JsonObject[];
  const probes = ['startupProbe', 'readinessProbe', 'livenessProbe'].filter((name) => container[name] !== undefined);
  return {
    ...containerDefaults,
    ...container,
    ports: list('ports').map((port) => ({ protocol: 'TCP', ...port })),
    env: list('env').map((variable) => {
      const { valueFrom } = variable;
      const { value, ...rest } = variable;
      const reference =
        isObject(valueFrom) && isObject(valueFrom['fieldRef'])
          ? { valueFrom: { fieldRef: { apiVersion: 'v1', ...valueFrom['fieldRef'] } } }
          : {};
      return { ...rest, ...(value === '' || value === undefined ? {} : { value }), ...reference };
    }),
    ...Object.fromEntries(probes.map((name) => [name, normalProbe(container[name] as JsonObject)])),
  };
}

function normalProbe(probe: JsonObject): JsonObject {
  const { initialDelaySeconds, ...rest } = { ...probeDefaults, ...probe };
  const get = rest['httpGet'];
  return {
    ...rest,
    ...(initialDelaySeconds === 0 ? {} : { initialDelaySeconds }),
    ...(isObject(get) ? { httpGet: { scheme: 'HTTP', path: '/', ...get } } : {}),
  };
}

/** Without empty lists and objects: absent and empty mean the same to the API server. */
function compact(value: Json): Json | undefined {
  if (Array.isArray(value)) return value.length === 0 ? undefined : (value as readonly Json[]).map((item) => compact(item) ?? {});
  if (!isObject(value)) return value ?? undefined;
  const members = Object.entries(value).flatMap(([name, member]): [string, Json][] => {
    const kept = member === undefined ? undefined : compact(member);
    return kept === undefined ? [] : [[name, kept]];
  });
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

interface Difference {
  readonly path: Path;
  readonly found: Json | undefined;
  readonly wanted: Json | undefined;
}

const quantityFields = ['limits', 'requests', 'emptyDir'];

/** The first place where two normal specs differ; quantities are compared by value. */
function firstDifference(wanted: Json | undefined, found: Json | undefined, path: Path = []): Difference | undefined {
  if (isObject(wanted) && isObject(found)) {
    for (const name of [...new Set([...Object.keys(wanted), ...Object.keys(found)])].sort()) {
      const difference = firstDifference(wanted[name], found[name], [...path, name]);
      if (difference) return difference;
    }
    return undefined;
  }
  if (Array.isArray(wanted) && Array.isArray(found)) {
    for (let index = 0; index < Math.max(wanted.length, found.length); index++) {
      const difference = firstDifference((wanted as readonly Json[])[index], (found as readonly Json[])[index], [...path, index]);
      if (difference) return difference;
    }
    return undefined;
  }
  if (equalJson(wanted, found) || (isQuantity(path) && sameQuantity(wanted, found))) return undefined;
  return { path, found, wanted };
}

function isQuantity(path: Path): boolean {
  return quantityFields.includes(String(path.at(-2)));
}

function sameQuantity(a: Json | undefined, b: Json | undefined): boolean {
  const value = (of: Json | undefined) => (typeof of === 'string' || typeof of === 'number' ? quantityValue(of) : undefined);
  return value(a) !== undefined && value(a) === value(b);
}
