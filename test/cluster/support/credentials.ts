/** Credentials of a pool, and where they must not be. */
import type { Manifest } from '../../../src/api/index.js';
import { kubectl } from './cluster.js';
import type { Installation } from './installation.js';

/** What the admin finds in the private Secrets of a pool, by key. The nonce is public. */
export async function poolCredentials(installation: Installation, poolUid: string): Promise<ReadonlyMap<string, string>> {
  const selected = ['-n', installation.namespaces.runtime, '-l', `orka.ai/runtime-pool-uid=${poolUid}`];
  const { items } = JSON.parse(await kubectl(['get', 'secrets', ...selected, '-o', 'json'])) as { readonly items: Manifest[] };
  const entries = items.flatMap(({ data }) => Object.entries(data as Readonly<Record<string, string>>));
  return new Map(
    entries
      .filter(([key]) => key !== 'bootstrap-nonce')
      .map(([key, value]) => [key, Buffer.from(value, 'base64').toString('latin1')]),
  );
}

/** A value as it may stand in a text: raw, and as the three forms that base64 gives it inside something longer. */
function formsOf(secret: string): readonly string[] {
  const bytes = Buffer.from(secret, 'latin1');
  const encoded = [0, 1, 2].flatMap((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    // The first and the last characters also hold bits of what is beside it.
    const inside = text.slice(shift === 0 ? 0 : shift + 1, (bytes.length + shift) % 3 === 0 ? undefined : -1);
    return [inside, inside.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [secret, ...encoded];
}

/** Names of the credentials that are in a text. */
export function credentialsIn(text: string, credentials: ReadonlyMap<string, string>): readonly string[] {
  return [...credentials].flatMap(([name, secret]) => (formsOf(secret).some((form) => text.includes(form)) ? [name] : []));
}

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
