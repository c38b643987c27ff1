import { patterns, runtimePoolClassKind, runtimePoolKind, validate } from '../../api/index.js';
import type { Kind, Manifest, RuntimePoolClassSpec } from '../../api/index.js';
import { isPinnedImage, isUnbuiltImage, pinnedImageForm } from '../../lib/image-reference.js';
import { quantityValue } from '../../lib/quantity.js';
import { badAddress } from './addresses.js';
import { badLabel } from './names.js';
import { firstOf } from './pod-parts.js';
import { badToleration } from './pod-scheduling.js';
import type { Broken, ListingRule, Rule } from './rule.js';

/** An object of ours must be what its schema says, CEL rules included; the API server would say the same, later. */
function valid(id: string, kind: Kind<unknown>): Rule<Manifest> {
  return {
    id,
    kind: 'provider',
    because: 'the API server refuses it',
    source: 'schema of the kind',
    check: (object) => {
      const [violation] = validate(kind, object);
      return violation && { field: violation.field, found: violation.found, allowed: violation.allowed };
    },
  };
}

export const validRuntimePool = valid('runtime-pool/schema', runtimePoolKind);
export const validRuntimePoolClass = valid('class/schema', runtimePoolClassKind);

/** A URL of a Service of one namespace, in the one spelling that every reader understands alike: nothing is normalised, nothing can ride on it. */
function serviceUrl(field: string, url: string, namespace: string): Broken | undefined {
  const match =
    /^https?:\/\/[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\.([-a-z0-9]+)\.svc(?:\.cluster\.local)?(?::([1-9]\d{0,4}))?(?:\/[\w.~-]+)*\/?$/.exec(
      url,
    );
  return match?.[1] === namespace && Number(match[2] ?? 80) <= 65535
    ? undefined
    : { field, found: url, allowed: `http(s)://<service>.${namespace}.svc, with a port and a plain path at most` };
}

const badAmount = (amount: string | number, field: string): Broken | undefined =>
  (quantityValue(amount) ?? 0n) > 0n
    ? undefined
    : { field, found: amount, allowed: 'a positive quantity such as 250m, 4Gi or 2' };

/** The sizes of a class that are no amounts, and the limits below their request. */
function badAmounts({ pod: { volumes, resources } }: RuntimePoolClassSpec): readonly Broken[] {
  const sizes = Object.entries(volumes).map(([name, size]) => badAmount(size, `spec.pod.volumes.${name}`));
  const amounts = (['cpu', 'memory', 'ephemeral-storage'] as const).flatMap((name) => {
    const [request, limit] = [resources.requests[name], resources.limits[name]];
    const bad = [
      badAmount(request, `spec.pod.resources.requests.${name}`),
      badAmount(limit, `spec.pod.resources.limits.${name}`),
    ];
    if (bad.some((one) => one !== undefined) || (quantityValue(request) ?? 0n) <= (quantityValue(limit) ?? 0n)) return bad;
    return [{ field: `spec.pod.resources.limits.${name}`, found: limit, allowed: `at least the request, ${request}` }];
  });
  return [...sizes, ...amounts].filter((one) => one !== undefined);
}

/** Rules about the settings of a class that a schema cannot say. Source: workload.md §3.1, §3.8. */
export const classRules: readonly ListingRule<RuntimePoolClassSpec>[] = [
  {
    id: 'class/image-reference',
    kind: 'provider',
    because: 'no container runtime can pull any other, and a tag can move after review',
    source: 'workload.md §2.7',
    check: ({ runtime: { image } }) =>
      isPinnedImage(image) ? undefined : { field: 'spec.runtime.image', found: image, allowed: pinnedImageForm },
  },
  {
    id: 'class/tolerations',
    kind: 'provider',
    because: 'the API server refuses the Pod',
    source: 'Kubernetes tolerations',
    check: ({ pod }) =>
      firstOf(pod.placement.tolerations, (one, index) => badToleration(one, `spec.pod.placement.tolerations[${index}]`)),
  },
  {
    id: 'class/image',
    kind: 'policy',
    because: 'an all-zero digest is a place-holder for an image that was not built',
    source: 'workload.md §2.7',
    check: ({ runtime: { image } }) =>
      isUnbuiltImage(image)
        ? { field: 'spec.runtime.image', found: image, allowed: 'the digest of an image that exists' }
        : undefined,
  },
  {
    id: 'class/amounts',
    kind: 'provider',
    because: 'the API server refuses the Pod',
    source: 'Kubernetes quantities',
    check: (spec) => badAmounts(spec)[0],
    all: badAmounts,
  },
  {
    id: 'class/token-key',
    kind: 'provider',
    because: 'a Secret cannot have such a key',
    source: 'Kubernetes Secrets',
    check: ({ providerProxy: { tokenSecretRef } }) =>
      tokenSecretRef.key === '.' || tokenSecretRef.key.startsWith('..')
        ? {
            field: 'spec.providerProxy.tokenSecretRef.key',
            found: tokenSecretRef.key,
            allowed: 'a key that does not begin with ".."',
          }
        : undefined,
  },
  {
    id: 'class/adapter-names',
    kind: 'policy',
    because: 'the names are part of a digest and of an environment variable',
    source: 'workload.md §2.7',
    check: ({ runtime: { adapterDigests } }) => {
      const bad = Object.keys(adapterDigests).find(
        (name) => name.length > 128 || !new RegExp(patterns.secretKey.pattern).test(name),
      );
      return bad === undefined
        ? undefined
        : { field: 'spec.runtime.adapterDigests', found: bad, allowed: 'names of at most 128 letters, digits, "-", "_" and "."' };
    },
  },
  {
    id: 'class/labels',
    kind: 'provider',
    because: 'the API server refuses any other label in a selector',
    source: 'Kubernetes labels',
    check: ({ pod, providerProxy, network }) =>
      badLabel(pod.placement.nodeSelector, 'spec.pod.placement.nodeSelector') ??
      badLabel(providerProxy.podLabels, 'spec.providerProxy.podLabels') ??
      badLabel(network.dns.podLabels, 'spec.network.dns.podLabels') ??
      (network.artifacts && badLabel(network.artifacts.podLabels, 'spec.network.artifacts.podLabels')),
  },
  {
    id: 'class/addresses',
    kind: 'policy',
    because: 'an address is a way out of the sandbox: it leads to one host, and never to credentials of the node',
    source: 'RFC 6890',
    check: ({ providerProxy, network }) =>
      badAddress(network.dns, 'spec.network.dns', 'dns') ??
      badAddress(network.controller, 'spec.network.controller', 'service') ??
      badAddress(providerProxy, 'spec.providerProxy', 'service') ??
      badAddress(network.artifacts ?? {}, 'spec.network.artifacts', 'service'),
  },
  {
    id: 'class/proxy-url',
    kind: 'policy',
    because: 'the one way out must stay inside the cluster and lead to the namespace that the network policy opens',
    source: 'workload.md §3.8',
    check: ({ providerProxy: { url, namespace } }) => serviceUrl('spec.providerProxy.url', url, namespace),
  },
  {
    id: 'class/api-url',
    kind: 'policy',
    because: 'the supervisor calls the controller under this URL, through a policy that opens its namespace only',
    source: 'workload.md §1.3',
    check: ({ network: { controller } }) => serviceUrl('spec.network.controller.apiUrl', controller.apiUrl, controller.namespace),
  },
  {
    id: 'class/artifact-url',
    kind: 'policy',
    because: 'the supervisor downloads from this URL, through a policy that opens its namespace only',
    source: 'repository.md §4.1',
    check: ({ network: { artifacts } }) =>
      artifacts && serviceUrl('spec.network.artifacts.url', artifacts.url, artifacts.namespace),
  },
  {
    id: 'class/runtime-namespace',
    kind: 'policy',
    because: 'sandboxes next to the controller, the proxy or the publisher would share what is meant for them',
    source: 'workload.md §3.1',
    check: ({ network, providerProxy }) =>
      [network.controller.namespace, providerProxy.namespace, network.artifacts?.namespace].includes(network.runtimeNamespace)
        ? { field: 'spec.network.runtimeNamespace', found: network.runtimeNamespace, allowed: 'a namespace of its own' }
        : undefined,
  },
];
