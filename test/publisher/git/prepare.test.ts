import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';

import type { SourceError } from '../../../src/publisher/git/source-error.js';
import { digestOf } from '../../../src/lib/sha256.js';
import type { PrepareRequest, PrepareResponse } from '../../../src/source/messages.js';
import { bareRepository, commitTree, credentialOf, git, testForge } from '../../support/forge.js';
import type { TestForge, TreeEntry } from '../../support/forge.js';
import { failureOf, prepareRequest, readCredential, testSource } from '../../support/source-git.js';
import type { TestSource } from '../../support/source-git.js';
import { extract } from '../../support/tar-list.js';
import { readVectors } from '../../support/vectors.js';
import type { Vector } from '../../support/vectors.js';

let forge: TestForge;
let source: TestSource;
const { signal } = new AbortController();
let count = 0;

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
  expect(readdirSync(source.cacheRoot).filter((name) => name.startsWith('.'))).toEqual([]);
});

/** A new repository whose branch main has exactly this tree. */
function repositoryWith(entries: readonly TreeEntry[]): { readonly name: string; readonly folder: string; readonly oid: string } {
  const name = `acme/r${count++}`;
  const folder = bareRepository(forge.root, `${name}.git`);
  return { name, folder, oid: commitTree(folder, entries) };
}

async function prepare(
  request: PrepareRequest,
  credential = readCredential,
): Promise<PrepareResponse & { readonly file: string }> {
  const file = path.join(source.folder, `target-${count++}`);
  return { ...(await source.git.prepare(request, credential, file, signal)), file };
}

interface ArchiveInput {
  readonly baselineOid: string;
  readonly repositoryId: string;
  readonly sourceRef: string;
  readonly limits?: PrepareRequest['limits'];
  readonly tree: readonly { path: string; type: 'file' | 'symlink'; mode?: string; content?: string; target?: string }[];
}
type ArchiveOutput =
  | { readonly accepted: true; readonly entryCount: number; readonly expandedBytes: number; readonly manifest: string }
  | { readonly accepted: false };
const vectors = readVectors<{ sections: { workspaceArchive: { vectors: Vector<ArchiveInput, ArchiveOutput>[] } } }>('repository')
  .sections.workspaceArchive.vectors;

/** The manifest of a vector on the repository of the test forge. */
function manifestOf(manifest: string, repositoryId: string): string {
  return manifest.replaceAll('github.com/acme/app', repositoryId);
}

test.each(vectors.filter(({ name }) => name !== 'submodule'))('vector workspaceArchive $name', async ({ input, output }) => {
  const entries = input.tree.map(({ path: name, type, mode, content = '', target = '' }): TreeEntry =>
    type === 'symlink'
      ? { path: name, mode: '120000', content: target }
      : { path: name, mode: mode === '0755' ? '100755' : '100644', content },
  );
  const { name, oid } = repositoryWith(entries);
  expect(oid).toBe(input.baselineOid);
  const request = { ...prepareRequest(forge, name, oid, input.sourceRef), limits: input.limits };
  if (!output.accepted) {
    expect(await failureOf(prepare(request))).toMatchObject({ code: 'tree_refused', retryable: false });
    return;
  }
  const { manifest, entryCount, expandedBytes } = output;
  const prepared = await prepare(request);
  const digest = digestOf(manifestOf(manifest, request.source.id));
  expect(prepared).toMatchObject({ entryCount, expandedBytes, manifestDigest: digest });
  expect(prepared.artifact.digest).toBe(digestOf(readFileSync(prepared.file)));
  expect(prepared.artifact.sizeBytes).toBe(statSync(prepared.file).size);
});

test('an archive holds the tree, with modes and links and nothing of Git', async () => {
  const { name, oid } = repositoryWith([
    { path: 'a/b/file', content: 'x'.repeat(600) },
    { path: 'a/run', content: '#!/bin/sh\n', mode: '100755' },
    { path: 'empty', content: '' },
    { path: 'link', content: 'a/b/file', mode: '120000' },
    { path: '"quoted".txt', content: 'q' },
    { path: `${'d'.repeat(120)}/${'ü'.repeat(60)}`, content: 'long' },
    { path: 'far', content: `a/${'e'.repeat(200)}`, mode: '120000' },
  ]);
  const { file, entryCount } = await prepare(prepareRequest(forge, name, oid));
  const entries = extract(file);
  expect(entries).toHaveLength(entryCount);
  expect(entries.map((entry) => [entry.path, entry.mode, entry.target ?? entry.content?.length])).toEqual([
    ['"quoted".txt', '644', 1],
    ['a', '755', undefined],
    ['a/b', '755', undefined],
    ['a/b/file', '644', 600],
    ['a/run', '755', 10],
    ['d'.repeat(120), '755', undefined],
    [`${'d'.repeat(120)}/${'ü'.repeat(60)}`, '644', 4],
    ['empty', '644', 0],
    ['far', '777', `a/${'e'.repeat(200)}`],
    ['link', '777', 'a/b/file'],
  ]);
});

test.each<readonly [string, TreeEntry, Record<string, unknown>]>([
  ['a submodule', { path: 'sub', mode: '160000', content: 'a'.repeat(40) }, { reason: 'submodule', path: 'sub' }],
  ['a link out of the tree', { path: 'l', mode: '120000', content: '/etc' }, { reason: 'unsafe_link', path: 'l' }],
  ['a link to .git', { path: 'l', mode: '120000', content: '.git/config' }, { reason: 'unsafe_link', path: 'l' }],
  ['git~1', { path: 'x/git~1', content: 'x' }, { reason: 'reserved_name', path: 'x/git~1' }],
  [
    'a name that HFS takes for .git',
    { path: '.g\u200cit/x', content: 'x' },
    { reason: 'reserved_name', path: '.g\\u{200c}it/x' },
  ],
  ['a name that NTFS takes for .git', { path: '.git. ./x', content: 'x' }, { reason: 'reserved_name', path: '.git. ./x' }],
  ['.gitmodules', { path: '.GitModules', content: '[submodule "x"]\n' }, { reason: 'reserved_name', path: '.GitModules' }],
  ['GITMOD~1', { path: 'GITMOD~1', content: 'x' }, { reason: 'reserved_name', path: 'GITMOD~1' }],
  [
    'a name of the platform',
    { path: 'a/.Orka-Credentials', content: 'x' },
    { reason: 'reserved_name', path: 'a/.Orka-Credentials' },
  ],
  ['a control character', { path: 'a\tb', content: 'x' }, { reason: 'path', path: 'a\\x09b' }],
  ['a backslash', { path: 'a\\b', content: 'x' }, { reason: 'path', path: 'a\\\\b' }],
])('a tree with %s is refused with reason and path', async (_, entry, detail) => {
  const { name, oid } = repositoryWith([{ path: 'README.md', content: 'hello\n' }, entry]);
  expect(await failureOf(prepare(prepareRequest(forge, name, oid)))).toMatchObject({
    code: 'tree_refused',
    retryable: false,
    detail,
  });
});

test('limits are refused with what is allowed and what was found', async () => {
  const { name, oid } = repositoryWith([
    { path: 'a/b', content: '12345' },
    { path: 'c', content: '123' },
  ]);
  const request = prepareRequest(forge, name, oid);
  const refusal = async (limits: PrepareRequest['limits']) =>
    ((await failureOf(prepare({ ...request, limits }))) as SourceError).detail;
  expect(await refusal({ maxEntries: 2 })).toEqual({ reason: 'too_many_entries', limit: 2, found: 3 });
  expect(await refusal({ maxFileBytes: 4 })).toEqual({ reason: 'file_too_large', path: 'a/b', limit: 4, found: 5 });
  expect(await refusal({ maxExpandedBytes: 7 })).toEqual({ reason: 'tree_too_large', limit: 7, found: 8 });
  expect(await refusal({ maxArtifactBytes: 3000 })).toEqual({ reason: 'tree_too_large', limit: 3000, found: 3584 });
  expect(await prepare({ ...request, limits: { maxEntries: 3, maxFileBytes: 5, maxExpandedBytes: 8 } })).toMatchObject({
    entryCount: 3,
  });
  expect(await refusal({ maxEntries: 2 })).toEqual({ reason: 'too_many_entries', limit: 2, found: 3 });
});

test('pointers of Git LFS are plain content, and are noted with their number and the first path', async () => {
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 5\n`;
  const { name, oid } = repositoryWith([
    { path: 'a.bin', content: pointer },
    { path: 'b.bin', content: pointer },
    { path: 'c.bin', content: pointer.slice(1) },
  ]);
  const notes = [{ code: 'lfs_pointers', count: 2, path: 'a.bin' }];
  expect(await prepare(prepareRequest(forge, name, oid))).toMatchObject({ notes });
  expect(await prepare(prepareRequest(forge, name, oid))).toMatchObject({ notes });
});

test('a branch that moved or went after it was resolved is refused, a commit is not bound to a branch', async () => {
  const { name, folder, oid } = repositoryWith([{ path: 'a', content: '1' }]);
  const next = commitTree(folder, [{ path: 'a', content: '2' }]);
  expect(await failureOf(prepare(prepareRequest(forge, name, oid)))).toMatchObject({ code: 'source_moved', retryable: false });
  expect((await prepare(prepareRequest(forge, name, oid, oid))).entryCount).toBe(1);
  expect((await prepare(prepareRequest(forge, name, next))).entryCount).toBe(1);
  git(folder, ['update-ref', 'refs/heads/main', oid]);
  expect(await failureOf(prepare(prepareRequest(forge, name, next)))).toMatchObject({ code: 'source_moved' });
  git(folder, ['symbolic-ref', 'HEAD', 'refs/heads/other']);
  git(folder, ['update-ref', '-d', 'refs/heads/main']);
  expect(await failureOf(prepare(prepareRequest(forge, name, next)))).toMatchObject({ code: 'source_moved' });
});

test('a tag is peeled, and a tag of a blob is refused', async () => {
  const { name, folder, oid } = repositoryWith([{ path: 'a', content: '1' }]);
  git(folder, ['tag', '-a', '-m', 'v', 'v1']);
  git(folder, ['tag', 'blob', 'main:a']);
  expect((await prepare(prepareRequest(forge, name, oid, 'refs/tags/v1'))).entryCount).toBe(1);
  const blob = git(folder, ['rev-parse', 'blob']);
  expect(await failureOf(prepare(prepareRequest(forge, name, blob, 'refs/tags/blob')))).toMatchObject({
    code: 'source_ref_invalid',
  });
});

test('a repository of SHA-256 objects is prepared', async () => {
  const folder = bareRepository(forge.root, 'acme/long.git', 'sha256');
  const oid = commitTree(folder, [{ path: 'a/b', content: 'x' }]);
  const prepared = await prepare(prepareRequest(forge, 'acme/long', oid));
  expect([prepared.treeOid, prepared.entryCount]).toEqual([git(folder, ['rev-parse', 'main^{tree}']), 2]);
});

const fetches = (name: string): number =>
  forge.requests().filter(({ method, path: at }) => method === 'POST' && at.startsWith(`/${name}.git`)).length;

test('a tree that was prepared before is not fetched again, and has the same bytes', async () => {
  const { name, oid } = repositoryWith([{ path: 'a/b', content: 'x' }]);
  const request = prepareRequest(forge, name, oid);
  const first = await prepare(request);
  const before = fetches(name);
  const second = await prepare(request);
  expect({ ...second, file: '' }).toEqual({ ...first, file: '' });
  expect(readFileSync(second.file)).toEqual(readFileSync(first.file));
  // A fetch asks for refs and for objects.
  expect(fetches(name) - before).toBe(1);
  const byCommit = await prepare(prepareRequest(forge, name, oid, oid));
  expect(byCommit.artifact).toEqual(first.artifact);
  expect(byCommit.manifestDigest).not.toBe(first.manifestDigest);
});

test('a kept tree is not given to a credential that may not read the repository', async () => {
  const { name, oid } = repositoryWith([{ path: 'a', content: 'private' }]);
  await prepare(prepareRequest(forge, name, oid));
  for (const ref of ['refs/heads/main', oid])
    expect(await failureOf(prepare(prepareRequest(forge, name, oid, ref), credentialOf('wrong')))).toMatchObject({
      code: 'credential_refused',
    });
});

test('a kept tree is not given to another repository that only names its commit', async () => {
  const { name, oid } = repositoryWith([{ path: 'a', content: 'private' }]);
  await prepare(prepareRequest(forge, name, oid));
  const other = repositoryWith([{ path: 'b', content: 'public' }]);
  expect(await failureOf(prepare(prepareRequest(forge, other.name, oid)))).toMatchObject({ code: 'source_moved' });
  expect(await failureOf(prepare(prepareRequest(forge, other.name, oid, oid)))).toMatchObject({ code: 'source_ref_absent' });
});
