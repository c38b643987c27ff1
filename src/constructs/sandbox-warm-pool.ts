import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import { Resource } from './resource.js';
import { sandboxWarmPoolRules } from './rules/sandbox-warm-pool.js';
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
}

/** A pool of sandboxes that claims draw from. */
export class SandboxWarmPool extends Construct implements ISandboxWarmPool {
  /** A pool that is written elsewhere, in the same namespace. */
  static fromName(name: string): ISandboxWarmPool {
    return { name };
  }

  readonly name: string;
  readonly resource: Resource;

  constructor(scope: Construct, id: string, props: SandboxWarmPoolProps) {
    super(scope, id);
    this.resource = new Resource(
      this,
      'Resource',
      {
        apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
        kind: 'SandboxWarmPool',
        metadata: props.metadata,
        spec: {
          sandboxTemplateRef: { name: props.template.name },
          replicas: props.replicas,
          updateStrategy: props.updateStrategy === undefined ? undefined : { type: props.updateStrategy },
        },
      },
      sandboxWarmPoolRules,
    );
    this.name = this.resource.name;
  }
}
