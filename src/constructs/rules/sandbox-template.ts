import type { Manifest } from '../../api/index.js';
import type { TemplateTraffic } from '../sandbox-template.js';
import { identityRules } from './names.js';
import { trafficRules } from './network-policy.js';
import { podPolicies, podRules } from './pod.js';
import type { Rule } from './rule.js';

interface TemplateSpec {
  readonly networkPolicy?: TemplateTraffic | null;
  readonly networkPolicyManagement?: string;
  readonly envVarsInjectionPolicy?: string;
  readonly volumeClaimTemplatesPolicy?: string;
}
const specOf = (object: Manifest): TemplateSpec => object['spec'] as TemplateSpec;

/** What the provider appends to a template's name to name its policy. */
export const policySuffix = '-network-policy';
const longestName = 253 - policySuffix.length;

const policies: readonly Rule<Manifest>[] = [
  {
    id: 'template/default-network',
    kind: 'policy',
    because:
      "without rules of a template the provider's own open the internet, and everything that is not a private range, and move DNS there",
    source: 'provider.md §7',
    check: (object) => {
      const { networkPolicy, networkPolicyManagement = 'Managed' } = specOf(object);
      return networkPolicyManagement === 'Managed' && networkPolicy === undefined
        ? { field: 'spec.networkPolicy', found: undefined, allowed: '{} to close both ways, or rules' }
        : undefined;
    },
  },
  {
    id: 'template/unmanaged-network',
    kind: 'policy',
    because: 'nothing isolates the sandboxes unless NetworkPolicies of your own select them',
    source: 'provider.md §7',
    check: (object) => {
      const { networkPolicyManagement } = specOf(object);
      return networkPolicyManagement === 'Unmanaged'
        ? { field: 'spec.networkPolicyManagement', found: networkPolicyManagement, allowed: 'Managed' }
        : undefined;
    },
  },
  {
    id: 'template/overrides',
    kind: 'policy',
    because: 'whoever may make a claim can then replace what was reviewed in the template',
    source: 'provider.md §5.4',
    check: (object) => {
      const spec = specOf(object);
      const field = (['envVarsInjectionPolicy', 'volumeClaimTemplatesPolicy'] as const).find(
        (name) => spec[name] === 'Overrides',
      );
      return field && { field: `spec.${field}`, found: 'Overrides', allowed: 'Disallowed or Allowed' };
    },
  },
];

/** Rules of SandboxTemplate; its API accepts nearly anything and the Pod or the policy is refused later, or differs. */
export const sandboxTemplateRules: readonly Rule<Manifest>[] = [
  ...identityRules,
  ...podRules,
  {
    id: 'template/name',
    kind: 'provider',
    because: `the policy is named <template>${policySuffix}; one that is too long is never written, and the sandboxes are open`,
    source: 'provider.md §2',
    check: ({ metadata: { name }, ...object }) =>
      name.length <= longestName || specOf(object as Manifest).networkPolicyManagement === 'Unmanaged'
        ? undefined
        : { field: 'metadata.name', found: name, allowed: `at most ${longestName} characters` },
  },
  {
    id: 'template/null-network-policy',
    kind: 'provider',
    because: 'null is dropped, which opens the internet; {} is the opposite',
    source: 'provider.md §0 item 13',
    check: (object) =>
      specOf(object).networkPolicy === null
        ? { field: 'spec.networkPolicy', found: null, allowed: '{} to close both ways, or nothing at all' }
        : undefined,
  },
  {
    id: 'template/unmanaged-policy',
    kind: 'provider',
    because: 'the provider creates no policy from it',
    source: 'provider.md §7',
    check: (object) => {
      const { networkPolicyManagement, networkPolicy } = specOf(object);
      return networkPolicyManagement === 'Unmanaged' && networkPolicy !== undefined
        ? { field: 'spec.networkPolicy', found: networkPolicy, allowed: 'nothing when networkPolicyManagement is Unmanaged' }
        : undefined;
    },
  },
  ...trafficRules({ field: 'spec.networkPolicy', of: (object) => specOf(object).networkPolicy }),
  ...podPolicies,
  ...policies,
];
