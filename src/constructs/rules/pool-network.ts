import type { Manifest } from '../../api/index.js';
import type { NetworkPolicyPeer, NetworkPolicyPort } from '../network-policy.js';
import type { AddressBlock } from './addresses.js';
import type { Broken, Rule } from './rule.js';

interface LooseRule {
  readonly from?: readonly NetworkPolicyPeer[];
  readonly to?: readonly NetworkPolicyPeer[];
  readonly ports?: readonly NetworkPolicyPort[];
}

const selectsSome = (selector: NetworkPolicyPeer['podSelector']): boolean => Object.keys(selector?.matchLabels ?? {}).length > 0;

/** What one policy of a pool opens besides Pods. */
export interface OpenAddresses {
  readonly blocks: readonly AddressBlock[];
  /** Only these are open at the addresses: at others a cloud may hand out credentials. */
  readonly ports: readonly number[];
}

/**
 * A pool's policies open paths to named Pods of named namespaces and to addresses of the class, port by port; a class may add such a path
 * and no other.
 */
export const poolNetworkRules = (open: OpenAddresses): readonly Rule<Manifest>[] => [
  {
    id: 'pool/named-peers',
    kind: 'policy',
    because: 'an address range, a whole namespace or a range of ports is a way out that nobody reviewed',
    source: 'workload.md §3.6',
    check: (object) => {
      const { ingress = [], egress = [] } = object['spec'] as { ingress?: readonly LooseRule[]; egress?: readonly LooseRule[] };
      return broken('spec.ingress', ingress, open) ?? broken('spec.egress', egress, open);
    },
  },
];

function broken(field: string, rules: readonly LooseRule[], open: OpenAddresses): Broken | undefined {
  for (const [index, rule] of rules.entries()) {
    const peers = [...(rule.from ?? []), ...(rule.to ?? [])];
    const foreign = peers.find(({ ipBlock, namespaceSelector, podSelector }) =>
      ipBlock
        ? !open.blocks.some((block) => isInside(ipBlock, block))
        : !selectsSome(namespaceSelector) || !selectsSome(podSelector),
    );
    if (foreign) return { field: `${field}[${index}]`, found: foreign, allowed: peerForm(open) };
    const ports = rule.ports ?? [];
    const range = ports.find(({ port, endPort }) => endPort !== undefined || typeof port !== 'number');
    if (range) return { field: `${field}[${index}].ports`, found: range, allowed: 'one port by number' };
    const other = ports.find(({ port }) => !open.ports.some((one) => one === port));
    if (other && peers.some(({ ipBlock }) => ipBlock))
      return {
        field: `${field}[${index}].ports`,
        found: other,
        allowed: `port ${[...new Set(open.ports)].join(' or ')} of an ipBlock`,
      };
  }
  return undefined;
}

/** A patch may close more of a block, and not less. */
const isInside = (found: AddressBlock, { cidr, except = [] }: AddressBlock): boolean =>
  found.cidr === cidr && except.every((range) => found.except?.includes(range));

const peerForm = ({ blocks }: OpenAddresses): string =>
  `a namespaceSelector and a podSelector, each with matchLabels, ${
    blocks.length === 0 ? 'and no ipBlock' : `or an ipBlock of ${blocks.map((block) => JSON.stringify(block)).join(', ')}`
  }`;
