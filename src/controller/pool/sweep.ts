import type { Manifest } from '../../api/index.js';
import { isOwned } from '../../domain/attestation.js';
import { commonLabels, labelKeys } from '../../domain/labels.js';
import { poolKey } from '../../domain/names.js';
import { get } from '../../kube/client.js';
import type { KubeClient } from '../../kube/client.js';
import { childKinds, poolLabelsOf } from '../world.js';
import type { Watched, World } from '../world.js';
import { removeObjects } from './remove.js';

export interface SweepOptions {
  readonly client: KubeClient;
  readonly world: World;
  readonly runtimeNamespace: string;
}

/**
 * Removes what a pool left that is not there any more, because its finalizer was taken away: the claim first, and what isolated the sandbox
 * only once that is gone. Whether the pool is really gone is asked of the server, since a watch may lag behind.
 *
 * @param poolUid of the pool that has the name now; what is its own stays
 * @returns whether something was left, or may have been
 */
export async function sweep(
  options: SweepOptions,
  key: string,
  poolUid: string | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  // What cannot be seen may still be guarded by what would be removed.
  if (!childKinds.every((name) => options.world[name].readable())) return true;
  const stage = leftOf(options, key, poolUid);
  if (!stage) return false;
  if (!(await areGone(options, key, new Set(stage.map(poolUidOf)), signal))) return false;
  const removable = stage.filter((object) => !held(object));
  await removeObjects(options, removable, signal);
  return true;
}

/** What goes next of it; what somebody else ends is waited for, though. */
function leftOf(
  { world, runtimeNamespace }: SweepOptions,
  key: string,
  poolUid: string | undefined,
): readonly Manifest[] | undefined {
  const left = (watched: Watched<'pool'>) =>
    watched.by('pool', key).filter((object) => isLeft(object, runtimeNamespace, key, poolUid));
  // A Pod that nobody owns may be anybody's while there is a pool of the name.
  const running = [...left(world.sandboxes), ...left(world.pods)].filter((object) => poolUid === undefined || held(object));
  const stages = [
    [...left(world.claims), ...left(world.deployments)],
    running,
    [...left(world.warmPools), ...left(world.templates)],
    [...left(world.services), ...left(world.policies), ...left(world.budgets)],
    left(world.secrets),
  ];
  return stages.find((stage) => stage.length > 0);
}

function isLeft(object: Manifest, runtimeNamespace: string, key: string, poolUid: string | undefined): boolean {
  const uid = poolUidOf(object);
  if (uid === '' || uid === poolUid) return false;
  const [poolNamespace = '', poolName = ''] = key.split('/');
  const labels = commonLabels({ poolNamespace, poolName, poolUid: uid, poolKey: poolKey(poolNamespace, poolName) });
  const seen = { ...object, metadata: { ...object.metadata, labels: poolLabelsOf(object) } };
  return isOwned(seen, runtimeNamespace, labels);
}

/** Its owner ends it: the provider's chain is ended by its claim. */
const held = ({ metadata }: Manifest): boolean =>
  metadata.ownerReferences?.some(({ controller }) => controller === true) ?? false;

const poolUidOf = (object: Manifest): string => poolLabelsOf(object)[labelKeys.poolUid] ?? '';

async function areGone(
  { client, world }: SweepOptions,
  key: string,
  uids: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<boolean> {
  const [namespace = '', name = ''] = key.split('/');
  // Its namespace is none of those whose Tasks this controller runs, or cannot be read.
  if (!world.pools.readable(namespace)) return false;
  const pool = await get(client, { ...world.pools.kind, namespace, name }, { signal });
  return pool === undefined || !uids.has(pool.metadata.uid ?? '');
}
