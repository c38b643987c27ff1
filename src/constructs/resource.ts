import { ApiObject } from 'cdk8s';
import type { ApiObjectMetadata, JsonPatch } from 'cdk8s';
import type { Construct } from 'constructs';
import type { Manifest } from '../api/index.js';
import type { Json, JsonObject, Path } from '../lib/json.js';
import { fieldPath, isPlainObject } from '../lib/json.js';
import { isClusterScoped } from './cluster-scoped.js';
import { RenderError } from './errors.js';
import { applyPatch } from './patch.js';
import type { PatchOperation } from './patch.js';
import { metadataRules } from './rules/names.js';
import { brokenText, enforce } from './rules/rule.js';
import type { Rule } from './rules/rule.js';

/** Props of {@link Resource}: the manifest, whose name may be left out. */
export interface ResourceProps {
  readonly apiVersion: string;
  readonly kind: string;
  /** @default - a name made of the construct path */
  readonly metadata?: ApiObjectMetadata;
  /** Everything beside apiVersion, kind and metadata: `spec`, `data`, `rules` … */
  readonly [member: string]: unknown;
}

/**
 * An API object whose output is exactly what it was given.
 *
 * cdk8s' generated classes re-project a manifest after patches and drop what they do not know, which opens NetworkPolicies;
 * this one copies. Patches are strict. Rules and patches of a composite go through {@link Resource.manifest}.
 */
export class Resource extends ApiObject {
  readonly #body: JsonObject;
  readonly #operations: PatchOperation[] = [];
  readonly #rules: readonly Rule<Manifest>[];
  readonly #at: string;
  readonly #metadata: JsonObject;

  /**
   * `rules` are checked now, after every patch and again at synth, since `metadata` can be changed at any time. The construct that owns the
   * resource answers for what is wrong. `metadata` is written as it is, below what cdk8s makes of the props: see {@link Resource.written}.
   */
  constructor(
    scope: Construct,
    id: string,
    props: ResourceProps,
    rules: readonly Rule<Manifest>[] = metadataRules,
    metadata: object = {},
  ) {
    super(scope, id, props);
    const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...body } = props;
    const owner = (id === 'Resource' ? this.node.scope : undefined) ?? this;
    this.#at = owner.node.path;
    this.#body = plain(this.#at, body, []) as JsonObject;
    this.#metadata = plain(this.#at, metadata, ['metadata']) as JsonObject;
    this.#rules = rules;
    enforce(this.#at, rules, this.manifest());
    owner.node.addValidation({ validate: () => brokenText(rules, this.manifest()) });
  }

  /**
   * An object of which a manifest is there already; nothing of it is lost, also not what cdk8s would leave out of metadata (empty maps, and
   * members that it does not know). The chart's namespace and labels are added as to any object.
   */
  static written(scope: Construct, id: string, manifest: Manifest, rules: readonly Rule<Manifest>[]): Resource {
    const { name, namespace, labels, annotations, finalizers, ownerReferences } = manifest.metadata;
    const known = { name, namespace, labels, annotations, finalizers, ownerReferences } as ApiObjectMetadata;
    return new Resource(scope, id, { ...manifest, metadata: known }, rules, manifest.metadata);
  }

  /** Strict RFC 6902, all or nothing, applied in order. Throws `patch-failed`. */
  override addJsonPatch(...operations: JsonPatch[]): void {
    this.patch(operations.map((operation) => operation._toJson() as PatchOperation));
  }

  /**
   * As {@link addJsonPatch}, on plain operations. All rules run again, after `rules`; a patch that breaks one is not applied.
   *
   * @param at - what errors are about; the construct path by default
   */
  patch(operations: readonly PatchOperation[], at = this.#at, rules: readonly Rule<Manifest>[] = []): void {
    enforce(at, [...rules, ...this.#rules], applyPatch(at, this.manifest(), operations));
    this.#operations.push(...operations);
  }

  /** The object as it will be written and sent. A new value on every call. */
  manifest(): Manifest {
    const { namespace, ...metadata } = this.metadata.toJson() as Manifest['metadata'];
    const object = {
      apiVersion: this.apiVersion,
      kind: this.kind,
      metadata: {
        ...structuredClone(this.#metadata),
        ...metadata,
        ...(namespace === undefined || isClusterScoped(this.kind) ? {} : { namespace }),
      },
      ...structuredClone(this.#body),
    } as Manifest;
    return applyPatch(this.#at, object, this.#operations);
  }

  override toJson(): Manifest {
    return this.manifest();
  }
}

/** A copy of a value in JSON's terms. What JSON cannot hold is refused with its path instead of being dropped. */
function plain(at: string, value: unknown, path: Path): Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (Array.isArray(value)) return value.map((item, index) => plain(at, item, [...path, index]));
  if (isPlainObject(value)) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return Object.fromEntries(members.map(([name, member]) => [name, plain(at, member, [...path, name])]));
  }
  throw new RenderError('rule-violated', {
    at,
    field: fieldPath(path),
    found: typeof value === 'object' ? value.constructor.name : typeof value,
    allowed: 'JSON: objects, lists, strings, finite numbers, true, false and null',
  });
}
