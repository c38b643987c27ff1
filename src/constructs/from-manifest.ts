import type { ApiObjectMetadata } from 'cdk8s';
import type { Construct } from 'constructs';
import type { Manifest } from '../api/index.js';
import { isObject } from '../lib/json.js';
import { RenderError } from './errors.js';
import { Resource } from './resource.js';
import type { Rule } from './rules/rule.js';
import { objectRules } from './rules/schema.js';
import { allowedFields, rulesWithout } from './rules/switch.js';
import type { Allowance } from './rules/switch.js';

/** Options of every `fromManifest`. */
export interface FromManifestOptions {
  /**
   * Rules that the manifest may break, by id, and fields that this version does not know: `field:spec.x`. The provider's rules always apply.
   * @default - none: what is insecure or unknown is accepted only when it is named
   */
  readonly allow?: readonly Allowance[];
  /** Rules of your own. @default - none */
  readonly rules?: readonly Rule<Manifest>[];
}

/** What {@link Written.of} makes of a manifest; constructs take it in the place of their props. */
export class Written<Options extends FromManifestOptions = FromManifestOptions> {
  private constructor(
    readonly manifest: Manifest,
    readonly options: Options,
  ) {}

  /** Throws `rule-violated` unless the manifest is of the kind and has a name. */
  static of<Options extends FromManifestOptions>(
    at: string,
    { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
    manifest: Manifest,
    options: Options,
  ): Written<Options> {
    const refuse = (field: string, found: unknown, allowed: string): never => {
      throw new RenderError('rule-violated', { at, field, found, allowed });
    };
    const given: unknown = manifest;
    if (!isObject(given)) return refuse('', typeof given, `an object of kind ${kind}`);
    if (given['apiVersion'] !== apiVersion) return refuse('apiVersion', given['apiVersion'], apiVersion);
    if (given['kind'] !== kind) return refuse('kind', given['kind'], kind);
    const name = isObject(given['metadata']) ? given['metadata']['name'] : undefined;
    if (typeof name !== 'string') return refuse('metadata.name', name, 'the name of the object');
    if (!isObject(given['spec'])) return refuse('spec', given['spec'], 'an object');
    return new Written(manifest, options);
  }
}

/** What props of a construct have that renders one object. */
interface ObjectProps {
  readonly metadata?: ApiObjectMetadata;
  readonly allow?: readonly Allowance[];
  readonly rules?: readonly Rule<Manifest>[];
}

/** The object of a construct: as its props say, or as it was written. */
export function resourceOf<Props extends ObjectProps>(
  owner: Construct,
  kind: { readonly apiVersion: string; readonly kind: string },
  props: Props | Written,
  rules: readonly Rule<Manifest>[],
  specOf: (props: Props) => object,
): Resource {
  const { allow, rules: own = [] } = props instanceof Written ? props.options : props;
  const { first, last } = objectRules(allowedFields(allow));
  const active = [...first, ...rulesWithout(owner.node.path, rules, allow), ...last, ...own];
  return props instanceof Written
    ? Resource.written(owner, 'Resource', props.manifest, active)
    : new Resource(owner, 'Resource', { ...kind, metadata: props.metadata, spec: specOf(props) }, active);
}
