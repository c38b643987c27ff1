import type { Manifest } from '../api/index.js';
import { refOf } from './client.js';
import type { CallOptions, KubeClient } from './client.js';
import type { Changed } from './patch.js';

export interface UpdateOptions extends CallOptions {
  /** Field manager, at most 128 characters. */
  readonly manager: string;
  /** Only this object, not another of its name. */
  readonly uid: string;
  /** Only in the state that was looked at. */
  readonly resourceVersion: string;
}

/**
 * Replaces an object by exactly this one: what it does not name is removed, whoever put it there. `status` stays, where it is a subresource.
 * Unknown fields are refused.
 *
 * Throws `conflict` when the name belongs to another object, or it was written since: read it again and decide anew. `not-found`: it is gone;
 * kinds that a PUT may create, a Lease, answer `conflict` instead, and are not created because of the uid. `timeout` and `unreachable`: it may
 * have been replaced; sending the same again answers `conflict` then.
 */
export async function update(
  client: KubeClient,
  manifest: Manifest,
  { manager, uid, resourceVersion, ...call }: UpdateOptions,
): Promise<Changed> {
  const object = (await client.request({
    method: 'PUT',
    path: await client.pathOf(refOf(manifest), call),
    query: { fieldManager: manager, fieldValidation: 'Strict' },
    body: { ...manifest, metadata: { ...manifest.metadata, uid, resourceVersion } },
    ...call,
  })) as Manifest;
  return { outcome: object.metadata.resourceVersion === resourceVersion ? 'unchanged' : 'configured', object };
}
