// One certificate authority per cluster and one identity per component.

import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { put } from './files.js';
import { run } from './run.js';
import { adminKubeconfig, apiServiceIp, inWork, node, nodeIp, ports } from './settings.js';

const days = '3650';
const keyType = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

/** Subject and further names of each certificate. `127.0.0.1` is where a component answers its health check. */
const identities = {
  apiserver: ['/CN=kube-apiserver', `IP:127.0.0.1,IP:${nodeIp},IP:${apiServiceIp},DNS:kubernetes,DNS:kubernetes.default.svc`],
  'kubelet-client': ['/CN=kube-apiserver-kubelet-client', 'DNS:kubelet-client'],
  admin: ['/O=system:masters/CN=admin', 'DNS:admin'],
  'controller-manager': ['/CN=system:kube-controller-manager', 'IP:127.0.0.1'],
  scheduler: ['/CN=system:kube-scheduler', 'IP:127.0.0.1'],
  kubelet: [`/O=system:nodes/CN=system:node:${node}`, `DNS:${node},IP:${nodeIp}`],
  'kube-proxy': ['/CN=system:kube-proxy', 'DNS:kube-proxy'],
  'kube-router': ['/CN=orka:kube-router', 'DNS:kube-router'],
};

/** @param {string} file */
export const pki = (file) => inWork('pki', file);

/** @param {string} component */
export const kubeconfig = (component) => (component === 'admin' ? adminKubeconfig : inWork('kubeconfig', component));

/**
 * @param {string} user what the user entry holds
 * @returns the text of a kubeconfig that needs no other file, except the one `user` may name
 */
export function kubeconfigText(user) {
  const ca = readFileSync(pki('ca.crt')).toString('base64');
  return [
    'apiVersion: v1',
    'kind: Config',
    `clusters: [{ name: orka-test, cluster: { server: "https://${nodeIp}:${ports.apiserver}", certificate-authority-data: ${ca} } }]`,
    `users: [{ name: orka-test, user: { ${user} } }]`,
    'contexts: [{ name: orka-test, context: { cluster: orka-test, user: orka-test } }]',
    'current-context: orka-test',
    '',
  ].join('\n');
}

/**
 * @param {string} folder
 * @param {string} name
 * @param {readonly string[]} identity
 */
async function issue(folder, name, [subject = '', names = '']) {
  const at = (/** @type {string} */ file) => path.join(folder, file);
  await run('openssl', ['req', ...keyType, '-keyout', at(`${name}.key`), '-out', at(`${name}.csr`), '-subj', subject]);
  writeFileSync(at(`${name}.ext`), `extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=${names}\n`);
  const serial = `0x${randomBytes(8).toString('hex')}`;
  await run('openssl', [
    ...['x509', '-req', '-in', at(`${name}.csr`), '-out', at(`${name}.crt`), '-days', days],
    ...['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-set_serial', serial, '-extfile', at(`${name}.ext`)],
  ]);
}

/** Makes all keys, certificates and kubeconfigs, unless the cluster has them. The folder appears whole or not at all. */
export async function ensurePki() {
  if (!existsSync(pki(''))) {
    const part = inWork('pki.part');
    rmSync(part, { recursive: true, force: true });
    mkdirSync(part, { recursive: true, mode: 0o700 });
    const at = (/** @type {string} */ file) => path.join(part, file);
    await run('openssl', [
      'req',
      '-x509',
      ...keyType,
      '-keyout',
      at('ca.key'),
      '-out',
      at('ca.crt'),
      '-days',
      days,
      '-subj',
      '/CN=orka-test-ca',
    ]);
    await Promise.all(Object.entries(identities).map(([name, identity]) => issue(part, name, identity)));
    await run('openssl', ['ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', at('sa.key')]);
    await run('openssl', ['ec', '-in', at('sa.key'), '-pubout', '-out', at('sa.pub')]);
    renameSync(part, pki(''));
  }
  mkdirSync(inWork('kubeconfig'), { recursive: true, mode: 0o700 });
  for (const name of ['admin', 'controller-manager', 'scheduler', 'kubelet', 'kube-proxy', 'kube-router']) {
    const data = (/** @type {string} */ file) => readFileSync(pki(file)).toString('base64');
    const user = `client-certificate-data: ${data(`${name}.crt`)}, client-key-data: ${data(`${name}.key`)}`;
    put(kubeconfig(name), kubeconfigText(user), 0o600);
  }
}
