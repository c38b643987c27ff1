import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import { apiVersion, runtimePoolKind } from '../api/index.js';
import type { RuntimePoolSpec } from '../api/index.js';
import { Resource } from './resource.js';
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
  readonly name: string;
  readonly resource: Resource;

  constructor(scope: Construct, id: string, props: RuntimePoolProps) {
    super(scope, id);
    this.resource = new Resource(
      this,
      'Resource',
      {
        apiVersion: apiVersion(runtimePoolKind),
        kind: runtimePoolKind.kind,
        metadata: props.metadata,
        spec: {
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
        },
      },
      [...identityRules, validRuntimePool],
    );
    this.name = this.resource.name;
  }
}
