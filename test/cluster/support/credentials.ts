/** Credentials of a pool, and where they must not be. */
import { kubectl } from './cluster.js';
import type { Installation } from './installation.js';
import { credentialsOf } from './leaks.js';

/** What the admin finds in the private Secrets of a pool, by key. */
export const poolCredentials = async (installation: Installation, poolUid: string): Promise<ReadonlyMap<string, string>> =>
  new Map(await credentialsOf(kubectl, installation, poolUid));

interface ResourceRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
}

/** What an account may list, in all namespaces, as `resource.group`; asked of the API server. */
export async function readableBy(account: string): Promise<readonly string[]> {
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: 'default' } };
  const answer = await kubectl(
    ['create', `--as=${account}`, '--validate=false', '-f', '-', '-o', 'json'],
    JSON.stringify(review),
  );
  const { status } = JSON.parse(answer) as { readonly status: { readonly resourceRules: readonly ResourceRule[] } };
  const names = status.resourceRules
    .filter(({ verbs }) => verbs.some((verb) => verb === 'list' || verb === 'get' || verb === '*'))
    .flatMap(({ apiGroups = [], resources = [] }) =>
      resources.flatMap((resource) => apiGroups.map((group) => (group === '' ? resource : `${resource}.${group}`))),
    );
  return [...new Set(names.filter((name) => !name.includes('/')))].sort();
}

/** Everything that an account can see of these resources, as it gets it. */
export function seenBy(account: string, resources: readonly string[]): Promise<string> {
  return kubectl(['get', resources.join(','), '-A', `--as=${account}`, '-o', 'yaml', '--show-managed-fields']);
}
