import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import type { Manifest } from '../api/index.js';
import { resourceOf, Written } from './from-manifest.js';
import type { FromManifestOptions } from './from-manifest.js';
import { providerKinds } from './kinds.js';
import { join } from './neighbours.js';
import type { PodTemplate, VolumeClaimTemplate } from './pod.js';
import type { Resource } from './resource.js';
import type { Rule } from './rules/rule.js';
import { sandboxRules } from './rules/sandbox.js';
import type { Allowance } from './rules/switch.js';

/** Props of {@link Sandbox}. */
export interface SandboxProps {
  readonly metadata?: ApiObjectMetadata;
  /**
   * What the Pod is made from. No token of a ServiceAccount is mounted unless `automountServiceAccountToken` says so, which
   * {@link allow} must name. An edit of a live Sandbox reaches its Pod only when that is made anew.
   */
  readonly podTemplate: PodTemplate;
  /** Cannot change, appear or disappear later. @default - no volumes that outlive a Pod */
  readonly volumeClaimTemplates?: readonly VolumeClaimTemplate[];
  /**
   * A headless Service of the Sandbox's name, which then has to be a DNS-1035 label; `false` deletes one that is there.
   * @default - none is made, one that is there is kept
   */
  readonly service?: boolean;
  /** When the Pod ends; RFC 3339. @default - never */
  readonly shutdownTime?: string;
  /** What becomes of the Sandbox itself at that time. @default - left out; the API server fills in Retain */
  readonly shutdownPolicy?: 'Delete' | 'Retain';
  /**
   * `Suspended` deletes the Pod and keeps volumes and Service. Leave it out where something else suspends and resumes.
   * @default - left out; the API server fills in Running
   */
  readonly operatingMode?: 'Running' | 'Suspended';
  /** Rules of policy that this Sandbox may break, by id, and fields that this version does not know: `field:spec.x`. @default - none */
  readonly allow?: readonly Allowance[];
  /** Your own rules, checked together with the others. @default - none */
  readonly rules?: readonly Rule<Manifest>[];
}

/**
 * One sandbox without template and claim. The provider writes no NetworkPolicy for it: bring your own, selecting labels of
 * `podTemplate`.
 */
export class Sandbox extends Construct {
  /**
   * A Sandbox as a manifest says, nothing added and nothing lost but what the chart around it adds.
   *
   * Throws `rule-violated` for what the provider would refuse or misuse later, and for what is insecure unless `allow` names it.
   */
  static fromManifest(scope: Construct, id: string, manifest: Manifest, options: FromManifestOptions = {}): Sandbox {
    return new Sandbox(scope, id, Written.of(`${scope.node.path}/${id}`, providerKinds.sandbox, manifest, options));
  }

  readonly name: string;
  readonly resource: Resource;

  constructor(scope: Construct, id: string, props: SandboxProps | Written) {
    super(scope, id);
    this.resource = resourceOf(this, providerKinds.sandbox, props, sandboxRules, sandboxSpec);
    this.name = this.resource.name;
    join(this.resource);
  }
}

const sandboxSpec = ({ podTemplate, ...props }: SandboxProps): object => ({
  podTemplate: { ...podTemplate, spec: { automountServiceAccountToken: false, ...podTemplate.spec } },
  volumeClaimTemplates: props.volumeClaimTemplates,
  service: props.service,
  shutdownTime: props.shutdownTime,
  shutdownPolicy: props.shutdownPolicy,
  operatingMode: props.operatingMode,
});
