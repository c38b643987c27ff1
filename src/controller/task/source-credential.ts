import type { Task } from '../../api/index.js';
import { credentialMaterial } from '../../domain/repository/credential.js';
import type { SourceCredential } from '../../domain/source-plan.js';
import type { SourceRefusal } from '../../domain/source-refusals.js';
import { get } from '../../kube/client.js';
import type { KubeClient } from '../../kube/client.js';
import { isObject } from '../../lib/json.js';

const field = 'spec.workspace.readCredentialRef';

/**
 * Secrets that are never meant for a forge. The author of a Task names a Secret without a right to read it, and the key `token` is also that
 * of a service account.
 */
const otherTypes: readonly string[] = [
  'kubernetes.io/service-account-token',
  'bootstrap.kubernetes.io/token',
  'kubernetes.io/tls',
  'kubernetes.io/dockercfg',
  'kubernetes.io/dockerconfigjson',
  'helm.sh/release.v1',
  'orka.ai/execution-snapshot',
];

/** The credential of one call. Its material goes into that call and nowhere else. */
interface FoundCredential {
  readonly resourceVersion: string;
  /** A whole header line. */
  readonly material: string;
}

/** Reads the Secret of a Task, uncached. `says`: what is wrong with it, by Secret and key, never by value. */
export async function readSourceCredential(
  client: KubeClient,
  { metadata }: Pick<Task, 'metadata'>,
  { name, key }: SourceCredential,
  signal: AbortSignal,
): Promise<FoundCredential | { readonly says: string }> {
  const ref = { apiVersion: 'v1', kind: 'Secret', namespace: metadata.namespace ?? '', name };
  const secret = await get(client, ref, { signal });
  if (!secret) return { says: `Secret ${name} is missing` };
  const type = secret['type'];
  if (typeof type === 'string' && otherTypes.includes(type))
    return { says: `Secret ${name} is of type ${type}, which is no credential of a forge` };
  const value = isObject(secret['data']) ? secret['data'][key] : undefined;
  if (typeof value !== 'string') return { says: `Secret ${name} has no key ${key}` };
  const material = credentialMaterial(Buffer.from(value, 'base64').toString());
  if (material === undefined) return { says: `the value of key ${key} of Secret ${name} cannot be used as a credential` };
  return { resourceVersion: secret.metadata.resourceVersion ?? '', material };
}

/** What a Task says whose Secret was unusable from the start. */
export function unusableCredential(at: string, says: string): SourceRefusal {
  const allowed = 'a token, or the line of an Authorization header with Basic or Bearer';
  return { reason: 'InvalidWorkspace', finding: { at, field, says, allowed } };
}

/** What a Task says whose Secret is not the one that was frozen any more. Source: repository.md §1.3. */
export function changedCredential(at: string, says: string): SourceRefusal {
  const remedy = 'create the Task again to use the present credential';
  return { reason: 'CredentialBlocked', finding: { at, field, says, remedy } };
}

/** The material, if the Secret is still the one that the Task froze. */
export async function readFrozenCredential(
  client: KubeClient,
  task: Pick<Task, 'metadata' | 'status'>,
  credential: SourceCredential,
  signal: AbortSignal,
): Promise<{ readonly material: string } | { readonly says: string }> {
  const found = await readSourceCredential(client, task, credential, signal);
  if ('says' in found) return found;
  // No field holds its UID, and none is needed: a Secret that was made anew has another resourceVersion, as the API server gives each only once.
  const frozen = task.status?.execution?.readCredentialResourceVersion;
  if (found.resourceVersion === frozen) return { material: found.material };
  return { says: `Secret ${credential.name} was changed after the Task was bound` };
}
