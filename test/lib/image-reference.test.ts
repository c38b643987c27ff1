import { describe, expect, test } from '@jest/globals';
import { isPinnedImage, isUnbuiltImage, parseImageReference } from '../../src/lib/image-reference.js';

const hex = '0123456789abcdef'.repeat(4);
const digest = `sha256:${hex}`;

test.each([
  ['busybox', { path: 'busybox' }],
  ['busybox:1.36', { path: 'busybox', tag: '1.36' }],
  ['library/busybox', { path: 'library/busybox' }],
  ['docker.io/library/busybox', { host: 'docker.io', path: 'library/busybox' }],
  ['localhost/x', { host: 'localhost', path: 'x' }],
  ['localhost:5000/x:y', { host: 'localhost:5000', path: 'x', tag: 'y' }],
  ['UPPER/x', { host: 'UPPER', path: 'x' }],
  ['[fd00::1]:5000/a/b', { host: '[fd00::1]:5000', path: 'a/b' }],
  ['a.b/c__d/e-f--g.h_i', { host: 'a.b', path: 'c__d/e-f--g.h_i' }],
  [`registry.example:443/team/x:v1@${digest}`, { host: 'registry.example:443', path: 'team/x', tag: 'v1', digest }],
])('the parts of %s are known', (text, parts) => {
  expect(parseImageReference(text)).toEqual(parts);
});

test.each([
  '',
  ' ',
  ' busybox',
  'busybox ',
  'https://registry.example/x',
  'UPPER/X',
  'Busybox',
  '/x',
  'x/',
  'a//b',
  ':',
  ':tag',
  'x:',
  'x:a b',
  `x:${'t'.repeat(129)}`,
  'x@',
  'x@sha256:abc',
  `@${digest}`,
  `:@${digest}`,
  `x:@${digest}`,
  `x@${digest}@${digest}`,
  `x@${digest}:tag`,
  'registry.example:port/x',
  'registry.example:70000/x',
  '-a/b:c?',
  'a..b/c',
  'x_-y',
  `${'p/'.repeat(128)}x`,
  'x\n',
])('%j is no reference', (text) => {
  expect(parseImageReference(text)).toBeUndefined();
});

describe('an image is pinned', () => {
  test.each([`x@${digest}`, `registry.example:5000/a/b:v1@${digest}`])('as %s', (text) => {
    expect(isPinnedImage(text)).toBe(true);
  });

  test.each(['x', 'x:latest', `x@sha512:${hex}${hex}`, `x@sha256:${hex.toUpperCase()}`, `https://r/x@${digest}`])(
    'not as %s',
    (text) => {
      expect(isPinnedImage(text)).toBe(false);
    },
  );
});

test('a digest of zeros stands for an image that was not built', () => {
  expect([isUnbuiltImage(`x@sha256:${'0'.repeat(64)}`), isUnbuiltImage(`x@${digest}`)]).toEqual([true, false]);
});
