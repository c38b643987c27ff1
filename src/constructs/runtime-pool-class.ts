import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import { apiVersion, runtimePoolClassKind } from '../api/index.js';
import type { RuntimePoolClassSpec } from '../api/index.js';
import { Resource } from './resource.js';
import { classRules, validRuntimePoolClass } from './rules/own-kinds.js';
import { enforce } from './rules/rule.js';
import { identityRules } from './rules/names.js';

/** Props of {@link RuntimePoolClass}. */
export interface RuntimePoolClassProps {
  readonly metadata?: ApiObjectMetadata;
  /** Every field; the API server fills in nothing, so that what is reviewed is what is used. */
  readonly spec: RuntimePoolClassSpec;
}

/** Reviewed settings from which the controller renders pools, as long as it computes one of the approved digests itself. */
export class RuntimePoolClass extends Construct {
  readonly name: string;
  readonly resource: Resource;

  constructor(scope: Construct, id: string, props: RuntimePoolClassProps) {
    super(scope, id);
    this.resource = new Resource(
      this,
      'Resource',
      {
        apiVersion: apiVersion(runtimePoolClassKind),
        kind: runtimePoolClassKind.kind,
        metadata: props.metadata,
        spec: props.spec,
      },
      [...identityRules, validRuntimePoolClass],
    );
    this.name = this.resource.name;
    enforce(this.node.path, classRules, props.spec);
  }
}
