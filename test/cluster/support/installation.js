// What a platform engineer does: settings, synth, apply. And the way back.

import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse, parseAllDocuments } from 'yaml';

import { Failure } from '../failure.js';
import { platformFile } from '../images/platform.js';
import { readProductImages } from '../info.js';
import { run } from '../run.js';
import { eventually } from './eventually.js';

/** @typedef {import('./model.js').Kubectl} Kubectl */
/** @typedef {import('../../../src/api/index.js').Manifest} Manifest */
/** @typedef {import('../../../src/api/index.js').RuntimePoolClassSpec} PoolClassSpec */

const cli = path.resolve(import.meta.dirname, '../../../lib/bin/orka-workspaces.js');

/**
 * What differs from the platform file of the test cluster.
 *
 * @typedef {object} Settings
 * @property {number} [replicas] of the controller; 1 by default
 * @property {boolean} [gates] both switches; off by default, as in a platform file
 * @property {{ readonly addresses: readonly string[], readonly ports: readonly number[] }} [apiServer] all that the controller may reach besides sandboxes; everything by default
 * @property {string} [idlePoolTtl] as in `5s`; that of the product by default
 * @property {number} [maxTasksPerNamespace] as many as one likes by default
 * @property {'Strict' | 'AdmissionAware'} [attestation] of every class; that of the product by default
 * @property {{ readonly cpu: string, readonly memory: string }} [requests] of a sandbox; those of the class by default
 * @property {{ readonly cpu?: string, readonly memory?: string }} [limits] of a sandbox; those of the class by default
 * @property {{ readonly controller: string, readonly runtime: string, readonly tasks: string }} [namespaces] those of the platform file by default
 * @property {PublisherSettings} [publisher] none by default
 */

/**
 * The publisher of a platform file.
 *
 * @typedef {object} PublisherSettings
 * @property {string} namespace
 * @property {readonly ForgeSettings[]} forges
 * @property {{ readonly requests: Readonly<Record<string, string>> }} [resources]
 */

/**
 * @typedef {object} ForgeSettings
 * @property {string} host
 * @property {number} [port]
 * @property {string} ca PEM
 * @property {true} private
 * @property {{ readonly namespace: string, readonly podLabels: Readonly<Record<string, string>> }} peer
 */

/**
 * A synthesized installation.
 *
 * @typedef {object} Installation
 * @property {string} dist folder that synth wrote
 * @property {{ readonly controller: string, readonly runtime: string, readonly tasks: string }} namespaces
 * @property {string} image of the controller
 * @property {PoolClassSpec} poolClass the one class
 * @property {readonly Manifest[]} manifests what `apply` holds
 * @property {Manifest} deployment the controller's
 * @property {Manifest | undefined} publisher its Deployment
 * @property {() => void} forget removes what synth wrote
 */

/**
 * Writes a platform file with these settings and synthesizes it with the command line, into a temporary folder.
 *
 * @param {Settings} [settings]
 * @returns {Promise<Installation>}
 */
export async function synthesize({
  replicas = 1,
  gates = false,
  apiServer,
  idlePoolTtl,
  maxTasksPerNamespace,
  attestation,
  requests,
  limits,
  namespaces,
  publisher,
} = {}) {
  if (!existsSync(platformFile) || !existsSync(cli)) throw new Failure('The images are not built: run npm run images.');
  const given = /** @type {import('../images/platform.js').PlatformFile} */ (parse(readFileSync(platformFile, 'utf8')));
  const settings = {
    ...given,
    namespaces: namespaces ? { ...namespaces, tasks: [namespaces.tasks] } : given.namespaces,
    controller: {
      ...given.controller,
      replicas,
      gates: { agentSandbox: gates, workspaceDispatch: gates },
      ...(apiServer === undefined ? {} : { apiServer }),
      ...(idlePoolTtl === undefined ? {} : { idlePoolTtl }),
      ...(maxTasksPerNamespace === undefined ? {} : { maxTasksPerNamespace }),
    },
    ...(publisher === undefined
      ? {}
      : { publisher: { image: readProductImages()['publisher']?.ref, ...publisher, enabled: true } }),
    classes: eachWith(given.classes, { attestation, requests, limits }),
  };
  const folder = mkdtempSync(path.join(tmpdir(), 'orka-installation-'));
  const [file, dist] = [path.join(folder, 'platform.yaml'), path.join(folder, 'dist')];
  writeFileSync(file, `${JSON.stringify(settings, null, 2)}\n`);
  await run(process.execPath, [cli, 'synth', '--platform', file, '--out', dist]);
  const manifests = manifestsIn(path.join(dist, 'apply'));
  const poolClass = manifests.find(({ kind }) => kind === 'RuntimePoolClass');
  const deploymentIn = (/** @type {string} */ namespace) =>
    manifests.find(({ kind, metadata }) => kind === 'Deployment' && metadata.namespace === namespace);
  const deployment = deploymentIn(settings.namespaces.controller);
  if (!poolClass || !deployment) throw new Error(`${dist}/apply has no class or no Deployment`);
  return {
    dist,
    namespaces: { ...settings.namespaces, tasks: settings.namespaces.tasks[0] ?? '' },
    image: given.controller.image,
    poolClass: /** @type {PoolClassSpec} */ (/** @type {unknown} */ (poolClass['spec'])),
    manifests,
    deployment,
    publisher: publisher && deploymentIn(publisher.namespace),
    forget: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/**
 * @param {import('../images/platform.js').PlatformFile['classes']} classes
 * @param {Pick<Settings, 'attestation' | 'requests' | 'limits'>} change
 */
const eachWith = (classes, { attestation, requests, limits }) =>
  Object.fromEntries(
    Object.entries(classes).map(([name, { pod, ...one }]) => {
      const resources = {
        requests: { ...pod.resources.requests, ...requests },
        limits: { ...pod.resources.limits, ...limits },
      };
      return [name, { ...one, ...(attestation === undefined ? {} : { attestation }), pod: { ...pod, resources } }];
    }),
  );

/** @param {string} folder @returns {Manifest[]} in the order of the files */
function manifestsIn(folder) {
  return readdirSync(folder)
    .sort()
    .flatMap((name) => parseAllDocuments(readFileSync(path.join(folder, name), 'utf8')))
    .map((document) => /** @type {Manifest} */ (document.toJS()));
}

/** @param {Kubectl} kubectl @param {string} dist */
export async function applyKinds(kubectl, dist) {
  await kubectl(['apply', '--server-side', '-f', path.join(dist, 'apply/0000-crds.k8s.yaml')]);
  const ours = ['crd', '-l', 'app.kubernetes.io/managed-by=orka-workspaces'];
  await kubectl(['wait', '--for=condition=Established', ...ours, '--timeout=60s']);
  // A kind is established a moment before the server says that it serves it.
  const all = ['runtimepoolclasses.core.orka.ai', ...ownKinds].join(',');
  const served = () =>
    kubectl(['get', all, '-A', '-o', 'name']).then(
      () => true,
      () => undefined,
    );
  await eventually('kinds that the server knows', served, 60);
}

/**
 * Applies an output folder as the README says: the kinds first.
 *
 * @param {Kubectl} kubectl
 * @param {string} dist
 */
export async function applyDist(kubectl, dist) {
  await applyKinds(kubectl, dist);
  await kubectl(['apply', '--server-side', '-k', dist]);
}

/** @param {Kubectl} kubectl @param {readonly object[]} items */
const applyObjects = (kubectl, items) =>
  kubectl(['apply', '--server-side', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));

/** @param {Kubectl} kubectl @param {readonly string[]} what @returns {Promise<readonly Manifest[]>} */
async function list(kubectl, what) {
  const answer = /** @type {{ items: Manifest[] }} */ (JSON.parse(await kubectl(['get', ...what, '-o', 'json'])));
  return answer.items;
}

/**
 * The token of the provider proxy: the one that is there, or a new one. Synth never sees it, so that the platform engineer brings it.
 *
 * @param {Kubectl} kubectl
 * @param {Installation} installation
 * @returns {Promise<string>}
 */
export async function ensureProxyToken(kubectl, { namespaces, poolClass }) {
  const { name, key } = poolClass.providerProxy.tokenSecretRef;
  const found = await kubectl(['get', 'secret', name, '-n', namespaces.controller, '--ignore-not-found', '-o', 'json']);
  const { data = {} } = found === '' ? {} : /** @type {{ data?: Record<string, string> }} */ (JSON.parse(found));
  if (data[key]) return Buffer.from(data[key], 'base64').toString();
  const token = randomBytes(32).toString('base64url');
  const metadata = { name, namespace: namespaces.controller };
  await applyObjects(kubectl, [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespaces.controller } },
    { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', stringData: { [key]: token } },
  ]);
  return token;
}

/** @param {Installation} installation */
const selectorOf = ({ deployment }) =>
  Object.entries(/** @type {{ selector: { matchLabels: Record<string, string> } }} */ (deployment['spec']).selector.matchLabels)
    .map((pair) => pair.join('='))
    .join(',');

/** @param {Installation} installation */
const replicasOf = ({ deployment }) => /** @type {{ replicas: number }} */ (deployment['spec']).replicas;

/**
 * Installs, or changes what is installed, and waits until the controller runs with these settings and no other one does.
 *
 * @param {Kubectl} kubectl
 * @param {Installation} installation
 */
export async function install(kubectl, installation) {
  const { namespaces, dist } = installation;
  const since = Date.now();
  await applyObjects(kubectl, [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespaces.tasks } }]);
  await applyDist(kubectl, dist);
  await ensureProxyToken(kubectl, installation);
  await eventually(
    'an available controller, and no other than of these settings',
    () => available(kubectl, installation, since),
    150,
  );
  if (installation.publisher) await rolledOut(kubectl, installation.publisher);
}

/** The publisher waits for keys that the controller makes. @param {Kubectl} kubectl @param {Manifest} publisher */
async function rolledOut(kubectl, { metadata: { name, namespace = '' } }) {
  try {
    await kubectl(['rollout', 'status', 'deployment', name, '-n', namespace, '--timeout=120s']);
  } catch (error) {
    const of = ['-n', namespace, '-l', `app.kubernetes.io/name=${name}`];
    const said = (/** @type {readonly string[]} */ args) =>
      kubectl(args).catch((/** @type {unknown} */ reason) => String(reason));
    const events = await said(['get', 'events', '-n', namespace, '--sort-by=.lastTimestamp']);
    throw new Error(`${String(error)}\n${events}\n${await said(['logs', ...of, '--tail=40'])}`, { cause: error });
  }
}

/**
 * @typedef {object} PodState
 * @property {string} [phase]
 * @property {readonly { readonly restartCount: number, readonly state?: { readonly waiting?: { readonly reason?: string, readonly message?: string } } }[]} [containerStatuses]
 */

/** @param {Kubectl} kubectl @param {Installation} installation @param {number} since milliseconds since the epoch @returns {Promise<true | undefined>} */
async function available(kubectl, installation, since) {
  const { namespaces, deployment } = installation;
  const [live] = await list(kubectl, ['deployments', '-n', namespaces.controller, '-l', selectorOf(installation)]);
  const pods = await list(kubectl, ['pods', '-n', namespaces.controller, '-l', selectorOf(installation)]);
  for (const pod of pods.filter(({ metadata }) => Date.parse(metadata.creationTimestamp ?? '') >= since - 1000)) {
    const { containerStatuses = [] } = /** @type {PodState} */ (/** @type {unknown} */ (pod['status']));
    const [{ restartCount = 0, state = {} } = {}] = containerStatuses;
    if (restartCount < 2 || state.waiting === undefined) continue;
    throw new Failure(
      `${deployment.metadata.name} does not start: ${state.waiting.reason ?? ''}, ended ${restartCount + 1} times. ` +
        `Next: kubectl logs -n ${namespaces.controller} ${pod.metadata.name} --previous`,
    );
  }
  const {
    observedGeneration,
    updatedReplicas = 0,
    availableReplicas = 0,
  } = /** @type {{ observedGeneration?: number, updatedReplicas?: number, availableReplicas?: number }} */ (
    live?.['status'] ?? {}
  );
  const wanted = replicasOf(installation);
  const rolledOut =
    observedGeneration === live?.metadata.generation && updatedReplicas === wanted && availableReplicas === wanted;
  // A replica of before may still lead while it shuts down.
  return rolledOut && pods.length === wanted ? true : undefined;
}

const ownKinds = ['tasks.core.orka.ai', 'runtimepools.core.orka.ai', 'agents.core.orka.ai'];

/** What a pool may have in the runtime namespace, the provider's part included. */
const poolKinds = [
  'sandboxclaims.extensions.agents.x-k8s.io',
  'sandboxwarmpools.extensions.agents.x-k8s.io',
  'sandboxtemplates.extensions.agents.x-k8s.io',
  'sandboxes.agents.x-k8s.io',
  'pods',
  'services',
  'networkpolicies.networking.k8s.io',
  'poddisruptionbudgets.policy',
  'deployments.apps',
  'secrets',
  'persistentvolumeclaims',
];

/** @param {Manifest} object */
const nameOf = ({ kind, metadata: { namespace, name } }) => `${kind} ${namespace}/${name}`;

/**
 * What there is of pools and of Tasks.
 *
 * @param {Kubectl} kubectl
 * @param {Installation} installation
 * @returns {Promise<readonly Manifest[]>} in the runtime namespace everything that a pool may have, in the namespace of Tasks the Secrets and
 *   ConfigMaps that a Task owns
 */
export async function leftovers(kubectl, { namespaces, manifests }) {
  const installed = new Set(manifests.map(nameOf));
  const inRuntime = (await list(kubectl, [poolKinds.join(','), '-n', namespaces.runtime])).filter(
    (object) => !installed.has(nameOf(object)),
  );
  const besideTasks = await list(kubectl, ['secrets,configmaps', '-n', namespaces.tasks]);
  return [...inRuntime, ...besideTasks.filter(({ metadata }) => metadata.ownerReferences?.some(({ kind }) => kind === 'Task'))];
}

/**
 * Removes Tasks, Agents and pools, then the installation but for its kinds and namespaces. What does not go by itself is removed all the same,
 * so that the next one finds a clean cluster.
 *
 * @param {Kubectl} kubectl
 * @param {Installation} installation
 * @param {{ readonly seconds?: number }} [options] how long the controller has for what it must do itself; 240 by default
 * @returns {Promise<readonly string[]>} what did not go by itself
 */
export async function uninstall(kubectl, installation, { seconds = 240 } = {}) {
  const { namespaces, manifests, poolClass, publisher } = installation;
  const stuck = await removeTasks(kubectl, installation, { seconds });
  const kept = ['CustomResourceDefinition', 'Namespace'];
  const items = manifests.filter(({ kind }) => !kept.includes(kind));
  await kubectl(
    ['delete', '--ignore-not-found', '--timeout=60s', '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
  ).catch((/** @type {unknown} */ error) => {
    if (!String(error).includes('no matches for kind')) throw error;
  });
  const { name } = poolClass.providerProxy.tokenSecretRef;
  await kubectl(['delete', '--ignore-not-found', '-n', namespaces.controller, `secret/${name}`]);
  const { namespace: ofPublisher } = publisher?.metadata ?? {};
  if (ofPublisher !== undefined) {
    // The controller made it; nothing that is rendered names it.
    await kubectl(['delete', '--ignore-not-found', '-n', ofPublisher, 'secret/orka-publisher-auth']);
    await kubectl(['wait', '--for=delete', 'pods', '--all', '-n', ofPublisher, '--timeout=120s']);
  }
  await kubectl(['wait', '--for=delete', 'pods', '-l', selectorOf(installation), '-n', namespaces.controller, '--timeout=120s']);
  // A controller that still runs would write its Lease again.
  await kubectl(['delete', 'leases', '--all', '-n', namespaces.controller]);
  return [...stuck, ...(await removeLeftovers(kubectl, installation))];
}

/**
 * Removes Tasks, then pools, then Agents.
 *
 * @param {Kubectl} kubectl
 * @param {Installation} installation
 * @param {{ readonly seconds?: number }} [options] as for {@link uninstall}
 * @returns {Promise<readonly string[]>} what did not go by itself, and went without its finalizer
 */
export async function removeTasks(kubectl, { namespaces: { tasks: namespace } }, { seconds = 240 } = {}) {
  const established = await kubectl(['get', 'crd', ...ownKinds, '--ignore-not-found', '-o', 'name']);
  const end = Date.now() + seconds * 1000;
  const stuck = [];
  for (const kind of ownKinds.filter((one) => established.includes(`/${one}\n`))) {
    await kubectl(['delete', kind, '--all', '-n', namespace, '--wait=false']);
    let left = await list(kubectl, [kind, '-n', namespace]);
    for (; left.length > 0 && Date.now() < end; left = await list(kubectl, [kind, '-n', namespace])) await sleep(300);
    for (const { metadata } of left) {
      await kubectl(['patch', kind, metadata.name, '-n', namespace, '--type=merge', '-p', '{"metadata":{"finalizers":null}}']);
    }
    stuck.push(...left.map((object) => `${nameOf(object)} (its finalizer)`));
  }
  return stuck;
}

/** @param {Kubectl} kubectl @param {Installation} installation */
async function removeLeftovers(kubectl, installation) {
  // Kubernetes itself collects what a Task owned.
  for (const end = Date.now() + 120_000; Date.now() < end; await sleep(500)) {
    if ((await leftovers(kubectl, installation)).length === 0) return [];
  }
  const left = await leftovers(kubectl, installation);
  const items = left.map(({ apiVersion, kind, metadata: { name, namespace } }) => ({
    apiVersion,
    kind,
    metadata: { name, namespace },
  }));
  await kubectl(
    ['delete', '--ignore-not-found', '--timeout=120s', '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
  );
  return left.map(nameOf);
}
