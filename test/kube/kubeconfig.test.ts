import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { AccessError, podAccess } from '../../src/kube/access.js';
import { KubeError } from '../../src/kube/errors.js';
import { kubeconfigAccess } from '../../src/kube/kubeconfig.js';
import { kubeconfigMembers } from '../../src/kube/kubeconfig-members.js';
import type { KubeconfigObject } from '../../src/kube/kubeconfig-members.js';
import { createTransport } from '../../src/kube/transport.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { authority } from '../support/certificates.js';
import type { Authority } from '../support/certificates.js';
import { connectProxy } from '../support/connect-proxy.js';
import { fakeApi, reply } from '../support/fake-api.js';
import type { FakeApi } from '../support/fake-api.js';

let folder: string;
let trusted: Authority;
const toClose: { readonly close: () => unknown }[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
  trusted = authority('trusted');
});
afterEach(async () => {
  for (const one of toClose.splice(0).reverse()) await one.close();
  rmSync(folder, { recursive: true });
});

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const config = (cluster: JsonObject, user: JsonObject, change: JsonObject = {}): JsonObject => ({
  'current-context': 'here',
  contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
  clusters: [{ name: 'c', cluster: { server: 'https://api.example', ...cluster } }],
  users: [{ name: 'u', user }],
  ...change,
});

/** A real TLS server whose certificate is for `hosts`. */
async function serve(hosts: readonly string[] = ['127.0.0.1'], address = '127.0.0.1'): Promise<FakeApi> {
  const answer: Parameters<typeof fakeApi>[0] = (_, response) => reply(response, 200, { kind: 'Status' });
  const api = await fakeApi(answer, { ...trusted.issue('server', 1, hosts), ca: trusted.ca }, address);
  toClose.push(api);
  return api;
}

async function ask(cluster: JsonObject, user: JsonObject = { token: 't' }): Promise<JsonObject> {
  const transport = createTransport(kubeconfigAccess(config(cluster, user), join(folder, 'config')));
  toClose.push(transport);
  return transport.request({ method: 'GET', path: '/api', timeout: 5_000 });
}

const ca = (): JsonObject => ({ 'certificate-authority-data': base64(trusted.ca) });

async function failure(of: () => unknown): Promise<Error> {
  try {
    await of();
  } catch (error) {
    return error as Error;
  }
  throw new Error('it did not fail');
}

describe('the name of the server', () => {
  test('is the one of tls-server-name, which the certificate must have', async () => {
    const api = await serve(['api.internal']);
    expect(await failure(() => ask({ server: api.url, ...ca() }))).toBeInstanceOf(KubeError);
    await ask({ server: api.url, ...ca(), 'tls-server-name': 'api.internal' });
    expect((await failure(() => ask({ server: api.url, ...ca(), 'tls-server-name': 'other.internal' }))).message).toContain(
      'other.internal',
    );
  });

  test('may be an address, which is checked and not sent', async () => {
    const api = await serve(['10.9.8.7']);
    await ask({ server: api.url, ...ca(), 'tls-server-name': '10.9.8.7' });
    expect(await failure(() => ask({ server: api.url, ...ca(), 'tls-server-name': '10.9.8.8' }))).toBeInstanceOf(KubeError);
  });
});

describe('insecure-skip-tls-verify', () => {
  test('accepts a certificate of an unknown authority', async () => {
    const api = await serve(['elsewhere']);
    expect(await failure(() => ask({ server: api.url }))).toBeInstanceOf(KubeError);
    await ask({ server: api.url, 'insecure-skip-tls-verify': true });
    expect(api.received).toHaveLength(1);
  });

  test('that is false checks the certificate', async () => {
    const api = await serve();
    expect(await failure(() => ask({ server: api.url, 'insecure-skip-tls-verify': false }))).toBeInstanceOf(KubeError);
  });
});

describe('proxy-url', () => {
  test('with a certificate that cannot be read fails like a server without a proxy', async () => {
    const [api, proxy] = [await serve(), await connectProxy()];
    toClose.push(proxy);
    const user = { 'client-certificate-data': base64('no certificate'), 'client-key-data': base64('no key') };
    const cluster = { server: api.url, ...ca() };
    const alone = await failure(async () => ask(cluster, user));
    const behind = await failure(async () => ask({ ...cluster, 'proxy-url': `http://127.0.0.1:${proxy.port}` }, user));
    expect(alone.message).toContain('PEM');
    expect(behind.message).toBe(alone.message);
  });

  test('leads every connection through a tunnel, inside which TLS ends at the server', async () => {
    const api = await serve();
    const proxy = await connectProxy();
    toClose.push(proxy);
    await ask({ server: api.url, ...ca(), 'proxy-url': `http://user:p%40ss@127.0.0.1:${proxy.port}` });
    expect(proxy.seen.map(({ target }) => `https://${target}`)).toEqual([api.url]);
    expect(proxy.seen[0]?.headers).toMatchObject({ 'proxy-authorization': `Basic ${base64('user:p@ss')}` });
    expect(proxy.seen[0]?.headers.authorization).toBeUndefined();
    expect(api.received[0]?.headers).toMatchObject({ authorization: 'Bearer t' });
    expect(api.received[0]?.headers['proxy-authorization']).toBeUndefined();
  });

  test('keeps its tunnel for the next request', async () => {
    const api = await serve();
    const proxy = await connectProxy();
    toClose.push(proxy);
    const cluster = { server: api.url, ...ca(), 'proxy-url': `http://127.0.0.1:${proxy.port}` };
    const transport = createTransport(kubeconfigAccess(config(cluster, { token: 't' }), 'config'));
    toClose.push(transport);
    for (let i = 0; i < 3; i++) await transport.request({ method: 'GET', path: '/api' });
    expect([api.received.length, proxy.seen.length]).toEqual([3, 1]);
  });

  test('still checks the certificate of the server', async () => {
    const api = await serve(['elsewhere']);
    const proxy = await connectProxy();
    toClose.push(proxy);
    const asked = ask({ server: api.url, ...ca(), 'proxy-url': `http://127.0.0.1:${proxy.port}` });
    expect(await failure(() => asked)).toMatchObject({ code: 'unreachable' });
    expect(api.received).toEqual([]);
  });

  test('that refuses is named, without its password', async () => {
    const api = await serve();
    const proxy = await connectProxy(407);
    toClose.push(proxy);
    const asked = ask({ server: api.url, ...ca(), 'proxy-url': `http://user:pass-1@127.0.0.1:${proxy.port}` });
    const error = await failure(() => asked);
    expect(error.message).toContain(`proxy 127.0.0.1:${proxy.port}: found HTTP 407`);
    expect(`${error.stack} ${JSON.stringify(error)}`).not.toContain('pass-1');
  });
});

describe('an impersonated user', () => {
  test('is in the headers of each request', async () => {
    const api = await serve();
    await ask(
      { server: api.url, ...ca() },
      {
        token: 't',
        as: 'Jürgen',
        'as-uid': 'uid-1',
        'as-groups': ['developers', 'admins'],
        'as-user-extra': { Scopes: ['view', 'development'], 'acme.com/project': ['some%'] },
      },
    );
    const { headers } = api.received[0]!;
    expect(Buffer.from(String(headers['impersonate-user']), 'latin1').toString()).toBe('Jürgen');
    expect(headers).toMatchObject({
      'impersonate-uid': 'uid-1',
      'impersonate-group': 'developers, admins',
      'impersonate-extra-scopes': 'view, development',
      'impersonate-extra-acme.com%2fproject': 'some%',
      authorization: 'Bearer t',
    });
  });
});

test('a user with a password is sent by basic authentication', async () => {
  const api = await serve();
  await ask({ server: api.url, ...ca() }, { username: 'u', password: 'p' });
  expect(api.received[0]?.headers.authorization).toBe(`Basic ${base64('u:p')}`);
});

test('a context without a user sends no credentials', async () => {
  const contexts = [{ name: 'here', context: { cluster: 'c' } }];
  expect(await kubeconfigAccess(config({}, {}, { contexts }), 'config').credentials()).toEqual({});
});

test('a token file wins over a token while it can be read', async () => {
  const { credentials } = kubeconfigAccess(config({}, { token: 'inline', tokenFile: 'token' }), join(folder, 'config'));
  expect(await credentials()).toEqual({ token: 'inline' });
  writeFileSync(join(folder, 'token'), 'file\n');
  expect(await credentials()).toEqual({ token: 'file' });
});

describe('a server with an IPv6 address', () => {
  test('is reached by a kubeconfig', async () => {
    const api = await serve(['::1'], '::1');
    expect(await ask({ server: api.url, ...ca() })).toEqual({ kind: 'Status' });
  });

  test('is reached through a proxy', async () => {
    const api = await serve(['::1'], '::1');
    const proxy = await connectProxy();
    toClose.push(proxy);
    await ask({ server: api.url, ...ca(), 'proxy-url': `http://127.0.0.1:${proxy.port}` });
    expect(proxy.seen[0]?.target).toBe(new URL(api.url).host);
  });

  test('is reached from a Pod', async () => {
    const api = await serve(['::1'], '::1');
    writeFileSync(join(folder, 'token'), 't');
    writeFileSync(join(folder, 'ca.crt'), trusted.ca);
    const environment = { KUBERNETES_SERVICE_HOST: '::1', KUBERNETES_SERVICE_PORT: new URL(api.url).port };
    const transport = createTransport(podAccess(environment, folder));
    toClose.push(transport);
    expect(await transport.request({ method: 'GET', path: '/api' })).toEqual({ kind: 'Status' });
  });
});

describe('a program', () => {
  const program = (script: string, exec: JsonObject = {}, cluster: JsonObject = {}) => {
    writeFileSync(join(folder, 'login'), `#!${process.execPath}\n${script}`, { mode: 0o755 });
    const given = { apiVersion: 'client.authentication.k8s.io/v1', command: './login', interactiveMode: 'IfAvailable', ...exec };
    return kubeconfigAccess(config(cluster, { exec: given }), join(folder, 'config')).credentials();
  };
  const print = `process.stdout.write(JSON.stringify({ status: { token: process.env.KUBERNETES_EXEC_INFO } }))`;

  test('is found beside the kubeconfig and reads the cluster where it asks for that', async () => {
    const extensions = [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'a' } }];
    const cluster = { ...ca(), 'tls-server-name': 'api.internal', extensions };
    const { token = '' } = await program(print, { provideClusterInfo: true }, cluster);
    expect(JSON.parse(token)).toEqual({
      kind: 'ExecCredential',
      apiVersion: 'client.authentication.k8s.io/v1',
      spec: {
        interactive: false,
        cluster: {
          server: 'https://api.example',
          'tls-server-name': 'api.internal',
          'certificate-authority-data': base64(trusted.ca),
          config: { audience: 'a' },
        },
      },
    });
  });

  test('does not read the cluster where it does not ask', async () => {
    const { token = '' } = await program(print);
    expect(JSON.parse(token)).toMatchObject({ spec: { interactive: false } });
    expect(token).not.toContain('api.example');
  });

  test('that is not there is refused with its hint', async () => {
    const error = await failure(() => program('', { command: 'no-such-program-x', installHint: 'install x from example' }));
    expect(error.message).toContain('install x from example');
  });

  test('is not run for a user who has a token', async () => {
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './no' };
    expect(await kubeconfigAccess(config({}, { token: 't', exec }), 'config').credentials()).toEqual({ token: 't' });
  });
});

test.each([[{}], [{ config: null }]])('an identity provider without settings is refused in words: %j', async (settings) => {
  const user = { 'auth-provider': { name: 'gcp', ...settings } };
  const { message } = await failure(() => kubeconfigAccess(config({}, user), 'config').credentials());
  expect(message).toBe('config: users[0].user: found "Token is expired!", allowed: a user whose credentials can be had');
});

describe('refused by name:', () => {
  const v1 = 'client.authentication.k8s.io/v1';
  const control = 'a\r\nX-Remote-User: root';
  const rows: readonly (readonly [what: string, cluster: JsonObject, user: JsonObject, says: string])[] = [
    ['a SOCKS proxy', { 'proxy-url': 'socks5://127.0.0.1:1080' }, {}, 'clusters[0].cluster.proxy-url: found "socks5:'],
    ['a proxy of an http server', { server: 'http://a', 'proxy-url': 'http://p' }, {}, 'cluster.proxy-url: found "http://p"'],
    ['a server with a user', { server: 'https://me:secret@a' }, {}, 'cluster.server: found "https://***@a"'],
    ['a server of another scheme', { server: 'unix:/run/api' }, {}, 'cluster.server: found "unix:'],
    ['a server with a query', { server: 'https://a?token=secret' }, {}, 'cluster.server: found "https://a"'],
    ['a server that is no URL', { server: 'https://me:x/secret@a' }, {}, 'cluster.server: found "a text that is no URL"'],
    ['a proxy that is no URL', { 'proxy-url': 'http://me:x/secret@p' }, {}, 'proxy-url: found "a text that is no URL"'],
    ['a proxy with a user and no scheme', { 'proxy-url': 'me:secret@p:1' }, {}, 'proxy-url: found "me://"'],
    ['a token with a line break', {}, { token: 'secret\n' }, 'user.token: found "a value with control characters"'],
    [
      'an authority that is not used',
      { 'insecure-skip-tls-verify': true, 'certificate-authority': 'ca' },
      {},
      'insecure-skip-tls-verify: found true, allowed: one of it and certificate-authority',
    ],
    ['a flag in quotes', { 'insecure-skip-tls-verify': 'true' }, {}, 'insecure-skip-tls-verify: found "a text", allowed: a flag'],
    ['a misspelt member of a cluster', { 'tls-servername': 'x' }, {}, 'did you mean tls-server-name?'],
    ['a misspelt member of a user', {}, { 'as-group': ['x'] }, 'users[0].user.as-group: found "a list"'],
    ['groups without a user', {}, { 'as-groups': ['x'] }, 'user.as-groups: found ["x"], allowed: only together with as'],
    ['a user id without a user', {}, { 'as-uid': 'x' }, 'user.as-uid'],
    ['extra values without a user', {}, { 'as-user-extra': { a: ['b'] } }, 'user.as-user-extra'],
    ['a header in a name', {}, { as: control }, 'user.as: found'],
    ['a header in a group', {}, { as: 'a', 'as-groups': [control] }, 'user.as-groups: found'],
    ['groups that are no list', {}, { as: 'a', 'as-groups': 'x' }, 'user.as-groups: found "a text", allowed: a list of texts'],
    ['a password beside a token', {}, { token: 'secret', password: 'secret' }, 'user.password: found "a text"'],
    ['a certificate without a key', {}, { 'client-certificate': 'x' }, 'user.client-key: found nothing'],
    ['exec and auth-provider', {}, { exec: { command: 'x' }, 'auth-provider': { name: 'oidc' } }, 'user.auth-provider: found'],
    ['an unknown identity provider', {}, { 'auth-provider': { name: 'x' } }, 'user.auth-provider.name: found "x"'],
    ['a program without an interface', {}, { exec: { command: 'x' } }, 'user.exec.apiVersion: found nothing'],
    [
      'a program of a removed interface',
      {},
      { exec: { command: 'x', apiVersion: 'client.authentication.k8s.io/v1alpha1' } },
      'user.exec.apiVersion: found',
    ],
    ['no program', {}, { exec: { apiVersion: v1 } }, 'user.exec.command: found nothing'],
    [
      'a program that needs a terminal',
      {},
      { exec: { apiVersion: v1, command: 'x', interactiveMode: 'Always' } },
      'user.exec.interactiveMode: found "Always"',
    ],
    ['a misspelt member of exec', {}, { exec: { apiVersion: v1, command: 'x', argv: [] as Json, arg: ['a'] } }, 'user.exec.arg'],
  ];
  test.each(rows.map((row) => [...row] as const))('%s', async (_, cluster, user, says) => {
    const error = await failure(() => kubeconfigAccess(config(cluster, user), 'config'));
    expect(error).toBeInstanceOf(AccessError);
    expect(error.message).toContain(says);
    expect(error.message).not.toContain('secret');
    expect(JSON.stringify(error)).not.toContain('secret');
  });

  test.each([
    ['apiVersion', { apiVersion: 'v2' }],
    ['kind', { kind: 'Secret' }],
    ['current-contxt', { 'current-contxt': 'x' }],
  ])('%s of the whole file', async (member, change) => {
    expect((await failure(() => kubeconfigAccess(config({}, {}, change), 'config'))).message).toContain(
      `config: ${member}: found`,
    );
  });
});

test('empty members count as absent, as for kubectl', () => {
  const user = { token: '', as: '', 'as-groups': [], 'as-uid': null, 'as-user-extra': {}, exec: null, 'auth-provider': null };
  const cluster = { 'proxy-url': '', 'tls-server-name': '', 'insecure-skip-tls-verify': false, extensions: null };
  const { headers, proxy, serverName, insecure } = kubeconfigAccess(config(cluster, user), 'config');
  expect([headers, proxy, serverName, insecure]).toEqual([undefined, undefined, undefined, undefined]);
});

test('entries that are not used may hold anything', () => {
  const users = [
    { name: 'u', user: { token: 't' } },
    { name: 'other', user: { future: true } },
  ];
  expect(kubeconfigAccess(config({}, {}, { users }), 'config').server).toBe('https://api.example');
});

/** Members by their JSON names. Source: k8s.io/client-go v0.34, tools/clientcmd/api/v1/types.go. */
const kubectl: Readonly<Record<KubeconfigObject, readonly string[]>> = {
  config: ['kind', 'apiVersion', 'preferences', 'clusters', 'users', 'contexts', 'current-context', 'extensions'],
  context: ['cluster', 'user', 'namespace', 'extensions'],
  cluster: [
    'server',
    'tls-server-name',
    'insecure-skip-tls-verify',
    'certificate-authority',
    'certificate-authority-data',
    'proxy-url',
    'disable-compression',
    'extensions',
  ],
  user: [
    'client-certificate',
    'client-certificate-data',
    'client-key',
    'client-key-data',
    'token',
    'tokenFile',
    'as',
    'as-uid',
    'as-groups',
    'as-user-extra',
    'username',
    'password',
    'auth-provider',
    'exec',
    'extensions',
  ],
  exec: ['command', 'args', 'env', 'apiVersion', 'installHint', 'provideClusterInfo', 'interactiveMode'],
  'auth-provider': ['name', 'config'],
};

test.each(Object.entries(kubectl))('every member of %s that kubectl knows is in the table', (of, members) => {
  expect(Object.keys(kubeconfigMembers[of as KubeconfigObject]).sort()).toEqual([...members].sort());
});
