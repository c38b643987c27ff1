// The pinned programs, built from their Go modules and kept in the cache.

import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { Failure } from './failure.js';
import { isAlive, self } from './processes.js';
import { step } from './progress.js';
import { attempt, run } from './run.js';
import { cache, root } from './settings.js';

/**
 * @typedef {object} Module
 * @property {string} name folder below modules/
 * @property {string} [of] the Go module it pins; without it the programs are our own
 * @property {Readonly<Record<string, string>>} programs file name to Go package
 * @property {(version: string) => readonly string[]} [stamps] linker variables, so that the program knows its version
 * @property {string} [assets] folder of the pinned module kept beside the programs
 * @property {number} megabytes disk that its first build takes: sources, compiled packages, programs
 */

/** Least expensive first: a problem with the tools shows within seconds. @type {readonly Module[]} */
export const modules = [
  { name: 'pause', megabytes: 100, programs: { pause: '.' } },
  { name: 'etcd', megabytes: 800, of: 'go.etcd.io/etcd/server/v3', programs: { etcd: 'go.etcd.io/etcd/server/v3' } },
  {
    name: 'agent-sandbox',
    megabytes: 1_200,
    of: 'sigs.k8s.io/agent-sandbox',
    programs: { 'agent-sandbox-controller': 'sigs.k8s.io/agent-sandbox/cmd/agent-sandbox-controller' },
    stamps: (version) => [`sigs.k8s.io/agent-sandbox/internal/version.gitVersion=${version}`],
    assets: 'k8s',
  },
  { name: 'coredns', megabytes: 500, of: 'github.com/coredns/coredns', programs: { coredns: '.' } },
  {
    name: 'kube-router',
    megabytes: 1_000,
    of: 'github.com/cloudnativelabs/kube-router/v2',
    programs: { 'kube-router': 'github.com/cloudnativelabs/kube-router/v2/cmd/kube-router' },
    stamps: (version) => [`github.com/cloudnativelabs/kube-router/v2/pkg/version.Version=${version}`],
  },
  {
    name: 'kubernetes',
    megabytes: 4_600,
    of: 'k8s.io/kubernetes',
    programs: Object.fromEntries(
      ['kubectl', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet', 'kube-proxy'].map((program) => [
        program,
        `k8s.io/kubernetes/cmd/${program}`,
      ]),
    ),
    stamps: (version) => {
      const [major, minor] = version.slice(1).split('.');
      const at = 'k8s.io/component-base/version';
      return [`${at}.gitVersion=${version}`, `${at}.gitMajor=${major}`, `${at}.gitMinor=${minor}`];
    },
  },
];

const minimumGo = { major: 1, minor: 26 };
const files = 'files.json';

/** Where a machine without a login shell keeps Go. */
const candidates = ['go', '/usr/local/go/bin/go', '/usr/lib/go/bin/go'];

/**
 * The Go command and the version it reports.
 *
 * @returns {Promise<{ command: string, version: string }>}
 */
export async function findGo() {
  let found = '';
  for (const command of candidates) {
    const { status, stdout } = await attempt(command, ['env', 'GOVERSION'], { env: { GOTOOLCHAIN: 'local' } });
    if (status !== 0) continue;
    const version = stdout.trim();
    const [major = 0, minor = 0] = (/^go(\d+)\.(\d+)/.exec(version)?.slice(1) ?? []).map(Number);
    if (major > minimumGo.major || (major === minimumGo.major && minor >= minimumGo.minor)) return { command, version };
    found = `${command} is ${version}`;
  }
  const wanted = `Go ${minimumGo.major}.${minimumGo.minor} or newer is needed to build the cluster's programs`;
  throw new Failure(found ? `${wanted}; ${found}.` : `${wanted}; no go command was found (looked at ${candidates.join(', ')}).`);
}

/** @param {Module} module */
function moduleFile(module, file = 'go.mod') {
  return path.join(root, 'modules', module.name, file);
}

/**
 * Version of the pinned module as its go.mod says.
 *
 * @param {Module} module
 */
export function versionOf(module) {
  if (!module.of) return 'own';
  const line = readFileSync(moduleFile(module), 'utf8')
    .split('\n')
    .map((text) => text.trim().replace(/^require /, ''))
    .find((text) => text.startsWith(`${module.of} v`));
  if (!line) throw new Error(`${moduleFile(module)} does not require ${module.of}`);
  return line.split(' ')[1] ?? '';
}

/** @param {Module} module */
function linkerFlags(module) {
  return ['-s', '-w', ...(module.stamps?.(versionOf(module)) ?? []).flatMap((stamp) => ['-X', stamp])].join(' ');
}

/**
 * The module's folder in the cache: named by everything that decides what is built.
 *
 * @param {Module} module
 * @param {string} goVersion
 */
function folderOf(module, goVersion) {
  const hash = createHash('sha256').update(
    JSON.stringify([goVersion, process.arch, linkerFlags(module), module.programs, module.assets ?? '']),
  );
  const source = path.join(root, 'modules', module.name);
  for (const name of readdirSync(source).sort()) hash.update(`\0${name}\0`).update(readFileSync(path.join(source, name)));
  return path.join(cache, `${module.name}-${versionOf(module)}-${hash.digest('hex').slice(0, 16)}`);
}

/**
 * A folder counts as built when each file has the size it was built with. A folder only ever appears under its name whole;
 * this finds what something else did to it later.
 *
 * @param {string} folder
 */
function isWhole(folder) {
  try {
    const sizes = /** @type {Record<string, number>} */ (JSON.parse(readFileSync(path.join(folder, files), 'utf8')));
    return Object.entries(sizes).every(([file, size]) => statSync(path.join(folder, file)).size === size);
  } catch {
    return false;
  }
}

/** @param {string} folder */
function recordFiles(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const named = entries.map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name))).sort();
  const sizes = Object.fromEntries(named.map((file) => [file, statSync(path.join(folder, file)).size]));
  writeFileSync(path.join(folder, files), JSON.stringify(sizes, null, 2));
}

/** Removes what builds that were killed left behind. */
function sweep() {
  for (const name of readdirSync(cache)) {
    const [, pid, startTime] = /\.part-(\d+)-(\d+)$/.exec(name) ?? [];
    if (pid && startTime && !isAlive({ pid: Number(pid), startTime }))
      rmSync(path.join(cache, name), { recursive: true, force: true });
  }
}

/**
 * @param {Module} module
 * @param {string} folder
 * @param {string} go
 * @param {(state: string) => void} report
 */
async function build(module, folder, go, report) {
  const me = self();
  const part = `${folder}.part-${me.pid}-${me.startTime}`;
  const log = path.join(cache, `${module.name}.build.log`);
  const cwd = path.join(root, 'modules', module.name);
  const env = {
    CGO_ENABLED: '0',
    GOFLAGS: '-mod=readonly -buildvcs=false',
    GOTOOLCHAIN: 'local',
    GOWORK: 'off',
    GOOS: 'linux',
    GOARCH: '',
  };
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(path.join(part, 'bin'), { recursive: true });
  writeFileSync(log, '');
  try {
    let packages = 0;
    for (const [program, source] of Object.entries(module.programs)) {
      const output = path.join(part, 'bin', program);
      const onLine = (/** @type {string} */ line) => {
        if (line.startsWith('go: ')) report(`${program}, ${line.slice('go: '.length)}`);
        else report(`${program}, ${++packages} packages compiled`);
      };
      const args = ['-n', '10', go, 'build', '-p', '2', '-trimpath', '-v', '-ldflags', linkerFlags(module), '-o', output, source];
      await run('nice', args, { cwd, env, log, onLine });
    }
    if (module.of && module.assets) {
      const source = (await run(go, ['list', '-m', '-f', '{{.Dir}}', module.of], { cwd, env, log })).trim();
      cpSync(path.join(source, module.assets), path.join(part, module.assets), { recursive: true });
    }
    recordFiles(part);
    renameSync(part, folder);
    report(`${packages} packages`);
  } catch (error) {
    rmSync(part, { recursive: true, force: true });
    if (error instanceof Failure)
      throw new Failure(`Building ${module.name} ${versionOf(module)} failed.\n${error.message}`, { log });
    throw error;
  }
}

/**
 * Disk that building what the cache lacks will take.
 *
 * @param {string} goVersion
 */
export function megabytesMissing(goVersion) {
  const lacking = modules.filter((module) => !isWhole(folderOf(module, goVersion)));
  return lacking.reduce((sum, { megabytes }) => sum + megabytes, 0);
}

/**
 * @typedef {object} Built
 * @property {(program: string) => string} program path of a program
 * @property {string} providerManifests the provider's k8s folder
 */

/**
 * Where the built programs are; does not look whether they are there.
 *
 * @param {string} goVersion
 * @returns {Built}
 */
function locate(goVersion) {
  const folders = new Map(modules.map((module) => [module.name, folderOf(module, goVersion)]));
  const paths = new Map(
    modules.flatMap((module) =>
      Object.keys(module.programs).map((program) => [program, path.join(folders.get(module.name) ?? '', 'bin', program)]),
    ),
  );
  return {
    program: (name) => {
      const found = paths.get(name);
      if (!found) throw new Error(`no module builds ${name}`);
      return found;
    },
    providerManifests: path.join(folders.get('agent-sandbox') ?? '', 'k8s'),
  };
}

/**
 * Builds what the cache lacks, one module after another.
 *
 * @param {{ command: string, version: string }} go
 * @returns {Promise<Built>}
 */
export async function ensureBuilt(go) {
  mkdirSync(cache, { recursive: true });
  sweep();
  for (const module of modules) {
    const folder = folderOf(module, go.version);
    if (isWhole(folder)) continue;
    const again = existsSync(folder) ? 'incomplete in the cache, building again' : 'building';
    await step(`build ${module.name} ${versionOf(module)}`, (report) => {
      report(again);
      return build(module, folder, go.command, report);
    });
  }
  return locate(go.version);
}
