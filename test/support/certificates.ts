import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { isIP } from 'node:net';

/** PEM. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

/** An authority that lives as long as a test. */
export interface Authority {
  readonly ca: string;
  /** A certificate for servers and clients. `hosts`: DNS names and addresses. @default for 127.0.0.1 */
  readonly issue: (name: string, days?: number, hosts?: readonly string[]) => Identity;
}

/** X.509 as far as TLS between two ends of the loopback needs it: P-256, version 3, a subject of one name. */
export function authority(name: string): Authority {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ca = certificate({ issuer: name, signer: privateKey, subject: name, subjectKey: publicKey, extension: isAuthority });
  return {
    ca,
    issue: (subject, days = 1, hosts = ['127.0.0.1']) => {
      const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const cert = certificate({
        issuer: name,
        signer: privateKey,
        subject,
        subjectKey: pair.publicKey,
        extension: alternativeNames(hosts),
        days,
      });
      return { cert, key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string };
    },
  };
}

/** A server's certificate that nobody else signed. It is no authority. */
export function selfSigned(name: string, hosts: readonly string[] = ['127.0.0.1']): Identity {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cert = certificate({
    issuer: name,
    signer: privateKey,
    subject: name,
    subjectKey: publicKey,
    extension: alternativeNames(hosts),
  });
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string };
}

interface Wanted {
  readonly issuer: string;
  readonly signer: KeyObject;
  readonly subject: string;
  readonly subjectKey: KeyObject;
  readonly extension: Buffer;
  readonly days?: number;
}

function certificate({ issuer, signer, subject, subjectKey, extension, days = 1 }: Wanted): string {
  const day = 86_400_000;
  const now = Date.now();
  const toBeSigned = sequence(
    element(0xa0, element(0x02, Buffer.of(2))),
    element(0x02, Buffer.concat([Buffer.of(1), randomBytes(8)])),
    ecdsaWithSha256,
    nameOf(issuer),
    sequence(utcTime(now + Math.min(days, 0) * day - day), utcTime(now + days * day)),
    nameOf(subject),
    subjectKey.export({ type: 'spki', format: 'der' }),
    element(0xa3, sequence(extension)),
  );
  const signature = sign('sha256', toBeSigned, signer);
  const der = sequence(toBeSigned, ecdsaWithSha256, element(0x03, Buffer.concat([Buffer.of(0), signature])));
  const lines = der.toString('base64').replace(/.{1,64}/g, '$&\n');
  return `-----BEGIN CERTIFICATE-----\n${lines}-----END CERTIFICATE-----\n`;
}

function element(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const { length } = body;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), body]);
}

function sequence(...of: readonly Buffer[]): Buffer {
  return element(0x30, ...of);
}

function oid(hex: string): Buffer {
  return element(0x06, Buffer.from(hex, 'hex'));
}

function nameOf(commonName: string): Buffer {
  return sequence(element(0x31, sequence(oid('550403'), element(0x0c, Buffer.from(commonName)))));
}

function utcTime(at: number): Buffer {
  const text = new Date(at).toISOString().replace(/[-:T]|\.\d+/g, '');
  return element(0x17, Buffer.from(text.slice(2)));
}

const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'));
const yes = element(0x01, Buffer.of(0xff));
const isAuthority = sequence(oid('551d13'), yes, element(0x04, sequence(yes)));

function alternativeNames(hosts: readonly string[]): Buffer {
  const names = hosts.map((host) => (isIP(host) === 0 ? element(0x82, Buffer.from(host)) : element(0x87, addressBytes(host))));
  return sequence(oid('551d11'), element(0x04, sequence(...names)));
}

/** Of IPv6 only `::1` and addresses without a gap. */
function addressBytes(host: string): Buffer {
  if (isIP(host) === 4) return Buffer.from(host.split('.').map(Number));
  const groups = host === '::1' ? [...Array<string>(7).fill('0'), '1'] : host.split(':');
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex');
}
