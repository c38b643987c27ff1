import { equalJson, isObject } from '../lib/json.js';
import type { Json, JsonObject, Path } from '../lib/json.js';
import { quantityValue } from '../lib/quantity.js';

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
/** What admission and the scheduler write into a Pod; `serviceAccount` is the server's copy of another field. */
const addedToPods = ['nodeName', 'priority', 'preemptionPolicy', 'overhead', 'serviceAccount'];
const automaticTolerations = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];

/**
 * A Pod spec as the provider's copy of it reads: without the zero values that its types leave out, and with the one that they write. Nothing
 * else is normalised: nobody but the provider writes such a copy. Source: corrections.md item 29.
 */
export function copiedPodSpec(spec: JsonObject): JsonObject {
  const containers = (name: string) => ((spec[name] ?? []) as readonly JsonObject[]).map(copiedContainer);
  const copied = { ...spec, containers: containers('containers'), initContainers: containers('initContainers') };
  return (compact(copied) ?? {}) as JsonObject;
}

/** A Pod spec with the server's defaults written out, as a template of a workload is stored. */
export function defaultedPodSpec(spec: JsonObject): JsonObject {
  const copied = copiedPodSpec(spec);
  const containers = (name: string) => ((copied[name] ?? []) as readonly JsonObject[]).map(defaultedContainer);
  const { serviceAccount: _copy, ...written } = { ...podDefaults, ...copied };
  return compact({
    ...written,
    containers: containers('containers'),
    initContainers: containers('initContainers'),
  }) as JsonObject;
}

/**
 * The spec of a Pod with the server's defaults written out, and without what admission and scheduling may add. `base` is the spec that it is
 * compared with: pull secrets and a priority class are compared only if that has some. Only for Pods: admission changes nothing else.
 */
export function normalPodSpec(spec: JsonObject, base: JsonObject = spec): JsonObject {
  const ignored = [
    ...addedToPods,
    ...['imagePullSecrets', 'priorityClassName'].filter((name) => compact(base[name] ?? null) === undefined),
  ];
  const tolerations = (Array.isArray(spec['tolerations']) ? (spec['tolerations'] as readonly JsonObject[]) : []).filter(
    ({ key, operator, effect }) =>
      !(operator === 'Exists' && effect === 'NoExecute' && automaticTolerations.some((one) => one === key)),
  );
  const written = { ...defaultedPodSpec(spec), tolerations };
  return compact(Object.fromEntries(Object.entries(written).filter(([name]) => !ignored.includes(name)))) as JsonObject;
}

const probeNames = ['startupProbe', 'readinessProbe', 'livenessProbe'];

function probesOf(container: JsonObject, change: (probe: JsonObject) => JsonObject): JsonObject {
  const present = probeNames.flatMap((name) => (isObject(container[name]) ? [[name, change(container[name])] as const] : []));
  return Object.fromEntries(present);
}

const listOf = (container: JsonObject, name: string) => (container[name] ?? []) as readonly JsonObject[];

function copiedContainer(container: JsonObject): JsonObject {
  return {
    ...container,
    env: listOf(container, 'env').map(({ value, ...rest }) => ({
      ...withReference(rest, 'resourceFieldRef', { divisor: '0' }),
      ...(value === '' || value === undefined ? {} : { value }),
    })),
    ...probesOf(container, ({ initialDelaySeconds, ...rest }) =>
      initialDelaySeconds === 0 || initialDelaySeconds === undefined ? rest : { ...rest, initialDelaySeconds },
    ),
  };
}

function defaultedContainer(container: JsonObject): JsonObject {
  return {
    ...containerDefaults,
    ...container,
    ports: listOf(container, 'ports').map((port) => ({ protocol: 'TCP', ...port })),
    env: listOf(container, 'env').map((variable) => withReference(variable, 'fieldRef', { apiVersion: 'v1' })),
    ...probesOf(container, defaultedProbe),
  };
}

/** A variable with defaults in the reference that it takes its value from, if it is one of this kind. */
function withReference(variable: JsonObject, kind: string, defaults: JsonObject): JsonObject {
  const source = variable['valueFrom'];
  if (!isObject(source) || !isObject(source[kind])) return variable;
  return { ...variable, valueFrom: { ...source, [kind]: { ...defaults, ...source[kind] } } };
}

function defaultedProbe(probe: JsonObject): JsonObject {
  const written = { ...probeDefaults, ...probe };
  const get = written['httpGet'];
  return { ...written, ...(isObject(get) ? { httpGet: { scheme: 'HTTP', path: '/', ...get } } : {}) };
}

/** Without empty lists and objects: absent and empty mean the same to the API server. */
export function compact(value: Json): Json | undefined {
  if (Array.isArray(value)) return value.length === 0 ? undefined : (value as readonly Json[]).map((item) => compact(item) ?? {});
  if (!isObject(value)) return value ?? undefined;
  const members = Object.entries(value).flatMap(([name, member]): [string, Json][] => {
    const kept = member === undefined ? undefined : compact(member);
    return kept === undefined ? [] : [[name, kept]];
  });
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

/** Where two values differ. */
export interface Difference {
  readonly path: Path;
  readonly found: Json | undefined;
  readonly wanted: Json | undefined;
}

const quantityFields = ['limits', 'requests', 'emptyDir'];

/** The first place where two normal values differ; quantities are compared by value, and lists of named things by their names first. */
export function firstDifference(wanted: Json | undefined, found: Json | undefined, path: Path = []): Difference | undefined {
  if (isObject(wanted) && isObject(found)) {
    for (const name of [...new Set([...Object.keys(wanted), ...Object.keys(found)])].sort()) {
      const difference = firstDifference(wanted[name], found[name], [...path, name]);
      if (difference) return difference;
    }
    return undefined;
  }
  if (Array.isArray(wanted) && Array.isArray(found)) {
    const [wantedNames, foundNames] = [namesOf(wanted), namesOf(found)];
    if (wantedNames && foundNames && !equalJson(wantedNames, foundNames)) return { path, found: foundNames, wanted: wantedNames };
    for (let index = 0; index < Math.max(wanted.length, found.length); index++) {
      const difference = firstDifference((wanted as readonly Json[])[index], (found as readonly Json[])[index], [...path, index]);
      if (difference) return difference;
    }
    return undefined;
  }
  return isSame(wanted, found, path) ? undefined : { path, found, wanted };
}

/**
 * The first thing of one value that does not stand in another, which may have more. Members of lists are found by what tells them apart,
 * where they have such, and there must be one of each: of two variables of one name the later would win. Lists of texts, such as
 * arguments, have nothing more.
 */
export function firstMissing(wanted: Json | undefined, found: Json | undefined, path: Path = []): Difference | undefined {
  if (wanted === undefined) return undefined;
  if (isObject(wanted) && isObject(found)) {
    for (const [name, member] of Object.entries(wanted)) {
      const difference = firstMissing(member, found[name], [...path, name]);
      if (difference) return difference;
    }
    return undefined;
  }
  if (Array.isArray(wanted) && (wanted as readonly Json[]).every(isObject)) {
    const candidates = (Array.isArray(found) ? found : []) as readonly JsonObject[];
    for (const item of wanted as readonly JsonObject[]) {
      const difference = firstMissingIn(item, candidates, path);
      if (difference) return difference;
    }
    return undefined;
  }
  return isSame(wanted, found, path) ? undefined : { path, found, wanted };
}

function firstMissingIn(item: JsonObject, candidates: readonly JsonObject[], path: Path): Difference | undefined {
  const key = ['mountPath', 'name'].find((one) => typeof item[one] === 'string');
  if (key === undefined) {
    const there = candidates.some((candidate) => firstMissing(item, candidate) === undefined);
    return there ? undefined : { path, found: candidates, wanted: item };
  }
  const named = candidates.flatMap((candidate, index) => (candidate[key] === item[key] ? [{ candidate, index }] : []));
  const [only] = named;
  if (only && named.length === 1) return firstMissing(item, only.candidate, [...path, only.index]);
  return { path, found: candidates.map((candidate) => candidate[key] ?? null), wanted: `${item[key] as string}, once` };
}

/** Names of the members of a list, as containers and variables have them. */
function namesOf(list: readonly Json[]): readonly string[] | undefined {
  const names = list.flatMap((item) => (isObject(item) && typeof item['name'] === 'string' ? [item['name']] : []));
  return names.length === list.length ? names : undefined;
}

function isSame(wanted: Json | undefined, found: Json | undefined, path: Path): boolean {
  return equalJson(wanted, found) || (isQuantity(path) && sameQuantity(wanted, found));
}

function isQuantity(path: Path): boolean {
  return quantityFields.includes(String(path.at(-2)));
}

function sameQuantity(a: Json | undefined, b: Json | undefined): boolean {
  const value = (of: Json | undefined) => (typeof of === 'string' || typeof of === 'number' ? quantityValue(of) : undefined);
  return value(a) !== undefined && value(a) === value(b);
}
