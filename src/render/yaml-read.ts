/**
 * Manifests as kubectl reads them: YAML 1.1 with the habits of its Go parser (`yes` and `y` are true, `0o14` is 12,
 * `1:20` and dates are strings). What kubectl takes and then loses is an error here: a member given twice, digits of a
 * large integer, an unknown tag.
 */
import { Composer, isAlias, isMap, isScalar, isSeq, LineCounter, Parser, Scalar } from 'yaml';
import type { Document, ErrorCode, ParsedNode, YAMLMap } from 'yaml';
import { fieldPath, isObject } from '../lib/json.js';
import type { Json, PathStep } from '../lib/json.js';
import { deepest, YamlError } from './yaml.js';
import type { YamlCode } from './yaml.js';

/** Nesting of one document, and values that all aliases of one document may stand for. */
const limits = { depth: deepest, aliased: 10_000 } as const;

/** One document of a file and the line, counted from 1, where its content begins. */
export interface YamlDocument {
  readonly value: Json;
  readonly line: number;
}

/**
 * All documents of a text; empty ones are skipped. `file` is what errors call it.
 *
 * Throws {@link YamlError}; its `at` is `file:line:column`, both counted from 1.
 */
export function readYaml(text: string, file: string): readonly YamlDocument[] {
  return [...yamlDocuments(text, file)];
}

/**
 * The same one by one, so that a large text needs no more memory than its values. What is wrong with a document is thrown at its turn.
 * `onLine` is called with the index of each line while the text is read.
 */
export function* yamlDocuments(
  text: string,
  file: string,
  onLine?: (offset: number) => void,
): Generator<YamlDocument, void, undefined> {
  const lines = new LineCounter();
  const fail: Fail = (code, offset, finding) => {
    const { line, col } = lines.linePos(offset);
    throw new YamlError(code, { at: `${file}:${line}:${col}`, ...finding });
  };
  const hidden = text.search(forbidden);
  for (const { contents, errors } of composed(text, lines, onLine)) {
    const [first] = errors.sort((a, b) => a.pos[0] - b.pos[0]);
    if (first) fail(first.code === 'RESOURCE_EXHAUSTION' ? 'depth' : 'syntax', first.pos[0], problems[first.code] ?? unexpected);
    // What is hidden comes last: the syntax of all documents is read first.
    if (hidden >= 0 || contents === null) continue;
    const value = readDocument(contents, fail);
    if (value !== null) yield { value, line: lines.linePos(contents.range[0]).line };
  }
  if (hidden >= 0)
    fail('syntax', hidden, {
      found: codePoint(text, hidden),
      allowed: 'printable characters; others as escapes in double quotes',
    });
}

/** Failsafe: every scalar stays text, and what plain ones mean is decided here. */
function composed(text: string, lines: LineCounter, onLine?: (offset: number) => void): Iterable<Document.Parsed> {
  const composer = new Composer({
    version: '1.1',
    schema: 'failsafe',
    resolveKnownTags: false,
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
    lineCounter: lines,
  });
  const parser = new Parser((offset) => {
    lines.addNewLine(offset);
    onLine?.(offset);
  });
  return composer.compose(parser.parse(text)) as Iterable<Document.Parsed>;
}

type Fail = (
  code: YamlCode,
  offset: number,
  finding: { readonly field?: string; readonly found?: unknown; readonly allowed: string },
) => never;

/** What kubectl refuses, and what it takes for line ends where other parsers see none. Tab, LF and CR are fine. */
const forbidden = /(?![\t\n\r])[^ -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;

function codePoint(text: string, at: number): string {
  return `U+${(text.codePointAt(at) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

const unexpected = { found: 'something that does not belong here', allowed: 'YAML' };

/** The parser's errors in our words. */
const problems: Partial<Record<ErrorCode, { readonly found: string; readonly allowed: string }>> = {
  ALIAS_PROPS: { found: 'an alias with a tag or anchor', allowed: 'the alias alone' },
  BAD_ALIAS: { found: 'an anchor or alias without a usable name', allowed: 'letters and digits after & or *' },
  BAD_COLLECTION_TYPE: { found: 'a tag of another kind of value', allowed: 'no tag' },
  BAD_DIRECTIVE: { found: 'a directive that is not understood', allowed: 'no line that begins with %' },
  BAD_DQ_ESCAPE: { found: 'an unknown escape', allowed: '\\\\, \\", \\n, \\t, \\xNN, \\uNNNN and the like, or single quotes' },
  BAD_INDENT: { found: 'indentation that fits no level above', allowed: 'the indentation of the neighbouring entries' },
  BAD_PROP_ORDER: { found: 'a tag or anchor before the indicator', allowed: 'it after the indicator' },
  BAD_SCALAR_START: { found: 'a plain string that begins with a reserved character', allowed: 'the string in quotes' },
  BLOCK_AS_IMPLICIT_KEY: {
    found: 'two mappings or a list on one line',
    allowed: 'quotes around a string with a colon, or a new line',
  },
  BLOCK_IN_FLOW: { found: 'block style inside brackets', allowed: 'values separated by commas' },
  KEY_OVER_1024_CHARS: { found: 'a name of more than 1024 characters', allowed: '`? name`, or a shorter one' },
  MISSING_CHAR: { found: 'a missing colon, quote, comma, bracket or space', allowed: 'the missing character' },
  MULTILINE_IMPLICIT_KEY: { found: 'a name that goes over several lines', allowed: 'the name and its colon on one line' },
  MULTIPLE_ANCHORS: { found: 'two anchors', allowed: 'one' },
  MULTIPLE_TAGS: { found: 'two tags', allowed: 'one' },
  RESOURCE_EXHAUSTION: { found: 'more levels than can be read', allowed: `${limits.depth} levels` },
  TAB_AS_INDENT: { found: 'a tab as indentation', allowed: 'spaces' },
  TAG_RESOLVE_FAILED: { found: 'an unknown tag', allowed: 'no tag' },
};

function readDocument(root: ParsedNode, fail: Fail): Json {
  const path: PathStep[] = [];
  const anchors = new Map<string, { readonly value: Json; readonly size: number } | 'open'>();
  let count = 0;
  let aliased = 0;

  const refuse = (code: YamlCode, node: ParsedNode, found: string, allowed: string): never =>
    fail(code, node.range[0], { ...(path.length > 0 ? { field: fieldPath(path) } : {}), found, allowed });

  function read(node: ParsedNode | null): Json {
    count++;
    if (node === null) return null;
    if (path.length > limits.depth) return refuse('depth', node, `more than ${limits.depth} levels`, 'less nesting');
    if (isAlias(node)) return alias(node);
    const { anchor } = node;
    if (anchor === undefined) return content(node);
    const before = count;
    anchors.set(anchor, 'open');
    const value = content(node);
    anchors.set(anchor, { value, size: count - before + 1 });
    return value;
  }

  function alias(node: ParsedNode & { readonly source: string }): Json {
    const target = anchors.get(node.source);
    if (target === undefined)
      return refuse('alias', node, 'an alias without an anchor before it', `an anchor before it; ${quotes}`);
    if (target === 'open') return refuse('alias', node, 'an alias inside its own value', 'values that end');
    aliased += target.size;
    count += target.size;
    if (aliased > limits.aliased)
      return refuse('alias', node, 'aliases that repeat too much', `${limits.aliased} repeated values in a document`);
    return target.value;
  }

  function content(node: ParsedNode): Json {
    if (isMap(node)) return mapping(node);
    if (isSeq(node)) {
      if (node.tag !== undefined && node.tag !== `${core}seq`) return unknownTag(node);
      return node.items.map((item, i) => below(i, () => read(item as ParsedNode | null)));
    }
    return isScalar(node) ? scalar(node) : unknownTag(node);
  }

  function below<T>(step: PathStep, work: () => T): T {
    path.push(step);
    const result = work();
    path.pop();
    return result;
  }

  function mapping(node: YAMLMap.Parsed): Json {
    if (node.tag !== undefined && node.tag !== `${core}map`) return unknownTag(node);
    const own = new Set<string>();
    const members = new Map<string, Json>();
    let hasMerge = false;
    for (const { key, value } of node.items as readonly { readonly key: ParsedNode; readonly value: ParsedNode | null }[]) {
      if (isMergeKey(key)) {
        if (hasMerge) refuse('duplicate-key', key, 'a second <<', 'one << with a list');
        hasMerge = true;
        merge(key, read(value), members, own);
        continue;
      }
      const name = memberName(key);
      below(name, () => {
        if (own.has(name)) refuse('duplicate-key', key, 'the same name a second time', 'each name once');
        own.add(name);
        members.set(name, read(value));
      });
    }
    return Object.fromEntries(members);
  }

  /** kubectl lets `<<` win over members before it, other parsers do not; so such a document has no one meaning. */
  function merge(key: ParsedNode, merged: Json, members: Map<string, Json>, own: ReadonlySet<string>): void {
    const sources = Array.isArray(merged) ? (merged as readonly Json[]) : [merged];
    for (const source of [...sources].reverse()) {
      if (!isObject(source)) return refuse('merge', key, '<< with a value that is no mapping', 'a mapping or a list of mappings');
      for (const [name, value] of Object.entries(source)) {
        if (own.has(name)) refuse('merge', key, `<< after its member ${name}`, '<< as the first member');
        members.set(name, value ?? null);
      }
    }
  }

  function memberName(node: ParsedNode): string {
    const value = read(node);
    if (typeof value === 'string') return value;
    if (typeof value === 'boolean' || (typeof value === 'number' && Number.isInteger(value))) return String(value);
    return refuse(
      'key',
      node,
      value === null ? 'a member without a name' : 'a name that is no string',
      'a string; quotes make it one',
    );
  }

  function scalar(node: Scalar.Parsed): Json {
    const { source, tag } = node;
    if (tag === undefined && node.type !== Scalar.PLAIN) return source;
    if (tag === '!' || tag === `${core}str`) return source;
    const value = plainValue(source);
    if (value === 'unsafe')
      return refuse('number', node, `an integer that would lose digits`, 'at most 2^53 - 1 in size; quotes make it a string');
    if (value === 'not-finite') return refuse('number', node, 'an infinity or not-a-number', 'a number; quotes make it a string');
    const { json } = value;
    if (tag === undefined || typeNames(json).includes(tag)) return json;
    return unknownTag(node);
  }

  function unknownTag(node: ParsedNode): never {
    return refuse('tag', node, 'a tag that this value cannot have', `no tag, or !!str before a string; ${quotes}`);
  }

  return read(root);
}

const core = 'tag:yaml.org,2002:';
/** A string without quotes, which may be a password, becomes a tag or an alias by its first character: neither is repeated. */
const quotes = 'quotes make a string of what begins with ! or *';

function typeNames(json: Json): readonly string[] {
  if (json === null) return [`${core}null`];
  if (typeof json === 'boolean') return [`${core}bool`];
  if (typeof json === 'number') return Number.isInteger(json) ? [`${core}int`, `${core}float`] : [`${core}float`];
  return [];
}

function isMergeKey(node: ParsedNode): boolean {
  return isScalar(node) && node.source === '<<' && node.type === Scalar.PLAIN && node.tag === undefined;
}

const words = new Map<string, Json>(
  [
    [null, '', '~', 'null', 'Null', 'NULL'],
    [true, 'y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'],
    [false, 'n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'],
  ].flatMap(([value, ...spellings]) => spellings.map((spelling) => [String(spelling), value as Json] as const)),
);
const notFinite = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
const integer = /^([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)$/;
const float = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;

/** What an unquoted scalar means to kubectl. */
function plainValue(text: string): { readonly json: Json } | 'unsafe' | 'not-finite' {
  const word = words.get(text);
  if (word !== undefined) return { json: word };
  if (notFinite.test(text)) return 'not-finite';
  if (!/^[-+.0-9]/.test(text)) return { json: text };
  // Underscores are dropped anywhere; in a number that begins with a point only between two digits.
  const digits = text.startsWith('.') ? text.replaceAll(/(?<=[0-9])_(?=[0-9])/g, '') : text.replaceAll('_', '');
  const [, sign, magnitude] = integer.exec(digits) ?? [];
  if (magnitude !== undefined) {
    const octal = /^0[oO]?(?=[0-7])/.test(magnitude) ? magnitude.replace(/^0[oO]?/, '0o') : magnitude;
    const exact = BigInt(octal) * (sign === '-' ? -1n : 1n);
    // Beyond 64 bits only decimals are numbers, and those are floats.
    if (exact >= -(2n ** 63n) && exact < 2n ** (sign === '' ? 64n : 63n)) {
      const number = Number(exact);
      return String(number) === String(exact) ? { json: number } : 'unsafe';
    }
  }
  const number = float.test(digits) ? Number(digits) : NaN;
  return { json: Number.isFinite(number) ? number + 0 : text };
}
