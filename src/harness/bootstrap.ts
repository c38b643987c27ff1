/**
 * How a sandbox gets its credentials: nothing that a sandbox provider can read holds any, so the controller delivers them once,
 * signed with a key of which the sandbox knows the public half. Source: workload.md §5.
 */
import { createHmac, createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { CodedError } from '../lib/errors.js';
import { isObject } from '../lib/json.js';
import { parseDocument } from '../lib/decode.js';
import { shortestSecret } from './protocol.js';

/** What is delivered. Values are kept as they are: a repeat must be equal to the byte. */
export interface Credentials {
  /** Bearer token of the controller; at least 32 bytes. */
  readonly controllerToken: string;
  /** Key of capability tokens; at least 32 bytes. */
  readonly capabilitySecret: string;
  /** Bearer token towards the provider proxy. */
  readonly providerToken: string;
}

/** `input`: what was to be signed cannot be. `json`, `shape`: a body that was received is no credentials. */
export class BootstrapError extends CodedError<'input' | 'json' | 'shape'> {}

const seedMessage = 'orka.harness.v2/credential-bootstrap-signing-seed/v1';
const signaturePrefix = Buffer.from('orka.harness.v2/credential-bootstrap-signature/v1');
/** DER of an Ed25519 key up to its 32 raw bytes. */
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex');
const spki = Buffer.from('302a300506032b6570032100', 'hex');

/** The private key of a pool. The seed is used as the text that its Secret holds, not decoded. */
function privateKey(signingSeed: string): KeyObject {
  if (Buffer.byteLength(signingSeed) < shortestSecret)
    throw new BootstrapError('input', {
      at: 'credential bootstrap',
      field: 'signing seed',
      foundKind: `${Buffer.byteLength(signingSeed)} bytes`,
      allowed: `at least ${shortestSecret} bytes`,
    });
  const seed = createHmac('sha256', signingSeed).update(seedMessage).digest();
  return createPrivateKey({ key: Buffer.concat([pkcs8, seed]), format: 'der', type: 'pkcs8' });
}

/** Public key of a pool's signing seed: 32 bytes, base64url without padding. */
export function bootstrapPublicKey(signingSeed: string): string {
  const der = createPublicKey(privateKey(signingSeed)).export({ format: 'der', type: 'spki' });
  return der.subarray(spki.length).toString('base64url');
}

/** The bytes of a delivery. Values are trimmed; too short ones are refused here already. */
export function bootstrapBody(credentials: Credentials): string {
  const body = {
    controllerToken: credentials.controllerToken.trim(),
    capabilitySecret: credentials.capabilitySecret.trim(),
    providerToken: credentials.providerToken.trim(),
  };
  if (!hasShape(body)) throw new BootstrapError('input', { at: 'credential bootstrap', allowed: shape });
  return JSON.stringify(body);
}

/** Signature over nonce and exact bytes, base64url without padding. */
export function signBootstrap(signingSeed: string, nonce: string, body: string | Uint8Array): string {
  const key = privateKey(signingSeed);
  const [trimmed, bytes] = [nonce.trim(), Buffer.from(body)];
  if (trimmed === '' || bytes.length === 0)
    throw new BootstrapError('input', { at: 'credential bootstrap', says: 'the nonce or the body is empty' });
  return sign(null, signedMessage(trimmed, bytes), key).toString('base64url');
}

/** Whether a signature belongs to nonce and body. Malformed keys and signatures are wrong ones. */
export function verifyBootstrap(publicKey: string, nonce: string, body: Uint8Array, signature: string): boolean {
  const [key, raw] = [fromBase64Url(publicKey.trim(), 32), fromBase64Url(signature.trim(), 64)];
  if (!key || !raw || nonce.trim() === '' || body.length === 0) return false;
  const object = createPublicKey({ key: Buffer.concat([spki, key]), format: 'der', type: 'spki' });
  return verify(null, signedMessage(nonce.trim(), Buffer.from(body)), object, raw);
}

/** Whether a text is a public key as the environment of a sandbox holds it. */
export function isPublicKey(text: string): boolean {
  return fromBase64Url(text.trim(), 32) !== undefined;
}

/** The credentials in a body. Throws {@link BootstrapError}: `json` for what is no such object, `shape` for values too short. */
export function parseBootstrapBody(body: Uint8Array): Credentials {
  const document = parse(body) ?? {};
  if (!isObject(document)) throw notCredentials();
  const values = { controllerToken: '', capabilitySecret: '', providerToken: '' };
  for (const [name, value] of Object.entries(document)) {
    if (!Object.hasOwn(values, name) || typeof value !== 'string') throw notCredentials();
    values[name as keyof typeof values] = value;
  }
  if (!hasShape(values)) throw new BootstrapError('shape', { at: 'credential bootstrap', allowed: shape });
  return values;
}

function parse(body: Uint8Array) {
  try {
    return parseDocument(body);
  } catch (cause) {
    throw notCredentials(cause);
  }
}

function notCredentials(cause?: unknown): BootstrapError {
  return new BootstrapError(
    'json',
    { at: 'credential bootstrap', allowed: 'one JSON object of controllerToken, capabilitySecret and providerToken, all texts' },
    { cause },
  );
}

const shape = `controllerToken and capabilitySecret of at least ${shortestSecret} bytes, a providerToken that is not empty`;

function hasShape({ controllerToken, capabilitySecret, providerToken }: Credentials): boolean {
  const long = [controllerToken, capabilitySecret].every((value) => Buffer.byteLength(value.trim()) >= shortestSecret);
  return long && providerToken.trim() !== '';
}

/** Lengths before contents, so that no two pairs of nonce and body meet in one message. */
function signedMessage(nonce: string, body: Buffer): Buffer {
  const name = Buffer.from(nonce);
  const [nonceLength, bodyLength] = [Buffer.alloc(4), Buffer.alloc(8)];
  nonceLength.writeUInt32BE(name.length);
  bodyLength.writeBigUInt64BE(BigInt(body.length));
  return Buffer.concat([signaturePrefix, nonceLength, name, bodyLength, body]);
}

function fromBase64Url(text: string, length: number): Buffer | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.length === length ? bytes : undefined;
}
