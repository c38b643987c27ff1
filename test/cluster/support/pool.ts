import { randomBytes } from 'node:crypto';
import { resolveFacts } from '../../../src/domain/facts.js';
import { planTask } from '../../../src/domain/plan.js';
import type { Plan } from '../../../src/domain/plan.js';
import { digestSchemaVersion } from '../../../src/domain/profile.js';
import { freeze } from '../../../src/domain/snapshot.js';
import type { Snapshot } from '../../../src/domain/snapshot.js';
import { bootstrapPublicKey } from '../../../src/harness/bootstrap.js';
import { create } from '../../../src/kube/create.js';
import { remove } from '../../../src/kube/remove.js';
import { get, refOf } from '../../../src/kube/client.js';
import { sha256Hex } from '../../../src/lib/sha256.js';
import { approve } from '../../../src/render/approve.js';
import { instantiate } from '../../../src/render/instantiate.js';
import type { RenderedPool } from '../../../src/render/instantiate.js';
import type { PlatformClass } from '../../../src/render/platform.js';
import { agent, task } from '../../support/objects.js';
import { applyAll, cleanUp, gone, kube, manager, platform } from './cluster.js';

/** A pool as the controller would have it, for a Task that exists only here, and what only the controller knows of it. */
export interface PlannedPool {
  readonly rendered: RenderedPool;
  readonly plan: Plan;
  /** What the Task runs with, frozen. */
  readonly snapshot: Snapshot;
  readonly delivery: {
    readonly signingSeed: string;
    readonly nonce: string;
    readonly credentials: Readonly<Record<'controllerToken' | 'capabilitySecret' | 'providerToken', string>>;
  };
}

/** One that this Codex knows: of others it warns in its answer. */
const model = 'gpt-5.5';

/** `change` makes another class of the first one. */
export function planPool(taskUid: string, change = (spec: PlatformClass['spec']) => spec): PlannedPool {
  const [poolClass] = platform.classes;
  if (!poolClass) throw new Error('the platform of the test cluster has no class');
  const { compiled } = approve({ ...poolClass, spec: change(poolClass.spec) });
  const asked = task();
  const planned = { task: { ...asked, metadata: { ...asked.metadata, uid: taskUid } }, agent: agent({ model: { name: model } }) };
  const plan = planTask({ ...planned, poolClass: compiled.spec, defaultProvider: '' });
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
  const secret = () => randomBytes(32).toString('base64url');
  const signingSeed = secret();
  const nonce = secret();
  const credentials = { controllerToken: secret(), capabilitySecret: secret(), providerToken: secret() };
  const random = () => ({ random: randomBytes(12).toString('hex') });
  const facts = resolveFacts(
    pool,
    { controllerEpoch: 1, tokenGeneration: sha256Hex(credentials.providerToken).slice(0, 16) },
    { authSecret: random(), providerSecret: random(), nonce, publicKey: bootstrapPublicKey(signingSeed) },
  );
  return {
    rendered: instantiate(compiled, facts, compiled.frozen),
    plan,
    snapshot: freeze(planned.task, planned.agent, plan),
    delivery: { signingSeed, nonce, credentials },
  };
}

export const renderPool = (...of: Parameters<typeof planPool>): RenderedPool => planPool(...of).rendered;

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
