import { canonicalJson, canonicalizeText } from '../lib/canonical-json.js';
import { digest, instantText, oneOf, record, text } from '../lib/decode.js';
import type { Decoded } from '../lib/decode.js';
import { instant } from '../lib/instant.js';
import { equalJson } from '../lib/json.js';
import type { JsonObject } from '../lib/json.js';
import { sha256Hex } from '../lib/sha256.js';
import type { Digest } from '../lib/sha256.js';
import { operationMetadata } from './messages.js';
import type { OperationMetadata } from './messages.js';
import { operationPaths, publisherBounds } from './protocol.js';
import type { Operation } from './protocol.js';
import { capabilityProblem, openClaims, signClaims } from './signed-claims.js';

const version = 'orka.workspace-publisher.capability.v1';
const audience = 'orka.workspace-publisher';

const operationClaims = record({
  version: oneOf(version),
  audience: oneOf(audience),
  operation: oneOf(...(Object.keys(operationPaths) as Operation[])),
  method: oneOf('POST'),
  path: text({ max: 253 }),
  metadata: operationMetadata,
  requestDigest: digest,
  issuedAt: instantText,
  expiresAt: instantText,
});
export type OperationClaims = Decoded<typeof operationClaims>;

/** The request that a capability is for. */
export interface OperationRequest {
  readonly operation: Operation;
  readonly metadata: OperationMetadata;
  readonly requestDigest: Digest;
}

/** Digest of a request: over protocol, method, path and the canonical body. Source: repository.md §3.2. */
export function operationRequestDigest(path: string, body: string | Uint8Array): Digest {
  return `sha256:${sha256Hex(`orka.workspace-publisher.request.v1\nPOST\n${path}\n${canonicalizeText(body)}`)}`;
}

/** The body that is sent, with its digest. */
export function operationBody(
  operation: Operation,
  message: JsonObject,
): { readonly body: string; readonly requestDigest: Digest } {
  const body = canonicalJson(message);
  return { body, requestDigest: operationRequestDigest(operationPaths[operation], body) };
}

/** `now`: milliseconds since 1970. Throws `CapabilityError`. */
export function signOperation(
  secret: string,
  { operation, metadata, requestDigest }: OperationRequest,
  now: number,
  life: number = publisherBounds.capabilityLife,
): string {
  return signClaims(secret, operationClaims, {
    version,
    audience,
    operation,
    method: 'POST',
    path: operationPaths[operation],
    metadata: { ...metadata },
    requestDigest,
    issuedAt: instant(now),
    expiresAt: instant(now + life),
  });
}

/** Throws `CapabilityError` unless the capability was made for exactly this request. */
export function verifyOperation(secret: string, capability: string, expected: OperationRequest, now: number): OperationClaims {
  const claims = openClaims(secret, capability, operationClaims, now);
  const isSame =
    claims.operation === expected.operation &&
    claims.path === operationPaths[expected.operation] &&
    claims.requestDigest === expected.requestDigest &&
    equalJson(claims.metadata, expected.metadata);
  if (!isSame) throw capabilityProblem('mismatch', 'it was signed for another request');
  return claims;
}
