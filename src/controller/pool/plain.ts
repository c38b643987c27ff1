import type { Manifest, RuntimePool } from '../../api/index.js';
import { authSecretSuffix, baseName, childName, providerSecretSuffix } from '../../domain/names.js';
import { isObject } from '../../lib/json.js';
import type { Json } from '../../lib/json.js';
import type { AuthMaterial, PoolMemory } from './memory.js';
import type { ClaimVerdict, ClaimView, CredentialsState, PodView } from './observation.js';

/** What is different about a pool that a Deployment keeps. Source: workload.md §3.9. */

type Named = Pick<RuntimePool, 'metadata'>;

/** Name of the Secret that controller and supervisor share in one epoch. */
export function plainAuthName({ metadata }: Named, epoch: number): string {
  return childName(baseName(metadata.namespace ?? '', metadata.name), authSecretSuffix(epoch));
}

/** Name of the copy of one token of the provider's proxy. */
export function plainProviderName({ metadata }: Named, epoch: number, tokenGeneration: string): string {
  return childName(baseName(metadata.namespace ?? '', metadata.name), providerSecretSuffix(epoch, tokenGeneration));
}

/** The Deployment as that which asks for the one instance; one at zero asks for none. */
export function deploymentAsClaim(live: Manifest, owned: boolean, askedAt: number | undefined): ClaimView | undefined {
  const replicas = replicasOf(live);
  if (replicas === 0) return undefined;
  const deleting = live.metadata.deletionTimestamp !== undefined;
  return { live, owned, whole: replicas === 1, deleting, verdict: deploymentVerdict(live), ...(askedAt ? { askedAt } : {}) };
}

function replicasOf(deployment: Manifest): Json {
  const spec = deployment['spec'];
  return (isObject(spec) ? spec['replicas'] : undefined) ?? 1;
}

/** What a quota or an admission says of the Pod stands in a condition; the Deployment controller itself tries again ever later. */
function deploymentVerdict(live: Manifest): ClaimVerdict {
  const status = isObject(live['status']) ? live['status'] : {};
  if (!sees(live)) return { state: 'unseen' };
  const conditions = Array.isArray(status['conditions']) ? (status['conditions'] as readonly Json[]) : [];
  const failure = conditions.find((one) => isObject(one) && one['type'] === 'ReplicaFailure' && one['status'] === 'True');
  const text = (name: string) => (isObject(failure) && typeof failure[name] === 'string' ? failure[name] : '');
  return failure ? { state: 'blocked', says: `${text('reason')}: ${text('message')}` } : { state: 'open' };
}

/** The Deployment controller has looked at what the Deployment is now. */
function sees({ metadata, ...rest }: Manifest): boolean {
  const status = rest['status'];
  return isObject(status) && Number(status['observedGeneration'] ?? 0) >= (metadata.generation ?? 0);
}

/** Pods of a Deployment that asks for none, and whose controller has seen that: it does not end one that ended by itself. */
export function outlived(
  deployment: Manifest | undefined,
  pods: readonly PodView[],
  own: (object: Manifest) => boolean,
): readonly Manifest[] {
  if (!deployment || replicasOf(deployment) !== 0 || !sees(deployment)) return [];
  return pods.flatMap(({ live, deleting }) => (own(live) && !deleting ? [live] : []));
}

/** Both Secrets must be there before a Pod may name them. */
export function mountedCredentials(
  pool: RuntimePool,
  epoch: number,
  { auth, token }: Pick<PoolMemory, 'auth' | 'token'>,
  secret: (name: string) => Manifest | undefined,
): CredentialsState {
  if (!token || 'says' in token) return { state: 'unread' };
  const material = auth.get(epoch);
  if (material === 'lost') return { state: 'lost' };
  const live = secret(plainAuthName(pool, epoch));
  if (!live) return material ? { state: 'lost' } : { state: 'unpublished' };
  if (!material) return { state: 'unread' };
  if (material.secretUid !== live.metadata.uid) return { state: 'lost' };
  if (!secret(plainProviderName(pool, epoch, token.generation))) return { state: 'unpublished' };
  return { state: 'ready', authSecretUid: material.secretUid, tokenGeneration: token.generation };
}

/**
 * Secrets of a pool that nothing names any more: neither its Deployment nor a Pod that runs, nor what is rendered now. None while the
 * Deployment controller has not caught up, since what it made before may still make Pods. Source: workload.md §3.7.
 */
export function unmounted(
  own: readonly Manifest[],
  current: readonly string[],
  deployment: Manifest | undefined,
  pods: readonly { readonly live: Manifest; readonly finished: boolean }[],
): readonly Manifest[] {
  if (deployment && !sees(deployment)) return [];
  const users = [...(deployment ? [deployment] : []), ...pods.flatMap(({ live, finished }) => (finished ? [] : [live]))];
  const used = (name: string) => current.includes(name) || users.some((user) => says(user['spec'], name));
  return own.filter(({ metadata }) => metadata.deletionTimestamp === undefined && !used(metadata.name));
}

/** A text stands somewhere in a value, as a whole: whatever kind of reference it is. */
function says(value: Json | undefined, text: string): boolean {
  if (Array.isArray(value)) return (value as readonly Json[]).some((item) => says(item, text));
  if (isObject(value)) return Object.values(value).some((member) => says(member, text));
  return value === text;
}

/** The Secret of an epoch as it was read. `undefined` = it does not hold what such a Secret holds. */
export function mountedAuth(object: Manifest, texts: Readonly<Record<string, string>>): AuthMaterial | undefined {
  const { 'controller-token': controllerToken, 'capability-secret': capabilitySecret } = texts;
  if (!controllerToken || !capabilitySecret) return undefined;
  const { name, uid = '' } = object.metadata;
  return { secretName: name, secretUid: uid, credentials: { controllerToken, capabilitySecret } };
}
