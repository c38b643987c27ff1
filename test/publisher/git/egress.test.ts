import { afterEach, expect, test } from '@jest/globals';
import { request } from 'node:http';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

import { EgressProxy } from '../../../src/publisher/git/egress.js';
import type { EgressLimits, EgressPass, ResolveHost } from '../../../src/publisher/git/egress.js';
import type { Forge } from '../../../src/publisher/git/forge.js';
import { eventually } from '../../support/eventually.js';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A server on the loopback that repeats what it reads. */
async function echo(
  onConnection: (socket: Socket) => void = () => undefined,
): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const sockets = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    connections++;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.pipe(socket);
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

async function proxyWith(resolve: ResolveHost, limits: Partial<EgressLimits> = {}): Promise<EgressProxy> {
  const proxy = await EgressProxy.start({ resolve, limits });
  closers.push(() => proxy.close());
  return proxy;
}

interface Tunnel {
  readonly status: number;
  readonly socket: Socket;
}

function tunnel(pass: Pick<EgressPass, 'proxy'>, target: string, headers: Record<string, string> = {}): Promise<Tunnel> {
  const { hostname, port, username, password } = new URL(pass.proxy);
  return new Promise((resolve, reject) => {
    const call = request({
      host: hostname,
      port,
      method: 'CONNECT',
      path: target,
      agent: false,
      headers: {
        'proxy-authorization': `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
        ...headers,
      },
    });
    call.on('connect', (response, socket) => resolve({ status: response.statusCode ?? 0, socket: socket }));
    call.on('error', reject);
    call.end();
  });
}

const local = (port: number): Forge => ({ host: 'git.example', port, private: true, cidr: '127.0.0.0/8' });
const loopback: ResolveHost = () => Promise.resolve(['127.0.0.1']);

test('a listed forge is reached through a tunnel that keeps a half-closed connection', async () => {
  const { port } = await echo();
  const pass = (await proxyWith(loopback)).admit(local(port));
  const { status, socket } = await tunnel(pass, `git.example:${port}`);
  expect(status).toBe(200);
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  socket.end('hello');
  await eventually(() => text === 'hello');
  expect(pass.refusal()).toBeUndefined();
});

test.each(['other.example:443', 'git.example:80', 'git.example', '127.0.0.1:443', '[::1]:443', 'GIT.EXAMPLE:443'])(
  'the target %s is refused for a pass to git.example:443',
  async (target) => {
    let asked = 0;
    const proxy = await proxyWith(() => {
      asked++;
      return Promise.resolve(['93.184.216.34']);
    });
    const pass = proxy.admit({ host: 'git.example' });
    expect((await tunnel(pass, target)).status).toBe(403);
    expect(pass.refusal()).toBe('host-not-allowed');
    expect(asked).toBe(0);
  },
);

test.each([
  ['127.0.0.1'],
  ['10.0.0.1'],
  ['169.254.169.254'],
  ['0.0.0.0'],
  ['224.0.0.1'],
  ['::1'],
  ['::ffff:93.184.216.34'],
  ['fe80::1'],
  ['93.184.216.34', '10.0.0.1'],
])('a public name that resolves to %s %s is refused', async (...addresses) => {
  const pass = (await proxyWith(() => Promise.resolve(addresses))).admit({ host: 'git.example' });
  expect((await tunnel(pass, 'git.example:443')).status).toBe(403);
  expect(pass.refusal()).toBe('address-refused');
});

test('a name is resolved once a tunnel, so a second answer cannot move the connection', async () => {
  const { port, connections } = await echo();
  const answers = [['127.0.0.1'], ['10.0.0.1']];
  let asked = 0;
  const proxy = await proxyWith(() => Promise.resolve(answers[asked++] ?? []));
  const pass = proxy.admit({ host: 'git.example', port, private: true, cidr: '127.0.0.1/32' });
  expect((await tunnel(pass, `git.example:${port}`)).status).toBe(200);
  expect([asked, connections()]).toEqual([1, 1]);
  expect((await tunnel(pass, `git.example:${port}`)).status).toBe(403);
  expect([asked, connections(), pass.refusal()]).toEqual([2, 1, 'address-refused']);
});

test('a request without a pass, with another credential or with a revoked pass is refused before a name is resolved', async () => {
  let asked = 0;
  const proxy = await proxyWith(() => {
    asked++;
    return Promise.resolve(['93.184.216.34']);
  });
  const pass = proxy.admit({ host: 'git.example' });
  expect((await tunnel(pass, 'git.example:443', { 'proxy-authorization': 'Basic bm9ib2R5Og==' })).status).toBe(407);
  pass.revoke();
  expect((await tunnel(pass, 'git.example:443')).status).toBe(407);
  expect(asked).toBe(0);
});

test('one pass does not open the forge of another', async () => {
  const proxy = await proxyWith(loopback);
  const [one, other] = [proxy.admit({ host: 'one.example' }), proxy.admit({ host: 'other.example' })];
  expect((await tunnel(one, 'other.example:443')).status).toBe(403);
  expect([one.refusal(), other.refusal()]).toEqual(['host-not-allowed', undefined]);
});

test('a revoked pass ends its tunnels', async () => {
  const { port } = await echo();
  const pass = (await proxyWith(loopback)).admit(local(port));
  const { socket } = await tunnel(pass, `git.example:${port}`);
  let closed = false;
  socket.on('error', () => undefined).on('close', () => (closed = true));
  socket.resume();
  pass.revoke();
  await eventually(() => closed);
});

test('a plain request is refused', async () => {
  const pass = (await proxyWith(loopback)).admit({ host: 'git.example' });
  const { port } = new URL(pass.proxy);
  expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(405);
});

test('a header of more than 32 KiB is refused', async () => {
  const pass = (await proxyWith(loopback)).admit({ host: 'git.example' });
  const { port } = new URL(pass.proxy);
  const socket = connect(Number(port), '127.0.0.1');
  let text = '';
  socket.on('error', () => undefined).on('data', (chunk: Buffer) => (text += chunk.toString()));
  socket.write(`CONNECT git.example:443 HTTP/1.1\r\nx: ${'a'.repeat(33 * 1024)}\r\n\r\n`);
  await eventually(() => text.startsWith('HTTP/1.1 431'));
  socket.destroy();
});

test('a tunnel ends at its bound of bytes', async () => {
  const { port } = await echo();
  const pass = (await proxyWith(loopback, { bytes: 1000 })).admit(local(port));
  const { socket } = await tunnel(pass, `git.example:${port}`);
  let closed = false;
  socket.on('error', () => undefined).on('close', () => (closed = true));
  socket.resume();
  socket.write(Buffer.alloc(600));
  await eventually(() => closed);
  expect(pass.refusal()).toBe('too-many-bytes');
});

test('a tunnel ends at its bound of time', async () => {
  const { port } = await echo();
  const pass = (await proxyWith(loopback, { tunnel: 50 })).admit(local(port));
  const { socket } = await tunnel(pass, `git.example:${port}`);
  socket.on('error', () => undefined).resume();
  await eventually(() => pass.refusal() === 'too-long');
});

test('more tunnels than the bound are refused, and a closed tunnel makes room', async () => {
  const { port } = await echo();
  const pass = (await proxyWith(loopback, { tunnels: 1 })).admit(local(port));
  const first = await tunnel(pass, `git.example:${port}`);
  expect((await tunnel(pass, `git.example:${port}`)).status).toBe(403);
  expect(pass.refusal()).toBe('busy');
  first.socket.destroy();
  let status = 0;
  while (status !== 200) ({ status } = await tunnel(pass, `git.example:${port}`));
});

test('a name that is unknown, has no address or is not answered in time is told apart from a refused address', async () => {
  const refusalWith = async (resolve: ResolveHost): Promise<string | undefined> => {
    const pass = (await proxyWith(resolve, { resolve: 50 })).admit({ host: 'git.example' });
    expect((await tunnel(pass, 'git.example:443')).status).toBe(403);
    return pass.refusal();
  };
  expect(await refusalWith(() => Promise.reject(new Error('ENOTFOUND')))).toBe('name-unknown');
  expect(await refusalWith(() => Promise.resolve([]))).toBe('name-unknown');
  expect(await refusalWith(() => new Promise(() => undefined))).toBe('name-unknown');
});

test('a forge that refuses connections is unreachable', async () => {
  const { port } = await echo();
  for (const close of closers.splice(0)) await close();
  const pass = (await proxyWith(loopback)).admit(local(port));
  expect((await tunnel(pass, `git.example:${port}`)).status).toBe(403);
  expect(pass.refusal()).toBe('unreachable');
});
