import type { Manifest } from '../../api/index.js';
import { isDnsLabel, isDnsSubdomain, isLabelValue, isQualifiedName } from '../../lib/kubernetes-names.js';
import type { Rule } from './rule.js';

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
  {
    id: 'metadata/labels',
    kind: 'provider',
    because: 'the API server refuses any other label',
    source: 'Kubernetes labels',
    check: ({ metadata: { labels } }) => badLabel(labels, 'metadata.labels'),
  },
];

/** The first key of a label or annotation that Kubernetes does not accept. */
export const badKey = (keys: readonly string[]): string | undefined => keys.find((key) => !isQualifiedName(key));

/** The first label that Kubernetes does not accept. */
export function badLabel(
  labels: Readonly<Record<string, string>> | undefined,
  field: string,
): { field: string; found: string; allowed: string } | undefined {
  for (const [key, value] of Object.entries(labels ?? {})) {
    if (!isQualifiedName(key))
      return {
        field,
        found: key,
        allowed: 'a qualified name: an optional DNS prefix and "/", then at most 63 letters, digits, "-", "_", "."',
      };
    if (!isLabelValue(value))
      return {
        field: `${field}[${key}]`,
        found: value,
        allowed: 'at most 63 letters, digits, "-", "_" and ".", starting and ending with a letter or digit',
      };
  }
  return undefined;
}
