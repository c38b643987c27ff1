import type { Manifest } from '../api/index.js';
import { isObject } from '../lib/json.js';
import type { JsonObject } from '../lib/json.js';

/** Keys of the provider (v1.0.3). Source: provider.md §3.1. */
export const providerKeys = {
  claimUid: 'agents.x-k8s.io/claim-uid',
  templateRef: 'agents.x-k8s.io/sandbox-template-ref',
  templateRefHash: 'agents.x-k8s.io/sandbox-template-ref-hash',
  nameHash: 'agents.x-k8s.io/sandbox-name-hash',
  propagatedLabels: 'agents.x-k8s.io/propagated-labels',
  propagatedAnnotations: 'agents.x-k8s.io/propagated-annotations',
} as const;

/** Does a label or an annotation belong to the provider alone? It takes such keys from no template. */
export const isProviderKey = (key: string): boolean => /^(extensions\.)?agents\.x-k8s\.io\//.test(key);

/** The provider's name hash: FNV-1a, 32 bits, over UTF-8. Source: provider.md §2. */
export function nameHash(name: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, '0');
}

export function specOf(object: Manifest): JsonObject {
  const spec = object['spec'];
  return isObject(spec) ? spec : {};
}

/** What a SandboxTemplate or a Sandbox says about its Pod. */
export function podTemplateOf(object: Manifest) {
  const template = specOf(object)['podTemplate'];
  const { metadata, spec } = (isObject(template) ? template : {}) as {
    metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
    spec?: JsonObject;
  };
  return { labels: metadata?.labels ?? {}, annotations: metadata?.annotations ?? {}, spec: spec ?? {} };
}

/**
 * The Pod that the provider creates for a Sandbox of a claim, as it sends it. Not for templates with claims for volumes, which ours never have.
 *
 * Its owner does not block the deletion of anything: that asks for a right over the owner in some clusters, and admission has no use for it.
 * Source: provider.md §3.1.
 */
export function expectedPod(sandbox: Manifest): Manifest {
  const { labels, annotations, spec } = podTemplateOf(sandbox);
  const { name, namespace = '', uid = '' } = sandbox.metadata;
  const listed = (key: string, map: Readonly<Record<string, string>>) => {
    const own = Object.keys(map).filter((one) => !isProviderKey(one));
    return own.length === 0 ? {} : { [key]: own.sort().join(',') };
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      labels: { ...labels, [providerKeys.nameHash]: nameHash(name) },
      annotations: {
        ...annotations,
        ...listed(providerKeys.propagatedLabels, labels),
        ...listed(providerKeys.propagatedAnnotations, annotations),
      },
      ownerReferences: [{ apiVersion: sandbox.apiVersion, kind: sandbox.kind, name, uid, controller: true }],
    },
    spec,
  };
}
