import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import {
  archiveLimits,
  checkArchivePath,
  checkLinkGraph,
  checkLinkTarget,
  isProtectedName,
  isReservedName,
  shownPath,
} from '../../src/source/archive-rules.js';
import type { Vector } from '../support/vectors.js';
import { readVectors } from '../support/vectors.js';

interface Verdict {
  readonly accepted: boolean;
}
interface Vectors {
  readonly symlinkTarget: { readonly vectors: readonly Vector<{ readonly path: string; readonly target: string }, Verdict>[] };
  readonly symlinkGraph: {
    readonly vectors: readonly Vector<
      { readonly links?: Readonly<Record<string, string>>; readonly paths?: readonly string[]; readonly chain?: number },
      Verdict
    >[];
  };
}
const { symlinkTarget, symlinkGraph } = readVectors<{ readonly sections: Vectors }>('repository').sections;

/** Why each differs is in ARCHITECTURE.md, "Golden values". */
const deviations: readonly string[] = ['link-16', 'link-not-listed'];

const bytes = (text: string) => Buffer.from(text);

describe('a path in an archive', () => {
  test.each([
    'a',
    'a/b',
    'ünïcode/é.txt',
    '.github/workflows/x.yml',
    'a b',
    '"quoted"',
    '-',
    '.gitattributes',
    '.gitignore',
    '...',
    `${'é'.repeat(127)}n`,
  ])('may be %j', (path) => {
    expect(checkArchivePath(bytes(path))).toBeUndefined();
  });

  test.each([
    ['', 'path'],
    ['/a', 'path'],
    ['é'.repeat(128), 'path'],
    [`a/${'n'.repeat(256)}/b`, 'path'],
    ['../a', 'path'],
    ['a/../b', 'path'],
    ['a/..', 'path'],
    ['./a', 'path'],
    ['a//b', 'path'],
    ['a/', 'path'],
    ['a\\b', 'path'],
    ['a\u0001b', 'path'],
    ['a\nb', 'path'],
    ['a\u007fb', 'path'],
    ['a\u0085b', 'path'],
    [' a', 'path'],
    ['a\u00a0', 'path'],
    ['a\u0000b', 'path'],
    ['.git', 'reserved_name'],
    ['a/.GIT/config', 'reserved_name'],
    ['a/.gitmodules', 'reserved_name'],
    ['.GitModules', 'reserved_name'],
    ['a/.Orka-Publisher', 'reserved_name'],
  ])('may not be %j', (path, reason) => {
    expect(checkArchivePath(bytes(path))).toMatchObject({ reason, path });
  });

  test('may have 4096 bytes, and not one more', () => {
    expect(checkArchivePath(bytes('d/'.repeat(2048) + 'x'))).toMatchObject({ reason: 'path' });
    expect(checkArchivePath(bytes('d/'.repeat(2047) + 'xx'))).toBeUndefined();
  });

  test.each([[[0xff]], [[0xc0, 0xaf]], [[0x61, 0xc3, 0x28]], [[0xed, 0xa0, 0x80]]])('may not have the bytes %j', (path) => {
    expect(checkArchivePath(Uint8Array.from(path))).toMatchObject({ reason: 'encoding' });
  });

  test('that has a reserved or protected name is known in any case', () => {
    expect([
      isReservedName('.ORKA-artifacts'),
      isReservedName('.claude'),
      isProtectedName('.Claude'),
      isProtectedName('.git'),
    ]).toEqual([true, false, true, true]);
  });
});

test.each([
  ['a/ü b', 'a/ü b'],
  ['a\n\u001b[2J', 'a\\x0a\\x1b[2J'],
  ['a\\b', 'a\\\\b'],
  ['a\u202eb\u2028', 'a\\u202eb\\u2028'],
  [Uint8Array.of(0x61, 0xff, 0x5c, 0x0a), 'a\\xff\\\\\\x0a'],
  ['x'.repeat(300), `${'x'.repeat(253)}…`],
  ['ü'.repeat(200), `${'ü'.repeat(126)}…`],
])('a path %j is shown escaped and cut', (path, shown) => {
  expect(shownPath(path)).toBe(shown);
  expect(Buffer.byteLength(shownPath(path))).toBeLessThanOrEqual(256);
});

describe('the target of a link', () => {
  test.each(symlinkTarget.vectors)('is judged as by the reference: $name', ({ name, input, output }) => {
    const problem = checkLinkTarget(input.path, input.target);
    expect(problem === undefined).toBe(output.accepted !== deviations.includes(name));
    if (problem) expect(problem).toMatchObject({ reason: 'unsafe_link', path: input.path });
  });

  test.each([
    ['l', '.git/config'],
    ['d/l', '../.GIT'],
    ['d/l', 'x/.gitmodules'],
    ['l', 'a\\b'],
    ['d/e/l', '../../d'],
    ['d/l', '../../x'],
    ['l', '..'],
    ['l', '.'],
    ['l', 'a/..'],
  ])('of %s may not be %s', (path, target) => {
    expect(checkLinkTarget(path, target)).toMatchObject({ reason: 'unsafe_link', path });
  });

  test('must be UTF-8', () => {
    expect(checkLinkTarget('l', Uint8Array.of(0xff))).toMatchObject({ reason: 'encoding' });
  });
});

describe('the links of a tree', () => {
  const chain = (length: number) =>
    Array.from({ length }, (_, i) => ({ path: linkName(i), target: i === length - 1 ? 'absent' : linkName(i + 1) }));
  const linkName = (i: number) => `l${String(i).padStart(3, '0')}`;

  test.each(symlinkGraph.vectors)('are judged as by the reference: $name', ({ name, input, output }) => {
    const { links = {}, paths = [], chain: length } = input;
    const entries = length === undefined ? paths.map((path) => ({ path, target: links[path] })) : chain(length);
    // A link that is no entry cannot be said here.
    expect(checkLinkGraph(entries) === undefined).toBe(output.accepted !== deviations.includes(name));
  });

  test('may lead through 40 links, and not through 41', () => {
    expect(checkLinkGraph(chain(40))).toBeUndefined();
    expect(checkLinkGraph(chain(41))).toMatchObject({ reason: 'unsafe_link', path: 'l000' });
    expect(checkLinkGraph(chain(41).reverse())).toMatchObject({ reason: 'unsafe_link', path: 'l000' });
  });

  test.each([
    [
      'two links that lead to each other',
      [
        { path: 'a', target: 'b' },
        { path: 'b', target: 'a' },
      ],
    ],
    [
      'a link that leads below itself',
      [
        { path: 'a', target: 'b/x' },
        { path: 'b', target: 'a/y' },
      ],
    ],
    ['an entry below a link', [{ path: 'd', target: 'e' }, { path: 'd/f' }]],
    ['an entry deep below a link', [{ path: 'd', target: 'e' }, { path: 'd/f/g/h' }]],
    [
      'a link whose way leads up from where another link ends',
      [{ path: 'deep/er/b', target: '../../s' }, { path: 's' }, { path: 'l', target: 'deep/er/b/../../x' }],
    ],
  ])('may not be %s', (_, entries) => {
    expect(entries.map((entry) => checkLinkTarget(entry.path, ('target' in entry ? entry.target : undefined) ?? 'x'))).toEqual(
      entries.map(() => undefined),
    );
    expect(checkLinkGraph(entries)).toMatchObject({ reason: 'unsafe_link' });
  });

  test('are judged in linear time', () => {
    const deep = 'x/'.repeat(2000);
    const entries = Array.from({ length: 5000 }, (_, i) => ({
      path: `d/${i}`,
      target: `${i === 0 ? '' : `${i - (i % 39 ? 1 : 0)}/`}${deep}`,
    })).map((entry, i) => (i % 39 ? entry : { ...entry, target: deep }));
    const started = performance.now();
    expect(checkLinkGraph(entries)).toBeUndefined();
    expect(performance.now() - started).toBeLessThan(20_000);
  });

  test('never let a way lead above the root, whatever they are', () => {
    const name = fc.constantFrom('a', 'b', 'c', '..', 'd');
    const target = fc.array(name, { minLength: 1, maxLength: 6 }).map((names) => names.join('/'));
    const path = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 3 }).map((names) => names.join('/'));
    fc.assert(
      fc.property(fc.uniqueArray(fc.record({ path, target }), { selector: (link) => link.path, maxLength: 6 }), (entries) => {
        if (entries.some((link) => checkLinkTarget(link.path, link.target)) || checkLinkGraph(entries)) return;
        for (const link of entries) expect(wayOf(entries, link)).not.toBe('above the root');
      }),
      { numRuns: 2000 },
    );
  });

  /** Follows a link name by name, as a kernel does that makes every folder it misses. */
  function wayOf(
    entries: readonly { readonly path: string; readonly target: string }[],
    link: { readonly path: string; readonly target: string },
  ) {
    const targets = new Map(entries.map(({ path, target }) => [path, target]));
    const at = link.path.split('/').slice(0, -1);
    const left = link.target.split('/');
    for (let steps = 0; left.length > 0; steps++) {
      if (steps > 10_000) return 'a cycle';
      const next = left.shift() ?? '';
      if (next === '..') {
        if (at.pop() === undefined) return 'above the root';
        continue;
      }
      at.push(next);
      const further = targets.get(at.join('/'));
      if (further === undefined) continue;
      at.pop();
      left.unshift(...further.split('/'));
    }
    return at.join('/');
  }
});

test('the limits are those of the contract', () => {
  expect(archiveLimits).toEqual({
    entries: 100_000,
    fileBytes: 67_108_864,
    treeBytes: 100_663_296,
    artifactBytes: 104_857_600,
    pathBytes: 4096,
    linkHops: 40,
  });
});
