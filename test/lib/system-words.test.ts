import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { failureOf } from '../../src/lib/failure.js';
import { systemWords } from '../../src/lib/system-words.js';
import { utf8Text } from '../../src/lib/text.js';

const errorOf = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};

test.each([
  ['/none/at/all', 'no such file or directory'],
  ['.', 'a directory'],
  ['package.json/x', 'a part of the path is not a directory'],
])('an error of the system about %s says words, not a code', (path, words) => {
  const error = errorOf(() => readFileSync(path));
  expect(systemWords(error)).toBe(words);
  expect(failureOf(error)).toEqual({ text: expect.stringMatching(`: ${words}$`), defect: false });
});

test('an error that nobody foresaw is a defect, and shows its stack', () => {
  expect(failureOf(new TypeError('x is not a function'))).toEqual({ text: expect.stringContaining('\n    at '), defect: true });
});

test.each([
  [[0x61, 0xff], 1],
  [[0xc3, 0xa9, 0xe2, 0x28, 0xa1], 2],
  [[0xf0, 0x9f, 0x98, 0x80, 0x80], 4],
  [[0x61, 0xe2, 0x82], 1],
])('bytes %j are no UTF-8 from byte %d', (bytes, badByte) => {
  expect(utf8Text(Uint8Array.from(bytes))).toEqual({ badByte });
});

test('a byte order mark is no part of the text', () => {
  expect(utf8Text(Uint8Array.from([0xef, 0xbb, 0xbf, 0x61]))).toBe('a');
});
