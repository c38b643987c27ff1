/**
 * Capability tokens: the controller's proof that one request, or one look at the status, was meant for one instance.
 * `base64url(claims) . base64url(HMAC-SHA256 of the claims)`; the claims are canonical JSON. Source: dispatch.md §5.2, workload.md §6.1.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { canonicalizeText, canonicalJson } from '../lib/canonical-json.js';
import { CodedError } from '../lib/errors.js';
import type { JsonObject } from '../lib/json.js';
import { decodeText, digest, identifier, instantText, oneOf, optional, record } from '../lib/decode.js';
import type { Decoded, Decoder } from '../lib/decode.js';
import { fence, fenceMismatch } from './fence.js';
import type { Fence } from './fence.js';
import { instant, nanoseconds } from '../lib/instant.js';
import type { Instant } from '../lib/instant.js';
import { bounds, protocol, shortestSecret } from './protocol.js';

/** `expired` is told apart: such a request may have been good once. Everything else is a forgery or a mistake. */
export type CapabilityErrorCode = 'secret' | 'claims' | 'malformed' | 'signature' | 'expired' | 'mismatch';

export class CapabilityError extends CodedError<CapabilityErrorCode> {}

const version = `${protocol}.capability.1`;
const statusAudience = `${protocol}/status`;

const operationClaims = record({
  version: oneOf(version),
  audience: oneOf(protocol),
  fence,
  operationID: identifier,
  requestDigest: digest,
  expiresAt: instantText,
});

const statusClaims = record({
  version: oneOf(version),
  audience: oneOf(statusAudience),
  binding: record({ runtimeProfileDigest: digest, runtimeInstanceID: optional(identifier) }),
  nonce: identifier,
  expiresAt: instantText,
});

/** What a token of an operation covers: the same members as the metadata of its request. */
export interface OperationGrant {
  readonly fence: Fence;
  readonly operationID: string;
  readonly requestDigest: string;
  readonly expiresAt: Instant;
}

/** The instance that a look at the status is meant for. Without an instance: the first look at a new one. */
export type StatusBinding = Decoded<typeof statusClaims>['binding'];

/** A token for one request. Throws {@link CapabilityError} `claims` for what could never be accepted, an expired grant included. */
export function signOperation(secret: string, grant: OperationGrant, now: Instant): string {
  const { fence: target, operationID, requestDigest, expiresAt } = grant;
  return signed(
    secret,
    operationClaims,
    { version, audience: protocol, fence: target, operationID, requestDigest, expiresAt },
    now,
  );
}

/** What a token of an operation grants, whichever request it comes with. Throws {@link CapabilityError} unless this pool signed it and it is valid. */
export function openOperation(secret: string, token: string, now: Instant): OperationGrant {
  return opened(secret, token, operationClaims, now);
}

/**
 * Throws {@link CapabilityError} unless `token` was made for exactly this request. Expiry is reached at its instant.
 * `session: false` ignores the session of the fence.
 */
export function verifyOperation(
  secret: string,
  token: string,
  expected: OperationGrant,
  { now, session }: { readonly now: Instant; readonly session: boolean },
): void {
  const claims = openOperation(secret, token, now);
  if (session && claims.fence.runtimeSessionUID === undefined) throw problem('mismatch', 'its fence names no session');
  const sameTime = nanoseconds(claims.expiresAt) === nanoseconds(expected.expiresAt);
  const same =
    fenceMismatch(claims.fence, expected.fence, { session }) === undefined &&
    claims.operationID === expected.operationID &&
    claims.requestDigest === expected.requestDigest &&
    sameTime;
  if (!same) throw problem('mismatch', 'it was signed for another request');
}

/** A token for one look at the status. @default nonce: 16 random bytes; expiresAt: one minute after `now` */
export function signStatus(
  secret: string,
  binding: StatusBinding,
  { now, nonce, expiresAt }: { readonly now: Instant; readonly nonce?: string; readonly expiresAt?: Instant },
): string {
  const claims = {
    version,
    audience: statusAudience,
    binding: { ...binding },
    nonce: nonce ?? randomBytes(16).toString('base64url'),
    expiresAt: expiresAt ?? instant(Date.parse(now) + bounds.statusCapabilityLife),
  };
  return signed(secret, statusClaims, claims, now);
}

/** Nonce and expiry of a token that was made for this instance. Whether the nonce was used before is for the caller to say. */
export function verifyStatus(
  secret: string,
  token: string,
  expected: { readonly runtimeProfileDigest: string; readonly runtimeInstanceID: string },
  now: Instant,
): { readonly nonce: string; readonly expiresAt: Instant } {
  const { binding, nonce, expiresAt } = opened(secret, token, statusClaims, now);
  if (binding.runtimeProfileDigest !== expected.runtimeProfileDigest) throw problem('mismatch', 'it is for another profile');
  if (binding.runtimeInstanceID !== undefined && binding.runtimeInstanceID !== expected.runtimeInstanceID)
    throw problem('mismatch', 'it is for another instance');
  return { nonce, expiresAt };
}

function signed(secret: string, decoder: Decoder<{ readonly expiresAt: Instant }>, claims: JsonObject, now: Instant): string {
  checkSecret(secret);
  const text = canonicalJson(claims);
  const { expiresAt } = claimsOf('claims', decoder, text);
  if (isExpired(expiresAt, now)) throw problem('claims', 'it has expired');
  return `${Buffer.from(text).toString('base64url')}.${mac(secret, text).toString('base64url')}`;
}

/** The claims of a token, once its signature is known to be right. */
function opened<T extends { readonly expiresAt: Instant }>(secret: string, token: string, decoder: Decoder<T>, now: Instant): T {
  checkSecret(secret);
  const parts = token.split('.').map((part) => (/^[A-Za-z0-9_-]+$/.test(part) ? Buffer.from(part, 'base64url') : undefined));
  const [payload, signature] = parts;
  if (parts.length !== 2 || !payload || !signature)
    throw problem('malformed', 'it is not two base64url parts joined by a full stop');
  const expected = mac(secret, payload);
  if (signature.length !== expected.length || !timingSafeEqual(signature, expected))
    throw problem('signature', 'its signature is not of this pool');
  if (!isCanonical(payload)) throw problem('claims', 'its claims are not canonical JSON');
  const claims = claimsOf('claims', decoder, payload);
  if (isExpired(claims.expiresAt, now)) throw problem('expired', 'it has expired');
  return claims;
}

function claimsOf<T>(code: CapabilityErrorCode, decoder: Decoder<T>, text: string | Uint8Array): T {
  try {
    return decodeText(decoder, text);
  } catch (cause) {
    throw new CapabilityError(code, { at: 'capability', says: 'its claims are not those of this kind of token' }, { cause });
  }
}

function isCanonical(payload: Buffer): boolean {
  try {
    return canonicalizeText(payload) === payload.toString();
  } catch {
    return false;
  }
}

function isExpired(expiresAt: Instant, now: Instant): boolean {
  const [end, at] = [nanoseconds(expiresAt), nanoseconds(now)];
  return end === undefined || at === undefined || at >= end;
}

function mac(secret: string, text: string | Uint8Array): Buffer {
  return createHmac('sha256', secret).update(text).digest();
}

function checkSecret(secret: string): void {
  if (Buffer.byteLength(secret) < shortestSecret) throw problem('secret', `the secret has fewer than ${shortestSecret} bytes`);
}

function problem(code: CapabilityErrorCode, says: string): CapabilityError {
  return new CapabilityError(code, { at: 'capability', says });
}
