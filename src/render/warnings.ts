import { isPrivateAddress } from '../constructs/rules/addresses.js';
import { temporaryVolume } from '../constructs/install/publisher-install.js';
import type { PublisherSettings } from '../constructs/install/publisher-install.js';
import type { NetworkPolicyPeer } from '../constructs/network-policy.js';
import { selectableResourceClass } from '../domain/plan.js';
import { hostNetworkLabel } from '../domain/host-network.js';
import { isIPv4 } from 'node:net';
import { overlaps } from '../lib/cidr.js';
import { isObject } from '../lib/json.js';
import { quantityValue } from '../lib/quantity.js';
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

/** Names of Services, and domains that no public DNS has. Source: RFC 6762, the reservation of `internal` by ICANN. */
const privateName = /\.(?:svc|svc\.cluster\.local|local|internal)$/;
const usualStore = 1024n * 1024n * 1024n;

const quantityLess = (amount: string | number, bytes: bigint): boolean =>
  (quantityValue(amount) ?? 0n) < (quantityValue(String(bytes)) ?? 0n);

/** The same for the publisher, with keys of the file. `isClosed`: the controller may reach the API server only. */
export function publisherWarnings({ forges, storage, limits }: PublisherSettings, isClosed: boolean): readonly string[] {
  const open = forges.flatMap((forge, index) => (forge.private ? [] : [{ host: forge.host, at: `publisher.forges[${index}]` }]));
  const unreachable = open.filter(({ host }) => privateName.test(host) || isPrivateAddress(host));
  const [first] = open.filter((one) => !unreachable.includes(one));
  const outside = forges.flatMap(({ host, peer }, index) =>
    peer && 'cidr' in peer && isIPv4(host) && !overlaps(`${host}/32`, peer.cidr) ? [{ host, cidr: peer.cidr, index }] : [],
  );
  const store = BigInt(limits['artifactStoreBytes'] ?? usualStore);
  return [
    ...unreachable.map(({ host, at }) => `${at}: ${host} has no public address, so it is never reached; set private and peer`),
    ...outside.map(({ host, cidr, index }) => `publisher.forges[${index}].peer.cidr: ${cidr} does not hold ${host}`),
    ...(isClosed && first
      ? [
          `${first.at}: the publisher may connect to all public addresses, while controller.apiServer closes them to the controller`,
        ]
      : []),
    ...(quantityLess(storage?.capacity ?? temporaryVolume, 2n * store)
      ? [
          `publisher.storage.capacity: ${storage?.capacity ?? `${temporaryVolume} without storage`} is less than twice limits.artifactStoreBytes, ${2n * store} bytes`,
        ]
      : []),
  ];
}
