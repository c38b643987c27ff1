import type { Manifest } from '../api/index.js';
import type { KubeClient, ObjectRef } from '../kube/client.js';
import { mergePatch } from '../kube/patch.js';
import type { PatchOptions } from '../kube/patch.js';
import type { JsonObject } from '../lib/json.js';
import type { Watched } from './world.js';

/** Of a watched kind, as it was decided on. */
interface Decided {
  readonly metadata: Pick<Manifest['metadata'], 'name' | 'namespace' | 'resourceVersion'>;
}

/** Where an object of a watched kind is stored. */
export function refIn({ kind }: Pick<Watched, 'kind'>, { metadata }: Decided): ObjectRef {
  return { ...kind, namespace: metadata.namespace ?? '', name: metadata.name };
}

/**
 * Changes exactly the object that was decided on, and remembers what the server then has. One that was written since is a `conflict`: it is
 * decided on anew.
 */
export async function patchWatched(
  client: KubeClient,
  watched: Watched,
  object: Decided,
  change: JsonObject,
  options: Pick<PatchOptions, 'manager' | 'subresource'> & { readonly signal?: AbortSignal | undefined },
): Promise<Manifest> {
  const { signal, ...rest } = options;
  const resourceVersion = object.metadata.resourceVersion ?? '';
  const patched = await mergePatch(client, refIn(watched, object), change, {
    ...rest,
    resourceVersion,
    ...(signal ? { signal } : {}),
  });
  watched.wrote(patched.object);
  return patched.object;
}
