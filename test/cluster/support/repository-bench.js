// What a repository adds to a Task: time until its session is ready, as a ratio to what git itself takes, and memory.

import { readFileSync, writeFileSync } from 'node:fs';

import { Failure } from '../failure.js';
import { readProductImages } from '../info.js';
import { pids } from '../processes.js';
import { step } from '../progress.js';
import { table } from '../table.js';
import { eventually } from './eventually.js';
import { applyObjects, example, isOver, taskLike } from './first-task.js';
import { forgePlace, forgeUrl, publisherNamespace, publisherPeer, publisherSettings, startForge, stopForge } from './forge.js';
import { install, leftovers, synthesize, uninstall } from './installation.js';
import { startTimeline } from './timeline.js';

/** @typedef {import('./model.js').Kubectl} Kubectl */
/** @typedef {import('./installation.js').Installation} Installation */
/** @typedef {import('./forge.js').Forge} Forge */
/** @typedef {import('../../../src/api/index.js').Task} Task */

const mebibyte = 1024 * 1024;
const size = { files: 10_000, bytes: 50 * mebibyte };
/** The largest tree that is accepted. */
const largest = { files: 1_000, bytes: 96 * mebibyte };
const goals = { cold: 2, warm: 1, memory: 32 };
const secret = 'bench-source';
const client = { namespace: 'orka-forge-client', name: 'git' };

/** @param {readonly number[]} values */
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

/**
 * Does in a Pod what a person would do with the repository, and measures it there.
 *
 * @param {Kubectl} kubectl
 * @param {Forge} forge
 * @param {string} repository
 * @returns {Promise<number>} milliseconds of `git clone --depth=1`, and of `git init`, `add` and `commit` of the tree
 */
async function timeGit(kubectl, { ca, tokens }, repository) {
  const script = `
    const { execFileSync } = require('node:child_process');
    const fs = require('node:fs');
    const { ca, token, url } = JSON.parse(fs.readFileSync(0, 'utf8'));
    fs.rmSync('/tmp/work', { recursive: true, force: true });
    fs.mkdirSync('/tmp/work');
    fs.writeFileSync('/tmp/work/ca.crt', ca);
    const header = 'Authorization: Basic ' + Buffer.from('x-access-token:' + token).toString('base64');
    fs.writeFileSync('/tmp/work/config', '[http]\\n\\textraHeader = ' + header + '\\n\\tsslCAInfo = /tmp/work/ca.crt\\n[user]\\n\\tname = a\\n\\temail = a@example.com\\n');
    const git = (...args) => execFileSync('git', args, { env: { ...process.env, HOME: '/tmp/work', GIT_CONFIG_GLOBAL: '/tmp/work/config' }, stdio: 'ignore' });
    const began = performance.now();
    git('clone', '-q', '--depth=1', url, '/tmp/work/tree');
    fs.renameSync('/tmp/work/tree/.git', '/tmp/work/cloned');
    git('-C', '/tmp/work/tree', 'init', '-q');
    git('-C', '/tmp/work/tree', 'add', '-A');
    git('-C', '/tmp/work/tree', 'commit', '-q', '-m', 'baseline');
    console.log(performance.now() - began);
    fs.rmSync('/tmp/work', { recursive: true, force: true });
  `;
  const order = JSON.stringify({ ca, token: tokens.read, url: forgeUrl(repository) });
  const exec = ['exec', '-i', '-n', client.namespace, client.name, '--', '/usr/local/bin/node', '-e', script];
  return Number(await kubectl(exec, order));
}

/** @param {string} image */
const clientObjects = (image) => [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: client.namespace } },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: client.name, namespace: client.namespace },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'git',
          image,
          command: ['sleep', '7200'],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  },
];

/** @param {number} pid @param {string} file */
function procOf(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

/** The first process of a Pod that runs Node. @param {string} podUid */
const nodeOf = (podUid) =>
  pids().find((pid) => procOf(pid, 'cgroup').includes(podUid) && procOf(pid, 'status').startsWith('Name:\tnode')) ?? 0;

/** The most that a process held since it began, or since {@link forgetPeak}; bytes. @param {number} pid */
const peakOf = (pid) => Number(/^VmHWM:\s+(\d+)/m.exec(procOf(pid, 'status'))?.[1] ?? NaN) * 1024;

/** @param {number} pid */
const forgetPeak = (pid) => writeFileSync(`/proc/${pid}/clear_refs`, '5');

/** @param {Kubectl} kubectl @param {string} namespace @param {string} label */
const podUid = (kubectl, namespace, label) =>
  kubectl(['get', 'pods', '-n', namespace, '-l', label, '-o', 'jsonpath={.items[0].metadata.uid}']);

/**
 * Runs one Task until nothing is left of it.
 *
 * @param {object} where
 * @param {Kubectl} where.kubectl
 * @param {Installation} where.installation
 * @param {ReturnType<typeof startTimeline>} where.timeline
 * @param {Task} task
 * @param {() => Promise<void>} [meanwhile] called while its prompt runs
 * @returns {Promise<number>} milliseconds from its creation until its session was ready
 */
async function timeTask({ kubectl, installation, timeline }, task, meanwhile) {
  const { name, namespace = '' } = task.metadata;
  timeline.restart();
  await applyObjects(kubectl, [task]);
  const at = (/** @type {'prompt submitted' | 'Succeeded'} */ what) =>
    eventually(
      `Task ${name}: ${what}`,
      () => {
        const seen = timeline.task();
        if (isOver(seen) && seen?.status?.phase !== 'Succeeded')
          throw new Failure(`Task ${name} ended as ${seen?.status?.phase ?? ''}: ${seen?.status?.message ?? ''}`);
        return Promise.resolve(timeline.times().has(what) ? true : undefined);
      },
      180,
    );
  await at('prompt submitted');
  await meanwhile?.();
  await at('Succeeded');
  const took = (timeline.times().get('prompt submitted') ?? NaN) - (timeline.times().get('Task created') ?? NaN);
  for (const kind of ['tasks.core.orka.ai', 'runtimepools.core.orka.ai'])
    await kubectl(['delete', kind, '--all', '-n', namespace, '--timeout=180s']);
  await eventually('nothing left of the Task', async () =>
    (await leftovers(kubectl, installation)).length === 0 ? true : undefined,
  );
  return took;
}

/** @param {string} name @param {string} [repository] @param {string} [says] @returns {Task} */
const benchTask = (name, repository, says = '') =>
  taskLike(name, {
    ...(repository === undefined ? {} : { workspace: { gitRepo: forgeUrl(repository), readCredentialRef: { name: secret } } }),
    prompt: `${says} Reply exactly: BENCH`.trim(),
  });

/**
 * @param {Parameters<typeof timeTask>[0]} where
 * @param {Forge} forge
 * @param {number} runs
 */
async function benchTimes(where, forge, runs) {
  const { kubectl } = where;
  const names = Array.from({ length: runs }, (_, index) => `bench/repository-${index + 1}`);
  await step(`${runs} repositories of ${size.files} files`, async () => {
    for (const name of names) await forge.seed([{ name, refs: { 'refs/heads/main': [] }, filled: size }]);
  });
  /** @type {Record<'git' | 'without' | 'cold' | 'warm', number[]>} */
  const took = { git: [], without: [], cold: [], warm: [] };
  for (const [index, name] of ['', ...names].entries()) {
    await step(index === 0 ? 'a first Task, to warm up' : `Tasks on repository ${index} of ${runs}`, async (report) => {
      const without = await timeTask(where, benchTask(`bench-without-${index}`));
      if (name === '') return;
      const git = await timeGit(kubectl, forge, name);
      const cold = await timeTask(where, benchTask(`bench-cold-${index}`, name));
      const warm = await timeTask(where, benchTask(`bench-warm-${index}`, name));
      for (const [what, time] of Object.entries({ git, without, cold, warm })) took[/** @type {'git'} */ (what)].push(time);
      report(
        `git ${git.toFixed(0)} ms, cold ${(cold - without).toFixed(0)} ms more, warm ${(warm - without).toFixed(0)} ms more`,
      );
    });
  }
  return took;
}

/**
 * @param {Parameters<typeof timeTask>[0]} where
 * @param {Forge} forge
 * @returns {Promise<Record<'publisher' | 'supervisor', number>>} bytes that the largest tree adds to each
 */
async function benchMemory(where, forge) {
  const { kubectl, installation, timeline } = where;
  const trees = { small: { files: 10, bytes: mebibyte }, large: largest };
  const publisher = nodeOf(await podUid(kubectl, publisherNamespace, 'orka.ai/network-role=workspace-publisher'));
  /** @type {Record<string, { publisher: number, supervisor: number }>} */
  const peaks = {};
  for (const [name, filled] of Object.entries(trees)) {
    const repository = `bench/memory-${name}`;
    await forge.seed([{ name: repository, refs: { 'refs/heads/main': [] }, filled }]);
    await step(`a Task on a tree of ${filled.bytes / mebibyte} MiB`, async () => {
      forgetPeak(publisher);
      let supervisor = NaN;
      await timeTask(where, benchTask(`bench-memory-${name}`, repository, 'Take 3 seconds.'), async () => {
        const uid = timeline.task()?.status?.execution?.runtimePoolUID ?? '';
        supervisor = peakOf(nodeOf(await podUid(kubectl, installation.namespaces.runtime, `orka.ai/runtime-pool-uid=${uid}`)));
      });
      peaks[name] = { publisher: peakOf(publisher), supervisor };
    });
  }
  const more = (/** @type {'publisher' | 'supervisor'} */ what) =>
    (peaks['large']?.[what] ?? NaN) - (peaks['small']?.[what] ?? NaN);
  return { publisher: more('publisher'), supervisor: more('supervisor') };
}

/**
 * @param {object} options
 * @param {Kubectl} options.kubectl
 * @param {import('../info.js').ClusterInfo} options.info
 * @param {number} options.runs
 * @returns {Promise<object>} all that was measured
 */
export async function benchRepository({ kubectl, info, runs }) {
  const image = readProductImages()['forge']?.ref ?? '';
  const clientPeer = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': client.namespace } } };
  const forge = await startForge(kubectl, { image, peers: [publisherPeer(publisherNamespace), clientPeer] });
  const installation = await synthesize({ gates: true, publisher: publisherSettings(forge) });
  const { namespace = '' } = example.task.metadata;
  const timeline = startTimeline(info, installation.namespaces);
  try {
    await step('a publisher and a forge', async () => {
      await install(kubectl, installation);
      const stringData = { token: forge.tokens.read };
      await applyObjects(kubectl, [
        ...clientObjects(image),
        { apiVersion: 'v1', kind: 'Secret', metadata: { name: secret, namespace }, type: 'Opaque', stringData },
      ]);
      await kubectl(['wait', '--for=condition=Ready', '--timeout=60s', '-n', client.namespace, `pod/${client.name}`]);
    });
    const where = { kubectl, installation, timeline };
    const took = await benchTimes(where, forge, runs);
    const memory = await benchMemory(where, forge);
    print(took, memory);
    return { size, took, memory };
  } finally {
    timeline.stop();
    await kubectl(['delete', 'secret', secret, '-n', namespace, '--ignore-not-found']);
    await kubectl(['delete', 'namespace', client.namespace, '--ignore-not-found', '--wait=false']);
    await uninstall(kubectl, installation);
    await stopForge(kubectl);
    installation.forget();
  }
}

/** @param {Record<'git' | 'without' | 'cold' | 'warm', readonly number[]>} took @param {Record<'publisher' | 'supervisor', number>} memory */
function print({ git, without, cold, warm }, memory) {
  const ratios = (/** @type {readonly number[]} */ times) =>
    times.map((time, run) => (time - median(without)) / (git[run] ?? NaN));
  const row = (/** @type {string} */ what, /** @type {readonly number[]} */ times, /** @type {number} */ goal) => [
    what,
    `${(median(times) - median(without)).toFixed(0)} ms`,
    median(ratios(times)).toFixed(2),
    `goal ≤ ${goal}`,
  ];
  const rows = [
    ['', 'ADDED', 'RATIO TO GIT', ''],
    ['git clone --depth=1, init, add, commit', `${median(git).toFixed(0)} ms`, '1.00', ''],
    row('Task created → session ready, cold', cold, goals.cold),
    row('the same tree prepared before', warm, goals.warm),
    ...Object.entries(memory).map(([who, bytes]) => [
      `memory of the ${who}, for a tree of ${largest.bytes / mebibyte} MiB`,
      `${(bytes / mebibyte).toFixed(1)} MiB`,
      '',
      `goal < ${goals.memory} MiB`,
    ]),
  ];
  console.log(
    `\nA repository of ${size.files} files and ${size.bytes / mebibyte} MiB, from ${forgePlace.host}\n${table(rows, '  ')}`,
  );
}
