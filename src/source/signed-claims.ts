/** `base64url(claims) . base64url(HMAC-SHA256 of the claims)`; the claims are canonical JSON. Source: repository.md §3.2, §4.1. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalJson, canonicalizeText } from '../lib/canonical-json.js';
import { decodeText } from '../lib/decode.js';
import type { Decoder } from '../lib/decode.js';
import { CodedError } from '../lib/errors.js';
import { milliseconds } from '../lib/instant.js';
import type { Instant } from '../lib/instant.js';
import type { JsonObject } from '../lib/json.js';
import { publisherBounds as bounds } from './protocol.js';

/** `expired` covers what is not valid yet, too. */
export type CapabilityErrorCode = 'secret' | 'claims' | 'malformed' | 'signature' | 'expired' | 'mismatch';

/** A capability is not for this request. The text holds neither the capability nor the secret. */
export class CapabilityError extends CodedError<CapabilityErrorCode> {}

interface Lifetime {
  readonly issuedAt: Instant;
  readonly expiresAt: Instant;
}

/** Longest capability that is read at all; bytes. */
const longest = 16 * 1024;

/** Throws {@link CapabilityError} `claims` for what {@link openClaims} would not take. */
export function signClaims<T extends Lifetime>(secret: string, decoder: Decoder<T>, claims: JsonObject): string {
  checkSecret(secret);
  const text = canonicalJson(claims);
  checkLife(claimsOf(decoder, text));
  return `${Buffer.from(text).toString('base64url')}.${mac(secret, text).toString('base64url')}`;
}

/** The claims, once signature and times are right. `now`: milliseconds since 1970. */
export function openClaims<T extends Lifetime>(secret: string, token: string, decoder: Decoder<T>, now: number): T {
  checkSecret(secret);
  const parts = token.length > longest ? [] : token.split('.').map(bytesOf);
  const [payload, signature] = parts;
  if (parts.length !== 2 || !payload || !signature)
    throw capabilityProblem('malformed', 'it is not two base64url parts joined by a full stop');
  const expected = mac(secret, payload);
  if (signature.length !== expected.length || !timingSafeEqual(signature, expected))
    throw capabilityProblem('signature', 'another secret signed it');
  if (!isCanonical(payload)) throw capabilityProblem('claims', 'its claims are not canonical JSON');
  const claims = claimsOf(decoder, payload);
  checkLife(claims);
  if (now >= milliseconds(claims.expiresAt)) throw capabilityProblem('expired', 'it has expired');
  if (now < milliseconds(claims.issuedAt) - bounds.clockSkew) throw capabilityProblem('expired', 'it is not valid yet');
  return claims;
}

export function capabilityProblem(code: CapabilityErrorCode, says: string, cause?: unknown): CapabilityError {
  return new CapabilityError(code, { at: 'capability', says }, { cause });
}

/** Undefined for what another text encodes too: one capability has one spelling. */
function bytesOf(part: string): Buffer | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(part)) return undefined;
  const bytes = Buffer.from(part, 'base64url');
  return bytes.toString('base64url') === part ? bytes : undefined;
}

function checkLife({ issuedAt, expiresAt }: Lifetime): void {
  const life = milliseconds(expiresAt) - milliseconds(issuedAt);
  if (!(life > 0 && life <= bounds.longestCapabilityLife))
    throw capabilityProblem('claims', `it is not valid for at most ${bounds.longestCapabilityLife / 1000} s`);
}

function claimsOf<T>(decoder: Decoder<T>, text: string | Uint8Array): T {
  try {
    return decodeText(decoder, text);
  } catch (cause) {
    throw capabilityProblem('claims', 'its claims are not those of this kind of capability', cause);
  }
}

function isCanonical(payload: Buffer): boolean {
  try {
    return canonicalizeText(payload) === payload.toString();
  } catch {
    return false;
  }
}

function mac(secret: string, text: string | Uint8Array): Buffer {
  return createHmac('sha256', secret).update(text).digest();
}

function checkSecret(secret: string): void {
  if (Buffer.byteLength(secret) < bounds.shortestSecret)
    throw capabilityProblem('secret', `the secret has fewer than ${bounds.shortestSecret} bytes`);
}
