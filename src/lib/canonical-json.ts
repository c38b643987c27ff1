/**
 * Canonical JSON: the one text of a value that every digest of the contract is taken over.
 *
 * No white space; keys sorted by their UTF-8 bytes; numbers as plain decimals without exponent and without zeros that
 * say nothing; strings escaped the way Go's encoding/json does with HTML escaping on, all else raw UTF-8.
 * Source: workload.md §2.3, corrections.md item 20.
 */
import { isUtf8 as isUtf8Bytes } from 'node:buffer';

import { CodedError } from './errors.js';
import { isPlainObject, pointer } from './json.js';
import type { Json, JsonObject } from './json.js';
import { isBlank } from './text.js';

/** Why a text or value has no canonical form. The last two can only befall values, the others are the contract's. */
export type CanonicalJsonCode =
  | 'empty'
  | 'too-large'
  | 'invalid-utf8'
  | 'depth'
  | 'items'
  | 'duplicate-key'
  | 'trailing-data'
  | 'number-exponent'
  | 'number-length'
  | 'syntax'
  | 'number-unsafe'
  | 'not-json';

/** Never quotes the text: it may hold credentials. */
export class CanonicalJsonError extends CodedError<CanonicalJsonCode> {}

/** Bounds of what is canonicalised. Bytes count on the way in: escaping may make the canonical text longer. */
const limits = {
  bytes: 2 * 1024 * 1024,
  /** Nesting of a value: the root has depth 0. */
  depth: 64,
  /** Values, containers included, keys not. */
  items: 100_000,
  /** Digits of a number's plain form, and magnitude of a written exponent. */
  numberLength: 8192,
} as const;

/**
 * The canonical form of one JSON text. Numbers never pass through a JavaScript number, so every digit survives.
 *
 * `omit` names members (RFC 6901 pointers of objects inside objects) that are checked like all others and then left out.
 * Throws {@link CanonicalJsonError}: for the whole text `empty`, `too-large`, `invalid-utf8`, then whichever error comes
 * first in the stream.
 */
export function canonicalizeText(input: Uint8Array | string, omit?: ReadonlySet<string>): string {
  const text = checkedText(input);
  let at = 0;
  let items = 0;

  const fail = (code: CanonicalJsonCode, allowed: string): never => {
    throw new CanonicalJsonError(code, { at: `JSON text, character ${at}`, allowed });
  };

  function skipSpace(): string | undefined {
    for (;;) {
      const unit = text[at];
      if (unit !== ' ' && unit !== '\n' && unit !== '\r' && unit !== '\t') return unit;
      at++;
    }
  }

  function expect(token: string): void {
    if (skipSpace() !== token) fail('syntax', `\`${token}\``);
    at++;
  }

  /** One value. The separator before it is read here, because the limits come first. */
  function value(depth: number, separator: ',' | ':' | undefined, path: string | undefined): string {
    if (depth > limits.depth) fail('depth', `at most ${limits.depth} levels`);
    if (++items > limits.items) fail('items', `at most ${limits.items} values`);
    if (separator !== undefined) expect(separator);
    const first = skipSpace();
    if (first === '{') return object(depth, path);
    if (first === '[') return array(depth);
    if (first === '"') return quoted(string());
    for (const literal of ['true', 'false', 'null']) {
      if (text.startsWith(literal, at)) {
        at += literal.length;
        return literal;
      }
    }
    return number();
  }

  function array(depth: number): string {
    at++;
    const parts: string[] = [];
    for (;;) {
      const next = skipSpace();
      if (next === ']') break;
      if (next === undefined || next === '}') fail('syntax', '`]`');
      parts.push(value(depth + 1, parts.length > 0 ? ',' : undefined, undefined));
    }
    at++;
    return `[${parts.join(',')}]`;
  }

  function object(depth: number, path: string | undefined): string {
    at++;
    const members = new Map<string, string>();
    for (;;) {
      const next = skipSpace();
      if (next === '}') break;
      if (next === undefined || next === ']') fail('syntax', '`}`');
      if (members.size > 0) expect(',');
      if (skipSpace() !== '"') fail('syntax', 'a member name in double quotes');
      const name = wellFormed(string());
      if (members.has(name)) fail('duplicate-key', 'each member name once');
      const step = path === undefined ? undefined : path + pointer([name]);
      members.set(name, value(depth + 1, ':', step));
    }
    at++;
    const kept = [...members.keys()].filter((name) => path === undefined || !omit?.has(path + pointer([name])));
    return `{${sortedByUtf8(kept)
      .map((name) => `${quoted(name)}:${members.get(name) ?? ''}`)
      .join(',')}}`;
  }

  function string(): string {
    at++;
    let decoded = '';
    for (;;) {
      rawRun.lastIndex = at;
      const run = rawRun.exec(text)?.[0] ?? '';
      decoded += run;
      at += run.length;
      if (text[at] === '"') break;
      escape.lastIndex = at;
      const found = escape.exec(text);
      if (!found) return fail('syntax', 'a string of characters from U+0020 on and escapes, closed by a quote');
      decoded += found[1] === undefined ? (shortEscapes.get(found[0]) ?? '') : String.fromCharCode(parseInt(found[1], 16));
      at += found[0].length;
    }
    at++;
    return decoded;
  }

  function number(): string {
    numeral.lastIndex = at;
    const found = numeral.exec(text);
    if (!found) return fail('syntax', 'a JSON value');
    const [literal, sign = '', whole = '', fraction, exponent] = found;
    const next = text[at + literal.length];
    const isCut = exponent === undefined && (next === 'e' || next === 'E' || (next === '.' && fraction === undefined));
    if (isCut) fail('syntax', 'digits after the point or the exponent sign');
    const shift = Number(exponent ?? 0);
    if (Math.abs(shift) > limits.numberLength)
      fail('number-exponent', `an exponent from -${limits.numberLength} to ${limits.numberLength}`);
    const decimal = plainDecimal(sign, whole, fraction ?? '', shift);
    if (decimal === undefined) return fail('number-length', `at most ${limits.numberLength} digits`);
    at += literal.length;
    return decimal;
  }

  const canonical = value(0, undefined, omit && omit.size > 0 ? '' : undefined);
  if (skipSpace() !== undefined) fail('trailing-data', 'one value');
  return canonical;
}

/**
 * The canonical form of a value. Members that are `undefined` are absent.
 *
 * Throws {@link CanonicalJsonError} like {@link canonicalizeText} for depth, items, size (of the canonical text) and
 * keys that become equal (lone surrogates all turn into U+FFFD), and besides `number-unsafe` for NaN, infinities and
 * integers beyond 2^53, whose digits cannot be trusted, and `not-json` for anything JSON has no form for.
 */
export function canonicalJson(value: Json): string {
  const state = { items: 0, path: [] as (string | number)[] };
  const text = valueText(value, state);
  if (text.length * 3 > limits.bytes && Buffer.byteLength(text) > limits.bytes) throw tooLarge();
  return text;
}

interface Walk {
  items: number;
  readonly path: (string | number)[];
}

function valueText(value: Json, walk: Walk): string {
  if (walk.path.length > limits.depth) throw refused(walk, 'depth', `at most ${limits.depth} levels`);
  if (++walk.items > limits.items) throw refused(walk, 'items', `at most ${limits.items} values`);
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'number') return numberText(value, walk);
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  if (value === null) return 'null';
  if (Array.isArray(value)) return arrayText(value, walk);
  if (isPlainObject(value)) return objectText(value, walk);
  throw refused(walk, 'not-json', 'null, boolean, number, string, array or plain object');
}

function arrayText(value: readonly Json[], walk: Walk): string {
  let text = '[';
  for (let i = 0; i < value.length; i++) {
    walk.path.push(i);
    // A hole reads as undefined, which is refused like any other value without a JSON form.
    text += (i > 0 ? ',' : '') + valueText(value[i] as Json, walk);
    walk.path.pop();
  }
  return `${text}]`;
}

function objectText(value: JsonObject, walk: Walk): string {
  const given = Object.keys(value);
  const sources = given.some(hasSurrogate) ? new Map(given.map((name) => [wellFormed(name), name])) : undefined;
  if (sources && sources.size < given.length)
    throw refused(walk, 'duplicate-key', 'names that differ once lone surrogates are replaced');
  let text = '{';
  for (const name of sources ? sortedByUtf8([...sources.keys()]) : given.sort()) {
    const source = sources?.get(name) ?? name;
    const member = value[source];
    if (member === undefined) continue;
    walk.path.push(source);
    text += `${text === '{' ? '' : ','}${quoted(name)}:${valueText(member, walk)}`;
    walk.path.pop();
  }
  return `${text}}`;
}

function numberText(value: number, walk: Walk): string {
  if (Number.isSafeInteger(value)) return value === 0 ? '0' : String(value);
  if (!Number.isFinite(value) || Number.isInteger(value))
    throw refused(walk, 'number-unsafe', 'a fraction, or an integer of at most 2^53 - 1');
  const [mantissa = '', exponent = '0'] = String(value).split('e');
  if (exponent === '0') return mantissa;
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  // A double's exponent has at most three digits, so this never grows too long.
  return plainDecimal(value < 0 ? '-' : '', whole, fraction, Number(exponent)) ?? mantissa;
}

function refused(walk: Walk, code: CanonicalJsonCode, allowed: string): CanonicalJsonError {
  return new CanonicalJsonError(code, {
    at: `JSON value at ${pointer(walk.path.slice(0, limits.depth)) || 'the root'}`,
    allowed,
  });
}

function tooLarge(): CanonicalJsonError {
  return new CanonicalJsonError('too-large', { at: 'JSON text', allowed: `at most ${limits.bytes} bytes` });
}

/** The text of the input once its size and encoding are right. A byte order mark stays, and is a syntax error later. */
function checkedText(input: Uint8Array | string): string {
  const size = typeof input === 'string' ? Buffer.byteLength(input) : input.byteLength;
  const text = typeof input === 'string' ? input : utf8.decode(input);
  if (isBlank(text)) throw new CanonicalJsonError('empty', { at: 'JSON text', allowed: 'one value' });
  if (size > limits.bytes) throw tooLarge();
  const isUtf8 = typeof input === 'string' ? !hasLoneSurrogate(input) : isUtf8Bytes(input);
  if (!isUtf8) throw new CanonicalJsonError('invalid-utf8', { at: 'JSON text', allowed: 'UTF-8' });
  return text;
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const rawRun = /[ !#-[\]-\uffff]*/y;
const escape = /\\(?:["\\/bfnrt]|u([0-9a-fA-F]{4}))/y;
const shortEscapes = new Map([
  ['\\"', '"'],
  ['\\\\', '\\'],
  ['\\/', '/'],
  ['\\b', '\b'],
  ['\\f', '\f'],
  ['\\n', '\n'],
  ['\\r', '\r'],
  ['\\t', '\t'],
]);
const numeral = /(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?/y;

/** `whole.fraction × 10^exponent` without an exponent; `undefined` if that is too long. */
function plainDecimal(sign: string, whole: string, fraction: string, exponent: number): string | undefined {
  const all = whole + fraction;
  const digits = all.replace(/^0+/, '');
  if (digits === '') return '0';
  if (digits.length > limits.numberLength) return undefined;
  const point = whole.length + exponent - (all.length - digits.length);
  const length = point <= 0 ? digits.length - point + 2 : Math.max(point, digits.length);
  if (length > limits.numberLength) return undefined;
  if (point >= digits.length) return sign + digits.padEnd(point, '0');
  const [left, right] = point > 0 ? [digits.slice(0, point), digits.slice(point)] : ['0', '0'.repeat(-point) + digits];
  const shown = right.replace(/0+$/, '');
  return sign + left + (shown && `.${shown}`);
}

/** Anything but `"`, `\`, `<`, `>`, `&`, control characters, U+2028, U+2029 and surrogates. */
const plain = /^[ !#-%'-;=?-[\]-\u2027\u202a-\ud7ff\ue000-\uffff]*$/;
const special = /[^ !#-%'-;=?-[\]-\u2027\u202a-\uffff]/g;
const named = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

function quoted(text: string): string {
  if (plain.test(text)) return `"${text}"`;
  const escaped = wellFormed(text).replace(
    special,
    (unit) => named.get(unit) ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `"${escaped}"`;
}

const loneSurrogate = /\p{Surrogate}/u;
const loneSurrogates = /\p{Surrogate}/gu;

function hasLoneSurrogate(text: string): boolean {
  return loneSurrogate.test(text);
}

function wellFormed(text: string): string {
  return text.replace(loneSurrogates, '\ufffd');
}

function hasSurrogate(text: string): boolean {
  return /[\ud800-\udfff]/.test(text);
}

/** Sorted by UTF-8 bytes, which is the order of code points; UTF-16 units differ for characters beyond U+FFFF. */
function sortedByUtf8(names: readonly string[]): string[] {
  return [...names].sort((a, b) => {
    const shorter = Math.min(a.length, b.length);
    for (let i = 0; i < shorter; i++) {
      const x = a.charCodeAt(i);
      const y = b.charCodeAt(i);
      if (x !== y) return codePointRank(x) - codePointRank(y);
    }
    return a.length - b.length;
  });
}

/** Moves surrogates behind U+FFFF. */
function codePointRank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
