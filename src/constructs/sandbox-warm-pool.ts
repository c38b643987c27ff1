import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import type { Manifest } from '../api/index.js';
import { resourceOf, Written } from './from-manifest.js';
import type { FromManifestOptions } from './from-manifest.js';
import { providerKinds } from './kinds.js';
import { checkLinks } from './neighbours.js';
import type { Resource } from './resource.js';
import type { Rule } from './rules/rule.js';
import { sandboxWarmPoolRules } from './rules/sandbox-warm-pool.js';
import type { Allowance } from './rules/switch.js';
import type { ISandboxTemplate } from './sandbox-template.js';

/** A SandboxWarmPool that claims can draw from. */
export interface ISandboxWarmPool {
  readonly name: string;
}

/** Props of {@link SandboxWarmPool}. */
export interface SandboxWarmPoolProps {
  readonly metadata?: ApiObjectMetadata;
  /** The template every member is made from. Same namespace. */
  readonly template: ISandboxTemplate;
  /**
   * Members kept ready. `0` makes every claim start cold from the current template.
   * @default - left out, so that an autoscaler can own it; the API server fills in 1
   */
  readonly replicas?: number;
  /**
   * What happens to ready members when the template changes. `Recreate` replaces them at once, `OnReplenish` keeps them.
   * @default - left out, which the provider reads as OnReplenish
   */
  readonly updateStrategy?: 'Recreate' | 'OnReplenish';
  /**
   * Seconds that a new member has to become ready before it is replaced; a whole number, at least 30. Needs agent-sandbox v1.0.12.
   * @default - left out: the provider's own, 300 seconds in v1.0.3
   */
  readonly readinessGracePeriodSeconds?: number;
  /** Fields that this version does not know: `field:spec.x`. @default - none */
  readonly allow?: readonly Allowance[];
  /** Your own rules, checked together with the others. @default - none */
  readonly rules?: readonly Rule<Manifest>[];
}

/** A pool of sandboxes that claims draw from. */
export class SandboxWarmPool extends Construct implements ISandboxWarmPool {
  /** A pool that is written elsewhere, in the same namespace. */
  static fromName(name: string): ISandboxWarmPool {
    return { name };
  }

  /** A pool as a manifest says; what is added, lost and refused is told at `Sandbox.fromManifest`. */
  static fromManifest(scope: Construct, id: string, manifest: Manifest, options: FromManifestOptions = {}): SandboxWarmPool {
    return new SandboxWarmPool(scope, id, Written.of(`${scope.node.path}/${id}`, providerKinds.warmPool, manifest, options));
  }

  readonly name: string;
  readonly resource: Resource;

  constructor(scope: Construct, id: string, props: SandboxWarmPoolProps | Written) {
    super(scope, id);
    this.resource = resourceOf(this, providerKinds.warmPool, props, sandboxWarmPoolRules, warmPoolSpec);
    this.name = this.resource.name;
    checkLinks(this, this.resource, props instanceof Written ? undefined : props.template);
  }
}

const warmPoolSpec = ({ template, replicas, updateStrategy, readinessGracePeriodSeconds }: SandboxWarmPoolProps): object => ({
  sandboxTemplateRef: { name: template.name },
  replicas,
  updateStrategy: updateStrategy === undefined ? undefined : { type: updateStrategy },
  readinessGracePeriodSeconds,
});
