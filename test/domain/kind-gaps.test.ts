import { describe, expect, test } from '@jest/globals';
import { crd, kinds } from '../../src/api/index.js';
import { kindGaps } from '../../src/domain/kind-gaps.js';
import { valueAt } from '../../src/lib/json.js';
import type { JsonObject } from '../../src/lib/json.js';

const properties = (members: JsonObject, rest: JsonObject = {}): JsonObject => ({ type: 'object', properties: members, ...rest });
const text: JsonObject = { type: 'string' };

test.each(kinds.map((kind) => [kind.kind, kind] as const))('%s has no gap to itself', (name, kind) => {
  const schema = valueAt(crd(kind), ['spec', 'versions', '0', 'schema', 'openAPIV3Schema']);
  expect(kindGaps(name, schema, schema)).toEqual([]);
  expect(kindGaps(name, schema, undefined)).toEqual([`${name} is not served`]);
});

describe('a gap is', () => {
  test.each<[string, JsonObject, JsonObject, readonly string[]]>([
    ['a field that is not served', properties({ a: text }), properties({}), ['X.a is not served']],
    [
      'one in a list',
      { type: 'array', items: properties({ a: text }) },
      { type: 'array', items: properties({}) },
      ['X[].a is not served'],
    ],
    [
      'another type',
      properties({ a: text }),
      properties({ a: { type: 'integer' } }),
      ['X.a is served as integer, needed: string'],
    ],
    ['a value that would be refused', { enum: ['A', 'B'] }, { enum: ['A'] }, ['X is served without the values B']],
    ['a field that is demanded', properties({}), properties({ b: text }, { required: ['b'] }), ['X.b is demanded']],
    ['a tighter bound', { ...text, maxLength: 10 }, { ...text, maxLength: 5 }, ['X is served with maxLength 5, needed: 10']],
    ['a bound where none is needed', text, { ...text, maxLength: 5 }, ['X is served with maxLength 5, needed: Infinity']],
  ])('%s', (_, needed, served, gaps) => {
    expect(kindGaps('X', needed, served)).toEqual(gaps);
  });
});

describe('no gap is', () => {
  test.each<[string, JsonObject, JsonObject]>([
    ['a field more', properties({ a: text }), properties({ a: text, b: text })],
    ['a value more', { enum: ['A'] }, { enum: ['A', 'B'] }],
    ['a wider bound', { ...text, maxLength: 5 }, { ...text, maxLength: 10 }],
    ['a field that is no longer demanded', properties({ a: text }, { required: ['a'] }), properties({ a: text })],
    ['any content', properties({ a: text }), { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }],
    ['a map of such fields', properties({ a: text }), { type: 'object', additionalProperties: text }],
    ['what the server says of metadata', properties({ metadata: { type: 'object' } }), properties({})],
  ])('%s', (_, needed, served) => {
    expect(kindGaps('X', needed, served)).toEqual([]);
  });
});
