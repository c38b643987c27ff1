import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalCidr, isCidr, isWithin, openBits, overlaps } from '../../src/lib/cidr.js';

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

describe('the one spelling of a range', () => {
  test.each([
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['FD00:0:0::A/128', 'fd00::a/128'],
    ['fd00:0:0:1:0:0:0:1/128', 'fd00:0:0:1::1/128'],
    ['1:0:0:2:3:0:0:4/128', '1::2:3:0:0:4/128'],
    ['1:0:2:3:4:5:6:7/128', '1:0:2:3:4:5:6:7/128'],
    ['fe80::1/10', 'fe80::/10'],
    ['::ffff:10.0.0.1/128', '10.0.0.1/32'],
    ['::ffff:0a00:1/104', '10.0.0.0/8'],
    ['::ffff:0:0/96', '0.0.0.0/0'],
    ['::ffff:0:0/95', '::fffe:0:0/95'],
    ['::/0', '::/0'],
    ['::/128', '::/128'],
    ['::1/128', '::1/128'],
    ['1::/16', '1::/16'],
  ])('%s is %s', (text, canonical) => {
    expect(canonicalCidr(text)).toBe(canonical);
  });

  test('is kept by a second time, and means the same addresses', () => {
    const group = fc.integer({ min: 0, max: 0xffff }).map((value) => (value % 3 === 0 ? '0' : value.toString(16)));
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), fc.integer({ min: 0, max: 128 }), (groups, prefix) => {
        const text = `${groups.join(':')}/${prefix}`;
        const canonical = canonicalCidr(text) ?? '';
        expect(canonicalCidr(canonical)).toBe(canonical);
        if (canonical.includes(':')) expect([overlaps(text, canonical), openBits(canonical)]).toEqual([true, 128 - prefix]);
      }),
    );
  });
});

test('no range has no spelling and no open bits', () => {
  expect([canonicalCidr('10.0.0.0'), openBits('10.0.0.0'), openBits('10.0.0.0/24')]).toEqual([undefined, undefined, 8]);
});

test.each([
  ['10.0.0.0/8', '10.1.2.3/32', true],
  ['10.1.2.3/32', '10.0.0.0/8', true],
  ['10.0.0.0/8', '11.0.0.0/8', false],
  ['::/0', 'fe80::/10', true],
  ['::/0', '10.0.0.0/8', false],
])('%s and %s share an address: %s', (one, other, expected) => {
  expect(overlaps(one, other)).toBe(expected);
});
