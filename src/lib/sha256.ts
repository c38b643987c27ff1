import { createHash } from 'node:crypto';

/** `sha256:` and 64 lower-case hexadecimal digits. */
export type Digest = `sha256:${string}`;

const digestForm = /^sha256:[0-9a-f]{64}$/;

export function isDigest(value: unknown): value is Digest {
  return typeof value === 'string' && digestForm.test(value);
}

/** SHA-256 in lower-case hexadecimal. Text counts as its UTF-8 bytes. */
export function sha256Hex(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * Digest of a text, set apart from every other use of the same text by `prefix`: the hash runs over the prefix, one NUL
 * byte and the text. Without a prefix it is the plain hash.
 */
export function digestOf(text: string | Uint8Array, prefix?: string): Digest {
  const hash = createHash('sha256');
  if (prefix !== undefined) hash.update(`${prefix}\0`);
  return `sha256:${hash.update(text).digest('hex')}`;
}
