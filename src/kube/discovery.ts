import { kindsOf, rootOf } from './client.js';
import type { CallOptions, KubeClient, ObjectKind } from './client.js';
import { KubeError } from './errors.js';

/**
 * Asks the server, and no memory of an earlier answer, whether it knows a kind. `false` is a fact: the group, the version or the kind is not
 * served. Whatever keeps the server from saying so throws {@link KubeError}: no answer, no permission, a group whose own server is down (503).
 */
export async function kindPresent(
  client: KubeClient,
  { apiVersion, kind }: ObjectKind,
  options: CallOptions = {},
): Promise<boolean> {
  try {
    const list = await client.request({ method: 'GET', path: rootOf(apiVersion), ...options });
    if (list['kind'] !== 'APIResourceList') {
      throw new KubeError('server-error', {
        at: `GET ${rootOf(apiVersion)}`,
        says: 'an answer that is no list of kinds',
        status: 200,
      });
    }
    return kindsOf(list).has(kind);
  } catch (error) {
    if (error instanceof KubeError && error.code === 'kind-missing') return false;
    throw error;
  }
}
