import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import type { Manifest } from '../api/index.js';
import { resourceOf, Written } from './from-manifest.js';
import type { FromManifestOptions } from './from-manifest.js';
import { providerKinds } from './kinds.js';
import { checkLinks } from './neighbours.js';
import type { VolumeClaimTemplate } from './pod.js';
import type { Resource } from './resource.js';
import { defaultLabelDomains, podLabelRule, sandboxClaimRules } from './rules/sandbox-claim.js';
import type { Allowance } from './rules/switch.js';
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
    /**
     * Seconds after the Pod has finished; at least 30, because a replaced Pod looks finished for a moment. The template needs a restartPolicy
     * with which Pods finish.
     */
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
  /**
   * Volumes of this sandbox alone, or in the place of the template's; the template must allow them and mount them, and the claim starts
   * cold. @default - those of the template
   */
  readonly volumeClaimTemplates?: readonly VolumeClaimTemplate[];
  /** Rules of policy that this claim may break, by id, and fields that this version does not know: `field:spec.x`. @default - none */
  readonly allow?: readonly Allowance[];
}

/** Options of {@link SandboxClaim.fromManifest}. */
export interface ClaimFromManifestOptions extends FromManifestOptions {
  /** As {@link SandboxClaimProps.allowedLabelDomains}. @default ['sandbox.users.io'] */
  readonly allowedLabelDomains?: readonly string[];
}

/** One sandbox, asked for. Claims are written once: the provider reacts badly to edits. */
export class SandboxClaim extends Construct {
  /** A claim as a manifest says; what is added, lost and refused is told at `Sandbox.fromManifest`. */
  static fromManifest(scope: Construct, id: string, manifest: Manifest, options: ClaimFromManifestOptions = {}): SandboxClaim {
    return new SandboxClaim(scope, id, Written.of(`${scope.node.path}/${id}`, providerKinds.claim, manifest, options));
  }

  readonly name: string;
  readonly resource: Resource;

  constructor(scope: Construct, id: string, props: SandboxClaimProps | Written<ClaimFromManifestOptions>) {
    super(scope, id);
    const { allowedLabelDomains = defaultLabelDomains } = props instanceof Written ? props.options : props;
    const rules = [...sandboxClaimRules, podLabelRule(allowedLabelDomains)];
    this.resource = resourceOf<SandboxClaimProps>(this, providerKinds.claim, props, rules, claimSpec);
    this.name = this.resource.name;
    checkLinks(this, this.resource, props instanceof Written ? undefined : props.warmPool);
  }
}

const claimSpec = ({ warmPool, lifecycle, additionalPodMetadata, env, volumeClaimTemplates }: SandboxClaimProps): object => ({
  warmPoolRef: { name: warmPool.name },
  lifecycle,
  additionalPodMetadata,
  env,
  volumeClaimTemplates,
});
