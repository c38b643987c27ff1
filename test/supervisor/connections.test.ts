import { afterEach, describe, expect, test } from '@jest/globals';
import { readdirSync } from 'node:fs';
import { createServer, get } from 'node:http';
import type { Server } from 'node:http';
import { connect, Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { createHarnessClient } from '../../src/harness/client.js';
import { boundPeers, isOwnAddress, OwnedConnections, serverLimits, usualPeerBounds } from '../../src/lib/connections.js';
import { eventually } from '../support/eventually.js';
import { gone } from '../support/supervisor-calls.js';
import { scriptedSupervisor } from '../support/supervisor.js';

const opened: Socket[] = [];
const servers: Server[] = [];
afterEach(() => {
  for (const socket of opened.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

/** A connection that says nothing, from an address of this machine. */
function silent(port: number, from = '127.0.0.1'): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from });
  socket.on('error', () => undefined);
  opened.push(socket);
  return socket;
}

const connections = (server: Server) =>
  new Promise<number>((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))));

async function listening(prepare: (server: Server) => void): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer(serverLimits, (_request, response) => response.end('ok'));
  prepare(server);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

/** HTTP status of a request over a new connection, or the error. */
const statusFrom = (port: number, from: string) =>
  new Promise<number | string>((resolve) => {
    get({ port, host: '127.0.0.1', localAddress: from, agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    }).on('error', (error) => resolve(error.message));
  });

describe('peers of a server', () => {
  const bounds = { local: 4, perPeer: 3, remote: 5 };
  const pod = (address: string) => address === '127.0.0.1';

  test('connections of the Pod itself never keep another peer out', async () => {
    const { server, port } = await listening((made) => boundPeers(made, bounds, pod));
    const sockets = Array.from({ length: 50 }, () => silent(port));
    await eventually(() => sockets.filter(({ destroyed }) => destroyed).length === 46);
    expect(await connections(server)).toBe(4);
    expect(await statusFrom(port, '127.0.0.1')).not.toBe(200);
    expect(await statusFrom(port, '127.0.0.2')).toBe(200);
  });

  test('one peer elsewhere cannot take the connections of another', async () => {
    const { port } = await listening((made) => boundPeers(made, bounds, pod));
    const sockets = Array.from({ length: 20 }, () => silent(port, '127.0.0.3'));
    await eventually(() => sockets.filter(({ destroyed }) => destroyed).length === 17);
    expect(await statusFrom(port, '127.0.0.3')).not.toBe(200);
    expect(await statusFrom(port, '127.0.0.2')).toBe(200);
  });

  test('all peers elsewhere together have a bound', async () => {
    const { server, port } = await listening((made) => boundPeers(made, bounds, pod));
    const sockets = ['127.0.0.3', '127.0.0.4', '127.0.0.5'].flatMap((from) => [silent(port, from), silent(port, from)]);
    await eventually(() => sockets.filter(({ destroyed }) => destroyed).length === 1);
    expect(await connections(server)).toBe(5);
  });

  test('a connection that ended makes room for another of its peer', async () => {
    const { server, port } = await listening((made) => boundPeers(made, bounds, pod));
    for (let i = 0; i < 10; i++) expect(await statusFrom(port, '127.0.0.1')).toBe(200);
    const sockets = Array.from({ length: 4 }, () => silent(port));
    await eventually(() => sockets.every(({ connecting }) => !connecting));
    for (const socket of sockets) socket.destroy();
    let left = 4;
    await eventually(() => {
      void connections(server).then((count) => (left = count));
      return left === 0;
    });
    expect(await statusFrom(port, '127.0.0.1')).toBe(200);
  });

  test('every address of this Pod is local, in any notation, and no other is', () => {
    const own = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
    for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1', ...own]) expect(isOwnAddress(address)).toBe(true);
    for (const address of ['203.0.113.7', '::ffff:203.0.113.7', '2001:db8::7']) expect(isOwnAddress(address)).toBe(false);
  });
});

describe('connections that prove their owner', () => {
  const guarded = async (owner: () => string) => {
    const owned = new OwnedConnections({ unproven: 4, perOwner: 2 });
    const claims: boolean[] = [];
    const { server, port } = await listening((made) => {
      owned.guard(made);
      made.prependListener('request', (request) => claims.push(owned.claim(request.socket, owner())));
    });
    return { owned, claims, server, port };
  };
  /** Sends a request and keeps the connection. */
  const asks = async (port: number): Promise<Socket> => {
    const socket = silent(port);
    const answered = new Promise((resolve) => socket.once('data', resolve));
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await answered;
    return socket;
  };

  test('the oldest of those that have proven nothing gives way to a new one', async () => {
    const { claims, port } = await guarded(() => 'a');
    const proven = await asks(port);
    const sockets: Socket[] = [];
    for (let i = 0; i < 10; i++) {
      const socket = silent(port);
      sockets.push(socket);
      await new Promise((resolve) => socket.once('connect', resolve));
    }
    await eventually(() => sockets.filter(({ destroyed }) => destroyed).length === 6);
    expect(sockets.slice(0, 6).every(({ destroyed }) => destroyed)).toBe(true);
    expect(proven.destroyed).toBe(false);
    await asks(port);
    expect(claims).toEqual([true, true]);
  });

  test('one whose request is still unread gives way to none, however many come in the same turn', async () => {
    const owned = new OwnedConnections({ unproven: 4, perOwner: 2 });
    const server = createServer().removeAllListeners('connection');
    owned.guard(server);
    const [asking, ...silent] = Array.from({ length: 12 }, () => new Socket());
    for (const socket of [asking!, ...silent]) server.emit('connection', socket);
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    await turn();
    expect([asking!, ...silent].some(({ destroyed }) => destroyed)).toBe(false);
    // The poll in which the request is read.
    expect(owned.claim(asking!, 'a')).toBe(true);
    await turn();
    await turn();
    expect(silent.map(({ destroyed }) => destroyed)).toEqual([...Array<boolean>(7).fill(true), ...Array<boolean>(4).fill(false)]);
    expect(asking!.destroyed).toBe(false);
  });

  test('in one turn no more than four times the bound come in', () => {
    const owned = new OwnedConnections({ unproven: 4, perOwner: 2 });
    const server = createServer().removeAllListeners('connection');
    owned.guard(server);
    const sockets = Array.from({ length: 20 }, () => new Socket());
    for (const socket of sockets) server.emit('connection', socket);
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([
      ...Array<boolean>(16).fill(false),
      ...Array<boolean>(4).fill(true),
    ]);
  });

  test('an owner has few, which are no longer counted among the others', async () => {
    let owner = 'a';
    const { owned, claims, port } = await guarded(() => owner);
    const [first] = [await asks(port), await asks(port), await asks(port)];
    owner = 'b';
    await asks(port);
    expect(claims).toEqual([true, true, false, true]);
    owned.end('a');
    await eventually(() => first.destroyed);
    owner = 'a';
    await asks(port);
    expect(claims.at(-1)).toBe(true);
  });

  test('a connection stays with the owner that proved it first', async () => {
    let owner = 'a';
    const { owned, claims, port } = await guarded(() => owner);
    const socket = await asks(port);
    owner = 'b';
    const answered = new Promise((resolve) => socket.once('data', resolve));
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await answered;
    expect(claims).toEqual([true, true]);
    owned.end('b');
    expect(socket.destroyed).toBe(false);
    owned.end('a');
    await eventually(() => socket.destroyed);
  });
});

test('an agent that opens connections without end costs the supervisor a bounded number of descriptors, and no session', async () => {
  const it = await scriptedSupervisor();
  try {
    const port = Number(new URL(it.url).port);
    const task = await it.session('crowded');
    const descriptors = () => readdirSync('/proc/self/fd').length;
    const sockets = Array.from({ length: 400 }, () => silent(port));
    await eventually(() => sockets.filter(({ destroyed }) => destroyed).length >= 400 - usualPeerBounds.local);
    const before = descriptors();
    sockets.push(...Array.from({ length: 400 }, () => silent(port)));
    await eventually(() => sockets.filter(({ destroyed }) => destroyed).length >= 800 - usualPeerBounds.local);
    expect(descriptors() - before).toBeLessThan(usualPeerBounds.local);
    // The client of this test is local, too; the connection that it kept alive goes on.
    await it.client.deleteSession(task.operation('ds', it.fence), task.runtimeSessionID, 'test');
    await gone(it, task);
  } finally {
    await it.close();
  }
});

test('a connection that never sends its header is closed', async () => {
  const limits = { ...serverLimits, headersTimeout: 50, connectionsCheckingInterval: 20 };
  const server = createServer(limits, (_request, response) => response.end('ok'));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const socket = silent(port);
  socket.resume();
  await eventually(() => socket.destroyed);
});

test('the supervisor serves its client after a flood has ended', async () => {
  const it = await scriptedSupervisor();
  try {
    const sockets = Array.from({ length: 200 }, () => silent(Number(new URL(it.url).port)));
    await eventually(() => sockets.filter(({ destroyed }) => destroyed).length >= 200 - usualPeerBounds.local);
    for (const socket of sockets) socket.destroy();
    const client = createHarnessClient({ baseUrl: it.url });
    let health: unknown;
    await eventually(() => {
      client.health().then(
        (answer) => (health = answer),
        () => undefined,
      );
      return health !== undefined;
    });
    client.close();
  } finally {
    await it.close();
  }
});
