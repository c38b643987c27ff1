import { createHash, randomBytes } from 'node:crypto';
import { resolveFacts } from '../../../src/domain/facts.js';
import { planTask } from '../../../src/domain/plan.js';
import { digestSchemaVersion } from '../../../src/domain/profile.js';
import { bootstrapPublicKey } from '../../../src/harness/bootstrap.js';
import { create } from '../../../src/kube/create.js';
import { remove } from '../../../src/kube/remove.js';
import { get, refOf } from '../../../src/kube/client.js';
import { approve } from '../../../src/render/approve.js';
import { instantiate } from '../../../src/render/instantiate.js';
import type { RenderedPool } from '../../../src/render/instantiate.js';
import { agent, task } from '../../support/objects.js';
import { applyAll, cleanUp, gone, kube, manager, platform } from './cluster.js';

/** Of every pool here: no test delivers anything secret. */
const signingSeed = 'the signing seed of the pools of the cluster tests';

/** A pool as the controller would render it, for a Task that exists only here. */
export function renderPool(taskUid: string): RenderedPool {
  const [poolClass] = platform.classes;
  if (!poolClass) throw new Error('the platform of the test cluster has no class');
  const { compiled } = approve(poolClass);
  const asked = task();
  const plan = planTask({
    task: { ...asked, metadata: { ...asked.metadata, uid: taskUid } },
    agent: agent(),
    poolClass: compiled.spec,
    defaultProvider: '',
  });
  if ('problem' in plan) throw new Error(JSON.stringify(plan.problem));
  const profile = { ...plan.profile, acpProfile: 'acp.v1' as const, digest: plan.profileDigest, digestSchemaVersion };
  const pool = {
    namespace: plan.namespace,
    name: plan.poolName,
    uid: `pool-of-${taskUid}`,
    generation: 1,
    trustNamespace: plan.namespace,
    profile,
  };
  const random = () => ({ random: randomBytes(12).toString('hex') });
  const facts = resolveFacts(
    pool,
    { controllerEpoch: 1, tokenGeneration: createHash('sha256').update('token').digest('hex').slice(0, 16) },
    {
      authSecret: random(),
      providerSecret: random(),
      nonce: randomBytes(32).toString('base64url'),
      publicKey: bootstrapPublicKey(signingSeed),
    },
  );
  return instantiate(compiled, facts, compiled.frozen);
}

/** Creates what comes after the isolation: template, warm pool, and the claim, once. */
export async function startPool({ workload, claim }: RenderedPool): Promise<void> {
  await applyAll(workload);
  if (claim) await create(kube, claim, { manager });
}

/** Ends the claim in the foreground and waits until Sandbox and Pod are gone. */
async function endClaim({ claim }: RenderedPool): Promise<void> {
  if (!claim) return;
  const live = await get(kube, refOf(claim));
  if (live?.metadata.uid) await remove(kube, refOf(claim), { uid: live.metadata.uid, propagation: 'Foreground' });
  await gone(refOf(claim), 180);
}

export async function removePool(pool: RenderedPool): Promise<void> {
  await endClaim(pool);
  await cleanUp([...pool.workload, ...pool.isolation].map(refOf));
}
