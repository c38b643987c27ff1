import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { createSourceGit, defaultArchiveLimits } from '../../../src/publisher/git/source.js';
import { bareRepository, commitTree, git, readToken, testForge } from '../../support/forge.js';
import type { TestForge, TreeEntry } from '../../support/forge.js';
import { eventually } from '../../support/eventually.js';
import { failureOf, prepareRequest, readCredential, resolveRequest, testSource } from '../../support/source-git.js';
import type { TestSource } from '../../support/source-git.js';
import { extract } from '../../support/tar-list.js';

let forge: TestForge;
let source: TestSource;
let count = 0;
const { signal } = new AbortController();

beforeAll(async () => {
  forge = await testForge();
  source = testSource(forge);
});
afterAll(async () => {
  await source.close();
  await forge.close();
});
afterEach(() => {
  forge.set({ mode: 'ok' });
  expect(readdirSync(source.tempRoot)).toEqual([]);
});

const target = (): string => path.join(source.folder, `target-${count++}`);

async function failureWith(entries: readonly TreeEntry[]): Promise<Error> {
  const name = `acme/h${count++}`;
  const oid = commitTree(bareRepository(forge.root, `${name}.git`), entries);
  return failureOf(source.git.prepare(prepareRequest(forge, name, oid), readCredential, target(), signal));
}

const chain = (hops: number): readonly TreeEntry[] =>
  Array.from({ length: hops }, (_, index) => ({
    path: `l${String(index).padStart(3, '0')}`,
    mode: '120000',
    content: `l${String(index + 1).padStart(3, '0')}`,
  }));

test('a chain of 40 links is prepared, one of 41 is refused', async () => {
  const oid = commitTree(bareRepository(forge.root, 'acme/links.git'), chain(40));
  expect(await source.git.prepare(prepareRequest(forge, 'acme/links', oid), readCredential, target(), signal)).toMatchObject({
    entryCount: 40,
  });
  expect(await failureWith(chain(41))).toMatchObject({ code: 'tree_refused', detail: { reason: 'unsafe_link' } });
});

test('links in a cycle are refused', async () => {
  const links = ['a', 'b'].map((name): TreeEntry => ({ path: name, mode: '120000', content: name === 'a' ? 'b' : 'a' }));
  expect(await failureWith(links)).toMatchObject({ code: 'tree_refused', detail: { reason: 'unsafe_link' } });
});

/** Writes a tree object with entries that no porcelain of git would write, and commits it. */
function rawTree(folder: string, entries: readonly { mode: string; name: Buffer; oid: string }[]): string {
  const bytes = Buffer.concat(
    entries.map(({ mode, name, oid }) => Buffer.concat([Buffer.from(`${mode} `), name, Buffer.of(0), Buffer.from(oid, 'hex')])),
  );
  const tree = git(folder, ['hash-object', '-t', 'tree', '-w', '--literally', '--stdin'], bytes);
  const commit = git(folder, ['commit-tree', '-m', 'raw', tree]);
  git(folder, ['update-ref', 'refs/heads/main', commit]);
  return commit;
}

test.each([
  ['.git', '.git', 'reserved_name'],
  ['.GIT', '.GIT', 'reserved_name'],
  ['..', '..', 'path'],
  ['.', '.', 'path'],
])('a raw tree with the name %s is refused by name', async (_, name, reason) => {
  const repository = `acme/raw${count++}`;
  const folder = bareRepository(forge.root, `${repository}.git`);
  const oid = git(folder, ['hash-object', '-w', '--stdin'], 'x');
  const commit = rawTree(folder, [{ mode: '100644', name: Buffer.from(name), oid }]);
  const work = source.git.prepare(prepareRequest(forge, repository, commit), readCredential, target(), signal);
  expect(await failureOf(work)).toMatchObject({ code: 'tree_refused', detail: { reason, path: name } });
});

test('a name that is not UTF-8 is refused with its bytes escaped', async () => {
  const folder = bareRepository(forge.root, 'acme/latin.git');
  const oid = git(folder, ['hash-object', '-w', '--stdin'], 'x');
  const commit = rawTree(folder, [{ mode: '100644', name: Buffer.from([0x61, 0xff, 0x62]), oid }]);
  const work = source.git.prepare(prepareRequest(forge, 'acme/latin', commit), readCredential, target(), signal);
  expect(await failureOf(work)).toMatchObject({ code: 'tree_refused', detail: { reason: 'encoding', path: 'a\\xffb' } });
});

test.each([
  ['two entries of one name', ['a', 'a']],
  ['names in the wrong order', ['b', 'a']],
  ['a name with a slash', ['a/b']],
])('a raw tree with %s is refused as corrupt', async (_, names) => {
  const repository = `acme/raw${count++}`;
  const folder = bareRepository(forge.root, `${repository}.git`);
  const oid = git(folder, ['hash-object', '-w', '--stdin'], 'x');
  const entries = names.map((name) => ({ mode: '100644', name: Buffer.from(name), oid }));
  const commit = rawTree(folder, entries);
  const work = source.git.prepare(prepareRequest(forge, repository, commit), readCredential, target(), signal);
  expect(await failureOf(work)).toMatchObject({ code: 'source_corrupt', retryable: false });
});

test('a repository whose pack is garbage is no success', async () => {
  const folder = bareRepository(forge.root, 'acme/garbage.git');
  const oid = commitTree(folder, [{ path: 'a', content: 'x'.repeat(5000) }]);
  git(folder, ['repack', '-adq']);
  const packs = path.join(folder, 'objects/pack');
  const pack = path.join(packs, readdirSync(packs).find((name) => name.endsWith('.pack')) ?? '');
  const bytes = readFileSync(pack);
  bytes.fill(0xaa, 12, bytes.length - 20);
  rmSync(pack, { force: true });
  writeFileSync(pack, bytes);
  const file = target();
  const work = source.git.prepare(prepareRequest(forge, 'acme/garbage', oid), readCredential, file, signal);
  expect(['scm_failure', 'source_corrupt']).toContain(((await failureOf(work)) as Error & { code: string }).code);
  expect(existsSync(file)).toBe(false);
});

test('100,001 files are refused with how many there are', async () => {
  const folder = bareRepository(forge.root, 'acme/many.git');
  const names = Array.from({ length: 100_001 }, (_, index) => `M 100644 :1 d${index % 100}/f${index}\n`);
  const stream = `blob\nmark :1\ndata 1\nx\ncommit refs/heads/main\ncommitter F <f@example.test> 1 +0000\ndata 1\nm\n${names.join('')}`;
  git(folder, ['fast-import', '--quiet'], stream);
  const oid = git(folder, ['rev-parse', 'main']);
  const work = source.git.prepare(prepareRequest(forge, 'acme/many', oid), readCredential, target(), signal);
  expect(await failureOf(work)).toMatchObject({
    code: 'tree_refused',
    detail: { reason: 'too_many_entries', limit: 100_000, found: 100_101 },
  });
});

test('a file of more than the limit is refused although it compresses to little', async () => {
  const size = 65 * 1024 * 1024;
  const failure = await failureWith([{ path: 'zeros', content: Buffer.alloc(size) }]);
  expect(failure).toMatchObject({
    code: 'tree_refused',
    detail: { reason: 'file_too_large', path: 'zeros', limit: 64 * 1024 * 1024, found: size },
  });
});

test('a pack that is larger than the bound of a file is refused as too large', async () => {
  // The bound of a file is 64 MiB more than that of a tree.
  const small = testSource(forge, {
    limits: { maxEntries: 10, maxFileBytes: 1, maxExpandedBytes: 1 - 63 * 1024 * 1024, maxArtifactBytes: 1 },
  });
  try {
    const oid = commitTree(bareRepository(forge.root, 'acme/random.git'), [{ path: 'r', content: randomBytes(3 * 1024 * 1024) }]);
    const work = small.git.prepare(prepareRequest(forge, 'acme/random', oid), readCredential, target(), signal);
    expect(await failureOf(work)).toMatchObject({ code: 'tree_refused', detail: { reason: 'tree_too_large' } });
    expect(readdirSync(small.tempRoot)).toEqual([]);
  } finally {
    await small.close();
  }
});

test('configuration, hooks, filters and environment of the machine have no effect', async () => {
  const home = mkdtempSync(path.join(tmpdir(), 'hostile-home-'));
  const proof = path.join(home, 'proof');
  mkdirSync(path.join(home, 'hooks'));
  writeFileSync(path.join(home, 'hooks/reference-transaction'), `#!/bin/sh\necho hook >> ${proof}\n`, { mode: 0o755 });
  writeFileSync(
    path.join(home, '.gitconfig'),
    `[core]\n hooksPath = ${home}/hooks\n fsmonitor = "echo x >> ${proof}"\n[credential]\n helper = "!echo x >> ${proof}"\n` +
      `[url "file:///nowhere/"]\n insteadOf = https://\n[filter "x"]\n smudge = "echo x >> ${proof}"\n[http]\n sslVerify = false\n`,
  );
  const hostile: Record<string, string> = {
    HOME: home,
    GIT_CONFIG_GLOBAL: `${home}/.gitconfig`,
    GIT_CONFIG_SYSTEM: `${home}/.gitconfig`,
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'core.hooksPath',
    GIT_CONFIG_VALUE_0: `${home}/hooks`,
    GIT_DIR: '/nonexistent',
    GIT_OBJECT_DIRECTORY: '/nonexistent',
    GIT_ALTERNATE_OBJECT_DIRECTORIES: '/nonexistent',
    GIT_SSL_NO_VERIFY: '1',
    GIT_PROXY_COMMAND: `echo x >> ${proof}`,
    GIT_TRACE: `${home}/trace`,
    GIT_TRACE_CURL: `${home}/trace`,
    https_proxy: 'http://127.0.0.1:1',
    HTTPS_PROXY: 'http://127.0.0.1:1',
    ALL_PROXY: 'http://127.0.0.1:1',
  };
  const before = Object.fromEntries(Object.keys(hostile).map((name) => [name, process.env[name]]));
  const oid = commitTree(bareRepository(forge.root, 'acme/filters.git'), [
    { path: '.gitattributes', content: '* filter=x text eol=crlf export-ignore\n' },
    { path: 'a.txt', content: 'one\ntwo\n' },
  ]);
  const file = target();
  Object.assign(process.env, hostile);
  try {
    await source.git.resolve(resolveRequest(forge, 'acme/filters'), readCredential, signal);
    await source.git.prepare(prepareRequest(forge, 'acme/filters', oid), readCredential, file, signal);
  } finally {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) Reflect.deleteProperty(process.env, name);
      else process.env[name] = value;
    }
  }
  expect(extract(file).map(({ content }) => content?.toString())).toContain('one\ntwo\n');
  expect(readdirSync(home).sort()).toEqual(['.gitconfig', 'hooks']);
  rmSync(home, { recursive: true });
});

/** Argument lists and environments of all processes in the groups below this one that run for the source. */
function processesOf(folder: string): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const text = `${readFileSync(`/proc/${pid}/cmdline`, 'latin1')}\n${readFileSync(`/proc/${pid}/environ`, 'latin1')}`;
        return text.includes(folder) && Number(pid) !== process.pid ? [text] : [];
      } catch {
        return [];
      }
    });
}

test('the credential of a running operation is in no argument and no environment, and only its owner can read the file', async () => {
  forge.set({ mode: 'slow' });
  const controller = new AbortController();
  const seen = forge.requests().length;
  const request = resolveRequest(forge, 'acme/links', 'main');
  const work = failureOf(source.git.resolve(request, readCredential, controller.signal));
  await eventually(() => forge.requests().length > seen);
  const processes = processesOf(source.tempRoot);
  expect(processes.length).toBeGreaterThan(1);
  const secrets = [readToken, readCredential.split(' ')[2] ?? '', 'orka-publisher:'];
  for (const text of processes) for (const secret of secrets) expect(text).not.toContain(secret);
  const [operation = ''] = readdirSync(source.tempRoot);
  const folder = path.join(source.tempRoot, operation);
  const config = path.join(folder, 'gitconfig');
  expect(readFileSync(config, 'utf8')).toContain(secrets[1]);
  expect([statSync(folder).mode & 0o777, statSync(config).mode & 0o777]).toEqual([0o700, 0o600]);
  controller.abort();
  await work;
  await eventually(() => processesOf(source.tempRoot).length === 0);
});

test('what an earlier process left in the temporary folder is removed at the start', async () => {
  const first = testSource(forge);
  const left = path.join(first.tempRoot, 'operation-left');
  mkdirSync(left);
  writeFileSync(path.join(left, 'gitconfig'), 'secret');
  const log = { info: () => undefined, warn: () => undefined };
  const options = { forges: [], tempRoot: first.tempRoot, cacheRoot: first.cacheRoot, limits: defaultArchiveLimits, log };
  const second = createSourceGit(options);
  expect(readdirSync(first.tempRoot)).toEqual([]);
  await second.close();
  await first.close();
});

test('git of this machine is as new as the tested one', async () => {
  const shown = execFileSync('git', ['--version'], { encoding: 'utf8' }).trim();
  expect(shown).toContain(await source.git.version());
});
