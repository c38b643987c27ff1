import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { connect } from 'node:tls';
import { canonicalJson } from '../../src/lib/canonical-json.js';
import type { JsonObject } from '../../src/lib/json.js';
import { SourceError } from '../../src/publisher/git/source-error.js';
import type { ErrorDetail, PublisherCode } from '../../src/source/errors.js';
import { operationRequestDigest, signOperation } from '../../src/source/operation-capability.js';
import { selfSigned } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { limit } from '../support/pace.js';
import { credential, oid, prepared, prepareMessage, resolveMessage, TestPublisher, usualCall } from '../support/publisher.js';
import type { Answer } from '../support/publisher.js';

/** A failure as git throws it: its text is not for others. */
const sourceError = (code: PublisherCode, detail?: ErrorDetail) =>
  new SourceError(code, { at: 'git', says: 'said the forge' }, detail);

const resolvePath = '/v1/workspaces/resolve';
let publisher: TestPublisher;
beforeEach(async () => {
  publisher = await TestPublisher.create();
});
afterEach(async () => {
  await publisher.remove();
});

/** The headers of a request that is right in every part. */
function headersFor(body: string | Buffer, message = resolveMessage()): Record<string, string> {
  const requestDigest = operationRequestDigest(resolvePath, body);
  const { metadata } = message;
  return {
    authorization: `Bearer ${publisher.token}`,
    'content-type': 'application/json',
    'x-orka-publisher-request-digest': requestDigest,
    'x-orka-publisher-operation-capability': signOperation(
      publisher.operationSecret,
      { operation: 'workspace.resolve', metadata, requestDigest },
      Date.now(),
    ),
    'x-orka-publisher-credential': Buffer.from(credential).toString('base64url'),
  };
}

const bodyOf = (message: object = resolveMessage()): string => canonicalJson(message as JsonObject);
const codeOf = ({ body }: Answer): unknown => (JSON.parse(body.toString()) as { readonly code: unknown }).code;
const without = (headers: Record<string, string>, name: string) =>
  Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));

describe('a request is refused in the order of the contract:', () => {
  /** Each row breaks one rule and all those after it. */
  const rows: readonly (readonly [string, number, string, () => readonly [Record<string, string>, string]])[] = [
    ['no bearer', 401, 'unauthorized', () => [{}, 'nonsense']],
    ['another bearer', 401, 'unauthorized', () => [{ authorization: 'Bearer x' }, 'nonsense']],
    [
      'the secret of the capabilities as bearer',
      401,
      'unauthorized',
      () => [{ authorization: `Bearer ${publisher.operationSecret}` }, ''],
    ],
    ['no content type', 400, 'invalid_request', () => [{ authorization: `Bearer ${publisher.token}` }, 'nonsense']],
    [
      'too large',
      413,
      'request_too_large',
      () => [without(headersFor('{}'), 'x-orka-publisher-request-digest'), ' '.repeat(2 * 1024 * 1024 + 1)],
    ],
    ['no JSON', 400, 'invalid_request', () => [without(headersFor('{}'), 'x-orka-publisher-request-digest'), '{']],
    [
      'a member twice',
      400,
      'invalid_request',
      () => [headersFor('{}'), bodyOf().replace('"sourceRef"', '"sourceRef":"","sourceRef"')],
    ],
    ['an unknown member', 400, 'invalid_request', () => [headersFor('{}'), bodyOf({ ...resolveMessage(), force: true })]],
    [
      'no capability',
      403,
      'unauthorized',
      () => [without(headersFor(bodyOf()), 'x-orka-publisher-operation-capability'), bodyOf()],
    ],
    ['no digest', 403, 'unauthorized', () => [without(headersFor(bodyOf()), 'x-orka-publisher-request-digest'), bodyOf()]],
    [
      'the capability of another body',
      403,
      'unauthorized',
      () => [headersFor(bodyOf()), bodyOf({ ...resolveMessage(), sourceRef: 'x' })],
    ],
    [
      'a reference without its credential',
      400,
      'invalid_credential_ref',
      () => [without(headersFor(bodyOf()), 'x-orka-publisher-credential'), bodyOf()],
    ],
    [
      'a credential of two lines',
      400,
      'invalid_credential_ref',
      () => [
        { ...headersFor(bodyOf()), 'x-orka-publisher-credential': Buffer.from(`${credential}\nX: y`).toString('base64url') },
        bodyOf(),
      ],
    ],
  ];
  test.each(rows)('%s', async (_, status, code, make) => {
    const answer = await publisher.operation('POST', resolvePath, ...make());
    expect([answer.status, codeOf(answer)]).toEqual([status, code]);
    expect(publisher.git.calls).toBe(0);
    expect(await readdir(path.join(publisher.data, 'journal'))).toEqual([]);
  });
});

test('who has no bearer is answered before a byte of the body is sent', async () => {
  const socket = connect({ host: '127.0.0.1', port: publisher.ports.operations, ca: publisher.identity.cert });
  let text = '';
  socket.on('data', (part: Buffer) => (text += part.toString()));
  socket.write(`POST ${resolvePath} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n`);
  await eventually(() => text.includes('"unauthorized"'));
  expect(text).toMatch(/^HTTP\/1\.1 401 /);
  await eventually(() => socket.destroyed || socket.readableEnded);
  socket.destroy();
});

test('an expired capability and one of the future are refused', async () => {
  for (const ahead of [61_000, -31_000]) {
    publisher.ahead = ahead;
    const answer = await publisher.operation('POST', resolvePath, headersFor(bodyOf()), bodyOf());
    expect(answer.status).toBe(403);
  }
});

test('a body with spaces and in another order is the same request', async () => {
  const first = await publisher.operation('POST', resolvePath, headersFor(bodyOf()), bodyOf());
  const loose = JSON.stringify(Object.fromEntries(Object.entries(resolveMessage()).reverse()), undefined, 2);
  const second = await publisher.operation('POST', resolvePath, headersFor(loose), loose);
  expect(second.body).toEqual(first.body);
  expect(publisher.git.calls).toBe(1);
});

test('the client gets what git found, and git the credential', async () => {
  expect(await publisher.client.resolve(resolveMessage(), credential, usualCall())).toEqual({
    repositoryId: 'git.example/acme/app',
    sourceRef: 'refs/heads/main',
    baselineOid: oid,
  });
  const made = await publisher.client.prepare(prepareMessage(), credential, usualCall());
  expect(made).toEqual(prepared(publisher.git.content));
  expect(publisher.git.credentials).toEqual([credential, credential]);
  const { credentialRef: _, ...anonymous } = resolveMessage('anonymous');
  await publisher.client.resolve(anonymous, undefined, usualCall());
  expect(publisher.git.credentials.at(-1)).toBeUndefined();
});

test('a repeated request gets the same bytes, also after a restart, and another one under its id a conflict', async () => {
  const send = () => publisher.operation('POST', resolvePath, headersFor(bodyOf()), bodyOf());
  const first = await send();
  expect(first.status).toBe(200);
  expect((await send()).body).toEqual(first.body);
  await publisher.restart();
  expect((await send()).body).toEqual(first.body);
  expect(publisher.git.calls).toBe(1);
  const other = { ...resolveMessage(), sourceRef: 'refs/heads/other' };
  const answer = await publisher.operation('POST', resolvePath, headersFor(bodyOf(other)), bodyOf(other));
  expect([answer.status, codeOf(answer)]).toEqual([409, 'operation_conflict']);
});

test('a lasting failure is remembered, a passing one is not', async () => {
  publisher.git.before = () => {
    throw sourceError('source_ref_absent');
  };
  const call = () => publisher.client.resolve(resolveMessage(), credential, usualCall());
  await expect(call()).rejects.toMatchObject({ code: 'source_ref_absent', retryable: false, status: 409 });
  publisher.git.before = () => undefined;
  await expect(call()).rejects.toMatchObject({ code: 'source_ref_absent' });
  expect(publisher.git.calls).toBe(1);
  publisher.git.before = () => {
    throw sourceError('scm_failure');
  };
  const passing = () => publisher.client.resolve(resolveMessage('passing'), credential, usualCall());
  await expect(passing()).rejects.toMatchObject({ code: 'scm_failure', retryable: true, status: 502 });
  publisher.git.before = () => undefined;
  await expect(passing()).resolves.toMatchObject({ baselineOid: oid });
});

test('a refusal has its detail, and no text of what failed', async () => {
  publisher.git.before = () => {
    throw sourceError('tree_refused', { reason: 'submodule', path: 'vendor/x' });
  };
  const error: unknown = await publisher.client
    .prepare(prepareMessage(), credential, usualCall())
    .catch((found: unknown) => found);
  expect(error).toMatchObject({ code: 'tree_refused', detail: { reason: 'submodule', path: 'vendor/x' } });
  expect(String(error)).not.toContain('said the forge');
});

test('an unknown error of git is a failure without words', async () => {
  publisher.git.before = () => {
    throw new Error(`fatal: ${credential}`);
  };
  const call = publisher.client.resolve(resolveMessage(), credential, usualCall());
  await expect(call).rejects.toMatchObject({ code: 'internal_error', retryable: true, status: 500 });
  expect(publisher.lines.join('')).not.toContain(credential.slice(-20));
});

test('as many operations run as may, and not all of them for one namespace', async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  publisher.git.before = () => held;
  const { client } = publisher;
  const ofNamespace = (namespace: string, id: string) => {
    const message = resolveMessage(id);
    return client.resolve({ ...message, metadata: { ...message.metadata, namespace } }, credential, usualCall());
  };
  const busy = { code: 'busy', status: 429, retryable: true };
  const running = ['op-1', 'op-2', 'op-3'].map((id) => ofNamespace('demo', id));
  await eventually(() => publisher.git.calls === 3);
  await expect(ofNamespace('demo', 'op-4')).rejects.toMatchObject(busy);
  running.push(ofNamespace('other', 'op-5'));
  await eventually(() => publisher.git.calls === 4);
  await expect(ofNamespace('third', 'op-6')).rejects.toMatchObject(busy);
  release();
  expect(await Promise.all(running)).toHaveLength(4);
  expect(await ofNamespace('demo', 'op-4')).toMatchObject({ sourceRef: expect.any(String) });
});

test('operations of one id run one after the other, and the second gets what the first found', async () => {
  const { client } = publisher;
  const calls = [1, 2].map(() => client.resolve(resolveMessage('op-1'), credential, usualCall()));
  const [first, second] = await Promise.all(calls);
  expect(second).toEqual(first);
  expect(publisher.git.calls).toBe(1);
});

test('work ends when its caller goes away, and begins again with the next call', async () => {
  let aborted = false;
  publisher.git.before = (signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        aborted = true;
        reject(new Error('stopped'));
      });
    });
  const stop = new AbortController();
  const call = publisher.client.resolve(resolveMessage(), credential, { signal: stop.signal, timeout: limit(20_000) });
  call.catch(() => undefined);
  await eventually(() => publisher.git.calls === 1);
  stop.abort();
  await expect(call).rejects.toMatchObject({ code: 'aborted' });
  await eventually(() => aborted);
  publisher.git.before = () => undefined;
  await expect(publisher.client.resolve(resolveMessage(), credential, usualCall())).resolves.toBeDefined();
});

test('a publisher that ends interrupts what runs too long, and finishes it after a restart', async () => {
  publisher.git.before = (signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        reject(new Error('stopped'));
      });
    });
  const call = publisher.client.resolve(resolveMessage(), credential, usualCall());
  call.catch(() => undefined);
  await eventually(() => publisher.git.calls === 1);
  const stopped = publisher.stop(50);
  await expect(call).rejects.toMatchObject({ code: 'operation_interrupted', status: 503, retryable: true });
  await stopped;
  publisher.git.before = () => undefined;
  await publisher.start();
  await expect(publisher.client.resolve(resolveMessage(), credential, usualCall())).resolves.toBeDefined();
});

test('work that takes longer than its time is a passing failure', async () => {
  await publisher.restart({ config: { forges: [], limits: { operationSeconds: 1 } } });
  publisher.git.before = (signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        reject(new Error('stopped'));
      });
    });
  const call = publisher.client.resolve(resolveMessage(), credential, usualCall());
  await expect(call).rejects.toMatchObject({ code: 'scm_timeout', retryable: true });
});

describe('an artifact', () => {
  const objects = () => readdir(path.join(publisher.data, 'artifacts', 'objects'));
  const unfinished = () => readdir(path.join(publisher.data, 'artifacts', 'tmp'));

  test.each([
    ['another digest', { digest: `sha256:${'1'.repeat(64)}`, artifactId: `sha256-${'1'.repeat(64)}` } as const],
    ['another size', { sizeBytes: 3 }],
  ])('of %s than it is said to be is never seen', async (_, claimed) => {
    publisher.git.claimed = claimed;
    const call = publisher.client.prepare(prepareMessage(), credential, usualCall());
    await expect(call).rejects.toMatchObject({ code: 'workspace_archive_failed', status: 500 });
    expect([await objects(), await unfinished()]).toEqual([[], []]);
  });

  test('that is a link is never seen', async () => {
    const { git } = publisher;
    Object.assign(git, {
      prepare: async (_request: unknown, _credential: unknown, target: string) => {
        await symlink('/etc/passwd', target);
        return prepared(await readFile('/etc/passwd'));
      },
    });
    const call = publisher.client.prepare(prepareMessage(), credential, usualCall());
    await expect(call).rejects.toMatchObject({ code: 'workspace_archive_failed' });
    expect([await objects(), await unfinished()]).toEqual([[], []]);
  });

  test('that is gone is made again for a repeated request, with the same answer', async () => {
    const first = await publisher.client.prepare(prepareMessage(), credential, usualCall());
    const [name = ''] = await objects();
    await rm(path.join(publisher.data, 'artifacts', 'objects', name));
    expect(await publisher.client.prepare(prepareMessage(), credential, usualCall())).toEqual(first);
    expect(await objects()).toEqual([name]);
    expect(publisher.git.calls).toBe(2);
  });

  test('that cannot be made again as it was is corrupt', async () => {
    await publisher.client.prepare(prepareMessage(), credential, usualCall());
    const [name = ''] = await objects();
    await rm(path.join(publisher.data, 'artifacts', 'objects', name));
    publisher.git.content = Buffer.from('another');
    const call = publisher.client.prepare(prepareMessage(), credential, usualCall());
    await expect(call).rejects.toMatchObject({ code: 'workspace_object_corrupt', status: 500, retryable: false });
    expect(await objects()).toEqual([]);
  });

  test('whose making failed leaves nothing', async () => {
    publisher.git.before = async () => {
      await writeFile(path.join(publisher.data, 'artifacts', 'tmp', 'rest'), 'x');
      throw sourceError('scm_failure');
    };
    await expect(publisher.client.prepare(prepareMessage(), credential, usualCall())).rejects.toMatchObject({
      code: 'scm_failure',
    });
    await publisher.restart();
    expect(await unfinished()).toEqual([]);
  });
});

test('keys that change are used without a restart, the certificate too', async () => {
  const old = publisher.client;
  await old.resolve(resolveMessage('before'), credential, usualCall());
  publisher.token = 'n'.repeat(43);
  publisher.operationSecret = 'o'.repeat(43);
  publisher.identity = selfSigned('publisher');
  await publisher.writeKeys();
  await eventually(() => publisher.lines.some((line) => line.includes('keys changed')));
  await expect(publisher.client.resolve(resolveMessage('after'), credential, usualCall())).resolves.toBeDefined();
  await expect(old.resolve(resolveMessage('old'), credential, usualCall())).rejects.toMatchObject({
    code: 'unauthorized',
    status: 401,
  });
});

test('keys that cannot be used leave the old ones in place', async () => {
  await writeFile(path.join(publisher.folder, 'keys', 'operation-capability-secret'), publisher.token);
  await eventually(() => publisher.lines.some((line) => line.includes('keys cannot be read')));
  await expect(publisher.client.resolve(resolveMessage(), credential, usualCall())).resolves.toBeDefined();
});

test('what the publisher can do needs the bearer, whether it is well does not', async () => {
  const health = await publisher.operation('GET', '/v1/health', {});
  expect([health.status, JSON.parse(health.body.toString())]).toEqual([200, { status: 'ok', ready: true }]);
  expect(health.headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  expect((await publisher.operation('GET', '/v1/capabilities', {})).status).toBe(401);
  expect(await publisher.client.capabilities(usualCall())).toMatchObject({
    operations: ['workspace.resolve', 'workspace.prepare'],
    forges: ['git.example'],
    redirectsAllowed: false,
  });
  const bearer = { authorization: `Bearer ${publisher.token}` };
  expect((await publisher.operation('POST', '/v1/publications/publish', bearer)).status).toBe(404);
  expect((await publisher.operation('GET', resolvePath, bearer)).status).toBe(405);
});

test('no log line, file or answer holds the credential or a key', async () => {
  publisher.git.before = () => {
    throw sourceError('credential_refused');
  };
  const answers = [await publisher.operation('POST', resolvePath, headersFor(bodyOf()), bodyOf())];
  publisher.git.before = () => undefined;
  const other = resolveMessage('other');
  answers.push(await publisher.operation('POST', resolvePath, headersFor(bodyOf(other), other), bodyOf(other)));
  await publisher.client.prepare(prepareMessage(), credential, usualCall());
  expect(answers.map(({ status }) => status)).toEqual([422, 200]);
  const files = await readdir(publisher.data, { recursive: true, withFileTypes: true });
  const contents = await Promise.all(
    files.filter((file) => file.isFile()).map((file) => readFile(path.join(file.parentPath, file.name), 'utf8')),
  );
  expect(contents.length).toBeGreaterThanOrEqual(4);
  const text = [...contents, ...publisher.lines, ...answers.map(({ body }) => body.toString())].join('\n');
  const encoded = Buffer.from(credential).toString('base64url');
  for (const secret of [
    'hunter2',
    credential.slice(-20),
    encoded,
    publisher.token,
    publisher.operationSecret,
    publisher.artifactSecret,
  ])
    expect(text).not.toContain(secret);
  const members = new Set(publisher.lines.flatMap((line) => Object.keys(JSON.parse(line) as object)));
  expect([...members].sort()).toEqual(['code', 'event', 'level', 'milliseconds', 'operationId', 'time']);
});

test('the probe port counts operations, artifacts and records, and says that the publisher is ready', async () => {
  await publisher.client.prepare(prepareMessage(), credential, usualCall());
  const probe = async (name: string) => (await fetch(`http://127.0.0.1:${publisher.ports.probes}${name}`)).text();
  const metrics = await probe('/metrics');
  expect(metrics).toContain('orka_workspaces_publisher_operations_total{operation="workspace.prepare",code="ok"} 1');
  expect(metrics).toContain('orka_workspaces_publisher_artifacts 1');
  expect(metrics).toContain('orka_workspaces_publisher_journal_records 1');
  expect(await probe('/readyz')).toContain('ok');
});
