import type { Manifest } from '../../api/index.js';
import { refOf } from '../../kube/client.js';
import type { KubeClient } from '../../kube/client.js';
import { remove } from '../../kube/remove.js';
import type { World } from '../world.js';

/**
 * Asks for the deletion of these very objects, in the state in which they were seen.
 * @returns whether all of them are gone; one that somebody holds, or has just changed, is not
 */
export async function removeObjects(
  { client, world }: { readonly client: KubeClient; readonly world: World },
  objects: readonly Manifest[],
  signal: AbortSignal,
): Promise<boolean> {
  const watched = Object.values(world);
  const gone = await Promise.all(
    objects.map(async (object) => {
      if (object.metadata.deletionTimestamp !== undefined) return false;
      const { uid = '', resourceVersion } = object.metadata;
      const outcome = await remove(client, refOf(object), {
        uid,
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
        propagation: stays.includes(object.kind) ? 'Foreground' : 'Background',
        signal,
      });
      const immediate = !stays.includes(object.kind) && object.kind !== 'Pod';
      const ended = outcome === 'absent' || (outcome === 'requested' && immediate && !object.metadata.finalizers?.length);
      if (ended) watched.find(({ kind }) => kind.kind === object.kind)?.removed(object);
      return ended;
    }),
  );
  return gone.every(Boolean);
}

/** These stay until what they own is gone. A Pod stays until it has ended. */
const stays: readonly string[] = ['SandboxClaim', 'Sandbox', 'Deployment'];
