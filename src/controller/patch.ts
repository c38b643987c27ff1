import type { Manifest } from '../api/index.js';
import { get } from '../kube/client.js';
import type { CallOptions, KubeClient, ObjectRef } from '../kube/client.js';
import { KubeError } from '../kube/errors.js';
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
 * Changes exactly the object that was decided on, and remembers what the server then has. One that was written since is a `conflict`: it has been
 * read by then, and is decided on anew.
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
  const call = signal ? { signal } : {};
  try {
    const patched = await mergePatch(client, refIn(watched, object), change, { ...rest, resourceVersion, ...call });
    watched.wrote(patched.object);
    return patched.object;
  } catch (error) {
    if (error instanceof KubeError && error.code === 'conflict') await readAgain(client, watched, object, call);
    else if (error instanceof KubeError && error.code === 'not-found') isGone(watched, object);
    throw error;
  }
}

/**
 * A watch that lags would show for long what was refused as outdated, and the same would be tried over and over. That it cannot be read is no
 * news: the watch tells, sooner or later.
 */
export async function readAgain(client: KubeClient, watched: Watched, object: Decided, call: CallOptions): Promise<void> {
  try {
    const fresh = await get(client, refIn(watched, object), call);
    if (fresh) watched.wrote(fresh);
    else isGone(watched, object);
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
  }
}

function isGone(watched: Watched, { metadata: { namespace = '', name } }: Decided): void {
  const known = watched.get(`${namespace}/${name}`);
  if (known) watched.removed(known);
}
