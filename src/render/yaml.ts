/**
 * YAML for review: block style, sorted members, one form for each value, the same bytes on every host.
 *
 * kubectl reads YAML 1.1 with habits of its own (`yes`, `0o14`, `1_000` are no strings). A string stands plain only
 * where it cannot be anything else; every other one is quoted, and whatever a reviewer could not see is escaped.
 */
import { CodedError } from '../lib/errors.js';
import { fieldPath, isPlainObject } from '../lib/json.js';
import type { Json, JsonObject, Path, PathStep } from '../lib/json.js';

/** Nesting of one document that is read or written. */
export const deepest = 500;

/** `not-json` comes from writing, `depth` from both, the others from reading. */
export type YamlCode = 'not-json' | 'syntax' | 'duplicate-key' | 'key' | 'tag' | 'number' | 'alias' | 'merge' | 'depth';

/** A value that cannot be written as YAML that kubectl reads back. See {@link YamlCode}. */
export class YamlError extends CodedError<YamlCode> {}

/** Options of {@link toYaml}. */
export interface YamlOptions {
  /**
   * A remark for the line of a scalar (empty lists and objects included), without `#`.
   * @default - no remarks
   */
  readonly comment?: (path: Path, document: Json) => string | undefined;
}

/**
 * One document, ending in a line feed. Members that are `undefined` are left out; the first members are `apiVersion`,
 * `kind` and `metadata`, all others are sorted by UTF-16 units. Lone surrogates become U+FFFD.
 *
 * Throws {@link YamlError}: `not-json` for NaN, infinities, `undefined` in a list and whatever else JSON has no form for; `depth` for a
 * value that contains itself, or has more than 500 levels.
 */
export function toYaml(document: Json, { comment }: YamlOptions = {}): string {
  const path: PathStep[] = [];
  // Parts joined once are several times cheaper than one growing string.
  const parts: string[] = [];

  const endLine = (): void => {
    const words = comment?.(path, document);
    parts.push(words === undefined ? '\n' : ` # ${escaped(words)}\n`);
  };

  function leaf(text: string, after: After): void {
    if (after !== '') parts.push(' ');
    parts.push(text);
    endLine();
  }

  /** All that follows `after`, up to the end of the last line; `depth` is the indentation of the line it begins in. */
  function value(found: Json | undefined, depth: number, after: After): void {
    if (path.length > deepest) throw tooDeep(path);
    if (typeof found === 'string') {
      const block = after === '' ? undefined : literal(found, indent(depth + 1));
      leaf(block ? block.header : scalar(found), after);
      if (block) parts.push(block.body);
    } else if (found === null || typeof found === 'boolean') {
      leaf(String(found), after);
    } else if (typeof found === 'number') {
      leaf(number(found, path), after);
    } else if (Array.isArray(found)) {
      if (found.length === 0) leaf('[]', after);
      else items(found as readonly Json[], depth + 1, after);
    } else if (isPlainObject(found)) {
      const names = presentNames(found);
      if (names.length === 0) leaf('{}', after);
      else members(found, after === '' ? headFirst(names) : names, depth + 1, after);
    } else {
      throw notJson(path, found);
    }
  }

  function items(list: readonly Json[], depth: number, after: After): void {
    parts.push(opening(after, depth));
    for (let i = 0; i < list.length; i++) {
      if (i > 0) parts.push(indent(depth));
      parts.push('-');
      path.push(i);
      value(list[i], depth, '-');
      path.pop();
    }
  }

  function members(object: JsonObject, names: readonly string[], depth: number, after: After): void {
    parts.push(opening(after, depth));
    for (let i = 0; i < names.length; i++) {
      const name = names[i] ?? '';
      const key = keyText(name);
      if (i > 0) parts.push(indent(depth));
      if (key.length > longestKey) parts.push('? ', key, '\n', indent(depth), ':');
      else parts.push(key, ':');
      path.push(name);
      value(object[name], depth, ':');
      path.pop();
    }
  }

  value(document, -1, '');
  return parts.join('');
}

/** Stands between two documents. */
export const documentSeparator = '---\n';

/** The documents one after the other, `---` between them. */
export function toYamlStream(documents: readonly Json[], options?: YamlOptions): string {
  return documents.map((document) => toYaml(document, options)).join(documentSeparator);
}

/** What stands before a value: nothing, the dash of a list, the colon of a member. */
type After = '' | '-' | ':';

/** A list or object begins beside a dash, but on a line of its own under its key. */
function opening(after: After, depth: number): string {
  if (after === '-') return ' ';
  return after === ':' ? `\n${indent(depth)}` : '';
}

/** Parsers give up on `key:` after 1024 characters; longer ones are written `? key`. */
const longestKey = 1000;

const head = ['apiVersion', 'kind', 'metadata'];

function presentNames(object: JsonObject): string[] {
  const names: string[] = [];
  for (const name of Object.keys(object)) if (object[name] !== undefined) names.push(name);
  return names.sort();
}

function headFirst(names: readonly string[]): readonly string[] {
  return [...head.filter((name) => names.includes(name)), ...names.filter((name) => !head.includes(name))];
}

const indents: string[] = [];

function indent(depth: number): string {
  return (indents[depth] ??= '  '.repeat(depth));
}

function tooDeep(path: Path): YamlError {
  return new YamlError('depth', {
    at: fieldPath(path.slice(0, 8)),
    found: `more than ${deepest} levels`,
    allowed: 'less nesting, and no value that contains itself',
  });
}

function notJson(path: Path, found: unknown): YamlError {
  return new YamlError('not-json', {
    at: fieldPath(path) || 'the document',
    found: typeof found === 'number' ? String(found) : Object.prototype.toString.call(found).slice(8, -1),
    allowed: 'null, boolean, finite number, string, list or plain object',
  });
}

function number(found: number, path: Path): string {
  if (!Number.isFinite(found)) throw notJson(path, found);
  if (found === 0) return '0';
  const text = String(found);
  // YAML 1.1 wants a point in a number with an exponent.
  return text.includes('e') && !text.includes('.') ? text.replace('e', '.0e') : text;
}

const keys = new Map<string, string>();

/** Objects of a kind share their keys, so most of them are looked up. */
function keyText(name: string): string {
  const known = keys.get(name);
  if (known !== undefined) return known;
  const text = scalar(name);
  if (keys.size < 4096) keys.set(name, text);
  return text;
}

/**
 * Begins with a letter or a slash (no number, date, tag, anchor or indicator does), single spaces inside, a colon only
 * before something; or is a quantity.
 */
const plain = /^(?:[A-Za-z/][\w./@+=,;()$%&<>*?!^~-]*(?:[ :][\w./@+=(][\w./@+=,;()$%&<>*?!^~-]*)*|[0-9]+(?:m|[KMGTP]i))$/;
/** Words that some parser takes for a boolean, null or number. */
const word = /^(?:y|n|yes|no|on|off|true|false|null|nil|none|nan|inf|infinity|e[0-9]+)$/i;

function scalar(text: string): string {
  return plain.test(text) && !word.test(text) ? text : `"${escaped(text)}"`;
}

/**
 * Printable without doubt. Not in it: quote, backslash, controls, line and paragraph separators, spaces but U+0020,
 * zero-width and direction marks, byte order mark, tag characters, surrogates, non-characters of the first plane. The
 * list is fixed, so that the bytes do not depend on the Unicode version of the host.
 */
const visible =
  ' !#-[\\]-~\\u00a1-\\u00ac\\u00ae-\\u061b\\u061d-\\u167f\\u1681-\\u180d\\u180f-\\u1fff\\u2010-\\u2027\\u2030-\\u205e' +
  '\\u2070-\\u2fff\\u3001-\\ud7ff\\ue000-\\ufefe\\uff00-\\uffef\\ufffd\\u{10000}-\\u{dffff}\\u{f0000}-\\u{10ffff}';
const hidden = new RegExp(`[^${visible}]`, 'gu');
const named = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

function escaped(text: string): string {
  return text.replace(hidden, (character) => {
    const short = named.get(character);
    if (short !== undefined) return short;
    const code = character.codePointAt(0) ?? 0;
    if (code >= 0xd800 && code < 0xe000) return '\ufffd';
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/** A line that survives as it is in a literal block: visible to its end. */
const literalLine = new RegExp(`^[${visible}"\\\\]*(?<! )$`, 'u');

/**
 * A text of several lines as a literal block, if that is sure to keep it: the first line not empty and not indented (so
 * no indentation indicator is needed), at most one line feed at the end.
 */
function literal(text: string, pad: string): { readonly header: string; readonly body: string } | undefined {
  if (!text.includes('\n')) return undefined;
  const lines = text.split('\n');
  const header = lines.at(-1) === '' ? '|' : '|-';
  if (header === '|') lines.pop();
  const isSafe = /^[^ ]/.test(text) && lines[0] !== '' && lines.at(-1) !== '' && lines.every((line) => literalLine.test(line));
  return isSafe ? { header, body: lines.map((line) => (line === '' ? '\n' : `${pad}${line}\n`)).join('') } : undefined;
}
