import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdtemp, readdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ArtifactStore, usualStoreLimits } from '../../src/publisher/artifact-store.js';
import { DownloadLedger } from '../../src/publisher/download-ledger.js';
import { issueArtifactCapability } from '../../src/source/artifact-capability.js';
import { artifactPath } from '../../src/source/protocol.js';
import type { ArtifactRequest } from '../../src/source/artifact-capability.js';
import type { PrepareResponse } from '../../src/source/messages.js';
import { credential, prepared, prepareMessage, TestPublisher, usualCall } from '../support/publisher.js';
import type { Answer } from '../support/publisher.js';

const digest = (of: string) => `sha256:${of.repeat(64)}` as const;

describe('a download', () => {
  let publisher: TestPublisher;
  let artifact: PrepareResponse['artifact'];
  beforeEach(async () => {
    publisher = await TestPublisher.create();
    publisher.git.content = Buffer.alloc(700_000, 'archive');
    ({ artifact } = await publisher.client.prepare(prepareMessage(), credential, usualCall()));
  });
  afterEach(async () => {
    await publisher.remove();
  });

  function requestOf(operationID: string): ArtifactRequest {
    const { digest: objectDigest, sizeBytes: contentLength, mediaType } = artifact;
    return {
      operation: 'download',
      objectDigest,
      identity: { namespace: 'demo', taskID: '1111' },
      contentLength,
      mediaType,
      operationID,
    };
  }

  function headersFor(operationID = 'download-1', change: Partial<ArtifactRequest> = {}): Record<string, string> {
    const request = { ...requestOf(operationID), ...change };
    const { capability, requestDigest } = issueArtifactCapability(publisher.artifactSecret, request, Date.now());
    return {
      'x-orka-artifact-capability': capability,
      'x-orka-artifact-request-digest': requestDigest,
      'x-orka-artifact-content-length': String(artifact.sizeBytes),
      'x-orka-artifact-media-type': artifact.mediaType,
    };
  }

  const get = (headers: Record<string, string>) => publisher.artifact(artifactPath(artifact.digest), headers);
  const told = ({ status, body }: Answer) => [status, (JSON.parse(body.toString()) as { readonly error: string }).error];

  test('has the bytes, their digest, length and type', async () => {
    const answer = await get(headersFor());
    expect(answer.status).toBe(200);
    expect(answer.body.equals(publisher.git.content)).toBe(true);
    expect(answer.headers).toMatchObject({
      'content-length': String(artifact.sizeBytes),
      'content-type': artifact.mediaType,
      'x-orka-artifact-digest': artifact.digest,
      etag: `"${artifact.digest}"`,
    });
  });

  test('takes place once for each operation, whatever is restarted', async () => {
    const headers = headersFor();
    expect((await get(headers)).status).toBe(200);
    expect(told(await get(headers))).toEqual([409, 'artifact_operation_replayed']);
    expect(told(await get(headersFor('download-1', { identity: { namespace: 'demo', taskID: '2222' } })))).toEqual([
      409,
      'artifact_operation_conflict',
    ]);
    await publisher.restart();
    expect(told(await get(headers))).toEqual([409, 'artifact_operation_replayed']);
    expect((await get(headersFor('download-2'))).status).toBe(200);
  });

  test('has one winner among many at once', async () => {
    const headers = headersFor();
    const answers = await Promise.all(Array.from({ length: 6 }, () => get(headers)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409, 409]);
  });

  test.each<[string, number, string, () => Record<string, string>]>([
    ['no headers', 400, 'artifact_request_incomplete', () => ({})],
    [
      'a length that is none',
      400,
      'artifact_request_invalid',
      () => ({ ...headersFor(), 'x-orka-artifact-content-length': '-1' }),
    ],
    ['another length', 403, 'artifact_authorization_failed', () => ({ ...headersFor(), 'x-orka-artifact-content-length': '10' })],
    [
      'another type',
      403,
      'artifact_authorization_failed',
      () => ({ ...headersFor(), 'x-orka-artifact-media-type': 'text/plain' }),
    ],
    [
      'another request digest',
      403,
      'artifact_authorization_failed',
      () => ({ ...headersFor(), 'x-orka-artifact-request-digest': digest('1') }),
    ],
    [
      'a capability of another object',
      403,
      'artifact_authorization_failed',
      () => headersFor('x', { objectDigest: digest('2') }),
    ],
    ['a capability to upload', 403, 'artifact_authorization_failed', () => headersFor('x', { operation: 'upload' })],
    [
      'a capability of another secret',
      403,
      'artifact_authorization_failed',
      () => ({
        ...headersFor(),
        'x-orka-artifact-capability': issueArtifactCapability(publisher.operationSecret, requestOf('download-1'), Date.now())
          .capability,
      }),
    ],
  ])('with %s is refused, and nothing is used up', async (_, status, error, headers) => {
    expect(told(await get(headers()))).toEqual([status, error]);
    expect(await readdir(path.join(publisher.data, 'downloads'))).toEqual([]);
    expect((await get(headersFor())).status).toBe(200);
  });

  test('is refused after its capability expired', async () => {
    const headers = headersFor();
    publisher.ahead = 300_001;
    expect(told(await get(headers))).toEqual([403, 'artifact_authorization_failed']);
  });

  test('of what is not there does not use its capability up', async () => {
    const object = path.join(publisher.data, 'artifacts', 'objects', artifact.digest.slice(7));
    await rm(object);
    expect(told(await get(headersFor()))).toEqual([404, 'artifact_not_found']);
    await publisher.client.prepare(prepareMessage(), credential, usualCall());
    expect((await get(headersFor())).status).toBe(200);
  });

  test('elsewhere or by another method is refused', async () => {
    expect((await publisher.artifact('/', {})).status).toBe(404);
    expect((await publisher.artifact('/internal/v2/acp/artifacts/sha256/../x', {})).status).toBe(404);
    expect((await publisher.artifact(artifactPath(artifact.digest), headersFor(), 'PUT')).status).toBe(405);
  });

  test('of wrong bytes breaks off before its end, and the object is removed', async () => {
    const object = path.join(publisher.data, 'artifacts', 'objects', artifact.digest.slice(7));
    const wrong = Buffer.from(publisher.git.content);
    wrong[5] = 0;
    await rm(object);
    await writeFile(object, wrong);
    await expect(get(headersFor())).rejects.toThrow();
    expect(await readdir(path.dirname(object))).toEqual([]);
    await publisher.client.prepare(prepareMessage(), credential, usualCall());
    expect((await get(headersFor('download-2'))).body.equals(publisher.git.content)).toBe(true);
  });

  test('of a cut object is not begun', async () => {
    await truncate(path.join(publisher.data, 'artifacts', 'objects', artifact.digest.slice(7)), 10);
    expect(told(await get(headersFor()))).toEqual([404, 'artifact_not_found']);
  });
});

describe('the ledger', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'orka-ledger-'));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true });
  });
  const entry = (operationID: string, expiresAt = Date.now() + 300_000) => ({
    operationID,
    requestDigest: digest('1'),
    expiresAt,
  });

  test('takes a damaged entry for a download that took place', async () => {
    await (await DownloadLedger.open(folder)).spend(entry('a'));
    const [name = ''] = await readdir(folder);
    await truncate(path.join(folder, name), 20);
    expect(await (await DownloadLedger.open(folder)).spend(entry('a'))).toBe('replayed');
  });

  test('forgets what has expired, and takes no more than it may have', async () => {
    let now = Date.now();
    const ledger = await DownloadLedger.open(folder, { most: 2, clock: () => now });
    expect(await ledger.spend(entry('a'))).toBe('first');
    expect(await ledger.spend(entry('b'))).toBe('first');
    expect(await ledger.spend(entry('c'))).toBe('full');
    now += 400_000;
    expect(await ledger.spend(entry('d', now + 300_000))).toBe('first');
    expect([ledger.size, (await readdir(folder)).length]).toEqual([1, 1]);
  });
});

describe('the store', () => {
  let folder: string;
  let now: number;
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'orka-store-'));
    now = Date.now();
  });
  afterEach(async () => {
    await rm(folder, { recursive: true });
  });
  const limits = { bytes: 350, artifact: 100, retention: usualStoreLimits.retention };
  const open = () => ArtifactStore.open(folder, { limits, clock: () => now });

  async function add(store: ArtifactStore, text: string): Promise<PrepareResponse['artifact']> {
    const content = Buffer.alloc(100, text);
    const { artifact } = prepared(content);
    const reservation = await store.reserve();
    await writeFile(reservation.target, content);
    await reservation.admit(artifact);
    await reservation.release();
    return artifact;
  }

  test('removes what was used least recently, once its time is over', async () => {
    const store = await open();
    const [a, b, c] = [await add(store, 'a'), await add(store, 'b'), await add(store, 'c')];
    await expect(store.reserve()).rejects.toMatchObject({ code: 'storage_full', status: 507, retryable: true });
    now += limits.retention + 1;
    await store.keep(a);
    await add(store, 'd');
    expect([await store.keep(a), await store.keep(b), await store.keep(c)]).toEqual([true, false, true]);
    expect(store.size).toEqual({ artifacts: 3, bytes: 300 });
  });

  test('knows after a restart what was used when', async () => {
    const store = await open();
    const [a, b] = [await add(store, 'a'), await add(store, 'b')];
    now += limits.retention + 1;
    await store.keep(b);
    const again = await open();
    await add(again, 'c');
    await add(again, 'd');
    expect([await again.keep(a), await again.keep(b)]).toEqual([false, true]);
  });

  test('removes at its start what was not finished and what is no artifact', async () => {
    await open();
    await writeFile(path.join(folder, 'tmp', 'half'), 'x');
    await writeFile(path.join(folder, 'objects', 'notes.txt'), 'x');
    await symlink('/etc/passwd', path.join(folder, 'objects', 'a'.repeat(64)));
    const store = await open();
    expect(store.size).toEqual({ artifacts: 0, bytes: 0 });
    expect([...(await readdir(path.join(folder, 'tmp'))), ...(await readdir(path.join(folder, 'objects')))]).toEqual([]);
  });
});
