import type { Manifest } from '../../api/index.js';
import { identityRules, isServiceName } from './names.js';
import { podNameRule, podPolicies, podRules } from './pod.js';
import type { VolumeClaimTemplate } from '../pod.js';
import type { Rule } from './rule.js';

export const sandboxRules: readonly Rule<Manifest>[] = [
  ...identityRules,
  ...podRules,
  podNameRule,
  {
    id: 'sandbox/service-name',
    kind: 'provider',
    because:
      'the Service gets the name of the Sandbox; with one that no Service can have it stays ReconcilerError for ever; since v1.0.6 the API server refuses a name of more than 63 characters, and each later update of such a Sandbox',
    source: 'provider.md §2, agent-sandbox v1.0.6',
    check: (object) =>
      (object['spec'] as { readonly service?: boolean }).service !== true || isServiceName(object.metadata.name)
        ? undefined
        : { field: 'metadata.name', found: object.metadata.name, allowed: 'a DNS-1035 label of at most 63 characters' },
  },
  {
    id: 'sandbox/claim-name',
    kind: 'provider',
    because: 'a volume is named <volume claim template>-<sandbox>; one that is too long stays ReconcilerError',
    source: 'provider.md §2',
    check: (object) => {
      const { volumeClaimTemplates = [] } = object['spec'] as { readonly volumeClaimTemplates?: readonly VolumeClaimTemplate[] };
      const long = volumeClaimTemplates.find(({ metadata }) => `${metadata.name}-${object.metadata.name}`.length > 253);
      return (
        long && {
          field: 'metadata.name',
          found: object.metadata.name,
          allowed: `a shorter name, for the volume ${long.metadata.name}`,
        }
      );
    },
  },
  ...podPolicies,
];
