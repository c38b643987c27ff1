import { Construct } from 'constructs';
import type { RuntimePoolClassSpec } from '../api/index.js';
import type { WorkspaceFacts } from '../domain/facts.js';
import { commonLabels } from '../domain/labels.js';
import type { Digest } from '../lib/sha256.js';
import { applyClassPatches } from './class-patches.js';
import { isolationTargets, PoolIsolation } from './pool-isolation.js';
import { poolRules } from './rules/pool.js';
import { SandboxClaim } from './sandbox-claim.js';
import { SandboxTemplate } from './sandbox-template.js';
import { SandboxWarmPool } from './sandbox-warm-pool.js';
import { secretShapes } from './secret-shape.js';
import type { SecretShape } from './secret-shape.js';
import { supervisorPod } from './supervisor-pod.js';
import { seal } from './template-revision.js';

/** Props of {@link WorkspacePool}. */
export interface WorkspacePoolProps {
  /** Reviewed settings. */
  readonly poolClass: RuntimePoolClassSpec;
  /** What is known of the one pool. Placed, never computed with. */
  readonly facts: WorkspaceFacts;
}

/**
 * A pool whose one instance is a sandbox of the provider: isolation, a credential-free template, a warm pool without members, so
 * that every claim starts cold from the current template, and the one claim. Source: workload.md §3.5.
 */
export class WorkspacePool extends Construct {
  readonly isolation: PoolIsolation;
  readonly template: SandboxTemplate;
  readonly warmPool: SandboxWarmPool;
  readonly claim: SandboxClaim;
  readonly secrets: readonly SecretShape[];
  /** Digest of the Pod template, as its annotation carries it. */
  readonly templateRevision: Digest;

  constructor(scope: Construct, id: string, { poolClass, facts }: WorkspacePoolProps) {
    super(scope, id);
    const metadata = (name: string) => ({
      name,
      namespace: poolClass.network.runtimeNamespace,
      labels: { ...commonLabels(facts) },
    });
    this.isolation = new PoolIsolation(this, 'isolation', { poolClass, facts });
    this.template = new SandboxTemplate(this, 'template', {
      metadata: metadata(facts.templateName),
      podTemplate: supervisorPod(poolClass, facts),
      networkPolicyManagement: 'Unmanaged',
      allow: ['template/unmanaged-network'],
      rules: poolRules,
    });
    this.warmPool = new SandboxWarmPool(this, 'warm-pool', {
      metadata: metadata(facts.warmPoolName),
      template: this.template,
      replicas: 0,
    });
    this.claim = new SandboxClaim(this, 'claim', { metadata: metadata(facts.claimName), warmPool: this.warmPool });
    this.secrets = secretShapes(poolClass, facts);
    applyClassPatches(
      this.node.path,
      poolClass.patches.filter(({ target }) => target.kind !== 'Deployment'),
      [
        ...isolationTargets(this.isolation),
        { kind: 'SandboxTemplate', resource: this.template.resource },
        { kind: 'SandboxWarmPool', resource: this.warmPool.resource },
      ],
    );
    this.templateRevision = seal(this.template.resource, 'SandboxTemplate');
  }
}
