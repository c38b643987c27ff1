import { describe, expect, test } from '@jest/globals';
import { fieldGaps } from '../../src/domain/field-gaps.js';
import type { JsonObject } from '../../src/lib/json.js';

const text: JsonObject = { type: 'string' };
const schema = (spec: JsonObject): JsonObject => ({
  type: 'object',
  properties: { apiVersion: text, kind: text, metadata: { type: 'object' }, spec },
  required: ['apiVersion', 'kind', 'metadata', 'spec'],
});
const object = (spec: JsonObject): Parameters<typeof fieldGaps>[0] => ({
  apiVersion: 'a/v1',
  kind: 'X',
  metadata: { name: 'x' },
  spec,
});
const members = (properties: JsonObject, rest: JsonObject = {}): JsonObject => ({ type: 'object', properties, ...rest });

describe('a gap is', () => {
  test.each<[string, JsonObject, JsonObject, readonly string[]]>([
    ['a field that is not served', { a: '1', b: '2' }, members({ a: text }), ['X.spec.b is not served']],
    [
      'one of an item of a list',
      { l: [{ a: '1' }, { b: '2' }] },
      members({ l: { type: 'array', items: members({ a: text }) } }),
      ['X.spec.l[1].b is not served'],
    ],
    ['one below a field', { o: { p: { q: 1 } } }, members({ o: members({ p: members({}) }) }), ['X.spec.o.p.q is not served']],
    ['one in an object that has no members', { o: { p: 1 } }, members({ o: { type: 'object' } }), ['X.spec.o.p is not served']],
    ['a field with the name of a member of every object', { toString: '1' }, members({}), ['X.spec.toString is not served']],
    [
      'a field that is demanded and not there',
      { a: '1' },
      members({ a: text, n: text }, { required: ['n'] }),
      ['X.spec.n is demanded'],
    ],
  ])('%s', (_, spec, served, gaps) => {
    expect(fieldGaps(object(spec), schema(served))).toEqual(gaps);
  });
});

describe('no gap is', () => {
  test.each<[string, JsonObject, JsonObject]>([
    ['a field more that is served', { a: '1' }, members({ a: text, b: text })],
    ['a map', { m: { any: '1' } }, members({ m: { type: 'object', additionalProperties: text } })],
    ['any content', { m: { any: 1 } }, members({ m: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } })],
    ['a map of anything', { m: { any: { a: 1 } } }, members({ m: { type: 'object', additionalProperties: true } })],
    ['an integer or a text', { q: '1Gi' }, members({ q: { 'x-kubernetes-int-or-string': true } })],
    ['what another schema describes', { m: { any: 1 } }, members({ m: { allOf: [{ $ref: '#/components/schemas/other' }] } })],
  ])('%s', (_, spec, served) => {
    expect(fieldGaps(object(spec), schema(served))).toEqual([]);
  });
});
