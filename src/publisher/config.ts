import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { isCidr } from '../lib/cidr.js';
import { CodedError } from '../lib/errors.js';
import { checked, decodeText, flag, integer, list, optional, record, text, WireError } from '../lib/decode.js';
import type { Decoded } from '../lib/decode.js';
import { codeOf } from './log.js';

const isHost = (host: string): boolean =>
  isIP(host) !== 0 ||
  (host.length <= 253 && host.split('.').every((part) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(part)));

const forge = checked(
  record({
    host: checked(text({ min: 1, max: 253 }), (host) => (isHost(host) ? undefined : 'a lower-case DNS name or an address')),
    port: optional(integer(1, 65_535)),
    ca: optional(checked(text({ max: 256 * 1024 }), (pem) => (isCertificates(pem) ? undefined : 'certificates in PEM'))),
    private: optional(flag),
    cidr: optional(checked(text({ max: 64 }), (range) => (isCidr(range) ? undefined : 'a range like 10.0.0.0/8'))),
  }),
  ({ private: isPrivate, cidr }) => (cidr !== undefined && isPrivate !== true ? 'cidr only beside private: true' : undefined),
);

const publisherConfig = record({
  forges: checked(list(forge, { max: 256 }), (forges) =>
    new Set(forges.map(({ host, port = 443 }) => `${host}:${port}`)).size < forges.length ? 'each host and port once' : undefined,
  ),
  limits: optional(
    record({
      concurrentOperations: optional(integer(1, 64)),
      operationSeconds: optional(integer(1, 3600)),
      journalRecords: optional(integer(16, 100_000)),
      journalBytes: optional(integer(1024 * 1024)),
      artifactStoreBytes: optional(integer(1024 * 1024)),
      cacheBytes: optional(integer(0)),
    }),
  ),
});
/** Content of `config.json`. */
export type PublisherConfig = Decoded<typeof publisherConfig>;

/** The file cannot be used. */
class ConfigError extends CodedError<'config'> {}

/** Throws {@link ConfigError}. */
export async function readConfig(file: string): Promise<PublisherConfig> {
  try {
    return decodeText(publisherConfig, await readFile(file));
  } catch (cause) {
    if (cause instanceof WireError) {
      const { at: _, ...finding } = cause.finding;
      throw new ConfigError('config', { ...finding, at: file }, { cause });
    }
    throw new ConfigError('config', { at: file, says: `cannot be read (${codeOf(cause)})` }, { cause });
  }
}

function isCertificates(pem: string): boolean {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    for (const block of blocks) new X509Certificate(block);
    return blocks.length > 0;
  } catch {
    return false;
  }
}
