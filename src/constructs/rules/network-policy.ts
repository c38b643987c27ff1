import type { Manifest } from '../../api/index.js';
import { identityRules } from './names.js';
import type { Rule } from './rule.js';

interface LooseRule {
  readonly from?: readonly object[];
  readonly to?: readonly object[];
  readonly ports?: readonly { readonly protocol?: string; readonly port?: number | string; readonly endPort?: number }[];
}
interface PolicySpec {
  readonly policyTypes?: readonly string[];
  readonly ingress?: readonly LooseRule[];
  readonly egress?: readonly LooseRule[];
}

const specOf = (object: Manifest): PolicySpec => object['spec'] as unknown as PolicySpec;

/** Where an object holds rules of traffic. */
interface Traffic {
  readonly field: string;
  readonly of: (object: Manifest) => PolicySpec | undefined;
}

function* rulesOf(object: Manifest, { field, of }: Traffic): Generator<{ field: string; rule: LooseRule; peers: 'from' | 'to' }> {
  const { ingress = [], egress = [] } = of(object) ?? {};
  for (const [i, rule] of ingress.entries()) yield { field: `${field}.ingress[${i}]`, rule, peers: 'from' };
  for (const [i, rule] of egress.entries()) yield { field: `${field}.egress[${i}]`, rule, peers: 'to' };
}

/** Rules about each rule of traffic; those of kind `policy` are what `allowOpenRules` turns off. */
export const trafficRules = (traffic: Traffic): readonly Rule<Manifest>[] => [
  {
    id: 'network-policy/port',
    kind: 'provider',
    because: 'port 0 is dropped by some clients and then means every port',
    source: 'toolchain.md C.3',
    check: (object) => {
      for (const { field, rule } of rulesOf(object, traffic)) {
        for (const [i, { port }] of (rule.ports ?? []).entries()) {
          if (typeof port === 'number' && !(Number.isInteger(port) && port >= 1 && port <= 65535))
            return { field: `${field}.ports[${i}].port`, found: port, allowed: '1 to 65535' };
        }
      }
      return undefined;
    },
  },
  {
    id: 'network-policy/protocol',
    kind: 'provider',
    because: "the provider compares ports without the server's default",
    source: 'provider.md §7',
    check: (object) => {
      for (const { field, rule } of rulesOf(object, traffic)) {
        for (const [i, { protocol }] of (rule.ports ?? []).entries()) {
          if (protocol === undefined)
            return { field: `${field}.ports[${i}].protocol`, found: undefined, allowed: 'TCP, UDP or SCTP, said explicitly' };
        }
      }
      return undefined;
    },
  },
  {
    id: 'network-policy/open-rule',
    kind: 'policy',
    because: 'a rule without peers means anyone, and one without ports every port',
    source: 'toolchain.md §0',
    check: (object) => {
      for (const { field, rule, peers } of rulesOf(object, traffic)) {
        if ((rule[peers] ?? []).length === 0)
          return { field: `${field}.${peers}`, found: rule[peers], allowed: 'at least one peer' };
        if ((rule.ports ?? []).length === 0) return { field: `${field}.ports`, found: rule.ports, allowed: 'at least one port' };
        const empty = (rule[peers] ?? []).findIndex((peer) => Object.keys(peer).length === 0);
        if (empty >= 0) return { field: `${field}.${peers}[${empty}]`, found: {}, allowed: 'a peer that selects something' };
      }
      return undefined;
    },
  },
];

export const networkPolicyRules: readonly Rule<Manifest>[] = [
  ...identityRules,
  {
    id: 'network-policy/types',
    kind: 'provider',
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
