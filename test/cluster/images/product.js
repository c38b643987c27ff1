// The product's own images: what a sandbox runs, the controller, and the publisher. Same inputs, same digest.

import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';

import { adapterDigests } from '../../../images/acp-codex/digests.js';
import { Failure } from '../failure.js';
import { run } from '../run.js';
import { cache } from '../settings.js';
import { base, shell } from './cluster.js';
import { buildImage, filesOf } from './oci.js';

/** @typedef {import('./oci.js').Image} Image */
/** @typedef {import('./oci.js').ImageFile} ImageFile */

const repository = path.resolve(import.meta.dirname, '../../..');
const opt = '/opt/orka-workspaces';

/** What each image loads at run time; their dependencies follow. The client-node package is for kubeconfigs only. */
const packages = {
  controller: ['cdk8s', 'constructs', 'commander', 'jsonpatch', 'yaml', '@marcbachmann/cel-js'],
  supervisor: ['@marcbachmann/cel-js'],
};

/**
 * Folders of packages and of all that they depend on, as Node finds them from the root of the repository.
 *
 * @param {readonly string[]} roots
 * @returns {readonly string[]} relative to the repository, sorted
 */
function packageFolders(roots) {
  /** @type {Set<string>} */
  const found = new Set();
  const visit = (/** @type {string} */ name, /** @type {string} */ from) => {
    const folder = lookUp(name, from);
    if (found.has(folder)) return;
    found.add(folder);
    const { dependencies = {} } = /** @type {{ dependencies?: Record<string, string> }} */ (
      JSON.parse(readFileSync(path.join(repository, folder, 'package.json'), 'utf8'))
    );
    for (const dependency of Object.keys(dependencies)) visit(dependency, folder);
  };
  for (const name of roots) visit(name, '');
  // A package inside another one's folder comes with it.
  return [...found].filter((folder) => ![...found].some((other) => folder.startsWith(`${other}/`))).sort();
}

/** @param {string} name @param {string} from */
function lookUp(name, from) {
  for (let at = from; ; at = at.includes('/node_modules/') ? at.slice(0, at.lastIndexOf('/node_modules/')) : '') {
    const folder = path.posix.join(at, 'node_modules', name);
    if (existsSync(path.join(repository, folder, 'package.json'))) return folder;
    if (at === '') throw new Failure(`${name}, which ${from || 'an image'} needs, is not installed: run npm ci`);
  }
}

/** @param {readonly string[]} roots @returns {readonly ImageFile[]} */
function ownPackage(roots) {
  if (!existsSync(path.join(repository, 'lib/bin/orka-workspaces.js'))) throw new Failure('lib/ is missing: run npm run build');
  const code = (/** @type {string} */ name) =>
    !name.endsWith('.d.ts') && !name.endsWith('.map') && !name.startsWith('imports') && !name.startsWith('.');
  return [
    { path: `${opt}/package.json`, source: path.join(repository, 'package.json') },
    ...filesOf(path.join(repository, 'lib'), `${opt}/lib`, code),
    ...packageFolders(roots).flatMap((folder) => [
      { path: `${opt}/${folder}`, folder: true },
      ...filesOf(path.join(repository, folder), `${opt}/${folder}`, (name) => !/\.(d\.ts|map|md|markdown)$/.test(name)),
    ]),
  ];
}

/**
 * A program and the shared libraries that it is linked with.
 *
 * @param {string} source
 * @param {string} target path in the image
 * @returns {Promise<readonly ImageFile[]>}
 */
export async function program(source, target) {
  const linked = (await run('ldd', [source])).matchAll(/(?:=> )?(\/\S+) \(0x/g);
  const libraries = [...linked].map(([, library = '']) => ({ path: library, source: realpathSync(library) }));
  return [{ path: target, source: realpathSync(source), mode: 0o755 }, ...libraries];
}

/** Git with the one transport that the publisher uses, the shell that bounds it, and the authorities that it trusts by default. @returns {Promise<readonly ImageFile[]>} */
async function gitWithHttps() {
  const core = (await run('git', ['--exec-path'])).trim();
  const programs = await Promise.all([
    program('/usr/bin/git', '/usr/bin/git'),
    program('/bin/sh', '/bin/sh'),
    program('/bin/false', '/bin/false'),
    program(`${core}/git-remote-http`, `${core}/git-remote-http`),
  ]);
  const links = [
    { path: `${core}/git`, link: '/usr/bin/git' },
    { path: `${core}/git-remote-https`, link: 'git-remote-http' },
  ];
  const authorities = '/etc/ssl/certs/ca-certificates.crt';
  return [...programs.flat(), ...links, { path: authorities, source: realpathSync(authorities), mode: 0o644 }];
}

/** Two programs may share a library. @param {readonly ImageFile[]} files */
export function once(files) {
  return [...new Map(files.map((file) => [file.path, file])).values()];
}

/** The agent's packages, installed once for each lock file. @returns {Promise<string>} a `node_modules` folder */
async function agentModules() {
  const source = path.join(repository, 'images/acp-codex');
  const lock = readFileSync(path.join(source, 'package-lock.json'));
  const target = path.join(
    cache,
    `acp-codex-${createHash('sha256').update(lock).update(process.arch).digest('hex').slice(0, 16)}`,
  );
  if (existsSync(target)) return path.join(target, 'node_modules');
  mkdirSync(cache, { recursive: true });
  const part = mkdtempSync(path.join(cache, 'acp-codex-part-'));
  try {
    for (const name of ['package.json', 'package-lock.json']) cpSync(path.join(source, name), path.join(part, name));
    await run('npm', ['ci', '--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund'], { cwd: part, timeout: 600_000 });
    renameSync(part, target);
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
  return path.join(target, 'node_modules');
}

/**
 * @param {string} folder where the archives are put
 * @returns {Promise<{ images: Record<'acp-codex' | 'controller' | 'publisher', Image>, adapterDigests: Record<string, string> }>}
 */
export async function productImages(folder) {
  const node = await program(process.execPath, '/usr/local/bin/node');
  const modules = await agentModules();
  const digests = adapterDigests(modules);
  const tools = (
    await Promise.all([
      program('/usr/bin/tini', '/usr/bin/tini'),
      program('/usr/bin/setpriv', '/usr/bin/setpriv'),
      program('/usr/bin/prlimit', '/usr/bin/prlimit'),
      program('/bin/bash', '/bin/bash'),
      // One binary and no helper programs: it has no http.
      program('/usr/bin/git', '/usr/bin/git'),
    ])
  ).flat();
  const runtime = buildImage({
    name: 'acp-codex',
    folder,
    files: once([
      ...base,
      ...(await shell()),
      ...node,
      ...tools,
      ...ownPackage(packages.supervisor),
      { path: '/opt/codex-acp/node_modules', folder: true },
      ...filesOf(modules, '/opt/codex-acp/node_modules', (name) => !/\.(d\.ts|map|md)$/.test(name)),
      { path: '/etc/orka/adapter-digests.json', content: `${JSON.stringify(digests)}\n` },
      { path: '/etc/orka/codex.toml', source: path.join(repository, 'images/acp-codex/codex.toml'), mode: 0o644 },
      { path: '/etc/gitconfig', source: path.join(repository, 'images/acp-codex/gitconfig'), mode: 0o644 },
      { path: '/sessions', folder: true, mode: 0o711 },
      { path: '/home/worker', folder: true },
    ]),
    config: {
      Entrypoint: ['/usr/bin/tini', '--', '/usr/local/bin/node', `${opt}/lib/supervisor/main.js`],
      Env: ['PATH=/usr/local/bin:/usr/bin:/bin'],
    },
  });
  const controller = buildImage({
    name: 'controller',
    folder,
    files: once([...base, ...node, ...ownPackage(packages.controller)]),
    config: {
      Entrypoint: ['/usr/local/bin/node', `${opt}/lib/bin/orka-workspaces.js`],
      Env: ['PATH=/usr/local/bin'],
      User: '65532:65532',
    },
  });
  const publisher = buildImage({
    name: 'publisher',
    folder,
    files: once([...base, ...node, ...(await gitWithHttps()), ...ownPackage(packages.controller)]),
    config: {
      Entrypoint: ['/usr/local/bin/node', `${opt}/lib/bin/orka-workspaces.js`],
      Env: ['PATH=/usr/local/bin:/usr/bin:/bin'],
      User: '65532:65532',
    },
  });
  return { images: { 'acp-codex': runtime, controller, publisher }, adapterDigests: digests };
}
