import { describe, expect, test } from '@jest/globals';
import { KindGuard, Type } from '@sinclair/typebox';
import type { TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import fc from 'fast-check';

import {
  agentKind,
  kinds,
  runtimePoolClassKind,
  runtimePoolKind,
  taskKind,
  validate,
  withDefaults,
} from '../../src/api/index.js';
import { list, map, object, optional, text, timestamp } from '../../src/api/schema.js';
import type { Static } from '../../src/api/schema.js';
import { structural } from '../../src/api/structural.js';
import type { StructuralNode } from '../../src/api/structural.js';
import { fullAgent, fullClass, fullPool, fullTask } from './samples.js';

describe('a schema', () => {
  const schema = object({ name: text(), note: optional(text()), tags: optional(list(map(timestamp()))) });

  test('is what TypeBox would have made', () => {
    expect(KindGuard.IsObject(schema)).toBe(true);
    expect(KindGuard.IsString(schema.properties.name)).toBe(true);
    expect(KindGuard.IsOptional(schema.properties.note)).toBe(true);
    expect(schema['required']).toEqual(['name']);
  });

  test('has a static type that is read-only', () => {
    const value: Static<typeof schema> = { name: 'a', tags: [{ at: '2026-01-31T12:00:00Z' }] };
    // @ts-expect-error - a member cannot be assigned
    value.name = 'b';
    // @ts-expect-error - nor an item
    (value.tags ?? [])[0] = {};
    expect(value.name).toBe('b');
  });
});

const time = '^\\d{4}-(0[1-9]|1[0-2])-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z$';
const exact = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };

/** A node in TypeBox's own words, so that TypeBox can say what it thinks of a value. */
function inTypeBox(node: StructuralNode): TSchema {
  const {
    properties,
    additionalProperties,
    items,
    enum: words,
    format,
    'x-kubernetes-int-or-string': amount,
    required = [],
    ...limits
  } = node;
  if (amount) return Type.Union([Type.Integer(exact), Type.String({ pattern: limits.pattern })]);
  switch (node.type) {
    case undefined:
      return Type.Any();
    case 'boolean':
      return Type.Boolean();
    case 'number':
      return Type.Number();
    case 'integer':
      return Type.Integer({
        minimum: limits.minimum ?? (format === 'int32' ? -(2 ** 31) : exact.minimum),
        maximum: limits.maximum ?? (format === 'int32' ? 2 ** 31 - 1 : exact.maximum),
      });
    case 'string':
      return words
        ? Type.Union(words.map((word) => Type.Literal(word)))
        : Type.String({ ...limits, ...(format ? { pattern: time } : {}) });
    case 'array':
      return Type.Array(inTypeBox(items ?? {}), limits);
    case 'object': {
      const members = Object.entries(properties ?? {}).map(([name, member]) => {
        const schema = inTypeBox(member);
        return [name, required.includes(name) ? schema : Type.Optional(schema)] as const;
      });
      const others = additionalProperties
        ? inTypeBox(additionalProperties)
        : limits['x-kubernetes-preserve-unknown-fields'] === true;
      return Type.Object(Object.fromEntries(members), { ...limits, additionalProperties: others });
    }
  }
}

const samples = new Map<string, object>([
  [taskKind.kind, fullTask],
  [agentKind.kind, fullAgent],
  [runtimePoolKind.kind, fullPool],
  [runtimePoolClassKind.kind, fullClass],
]);

type Step = string | number;

function places(value: unknown, path: readonly Step[] = []): readonly (readonly Step[])[] {
  const below = Array.isArray(value)
    ? value.flatMap((item, index) => places(item, [...path, index]))
    : typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([name, member]) => places(member, [...path, name]))
      : [];
  return path.length > 0 ? [path, ...below] : below;
}

function put(value: unknown, [step, ...rest]: readonly Step[], what: unknown): unknown {
  if (step === undefined) return what;
  if (Array.isArray(value)) return value.map((item: unknown, index) => (index === step ? put(item, rest, what) : item));
  const members = { ...(value as Record<string, unknown>) };
  members[step] = put(members[step], rest, what);
  return members;
}

const anything = fc.oneof(
  fc.constantFrom(
    '',
    'x',
    'UPPER',
    '1h',
    '250m',
    '2026-01-31T12:00:00Z',
    '2026-13-01T00:00:00Z',
    'https://x',
    '/a',
    true,
    false,
    {},
    [],
    ['x'],
  ),
  fc.integer({ min: -2, max: 5000 }),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -3, max: 3 }),
  fc.string({ maxLength: 70 }),
  fc.jsonValue({ maxDepth: 2 }),
);

describe.each(kinds)('the validation of $kind', (kind) => {
  const sample = samples.get(kind.kind) ?? {};
  const oracle = inTypeBox(structural(kind.schema));

  test('agrees with that of TypeBox on any object', () => {
    const changed = fc
      .tuple(fc.constantFrom(...places(sample)), anything)
      .map(([path, what]) => ({ path: path.join('.'), object: put(sample, path, what) }));
    fc.assert(
      fc.property(changed, ({ object: candidate }) => {
        const ours = validate(kind, candidate).filter(({ rule }) => !rule.startsWith('cel:') && rule !== 'duplicate');
        expect(ours.length === 0).toBe(Value.Check(oracle, withDefaults(kind, candidate)));
      }),
      { numRuns: 200 },
    );
  });
});
