import type { NetworkPolicyPeer } from '../constructs/network-policy.js';
import { selectableResourceClass } from '../domain/plan.js';
import { hostNetworkLabel } from '../domain/host-network.js';
import { isObject } from '../lib/json.js';
import type { Json } from '../lib/json.js';
import type { CompiledPool } from './compile.js';

/** What a class may say and probably does not mean: one sentence for each setting, with the key of the class. */
export function classWarnings({ spec, workspace }: CompiledPool): readonly string[] {
  const { network, providerProxy } = spec;
  const settings: readonly (readonly [string, string, Readonly<Record<string, string>>])[] = [
    ['network.dns.podLabels', 'network.dns.addresses, such as 169.254.20.10/32', network.dns.podLabels],
    ['providerProxy.podLabels', 'providerProxy.addresses', providerProxy.podLabels],
  ];
  const known = settings.map(([, , labels]) => hostNetworkLabel(labels));
  const patched = workspace.isolation
    .flatMap(({ manifest }) => peersIn(manifest['spec'] as Json))
    .map((labels) => hostNetworkLabel(labels))
    .filter((label) => label !== undefined && !known.includes(label));
  const unused = spec.resourceClass !== selectableResourceClass;
  return [
    ...(unused ? [`resourceClass: no Task of this version uses ${spec.resourceClass}, only ${selectableResourceClass}`] : []),
    ...settings.flatMap(([key, instead], index) => sentence(key, known[index], instead)),
    ...[...new Set(patched)].flatMap((label) => sentence('patches', label, 'network.dns.addresses or providerProxy.addresses')),
  ];
}

function sentence(key: string, label: string | undefined, instead: string): readonly string[] {
  const why = 'Pods with this label run with the network of their node, where no selector of a NetworkPolicy finds them';
  return label === undefined ? [] : [`${key}: ${label} selects nothing: ${why}; name their addresses instead: ${instead}`];
}

/** The labels of every peer of a NetworkPolicy. */
function peersIn(spec: Json): readonly Readonly<Record<string, string>>[] {
  const { ingress, egress } = (isObject(spec) ? spec : {}) as unknown as Readonly<Record<string, readonly Traffic[] | undefined>>;
  return [...(ingress ?? []), ...(egress ?? [])]
    .flatMap(({ from, to }) => [...(from ?? []), ...(to ?? [])])
    .map(({ podSelector }) => podSelector?.matchLabels ?? {});
}

interface Traffic {
  readonly from?: readonly NetworkPolicyPeer[];
  readonly to?: readonly NetworkPolicyPeer[];
}
