/** Repositories of a few kilobytes that would take the memory, the time or the way out of a publisher. */
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { deflateSync } from 'node:zlib';

import { OperationFolder } from '../../../src/publisher/git/operation-folder.js';
import { GitFailure, GitRunner } from '../../../src/publisher/git/runner.js';
import { defaultArchiveLimits } from '../../../src/publisher/git/source.js';
import { TreeReader } from '../../../src/publisher/git/tree.js';
import { bareRepository, commitTree, git, testForge } from '../../support/forge.js';
import type { TestForge } from '../../support/forge.js';
import { limit } from '../../support/pace.js';
import { failureOf, prepareRequest, readCredential, testSource } from '../../support/source-git.js';
import type { TestSource } from '../../support/source-git.js';

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
  expect(readdirSync(source.tempRoot)).toEqual([]);
});

const target = (): string => path.join(source.folder, `target-${count++}`);

type RawEntry = readonly [mode: string, name: string, oid: string];

/** A tree object. The names must be in the order of Git. Thousands of processes of git would take too long. */
function treeOf(folder: string, entries: readonly RawEntry[]): string {
  const content = Buffer.concat(
    entries.map(([mode, name, oid]) => Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(oid, 'hex')])),
  );
  const object = Buffer.concat([Buffer.from(`tree ${content.length}\0`), content]);
  const oid = createHash('sha1').update(object).digest('hex');
  const beside = path.join(folder, 'objects', oid.slice(0, 2));
  mkdirSync(beside, { recursive: true });
  writeFileSync(path.join(beside, oid.slice(2)), deflateSync(object));
  return oid;
}

function commitOf(folder: string, tree: string): string {
  const commit = git(folder, ['commit-tree', '-m', 'raw', tree]);
  git(folder, ['update-ref', 'refs/heads/main', commit]);
  return commit;
}

test(
  'ten levels of ten times the same folder are refused without reading their ten thousand million files',
  async () => {
    const folder = bareRepository(forge.root, 'acme/bomb.git');
    let [mode, oid] = ['100644', git(folder, ['hash-object', '-w', '--stdin'], 'x')];
    for (let level = 0; level < 10; level++) {
      const entries = Array.from({ length: 10 }, (_, index): RawEntry => [mode, `d${index}`, oid]);
      [mode, oid] = ['40000', treeOf(folder, entries)];
    }
    const commit = commitOf(folder, oid);
    const work = source.git.prepare(prepareRequest(forge, 'acme/bomb', commit), readCredential, target(), signal);
    expect(await failureOf(work)).toMatchObject({
      code: 'tree_refused',
      retryable: false,
      detail: { reason: 'too_many_entries', limit: 100_000 },
    });
  },
  limit(60_000),
);

test('names of gigabytes are refused once their headers alone would fill an archive', async () => {
  const folder = `${'d'.repeat(250)}/`.repeat(15);
  const record = (index: number) => `100644 blob ${'1'.repeat(40)}       1\t${folder}${String(index).padStart(8, '0')}\0`;
  let listed = 0;
  function* listing(): Generator<Buffer> {
    for (let index = 0; index < 90_000; index += 100) {
      const part = Buffer.from(Array.from({ length: 100 }, (_, one) => record(index + one)).join(''));
      listed += part.length;
      yield part;
    }
  }
  const process = { stdin: new PassThrough(), stdout: Readable.from(listing()), done: Promise.resolve(), kill: () => undefined };
  expect(await failureOf(new TreeReader('repository x', defaultArchiveLimits).read(process))).toMatchObject({
    code: 'tree_refused',
    detail: { reason: 'tree_too_large', limit: 100 * 1024 * 1024 },
  });
  expect(listed).toBeLessThan(100 * 1024 * 1024);
});

test('a kept archive of a commit that was spoiled on disk is made again from the forge', async () => {
  const folder = bareRepository(forge.root, 'acme/spoiled.git');
  const oid = commitTree(folder, [{ path: 'a/b', content: 'x'.repeat(100) }]);
  const request = prepareRequest(forge, 'acme/spoiled', oid, oid);
  const first = await source.git.prepare(request, readCredential, target(), signal);
  for (const name of readdirSync(source.cacheRoot)) {
    const file = path.join(source.cacheRoot, name, 'archive.tar');
    const bytes = readFileSync(file);
    bytes[600] = (bytes[600] ?? 0) ^ 1;
    writeFileSync(file, bytes);
  }
  const file = target();
  expect(await source.git.prepare(request, readCredential, file, signal)).toEqual(first);
});

test(
  'the largest files are read from a pack that holds one as a difference to the other',
  async () => {
    const folder = bareRepository(forge.root, 'acme/delta.git');
    const one = randomBytes(47 * 1024 * 1024);
    const other = Buffer.concat([one.subarray(0, one.length / 2), Buffer.from('x'), one.subarray(one.length / 2)]);
    const oid = commitTree(folder, [
      { path: 'one', content: one },
      { path: 'other', content: other },
    ]);
    const prepared = source.git.prepare(prepareRequest(forge, 'acme/delta', oid), readCredential, target(), signal);
    expect(await prepared).toMatchObject({ entryCount: 2, expandedBytes: one.length + other.length });
  },
  limit(60_000),
);

test(
  'an object that is small in a pack and takes all memory of a publisher is refused',
  async () => {
    const message = Buffer.alloc(400 * 1024 * 1024, 'm');
    const head = Buffer.from(
      'tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor F <f@e.t> 1 +0000\ncommitter F <f@e.t> 1 +0000\n\n',
    );
    const commit = Buffer.concat([head, message]);
    const start = [0x90 | (commit.length & 15)];
    for (let left = commit.length >>> 4; left > 0; left >>>= 7) start.push((left & 127) | (left > 127 ? 128 : 0));
    const body = Buffer.concat([Buffer.from('PACK\0\0\0\x02\0\0\0\x01'), Buffer.from(start), deflateSync(commit, { level: 1 })]);
    const pack = Buffer.concat([body, createHash('sha1').update(body).digest()]);
    expect(pack.length).toBeLessThan(4 * 1024 * 1024);
    const runner = await GitRunner.find('git', 1024 * 1024 * 1024);
    const own = { host: 'localhost', port: forge.port };
    const folder = await OperationFolder.create(source.tempRoot, {
      url: 'https://x/',
      forge: own,
      credential: undefined,
      proxy: '',
    });
    try {
      const call = { folder, signal, timeout: limit(30_000) };
      await runner.run({ ...call, args: ['init', '--quiet', '--bare', folder.repository] });
      const { stdin, done } = runner.start({ ...call, args: ['index-pack', '--stdin', '--strict'] });
      stdin.end(pack);
      const failure = await failureOf(done);
      expect(failure instanceof GitFailure && failure.says(/Out of memory/)).toBe(true);
    } finally {
      await folder.remove();
    }
  },
  limit(60_000),
);

test('git reaches no forge outside of a call that has the proxy', async () => {
  const runner = await GitRunner.find('git', 1024 * 1024);
  const url = `https://${forge.at}/acme/spoiled.git`;
  const own = { host: 'localhost', port: forge.port, ca: forge.ca, private: true };
  const folder = await OperationFolder.create(source.tempRoot, {
    url,
    forge: own,
    credential: undefined,
    proxy: 'http://127.0.0.1:1',
  });
  try {
    const failure = await failureOf(runner.run({ args: ['ls-remote', '--', url], folder, signal, timeout: limit(20_000) }));
    expect(failure instanceof GitFailure && failure.says(/transport 'https' not allowed/)).toBe(true);
  } finally {
    await folder.remove();
  }
});
