import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import { apiVersion, runtimePoolKind } from '../api/index.js';
import type { Manifest, RuntimePoolSpec } from '../api/index.js';
import { resourceOf, Written } from './from-manifest.js';
import type { Resource } from './resource.js';
import { identityRules } from './rules/names.js';
import { validRuntimePool } from './rules/own-kinds.js';

/** Props of {@link RuntimePool}. */
export interface RuntimePoolProps {
  readonly metadata?: ApiObjectMetadata;
  /** The namespace whose Tasks the pool serves; its identity is derived. */
  readonly trustDomain: RuntimePoolSpec['trustDomain'];
  readonly runtime: RuntimePoolSpec['runtime'];
  /** @default - a plain pool, kept by a Deployment */
  readonly executionWorkspace?: RuntimePoolSpec['executionWorkspace'];
  /** @default - the controller's runtime namespace */
  readonly runtimeNamespace?: string;
  /** @default - left out: a live writer owns it */
  readonly desiredReplicas?: number;
  /** @default - 1 session and 1 prompt for a workspace, 10 and 4 otherwise */
  readonly capacity?: RuntimePoolSpec['capacity'];
  /** @default 120 */
  readonly coldStartTimeoutSeconds?: number;
}

/** One agent runtime, at most one instance. Everything about it but its capacity is immutable. Source: workload.md §1.2, §2.10. */
export class RuntimePool extends Construct {
  /** A pool as a manifest says; what is added and lost is told at `Sandbox.fromManifest`. Its schema always applies. */
  static fromManifest(scope: Construct, id: string, manifest: Manifest): RuntimePool {
    return new RuntimePool(scope, id, Written.of(`${scope.node.path}/${id}`, kind, manifest, {}));
  }

  readonly name: string;
  readonly resource: Resource;

  constructor(scope: Construct, id: string, props: RuntimePoolProps | Written) {
    super(scope, id);
    this.resource = resourceOf(this, kind, props, [...identityRules, validRuntimePool], poolSpec);
    this.name = this.resource.name;
  }
}

const kind = { apiVersion: apiVersion(runtimePoolKind), kind: runtimePoolKind.kind };

const poolSpec = (props: RuntimePoolProps): object => ({
  trustDomain: props.trustDomain,
  runtimeNamespace: props.runtimeNamespace,
  runtime: props.runtime,
  executionWorkspace: props.executionWorkspace,
  desiredReplicas: props.desiredReplicas,
  capacity:
    props.capacity ??
    (props.executionWorkspace
      ? { maxResidentSessions: 1, maxRunningPrompts: 1 }
      : { maxResidentSessions: 10, maxRunningPrompts: 4 }),
  coldStartTimeoutSeconds: props.coldStartTimeoutSeconds ?? 120,
});
