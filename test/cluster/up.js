// The start of a cluster, or of what is missing of one.

import { Resolver } from 'node:dns/promises';
import { existsSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';

import { ensureBuilt, findGo, megabytesMissing, modules, versionOf } from './build.js';
import { auditLog, component, componentKeys, containerdSocket, writeConfiguration } from './components.js';
import { takeDown } from './down.js';
import { Failure } from './failure.js';
import { claimFolder } from './folder.js';
import { ourLinks, prepareHost, stateBefore } from './host.js';
import { clusterImages } from './images/cluster.js';
import { loadImages } from './images/load.js';
import { readProductImages, writeInfo } from './info.js';
import { client } from './kubectl.js';
import { componentRights, dns } from './objects.js';
import { installPackages, missingPackages } from './packages.js';
import { ensurePki } from './pki.js';
import { portProblems, requireFreeNetworks, requireFreePorts, requireSpace } from './preflight.js';
import { becomes } from './probe.js';
import { bootId, end, findOurs, fingerprint, forget, running, start } from './processes.js';
import { step } from './progress.js';
import { ensureProviderAccount, establishKinds, providerObjects } from './provider.js';
import { attempt } from './run.js';
import { adminKubeconfig, dnsServiceIp, inWork, logFile, node, nodeIp, ports, work } from './settings.js';

/** @typedef {import('./components.js').ComponentKey} ComponentKey */

/**
 * Gets a component to run as it should: keeps one that does, starts it otherwise.
 *
 * @param {ComponentKey} key
 * @param {(program: string) => string} program
 * @returns {Promise<'kept' | 'started'>}
 */
export async function ensure(key, program) {
  const wanted = component(key, program);
  const { name } = wanted;
  const record = running(name);
  if (record) {
    if (record.fingerprint === fingerprint(wanted) && (await becomes(wanted.healthy, 15_000))) return 'kept';
    await end([record], 5_000);
  }
  forget(name);
  await freePorts([wanted]);
  await wanted.prepare?.();
  start(wanted);
  const healthy = await becomes(async () => {
    if (!running(name)) throw new Failure(`${name} ended soon after its start.`, { log: logFile(name) });
    return wanted.healthy();
  }, wanted.patience);
  if (!healthy) throw new Failure(`${name} runs but is not healthy after ${wanted.patience / 1000} s.`, { log: logFile(name) });
  return 'started';
}

/** The threads of a process that ended may hold its sockets a moment longer. @param {Parameters<typeof requireFreePorts>} asked */
async function freePorts(...asked) {
  await becomes(() => portProblems(...asked).length === 0, 10_000);
  requireFreePorts(...asked);
}

/**
 * @param {readonly ComponentKey[]} keys
 * @param {(program: string) => string} program
 */
const ensureStep = (keys, program) =>
  step(`components ${keys.map((key) => component(key, program).name).join(', ')}`, async (report) => {
    const results = await Promise.all(keys.map((key) => ensure(key, program)));
    report(
      results.every((result) => result === 'kept')
        ? 'kept'
        : results.every((result) => result === 'started')
          ? 'started'
          : results.join(', '),
    );
  });

/** Ends components of ours that no record knows: their ports and files are wanted. @param {(program: string) => string} program */
async function endUnknown(program) {
  const all = componentKeys.map((key) => component(key, program));
  const names = new Set(all.map((one) => path.basename(one.program)));
  const known = new Set(all.map((one) => running(one.name)?.pid));
  const unknown = findOurs().filter(({ pid }) => {
    try {
      return !known.has(pid) && names.has(path.basename(readlinkSync(`/proc/${pid}/exe`).replace(/ \(deleted\)$/, '')));
    } catch {
      return false;
    }
  });
  await end(unknown, 3_000);
}

/** Gives tests fixed paths. A link that is right stays, as a test may be using it. @param {(program: string) => string} program */
function linkPrograms(program) {
  mkdirSync(inWork('bin'), { recursive: true });
  for (const name of modules.flatMap((module) => Object.keys(module.programs))) {
    const link = inWork('bin', name);
    if (existsSync(link) && readlinkSync(link) === program(name)) continue;
    rmSync(link, { force: true });
    symlinkSync(program(name), link);
  }
}

/** Whether the cluster's DNS answers at its Service address: it needs the pod, kube-proxy and the API server. */
async function dnsAnswers() {
  const resolver = new Resolver({ timeout: 1_000, tries: 1 });
  resolver.setServers([dnsServiceIp]);
  try {
    return (await resolver.resolve4('kubernetes.default.svc.cluster.local')).length > 0;
  } catch {
    return false;
  }
}

/** @param {import('./kubectl.js').Kubectl} kubectl */
async function nodeReady(kubectl) {
  const path = '{range .status.conditions[?(@.type=="Ready")]}{.status} {.lastHeartbeatTime}{end}';
  const [ready, heartbeat = ''] = (await kubectl.value(['node', node], path)).split(' ');
  // An older heartbeat is the word of a kubelet that is dead. It is rounded down to a second.
  const since = Math.floor(Date.parse(running('kubelet')?.since ?? '') / 1000) * 1000;
  return ready === 'True' && Date.parse(heartbeat) >= since;
}

/** Images, logs and what a test writes. */
const megabytesOfARun = 1_000;

/** Checks that change nothing. */
async function check() {
  const go = await findGo();
  await requireSpace(go, megabytesMissing(go.version), stateBefore() ? 0 : megabytesOfARun);
  const ours = new Set(findOurs().map(({ pid }) => pid));
  const toStart = componentKeys.map((key) => component(key, () => '')).filter(({ name }) => !running(name));
  await freePorts(toStart, (pid) => ours.has(pid));
  return go;
}

/** Brings the cluster up and prints how to reach it. */
export async function up() {
  if (existsSync(work) && stateBefore() && stateBefore()?.boot !== bootId) await takeDown('remove what an earlier boot left');
  const go = await step('check the machine', check);
  if (!stateBefore()) rmSync(inWork('log'), { recursive: true, force: true });
  claimFolder();

  const packages = await missingPackages();
  if (packages.length > 0) await step(`install ${packages.join(' ')}`, () => installPackages(packages));
  const { program, providerManifests } = await ensureBuilt(go);
  linkPrograms(program);

  const images = await step('images', () => clusterImages(program, inWork('images')));
  await step('network, keys and configuration', async () => {
    const links = await ourLinks();
    await requireFreeNetworks((device) => links.includes(device));
    await endUnknown(program);
    await prepareHost();
    await ensurePki();
    writeConfiguration({ pauseImage: images.pause.tag });
  });

  await ensureStep(['etcd', 'containerd'], program);
  await ensureStep(['apiserver'], program);
  const kubectl = client(program('kubectl'));
  const product = Object.values(readProductImages());
  await Promise.all([
    ...(product.length > 0 ? [step('load product images', () => loadImages(product))] : []),
    ensureStep(['controllerManager', 'scheduler'], program),
    step('load images', () => loadImages(Object.values(images))).then(() => ensureStep(['kubelet', 'kubeProxy'], program)),
    step('objects: rights, provider kinds, DNS', async () => {
      const provider = providerObjects(providerManifests);
      await kubectl.apply([...componentRights, ...provider, ...dns(images.coredns.ref)]);
      await establishKinds(kubectl, provider);
      await ensureProviderAccount(kubectl, program('kubectl'));
    }).then(() => ensureStep(['provider'], program)),
  ]);
  await step(`node ${node} Ready`, async () => {
    if (await becomes(() => nodeReady(kubectl), 60_000)) return;
    throw new Failure('The node does not become Ready.', { log: logFile('kubelet') });
  });
  // Ends when there is no node yet.
  await ensureStep(['kubeRouter'], program);
  await step('DNS answers', async () => {
    if (await becomes(dnsAnswers, 60_000)) return;
    const pods = await attempt(program('kubectl'), ['--kubeconfig', adminKubeconfig, 'describe', 'pods', '-n', 'kube-system']);
    throw new Failure(`DNS does not answer.\n${pods.stdout.split('\n').slice(-30).join('\n')}`, { log: logFile('kubelet') });
  });

  const gone = componentKeys.map((key) => component(key, program).name).filter((name) => !running(name));
  if (gone.length > 0) throw new Failure(`Ended after its start: ${gone.join(', ')}.`, { log: logFile(gone[0] ?? '') });

  writeInfo({
    kubeconfig: adminKubeconfig,
    kubectl: inWork('bin', 'kubectl'),
    node,
    nodeIp,
    apiServer: `https://${nodeIp}:${ports.apiserver}`,
    containerdSocket,
    auditLog,
    logs: inWork('log'),
    images,
    versions: {
      ...Object.fromEntries(modules.filter((module) => module.of).map((module) => [module.name, versionOf(module)])),
      containerd: (await attempt('containerd', ['--version'])).stdout.split(' ')[2] ?? '',
      go: go.version,
    },
  });
  console.log(`\nexport KUBECONFIG=${adminKubeconfig}`);
}
