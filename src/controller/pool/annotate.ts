import type { JsonObject } from '../../lib/json.js';
import { patchWatched } from '../patch.js';
import type { PoolWork } from './act.js';

/** Writes annotations of the pool; `null` removes one. A pool that was written since is a `conflict`. */
export async function annotatePool(work: PoolWork, annotations: Readonly<Record<string, string | null>>): Promise<void> {
  await patchPool(work, { metadata: { annotations } });
}

/** Changes the main object of the pool, or of another one. */
export async function patchPool({ o, options, signal }: PoolWork, change: JsonObject, pool = o.pool): Promise<void> {
  await patchWatched(options.client, options.world.pools, pool, change, { manager: options.statusManager, signal });
}
