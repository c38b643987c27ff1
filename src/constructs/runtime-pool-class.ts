import type { ApiObjectMetadata } from 'cdk8s';
import { Construct } from 'constructs';
import { apiVersion, runtimePoolClassKind } from '../api/index.js';
import type { Manifest, RuntimePoolClassSpec } from '../api/index.js';
import { resourceOf, Written } from './from-manifest.js';
import type { Resource } from './resource.js';
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
  /** A class as a manifest says; what is added and lost is told at `Sandbox.fromManifest`. Its schema and all rules apply. */
  static fromManifest(scope: Construct, id: string, manifest: Manifest): RuntimePoolClass {
    return new RuntimePoolClass(scope, id, Written.of(`${scope.node.path}/${id}`, kind, manifest, {}));
  }

  readonly name: string;
  readonly resource: Resource;

  constructor(scope: Construct, id: string, props: RuntimePoolClassProps | Written) {
    super(scope, id);
    this.resource = resourceOf(this, kind, props, [...identityRules, validRuntimePoolClass], ({ spec }) => spec);
    this.name = this.resource.name;
    enforce(this.node.path, classRules, this.resource.manifest()['spec'] as unknown as RuntimePoolClassSpec);
  }
}

const kind = { apiVersion: apiVersion(runtimePoolClassKind), kind: runtimePoolClassKind.kind };
