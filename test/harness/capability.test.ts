import { describe, expect, test } from '@jest/globals';
import { CapabilityError, signOperation, signStatus, verifyOperation, verifyStatus } from '../../src/harness/capability.js';
import type { OperationGrant, StatusBinding } from '../../src/harness/capability.js';
import { readVectors } from '../support/vectors.js';

interface SigningVector {
  readonly name: string;
  readonly kind: 'operation' | 'status';
  readonly input: {
    readonly secret: string;
    readonly claims: OperationGrant & { readonly binding: StatusBinding; readonly nonce: string };
  };
  readonly output: { readonly value?: string; readonly canonicalClaims?: string; readonly error?: boolean };
}
interface VerificationVector {
  readonly name: string;
  readonly kind: 'operation' | 'status';
  readonly input: {
    readonly secret: string;
    readonly token: string;
    readonly now: string;
    readonly requireSession?: boolean;
    readonly expected?: OperationGrant;
    readonly expectedBinding?: { readonly runtimeProfileDigest: string; readonly runtimeInstanceID: string };
  };
  readonly output: { readonly ok: boolean; readonly nonce?: string };
}
const vectors = readVectors<{
  readonly capabilitySigning: readonly SigningVector[];
  readonly capabilityVerification: readonly VerificationVector[];
}>('bootstrap');

describe('golden tokens', () => {
  test.each(vectors.capabilitySigning)('$name', ({ kind, input: { secret, claims }, output }) => {
    const now = '2026-01-01T00:00:00Z';
    const sign = () =>
      kind === 'operation'
        ? signOperation(secret, claims, now)
        : signStatus(secret, claims.binding, { now, nonce: claims.nonce, expiresAt: claims.expiresAt });
    if (output.error) {
      expect(sign).toThrow(CapabilityError);
      return;
    }
    expect(sign()).toBe(output.value);
    expect(Buffer.from(sign().split('.')[0] ?? '', 'base64url').toString()).toBe(output.canonicalClaims);
  });
});

/** Deviations: name of the vector, why, and what ours answers. */
const deviations: Readonly<Record<string, boolean>> = {
  // Go's decoder skips line breaks inside base64; a header cannot hold one, so a token that does is no token.
  'newline-inside-signature': false,
};

describe('golden verifications', () => {
  test.each(vectors.capabilityVerification)('$name', ({ name, kind, input, output }) => {
    const { secret, token, now } = input;
    const verify = () =>
      kind === 'operation'
        ? verifyOperation(secret, token, input.expected!, { now, session: input.requireSession === true })
        : verifyStatus(secret, token, input.expectedBinding!, now).nonce;
    if (deviations[name] ?? output.ok) expect(verify()).toBe(output.nonce);
    else expect(verify).toThrow(CapabilityError);
  });
});

test('an expired token is told apart from a forged one', () => {
  const vector = vectors.capabilityVerification.find(({ name }) => name === 'expired-exactly-now')!;
  const { secret, token, expected, now } = vector.input;
  expect(() => verifyOperation(secret, token, expected!, { now, session: false })).toThrow(
    expect.objectContaining({ code: 'expired' }),
  );
});
