/**
 * The part of TypeBox that a Kubernetes structural schema can say.
 *
 * The values made here are TypeBox schemas (same symbols, same `Static`), but TypeBox itself is imported for its types only: loading it costs
 * a command more time than everything else that happens before its first line of output. What JSON Schema can express and a structural schema
 * cannot (`const`, `anyOf` of shapes, `$ref`, `additionalProperties: false`) has no helper.
 */
import type { Static, TOptional, TProperties, TSchema, TUnsafe } from '@sinclair/typebox';

import type { Json, JsonObject } from '../lib/json.js';

export type { Static, TProperties, TSchema } from '@sinclair/typebox';

const Kind = Symbol.for('TypeBox.Kind');
const OptionalKind = Symbol.for('TypeBox.Optional');

/** One entry of `x-kubernetes-validations`. */
export interface CelRule {
  /** CEL over `self`, and over `oldSelf` for a rule about transitions. */
  readonly rule: string;
  /** What is wrong, as the API server and `plan` say it. */
  readonly message: string;
  /**
   * The member to blame, relative to the node: `.trustDomain`. It must be in the schema.
   * @default - the node itself
   */
  readonly fieldPath?: string;
}

/** What every node may say about itself. */
export interface NodeOptions {
  readonly description?: string;
  /** The value that the API server writes where there is none. */
  readonly default?: Json;
  readonly rules?: readonly CelRule[];
}

type OptionalNames<P extends TProperties> = { [K in keyof P]: P[K] extends TOptional<TSchema> ? K : never }[keyof P];
type Members<P extends TProperties> = { readonly [K in Exclude<keyof P, OptionalNames<P>>]: Static<P[K]> } & {
  readonly [K in OptionalNames<P>]?: Static<P[K]>;
};
type Flat<T> = { [K in keyof T]: T[K] };

/** An object with exactly these members. Its static type is read-only, unlike that of TypeBox's own `TObject`. */
export interface ObjectSchema<P extends TProperties = TProperties> extends TSchema {
  static: Flat<Members<P>>;
  type: 'object';
  properties: P;
}

/** A schema without its static type, which the caller knows. */
function node(kind: string, keywords: object, options: NodeOptions = {}): TSchema {
  const { rules, ...rest } = options;
  return { [Kind]: kind, ...keywords, ...rest, ...(rules ? { 'x-kubernetes-validations': rules } : {}) } as unknown as TSchema;
}

/** An object with exactly these members; those not wrapped in {@link optional} are required. */
export function object<P extends TProperties>(properties: P, options?: NodeOptions): ObjectSchema<P> {
  const required = Object.keys(properties).filter((name) => !(OptionalKind in (properties[name] as object)));
  return node('Object', { type: 'object', properties, ...(required.length > 0 ? { required } : {}) }, options) as ObjectSchema<P>;
}

export function optional<S extends TSchema>(schema: S): TOptional<S> {
  return { ...schema, [OptionalKind]: 'Optional' } as unknown as TOptional<S>;
}

/** The same node with other words or another default. */
export function withOptions<S extends TSchema>(schema: S, options: NodeOptions): S {
  const { rules, ...rest } = options;
  return { ...schema, ...rest, ...(rules ? { 'x-kubernetes-validations': rules } : {}) };
}

export interface TextOptions extends NodeOptions {
  readonly minLength?: number;
  readonly maxLength?: number;
  /** Valid in RE2 and in JavaScript, unanchored unless it says so. */
  readonly pattern?: string;
}

export function text(options?: TextOptions): TUnsafe<string> {
  return node('String', { type: 'string' }, options) as TUnsafe<string>;
}

/** One of a fixed set of words. */
export function choice<const V extends readonly string[]>(words: V, options?: NodeOptions): TUnsafe<V[number]> {
  return node('String', { type: 'string', enum: words }, options) as TUnsafe<V[number]>;
}

/** RFC 3339. */
export function timestamp(options?: NodeOptions): TUnsafe<string> {
  return node('String', { type: 'string', format: 'date-time' }, options) as TUnsafe<string>;
}

export function flag(options?: NodeOptions): TUnsafe<boolean> {
  return node('Boolean', { type: 'boolean' }, options) as TUnsafe<boolean>;
}

export interface NumberOptions extends NodeOptions {
  readonly minimum?: number;
  readonly maximum?: number;
}

export function int32(options?: NumberOptions): TUnsafe<number> {
  return node('Integer', { type: 'integer', format: 'int32' }, options) as TUnsafe<number>;
}

export function int64(options?: NumberOptions): TUnsafe<number> {
  return node('Integer', { type: 'integer', format: 'int64' }, options) as TUnsafe<number>;
}

export function number(options?: NumberOptions): TUnsafe<number> {
  return node('Number', { type: 'number' }, options) as TUnsafe<number>;
}

export interface ListOptions extends NodeOptions {
  readonly minItems?: number;
  readonly maxItems?: number;
  /** Items are told apart by these members, no two alike (`x-kubernetes-list-type: map`). */
  readonly keys?: readonly string[];
  /** No two items alike (`x-kubernetes-list-type: set`). */
  readonly set?: true;
}

export function list<S extends TSchema>(items: S, options: ListOptions = {}): TUnsafe<readonly Static<S>[]> {
  const { keys, set, ...rest } = options;
  return node(
    'Array',
    {
      type: 'array',
      items,
      ...(keys ? { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys } : {}),
      ...(set ? { 'x-kubernetes-list-type': 'set' } : {}),
    },
    rest,
  ) as TUnsafe<readonly Static<S>[]>;
}

export interface MapOptions extends NodeOptions {
  readonly minProperties?: number;
  readonly maxProperties?: number;
}

/** Any member names, all values alike. */
export function map<S extends TSchema>(values: S, options?: MapOptions): TUnsafe<Readonly<Record<string, Static<S>>>> {
  return node('Object', { type: 'object', additionalProperties: values }, options) as TUnsafe<
    Readonly<Record<string, Static<S>>>
  >;
}

/** An amount as Kubernetes writes it: `250m`, `4Gi`, `2`. A number counts as its decimal text. */
export type Quantity = string | number;

const quantityPattern =
  '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$';

export function quantity(options?: NodeOptions): TUnsafe<Quantity> {
  return node('Unsafe', { 'x-kubernetes-int-or-string': true, pattern: quantityPattern }, options) as TUnsafe<Quantity>;
}

/** An object whose members nobody here reads; kept so that a gate can see and refuse it. */
export function open(options?: NodeOptions): TUnsafe<JsonObject> {
  return node('Object', { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }, options) as TUnsafe<JsonObject>;
}

/** Any JSON, `null` included. */
export function anything(options?: NodeOptions): TUnsafe<Json> {
  return node('Any', { 'x-kubernetes-preserve-unknown-fields': true, nullable: true }, options) as TUnsafe<Json>;
}

/** The member may be absent or present for ever, and never changes. For an optional member. */
export function unchanging(member: string, says: string, onlyIf?: string): CelRule {
  const same = `has(self.${member}) == has(oldSelf.${member}) && (!has(self.${member}) || self.${member} == oldSelf.${member})`;
  return { rule: onlyIf ? `!(${onlyIf}) || (${same})` : same, message: says, fieldPath: `.${member}` };
}
