import type { Manifest } from '../../api/index.js';
import { annotationKeys, authSecretAnnotation, finalizers, isAuthSecretAnnotation } from '../../domain/labels.js';
import { refOf } from '../../kube/client.js';
import type { KubeClient } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { KubeError } from '../../kube/errors.js';
import { remove } from '../../kube/remove.js';
import type { JsonObject } from '../../lib/json.js';
import type { CompiledPool } from '../../render/compile.js';
import { refIn } from '../patch.js';
import type { World } from '../world.js';
import { annotatePool, patchPool } from './annotate.js';
import { attestInstance } from './attest.js';
import { createCredentials, readCredentials, readInstanceCredentials, removeMounted } from './credentials.js';
import { isRecycled } from './decision.js';
import type { PoolEffect } from './decision.js';
import { createOwn, ensureObjects } from './ensure.js';
import { drainInstance, probeInstance, seedInstance } from './instance.js';
import { forgetInstance } from './memory.js';
import { removeObjects } from './remove.js';
import type { PoolMemory } from './memory.js';
import type { PoolObservation } from './observation.js';

export interface PoolActOptions {
  readonly client: KubeClient;
  readonly world: World;
  /** Field manager of what is rendered. */
  readonly manager: string;
  /** Field manager of what is recorded about a pool. */
  readonly statusManager: string;
  readonly controllerNamespace: string;
  readonly runtimeNamespace: string;
  /** Changes with each change of the Secret of that name that holds a proxy's token. */
  readonly tokenVersion: (name: string) => string | undefined;
  readonly epoch: number;
  readonly clock: Clock;
}

/** What one effect works with. */
export interface PoolWork {
  readonly options: PoolActOptions;
  readonly o: PoolObservation;
  readonly compiled: CompiledPool | undefined;
  readonly memory: PoolMemory;
  readonly signal: AbortSignal;
}

/** `again`: there may be more to do at once. `watch`: what was begun shows itself in a change, or the pool is looked at a second later. */
export type Performed = 'again' | 'watch';

/** Performs one effect. Decides nothing and logs nothing; whatever it throws is tried again. */
export async function perform(work: PoolWork, effect: PoolEffect): Promise<Performed> {
  const { o, memory, options } = work;
  switch (effect.do) {
    case 'add-finalizer':
      await patchPool(work, { metadata: { finalizers: [...(o.pool.metadata.finalizers ?? []), finalizers.pool] } });
      return 'again';
    case 'read-credentials':
      await readCredentials(work);
      return 'again';
    case 'create-credentials':
      await createCredentials(work);
      return 'again';
    case 'retire-credentials':
      if (o.family === 'plain') await removeMounted(work);
      await annotatePool(work, {
        [authSecretAnnotation(options.epoch)]: null,
        [annotationKeys.instanceBinding]: null,
      });
      memory.auth.delete(options.epoch);
      // It may have been rotated since.
      memory.token = undefined;
      forgetInstance(memory);
      return 'again';
    case 'unbind-instance':
      await annotatePool(work, { [annotationKeys.instanceBinding]: null });
      return 'again';
    case 'read-instance-credentials':
      await readInstanceCredentials(work, effect.epoch);
      return 'again';
    case 'ensure':
      return (await ensureObjects(work, effect.objects)) ? 'again' : 'watch';
    case 'record-template':
      await annotatePool(work, { ...formerEpochs(work), [annotationKeys.templateIntegrity]: effect.digest });
      return 'again';
    case 'create-claim': {
      forgetInstance(memory);
      const created = await createOwn(work, effect.claim);
      if (created.metadata.deletionTimestamp === undefined) memory.created = created.metadata.uid;
      options.world.claims.wrote(created);
      return 'watch';
    }
    case 'delete-claim':
      if ((await deleteClaim(work, effect.claim)) === 'requested' && isRecycled(effect.cause))
        memory.recycling = { count: memory.recycling.count + 1, at: options.clock.now(), because: effect.because };
      return 'watch';
    case 'start-workload':
      forgetInstance(memory);
      memory.deleting = undefined;
      memory.askedAt = options.clock.now();
      await ensureObjects(work, effect.objects);
      return 'watch';
    case 'stop-workload':
      await stopWorkload(work, effect.claim);
      if (isRecycled(effect.cause))
        memory.recycling = { count: memory.recycling.count + 1, at: options.clock.now(), because: effect.because };
      return 'watch';
    case 'attest': {
      const before = memory.attested?.podUid;
      const whole = await attestInstance(work, effect.pod);
      // What was watched differed, what was read does not: the watch lags behind.
      const confirmed = before !== undefined && before === memory.attested?.podUid;
      return whole && !confirmed ? 'again' : 'watch';
    }
    case 'bind-instance':
      await annotatePool(work, {
        [annotationKeys.instanceBinding]: JSON.stringify({ authSecretUID: effect.authSecretUid, workloadUID: effect.podUid }),
      });
      return 'again';
    case 'seed':
      await seedInstance(work, effect.pod);
      return 'again';
    case 'probe':
      await probeInstance(work, effect.pod);
      return 'again';
    case 'drain':
      await drainInstance(work, effect.pod, effect.reason);
      return 'again';
    case 'remove':
      return (await removeObjects(options, effect.objects, work.signal)) ? 'again' : 'watch';
    case 'record-demand':
      await annotatePool(work, { [annotationKeys.lastDemandAt]: new Date(effect.at).toISOString() });
      memory.wanted = o.demand.active > 0;
      return 'again';
    case 'scale-to-zero':
      await patchPool(work, { spec: { desiredReplicas: 0 } }, effect.instead?.pool);
      return 'again';
    case 'delete-pool':
      await deletePool(work);
      return 'watch';
    case 'remove-finalizer': {
      const left = (o.pool.metadata.finalizers ?? []).filter((one) => one !== finalizers.pool);
      await patchPool(work, { metadata: { finalizers: left } });
      if (left.length === 0) options.world.pools.removed(o.pool);
      return 'watch';
    }
  }
}

/** Pointers of earlier epochs. A template is recorded when nothing runs, so nobody needs their Secrets any more. */
function formerEpochs({ o, options }: PoolWork): Readonly<Record<string, null>> {
  const current = authSecretAnnotation(options.epoch);
  const names = Object.keys(o.pool.metadata.annotations ?? {}).filter((key) => isAuthSecretAnnotation(key) && key !== current);
  return Object.fromEntries(names.map((name) => [name, null]));
}

async function deleteClaim({ options, memory, signal }: PoolWork, claim: Manifest): ReturnType<typeof remove> {
  const { uid = '', resourceVersion } = claim.metadata;
  const outcome = await remove(options.client, refOf(claim), {
    uid,
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    propagation: 'Foreground',
    signal,
  });
  // It was written since it was looked at: what is to be done with it is decided anew.
  if (outcome === 'another')
    throw new KubeError('conflict', {
      at: `SandboxClaim ${claim.metadata.name}`,
      says: 'it was changed, or is another one by now',
    });
  if (outcome === 'requested') memory.deleting = uid;
  if (outcome === 'absent') options.world.claims.removed(claim);
  return outcome;
}

/** The Deployment's controller ends its Pod; what is left after it has looked is removed by the next step. */
async function stopWorkload(work: PoolWork, deployment: Manifest): Promise<void> {
  await ensureObjects(work, [{ wanted: atZero(deployment), live: deployment }]);
  work.memory.deleting = deployment.metadata.uid;
}

function atZero({ status: _status, ...deployment }: Manifest): Manifest {
  const { managedFields: _managedFields, ...metadata } = deployment.metadata;
  return { ...deployment, metadata, spec: { ...(deployment['spec'] as JsonObject), replicas: 0 } };
}

async function deletePool({ o, options, signal }: PoolWork): Promise<void> {
  const { uid = '', resourceVersion } = o.pool.metadata;
  await remove(options.client, refIn(options.world.pools, o.pool), {
    uid,
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    propagation: 'Background',
    signal,
  });
}
