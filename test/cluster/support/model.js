// The place of the provider proxy in a cluster: its Service, its label, and a model behind a bearer check that stands for it.

import { scriptMap, scriptPod } from './script.js';

/** @typedef {import('../../../src/api/index.js').Manifest} Manifest */
/** @typedef {import('../../../src/api/index.js').RuntimePoolClassSpec} PoolClassSpec */
/** @typedef {(args: readonly string[], input?: string) => Promise<string>} Kubectl what a kubectl call printed; one that fails throws */
/** @typedef {{ readonly method: string, readonly path: string, readonly authorized: boolean, readonly at: number, readonly asked?: string, readonly first?: boolean }} ModelRequest `at`: milliseconds since the epoch; `asked`: what a prompt asks it to say; `first`: no command has been run for it yet */

/** The label by which policies know a Pod. @param {string} value */
export const role = (value) => ({ 'orka.ai/network-role': value });

/**
 * The Service that the class calls its provider proxy.
 *
 * @param {Pick<PoolClassSpec, 'providerProxy'>} poolClass
 * @param {string} app label of the Pods behind it
 * @returns {Manifest}
 */
export function proxyService({ providerProxy: { url, namespace, podPort } }, app) {
  const { hostname, port } = new URL(url);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: hostname.split('.')[0] ?? '', namespace },
    spec: { selector: { app }, ports: [{ name: 'http', port: Number(port), targetPort: podPort, protocol: 'TCP' }] },
  };
}

const app = 'model';

/**
 * A model in the place of the provider proxy, as objects. Its token is in a Secret: whoever may read Pods must not find it.
 *
 * @param {Pick<PoolClassSpec, 'providerProxy'>} poolClass
 * @param {{ readonly image: string, readonly token: string, readonly answer?: string }} options `image`: that of the controller;
 *   `answer`: what it says whatever is asked
 * @returns {Promise<readonly Manifest[]>} without the namespace
 */
export async function modelObjects(poolClass, { image, token, answer }) {
  const { namespace, podLabels, podPort } = poolClass.providerProxy;
  return [
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: app, namespace }, type: 'Opaque', stringData: { token } },
    await scriptMap(app, namespace, 'model'),
    proxyService(poolClass, app),
    scriptPod({ name: app, namespace, labels: { ...podLabels, app }, image, secret: app, port: podPort }, [
      '/script/main.mjs',
      ...(answer === undefined ? [] : [answer]),
    ]),
  ];
}

/**
 * The requests that reached the model, oldest first.
 *
 * @param {Kubectl} kubectl
 * @param {Pick<PoolClassSpec, 'providerProxy'>} poolClass
 * @returns {Promise<readonly ModelRequest[]>}
 */
export async function modelRequests(kubectl, { providerProxy: { namespace } }) {
  const log = await kubectl(['logs', '-n', namespace, app]);
  return log
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => /** @type {ModelRequest} */ (JSON.parse(line)));
}

/**
 * Starts the model and waits until it listens.
 *
 * @param {Kubectl} kubectl
 * @param {Pick<PoolClassSpec, 'providerProxy'>} poolClass
 * @param {{ readonly image: string, readonly token: string, readonly answer?: string }} options
 */
export async function startModel(kubectl, poolClass, options) {
  const { namespace } = poolClass.providerProxy;
  await stopModel(kubectl, poolClass);
  const items = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    ...(await modelObjects(poolClass, options)),
  ];
  await kubectl(['apply', '--server-side', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  await kubectl(['wait', '--for=condition=Ready', '--timeout=90s', '-n', namespace, `pod/${app}`]);
}

/**
 * @param {Kubectl} kubectl
 * @param {Pick<PoolClassSpec, 'providerProxy'>} poolClass
 */
export async function stopModel(kubectl, poolClass) {
  const { namespace } = poolClass.providerProxy;
  await kubectl(['delete', '--ignore-not-found', '--timeout=60s', '-n', namespace, ...modelNames(poolClass)]);
}

/**
 * What the model consists of, as arguments of kubectl.
 *
 * @param {Pick<PoolClassSpec, 'providerProxy'>} poolClass
 * @returns {readonly string[]}
 */
export function modelNames(poolClass) {
  const { metadata } = proxyService(poolClass, app);
  return [`pod/${app}`, `service/${metadata.name}`, `configmap/${app}`, `secret/${app}`];
}
