import type { Manifest } from '../api/index.js';
import { get, refOf } from './client.js';
import type { CallOptions, KubeClient } from './client.js';

export interface ApplyOptions extends CallOptions {
  /** Field manager, at most 128 characters; stable, and without a version. */
  readonly manager: string;
  /** Take over fields that others own. Only where nobody else may own any. @default false */
  readonly force?: boolean;
  /** Ask what would happen; nothing is stored. @default false */
  readonly dryRun?: boolean;
  /** The object must be this one still; `conflict` otherwise. */
  readonly uid?: string;
}

/** What an apply did. */
export interface Applied {
  readonly outcome: 'created' | 'configured' | 'unchanged';
  /** As the server has it now. */
  readonly object: Manifest;
}

/**
 * Server-side apply of the whole intent. The body is the rendered object, unknown fields are refused.
 *
 * Throws `conflict` with the fields in `causes` when others own what is applied and `force` is off. Fields that another manager added
 * stay; the caller compares. Source: design of the controller's writes.
 */
export async function apply(client: KubeClient, manifest: Manifest, options: ApplyOptions): Promise<Applied> {
  const { manager, force = false, dryRun = false, uid, ...call } = options;
  const before = await get(client, refOf(manifest), call);
  const object = (await client.request({
    method: 'PATCH',
    path: await client.pathOf(refOf(manifest), call),
    query: { fieldManager: manager, force, fieldValidation: 'Strict', dryRun: dryRun ? 'All' : undefined },
    contentType: 'application/apply-patch+yaml',
    body: uid === undefined ? manifest : { ...manifest, metadata: { ...manifest.metadata, uid } },
    ...call,
  })) as Manifest;
  if (!before) return { outcome: 'created', object };
  return { outcome: before.metadata.resourceVersion === object.metadata.resourceVersion ? 'unchanged' : 'configured', object };
}
