import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { existsSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import path from 'node:path';

import { classify } from '../../../src/publisher/git/classify.js';
import { GitFailure } from '../../../src/publisher/git/runner.js';
import type { SourceGitOptions } from '../../../src/publisher/git/source.js';
import { authority } from '../../support/certificates.js';
import { bareRepository, commitTree, credentialOf, readToken, testForge } from '../../support/forge.js';
import type { TestForge } from '../../support/forge.js';
import { eventually } from '../../support/eventually.js';
import { failureOf, prepareRequest, readCredential, resolveRequest, testSource } from '../../support/source-git.js';
import type { TestSource } from '../../support/source-git.js';

let forge: TestForge;
let oid: string;
let source: TestSource;
const { signal } = new AbortController();

beforeAll(async () => {
  forge = await testForge();
  oid = commitTree(bareRepository(forge.root, 'acme/app.git'), [{ path: 'README.md', content: 'hello\n' }]);
});
afterAll(() => forge.close());

beforeEach(() => {
  source = testSource(forge);
});
afterEach(async () => {
  forge.set({ mode: 'ok' });
  expect(readdirSync(source.tempRoot)).toEqual([]);
  await source.close();
});

/** Both operations, one after the other. */
async function failures(credential: string | undefined = readCredential, options: Partial<SourceGitOptions> = {}) {
  await source.close();
  source = testSource(forge, options);
  const target = path.join(source.folder, 'target');
  const resolved = await failureOf(source.git.resolve(resolveRequest(forge, 'acme/app', 'main'), credential, signal));
  const prepared = await failureOf(source.git.prepare(prepareRequest(forge, 'acme/app', oid), credential, target, signal));
  expect(existsSync(target)).toBe(false);
  return [resolved, prepared];
}

const both = (expected: object) => [expect.objectContaining(expected), expect.objectContaining(expected)];
const [host] = ['localhost'];

test.each([
  ['401', 'credential_refused', false],
  ['403', 'credential_refused', false],
  ['404', 'repository_absent', false],
  ['redirect', 'redirect_refused', false],
  ['drop', 'scm_failure', true],
  ['garbage', 'scm_failure', true],
] as const)('a forge that answers with %s fails an operation with %s, retryable %j', async (mode, code, retryable) => {
  forge.set({ mode });
  expect(await failures()).toEqual(both({ code, retryable }));
});

test('a wrong token and no token are refused, a repository that is absent is told apart', async () => {
  expect(await failures(credentialOf('wrong'))).toEqual(both({ code: 'credential_refused', retryable: false }));
  const request = resolveRequest(forge, 'acme/absent', 'main');
  expect(await failureOf(source.git.resolve(request, undefined, signal))).toMatchObject({ code: 'credential_refused' });
  expect(await failureOf(source.git.resolve(request, readCredential, signal))).toMatchObject({ code: 'repository_absent' });
});

test('a forge that does not answer fails with a time-out that may be tried again', async () => {
  forge.set({ mode: 'slow' });
  const timeouts = { ask: 300, fetch: 300 };
  expect(await failures(readCredential, { timeouts })).toEqual(both({ code: 'scm_timeout', retryable: true }));
});

test('a certificate of another authority is refused', async () => {
  const forges = [{ host, port: forge.port, ca: authority('another').ca, private: true, cidr: '127.0.0.0/8' }];
  expect(await failures(readCredential, { forges })).toEqual(both({ code: 'tls_failed', retryable: false }));
});

test('a certificate for another name is refused', async () => {
  const other = await testForge('other.example');
  try {
    const forges = [{ host, port: other.port, ca: other.ca, private: true, cidr: '127.0.0.0/8' }];
    await source.close();
    source = testSource(forge, { forges });
    const request = resolveRequest({ ...forge, at: `${host}:${other.port}` }, 'acme/app');
    expect(await failureOf(source.git.resolve(request, readCredential, signal))).toMatchObject({ code: 'tls_failed' });
    expect(other.requests()).toEqual([]);
  } finally {
    await other.close();
  }
});

test('a forge that is not listed, or not on this port, is refused before a connection is made', async () => {
  for (const forges of [[], [{ host }], [{ host: 'other.example', port: forge.port }]]) {
    const found = await failures(readCredential, { forges });
    expect(found).toEqual(both({ code: 'host_not_allowed', retryable: false }));
    expect(found[0]?.message).toContain(`${host}:${forge.port}`);
  }
});

test('a public forge with the address of the loopback is refused, and gets no request', async () => {
  const before = forge.requests().length;
  const forges = [{ host, port: forge.port, ca: forge.ca }];
  const found = await failures(readCredential, { forges });
  expect(found).toEqual(both({ code: 'address_refused', retryable: false }));
  expect(found[0]?.message).toContain('with private: true, an address in its peer.cidr');
  const rebinding = { resolveHost: () => Promise.resolve(['93.184.216.34', '127.0.0.1']) };
  expect(await failures(readCredential, { forges, ...rebinding })).toEqual(both({ code: 'address_refused' }));
  expect(forge.requests()).toHaveLength(before);
});

test('a redirect to a private address is not followed', async () => {
  let connections = 0;
  const trap = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve));
  try {
    forge.set({ mode: 'redirect', to: `https://127.0.0.1:${(trap.address() as AddressInfo).port}/latest/meta-data` });
    expect(await failures()).toEqual(both({ code: 'redirect_refused', retryable: false }));
    expect(connections).toBe(0);
  } finally {
    trap.close();
  }
});

test('a forge whose name is unknown or that accepts no connection may be tried again', async () => {
  const resolveHost = () => Promise.reject(new Error('ENOTFOUND'));
  expect(await failures(readCredential, { resolveHost })).toEqual(both({ code: 'scm_failure', retryable: true }));
  const closed = await testForge();
  await closed.close();
  const request = resolveRequest({ ...forge, at: closed.at }, 'acme/app');
  await source.close();
  source = testSource(forge, { forges: [{ host, port: closed.port, private: true, cidr: '127.0.0.0/8' }] });
  expect(await failureOf(source.git.resolve(request, readCredential, signal))).toMatchObject({ code: 'scm_failure' });
});

test.each([
  ['http://localhost/acme/app.git'],
  ['ssh://git@localhost/acme/app.git'],
  ['file:///etc'],
  ['https://user:pass@localhost/acme/app.git'],
  ['ext::sh -c id'],
  ['-oProxyCommand=id'],
])('the URL %s is refused', async (url) => {
  const { source: repository, ...rest } = resolveRequest(forge, 'acme/app');
  const failure = await failureOf(source.git.resolve({ ...rest, source: { ...repository, url } }, readCredential, signal));
  expect(['invalid_request', 'host_not_allowed']).toContain((failure as Error & { code: string }).code);
  expect(failure.message).not.toContain('pass');
});

test('an identity that is not that of the URL is refused', async () => {
  const { source: repository, ...rest } = resolveRequest(forge, 'acme/app');
  const request = { ...rest, source: { ...repository, id: `${forge.at}/acme/other` } };
  expect(await failureOf(source.git.resolve(request, readCredential, signal))).toMatchObject({ code: 'invalid_request' });
});

test('an operation that is aborted ends its processes and leaves nothing', async () => {
  forge.set({ mode: 'slow' });
  const controller = new AbortController();
  const seen = forge.requests().length;
  const work = failureOf(source.git.resolve(resolveRequest(forge, 'acme/app', 'main'), readCredential, controller.signal));
  await eventually(() => forge.requests().length > seen);
  controller.abort();
  expect(await work).toMatchObject({ code: 'operation_interrupted', retryable: true });
});

test('closing ends what is running', async () => {
  forge.set({ mode: 'slow' });
  const seen = forge.requests().length;
  const work = failureOf(source.git.resolve(resolveRequest(forge, 'acme/app', 'main'), readCredential, signal));
  await eventually(() => forge.requests().length > seen);
  await source.git.close();
  expect(await work).toMatchObject({ code: 'operation_interrupted' });
});

test('a missing git is named, and no operation starts', async () => {
  const found = await failures(readCredential, { gitBinary: '/nonexistent/git' });
  expect(found).toEqual(both({ code: 'git_unavailable' }));
  expect(found[0]?.message).toContain('found "/nonexistent/git", allowed: the git of the flag --git');
});

test('no failure shows a credential or a text of the forge', async () => {
  for (const mode of ['401', '403', '404', 'redirect', 'drop', 'garbage'] as const) {
    forge.set({ mode, to: 'https://secret-place.example/' });
    for (const failure of await failures()) {
      const shown = `${failure.stack ?? ''}${JSON.stringify(failure)}${source.logged.join()}`;
      for (const secret of [readToken, readCredential.split(' ')[2] ?? '', 'secret-place', 'fatal:', 'orka-publisher'])
        expect(shown).not.toContain(secret);
    }
  }
});

test('a git that cannot be started is unavailable, whatever the forge is', () => {
  expect(classify(new GitFailure('not-started'), undefined, 'a repository')).toMatchObject({ code: 'git_unavailable' });
});
