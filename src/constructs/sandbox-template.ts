import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import type { Manifest } from '../api/index.js';
import { resourceOf, Written } from './from-manifest.js';
import type { FromManifestOptions } from './from-manifest.js';
import { providerKinds } from './kinds.js';
import { checkLinks } from './neighbours.js';
import type { NetworkPolicyEgressRule, NetworkPolicyIngressRule } from './network-policy.js';
import type { PodTemplate, VolumeClaimTemplate } from './pod.js';
import type { Resource } from './resource.js';
import type { Rule } from './rules/rule.js';
import { sandboxTemplateRules } from './rules/sandbox-template.js';
import type { Allowance } from './rules/switch.js';

/** A SandboxTemplate that a warm pool can refer to. */
export interface ISandboxTemplate {
  readonly name: string;
}

/** Rules of a managed policy; a direction without rules is closed. */
export interface TemplateTraffic {
  readonly ingress?: readonly NetworkPolicyIngressRule[];
  readonly egress?: readonly NetworkPolicyEgressRule[];
}

/** Props of {@link SandboxTemplate}. */
export interface SandboxTemplateProps {
  readonly metadata?: ApiObjectMetadata;
  /** What a sandbox's Pod is made from. */
  readonly podTemplate: PodTemplate;
  /**
   * Who isolates the sandboxes. `Managed`: the provider writes one policy per template. `Unmanaged`: nothing does; bring
   * NetworkPolicies of your own that select the Pods, and say so: `allow: ['template/unmanaged-network']`.
   * @default 'Managed'
   */
  readonly networkPolicyManagement?: 'Managed' | 'Unmanaged';
  /**
   * Rules of the managed policy. `ProviderDefault` leaves them to the provider, who opens the internet:
   * `allow: ['template/default-network']`.
   * @default - closed both ways
   */
  readonly networkPolicy?: TemplateTraffic | 'ProviderDefault';
  /**
   * May a claim set environment variables?
   * @default 'Disallowed'
   */
  readonly envVarsInjectionPolicy?: 'Allowed' | 'Overrides' | 'Disallowed';
  /**
   * May a claim bring volume claim templates?
   * @default 'Disallowed'
   */
  readonly volumeClaimTemplatesPolicy?: 'Allowed' | 'Overrides' | 'Disallowed';
  /** @default - no volumes that outlive a Pod */
  readonly volumeClaimTemplates?: readonly VolumeClaimTemplate[];
  /** Rules of policy that this template may break, by id, and fields that this version does not know: `field:spec.x`. @default - none */
  readonly allow?: readonly Allowance[];
  /** Your own rules, checked together with the others. @default - none */
  readonly rules?: readonly Rule<Manifest>[];
  /**
   * A headless Service for each sandbox. Claims then need names of 63 characters at most.
   * @default false
   */
  readonly service?: boolean;
}

/** The blueprint of sandboxes. Secure by default: closed network, nothing injected by claims. */
export class SandboxTemplate extends Construct implements ISandboxTemplate {
  /** A template that is written elsewhere, in the same namespace. */
  static fromName(name: string): ISandboxTemplate {
    return { name };
  }

  /** A template as a manifest says; what is added, lost and refused is told at `Sandbox.fromManifest`. */
  static fromManifest(scope: Construct, id: string, manifest: Manifest, options: FromManifestOptions = {}): SandboxTemplate {
    return new SandboxTemplate(scope, id, Written.of(`${scope.node.path}/${id}`, providerKinds.template, manifest, options));
  }

  readonly name: string;
  readonly resource: Resource;

  constructor(scope: Construct, id: string, props: SandboxTemplateProps | Written) {
    super(scope, id);
    this.resource = resourceOf(this, providerKinds.template, props, sandboxTemplateRules, templateSpec);
    this.name = this.resource.name;
    checkLinks(this, this.resource);
  }
}

function templateSpec({ networkPolicyManagement = 'Managed', networkPolicy, ...props }: SandboxTemplateProps): object {
  const closed = networkPolicyManagement === 'Managed' ? {} : undefined;
  return {
    podTemplate: props.podTemplate,
    networkPolicyManagement,
    networkPolicy: networkPolicy === 'ProviderDefault' ? undefined : (networkPolicy ?? closed),
    envVarsInjectionPolicy: props.envVarsInjectionPolicy ?? 'Disallowed',
    volumeClaimTemplatesPolicy: props.volumeClaimTemplatesPolicy ?? 'Disallowed',
    volumeClaimTemplates: props.volumeClaimTemplates,
    service: props.service,
  };
}
