import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, test } from '@jest/globals';
import { ApiObject, App, Chart } from 'cdk8s';
import fc from 'fast-check';
import { parseDocument } from 'yaml';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { renderApp } from '../../src/render/app.js';
import { readYaml } from '../../src/render/yaml-read.js';
import { toYaml, toYamlStream, YamlError } from '../../src/render/yaml.js';
import { tortureStrings, tortureValues } from './yaml-torture.js';

/** What JSON makes of a value once lone surrogates are replaced: the most that any text format can give back. */
function kept(value: Json): Json {
  const text = (found: string) => found.replace(/\p{Surrogate}/gu, '\ufffd');
  if (typeof value === 'string') return text(value);
  if (typeof value === 'number') return value + 0;
  if (Array.isArray(value)) return (value as readonly Json[]).map(kept);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value as JsonObject).flatMap(([key, found]) => (found === undefined ? [] : [[text(key), kept(found)]])),
  );
}

function manifest(data: Json): Json {
  return { apiVersion: 'x.test/v1', kind: 'Torture', metadata: { name: 'torture' }, data };
}

const noKubectl = spawnSync('kubectl', ['version', '--client']).status === 0 ? undefined : 'no kubectl on the PATH';
const withKubectl = (sentence: string, work: () => void): void => {
  if (noKubectl === undefined) test(sentence, work, 60_000);
  else test.skip(`${sentence} (skipped: ${noKubectl})`, work);
};

/** What the real kubectl makes of manifests, without a cluster. */
function kubectl(text: string, output: 'json' | 'yaml'): string {
  return execFileSync('kubectl', ['annotate', '--local', '-f', '-', '-o', output, 'read=yes'], {
    input: text,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    env: { PATH: process.env['PATH'], KUBECONFIG: '/dev/null' },
  });
}

/** The `data` of a manifest as the real kubectl reads it. */
function kubectlReads(text: string): Json {
  return (JSON.parse(kubectl(text, 'json')) as { readonly data: Json }).data;
}

/** The same for each document of a stream. */
function kubectlReadsAll(text: string): readonly Json[] {
  return kubectl(text, 'json')
    .split(/(?<=^\})\n/m)
    .filter((document) => document.trim() !== '')
    .map((document) => (JSON.parse(document) as { readonly data: Json }).data);
}

function libraryReads(text: string, version: '1.1' | '1.2'): Json {
  const document = parseDocument(text, { version, prettyErrors: false });
  expect(document.errors).toEqual([]);
  return (document.toJS({ maxAliasCount: 0 }) as { readonly data: Json }).data;
}

/** Every string as item, as value and as key. */
const strings: Json = {
  items: tortureStrings,
  members: Object.fromEntries([...new Set(tortureStrings.map((text) => kept(text) as string))].map((text, i) => [text, i])),
  values: tortureStrings.map((text) => ({ a: { b: text }, c: [text] })),
};
const all: Json = { strings, values: tortureValues };

describe('nothing is lost', () => {
  test('the list is long enough to mean something', () => {
    expect(new Set(tortureStrings).size).toBeGreaterThanOrEqual(129);
  });

  withKubectl('kubectl reads every torture string and structure as it was', () => {
    expect(kubectlReads(toYaml(manifest(all)))).toEqual(kept(all));
  });

  withKubectl('kubectl reads a stream with every torture string and structure in a document of its own', () => {
    const found = [...tortureStrings, ...tortureValues];
    const documents = found.map((data, index) => ({
      apiVersion: 'x.test/v1',
      kind: 'Torture',
      metadata: { name: `t-${index}` },
      data: [data],
    }));
    expect(kubectlReadsAll(toYamlStream(documents))).toEqual(found.map((data) => [kept(data)]));
  });

  withKubectl(
    'our reader reads what kubectl prints, but for characters that kubectl cannot print or that end a line for some parsers',
    () => {
      const unprintable = /[\x7f-\x9f\u2028\u2029\ufffe\uffff]/;
      const printed = kept(tortureStrings.filter((text) => !unprintable.test(text)));
      expect(readYaml(kubectl(toYaml(manifest(printed)), 'yaml'), 'kubectl')[0]?.value).toMatchObject({ data: printed });
    },
  );

  test('our reader reads every torture string and structure as it was', () => {
    expect(readYaml(toYaml(manifest(all)), 't.yaml')).toEqual([{ value: kept(manifest(all)), line: 1 }]);
  });

  test.each(['1.1', '1.2'] as const)('a YAML %s parser reads every torture string as it was', (version) => {
    expect(libraryReads(toYaml(manifest(strings)), version)).toEqual(kept(strings));
  });

  test('a YAML 1.2 parser reads every torture structure as it was', () => {
    expect(libraryReads(toYaml(manifest(tortureValues)), '1.2')).toEqual(kept(tortureValues));
  });

  test('every torture string stands alone as a document', () => {
    expect(tortureStrings.map((text) => parseDocument(toYaml(text)).toJS() as unknown)).toEqual(kept(tortureStrings));
  });
});

describe('laws', () => {
  const alphabet = fc.constantFrom(
    ...'\n\n\n  \t:#-?!&*|>\'"%@`[]{},~=<\\yn0123456789_.eEx+\u0085\u2028\ufeff\ud800é😀ab/'.split(''),
  );
  const text = fc.oneof(
    fc.string({ unit: alphabet, maxLength: 12 }),
    fc.string({ unit: 'binary' }),
    fc.string(),
    fc.constantFrom(...tortureStrings),
    fc
      .array(fc.constantFrom('', 'a', ' b', 'c: d', '- e', '# f', '---', 'g '), { maxLength: 5 })
      .map((lines) => lines.join('\n')),
  );
  const number = fc.oneof(fc.integer(), fc.maxSafeInteger(), fc.double({ noNaN: true, noDefaultInfinity: true }));
  const value = fc.letrec<{ any: Json }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 6 },
      fc.constantFrom(null, true, false),
      number,
      text,
      fc.array(tie('any'), { maxLength: 5 }),
      fc.array(fc.tuple(text, tie('any')), { maxLength: 5 }).map((entries) => kept(Object.fromEntries(entries))),
    ),
  })).any;

  test('what is written is read back', () => {
    fc.assert(
      fc.property(value, (json) => {
        expect(readYaml(toYaml({ json }), 't.yaml')).toEqual([{ value: { json: kept(json) }, line: 1 }]);
      }),
      { numRuns: 500 },
    );
  });

  test('a string is written in one way only', () => {
    fc.assert(fc.property(text, (found) => expect(toYaml([found, { a: found }])).toBe(toYaml([found, { a: found }]))));
  });

  test('no line ends in white space and no tab, carriage return or other control is left', () => {
    fc.assert(
      fc.property(value, (json) => {
        expect(toYaml(json)).not.toMatch(/[ \t]\n|[^\n\P{Cc}]|[\u2028\u2029\ufeff]/u);
      }),
    );
  });

  withKubectl('kubectl reads random values as they were', () => {
    fc.assert(
      fc.property(fc.array(value, { minLength: 100, maxLength: 120, size: 'max' }), (values) => {
        expect(kubectlReads(toYaml(manifest(values)))).toEqual(kept(values));
      }),
      { numRuns: 5, endOnFailure: true },
    );
  });

  withKubectl('kubectl reads random names, values and remarks of manifests as they were', () => {
    const object = fc.dictionary(
      text.map((name) => kept(name) as string),
      value,
      { minKeys: 20, maxKeys: 40, size: 'max' },
    );
    fc.assert(
      fc.property(fc.array(object, { minLength: 5, maxLength: 8 }), text, (objects, remark) => {
        const documents = objects.map((data) => manifest(data));
        const stream = toYamlStream(documents, { comment: (path) => (path.length % 2 === 0 ? remark : undefined) });
        expect(kubectlReadsAll(stream)).toEqual(objects.map(kept));
      }),
      { numRuns: 5, endOnFailure: true },
    );
  });

  const plain = fc.oneof(
    fc.string({ unit: fc.constantFrom(...'0123456789_.eExXobB+-:'.split('')), minLength: 1, maxLength: 7 }),
    fc.stringMatching(/^[-+]?(0[xXoObB]?)?[0-9_]{1,20}(\.[0-9_]*)?([eE][-+]?[0-9]{1,3})?$/),
    fc.constantFrom(...tortureStrings),
  );

  withKubectl('our reader and kubectl agree on what a plain scalar means', () => {
    fc.assert(
      fc.property(fc.array(plain, { minLength: 300, maxLength: 400, size: 'max' }), (found) => {
        const lines = found.filter((text) => /^[\w.+=~](?:[\w.+~:-]*[\w.+~-])?$/.test(text) || /^[-+][\w.]+$/.test(text));
        const readable = lines.filter((line) => {
          try {
            return readYaml(`a: ${line}\n`, 't.yaml').length === 1;
          } catch (error) {
            // Infinities are refused by both; integers whose digits JavaScript would lose only by us.
            expect((error as YamlError).code).toBe('number');
            return false;
          }
        });
        const data = readable.map((line) => `  - ${line}\n`).join('');
        const ours = readYaml(`data:\n${data}`, 't.yaml')[0]?.value as { readonly data: Json };
        expect(kubectlReads(`apiVersion: x.test/v1\nkind: Torture\nmetadata: {name: a}\ndata:\n${data}`)).toEqual(ours.data);
      }),
      { numRuns: 5, endOnFailure: true },
    );
  });
});

describe('form', () => {
  test('a manifest begins with apiVersion, kind and metadata, all else is sorted', () => {
    expect(
      toYaml({
        spec: { z: 1, a: [{ name: 'x', image: 'b' }], kind: 'k', apiVersion: 'v' },
        status: undefined,
        metadata: { namespace: 'b', name: 'a', labels: {} },
        data: {},
        kind: 'Pod',
        apiVersion: 'v1',
      }),
    ).toBe(`apiVersion: v1
kind: Pod
metadata:
  labels: {}
  name: a
  namespace: b
data: {}
spec:
  a:
    - image: b
      name: x
  apiVersion: v
  kind: k
  z: 1
`);
  });

  test('strings that may stand plain stand plain, others are quoted', () => {
    expect(toYaml(['a', 'a b', 'a:b', '500m', '10Gi', '/x', 'http://x:1', 'yes', '1', 'a: b', 'a #b', ''])).toBe(
      '- a\n- a b\n- a:b\n- 500m\n- 10Gi\n- /x\n- http://x:1\n- "yes"\n- "1"\n- "a: b"\n- "a #b"\n- ""\n',
    );
  });

  test('several lines become a literal block where that keeps them', () => {
    expect(toYaml({ a: 'x\n\n  y\n', b: ['x\ny'], c: 'x \ny', d: ' x\ny' })).toBe(
      'a: |\n  x\n\n    y\nb:\n  - |-\n    x\n    y\nc: "x \\ny"\nd: " x\\ny"\n',
    );
  });

  test('what a reviewer could not see is escaped', () => {
    expect(toYaml(['a\u202eb', '\u200b', '\u{e0041}', '\ufeff', '\xa0', '\0', '\ud800', 'é 😀'])).toBe(
      '- "a\\u202eb"\n- "\\u200b"\n- "\\U000e0041"\n- "\\ufeff"\n- "\\u00a0"\n- "\\u0000"\n- "\ufffd"\n- "é 😀"\n',
    );
  });

  test('a name of more than 1000 characters is written with a question mark', () => {
    const name = 'k'.repeat(1001);
    expect(toYaml({ [name]: { a: 1 } })).toBe(`? ${name}\n:\n  a: 1\n`);
    expect(toYaml({ [name.slice(1)]: 1 })).toBe(`${name.slice(1)}: 1\n`);
  });

  test('numbers keep a point beside an exponent', () => {
    expect(toYaml([1e21, 1.5e-7, -0, 1e20])).toBe('- 1.0e+21\n- 1.5e-7\n- 0\n- 100000000000000000000\n');
  });

  test('a remark stands at the end of its scalar and cannot leave its line', () => {
    const comment = (path: readonly (string | number)[]) => (path.at(-1) === 'a' ? 'live: x\ny: 1' : undefined);
    const document = { a: 'x', b: { a: [] }, c: [{ a: 'x\ny\n' }, { a: 1 }] };
    const text = toYaml(document, { comment });
    expect(text).toBe(
      'a: x # live: x\\ny: 1\nb:\n  a: [] # live: x\\ny: 1\nc:\n  - a: | # live: x\\ny: 1\n      x\n      y\n  - a: 1 # live: x\\ny: 1\n',
    );
    expect(readYaml(text, 't.yaml')[0]?.value).toEqual(document);
  });

  withKubectl('kubectl passes over remarks', () => {
    const remarked = toYaml(manifest(strings), { comment: () => 'live: it\'s # "x" \u0085 \ud800' });
    expect(kubectlReads(remarked)).toEqual(kept(strings));
  });

  test('documents of a stream are separated by three dashes', () => {
    expect(toYamlStream([{ a: 1 }, {}, ['---']])).toBe('a: 1\n---\n{}\n---\n- "---"\n');
    expect(toYamlStream([])).toBe('');
  });

  test.each([
    ['NaN', { a: [NaN] }, 'a[0]: found "NaN", allowed: null, boolean, finite number, string, list or plain object'],
    ['undefined in a list', [undefined], '[0]: found "Undefined"'],
    ['a Date', { spec: { at: new Date(0) } }, 'spec.at: found "Date"'],
    ['a bigint', 1n, 'the document: found "BigInt"'],
  ])('%s is refused with its place', (_, value, message) => {
    expect(() => toYaml(value as unknown as Json)).toThrow(message);
  });
});

describe('a value that contains itself', () => {
  const circle: { members: unknown[] } = { members: [] };
  circle.members.push(circle);
  const refused = { code: 'depth', finding: expect.objectContaining({ allowed: expect.stringContaining('contains itself') }) };

  test('is refused by toYaml', () => {
    expect(() => toYaml(circle as unknown as Json)).toThrow(expect.objectContaining(refused));
  });

  test('is refused by the path of its object in an app', () => {
    const app = new App();
    const chart = new Chart(app, 'chart');
    new ApiObject(chart, 'object', { apiVersion: 'v1', kind: 'Test', spec: circle });
    expect(() => renderApp(app)).toThrow(
      expect.objectContaining({ message: expect.stringMatching(/^chart\/object: /), ...refused }),
    );
  });
});

describe('reading', () => {
  const read = (text: string) => readYaml(text, 'f.yaml').map(({ value }) => value);

  test('every document comes with its first line, empty ones are skipped', () => {
    expect(readYaml('# head\n\na: 1\n---\n---\n# only a comment\n---\nnull\n---\n- b\n...\n', 'f.yaml')).toEqual([
      { value: { a: 1 }, line: 3 },
      { value: ['b'], line: 10 },
    ]);
    expect(read('')).toEqual([]);
    expect(read('# nothing\n')).toEqual([]);
  });

  test('a byte order mark and carriage returns are no part of the content', () => {
    expect(read('\ufeffa: 1\r\nb: |\r\n  x\r\n')).toEqual([{ a: 1, b: 'x\n' }]);
  });

  test('aliases and merge keys are resolved', () => {
    expect(read('a: &x {p: 1, q: 2}\nb: *x\nc:\n  <<: [*x, {q: 3, r: 4}]\n  p: 5\n')).toEqual([
      { a: { p: 1, q: 2 }, b: { p: 1, q: 2 }, c: { p: 5, q: 2, r: 4 } },
    ]);
  });

  test('a quoted << is a name like any other', () => {
    expect(read('"<<": {a: 1}\nb: 2\n')).toEqual([{ '<<': { a: 1 }, b: 2 }]);
  });

  test('names that are numbers or booleans become strings as in kubectl', () => {
    expect(read('1: a\ny: b\n0x10: c\n')).toEqual([{ '1': 'a', true: 'b', '16': 'c' }]);
  });

  test('the names of the prototype are ordinary names', () => {
    expect(JSON.stringify(read('__proto__: {a: 1}\nconstructor: 2\n'))).toBe('[{"__proto__":{"a":1},"constructor":2}]');
  });

  test('tags of the core types are understood', () => {
    expect(read('- !!str 12\n- ! yes\n- !!int "12"\n- !!float 3\n- !!map {a: 1}\n- !!seq [1]\n')).toEqual([
      ['12', 'yes', 12, 3, { a: 1 }, [1]],
    ]);
  });

  test.each([
    [
      'a name given twice',
      'duplicate-key',
      'a:\n  b: 1\n  b: 2\n',
      'f.yaml:3:3: a.b: found "the same name a second time", allowed: each name once',
    ],
    ['names that become equal', 'duplicate-key', '1: a\n"1": b\n', 'f.yaml:2:1: '],
    ['a list as a name', 'key', '? [a]\n: b\n', 'f.yaml:1:3: '],
    ['a missing name', 'key', '~: b\n', 'f.yaml:1:1: found "a member without a name"'],
    ['an unknown tag', 'tag', 'a: !secret x\n', 'f.yaml:1:12: a: found "a tag that this value cannot have"'],
    ['binary', 'tag', 'a: !!binary aGk=\n', 'f.yaml:1:13: a: found "a tag that this value cannot have"'],
    ['a tag of another type', 'tag', 'a: !!int x\n', 'f.yaml:1:10: a: '],
    ['a tag on a mapping', 'tag', 'a: !!set {b}\n', 'f.yaml:1:10: a: '],
    ['an infinity', 'number', 'a: .inf\n', 'f.yaml:1:4: a: '],
    [
      'an integer whose digits would be lost',
      'number',
      'a: [9007199254740993]\n',
      'f.yaml:1:5: a[0]: found "an integer that would lose digits"',
    ],
    ['an alias without anchor', 'alias', 'a: *x\n', 'f.yaml:1:4: '],
    ['an alias inside its anchor', 'alias', 'a: &x\n  b: *x\n', 'f.yaml:2:6: a.b: '],
    ['a merge after what it overrides', 'merge', 'a: 1\n<<: {a: 2}\n', 'f.yaml:2:1: found "<< after its member a"'],
    ['a merge of a string', 'merge', '<<: x\n', 'f.yaml:1:1: '],
    ['two merges', 'duplicate-key', '<<: {a: 1}\n<<: {b: 1}\n', 'f.yaml:2:1: '],
    ['a tab as indentation', 'syntax', 'a:\n\tb: 1\n', 'f.yaml:2:1: found "a tab as indentation", allowed: spaces'],
    ['indentation that fits nowhere', 'syntax', 'a:\n    b: 1\n  c: 1\n', 'f.yaml:3:'],
    ['an open quote', 'syntax', 'a: "x\n', 'f.yaml:'],
    ['an open bracket', 'syntax', 'a: [1\nb: 2\n', 'f.yaml:'],
    ['a raw control character', 'syntax', 'a: "x\x00"\n', 'f.yaml:1:6: found "U+0000"'],
    ['a line separator', 'syntax', '# x\u2028a: 1\n', 'f.yaml:1:4: found "U+2028"'],
  ])('%s is refused with its place', (_, code, text, message) => {
    expect(() => readYaml(text, 'f.yaml')).toThrow(message);
    expect(() => readYaml(text, 'f.yaml')).toThrow(expect.objectContaining({ code }));
  });

  test.each(['a: *secret\n', 'a: !secret x\n', 'a: !!secret x\n', 'a: &secret\n  b: *secret\n'])(
    'a password without quotes is not repeated: %j',
    (text) => {
      expect(() => readYaml(text, 'f.yaml')).toThrow(expect.not.objectContaining({ message: expect.stringContaining('secret') }));
    },
  );

  test('aliases that multiply are refused', () => {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let i = 1; i < 9; i++) lines.push(`a${i}: &a${i} [${`*a${i - 1}, `.repeat(10)}]`);
    expect(() => read(lines.join('\n'))).toThrow('aliases that repeat too much');
  });

  test.each([600, 20_000])('%d levels are refused', (levels) => {
    expect(() => read('['.repeat(levels) + ']'.repeat(levels))).toThrow(expect.objectContaining({ code: 'depth' }));
  });

  test('any text gives documents or an error of ours', () => {
    const pieces = fc.constantFrom(
      ...'a b : - ? , [ ] { } # & * ! | > \' " % @ ` ~ << --- ... 1 0x1 \n \t &a *a !!str'.split(' '),
      ' ',
      '\n',
      '  ',
    );
    fc.assert(
      fc.property(
        fc.array(pieces, { maxLength: 25 }).map((found) => found.join('')),
        (text) => {
          try {
            readYaml(text, 'f.yaml');
          } catch (error) {
            expect(error).toBeInstanceOf(YamlError);
          }
        },
      ),
      { numRuns: 1000 },
    );
  });
});
