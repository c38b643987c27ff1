// From a commit of a forge to a filled workspace, against a clone and a first commit of the same tree. `npm run bench:source`
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { selfSigned } from '../../lib/controller/self-signed.js';
import { createArtifactServer } from '../../lib/publisher/artifact-server.js';
import { ArtifactStore } from '../../lib/publisher/artifact-store.js';
import { DownloadLedger } from '../../lib/publisher/download-ledger.js';
import { createSourceGit, defaultArchiveLimits } from '../../lib/publisher/git/source.js';
import { issueArtifactCapability } from '../../lib/source/artifact-capability.js';
import { createSessionFolder, giveAway } from '../../lib/supervisor/session-folder.js';
import { fillWorkspace } from '../../lib/supervisor/workspace.js';
import { startForge } from '../cluster/forge/server.js';

const [files = 10_000, mebibytes = 50, rounds = 3] = isMainThread ? process.argv.slice(2).map(Number) : [];
const [repository, token, secret] = ['bench/repository', 'read-token', 'a'.repeat(43)];
const author = ['-c', 'gc.auto=0', '-c', 'user.name=Bench', '-c', 'user.email=bench@example.test'];

if (isMainThread) await main();
else parentPort.postMessage((await startForge(workerData)).port);

async function main() {
  const root = mkdtempSync(path.join(tmpdir(), 'orka-source-'));
  chmodSync(root, 0o755);
  const { certificate: cert, key } = await selfSigned(['localhost'], { now: Date.now(), life: 3_600_000 });
  seed(path.join(root, 'forge', `${repository}.git`));
  // A thread of its own, as a forge is elsewhere.
  const options = { root: path.join(root, 'forge'), cert, key, readToken: token, writeToken: 'write-token' };
  const forge = new Worker(new URL(import.meta.url), { workerData: options });
  const [port] = await once(forge, 'message');
  const results = [];
  try {
    for (let round = 0; round < rounds; round++) results.push(await oneRound(path.join(root, `round-${round}`), cert, port));
  } finally {
    await forge.terminate();
    rmSync(root, { recursive: true, force: true });
  }
  report(results);
}

/** Half of each file is text that repeats, half does not compress; folders are three deep. */
function seed(folder) {
  mkdirSync(folder, { recursive: true });
  git(folder, ['init', '--quiet', '--bare', '--initial-branch=main', '.']);
  const size = Math.floor((mebibytes * 2 ** 20) / files);
  const parts = [Buffer.from('commit refs/heads/main\ncommitter Bench <bench@example.test> 1700000000 +0000\ndata 1\nx\n')];
  let state = 1;
  for (let n = 0; n < files; n++) {
    const content = Buffer.from(`line ${n} of a file\n`.repeat(Math.ceil(size / 16)).slice(0, size));
    for (let at = 0; at < size / 2; at++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
      content[at] = 0x20 + ((state >>> 24) % 95);
    }
    parts.push(Buffer.from(`M 100644 inline area-${n % 10}/folder-${n % 500}/file-${n}.txt\ndata ${size}\n`), content);
    parts.push(Buffer.from('\n'));
  }
  git(folder, ['fast-import', '--quiet'], Buffer.concat(parts));
}

function git(cwd, args, input) {
  const env = { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' };
  const { status, stderr } = spawnSync('git', args, { cwd, env, input, maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
}

/** Lets the forge, which is a thread of this process, go on. */
async function gitBeside(cwd, args) {
  const env = { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' };
  const [status] = await once(spawn('git', args, { cwd, env, stdio: ['ignore', 'ignore', 'inherit'] }), 'exit');
  if (status !== 0) throw new Error(`git ${args.join(' ')} ended with ${status}`);
}

/** Seconds of the clock and of the processors, those of ended children included. */
async function measured(work) {
  const [from, spent] = [performance.now(), processorSeconds()];
  const answer = await work();
  return { answer, clock: (performance.now() - from) / 1000, processor: processorSeconds() - spent };
}

function processorSeconds() {
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return [11, 12, 13, 14].reduce((sum, field) => sum + Number(fields[field]), 0) / 100;
}

async function oneRound(folder, cert, port) {
  mkdirSync(folder);
  chmodSync(folder, 0o755);
  const peer = await measured(() => peerClone(folder, cert, port));
  const publisher = await startPublisher(folder, cert, port);
  try {
    const cold = await prepareAndFill(publisher, folder, port, 'cold');
    const warm = await prepareAndFill(publisher, folder, port, 'warm');
    return { peer, cold, warm };
  } finally {
    await publisher.close();
    rmSync(folder, { recursive: true });
  }
}

async function peerClone(folder, cert, port) {
  const ca = path.join(folder, 'ca.pem');
  writeFileSync(ca, cert);
  const header = `http.extraHeader=Authorization: Bearer ${token}`;
  const url = `https://localhost:${port}/${repository}.git`;
  await gitBeside(folder, ['-c', `http.sslCAInfo=${ca}`, '-c', header, 'clone', '--quiet', '--depth=1', url, 'clone']);
  const clone = path.join(folder, 'clone');
  rmSync(path.join(clone, '.git'), { recursive: true });
  await gitBeside(clone, ['init', '--quiet']);
  await gitBeside(clone, ['add', '.']);
  await gitBeside(clone, [...author, 'commit', '--quiet', '-m', 'baseline']);
}

async function startPublisher(folder, cert, port) {
  const source = createSourceGit({
    forges: [{ host: 'localhost', port, ca: cert, private: true, cidr: '127.0.0.0/8' }],
    tempRoot: path.join(folder, 'tmp'),
    cacheRoot: path.join(folder, 'cache'),
    limits: defaultArchiveLimits,
    log: { info: () => undefined, warn: console.error },
    resolveHost: () => Promise.resolve(['127.0.0.1']),
  });
  const store = await ArtifactStore.open(path.join(folder, 'artifacts'));
  const ledger = await DownloadLedger.open(path.join(folder, 'downloads'));
  const quiet = { info: () => undefined, error: console.error };
  const metrics = { download: () => undefined };
  const keys = { current: { artifactSecret: secret } };
  const server = createArtifactServer({ keys, store, ledger, metrics, log: quiet, clock: Date.now });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    source,
    store,
    url: new URL(`http://127.0.0.1:${server.address().port}`),
    close: async () => {
      await source.close();
      server.close();
    },
  };
}

/** What the steps of a session with a repository take, from its first question to its last commit. */
async function prepareAndFill({ source, store, url }, folder, port, name) {
  const signal = AbortSignal.timeout(300_000);
  const credential = `Authorization: Bearer ${token}`;
  const id = `localhost:${port}/${repository}`;
  const metadata = { namespace: 'bench', operationId: `operation-${name}`, taskId: 'task' };
  const request = { metadata, source: { provider: 'github', id, url: `https://${id}.git` } };
  const resolved = await measured(() => source.resolve({ ...request, sourceRef: '' }, credential, signal));
  const prepared = await measured(async () => {
    const reservation = await store.reserve();
    const { sourceRef, baselineOid } = resolved.answer;
    const made = await source.prepare({ ...request, sourceRef, baselineOid }, credential, reservation.target, signal);
    await reservation.admit(made.artifact);
    await reservation.release();
    return made;
  });
  const steps = {};
  const filled = await measured(() => fill(prepared.answer.artifact, resolved.answer.baselineOid, url, folder, name, steps));
  const all = [resolved, prepared, filled];
  const sum = (key) => all.reduce((total, one) => total + one[key], 0);
  return {
    clock: sum('clock'),
    processor: sum('processor'),
    steps: { resolve: resolved.clock, prepare: prepared.clock, ...steps, fill: filled.clock },
    processors: { resolve: resolved.processor, prepare: prepared.processor, fill: filled.processor },
  };
}

async function fill(artifact, revision, url, folder, name, steps) {
  const session = createSessionFolder(folder, name, 1);
  const identity = process.getuid() === 0 ? { uid: 64_321, gid: 64_321 } : undefined;
  giveAway(session.root, identity);
  const workspaceArtifactAuthorization = issueArtifactCapability(
    secret,
    {
      operation: 'download',
      objectDigest: artifact.digest,
      identity: { namespace: 'bench', taskID: 'task' },
      contentLength: artifact.sizeBytes,
      mediaType: artifact.mediaType,
      operationID: `download-${name}`,
    },
    Date.now(),
  );
  const order = { runtimeSessionID: name, workspace: { baseline: { revision, artifact } }, workspaceArtifactAuthorization };
  const take = (_, { extractMs, gitMs }) => Object.assign(steps, { extract: extractMs / 1000, git: gitMs / 1000 });
  const log = { info: take, error: console.error };
  const filling = { order, folder: session, identity, signal: AbortSignal.timeout(300_000) };
  await fillWorkspace(filling, { url, maxBytes: defaultArchiveLimits.maxArtifactBytes }, log);
}

function report(results) {
  const median = (of) => results.map(of).sort((a, b) => a - b)[Math.floor(results.length / 2)];
  const row = (name, goal) => ({
    'clock (s)': median((one) => one[name].clock).toFixed(2),
    'processor (s)': median((one) => one[name].processor).toFixed(2),
    'clock / peer': `${median((one) => one[name].clock / one.peer.clock).toFixed(2)} x`,
    'processor / peer': `${median((one) => one[name].processor / one.peer.processor).toFixed(2)} x`,
    goal,
  });
  console.log(
    `\nFrom a commit to a filled workspace: ${files} files, ${mebibytes} MiB; the peer clones and commits the same tree\n`,
  );
  console.table({ 'git clone, add, commit': row('peer', ''), cold: row('cold', '2 x'), warm: row('warm', '1 x') });
  const shares = (name) => {
    const steps = Object.keys(results[0][name].steps);
    return Object.fromEntries(steps.map((step) => [`${step} (s)`, median((one) => one[name].steps[step]).toFixed(2)]));
  };
  console.table({ cold: shares('cold'), warm: shares('warm') });
  const processors = (name) => {
    const steps = Object.keys(results[0][name].processors);
    return Object.fromEntries(
      steps.map((step) => [`${step}, processor (s)`, median((one) => one[name].processors[step]).toFixed(2)]),
    );
  };
  console.table({ cold: processors('cold'), warm: processors('warm') });
}
