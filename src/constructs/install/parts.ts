import type { RuntimePoolClassSpec } from '../../api/index.js';
import type { NetworkPolicyEgressRule, NetworkPolicyPeer } from '../network-policy.js';
import { blocksOf } from '../rules/addresses.js';
import type { Addresses } from '../rules/addresses.js';

/** Label of every object of an installation. */
export const managedBy = { 'app.kubernetes.io/managed-by': 'orka-workspaces' } as const;

/** Selector of one namespace by its name. */
export const namespaceNamed = (namespace: string) => ({ matchLabels: { 'kubernetes.io/metadata.name': namespace } });

/** Labels by which the API server checks the Pods of a namespace. */
export function podSecurity(enforced: 'baseline' | 'restricted'): Readonly<Record<string, string>> {
  return {
    'pod-security.kubernetes.io/enforce': enforced,
    'pod-security.kubernetes.io/warn': 'restricted',
    'pod-security.kubernetes.io/audit': 'restricted',
  };
}

/** Peers that run with the network of their nodes. */
export const addressPeers = (addresses: Addresses): readonly NetworkPolicyPeer[] =>
  blocksOf(addresses).map((ipBlock) => ({ ipBlock }));

/** Opens the DNS of the cluster. */
export function dnsRule({ namespace, podLabels, ...addresses }: RuntimePoolClassSpec['network']['dns']): NetworkPolicyEgressRule {
  const pods = { namespaceSelector: namespaceNamed(namespace), podSelector: { matchLabels: podLabels } };
  return {
    to: [...(Object.keys(podLabels).length > 0 ? [pods] : []), ...addressPeers(addresses)],
    ports: [
      { protocol: 'UDP', port: 53 },
      { protocol: 'TCP', port: 53 },
    ],
  };
}
