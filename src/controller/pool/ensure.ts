import type { Manifest } from '../../api/index.js';
import { isOwned } from '../../domain/attestation.js';
import { commonLabels } from '../../domain/labels.js';
import { get, refOf } from '../../kube/client.js';
import { create } from '../../kube/create.js';
import { KubeError } from '../../kube/errors.js';
import { update } from '../../kube/update.js';
import { CodedError } from '../../lib/errors.js';
import type { JsonObject } from '../../lib/json.js';
import { readAgain } from '../patch.js';
import type { Watched } from '../world.js';
import type { PoolWork } from './act.js';
import { labelsOf } from './observe.js';

/** Something stands where an object of a pool should, and is not that pool's. It was not touched. */
export class ForeignObjectError extends CodedError<'foreign-object'> {}

interface Wanted {
  readonly wanted: Manifest;
  readonly live: Manifest | undefined;
}

/**
 * Makes objects be as they are rendered: creates what is absent, replaces what was changed. All of them at once.
 * @returns whether all of them stand; one that is still being deleted can only be waited for
 */
export async function ensureObjects(work: PoolWork, objects: readonly Wanted[]): Promise<boolean> {
  const outcomes = await Promise.allSettled(objects.map((object) => ensureObject(work, object)));
  // Of several that are refused, the same is named each time.
  const refused = outcomes.find((outcome) => outcome.status === 'rejected');
  if (refused) throw refused.reason;
  return outcomes.every((outcome) => outcome.status === 'fulfilled' && outcome.value);
}

async function ensureObject(work: PoolWork, { wanted, live }: Wanted): Promise<boolean> {
  const { options, signal } = work;
  const watched = watchedOf(options.world, wanted.kind);
  try {
    const object = live ? await replace(work, wanted, live) : await createOwn(work, wanted);
    watched?.wrote(object);
    return object.metadata.deletionTimestamp === undefined;
  } catch (error) {
    const outdated = error instanceof KubeError && error.code === 'conflict';
    if (outdated && live && watched) await readAgain(options.client, watched, live, { signal });
    throw error;
  }
}

/** Creates an object. One that is there already is ours, or a {@link ForeignObjectError}. */
export async function createOwn(work: PoolWork, wanted: Manifest): Promise<Manifest> {
  const { options, signal, o } = work;
  try {
    return await create(options.client, wanted, { manager: options.manager, signal });
  } catch (error) {
    if (!(error instanceof KubeError) || error.code !== 'already-exists') throw error;
    const found = await get(options.client, refOf(wanted), { signal });
    // Gone again: the next try will tell.
    if (!found) throw error;
    if (isOwned(found, options.runtimeNamespace, commonLabels(labelsOf(o.pool)))) return found;
  }
  throw new ForeignObjectError('foreign-object', {
    at: `${wanted.kind} ${wanted.metadata.namespace ?? ''}/${wanted.metadata.name}`,
    allowed: 'nothing, or an object with the full ownership identity of this pool',
  });
}

/** One PUT: whatever another manager added goes. Members that the API server chose once and for all are kept. */
async function replace({ options, signal }: PoolWork, wanted: Manifest, live: Manifest): Promise<Manifest> {
  const fixed = wanted.kind === 'Service' ? { spec: { ...chosen(live), ...(wanted['spec'] as JsonObject) } } : {};
  const { object } = await update(
    options.client,
    { ...wanted, ...fixed },
    {
      manager: options.manager,
      uid: live.metadata.uid ?? '',
      resourceVersion: live.metadata.resourceVersion ?? '',
      signal,
    },
  );
  return object;
}

function chosen(live: Manifest): JsonObject {
  const spec = live['spec'] as JsonObject;
  return Object.fromEntries(Object.entries(spec).filter(([name]) => ['ipFamilies', 'ipFamilyPolicy'].includes(name)));
}

function watchedOf(world: Readonly<Record<string, Watched>>, kind: string): Watched | undefined {
  return Object.values(world).find((watched) => watched.kind.kind === kind);
}
