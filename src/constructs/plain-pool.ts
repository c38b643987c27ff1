import { Construct } from 'constructs';
import type { RuntimePoolClassSpec } from '../api/index.js';
import type { PlainFacts } from '../domain/facts.js';
import { commonLabels, labelKeys } from '../domain/labels.js';
import type { Digest } from '../lib/sha256.js';
import { applyClassPatches } from './class-patches.js';
import { isolationTargets, PoolIsolation } from './pool-isolation.js';
import { Resource } from './resource.js';
import { identityRules } from './rules/names.js';
import { podRules } from './rules/pod.js';
import { poolRules } from './rules/pool.js';
import { secretShapes } from './secret-shape.js';
import type { SecretShape } from './secret-shape.js';
import { supervisorPod } from './supervisor-pod.js';
import { seal } from './template-revision.js';

/** Props of {@link PlainPool}. */
export interface PlainPoolProps {
  /** Reviewed settings. */
  readonly poolClass: RuntimePoolClassSpec;
  /** What is known of the one pool. Placed, never computed with. */
  readonly facts: PlainFacts;
}

/** A pool that several Tasks share, without sandboxes: the same isolation and Pod, kept by a Deployment. Source: workload.md §3.9. */
export class PlainPool extends Construct {
  readonly isolation: PoolIsolation;
  readonly deployment: Resource;
  readonly secrets: readonly SecretShape[];
  /** Digest of the Pod template, as its annotation carries it. */
  readonly templateRevision: Digest;

  constructor(scope: Construct, id: string, { poolClass, facts }: PlainPoolProps) {
    super(scope, id);
    this.isolation = new PoolIsolation(this, 'isolation', { poolClass, facts });
    this.deployment = new Resource(
      this,
      'deployment',
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: facts.baseName, namespace: poolClass.network.runtimeNamespace, labels: { ...commonLabels(facts) } },
        spec: {
          replicas: facts.replicas,
          strategy: { type: 'Recreate' },
          minReadySeconds: 2,
          progressDeadlineSeconds: 120,
          revisionHistoryLimit: 1,
          selector: { matchLabels: { [labelKeys.poolKey]: facts.poolKey } },
          template: supervisorPod(poolClass, facts),
        },
      },
      [...identityRules, ...podRules, ...poolRules],
    );
    this.secrets = secretShapes(poolClass, facts);
    applyClassPatches(
      this.node.path,
      poolClass.patches.filter(({ target }) => !target.kind.startsWith('Sandbox')),
      [...isolationTargets(this.isolation), { kind: 'Deployment', resource: this.deployment }],
    );
    this.templateRevision = seal(this.deployment, 'Deployment');
  }
}
