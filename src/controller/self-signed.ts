import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import {
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

/** PEM. */
export interface ServerCertificate {
  readonly certificate: string;
  readonly key: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
/** Clocks of two nodes may differ. */
const skew = 5 * 60_000;

/** A server's certificate that stands for itself, with a new P-256 key. */
export async function selfSigned(
  hosts: readonly string[],
  { now, life }: { readonly now: number; readonly life: number },
): Promise<ServerCertificate> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const names = hosts.map((value) => ({ type: 'dns' as const, value }));
  const made = await X509CertificateGenerator.createSelfSigned(
    {
      name: [{ CN: ['orka-publisher'] }],
      keys,
      notBefore: new Date(now - skew),
      notAfter: new Date(now + life),
      signingAlgorithm: algorithm,
      extensions: [new SubjectAlternativeNameExtension(names), new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth])],
    },
    webcrypto,
  );
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  const lines = pkcs8.toString('base64').replace(/.{1,64}/g, '$&\n');
  return { certificate: `${made.toString('pem')}\n`, key: `-----BEGIN PRIVATE KEY-----\n${lines}-----END PRIVATE KEY-----\n` };
}
