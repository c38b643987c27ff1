import type { Manifest } from '../../api/index.js';
import { isDnsLabel, isDnsSubdomain, isLabelValue, isQualifiedName } from '../../lib/kubernetes-names.js';
import type { Broken, Rule } from './rule.js';

/** What every object needs to be accepted with its labels and annotations. */
export const metadataRules: readonly Rule<Manifest>[] = [
  {
    id: 'metadata/labels',
    kind: 'provider',
    because: 'the API server refuses any other label',
    source: 'Kubernetes labels',
    check: ({ metadata: { labels } }) => badLabel(labels, 'metadata.labels'),
  },
  {
    id: 'metadata/annotations',
    kind: 'provider',
    because: 'the API server refuses any other key',
    source: 'Kubernetes annotations',
    check: ({ metadata: { annotations } }) => badAnnotation(annotations, 'metadata.annotations'),
  },
];

/** What every namespaced object needs to be accepted at all. */
export const identityRules: readonly Rule<Manifest>[] = [
  {
    id: 'metadata/name',
    kind: 'provider',
    because: 'the API server refuses any other name',
    source: 'Kubernetes object names',
    check: ({ metadata: { name } }) =>
      isDnsSubdomain(name)
        ? undefined
        : { field: 'metadata.name', found: name, allowed: 'a DNS subdomain of at most 253 characters' },
  },
  {
    id: 'metadata/namespace',
    kind: 'provider',
    because: 'the API server refuses any other namespace',
    source: 'Kubernetes object names',
    check: ({ metadata: { namespace } }) =>
      namespace === undefined || isDnsLabel(namespace)
        ? undefined
        : { field: 'metadata.namespace', found: namespace, allowed: 'a DNS label of at most 63 characters' },
  },
  ...metadataRules,
];

/** What a key of a label may be. */
export const qualifiedName = 'a qualified name: an optional DNS prefix and "/", then at most 63 letters, digits, "-", "_", "."';

/** All annotations of an object together. */
const annotationBytes = 256 * 1024;

/** The first annotation that Kubernetes does not accept. Upper case in a prefix is fine there, unlike in a label. */
export function badAnnotation(annotations: Readonly<Record<string, string>> | undefined, field: string): Broken | undefined {
  const key = Object.keys(annotations ?? {}).find((name) => !isQualifiedName(name.toLowerCase()));
  if (key !== undefined) return { field, found: key, allowed: qualifiedName };
  const bytes = Object.entries(annotations ?? {}).reduce((sum, [name, text]) => sum + Buffer.byteLength(name + text), 0);
  return bytes <= annotationBytes
    ? undefined
    : { field, found: `${bytes} bytes`, allowed: `at most ${annotationBytes} bytes in all annotations of an object` };
}

/** The first label that Kubernetes does not accept. */
export function badLabel(labels: Readonly<Record<string, string>> | undefined, field: string): Broken | undefined {
  for (const [key, value] of Object.entries(labels ?? {})) {
    if (!isQualifiedName(key)) return { field, found: key, allowed: qualifiedName };
    if (!isLabelValue(value))
      return {
        field: `${field}[${key}]`,
        found: value,
        allowed: 'at most 63 letters, digits, "-", "_" and ".", starting and ending with a letter or digit',
      };
  }
  return undefined;
}

/** A label selector as it may have been written. */
interface LooseSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

/** What a label selector has that Kubernetes does not accept. */
export function badSelector(selector: LooseSelector | undefined, field: string): Broken | undefined {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  const label = Object.entries(matchLabels).find(([key, value]) => !isQualifiedName(key) || !isLabelValue(value));
  if (label) return { field: `${field}.matchLabels`, found: label.join('='), allowed: 'labels as Kubernetes has them' };
  const expression = matchExpressions.find(({ key, operator, values = [] }) => {
    const valued = ['In', 'NotIn'].includes(operator);
    const known = valued || ['Exists', 'DoesNotExist'].includes(operator);
    return !known || !isQualifiedName(key) || valued !== values.length > 0 || !values.every(isLabelValue);
  });
  return (
    expression && {
      field: `${field}.matchExpressions`,
      found: expression,
      allowed: 'In and NotIn with values, Exists and DoesNotExist without',
    }
  );
}

/** The first of the texts that stands a second time. */
export const firstTwice = (texts: readonly string[]): string | undefined =>
  texts.find((text, index) => texts.indexOf(text) !== index);

/** A name that a Service can have. */
export const isServiceName = (name: string): boolean => /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name);

/** A name that a port of a container can have. */
export const isPortName = (name: string): boolean => /^(?!-)(?!.*--)(?!.*-$)(?=.*[a-z])[-a-z0-9]{1,15}$/.test(name);
