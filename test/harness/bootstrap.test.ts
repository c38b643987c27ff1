import { describe, expect, test } from '@jest/globals';
import {
  BootstrapError,
  bootstrapBody,
  bootstrapPublicKey,
  parseBootstrapBody,
  signBootstrap,
  verifyBootstrap,
} from '../../src/harness/bootstrap.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

interface Signing {
  readonly body: string;
  readonly nonce: string;
  readonly signingSeed: string;
}
interface Signed {
  readonly publicKey: string;
  readonly signature?: string;
  readonly signatureError?: boolean;
}
const { signing } = readVectors<{ readonly signing: readonly Vector<Signing, Signed>[] }>('bootstrap');

describe('golden signatures', () => {
  test.each(signing)('$name', ({ input, output }) => {
    expect(bootstrapPublicKey(input.signingSeed)).toBe(output.publicKey);
    const sign = () => signBootstrap(input.signingSeed, input.nonce, input.body);
    if (output.signatureError) expect(sign).toThrow(BootstrapError);
    else {
      expect(sign()).toBe(output.signature);
      expect(verifyBootstrap(output.publicKey, input.nonce, Buffer.from(input.body), sign())).toBe(true);
    }
  });
});

const seed = 's'.repeat(43);
const credentials = { controllerToken: 'c'.repeat(32), capabilitySecret: 'k'.repeat(32), providerToken: 'p' };

test('a signature does not verify for another nonce, body or key', () => {
  const body = Buffer.from(bootstrapBody(credentials));
  const signature = signBootstrap(seed, 'nonce', body);
  const key = bootstrapPublicKey(seed);
  expect(verifyBootstrap(key, 'nonce', body, signature)).toBe(true);
  expect(verifyBootstrap(key, 'nonce2', body, signature)).toBe(false);
  expect(verifyBootstrap(key, 'nonce', Buffer.concat([body, Buffer.from(' ')]), signature)).toBe(false);
  expect(verifyBootstrap(bootstrapPublicKey(`${seed}s`), 'nonce', body, signature)).toBe(false);
  expect(verifyBootstrap('no key', 'nonce', body, signature)).toBe(false);
});

test('a delivery is trimmed by the sender and kept as it is by the receiver', () => {
  expect(bootstrapBody({ ...credentials, providerToken: ' p ' })).toBe(JSON.stringify(credentials));
  const padded = { ...credentials, controllerToken: ` ${credentials.controllerToken}` };
  expect(parseBootstrapBody(Buffer.from(JSON.stringify(padded)))).toEqual(padded);
});

test('a delivery with a short token is not even signed', () => {
  expect(() => bootstrapBody({ ...credentials, controllerToken: 'short' })).toThrow(BootstrapError);
});

test('an error of a delivery never quotes a credential', () => {
  const secret = 'hunter2hunter2';
  const body = JSON.stringify({ ...credentials, controllerToken: secret });
  expect(() => parseBootstrapBody(Buffer.from(body))).toThrow(
    expect.not.objectContaining({ message: expect.stringContaining(secret) }),
  );
});
