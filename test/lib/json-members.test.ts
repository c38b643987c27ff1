import { describe, expect, test } from '@jest/globals';
import { JsonMembersError, readMembers } from '../../src/lib/json-members.js';

const read = (text: string | Buffer) =>
  readMembers(Buffer.from(text as string)).map(({ name, value }) => [name, value.toString()] as const);
const code = (text: string | Buffer): string => {
  try {
    read(text);
    return 'read';
  } catch (error) {
    if (error instanceof JsonMembersError) return error.code;
    throw error;
  }
};

test('values keep their bytes, names are decoded', () => {
  expect(read(' {"a" : 1.0 , "\\u0062":[ 12345678901234567890, 1e2 ],\n"c":{"d":"\\u00e9é"}, "e":null} ')).toEqual([
    ['a', '1.0'],
    ['b', '[ 12345678901234567890, 1e2 ]'],
    ['c', '{"d":"\\u00e9é"}'],
    ['e', 'null'],
  ]);
  expect(read('{}')).toEqual([]);
});

test('a name that stands twice is refused at any depth, in any spelling', () => {
  for (const text of ['{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '{"x":[{"y":{"a":1,"b":2,"a":3}}]}', '{"\\ud800":1,"\\udbff":2}'])
    expect(code(text)).toBe('duplicate');
  expect(code('{"a":{"a":[{"a":1},{"a":2}]},"A":1}')).toBe('read');
});

describe('what is not JSON is refused', () => {
  const texts = [
    '', ' ', '[]', '"a"', '1', '{', '{"a"}', '{"a":}', '{"a":1,}', '{,}', '{"a":1 "b":2}', '{"a":1}}', '{"a":1}{}', '{a:1}', "{'a':1}",
    '{"a":01}', '{"a":+1}', '{"a":.5}', '{"a":1.}', '{"a":1e}', '{"a":--1}', '{"a":NaN}', '{"a":Infinity}', '{"a":tru}', '{"a":nullx}',
    '{"a":[1,]}', '{"a":[,1]}', '{"a":[1}', '{"a":"\\x"}', '{"a":"\\u00g0"}', '{"a":"\\u00"}', '{"a":"\n"}', '{"a":"b}', '{"a":"\\', '{"a":1}/**/',
    '\ufeff{}', '{"a":1}\u0000', '{\u00a0"a":1}', '{"a":0x1}', '{"a":1_0}',
  ]; // prettier-ignore
  test.each(texts)('%j', (text) => {
    expect(() => JSON.parse(text === '[]' || text === '"a"' || text === '1' ? '' : text) as unknown).toThrow();
    expect(code(text)).toBe('syntax');
  });
});

test('bytes that are not UTF-8 are refused', () => {
  expect(code(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toBe('utf8');
});

test('depth and number of values are bounded', () => {
  const nested = (depth: number) => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  expect([code(nested(128)), code(nested(129)), code(nested(1_000_000))]).toEqual(['read', 'depth', 'depth']);
  const wide = (count: number) => `{"a":[${'1,'.repeat(count - 1)}1]}`;
  expect([code(wide(249_999)), code(wide(250_000))]).toEqual(['read', 'items']);
});

test('random values are read as JSON.parse reads them', () => {
  let seed = 7;
  const random = (below: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % below;
  const value = (depth: number): unknown => {
    const kind = random(depth > 4 ? 5 : 7);
    if (kind === 0) return null;
    if (kind === 1) return random(2) === 0;
    if (kind === 2) return (random(1_000_000) - 500_000) / 64;
    if (kind < 5) return Array.from({ length: random(6) }, () => String.fromCharCode(random(0x3000))).join('');
    if (kind === 5) return Array.from({ length: random(4) }, () => value(depth + 1));
    return Object.fromEntries(
      Array.from({ length: random(4) }, (_, i) => [`${i}${String.fromCharCode(random(128))}`, value(depth + 1)]),
    );
  };
  for (let i = 0; i < 500; i++) {
    const given = { first: value(0), second: value(0) };
    const text = JSON.stringify(given, null, i % 3);
    const found = Object.fromEntries(read(text).map(([name, raw]) => [name, JSON.parse(raw) as unknown]));
    expect(found).toEqual(JSON.parse(text));
    for (const cut of [1, 2, 3].map(() => random(text.length - 1) + 1)) expect(code(text.slice(0, cut))).toBe('syntax');
  }
});

test('a text as long as a proxy takes is read', () => {
  const text = Buffer.from(`{"a":"${'x\\n'.repeat(10_000_000)}","b":"${'y'.repeat(2_000_000)}"}`);
  expect(readMembers(text).map(({ value }) => value.length)).toEqual([30_000_002, 2_000_002]);
});
