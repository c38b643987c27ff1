import { expect, test } from '@jest/globals';
import fc from 'fast-check';

import { escapedPath } from '../../../src/publisher/git/escape.js';

test.each([
  ['a/b.md', 'a/b.md'],
  ['a b/é/💥', 'a b/é/💥'],
  ['a\nb\u001b[31m', 'a\\x0ab\\x1b[31m'],
  ['a\\b', 'a\\\\b'],
  ['a\u202eb', 'a\\u{202e}b'],
  ['a\u00a0b', 'a\\xa0b'],
])('the path %j is shown as %s', (path, shown) => {
  expect(escapedPath(Buffer.from(path))).toBe(shown);
});

test('bytes that are no text are shown as numbers', () => {
  expect(escapedPath(Buffer.from([0x61, 0xff, 0x00, 0x62]))).toBe('a\\xff\\x00b');
});

test('what is shown of any bytes has one line, no control characters and at most 256 bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), fc.string({ maxLength: 300, unit: 'binary' }), (bytes, text) => {
      for (const path of [Buffer.from(bytes), Buffer.from(text)]) {
        const shown = escapedPath(path);
        expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(256);
        expect(shown).not.toMatch(/\p{C}/u);
      }
    }),
  );
  expect(escapedPath(Buffer.alloc(5000, 'a'))).toMatch(/^a{253}…$/);
  expect(escapedPath(Buffer.alloc(256, 'a'))).toBe('a'.repeat(256));
});
