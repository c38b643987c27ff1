import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isCidr, isWithin } from '../../src/lib/cidr.js';

describe('a range', () => {
  test.each([
    '10.0.0.0/8',
    '0.0.0.0/0',
    '10.1.2.3/32',
    '::/0',
    'fd00::/8',
    'fe80::1/128',
    '1:2:3:4:5:6:7:8/64',
    '::ffff:10.0.0.1/120',
  ])('may be %s', (text) => {
    expect(isCidr(text)).toBe(true);
  });

  test.each([
    '10.0.0.0',
    '10.0.0/8',
    '10.0.0.0/33',
    '10.0.0.0/08',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '::/129',
    'fe80::1%eth0/64',
    '',
    '/8',
  ])('is not %s', (text) => {
    expect(isCidr(text)).toBe(false);
  });
});

describe('a range is inside another one', () => {
  test.each([
    ['10.1.0.0/16', '10.0.0.0/8', true],
    ['10.1.2.3/32', '0.0.0.0/0', true],
    ['fd12::/16', 'fc00::/7', true],
    ['::ffff:10.0.0.0/104', '::/0', true],
    ['11.0.0.0/16', '10.0.0.0/8', false],
    ['10.0.0.0/8', '10.0.0.0/8', false],
    ['0.0.0.0/0', '10.0.0.0/8', false],
    ['fd00::/8', '0.0.0.0/0', false],
    ['none', '0.0.0.0/0', false],
  ])('%s in %s: %s', (inner, outer, expected) => {
    expect(isWithin(inner, outer)).toBe(expected);
  });

  test('of which it has the first bits, and more', () => {
    const byte = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(
        byte,
        byte,
        byte,
        byte,
        fc.integer({ min: 1, max: 32 }),
        fc.integer({ min: 1, max: 32 }),
        (a, b, c, d, long, cut) => {
          const address = [a, b, c, d].join('.');
          const short = Math.max(0, long - cut);
          expect(isWithin(`${address}/${long}`, `${address}/${short}`)).toBe(true);
          expect(isWithin(`${address}/${short}`, `${address}/${long}`)).toBe(false);
        },
      ),
    );
  });
});
