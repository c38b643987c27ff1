import type { Manifest } from '../api/index.js';
import type { JsonObject } from '../lib/json.js';
import type { CallOptions, KubeClient, ObjectRef } from './client.js';

export interface PatchOptions extends CallOptions {
  /** Field manager, at most 128 characters. */
  readonly manager: string;
  /** The state that the change was computed from. Another state, and so another object of the name, is a `conflict`. */
  readonly resourceVersion: string;
  /** The main object does not take `status`, and the subresource takes nothing else. @default the main object */
  readonly subresource?: 'status';
}

/** What a change of a stored object did. */
export interface Changed {
  /** `unchanged`: the object had all of it already, and the server stored nothing. */
  readonly outcome: 'configured' | 'unchanged';
  /** As the server has it now. */
  readonly object: Manifest;
}

/**
 * Changes some members of an object (RFC 7386): a member that is `null` is removed, a list is replaced as a whole, what is not named stays.
 * Unknown fields are refused.
 *
 * Throws `conflict` when the object was written since: read it again and decide anew. `not-found`: it is gone. `timeout` and `unreachable`:
 * it may have been changed; sending the same again answers `conflict` then.
 */
export async function mergePatch(
  client: KubeClient,
  ref: ObjectRef,
  change: JsonObject,
  { manager, resourceVersion, subresource, ...call }: PatchOptions,
): Promise<Changed> {
  const path = await client.pathOf(ref, call);
  const object = (await client.request({
    method: 'PATCH',
    path: subresource === undefined ? path : `${path}/${subresource}`,
    query: { fieldManager: manager, fieldValidation: 'Strict' },
    contentType: 'application/merge-patch+json',
    body: { ...change, metadata: { ...(change['metadata'] as JsonObject | undefined), resourceVersion } },
    ...call,
  })) as Manifest;
  return { outcome: object.metadata.resourceVersion === resourceVersion ? 'unchanged' : 'configured', object };
}
