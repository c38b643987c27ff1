import { fieldPath, isObject } from '../lib/json.js';
import type { Json, Path } from '../lib/json.js';
import { nearest } from '../lib/nearest.js';
import { celValue, evaluate, isTransition } from './cel.js';
import { defaulted } from './defaults.js';
import type { Kind } from './kind.js';
import { hasType, limits, quotesHint, typeText, words } from './limits.js';
import { memberNode, structural } from './structural.js';
import type { StructuralNode } from './structural.js';

export { withDefaults } from './defaults.js';

/** One thing that is wrong with an object. */
export interface Violation {
  /** In kubectl's spelling: `spec.runtime.image`, `spec.env[0].name`. A missing or an unknown member is named itself. Empty: the whole object. */
  readonly field: string;
  /** What stands there; `undefined` where nothing does. */
  readonly found: unknown;
  /** What may stand there, or the message of the rule. */
  readonly allowed: string;
  /** `type`, `required`, `unknown-field`, `enum`, `pattern`, `format`, `minimum` …, `duplicate`, or `cel:<field of the rule>`. */
  readonly rule: string;
}

/**
 * Everything that the API server would find wrong with a new object, and every member that it would silently drop.
 *
 * Works on the object with defaults applied, as the server does. Rules about transitions are not asked.
 * @returns nothing when the object is valid; otherwise each problem once, in the order of the schema
 */
export function validate(kind: Kind<unknown>, object: unknown): readonly Violation[] {
  return check(kind, object, undefined);
}

/** What is wrong with a value by a schema of another API. Nothing is defaulted first. */
export function validateNode(node: StructuralNode, value: unknown): readonly Violation[] {
  const found: Violation[] = [];
  visit(node, value as Json, undefined, [], (path, at, allowed, rule) =>
    found.push({ field: fieldPath(path), found: at, allowed, rule }),
  );
  return found;
}

/** {@link validate} of `next`, and the rules about the transition from the stored object `previous`. */
export function validateUpdate(kind: Kind<unknown>, previous: unknown, next: unknown): readonly Violation[] {
  return check(kind, next, previous);
}

type Members = Readonly<Record<string, Json | undefined>>;
type Report = (path: Path, found: unknown, allowed: string, rule: string) => void;

/**
 * Interprets the schema. A validator compiled from it would need longer to compile than a command has for its whole start, and would leave
 * exact paths, quantities, list keys and the rules to us all the same.
 */
function check(kind: Kind<unknown>, object: unknown, previous: unknown): readonly Violation[] {
  const found: Violation[] = [];
  const report: Report = (path, value, allowed, rule) => found.push({ field: fieldPath(path), found: value, allowed, rule });
  const root = structural(kind.schema);
  visit(
    root,
    defaulted(root, object as Json),
    previous === undefined ? undefined : defaulted(root, previous as Json),
    [],
    report,
  );
  return found;
}

/** Reports what is wrong at a node and below it. */
function visit(node: StructuralNode, value: Json | undefined, previous: Json | undefined, path: Path, outer: Report): void {
  if (value === null && node.nullable) return;
  if (!hasType(node, value)) {
    outer(path, value, typeText(node) + quotesHint(node, value), 'type');
    return;
  }
  let clean = true;
  const report: Report = (...problem) => {
    clean = false;
    outer(...problem);
  };
  for (const { rule, allowed } of limits(node, value)) report(path, value, allowed, rule);
  if (Array.isArray(value)) visitItems(node, value as readonly Json[], previous, path, report);
  else if (isObject(value)) visitMembers(node, value, previous, path, report);
  askRules(node, value, previous, path, clean, outer);
}

function visitMembers(node: StructuralNode, value: Members, previous: Json | undefined, path: Path, report: Report): void {
  const older = isObject(previous) ? previous : {};
  const known = Object.keys(node.properties ?? {});
  for (const name of node.required ?? []) {
    const at = memberNode(node, name);
    if (!Object.hasOwn(value, name)) report([...path, name], undefined, at ? typeText(at) : 'a value', 'required');
  }
  for (const name of [
    ...known.filter((one) => Object.hasOwn(value, one)),
    ...Object.keys(value).filter((one) => !known.includes(one)),
  ]) {
    const at = memberNode(node, name);
    if (at) visit(at, value[name], Object.hasOwn(older, name) ? older[name] : undefined, [...path, name], report);
    else if (!node['x-kubernetes-preserve-unknown-fields']) {
      report([...path, name], value[name], unknownText(name, path, known), 'unknown-field');
    }
  }
}

function unknownText(name: string, path: Path, known: readonly string[]): string {
  const near = nearest(name, known);
  const whole = path.length > 0 ? fieldPath(path) : 'the object';
  return `no such field${near === undefined ? '' : ` (did you mean ${near}?)`}; ${whole} has ${words(known, 'and')}`;
}

function visitItems(node: StructuralNode, value: readonly Json[], previous: Json | undefined, path: Path, report: Report): void {
  const { items, 'x-kubernetes-list-type': listType, 'x-kubernetes-list-map-keys': keys = [] } = node;
  const identity = (item: Json | undefined) =>
    canonicalText(listType === 'map' && isObject(item) ? keys.map((name) => item[name] ?? null) : (item ?? null));
  // Only items with keys can be recognised in the older list; the API server compares no others.
  const older = listType === 'map' && Array.isArray(previous) ? (previous as readonly Json[]) : [];
  const olderByIdentity = new Map([...older].reverse().map((item) => [identity(item), item]));
  const seen = new Set<string>();
  value.forEach((item, index) => {
    const own = listType === undefined ? '' : identity(item);
    if (items) visit(items, item, olderByIdentity.get(own), [...path, index], report);
    if (listType === undefined) return;
    if (seen.has(own))
      report([...path, index], item, listType === 'map' ? `one item for each ${keys.join(', ')}` : 'each item once', 'duplicate');
    seen.add(own);
  });
}

/** One text for equal values, whatever the order of their members. */
function canonicalText(value: Json): string {
  return JSON.stringify(value, (_, member: Json) =>
    isObject(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))) : member,
  );
}

/** @param clean - nothing is wrong at the node or below it so far */
function askRules(
  node: StructuralNode,
  value: Json | undefined,
  previous: Json | undefined,
  path: Path,
  clean: boolean,
  report: Report,
): void {
  const rules = (node['x-kubernetes-validations'] ?? []).filter(({ rule }) => previous !== undefined || !isTransition(rule));
  if (rules.length === 0) return;
  const self = celValue(node, value);
  const oldSelf = celValue(node, previous);
  for (const { rule, message, fieldPath: blamed } of rules) {
    const verdict = evaluate(rule, self, oldSelf);
    // A rule cannot be asked over members that are missing or of the wrong type; those are reported already.
    if (verdict === true || (verdict !== false && !clean)) continue;
    const member = blamed?.slice(1);
    const at = member === undefined ? path : [...path, member];
    const standing = member !== undefined && isObject(value) ? value[member] : value;
    const allowed = verdict === false ? message : `${message} (the rule could not be evaluated: ${verdict.error})`;
    report(at, standing, allowed, `cel:${fieldPath(at.filter((step) => typeof step === 'string'))}`);
  }
}
