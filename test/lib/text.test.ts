import { expect, test } from '@jest/globals';
import { counted } from '../../src/lib/text.js';

test.each([
  [0, '0 files'],
  [1, '1 file'],
  [2, '2 files'],
])('%d of a noun has the form of its number', (count, text) => {
  expect(counted(count, 'file')).toBe(text);
});

test('a noun may have a plural of its own', () => {
  expect([counted(1, 'entry', 'entries'), counted(3, 'entry', 'entries')]).toEqual(['1 entry', '3 entries']);
});
