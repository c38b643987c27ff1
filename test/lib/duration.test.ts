import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { normalizeDuration, parseDuration } from '../../src/lib/duration.js';

test.each([
  ['10m', '10m0s', 600_000],
  ['90s', '1m30s', 90_000],
  ['1h', '1h0m0s', 3_600_000],
  ['1.5s', '1.5s', 1500],
  ['250ms', '250ms', 250],
  ['1500ms', '1.5s', 1500],
  ['2us', '2µs', 0],
  ['0', '0s', 0],
  ['0s', '0s', 0],
  ['25h61m', '26h1m0s', 93_660_000],
])('%s is written %s', (text, normal, milliseconds) => {
  expect([normalizeDuration(text), parseDuration(text)]).toEqual([normal, milliseconds]);
});

test.each(['', '10', 'm', '-1s', '1d', '1 s', '1s '])('%j is no duration', (text) => {
  expect([normalizeDuration(text), parseDuration(text)]).toEqual([undefined, undefined]);
});

test('what is written reads back as the same time', () => {
  fc.assert(
    fc.property(fc.nat(1_000_000_000), (milliseconds) => {
      const normal = normalizeDuration(`${milliseconds}ms`) ?? '';
      expect(parseDuration(normal)).toBe(milliseconds);
      expect(normalizeDuration(normal)).toBe(normal);
    }),
  );
});
