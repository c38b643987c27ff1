// A certificate of an authority that only a test knows.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { run } from '../run.js';

const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/**
 * @param {readonly string[]} hosts DNS names
 * @returns {Promise<{ readonly ca: string, readonly cert: string, readonly key: string }>} PEM
 */
export async function issueIdentity(hosts) {
  const folder = mkdtempSync(path.join(tmpdir(), 'orka-identity-'));
  const at = (/** @type {string} */ name) => path.join(folder, name);
  const text = (/** @type {string} */ name) => readFileSync(at(name), 'utf8');
  const asked = ['-keyout', at('server.key'), '-out', at('server.csr'), '-subj', '/CN=forge'];
  const authority = ['-keyout', at('ca.key'), '-out', at('ca.crt'), '-days', '2', '-subj', '/CN=forge-ca'];
  const issued = ['-in', at('server.csr'), '-out', at('server.crt'), '-days', '2', '-CA', at('ca.crt'), '-CAkey', at('ca.key')];
  try {
    await run('openssl', ['req', '-x509', ...newKey, ...authority]);
    await run('openssl', ['req', ...newKey, ...asked]);
    writeFileSync(at('names'), `extendedKeyUsage=serverAuth\nsubjectAltName=${hosts.map((host) => `DNS:${host}`).join(',')}\n`);
    await run('openssl', ['x509', '-req', ...issued, '-set_serial', '2', '-extfile', at('names')]);
    return { ca: text('ca.crt'), cert: text('server.crt'), key: text('server.key') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
