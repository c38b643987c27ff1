import { KubeError } from './errors.js';
import type { CallOptions, KubeClient, ObjectRef } from './client.js';

export interface RemoveOptions extends CallOptions {
  /** Only this object, not another of its name. */
  readonly uid: string;
  /** Only in the state that was looked at. */
  readonly resourceVersion?: string;
  /** `Foreground`: the object stays until what it owns is gone. */
  readonly propagation: 'Foreground' | 'Background';
}

/**
 * Asks for the deletion of exactly one object.
 * @returns `absent` when there is none, `another` when its name belongs to another object, or its state has changed
 */
export async function remove(
  client: KubeClient,
  ref: ObjectRef,
  { uid, resourceVersion, propagation, ...call }: RemoveOptions,
): Promise<'requested' | 'absent' | 'another'> {
  const preconditions = { uid, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
  try {
    await client.request({
      method: 'DELETE',
      path: await client.pathOf(ref, call),
      body: { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: propagation, preconditions },
      ...call,
    });
    return 'requested';
  } catch (error) {
    if (error instanceof KubeError && error.code === 'not-found') return 'absent';
    if (error instanceof KubeError && error.code === 'conflict') return 'another';
    throw error;
  }
}
