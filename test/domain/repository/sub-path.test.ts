import { expect, test } from '@jest/globals';
import { relativeRootOf, subPathProblem } from '../../../src/domain/repository/sub-path.js';

test.each([
  [undefined, undefined],
  ['', undefined],
  ['  ', undefined],
  ['.', undefined],
  ['a/b', 'a/b'],
  [' a/b ', 'a/b'],
  ['a b', 'a b'],
  ['...', '...'],
  ['ä'.repeat(512), 'ä'.repeat(512)],
])('the subPath %j is the directory %j', (subPath, root) => {
  expect(subPathProblem(subPath)).toBeUndefined();
  expect(relativeRootOf(subPath)).toBe(root);
});

test.each([
  ['/a', 'without "/" at the start'],
  ['a/', 'without "/" at the end'],
  ['a//b', 'without "//"'],
  ['a/ /b', '" "'],
  ['a/../b', '".."'],
  ['..', '".."'],
  ['./a', '"."'],
  ['a\\b', '"\\"'],
  ['a\nb', 'control'],
  ['a\ud800', 'control'],
])('the subPath %j is refused because of %s', (subPath, names) => {
  expect(subPathProblem(subPath)).toMatchObject({ found: subPath, allowed: expect.stringContaining(names) });
});

test('a subPath of more than 1024 bytes is refused', () => {
  expect(subPathProblem('ä'.repeat(513))).toMatchObject({ foundKind: '1026 bytes' });
});
