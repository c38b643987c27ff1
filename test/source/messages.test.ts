import { expect, test } from '@jest/globals';
import { decodeText, WireError } from '../../src/lib/decode.js';
import { errorAnswer, isPublisherCode, publisherCodes } from '../../src/source/errors.js';
import { prepareRequest, prepareResponse, resolveRequest, resolveResponse } from '../../src/source/messages.js';

const oid = 'a'.repeat(40);
const metadata = { namespace: 'demo', operationId: 'workspace-resolve-prompt-1', taskId: '1111' };
const source = { provider: 'github', id: 'git.example/acme/app', url: 'https://git.example/acme/app.git' };
const credentialRef = { name: 'token', kind: 'http-extra-header', role: 'SourceRead' };
const digest = `sha256:${'1'.repeat(64)}`;
const artifact = {
  artifactId: `sha256-${'1'.repeat(64)}`,
  digest,
  sizeBytes: 10,
  mediaType: 'application/vnd.orka.workspace.v1+tar',
};
const resolve = { metadata, source, sourceRef: '', credentialRef };
const prepare = { metadata, source, sourceRef: 'refs/heads/main', baselineOid: oid, limits: { maxEntries: 10 } };
const prepared = { treeOid: oid, manifestDigest: digest, entryCount: 0, expandedBytes: 0, artifact };

test('messages of the reference are read', () => {
  expect(decodeText(resolveRequest, JSON.stringify(resolve))).toEqual(resolve);
  expect(decodeText(prepareRequest, JSON.stringify(prepare))).toEqual(prepare);
  const resolved = { repositoryId: 'x/y', sourceRef: 'refs/heads/main', baselineOid: 'b'.repeat(64) };
  expect(decodeText(resolveResponse, JSON.stringify(resolved))).toEqual(resolved);
  const noted = { ...prepared, notes: [{ code: 'lfs_pointers', count: 2, path: 'a.bin' }] };
  expect(decodeText(prepareResponse, JSON.stringify(noted))).toEqual(noted);
});

test.each<[string, object]>([
  ['an unknown member', { ...resolve, force: true }],
  ['an unknown member of metadata', { ...resolve, metadata: { ...metadata, publicationId: 'p' } }],
  ['no Task', { ...resolve, metadata: { namespace: 'demo', operationId: 'x' } }],
  ['an operation id with a space', { ...resolve, metadata: { ...metadata, operationId: 'a b' } }],
  ['an operation id with ..', { ...resolve, metadata: { ...metadata, operationId: 'a..b' } }],
  ['an operation id of 513 bytes', { ...resolve, metadata: { ...metadata, operationId: 'a'.repeat(513) } }],
  ['a namespace that is none', { ...resolve, metadata: { ...metadata, namespace: '../x' } }],
  ['a ref with a line break', { ...resolve, sourceRef: 'refs/heads/a\nb' }],
  ['another kind of credential', { ...resolve, credentialRef: { ...credentialRef, kind: 'forge-token' } }],
  ['a role that writes', { ...resolve, credentialRef: { ...credentialRef, role: 'TargetWrite' } }],
  ['an identity with a line break', { ...resolve, source: { ...source, id: 'git.example/a\nb' } }],
  ['an identity with an escape sequence', { ...resolve, source: { ...source, id: 'git.example/\u001b[2J' } }],
  ['a URL with a space', { ...resolve, source: { ...source, url: 'https://a b' } }],
])('a resolve request with %s is refused', (_, message) => {
  expect(() => decodeText(resolveRequest, JSON.stringify(message))).toThrow(WireError);
});

test.each<[string, object]>([
  ['an empty ref', { ...prepare, sourceRef: '' }],
  ['a short object id', { ...prepare, baselineOid: 'abc' }],
  ['the all-zero object id', { ...prepare, baselineOid: '0'.repeat(40) }],
  ['an upper-case object id', { ...prepare, baselineOid: 'A'.repeat(40) }],
  ['a limit of nothing', { ...prepare, limits: { maxEntries: 0 } }],
  ['a limit above what an archive may have', { ...prepare, limits: { maxEntries: 100_001 } }],
])('a prepare request with %s is refused', (_, message) => {
  expect(() => decodeText(prepareRequest, JSON.stringify(message))).toThrow(WireError);
});

test('an artifact is named by its digest', () => {
  const other = { ...prepared, artifact: { ...artifact, artifactId: `sha256-${'2'.repeat(64)}` } };
  expect(() => decodeText(prepareResponse, JSON.stringify(other))).toThrow(WireError);
});

test('a member that stands there twice is refused', () => {
  const twice = JSON.stringify(resolve).replace('"sourceRef":""', '"sourceRef":"","sourceRef":"refs/heads/x"');
  expect(() => decodeText(resolveRequest, twice)).toThrow(/without duplicate members/);
});

test('each error code has a status, and only those of the table are read', () => {
  for (const [code, { status, retryable }] of Object.entries(publisherCodes)) {
    expect(status).toBeGreaterThanOrEqual(400);
    expect(decodeText(errorAnswer, JSON.stringify({ code, message: 'x', retryable }))).toMatchObject({ code });
    expect(isPublisherCode(code)).toBe(true);
  }
  expect(isPublisherCode('toString')).toBe(false);
  expect(() => decodeText(errorAnswer, JSON.stringify({ code: 'nonsense', message: 'x', retryable: true }))).toThrow(WireError);
});
