import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import type { Manifest } from '../api/index.js';
import { resourceOf, Written } from './from-manifest.js';
import type { FromManifestOptions } from './from-manifest.js';
import { providerKinds } from './kinds.js';
import { join } from './neighbours.js';
import type { Resource } from './resource.js';
import { networkPolicyRules } from './rules/network-policy.js';
import type { Rule } from './rules/rule.js';
import type { Allowance } from './rules/switch.js';

/** Which objects a selector means. All given terms must hold; `{}` means all. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

/** One end of a connection: Pods, of this or of selected namespaces, or addresses. */
export interface NetworkPolicyPeer {
  readonly podSelector?: LabelSelector;
  readonly namespaceSelector?: LabelSelector;
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
}

/** One port of a rule, or all ports up to `endPort`. */
export interface NetworkPolicyPort {
  /** Said explicitly: the provider compares without the server's default. */
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  /** 1..65535 or the name of a container port. */
  readonly port: number | string;
  readonly endPort?: number;
}

/** Traffic that the selected Pods may receive: from these peers, on these ports. */
export interface NetworkPolicyIngressRule {
  readonly from: readonly NetworkPolicyPeer[];
  readonly ports: readonly NetworkPolicyPort[];
}

/** Traffic that the selected Pods may send: to these peers, on these ports. */
export interface NetworkPolicyEgressRule {
  readonly to: readonly NetworkPolicyPeer[];
  readonly ports: readonly NetworkPolicyPort[];
}

/** Props of {@link NetworkPolicy}. A direction that is given, even as `[]`, is closed but for its rules. */
export interface NetworkPolicyProps {
  readonly metadata?: ApiObjectMetadata;
  /** The Pods that are isolated. */
  readonly podSelector: LabelSelector;
  /** @default - ingress is not governed by this policy */
  readonly ingress?: readonly NetworkPolicyIngressRule[];
  /** @default - egress is not governed by this policy */
  readonly egress?: readonly NetworkPolicyEgressRule[];
  /** Rules of policy that this one may break, by id, and fields that this version does not know: `field:spec.x`. @default - none */
  readonly allow?: readonly Allowance[];
  /** Rules of your own. @default - none */
  readonly rules?: readonly Rule<Manifest>[];
}

/** A NetworkPolicy whose directions follow from what is given, and whose rules mean what they say. */
export class NetworkPolicy extends Construct {
  /** A policy as a manifest says; what is added, lost and refused is told at `Sandbox.fromManifest`. */
  static fromManifest(scope: Construct, id: string, manifest: Manifest, options: FromManifestOptions = {}): NetworkPolicy {
    return new NetworkPolicy(scope, id, Written.of(`${scope.node.path}/${id}`, providerKinds.networkPolicy, manifest, options));
  }

  readonly name: string;
  readonly resource: Resource;

  constructor(scope: Construct, id: string, props: NetworkPolicyProps | Written) {
    super(scope, id);
    this.resource = resourceOf(this, providerKinds.networkPolicy, props, networkPolicyRules, policySpec);
    this.name = this.resource.name;
    join(this.resource);
  }
}

const policySpec = ({ podSelector, ingress, egress }: NetworkPolicyProps): object => ({
  podSelector,
  policyTypes: [...(ingress ? ['Ingress'] : []), ...(egress ? ['Egress'] : [])],
  ingress,
  egress,
});
