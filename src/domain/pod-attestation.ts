import type { Manifest } from '../api/index.js';
import { canonicalJson } from '../lib/canonical-json.js';
import type { Finding } from '../lib/errors.js';
import { fieldPath } from '../lib/json.js';
import type { Json, JsonObject, Path } from '../lib/json.js';
import { digestOf } from '../lib/sha256.js';
import type { Digest } from '../lib/sha256.js';
import { compact, firstDifference, firstMissing, normalPodSpec } from './pod-spec.js';
import type { Difference } from './pod-spec.js';
import { isProviderKey, providerKeys, specOf } from './provider-pod.js';

/** The first thing that is not as rendered. `check` is the row of the contract's table. */
export interface Mismatch {
  readonly check: number;
  readonly finding: Finding;
}

/** Is a Pod the expected one, but for what the API server and the provider are known to add? Rows 10 to 12. */
export function attestPod(pod: Manifest, expected: Manifest): Mismatch | undefined {
  const label = firstDifference(expected.metadata.labels ?? {}, labelsOf(pod, expected));
  if (label) return mismatch(pod, 'labels', label);
  const annotation = firstDifference(annotationsOf(expected), annotationsOf(pod));
  if (annotation) return mismatch(pod, 'annotations', annotation);
  const base = specOf(expected);
  const difference = firstDifference(normalPodSpec(base), normalPodSpec(specOf(pod), base));
  return difference && mismatch(pod, 'spec', difference);
}

/**
 * Does all of the expected Pod stand in a Pod? Admission may add to a Pod, also to its containers; it may not change or remove what was
 * reviewed, what a container runs included, nor write labels and annotations that are ours or the provider's. Ephemeral containers it
 * never makes: they come later.
 */
export function attestRenderedIn(pod: Manifest, expected: Manifest): Mismatch | undefined {
  const [wanted, found] = [expected, pod].map(({ metadata }) => metadata.labels ?? {}) as [Texts, Texts];
  const label = firstDifference(wanted, reserved(found, wanted));
  if (label) return mismatch(pod, 'labels', label);
  const annotations = annotationsOf(expected);
  const annotation = firstDifference(annotations, reserved(annotationsOf(pod), annotations));
  if (annotation) return mismatch(pod, 'annotations', annotation);
  const { ephemeralContainers = null } = specOf(pod);
  const debugged = firstDifference(undefined, compact(ephemeralContainers), ['ephemeralContainers']);
  const [rendered, stored] = [specOf(expected), specOf(pod)];
  const difference = debugged ?? firstMissing(rendered, stored) ?? otherEntrypoint(rendered, stored);
  return difference && mismatch(pod, 'spec', difference);
}

/**
 * Is a Pod what admission makes of the expected one now? `admitted` is the answer to a dry run, under a name of its own.
 *
 * Equal are labels, annotations and spec, but for the node and the scheduling gates, which come and go after admission, the provider's
 * lists of what it copied, the random end of the volume with a ServiceAccount's token, and the Pod's name wherever admission wrote it.
 */
export function attestAdmitted(pod: Manifest, admitted: Manifest): Mismatch | undefined {
  const [found, wanted] = [formOf(pod), renamed(formOf(admitted), admitted.metadata.name, pod.metadata.name)];
  for (const part of ['labels', 'annotations', 'spec'] as const) {
    const difference = firstDifference(wanted[part], found[part]);
    if (difference) return mismatch(pod, part, untold(difference), 'which is what admission makes of the rendered Pod now');
  }
  return undefined;
}

/** What tells an accepted Pod from one that was changed since. */
export function admittedDigest(pod: Manifest): Digest {
  return digestOf(canonicalJson(formOf(pod)));
}

type Texts = Readonly<Record<string, string>>;

const rows = { labels: 10, annotations: 11, spec: 12 } as const;

function mismatch(pod: Manifest, part: keyof typeof rows, { path, found, wanted }: Difference, which?: string): Mismatch {
  const root: Path = part === 'spec' ? ['spec'] : ['metadata', part];
  const text = typeof wanted === 'string' ? wanted : JSON.stringify(wanted ?? 'nothing');
  const allowed = which === undefined ? text : `${text}, ${which}`;
  const at = `Pod ${pod.metadata.namespace ?? ''}/${pod.metadata.name}`;
  return { check: rows[part], finding: { at, field: fieldPath([...root, ...path]), found, allowed } };
}

/** What admission writes into a variable may be a credential. */
function untold({ path, found, wanted }: Difference): Difference {
  const told = (value: Json | undefined) => (value === undefined ? undefined : 'a value');
  if (path.at(-1) === 'value') return { path, found: told(found), wanted: wanted === undefined ? undefined : 'another value' };
  return { path, found, wanted };
}

/** Written when a Pod is bound to a node, from that node. Source: the admission plug-in PodTopologyLabels. */
const topologyKeys = ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region'];

/** Labels without those of the node, unless they were rendered. */
function labelsOf({ metadata }: Manifest, rendered?: Manifest): Texts {
  const kept = Object.entries(metadata.labels ?? {}).filter(
    ([key]) => !topologyKeys.includes(key) || Object.hasOwn(rendered?.metadata.labels ?? {}, key),
  );
  return Object.fromEntries(kept);
}

/** Annotations without the provider's lists of what it copied. */
function annotationsOf({ metadata }: Manifest): Texts {
  const {
    [providerKeys.propagatedLabels]: _labels,
    [providerKeys.propagatedAnnotations]: _annotations,
    ...rest
  } = metadata.annotations ?? {};
  return rest;
}

/** Of labels or annotations those that admission has no say in: what was rendered, and every key that is ours or the provider's. */
function reserved(found: Texts, rendered: Texts): Texts {
  const kept = Object.entries(found).filter(
    ([key]) => Object.hasOwn(rendered, key) || isProviderKey(key) || key.startsWith('orka.ai/'),
  );
  return Object.fromEntries(kept);
}

/** A container that was rendered without a command runs what its image says, which was reviewed too. */
function otherEntrypoint(rendered: JsonObject, stored: JsonObject): Difference | undefined {
  const containers = ({ containers: list = [] }: JsonObject) => list as readonly JsonObject[];
  for (const [index, found] of containers(stored).entries()) {
    const wanted = containers(rendered).find(({ name }) => name === found['name']);
    for (const member of wanted ? ['command', 'args'] : []) {
      const difference = firstDifference(wanted?.[member], found[member], ['containers', index, member]);
      if (difference) return difference;
    }
  }
  return undefined;
}

/** What of a Pod admission decides on, in one spelling. */
function formOf(pod: Manifest): JsonObject {
  const { nodeName: _node, schedulingGates: _gates, ...spec } = specOf(pod);
  return { labels: labelsOf(pod), annotations: annotationsOf(pod), spec: withSteadyTokenVolumes(spec) };
}

/** `kube-api-access-` and five characters of the server's own alphabet, anew for each Pod. */
const tokenVolume = /^kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}$/;

/** Volumes and mounts of tokens under a name that no volume can have. */
function withSteadyTokenVolumes(spec: JsonObject): JsonObject {
  const volumes = (spec['volumes'] ?? []) as readonly JsonObject[];
  const names = volumes.flatMap(({ name, projected }) => (projected !== undefined && typeof name === 'string' ? [name] : []));
  return names
    .filter((name) => tokenVolume.test(name))
    .reduce((steady, name) => renamed(steady, name, 'kube-api-access-*'), spec);
}

/** With one name in place of another wherever it stands; for names that are nothing else by chance. */
function renamed(value: JsonObject, from: string, to: string): JsonObject {
  const text = JSON.stringify(value).replaceAll(from, to);
  return JSON.parse(text) as JsonObject;
}
