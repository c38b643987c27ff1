import type { Manifest } from '../api/index.js';
import { RenderError } from '../constructs/errors.js';
import { leafOf, placeholderForm } from '../domain/placeholders.js';
import type { LeafName } from '../domain/placeholders.js';
import { fieldPath, isObject } from '../lib/json.js';
import type { Json, JsonObject, Path } from '../lib/json.js';

/** Where one live value stands in a compiled object. */
export interface Leaf {
  readonly path: Path;
  readonly name: LeafName;
}

/** The values of all leaves of one pool. */
export type LeafValues = Readonly<Partial<Record<LeafName, string | number>>>;

/** `spec.replicas` of a Deployment, the one leaf that is a number and cannot be told by its text. */
function isReplicas(kind: string, path: Path): boolean {
  return kind === 'Deployment' && path.length === 2 && path[0] === 'spec' && path[1] === 'replicas';
}

/** Every place-holder of an object. Throws `fact-misplaced` where one is only a part of a text, or is a key. */
export function findLeaves(at: string, object: Manifest): readonly Leaf[] {
  const leaves: Leaf[] = [];
  const refuse = (path: Path, found: string): never => {
    throw new RenderError('fact-misplaced', {
      at,
      field: fieldPath(path),
      found,
      allowed: 'a live value as a whole leaf, or none',
    });
  };
  const walk = (value: Json, path: Path): void => {
    if (isReplicas(object.kind, path)) leaves.push({ path, name: 'replicas' });
    else if (typeof value === 'string') {
      const name = leafOf(value);
      if (name) leaves.push({ path, name });
      else if (placeholderForm.test(value)) refuse(path, value);
    } else if (Array.isArray(value)) (value as readonly Json[]).forEach((item, index) => walk(item, [...path, index]));
    else if (isObject(value)) {
      for (const [key, member] of Object.entries(value)) {
        if (placeholderForm.test(key)) refuse(path, key);
        if (member !== undefined) walk(member, [...path, key]);
      }
    }
  };
  walk(object, []);
  return leaves;
}

type Build = (values: LeafValues) => Json;

/**
 * A function that fills in an object's leaves. Parts without a leaf are shared between all results, and frozen.
 * A leaf without a value throws: it would otherwise be missing from what is sent.
 */
export function filler(object: Manifest): (values: LeafValues) => Manifest {
  return build(object.kind, object, []) as unknown as (values: LeafValues) => Manifest;
}

function build(kind: string, value: Json, path: Path): Build {
  const varying = (item: Json | undefined, at: Path): Build | undefined =>
    item !== undefined && hasLeaf(kind, item, at) ? build(kind, item, at) : undefined;
  if (isReplicas(kind, path)) return leaf('replicas');
  if (typeof value === 'string') {
    const name = leafOf(value);
    return name ? leaf(name) : () => value;
  }
  if (Array.isArray(value)) {
    const items = (value as readonly Json[]).map((item, index) => varying(item, [...path, index]) ?? (frozen(item) as Json));
    return (values) => items.map((item) => (typeof item === 'function' ? item(values) : item));
  }
  if (isObject(value)) {
    const members = Object.entries(value).map(
      ([name, member]) => [name, varying(member, [...path, name]) ?? frozen(member)] as const,
    );
    return (values) => {
      const result: Record<string, Json | undefined> = {};
      for (const [name, member] of members) result[name] = typeof member === 'function' ? member(values) : member;
      return result;
    };
  }
  return () => value;
}

function leaf(name: LeafName): Build {
  return (values) => {
    const value = values[name];
    if (value === undefined)
      throw new RenderError('fact-misplaced', {
        at: 'facts',
        field: name,
        found: undefined,
        allowed: 'a value for every live leaf',
      });
    return value;
  };
}

function hasLeaf(kind: string, value: Json, path: Path): boolean {
  if (isReplicas(kind, path)) return true;
  if (typeof value === 'string') return leafOf(value) !== undefined;
  if (Array.isArray(value)) return (value as readonly Json[]).some((item, index) => hasLeaf(kind, item, [...path, index]));
  return (
    isObject(value) &&
    Object.entries(value).some(([name, member]) => member !== undefined && hasLeaf(kind, member, [...path, name]))
  );
}

/** Deep-frozen, because it is shared. */
function frozen(value: Json | undefined): Json | undefined {
  if (typeof value === 'object' && value !== null) {
    Object.values(value as JsonObject).forEach(frozen);
    Object.freeze(value);
  }
  return value;
}
