import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import path from 'node:path';

import { escapedPath } from '../../../src/publisher/git/escape.js';
import type { SourceError } from '../../../src/publisher/git/source-error.js';
import type { PrepareResponse } from '../../../src/source/messages.js';
import { bareRepository, commitTree, git, testForge } from '../../support/forge.js';
import type { TestForge, TreeEntry } from '../../support/forge.js';
import { prepareRequest, readCredential, testSource } from '../../support/source-git.js';
import type { TestSource } from '../../support/source-git.js';
import { extract } from '../../support/tar-list.js';

let forge: TestForge;
let source: TestSource;
let count = 0;
const { signal } = new AbortController();
const runs = 40;

beforeAll(async () => {
  forge = await testForge();
  source = testSource(forge);
});
afterAll(async () => {
  await source.close();
  await forge.close();
});

const plainName = fc.constantFrom(
  'a',
  'b',
  'A',
  'é',
  'e\u0301',
  '"q".md',
  '-x',
  ' a',
  'a.b',
  '~',
  '💥',
  'n'.repeat(120),
  '.github',
  '*',
  "'",
);
const oddName = fc.oneof(
  { weight: 12, arbitrary: plainName },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'git~1',
      '.GITMODULES',
      'a\\b',
      'x\ty',
      'x\ny',
      ' ',
      '.orka-publisher',
      '.g\u200dit',
      'GIT~1 .',
      'gi7eba~1',
    ),
  },
);
const pathOf = fc.array(oddName, { minLength: 1, maxLength: 4 }).map((names) => names.join('/'));
const entry: fc.Arbitrary<TreeEntry> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      path: pathOf,
      mode: fc.constantFrom('100644' as const, '100755' as const),
      content: fc.uint8Array({ maxLength: 1500 }).map((bytes) => Buffer.from(bytes)),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      path: pathOf,
      mode: fc.constant('120000' as const),
      content: fc.constantFrom('a', '../a', 'a/b/../x', './b', 'n'.repeat(150), '/etc', '../../../../../a', '.git/x'),
    }),
  },
);

/** What git itself says is in the tree, with the content that was written last. */
function truth(folder: string, entries: readonly TreeEntry[]) {
  const written = new Map(entries.map((one) => [one.path, one]));
  return git(folder, ['ls-tree', '-rz', 'main'])
    .split('\0')
    .filter((line) => line !== '')
    .map((line) => {
      const name = line.slice(line.indexOf('\t') + 1);
      const content = Buffer.from(written.get(name)?.content ?? '');
      if (line.startsWith('120000')) return { path: name, mode: '777', target: content.toString() };
      return { path: name, mode: line.startsWith('100755') ? '755' : '644', content };
    });
}

async function prepared(name: string, oid: string, file: string): Promise<PrepareResponse | SourceError> {
  try {
    return await source.git.prepare(prepareRequest(forge, name, oid), readCredential, file, signal);
  } catch (error) {
    return error as SourceError;
  }
}

test('an archive equals the tree of git path by path, or the tree is refused by a path of it', async () => {
  const ends = { accepted: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { minLength: 1, maxLength: 12 }), async (entries) => {
      const name = `acme/t${count++}`;
      const folder = bareRepository(forge.root, `${name}.git`);
      const oid = commitTree(folder, entries);
      const file = path.join(source.folder, `t${count}.tar`);
      const end = await prepared(name, oid, file);
      const files = truth(folder, entries);
      if (end instanceof Error) {
        ends.refused++;
        expect(end).toMatchObject({ code: 'tree_refused', retryable: false });
        expect(files.map((one) => escapedPath(Buffer.from(one.path)))).toContain(end.detail?.path);
        return;
      }
      ends.accepted++;
      const extracted = extract(file);
      const order = (a: { path: string }, b: { path: string }): number =>
        Buffer.compare(Buffer.from(a.path), Buffer.from(b.path));
      const found = extracted.filter(({ content, target }) => content !== undefined || target !== undefined);
      expect([...found].sort(order)).toEqual([...files].sort(order));
      expect(end.entryCount).toBe(extracted.length);
      expect(end.expandedBytes).toBe(
        files.reduce((sum, { content, target = '' }) => sum + (content?.length ?? Buffer.byteLength(target)), 0),
      );
      expect(end.treeOid).toBe(git(folder, ['rev-parse', 'main^{tree}']));
    }),
    { numRuns: runs, endOnFailure: true },
  );
  expect(ends.accepted).toBeGreaterThan(runs / 8);
  expect(ends.refused).toBeGreaterThan(runs / 8);
}, 240_000);
