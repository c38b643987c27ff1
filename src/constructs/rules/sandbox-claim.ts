import type { Manifest } from '../../api/index.js';
import type { SandboxClaimProps } from '../sandbox-claim.js';
import { badKey, badLabel, identityRules } from './names.js';
import type { Rule } from './rule.js';

type ClaimSpec = Pick<SandboxClaimProps, 'lifecycle' | 'additionalPodMetadata' | 'env'> & {
  readonly warmPoolRef: { readonly name: string };
};
const specOf = (object: Manifest): ClaimSpec => object['spec'] as unknown as ClaimSpec;

/** A day that exists, in the one spelling that the provider keeps. */
const isInstant = (time: string): boolean => {
  const at = Date.parse(time);
  return !Number.isNaN(at) && new Date(at).toISOString() === time.replace(/Z$/, '.000Z');
};

const closedDomain = /^(?:.+\.)?(?:kubernetes\.io|k8s\.io|agents\.x-k8s\.io)$/;
const openAnnotation = 'cluster-autoscaler.kubernetes.io/safe-to-evict';
const domainOf = (key: string): string => (key.includes('/') ? key.slice(0, key.indexOf('/')) : '');

/**
 * Labels that a claim gives its Pod must be of a domain that the provider's administrator lets claims use. The provider's own list
 * is `sandbox.users.io`; `allowed-label-domains` of its ConfigMap replaces it.
 */
export const podLabelRule = (domains: readonly string[]): Rule<Manifest> => ({
  id: 'claim/pod-labels',
  kind: 'provider',
  because: 'the claim stays not ready, even one whose sandbox runs already',
  source: 'provider.md §5.3',
  check: (object) => {
    const labels = specOf(object).additionalPodMetadata?.labels;
    const field = 'spec.additionalPodMetadata.labels';
    const of = (key: string) => domains.some((domain) => domainOf(key) === domain || domainOf(key).endsWith(`.${domain}`));
    const foreign = Object.keys(labels ?? {}).find((key) => !of(key));
    return foreign === undefined
      ? badLabel(labels, field)
      : { field, found: foreign, allowed: `keys of ${domains.join(', ')} and their sub-domains` };
  },
});

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
      return time === undefined || isInstant(time)
        ? undefined
        : { field: 'spec.lifecycle.shutdownTime', found: time, allowed: 'an instant in RFC 3339, whole seconds with Z' };
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
  {
    id: 'claim/pod-annotations',
    kind: 'provider',
    because: 'the claim stays not ready, even one whose sandbox runs already',
    source: 'provider.md §5.3',
    check: (object) => {
      const field = 'spec.additionalPodMetadata.annotations';
      const keys = Object.keys(specOf(object).additionalPodMetadata?.annotations ?? {});
      const closed = keys.find((key) => key !== openAnnotation && closedDomain.test(domainOf(key)));
      const bad = badKey(keys);
      if (closed !== undefined)
        return { field, found: closed, allowed: 'keys outside kubernetes.io, k8s.io and agents.x-k8s.io' };
      return bad === undefined ? undefined : { field, found: bad, allowed: 'qualified names' };
    },
  },
];
