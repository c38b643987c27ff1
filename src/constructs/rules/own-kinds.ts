import { runtimePoolClassKind, runtimePoolKind, validate } from '../../api/index.js';
import type { Kind, Manifest, RuntimePoolClassSpec } from '../../api/index.js';
import type { Rule } from './rule.js';

function parseUrl(text: string): URL | undefined {
  return URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
}

/** http(s) with nothing that could carry a secret or change what is called. */
function isBare(url: URL | undefined): boolean {
  return (
    url !== undefined &&
    ['http:', 'https:'].includes(url.protocol) &&
    [url.username, url.password, url.search, url.hash].every((part) => part === '')
  );
}

/** An object of ours must be what its schema says, CEL rules included; the API server would say the same, later. */
function valid<T>(id: string, kind: Kind<T>): Rule<Manifest> {
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

/** Rules about the settings of a class that a schema cannot say. Source: workload.md §3.1, §3.8. */
export const classRules: readonly Rule<RuntimePoolClassSpec>[] = [
  {
    id: 'class/image',
    kind: 'policy',
    because: 'an all-zero digest is a place-holder for an image that was not built',
    source: 'workload.md §2.7',
    check: ({ runtime: { image } }) =>
      /@sha256:0{64}$/.test(image)
        ? { field: 'spec.runtime.image', found: image, allowed: 'the digest of an image that exists' }
        : undefined,
  },
  {
    id: 'class/proxy-url',
    kind: 'policy',
    because: 'the one way out must stay inside the cluster and lead to the namespace that the network policy opens',
    source: 'workload.md §3.8',
    check: ({ providerProxy: { url, namespace } }) => {
      const parsed = parseUrl(url);
      const host = parsed?.hostname.toLowerCase() ?? '';
      const inside = host.endsWith(`.${namespace}.svc`) || host.endsWith(`.${namespace}.svc.cluster.local`);
      return inside && isBare(parsed)
        ? undefined
        : {
            field: 'spec.providerProxy.url',
            found: url,
            allowed: `http or https to <service>.${namespace}.svc, without user, query or fragment`,
          };
    },
  },
  {
    id: 'class/api-url',
    kind: 'policy',
    because: 'the supervisor calls the controller under this URL and nothing may ride on it',
    source: 'workload.md §1.3',
    check: ({ network: { controller } }) => {
      const parsed = parseUrl(controller.apiUrl);
      return isBare(parsed)
        ? undefined
        : {
            field: 'spec.network.controller.apiUrl',
            found: controller.apiUrl,
            allowed: 'http or https without user, query or fragment',
          };
    },
  },
  {
    id: 'class/runtime-namespace',
    kind: 'policy',
    because: 'sandboxes next to the controller or the proxy would share what is meant for them',
    source: 'workload.md §3.1',
    check: ({ network, providerProxy }) =>
      [network.controller.namespace, providerProxy.namespace].includes(network.runtimeNamespace)
        ? { field: 'spec.network.runtimeNamespace', found: network.runtimeNamespace, allowed: 'a namespace of its own' }
        : undefined,
  },
];
