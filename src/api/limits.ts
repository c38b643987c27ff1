/** What a single node demands of a single value, and how that is said. */
import { isObject } from '../lib/json.js';
import type { Json } from '../lib/json.js';
import { patterns } from './meta.js';
import type { StructuralNode } from './structural.js';

/** Whether a value is of the type of its node; numbers that JavaScript cannot hold exactly are not integers. */
export function hasType(node: StructuralNode, value: Json | undefined): boolean {
  if (node['x-kubernetes-int-or-string']) return typeof value === 'string' || Number.isSafeInteger(value);
  switch (node.type) {
    case undefined:
      return value !== undefined;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'integer':
      return Number.isSafeInteger(value);
    case 'number':
      return typeof value === 'number' && Number.isFinite(value);
    default:
      return typeof value === node.type;
  }
}

/** What may stand at a node, for a person. */
export function typeText(node: StructuralNode): string {
  if (node['x-kubernetes-int-or-string'])
    return node.pattern === undefined ? 'an integer or text' : 'a quantity such as 250m, 4Gi or 2';
  switch (node.type) {
    case undefined:
      return 'a value';
    case 'array':
      return 'a list';
    case 'object':
      return 'an object';
    case 'boolean':
      return 'true or false';
    case 'integer':
      return rangeText(node, 'an integer');
    case 'number':
      return rangeText(node, 'a number');
    case 'string':
      return textText(node);
  }
}

/**
 * How a number becomes the text that is wanted. Without quotes YAML reads `1.5`, `0123` and `yes` as something else; kubectl and the API
 * server refuse the same of a CRD, where a quantity is an integer or text. Nothing where quotes would not help: `timeout: 15` lacks a unit.
 */
export function quotesHint(node: StructuralNode, value: Json | undefined): string {
  const isText = node['x-kubernetes-int-or-string'] ?? node.type === 'string';
  const helps = isText && typeof value === 'number' && textLimits(node, String(value)).next().done === true;
  return helps ? `; put ${value} in quotes` : '';
}

function textText(node: StructuralNode): string {
  if (node.enum) return words(node.enum, 'or');
  if (node.format === 'date-time') return 'a time as RFC 3339 has it, such as 2026-01-31T12:00:00Z';
  const says = node.pattern === undefined ? undefined : patternText(node.pattern);
  const most = node.maxLength === undefined ? '' : `, at most ${node.maxLength} characters`;
  return `${says ?? (node.minLength ? 'text that is not empty' : 'text')}${most}`;
}

function rangeText({ minimum, maximum }: StructuralNode, what: string): string {
  if (minimum !== undefined && maximum !== undefined)
    return minimum === maximum ? `the number ${minimum}` : `${what} from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return `${what}, at least ${minimum}`;
  return maximum === undefined ? what : `${what}, at most ${maximum}`;
}

const said = new Map<string, string>(Object.values(patterns).map(({ pattern, says }) => [pattern, says]));

function patternText(pattern: string): string {
  return said.get(pattern) ?? `text that matches ${pattern}`;
}

/** A list in prose. */
export function words(all: readonly string[], last: 'and' | 'or'): string {
  return all.length < 2 ? all.join('') : `${all.slice(0, -1).join(', ')} ${last} ${all.at(-1) ?? ''}`;
}

const expressions = new Map<string, RegExp>();

function matches(pattern: string, text: string): boolean {
  let expression = expressions.get(pattern);
  if (!expression) expressions.set(pattern, (expression = new RegExp(pattern, 'u')));
  return expression.test(text);
}

const rfc3339 = /^\d{4}-(0[1-9]|1[0-2])-(\d{2})T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/i;

/** RFC 3339, with a day that the month has. */
export function isTimestamp(text: string): boolean {
  if (!rfc3339.test(text)) return false;
  const [year, month, day] = [text.slice(0, 4), text.slice(5, 7), text.slice(8, 10)].map(Number) as [number, number, number];
  return day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

const ranges = { int32: [-(2 ** 31), 2 ** 31 - 1], int64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER] } as const;

/** The limits that a value of the right type breaks; at most one about its text, and one about its size. */
export function* limits(
  node: StructuralNode,
  value: Json | undefined,
): Generator<{ readonly rule: string; readonly allowed: string }> {
  if (typeof value === 'string') yield* textLimits(node, value);
  else if (typeof value === 'number') yield* numberLimits(node, value);
  else if (Array.isArray(value)) yield* sizeLimits(value.length, node.minItems, node.maxItems, 'Items', 'item');
  else if (isObject(value))
    yield* sizeLimits(Object.keys(value).length, node.minProperties, node.maxProperties, 'Properties', 'member');
}

function* textLimits(node: StructuralNode, value: string) {
  const length = Array.from(value).length;
  if (node.enum && !node.enum.includes(value)) yield { rule: 'enum', allowed: words(node.enum, 'or') };
  else if (node.minLength !== undefined && length < node.minLength) yield { rule: 'minLength', allowed: textText(node) };
  else if (node.maxLength !== undefined && length > node.maxLength) yield { rule: 'maxLength', allowed: textText(node) };
  else if (node['x-kubernetes-int-or-string']) {
    if (node.pattern !== undefined && !matches(node.pattern, value)) yield { rule: 'pattern', allowed: typeText(node) };
  } else if (node.pattern !== undefined && !matches(node.pattern, value)) yield { rule: 'pattern', allowed: textText(node) };
  else if (node.format === 'date-time' && !isTimestamp(value)) yield { rule: 'format', allowed: textText(node) };
}

function* numberLimits(node: StructuralNode, value: number) {
  const [least, most] = node.format === 'int32' || node.format === 'int64' ? ranges[node.format] : [-Infinity, Infinity];
  if (node.minimum !== undefined && value < node.minimum) yield { rule: 'minimum', allowed: typeText(node) };
  else if (node.maximum !== undefined && value > node.maximum) yield { rule: 'maximum', allowed: typeText(node) };
  else if (value < least || value > most) yield { rule: 'format', allowed: `an integer from ${least} to ${most}` };
}

function* sizeLimits(size: number, least: number | undefined, most: number | undefined, keyword: string, what: string) {
  if (least !== undefined && size < least) yield { rule: `min${keyword}`, allowed: `at least ${count(least, what)}` };
  if (most !== undefined && size > most) yield { rule: `max${keyword}`, allowed: `at most ${count(most, what)}` };
}

function count(size: number, what: string): string {
  return `${size} ${what}${size === 1 ? '' : 's'}`;
}
