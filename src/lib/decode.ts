/**
 * Strict readers of messages: a member that nobody knows, a missing one or one of another type is an error that names its path.
 *
 * A reader returns what it was given, so that texts of which digests are taken survive unchanged.
 */
import { canonicalizeText } from './canonical-json.js';
import { CodedError } from './errors.js';
import type { Finding } from './errors.js';
import { fieldPath, isObject } from './json.js';
import type { Json, Path } from './json.js';
import { isDigest } from './sha256.js';
import type { Digest } from './sha256.js';
import { isBlank } from './text.js';
import { nanoseconds } from './instant.js';
import type { Instant } from './instant.js';

/** A message is not what the protocol allows. Texts and tokens in it are never quoted. */
export class WireError extends CodedError<'json' | 'message'> {}

export type Decoder<T> = (value: unknown, path: Path) => T;
/** A member that may be absent. */
export interface Optional<T> {
  readonly optional: Decoder<T>;
}
export type Decoded<D> = D extends Decoder<infer T> ? T : never;

type Shape = Readonly<Record<string, Decoder<unknown> | Optional<unknown>>>;
type Absent<S extends Shape> = { [K in keyof S]: S[K] extends Optional<unknown> ? K : never }[keyof S];
type Flat<T> = { readonly [K in keyof T]: T[K] };
export type Shaped<S extends Shape> = Flat<
  { readonly [K in Exclude<keyof S, Absent<S>>]: Decoded<S[K]> } & {
    readonly [K in Absent<S>]?: S[K] extends Optional<infer T> ? T | undefined : never;
  }
>;

export const optional = <T>(decoder: Decoder<T>): Optional<T> => ({ optional: decoder });

function malformed(path: Path, finding: Pick<Finding, 'says' | 'foundKind' | 'allowed'>): never {
  throw new WireError('message', { at: 'message', ...(path.length > 0 ? { field: fieldPath(path) } : {}), ...finding });
}

function wrong(path: Path, value: unknown, allowed: string): never {
  return malformed(path, { foundKind: kindOf(value), allowed });
}

/** What a value is, without its texts: they may be secrets. */
function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'string') return `a text of ${Buffer.byteLength(value)} bytes`;
  if (Array.isArray(value)) return `a list of ${value.length} items`;
  if (isObject(value)) return 'an object';
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : 'null';
}

/** An object of exactly these members. */
export function record<S extends Shape>(shape: S): Decoder<Shaped<S>> {
  const fields = Object.entries(shape);
  const known = new Set(Object.keys(shape));
  return (value, path) => {
    if (!isObject(value)) return wrong(path, value, 'an object');
    for (const name of Object.keys(value)) if (!known.has(name)) malformed([...path, name], { says: 'unknown member' });
    for (const [name, field] of fields) {
      const member = value[name];
      if (typeof field === 'function') field(member, [...path, name]);
      else if (member !== undefined) field.optional(member, [...path, name]);
    }
    return value as Shaped<S>;
  };
}

/** `extra` is asked once the shape is right; its sentence says what is allowed. */
export function checked<T>(decoder: Decoder<T>, extra: (value: T) => string | undefined): Decoder<T> {
  return (value, path) => {
    const decoded = decoder(value, path);
    const problem = extra(decoded);
    return problem === undefined ? decoded : malformed(path, { allowed: problem });
  };
}

/** Text of a length in bytes. @default any length up to 1 MiB, empty included */
export function text(limits: { readonly min?: number; readonly max?: number } = {}): Decoder<string> {
  const { min = 0, max = 1024 * 1024 } = limits;
  return (value, path) => {
    if (typeof value !== 'string') return wrong(path, value, 'a text');
    const size = Buffer.byteLength(value);
    return size >= min && size <= max ? value : wrong(path, value, `a text of ${min} to ${max} bytes`);
  };
}

/** Text that is not only white space, at most `max` bytes. */
export const filledText = (max: number): Decoder<string> =>
  checked(text({ max }), (value) => (isBlank(value) ? 'a text that is not blank' : undefined));

/** Up to 253 visible ASCII characters: ids stand in paths and headers. Source: corrections.md item 15. */
export const identifier: Decoder<string> = (value, path) =>
  typeof value === 'string' && isIdentifier(value)
    ? value
    : wrong(path, value, '1 to 253 visible ASCII characters without spaces');

export const isIdentifier = (value: string): boolean => /^[\x21-\x7e]{1,253}$/.test(value);

export const digest: Decoder<Digest> = (value, path) =>
  isDigest(value) ? value : wrong(path, value, '`sha256:` and 64 lower-case hexadecimal digits');

export const instantText: Decoder<Instant> = (value, path) =>
  typeof value === 'string' && nanoseconds(value) !== undefined ? value : wrong(path, value, 'an RFC 3339 time');

export const flag: Decoder<boolean> = (value, path) => (typeof value === 'boolean' ? value : wrong(path, value, 'true or false'));

export function integer(min: number, max: number = Number.MAX_SAFE_INTEGER): Decoder<number> {
  return (value, path) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max
      ? value
      : wrong(path, value, `a whole number from ${min} to ${max}`);
}

export function oneOf<const T extends string | number>(...choices: readonly T[]): Decoder<T> {
  return (value, path) => {
    const found = choices.find((choice) => choice === value);
    return found ?? wrong(path, value, choices.join(', '));
  };
}

export function list<T>(item: Decoder<T>, limits: { readonly min?: number; readonly max: number }): Decoder<readonly T[]> {
  const { min = 0, max } = limits;
  return (value, path) => {
    if (!Array.isArray(value) || value.length < min || value.length > max)
      return wrong(path, value, `a list of ${min} to ${max} items`);
    value.forEach((entry: unknown, i) => item(entry, [...path, i]));
    return value as readonly T[];
  };
}

/** Members of any name. */
export function map<T>(
  item: Decoder<T>,
  limits: { readonly min?: number; readonly max: number },
): Decoder<Readonly<Record<string, T>>> {
  const { min = 0, max } = limits;
  return (value, path) => {
    if (!isObject(value)) return wrong(path, value, 'an object');
    const names = Object.keys(value);
    if (names.length < min || names.length > max) return wrong(path, value, `${min} to ${max} members`);
    for (const name of names) item(value[name], [...path, name]);
    return value as Readonly<Record<string, T>>;
  };
}

/** Also `null`, which some lists are when they are empty, and which digests tell from an empty one. */
export function nullable<T>(decoder: Decoder<T>): Decoder<T | null> {
  return (value, path) => (value === null ? null : decoder(value, path));
}

export const anyJson: Decoder<Json> = (value, path) =>
  value === undefined ? wrong(path, value, 'a JSON value') : (value as Json);

/** One JSON document without duplicate members, read by `decoder`. Throws {@link WireError}. */
export function decodeText<T>(decoder: Decoder<T>, document: string | Uint8Array): T {
  return decoder(parseDocument(document), []);
}

/** One JSON document; duplicate members, deep nesting, bad UTF-8 and anything after it are refused. Throws {@link WireError}. */
export function parseDocument(document: string | Uint8Array): Json {
  const raw =
    typeof document === 'string' ? document : Buffer.from(document.buffer, document.byteOffset, document.byteLength).toString();
  try {
    canonicalizeText(document);
    return JSON.parse(raw) as Json;
  } catch (cause) {
    throw new WireError('json', { at: 'message', allowed: 'one JSON document in UTF-8 without duplicate members' }, { cause });
  }
}
