import { expect, test } from '@jest/globals';
import { describeFinding } from '../../src/lib/errors.js';

test('a finding says object, field, what was found and what is allowed', () => {
  const finding = { at: 'Task demo/smoke', field: 'spec.prompt', found: '', allowed: 'a text' };
  expect(describeFinding(finding)).toBe('Task demo/smoke: spec.prompt: found "", allowed: a text');
});

test.each([
  ['a password', 'https://me:secret@example.test/a/b'],
  ['a token', 'https://secret@example.test/a/b'],
  ['a password with an @', 'https://me:sec@secret@example.test/a/b'],
  ['a password with a slash', 'https://me:sec/secret@example.test/a/b'],
  ['a password with a quotation mark', 'https://me:sec"secret@example.test/a/b'],
  ['one deep inside', { workspace: { gitRepo: 'https://me:secret@example.test/a/b' } }],
])('a URL is told without what may be a credential: %s', (_, found) => {
  const told = describeFinding({ at: 'Task demo/smoke', found });
  expect(told).toContain('https://***@example.test/a/b');
  expect(told).not.toContain('secret');
});

test('the query of a URL is not told', () => {
  const told = describeFinding({
    at: 'Task demo/smoke',
    found: { gitRepo: 'https://example.test/a/b?token=secret&x', ref: 'main' },
  });
  expect(told).toBe('Task demo/smoke: found {"gitRepo":"https://example.test/a/b?***","ref":"main"}');
});

test('what is too long is cut', () => {
  expect(describeFinding({ at: 'x', found: 'y'.repeat(500) })).toHaveLength('x: found '.length + 201);
});

test('a megabyte is searched in linear time', () => {
  for (const found of ['://'.repeat(350_000), '@://'.repeat(250_000), '\\"'.repeat(250_000)])
    expect(describeFinding({ at: 'x', found }).length).toBeLessThan(300);
});

test('no character is split where a value is cut', () => {
  expect(describeFinding({ at: 'x', found: `${'y'.repeat(198)}😀` }).isWellFormed()).toBe(true);
});
