import type { Manifest } from '../../api/index.js';
import type { SandboxClaimProps } from '../sandbox-claim.js';
import { identityRules } from './names.js';
import type { Rule } from './rule.js';

type ClaimSpec = Pick<SandboxClaimProps, 'lifecycle' | 'additionalPodMetadata' | 'env'> & {
  readonly warmPoolRef: { readonly name: string };
};
const specOf = (object: Manifest): ClaimSpec => object['spec'] as unknown as ClaimSpec;

export const sandboxClaimRules: readonly Rule<Manifest>[] = [
  ...identityRules,
  {
    id: 'claim/name',
    kind: 'provider',
    because:
      'Sandbox, Pod and Service get the name of the claim; with service: true any other name stays ReconcilerError for ever',
    source: 'provider.md §2',
    check: ({ metadata: { name } }) =>
      /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)
        ? undefined
        : { field: 'metadata.name', found: name, allowed: 'a DNS-1035 label of at most 63 characters' },
  },
  {
    id: 'claim/warm-pool',
    kind: 'provider',
    because: 'a claim reaches a template only through a warm pool',
    source: 'provider.md §1.5',
    check: (object) => {
      const { name } = specOf(object).warmPoolRef;
      return name === ''
        ? { field: 'spec.warmPoolRef.name', found: name, allowed: 'the name of a SandboxWarmPool in the same namespace' }
        : undefined;
    },
  },
  {
    id: 'claim/ttl',
    kind: 'provider',
    because: 'a Pod that is replaced looks finished for up to a second, and a shorter time expires the claim in that moment',
    source: 'provider.md §0 item 1, §5.5',
    check: (object) => {
      const ttl = specOf(object).lifecycle?.ttlSecondsAfterFinished;
      return ttl === undefined || ttl >= 30
        ? undefined
        : { field: 'spec.lifecycle.ttlSecondsAfterFinished', found: ttl, allowed: 'at least 30 seconds' };
    },
  },
  {
    id: 'claim/shutdown-time',
    kind: 'provider',
    because: 'the provider rewrites other spellings and takes the field over, so that applying again conflicts',
    source: 'provider.md §6',
    check: (object) => {
      const time = specOf(object).lifecycle?.shutdownTime;
      return time === undefined || /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(time)
        ? undefined
        : { field: 'spec.lifecycle.shutdownTime', found: time, allowed: 'RFC 3339 in whole seconds with Z' };
    },
  },
  {
    id: 'claim/env-names',
    kind: 'provider',
    because: 'a second entry of one name counts as an override of the first and the claim is refused',
    source: 'provider.md §0 item 19',
    check: (object) => {
      const names = (specOf(object).env ?? []).map(({ name, containerName = '' }) => `${containerName}/${name}`);
      const twice = names.find((name, index) => names.indexOf(name) !== index);
      return twice === undefined
        ? undefined
        : { field: 'spec.env', found: twice, allowed: 'one entry for each variable of a container' };
    },
  },
  {
    id: 'claim/no-empty-collections',
    kind: 'provider',
    because: 'adoption removes empty lists and applying again conflicts',
    source: 'provider.md §6',
    check: (object) =>
      specOf(object).env?.length === 0
        ? { field: 'spec.env', found: [], allowed: 'nothing, or at least one variable' }
        : undefined,
  },
];
