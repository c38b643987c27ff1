import type { Manifest } from '../../api/index.js';
import { canonicalCidr, isCidr, isWithin } from '../../lib/cidr.js';
import type { NetworkPolicyPeer } from '../network-policy.js';
import { badSelector, identityRules, isPortName } from './names.js';
import type { Broken, Rule } from './rule.js';

interface LooseRule {
  readonly from?: readonly NetworkPolicyPeer[];
  readonly to?: readonly NetworkPolicyPeer[];
  readonly ports?: readonly { readonly protocol?: string; readonly port?: number | string; readonly endPort?: number }[];
}
interface PolicySpec {
  readonly policyTypes?: readonly string[];
  readonly ingress?: readonly LooseRule[] | null;
  readonly egress?: readonly LooseRule[] | null;
}

const specOf = (object: Manifest): PolicySpec => object['spec'] as unknown as PolicySpec;

/** Where an object holds rules of traffic. */
interface Traffic {
  readonly field: string;
  readonly of: (object: Manifest) => PolicySpec | null | undefined;
}

interface FoundRule {
  readonly field: string;
  readonly rule: LooseRule;
  readonly side: 'from' | 'to';
}

function* rulesOf(object: Manifest, { field, of }: Traffic): Generator<FoundRule> {
  const { ingress, egress } = of(object) ?? {};
  for (const [i, rule] of (ingress ?? []).entries()) yield { field: `${field}.ingress[${i}]`, rule, side: 'from' };
  for (const [i, rule] of (egress ?? []).entries()) yield { field: `${field}.egress[${i}]`, rule, side: 'to' };
}

function* peersOf(object: Manifest, traffic: Traffic): Generator<{ readonly field: string; readonly peer: NetworkPolicyPeer }> {
  for (const { field, rule, side } of rulesOf(object, traffic))
    for (const [i, peer] of (rule[side] ?? []).entries()) yield { field: `${field}.${side}[${i}]`, peer };
}

function first<T>(items: Iterable<T>, check: (item: T) => Broken | undefined): Broken | undefined {
  for (const item of items) {
    const broken = check(item);
    if (broken) return broken;
  }
  return undefined;
}

/** In a template the API accepts all of this; the controller then cannot write the policy, says so in its log, and nothing isolates. */
const unwritten = 'the API server refuses the policy, and what a template asks for is then never written: its sandboxes are open';

/** Rules about each rule of traffic. */
export const trafficRules = (traffic: Traffic): readonly Rule<Manifest>[] => [
  {
    id: 'network-policy/ports',
    kind: 'provider',
    because: unwritten,
    source: 'provider.md §7',
    check: (object) =>
      first(rulesOf(object, traffic), ({ field, rule }) =>
        first((rule.ports ?? []).entries(), ([i, { protocol, port, endPort }]) => {
          const at = `${field}.ports[${i}]`;
          if (protocol !== undefined && !['TCP', 'UDP', 'SCTP'].includes(protocol))
            return { field: `${at}.protocol`, found: protocol, allowed: 'TCP, UDP or SCTP' };
          if (port !== undefined && !isPort(port))
            return { field: `${at}.port`, found: port, allowed: '1 to 65535, or the name of a container port' };
          if (endPort !== undefined && !(typeof port === 'number' && isPort(endPort) && endPort >= port))
            return { field: `${at}.endPort`, found: endPort, allowed: 'a number from port to 65535, beside a port by number' };
          return undefined;
        }),
      ),
  },
  {
    id: 'network-policy/peers',
    kind: 'provider',
    because: unwritten,
    source: 'provider.md §7',
    check: (object) =>
      first(peersOf(object, traffic), ({ field, peer }) => {
        const { ipBlock, podSelector, namespaceSelector } = peer;
        if (ipBlock && (podSelector ?? namespaceSelector))
          return { field, found: Object.keys(peer), allowed: 'an ipBlock, or selectors' };
        if (ipBlock && !isCidr(ipBlock.cidr))
          return { field: `${field}.ipBlock.cidr`, found: ipBlock.cidr, allowed: 'a range such as 10.0.0.0/8' };
        const outside = ipBlock?.except?.find((range) => !isWithin(range, ipBlock.cidr));
        if (outside !== undefined)
          return { field: `${field}.ipBlock.except`, found: outside, allowed: `smaller ranges inside ${ipBlock?.cidr ?? ''}` };
        return badSelector(podSelector, `${field}.podSelector`) ?? badSelector(namespaceSelector, `${field}.namespaceSelector`);
      }),
  },
  {
    id: 'network-policy/ranges',
    kind: 'policy',
    because:
      'network plugins read other spellings differently: bits of a host are kept or dropped, and an IPv4-mapped range is IPv4 to one and IPv6 to another',
    source: 'Kubernetes NetworkPolicy, RFC 5952',
    check: (object) =>
      first(peersOf(object, traffic), ({ field, peer: { ipBlock } }) =>
        ipBlock
          ? (badSpelling(ipBlock.cidr, `${field}.ipBlock.cidr`) ??
            first((ipBlock.except ?? []).entries(), ([i, range]) => badSpelling(range, `${field}.ipBlock.except[${i}]`)))
          : undefined,
      ),
  },
  {
    id: 'network-policy/protocol',
    kind: 'policy',
    because:
      "the provider compares ports without the server's default and writes the policy again with each look at the template",
    source: 'provider.md §7',
    check: (object) =>
      first(rulesOf(object, traffic), ({ field, rule }) =>
        first((rule.ports ?? []).entries(), ([i, { protocol }]) =>
          protocol === undefined
            ? { field: `${field}.ports[${i}].protocol`, found: undefined, allowed: 'TCP, UDP or SCTP, said explicitly' }
            : undefined,
        ),
      ),
  },
  {
    id: 'network-policy/open-rule',
    kind: 'policy',
    because: 'a rule without peers means anyone, and one without ports every port',
    source: 'toolchain.md §0',
    check: (object) =>
      first(rulesOf(object, traffic), ({ field, rule, side }) => {
        const peers = rule[side] ?? [];
        if (peers.length === 0) return { field: `${field}.${side}`, found: rule[side], allowed: 'at least one peer' };
        if ((rule.ports ?? []).length === 0) return { field: `${field}.ports`, found: rule.ports, allowed: 'at least one port' };
        const empty = peers.findIndex((peer) => Object.keys(peer).length === 0);
        return empty < 0
          ? undefined
          : { field: `${field}.${side}[${empty}]`, found: {}, allowed: 'a peer that selects something' };
      }),
  },
];

function badSpelling(found: string, field: string): Broken | undefined {
  const allowed = canonicalCidr(found);
  return allowed === undefined || allowed === found ? undefined : { field, found, allowed };
}

function isPort(port: number | string): boolean {
  if (typeof port === 'number') return Number.isInteger(port) && port >= 1 && port <= 65535;
  return isPortName(port);
}

export const networkPolicyRules: readonly Rule<Manifest>[] = [
  ...identityRules,
  {
    id: 'network-policy/types',
    kind: 'policy',
    because:
      'without policyTypes a policy that has only egress rules also closes ingress, and one without rules closes only ingress',
    source: 'Kubernetes NetworkPolicy',
    check: (object) =>
      (specOf(object).policyTypes ?? []).length > 0
        ? undefined
        : { field: 'spec.policyTypes', found: specOf(object).policyTypes, allowed: 'Ingress, Egress or both' },
  },
  ...trafficRules({ field: 'spec', of: specOf }),
];
