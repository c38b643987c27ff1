import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { readdirSync } from 'node:fs';

import type { SourceError } from '../../../src/publisher/git/source-error.js';
import { decodeText } from '../../../src/lib/decode.js';
import { resolveRequest as resolveRequestMessage } from '../../../src/source/messages.js';
import { bareRepository, commitTree, credentialOf, git, readToken, testForge } from '../../support/forge.js';
import type { TestForge } from '../../support/forge.js';
import { failureOf, readCredential, resolveRequest, testSource } from '../../support/source-git.js';
import type { TestSource } from '../../support/source-git.js';

let forge: TestForge;
let source: TestSource;
const { signal } = new AbortController();
const oids: Record<'main' | 'side' | 'loose' | 'blob' | 'tag', string> = { main: '', side: '', loose: '', blob: '', tag: '' };

beforeAll(async () => {
  forge = await testForge();
  source = testSource(forge);
  const folder = bareRepository(forge.root, 'acme/app.git');
  oids.main = commitTree(folder, [{ path: 'README.md', content: 'hello\n' }]);
  oids.side = commitTree(folder, [{ path: 'README.md', content: 'side\n' }], 'refs/heads/feature/side');
  oids.loose = commitTree(folder, [{ path: 'README.md', content: 'loose\n' }], 'refs/heads/gone');
  oids.blob = git(folder, ['rev-parse', 'main:README.md']);
  git(folder, ['update-ref', '-d', 'refs/heads/gone']);
  git(folder, ['tag', '-a', '-m', 'one', 'v1', oids.side]);
  oids.tag = git(folder, ['rev-parse', 'v1']);
  git(folder, ['tag', 'light', oids.main]);
  git(folder, ['tag', 'both', oids.main]);
  git(folder, ['branch', 'both', oids.side]);
  git(folder, ['update-ref', 'refs/other/refs/heads/ending', oids.side]);
  git(folder, ['update-ref', 'refs/heads/prefix/main', oids.side]);
  bareRepository(forge.root, 'acme/empty.git');
  commitTree(bareRepository(forge.root, 'public/app.git'), [{ path: 'a', content: 'a' }]);
});

afterAll(async () => {
  await source.close();
  await forge.close();
});

afterEach(() => {
  expect(readdirSync(source.tempRoot)).toEqual([]);
});

const resolve = (ref: string, repository = 'acme/app', credential: string | undefined = readCredential) =>
  source.git.resolve(resolveRequest(forge, repository, ref), credential, signal);

test.each([
  ['', 'refs/heads/main', 'main'],
  ['main', 'refs/heads/main', 'main'],
  ['refs/heads/main', 'refs/heads/main', 'main'],
  ['feature/side', 'refs/heads/feature/side', 'side'],
  ['refs/heads/feature/side', 'refs/heads/feature/side', 'side'],
  ['light', 'refs/tags/light', 'main'],
  ['v1', 'refs/tags/v1', 'side'],
  ['refs/tags/v1', 'refs/tags/v1', 'side'],
  ['refs/heads/both', 'refs/heads/both', 'side'],
  ['refs/tags/both', 'refs/tags/both', 'main'],
] as const)('the source ref %j resolves to %s', async (ref, sourceRef, baseline) => {
  expect(await resolve(ref)).toEqual({ repositoryId: `${forge.at}/acme/app`, sourceRef, baselineOid: oids[baseline] });
});

test('a commit resolves to itself when it is served to this credential, also when no branch holds it', async () => {
  for (const oid of [oids.main, oids.side, oids.loose])
    expect(await resolve(oid)).toMatchObject({ sourceRef: oid, baselineOid: oid });
  expect(await failureOf(resolve(oids.main, 'acme/app', credentialOf('wrong')))).toMatchObject({ code: 'credential_refused' });
});

test.each([
  ['main', 'acme/empty', 'source_ref_absent'],
  ['', 'acme/empty', 'source_ref_absent'],
  ['absent', 'acme/app', 'source_ref_absent'],
  ['refs/heads/light', 'acme/app', 'source_ref_absent'],
  ['ending', 'acme/app', 'source_ref_absent'],
  ['f'.repeat(40), 'acme/app', 'source_ref_absent'],
  ['both', 'acme/app', 'source_ref_ambiguous'],
  ['refs/other/x', 'acme/app', 'invalid_request'],
  ['0'.repeat(40), 'acme/app', 'invalid_request'],
  ['-x', 'acme/app', 'invalid_request'],
  ['--upload-pack=x', 'acme/app', 'invalid_request'],
  ['a*', 'acme/app', 'invalid_request'],
] as const)('the source ref %j of %s is refused with %s', async (ref, repository, code) => {
  const failure = (await failureOf(resolve(ref, repository))) as SourceError;
  expect(failure).toMatchObject({ code, retryable: false });
  expect(failure.message).toContain('sourceRef');
});

test('the OID of a blob or of a tag object is no commit', async () => {
  expect(await failureOf(resolve(oids.blob))).toMatchObject({ code: 'source_ref_invalid' });
  expect(await failureOf(resolve(oids.tag))).toMatchObject({ code: 'source_ref_invalid' });
});

test('a repository whose path has spaces and letters of another script resolves', async () => {
  const oid = commitTree(bareRepository(forge.root, 'acme/café a.git'), [{ path: 'a', content: 'a' }]);
  const { metadata } = resolveRequest(forge, 'x');
  const id = `${forge.at}/acme/café a`;
  const url = `https://${forge.at}/acme/caf%C3%A9%20a.git`;
  const request = decodeText(
    resolveRequestMessage,
    JSON.stringify({ metadata, source: { provider: 'github', id, url }, sourceRef: '' }),
  );
  expect(await source.git.resolve(request, readCredential, signal)).toMatchObject({ repositoryId: id, baselineOid: oid });
});

test('a default branch whose name turns the text around it is refused', async () => {
  const folder = bareRepository(forge.root, 'acme/turned.git');
  commitTree(folder, [{ path: 'a', content: 'a' }], 'refs/heads/a\u202eb');
  git(folder, ['symbolic-ref', 'HEAD', 'refs/heads/a\u202eb']);
  const failure = await failureOf(resolve('', 'acme/turned'));
  expect(failure).toMatchObject({ code: 'source_ref_invalid', retryable: false });
  expect(failure.message).not.toContain('\u202e');
});

test('a repository of SHA-256 objects resolves by branch and by commit', async () => {
  const oid = commitTree(bareRepository(forge.root, 'acme/sha256.git', 'sha256'), [{ path: 'a', content: 'a' }]);
  expect(oid).toHaveLength(64);
  expect(await resolve('main', 'acme/sha256')).toMatchObject({ baselineOid: oid });
  expect(await resolve(oid, 'acme/sha256')).toMatchObject({ baselineOid: oid });
});

test('a public repository needs no credential', async () => {
  expect(await resolve('main', 'public/app', undefined)).toMatchObject({ sourceRef: 'refs/heads/main' });
  expect(await failureOf(source.git.resolve(resolveRequest(forge, 'acme/app'), undefined, signal))).toMatchObject({
    code: 'credential_refused',
  });
});

test('the credential is in no error, log line or request line', async () => {
  const failure = await failureOf(resolve('main', 'acme/app', credentialOf('secret-token')));
  const shown = `${failure.stack ?? ''}${JSON.stringify(failure)}${source.logged.join()}${JSON.stringify(forge.requests())}`;
  for (const secret of ['secret-token', credentialOf('secret-token').split(' ')[2] ?? '', readToken])
    expect(shown).not.toContain(secret);
});
