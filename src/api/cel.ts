import { Environment } from '@marcbachmann/cel-js';
import type { ParseResult } from '@marcbachmann/cel-js';

import { isObject } from '../lib/json.js';
import type { Json } from '../lib/json.js';
import { memberNode } from './structural.js';
import type { StructuralNode } from './structural.js';

let environment: Environment | undefined;
const compiled = new Map<string, ParseResult>();

function compile(rule: string): ParseResult {
  let program = compiled.get(rule);
  if (!program) {
    environment ??= new Environment({ homogeneousAggregateLiterals: false })
      .registerVariable('self', 'dyn')
      .registerVariable('oldSelf', 'dyn');
    program = environment.parse(rule);
    compiled.set(rule, program);
  }
  return program;
}

/** Whether a rule speaks about a transition. Such a rule is asked only where the node existed before. */
export function isTransition(rule: string): boolean {
  return /\boldSelf\b/.test(rule);
}

/** What a rule says of a value: true, false, or why it could not be asked. */
export type Verdict = boolean | { readonly error: string };

/** Asks one rule, already on the values that {@link celValue} makes. Never throws. */
export function evaluate(rule: string, self: unknown, oldSelf?: unknown): Verdict {
  try {
    const verdict: unknown = compile(rule)({ self, oldSelf });
    return typeof verdict === 'boolean' ? verdict : { error: 'the rule is not a yes-or-no question' };
  } catch (error) {
    return { error: error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : String(error) };
  }
}

/**
 * A JSON value as CEL sees it through its schema: integers are `int` (BigInt), other numbers `double`, objects maps. Members that the API server
 * drops are not seen.
 */
export function celValue(node: StructuralNode | undefined, value: Json | undefined): unknown {
  if (typeof value === 'number') return node?.type !== 'number' && Number.isInteger(value) ? BigInt(value) : value;
  // `from`, not `map`: the evaluator knows arrays by their constructor, and those of another realm have another one.
  if (Array.isArray(value)) return Array.from(value as readonly Json[], (item) => celValue(node?.items, item));
  if (!isObject(value)) return value;
  const open = !node || node['x-kubernetes-preserve-unknown-fields'];
  const seen = new Map<string, unknown>();
  for (const [name, member] of Object.entries(value)) {
    const at = node && memberNode(node, name);
    if (member !== undefined && (at || open)) seen.set(name, celValue(at, member));
  }
  return seen;
}
