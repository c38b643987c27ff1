import type { Manifest } from '../../api/index.js';
import type { SandboxClaimProps } from '../sandbox-claim.js';
import { badAnnotation, badLabel, firstTwice, identityRules, isServiceName } from './names.js';
import { claimNamesRule, claimSpecRule, isVariableName, podNameRule } from './pod.js';
import type { Broken, Rule } from './rule.js';

export type ClaimSpec = Pick<SandboxClaimProps, 'lifecycle' | 'additionalPodMetadata' | 'env' | 'volumeClaimTemplates'> & {
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
const domainOf = (key: string): string => (key.includes('/') ? key.slice(0, key.indexOf('/')).toLowerCase() : '');

/** Where the provider writes what a claim is bound to. */
const binding = 'agents.x-k8s.io/sandbox-name';

/** The domain of which the provider lets claims set labels unless its administrator names others. */
export const defaultLabelDomains: readonly string[] = ['sandbox.users.io'];

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

const namePolicy: Rule<Manifest> = {
  id: 'claim/name',
  kind: 'policy',
  because: 'Sandbox, Pod and Service get the name of the claim, and a Service cannot have every name',
  source: 'provider.md §2',
  check: ({ metadata: { name } }) =>
    isServiceName(name)
      ? undefined
      : { field: 'metadata.name', found: name, allowed: 'a DNS-1035 label of at most 63 characters' },
};

function shortTtl(object: Manifest, least: number): Broken | undefined {
  const ttl = specOf(object).lifecycle?.ttlSecondsAfterFinished;
  return ttl === undefined || ttl >= least
    ? undefined
    : { field: 'spec.lifecycle.ttlSecondsAfterFinished', found: ttl, allowed: `at least ${least} seconds` };
}

export const sandboxClaimRules: readonly Rule<Manifest>[] = [
  ...identityRules,
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
    source: 'provider.md §0 item 1',
    check: (object) => shortTtl(object, 2),
  },
  {
    id: 'claim/short-ttl',
    kind: 'policy',
    because: 'on a busy node a Pod that is replaced may look finished for longer than a second',
    source: 'provider.md §5.5',
    check: (object) => shortTtl(object, 30),
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
    because: 'a second entry of one name counts as an override of the first, and a name that is none is found by the Pod only',
    source: 'provider.md §0 item 19',
    check: (object) => {
      const env = specOf(object).env ?? [];
      const bad =
        env.find(({ name }) => !isVariableName(name))?.name ??
        firstTwice(env.map(({ name, containerName = '' }) => `${containerName}/${name}`));
      return bad === undefined
        ? undefined
        : { field: 'spec.env', found: bad, allowed: 'one entry for each variable of a container, printable ASCII without "="' };
    },
  },
  {
    id: 'claim/no-empty-collections',
    kind: 'provider',
    because: 'adoption removes what is empty, so that the claim is no longer what was written',
    source: 'provider.md §6',
    check: (object) => {
      const { env, volumeClaimTemplates, additionalPodMetadata: { labels, annotations } = {} } = specOf(object);
      const [field, found] =
        Object.entries({
          'spec.env': env,
          'spec.volumeClaimTemplates': volumeClaimTemplates,
          'spec.additionalPodMetadata.labels': labels,
          'spec.additionalPodMetadata.annotations': annotations,
        }).find(([, value]) => value !== undefined && Object.keys(value).length === 0) ?? [];
      return field === undefined ? undefined : { field, found, allowed: 'nothing, or at least one' };
    },
  },
  {
    id: 'claim/pod-annotations',
    kind: 'provider',
    because: 'the claim stays not ready, even one whose sandbox runs already',
    source: 'provider.md §5.3',
    check: (object) => {
      const field = 'spec.additionalPodMetadata.annotations';
      const annotations = specOf(object).additionalPodMetadata?.annotations;
      const closed = Object.keys(annotations ?? {}).find((key) => key !== openAnnotation && closedDomain.test(domainOf(key)));
      return closed === undefined
        ? badAnnotation(annotations, field)
        : { field, found: closed, allowed: 'keys outside kubernetes.io, k8s.io and agents.x-k8s.io' };
    },
  },
  {
    id: 'claim/bound',
    kind: 'provider',
    because: 'the provider takes the annotation for the binding of the claim, and removes one that it did not write',
    source: 'provider.md §5.1',
    check: ({ metadata: { annotations } }) =>
      annotations?.[binding] === undefined
        ? undefined
        : { field: `metadata.annotations[${binding}]`, found: annotations[binding], allowed: 'nothing' },
  },
  claimNamesRule,
  claimSpecRule,
  podNameRule,
  namePolicy,
];
