import type { Manifest } from '../../api/index.js';
import type { NetworkPolicyPeer, NetworkPolicyPort } from '../network-policy.js';
import type { Broken, Rule } from './rule.js';

interface LooseRule {
  readonly from?: readonly NetworkPolicyPeer[];
  readonly to?: readonly NetworkPolicyPeer[];
  readonly ports?: readonly NetworkPolicyPort[];
}

const selectsSome = (selector: NetworkPolicyPeer['podSelector']): boolean => Object.keys(selector?.matchLabels ?? {}).length > 0;

/** A pool's policies open paths to named Pods of named namespaces, port by port; a class may add such a path and no other. */
export const poolNetworkRules: readonly Rule<Manifest>[] = [
  {
    id: 'pool/named-peers',
    kind: 'policy',
    because: 'an address range, a whole namespace or a range of ports is a way out that nobody reviewed',
    source: 'workload.md §3.6',
    check: (object) => {
      const { ingress = [], egress = [] } = object['spec'] as { ingress?: readonly LooseRule[]; egress?: readonly LooseRule[] };
      return broken('spec.ingress', ingress) ?? broken('spec.egress', egress);
    },
  },
];

function broken(field: string, rules: readonly LooseRule[]): Broken | undefined {
  for (const [index, rule] of rules.entries()) {
    const peers = [...(rule.from ?? []), ...(rule.to ?? [])];
    const open = peers.find(
      ({ ipBlock, namespaceSelector, podSelector }) =>
        ipBlock !== undefined || !selectsSome(namespaceSelector) || !selectsSome(podSelector),
    );
    if (open)
      return {
        field: `${field}[${index}]`,
        found: open,
        allowed: 'a namespaceSelector and a podSelector, each with matchLabels, and no ipBlock',
      };
    const range = (rule.ports ?? []).find(({ port, endPort }) => endPort !== undefined || typeof port !== 'number');
    if (range) return { field: `${field}[${index}].ports`, found: range, allowed: 'one port by number' };
  }
  return undefined;
}
