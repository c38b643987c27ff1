// The agent-sandbox provider: its own manifests and its own account.

import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';

import { parseAllDocuments } from 'yaml';

import { providerKubeconfig } from './components.js';
import { put } from './files.js';
import { kubeconfigText } from './pki.js';
import { attempt } from './run.js';

/** @typedef {import('./kubectl.js').Kubectl} Kubectl */
/** @typedef {import('./objects.js').KubeObject} KubeObject */

const namespace = 'agent-sandbox-system';
const account = 'agent-sandbox-controller';
/** A cluster is thrown away long before. */
const tokenLifetime = '8760h';

/** @param {string} file @returns {KubeObject[]} */
function objectsIn(file) {
  return parseAllDocuments(readFileSync(file, 'utf8'))
    .map((document) => /** @type {KubeObject | null} */ (document.toJS()))
    .filter((object) => object !== null);
}

const isCrd = (/** @type {KubeObject} */ { kind }) => kind === 'CustomResourceDefinition';

/**
 * CRDs, namespace, account and rights. The Deployment and its Service are left out: the controller runs as a process.
 *
 * @param {string} folder the provider's k8s folder
 */
export function providerObjects(folder) {
  const crds = readdirSync(path.join(folder, 'crds')).sort();
  const manifests = ['controller.yaml', 'extensions.yaml', 'rbac.generated.yaml', 'extensions-rbac.generated.yaml'];
  const objects = [...crds.map((file) => path.join('crds', file)), ...manifests].flatMap((file) =>
    objectsIn(path.join(folder, file)),
  );
  const count = objects.filter(isCrd).length;
  if (count !== 4) throw new Error(`the provider has ${count} CRDs, not four`);
  return objects.filter(({ kind }) => kind !== 'Deployment' && kind !== 'Service');
}

/**
 * Waits until the API server serves the provider's kinds: the controller ends when one is missing.
 *
 * @param {Kubectl} kubectl
 * @param {readonly KubeObject[]} objects
 */
export async function establishKinds(kubectl, objects) {
  const names = objects.filter(isCrd).map(({ metadata }) => `crd/${metadata.name}`);
  await kubectl.call(['wait', '--for=condition=Established', '--timeout=30s', ...names]);
}

/**
 * Writes the kubeconfig of the controller, with a token of its own ServiceAccount, unless the one it has still works.
 *
 * @param {Kubectl} kubectl
 * @param {string} program path of kubectl
 */
export async function ensureProviderAccount(kubectl, program) {
  const { status, stdout } = await attempt(program, ['--kubeconfig', providerKubeconfig, 'auth', 'whoami', '-o', 'name'], {
    timeout: 10_000,
  });
  if (status === 0 && stdout.trim() !== '') return;
  const token = (await kubectl.call(['create', 'token', account, '-n', namespace, `--duration=${tokenLifetime}`])).trim();
  put(providerKubeconfig, kubeconfigText(`token: ${token}`), 0o600);
}
