import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import { Resource } from './resource.js';
import { podLabelRule, sandboxClaimRules } from './rules/sandbox-claim.js';
import type { ISandboxWarmPool } from './sandbox-warm-pool.js';

/** Props of {@link SandboxClaim}. */
export interface SandboxClaimProps {
  readonly metadata?: ApiObjectMetadata;
  /** The pool that the sandbox comes from. Same namespace. */
  readonly warmPool: ISandboxWarmPool;
  /** When the sandbox ends by itself. @default - never */
  readonly lifecycle?: {
    /** RFC 3339, whole seconds, with `Z`. */
    readonly shutdownTime?: string;
    /** Seconds after the Pod has finished; at least 30, because a replaced Pod looks finished for a moment. */
    readonly ttlSecondsAfterFinished?: number;
    /** @default 'Retain' */
    readonly shutdownPolicy?: 'Delete' | 'DeleteForeground' | 'Retain';
  };
  /** Labels and annotations that reach the Pod. @default - none */
  readonly additionalPodMetadata?: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  /**
   * Domains of which the provider lets a claim set Pod labels: `allowed-label-domains` of its ConfigMap.
   * @default ['sandbox.users.io']
   */
  readonly allowedLabelDomains?: readonly string[];
  /** Plain environment variables; the template must allow them, and the claim starts cold. @default - none */
  readonly env?: readonly { readonly name: string; readonly value: string; readonly containerName?: string }[];
}

/** One sandbox, asked for. Claims are written once: the provider reacts badly to edits. */
export class SandboxClaim extends Construct {
  readonly name: string;
  readonly resource: Resource;

  constructor(scope: Construct, id: string, props: SandboxClaimProps) {
    super(scope, id);
    this.resource = new Resource(
      this,
      'Resource',
      {
        apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
        kind: 'SandboxClaim',
        metadata: props.metadata,
        spec: {
          warmPoolRef: { name: props.warmPool.name },
          lifecycle: props.lifecycle,
          additionalPodMetadata: props.additionalPodMetadata,
          env: props.env,
        },
      },
      [...sandboxClaimRules, podLabelRule(props.allowedLabelDomains ?? ['sandbox.users.io'])],
    );
    this.name = this.resource.name;
  }
}
