import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import type { Manifest } from '../api/index.js';
import type { NetworkPolicyEgressRule, NetworkPolicyIngressRule } from './network-policy.js';
import type { PodTemplate } from './pod.js';
import { Resource } from './resource.js';
import type { Rule } from './rules/rule.js';
import { sandboxTemplateRules } from './rules/sandbox-template.js';

/** A SandboxTemplate that a warm pool can refer to. */
export interface ISandboxTemplate {
  readonly name: string;
}

/** Props of {@link SandboxTemplate}. */
export interface SandboxTemplateProps {
  readonly metadata?: ApiObjectMetadata;
  /** What a sandbox's Pod is made from. */
  readonly podTemplate: PodTemplate;
  /**
   * Who isolates the sandboxes. `Managed`: the provider writes one policy per template. `Unmanaged`: nothing does; bring
   * NetworkPolicies of your own that select the Pods.
   * @default 'Managed'
   */
  readonly networkPolicyManagement?: 'Managed' | 'Unmanaged';
  /**
   * Rules of the managed policy; a direction without rules is closed.
   * @default - closed both ways: the provider's own default would open the internet
   */
  readonly networkPolicy?: {
    readonly ingress?: readonly NetworkPolicyIngressRule[];
    readonly egress?: readonly NetworkPolicyEgressRule[];
  };
  /**
   * Accept rules without peers or without ports, which mean "anyone" and "every port".
   * @default false
   */
  readonly allowOpenRules?: boolean;
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
  readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string }; readonly spec: object }[];
  /** Rules of your own, checked beside the provider's. @default - none */
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

  readonly name: string;
  readonly resource: Resource;

  constructor(scope: Construct, id: string, props: SandboxTemplateProps) {
    super(scope, id);
    const own = props.allowOpenRules ? sandboxTemplateRules.filter((rule) => rule.kind !== 'policy') : sandboxTemplateRules;
    const management = props.networkPolicyManagement ?? 'Managed';
    this.resource = new Resource(
      this,
      'Resource',
      {
        apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
        kind: 'SandboxTemplate',
        metadata: props.metadata,
        spec: {
          podTemplate: props.podTemplate,
          networkPolicyManagement: management,
          networkPolicy: props.networkPolicy ?? (management === 'Managed' ? {} : undefined),
          envVarsInjectionPolicy: props.envVarsInjectionPolicy ?? 'Disallowed',
          volumeClaimTemplatesPolicy: props.volumeClaimTemplatesPolicy ?? 'Disallowed',
          volumeClaimTemplates: props.volumeClaimTemplates,
          service: props.service,
        },
      },
      [...own, ...(props.rules ?? [])],
    );
    this.name = this.resource.name;
  }
}
