import type { Manifest } from '../api/index.js';
import { holds } from '../lib/json.js';
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
  readonly uid?: string | undefined;
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
 * Nothing is sent when the object already has everything and this manager has applied it before: the server writes some applies that
 * change nothing, such as those with an empty list. Throws `conflict` with the fields in `causes` when others own what is applied and
 * `force` is off. Fields that another manager added stay; the caller compares.
 */
export async function apply(client: KubeClient, manifest: Manifest, options: ApplyOptions): Promise<Applied> {
  const { manager, force = false, dryRun = false, uid, ...call } = options;
  const before = await get(client, refOf(manifest), call);
  const same = before !== undefined && (uid === undefined || before.metadata.uid === uid);
  if (same && !dryRun && hasApplied(before, manager) && holds(before, manifest)) return { outcome: 'unchanged', object: before };
  const object = await sendApply(client, manifest, { manager, force, dryRun, uid, ...call });
  if (!before) return { outcome: 'created', object };
  return { outcome: before.metadata.resourceVersion === object.metadata.resourceVersion ? 'unchanged' : 'configured', object };
}

/** The request alone: what the server has, or with `dryRun` would have, after it. */
export async function sendApply(
  client: KubeClient,
  manifest: Manifest,
  { manager, force = false, dryRun = false, uid, ...call }: ApplyOptions,
): Promise<Manifest> {
  return (await client.request({
    method: 'PATCH',
    path: await client.pathOf(refOf(manifest), call),
    query: { fieldManager: manager, force, fieldValidation: 'Strict', dryRun: dryRun ? 'All' : undefined },
    contentType: 'application/apply-patch+yaml',
    body: uid === undefined ? manifest : { ...manifest, metadata: { ...manifest.metadata, uid } },
    ...call,
  })) as Manifest;
}

function hasApplied({ metadata }: Manifest, manager: string): boolean {
  const entries =
    (metadata as { readonly managedFields?: readonly { readonly manager?: string; readonly operation?: string }[] })
      .managedFields ?? [];
  return entries.some((entry) => entry.manager === manager && entry.operation === 'Apply');
}
