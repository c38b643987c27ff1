import { expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { credentialsIn } from './support/leaks.js';

const secret = randomBytes(32).toString('base64url');
const credentials = new Map([['token', secret]]);
const longer = (before: number) => Buffer.from(`${'a'.repeat(before)}${secret}and more`);

test.each([
  { what: 'as it is', text: `--token=${secret} -v` },
  { what: 'in base64', text: Buffer.from(secret).toString('base64') },
  { what: 'in base64 without padding, for URLs', text: Buffer.from(secret).toString('base64url') },
  ...[1, 2, 3, 4].map((before) => ({
    what: `in the base64 of something longer, after ${before}`,
    text: longer(before).toString('base64'),
  })),
])('a credential is found $what', ({ text }) => {
  expect(credentialsIn(text, credentials)).toEqual(['token']);
});

test('a text without it holds none', () => {
  expect(credentialsIn(randomBytes(4096).toString('base64'), credentials)).toEqual([]);
});
