import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { CanonicalJsonError, canonicalJson, canonicalizeText } from '../../src/lib/canonical-json.js';
import type { Json } from '../../src/lib/json.js';
import { digestOf, isDigest, sha256Hex } from '../../src/lib/sha256.js';

interface Vector {
  readonly name: string;
  readonly input: {
    readonly json?: string;
    readonly base64?: string;
    readonly build?: { readonly prefix?: string; readonly repeat?: string; readonly count?: number; readonly suffix?: string };
  };
  readonly output: {
    readonly canonical?: string;
    readonly canonicalBytes?: number;
    readonly canonicalSha256?: string;
    readonly error?: string;
  };
}

interface DigestVector {
  readonly name: string;
  readonly input: { readonly hashPrefix?: string; readonly value?: Json };
  readonly output: { readonly canonical?: string; readonly digest?: string };
}

function vectors(file: string): unknown {
  return JSON.parse(readFileSync(new URL(`../vectors/${file}`, import.meta.url), 'utf8'));
}

const golden = (vectors('canonical-json.json') as { readonly vectors: readonly Vector[] }).vectors;
const digests = (vectors('digests.json') as { readonly sections: Record<string, { readonly vectors: readonly DigestVector[] }> })
  .sections;

function inputOf({ json, base64, build }: Vector['input']): string | Uint8Array {
  if (base64 !== undefined) return Buffer.from(base64, 'base64');
  if (build) return (build.prefix ?? '') + (build.repeat ?? '').repeat(build.count ?? 0) + (build.suffix ?? '');
  return json ?? '';
}

function codeOf(work: () => unknown): string | undefined {
  try {
    work();
  } catch (error) {
    if (error instanceof CanonicalJsonError) return error.code;
    throw error;
  }
  return undefined;
}

describe('the golden vectors', () => {
  test.each(golden.map((vector) => [vector.name, vector] as const))('%s', (_, { input, output }) => {
    const text = inputOf(input);
    if (output.error !== undefined) {
      expect(codeOf(() => canonicalizeText(text))).toBe(output.error);
      return;
    }
    const canonical = canonicalizeText(text);
    expect(Buffer.byteLength(canonical)).toBe(output.canonicalBytes);
    if (output.canonical !== undefined) expect(canonical).toBe(output.canonical);
    if (output.canonicalSha256 !== undefined) expect(sha256Hex(canonical)).toBe(output.canonicalSha256);
    expect(canonicalizeText(Buffer.from(typeof text === 'string' ? text : ''))).toBe(canonical);
  });

  const withPrefix = Object.entries(digests).flatMap(([section, { vectors: list }]) =>
    list
      .filter(({ input, output }) => input.hashPrefix !== undefined && input.value !== undefined && output.digest !== undefined)
      .map((vector) => [`${section}: ${vector.name}`, vector] as const),
  );

  test.each(withPrefix)('digest of %s', (_, { input, output }) => {
    const prefix = input.hashPrefix?.replace(/\\u0000$/, '');
    if (output.canonical !== undefined) expect(canonicalizeText(output.canonical)).toBe(output.canonical);
    expect(digestOf(output.canonical ?? canonicalJson(input.value ?? null), prefix)).toBe(output.digest);
  });
});

describe('texts', () => {
  test('a text of 2 MiB is accepted and one byte more is too large', () => {
    expect(codeOf(() => canonicalizeText(`"${'x'.repeat(2 * 1024 * 1024 - 2)}"`))).toBeUndefined();
    expect(codeOf(() => canonicalizeText(`"${'x'.repeat(2 * 1024 * 1024 - 1)}"`))).toBe('too-large');
    expect(codeOf(() => canonicalizeText(`"${'é'.repeat(1024 * 1024)}"`))).toBe('too-large');
  });

  test('too much white space is empty before it is too large', () => {
    expect(codeOf(() => canonicalizeText(' \u00a0\u3000'.repeat(1024 * 1024)))).toBe('empty');
  });

  test('a byte order mark is no white space', () => {
    expect(codeOf(() => canonicalizeText(Buffer.from('\ufeff{}')))).toBe('syntax');
    expect(codeOf(() => canonicalizeText('\ufeff{}'))).toBe('syntax');
  });

  test('two lone surrogates are the same member name', () => {
    expect(codeOf(() => canonicalizeText('{"\\ud800":1,"\\udfff":2}'))).toBe('duplicate-key');
  });

  test('a raw lone surrogate in a JavaScript string is no UTF-8', () => {
    expect(codeOf(() => canonicalizeText('"\ud800"'))).toBe('invalid-utf8');
  });

  test('the first error in the stream is the one reported', () => {
    expect(codeOf(() => canonicalizeText('[1e9999, x'))).toBe('number-exponent');
    expect(codeOf(() => canonicalizeText('{"a":1,"a":x'))).toBe('duplicate-key');
    expect(codeOf(() => canonicalizeText('1x'))).toBe('trailing-data');
    expect(codeOf(() => canonicalizeText('[1x]'))).toBe('syntax');
    expect(codeOf(() => canonicalizeText('1.5.'))).toBe('trailing-data');
    expect(codeOf(() => canonicalizeText('1e'))).toBe('syntax');
    expect(codeOf(() => canonicalizeText(`${'['.repeat(65)}x`))).toBe('depth');
    expect(codeOf(() => canonicalizeText('['.repeat(65)))).toBe('syntax');
  });

  test('a number of 8192 digits is kept and one of 8193 is refused, leading zeros not counted', () => {
    const longest = '7'.repeat(8192);
    expect(canonicalizeText(longest)).toBe(longest);
    expect(canonicalizeText(`${'7'.repeat(8000)}.${'7'.repeat(192)}`)).toHaveLength(8193);
    expect(codeOf(() => canonicalizeText(`7${longest}`))).toBe('number-length');
    expect(canonicalizeText(`0.${'0'.repeat(9000)}7e8192`)).toMatch(/^0\.0{808}7$/);
  });

  test('omitted members leave no trace but are still checked', () => {
    const omit = new Set(['/metadata/digest', '/agent', '/a~1b']);
    expect(canonicalizeText('{"metadata":{"digest":"x","z":1},"agent":{"q":[]},"a/b":1,"n":{"agent":2}}', omit)).toBe(
      '{"metadata":{"z":1},"n":{"agent":2}}',
    );
    expect(codeOf(() => canonicalizeText('{"agent":{"a":1,"a":1}}', omit))).toBe('duplicate-key');
  });

  test('the error says where and never what', () => {
    expect(() => canonicalizeText('{"token":"s3cret" "x"}')).toThrow('JSON text, character 18: allowed: `,`');
  });
});

describe('values', () => {
  test('absent and undefined members are the same', () => {
    expect(canonicalJson({ b: undefined, a: 1 })).toBe('{"a":1}');
  });

  test.each([
    [-0, '0'],
    [1e-7, '0.0000001'],
    [-1.25e-9, '-0.00000000125'],
    [0.1, '0.1'],
    [5e-324, `0.${'0'.repeat(323)}5`],
    [Number.MAX_SAFE_INTEGER, '9007199254740991'],
  ])('%d is printed as a plain decimal', (number, text) => {
    expect(canonicalJson(number)).toBe(text);
  });

  test.each([NaN, Infinity, -Infinity, 2 ** 53, 1e21])('%d is refused as unsafe', (number) => {
    expect(codeOf(() => canonicalJson([number]))).toBe('number-unsafe');
  });

  test.each([
    ['a Date', new Date(0)],
    ['a Map', new Map()],
    ['a bigint', 1n],
    ['a function', () => 1],
    ['undefined', undefined],
    ['a hole', new Array(1)],
  ])('%s is refused', (_, value) => {
    expect(codeOf(() => canonicalJson(value as unknown as Json))).toBe('not-json');
  });

  test('an object that contains itself is refused for its depth', () => {
    const loop: Record<string, Json> = {};
    loop['again'] = loop;
    expect(codeOf(() => canonicalJson(loop))).toBe('depth');
  });

  test('the error names the place', () => {
    expect(() => canonicalJson({ a: [{ 'b/c': NaN }] })).toThrow('JSON value at /a/0/b~1c: ');
  });

  test('a value over the item or size limit is refused', () => {
    expect(codeOf(() => canonicalJson(new Array<Json>(100_000).fill(1)))).toBe('items');
    expect(codeOf(() => canonicalJson('é'.repeat(1024 * 1024)))).toBe('too-large');
  });

  test('names that lone surrogates make equal are refused', () => {
    expect(codeOf(() => canonicalJson({ '\ud800': 1, '\udfff': 2 }))).toBe('duplicate-key');
  });
});

describe('laws', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string(),
    fc.constantFrom('__proto__', 'constructor', '10', '9', '<&>', '\u2028'),
  );
  const number = fc.oneof(fc.maxSafeInteger(), fc.double({ noNaN: true, noDefaultInfinity: true, noInteger: true }));
  const value = fc.letrec<{ any: Json }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom(null, true, false),
      number,
      text,
      fc.array(tie('any'), { maxLength: 6 }),
      // JSON.parse, unlike an object literal, makes `__proto__` a member.
      fc
        .uniqueArray(fc.tuple(text, tie('any')), { selector: ([name]) => name, maxLength: 6 })
        .map(
          (entries) =>
            JSON.parse(
              `{${entries.map(([name, member]) => `${JSON.stringify(name)}:${JSON.stringify(member)}`).join(',')}}`,
            ) as Json,
        ),
    ),
  })).any;

  function reversed(json: Json): Json {
    if (Array.isArray(json)) return json.map(reversed);
    if (typeof json !== 'object' || json === null) return json;
    const entries = Object.entries(json as Record<string, Json>).reverse();
    return JSON.parse(
      `{${entries.map(([name, member]) => `${JSON.stringify(name)}:${JSON.stringify(reversed(member))}`).join(',')}}`,
    ) as Json;
  }

  test('a value and its JSON text have the same canonical form', () => {
    fc.assert(fc.property(value, (json) => expect(canonicalJson(json)).toBe(canonicalizeText(JSON.stringify(json)))));
  });

  test('lone surrogates give the same text, or the same error, by both ways', () => {
    const units = fc
      .array(fc.constantFrom('\ud800', '\udfff', '\ufffd', '\uffff', 'a'), { maxLength: 3 })
      .map((all) => all.join(''));
    const outcome = (work: () => string) => {
      let text = '';
      return codeOf(() => (text = work())) ?? text;
    };
    fc.assert(
      fc.property(fc.dictionary(units, units), (json) =>
        expect(outcome(() => canonicalJson(json))).toBe(outcome(() => canonicalizeText(JSON.stringify(json)))),
      ),
    );
  });

  test('a canonical text is its own canonical form', () => {
    fc.assert(
      fc.property(value, (json) => {
        const once = canonicalJson(json);
        expect(canonicalizeText(once)).toBe(once);
      }),
    );
  });

  test('a canonical text says the same as the value', () => {
    fc.assert(fc.property(value, (json) => expect(JSON.parse(canonicalJson(json))).toEqual(JSON.parse(JSON.stringify(json)))));
  });

  test('the order of members does not count', () => {
    fc.assert(fc.property(value, (json) => expect(canonicalJson(reversed(json))).toBe(canonicalJson(json))));
  });

  test('member names are in the order of their UTF-8 bytes', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ unit: 'grapheme' })), (names) => {
        const sorted = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
        const object = Object.fromEntries(names.filter((name) => name !== '__proto__').map((name) => [name, 1]));
        expect(
          [...canonicalJson(object).matchAll(/"((?:[^"\\]|\\.)*)":1/g)].map(([, name = '']) => JSON.parse(`"${name}"`) as string),
        ).toEqual(sorted.filter((name) => name !== '__proto__'));
      }),
    );
  });
});

describe('digests', () => {
  test('the prefix and one NUL byte come before the text', () => {
    expect(digestOf('{}', 'p')).toBe(`sha256:${sha256Hex(Buffer.from('p\0{}'))}`);
    expect(digestOf('{}')).toBe('sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a');
  });

  test('only lower-case hexadecimal of full length is a digest', () => {
    expect(isDigest(digestOf(''))).toBe(true);
    expect(isDigest(digestOf('').toUpperCase())).toBe(false);
    expect(isDigest(`${digestOf('')}0`)).toBe(false);
    expect(isDigest(`${digestOf('')}\n`)).toBe(false);
    expect(isDigest(undefined)).toBe(false);
  });
});
