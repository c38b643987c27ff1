import { App, Chart } from 'cdk8s';
import type { Manifest } from '../api/index.js';
import { protocolVersion } from '../api/index.js';
import { RuntimePool } from '../constructs/runtime-pool.js';
import { short } from '../domain/digests.js';
import type { Digest } from '../domain/digests.js';
import { annotationKeys, labelKeys } from '../domain/labels.js';
import type { Plan } from '../domain/plan.js';
import { digestSchemaVersion } from '../domain/profile.js';

/** What a RuntimePool records beside its plan. */
export interface PoolRecord {
  /** The class it was planned from: name and the digest that the controller computed for it. */
  readonly poolClass: { readonly name: string; readonly digest: Digest };
  /** RFC 3339. */
  readonly demandedAt: string;
  /** Name of the Task that a pool with a workspace is made for. @default - not recorded */
  readonly task?: string;
}

/** The RuntimePool of a plan. Its shape depends on the plan, so it is no part of a compiled class. Source: workload.md §2.10. */
export function renderRuntimePool(plan: Plan, { poolClass, demandedAt, task }: PoolRecord): Manifest {
  const chart = new Chart(new App({ outdir: '/dev/null', recordConstructMetadata: false }), 'pool');
  const { profile, binding } = plan;
  const pool = new RuntimePool(chart, 'pool', {
    metadata: {
      name: plan.poolName,
      namespace: plan.namespace,
      labels: {
        [labelKeys.runtimePool]: 'true',
        [labelKeys.trustDomain]: plan.namespace,
        [labelKeys.profile]: short(plan.profileDigest),
        ...(binding ? { [labelKeys.workspaceProvider]: binding.provider } : {}),
      },
      annotations: {
        [annotationKeys.lastDemandAt]: demandedAt,
        [annotationKeys.poolClass]: `${poolClass.name}@${poolClass.digest}`,
        ...(task !== undefined && binding ? { [annotationKeys.task]: task } : {}),
      },
    },
    trustDomain: { namespace: plan.namespace, identity: `namespace:${plan.namespace}` },
    runtimeNamespace: plan.runtimeNamespace,
    runtime: {
      image: plan.image,
      profile: { protocolVersion, digest: plan.profileDigest, digestSchemaVersion, ...profile, acpProfile: 'acp.v1' },
    },
    executionWorkspace: binding && {
      provider: binding.provider as 'agent-sandbox' | 'substrate',
      bindingDigest: binding.bindingDigest,
      ...(binding.provider === 'substrate'
        ? { substrate: { baseTemplateNamespace: binding.templateNamespace, baseTemplateName: binding.templateName } }
        : {}),
    },
    desiredReplicas: 1,
  });
  return pool.resource.manifest();
}
