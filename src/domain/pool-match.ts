import type { RuntimePool } from '../api/index.js';
import type { Finding } from '../lib/errors.js';
import { equalJson } from '../lib/json.js';
import { nameOf } from './plan.js';
import type { Plan } from './plan.js';

/** Why an existing pool of the right name cannot serve a plan. `permanent` fails the Task; otherwise the pool may still be replaced. */
export interface PoolMismatch {
  readonly finding: Finding;
  readonly permanent: boolean;
}

const another = 'what the workspace of this Session was made with: go back to the original settings, or start another Session';

/**
 * Compares a pool that is there with the plan that asks for it: the workspace binding first, then image and profile. Labels, capacity
 * and a pending deletion are not looked at here. Source: workload.md §2.10, corrections.md item 26.
 */
export function poolMismatch(pool: RuntimePool, plan: Plan): PoolMismatch | undefined {
  const permanent = plan.binding?.reusePolicy === 'session';
  const mismatch = (field: string, found: unknown, allowed: unknown): PoolMismatch => ({
    finding: {
      at: nameOf('RuntimePool', pool),
      field,
      found,
      allowed: permanent ? another : JSON.stringify(allowed ?? 'nothing'),
    },
    permanent,
  });
  const { executionWorkspace, runtime } = pool.spec;
  const wanted = plan.binding && {
    provider: plan.binding.provider,
    bindingDigest: plan.binding.bindingDigest,
    ...(plan.binding.provider === 'substrate'
      ? { substrate: { baseTemplateNamespace: plan.binding.templateNamespace, baseTemplateName: plan.binding.templateName } }
      : {}),
  };
  if (!equalJson(executionWorkspace, wanted)) return mismatch('spec.executionWorkspace', executionWorkspace, wanted);
  if (runtime.image !== plan.image) return mismatch('spec.runtime.image', runtime.image, plan.image);
  if (runtime.profile.digest !== plan.profileDigest)
    return mismatch('spec.runtime.profile.digest', runtime.profile.digest, plan.profileDigest);
  return undefined;
}
