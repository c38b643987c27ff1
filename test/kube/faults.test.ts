import type { Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { KubeError } from '../../src/kube/errors.js';
import { createTransport } from '../../src/kube/transport.js';
import type { KubeRequest, Transport, TransportOptions } from '../../src/kube/transport.js';
import { eventually, pause } from '../support/eventually.js';
import { fakeApi, rawServer, reply } from '../support/fake-api.js';
import type { Answer, FakeApi } from '../support/fake-api.js';

let api: FakeApi | undefined;
let transport: Transport | undefined;
let raw: Awaited<ReturnType<typeof rawServer>> | undefined;
afterEach(async () => {
  transport?.close();
  await api?.close();
  await raw?.close();
});

async function serve(answer: Answer, options?: TransportOptions): Promise<Transport> {
  api = await fakeApi(answer);
  transport = createTransport({ server: api.url, credentials: () => ({}) }, options);
  return transport;
}
async function serveRaw(accept: (socket: Socket) => void, scheme = 'http'): Promise<Transport> {
  raw = await rawServer(accept);
  transport = createTransport({ server: `${scheme}://127.0.0.1:${raw.port}`, credentials: () => ({}) });
  return transport;
}
const failure = async (of: Promise<unknown>): Promise<KubeError> => {
  try {
    await of;
  } catch (error) {
    if (error instanceof KubeError) return error;
    throw error;
  }
  throw new Error('it did not fail');
};
const get: KubeRequest = { method: 'GET', path: '/x' };
const watching = async ({ stream }: Transport, inactivity: number): Promise<void> => {
  for await (const _ of stream({ path: '/w', query: { watch: true }, inactivity }));
};
/** As many connections as there are requests at a time; all of them idle in the end. */
const warm = async ({ request }: Transport, connections: number): Promise<void> => {
  await Promise.all(Array.from({ length: connections }, () => request({ ...get, path: '/slow' })));
  expect(api?.sockets.size).toBe(connections);
};
/** Answers; what is slow, a little later. */
const friendly: Answer = ({ path }, response) => void setTimeout(() => reply(response, 200, {}), path === '/slow' ? 30 : 0);

describe('connections that are half-open', () => {
  test('cost one request its time; the others that were idle with it are not tried any more', async () => {
    const served = await serve(friendly);
    await warm(served, 4);
    api?.freeze();
    expect(await failure(served.request({ ...get, timeout: 100 }))).toMatchObject({ code: 'timeout' });
    expect(await served.request(get)).toEqual({});
    expect(api?.connections()).toBe(5);
  });

  test('and die while an answer is awaited are a timeout for a write, which is not repeated', async () => {
    const served = await serve((one, response) => {
      if (one.method === 'GET') reply(response, 200, {});
      else api?.freeze();
    });
    await served.request(get);
    const patch: KubeRequest = { method: 'PATCH', path: '/x', body: {}, timeout: 500 };
    expect(await failure(served.request(patch))).toMatchObject({ code: 'timeout' });
    expect(api?.received.map(({ method }) => method)).toEqual(['GET', 'PATCH']);
    expect(await served.request(get)).toEqual({});
  });

  test.each([
    ['before its first line', ''],
    ['between two lines', '{"a":1}\n'],
    ['in the middle of a line', '{"a":1}\n{"a"'],
  ])('end a watch %s after its time, and requests go over new connections', async (_, sent) => {
    const served = await serve((one, response) => {
      if (!one.query.has('watch')) reply(response, 200, {});
      else response.writeHead(200).write(sent, () => api?.freeze());
    });
    await served.request(get);
    expect(await failure(watching(served, 500))).toMatchObject({ code: 'timeout' });
    expect(await served.request({ ...get, timeout: 10_000 })).toEqual({});
    await eventually(() => api?.sockets.size === 3);
  });
});

describe('a server that hangs', () => {
  const stages: [string, string, string | undefined][] = [
    ['before it speaks TLS', 'https', undefined],
    ['before its answer', 'http', ''],
    ['in its headers', 'http', 'HTTP/1.1 200 OK\r\ncontent-'],
    ['before the body', 'http', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n'],
    ['in the body', 'http', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"items":['],
    ['in a chunk', 'http', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{"type"'],
    ['in the body of a refusal', 'http', 'HTTP/1.1 500 Oh\r\ncontent-length: 100\r\n\r\n{'],
  ];
  const hanging = async (scheme: string, says: string | undefined) => {
    const open = new Set<Socket>();
    const served = await serveRaw((socket) => {
      open.add(socket);
      socket.on('close', () => open.delete(socket)).resume();
      if (says) socket.once('data', () => socket.write(says));
    }, scheme);
    return { served, open };
  };

  test.each(stages)('%s is a timeout for a request, and its connection is closed', async (_, scheme, says) => {
    const { served, open } = await hanging(scheme, says);
    expect(await failure(served.request({ ...get, timeout: 100 }))).toMatchObject({ code: 'timeout' });
    await eventually(() => open.size === 0);
  });

  test.each(stages)('%s is a timeout for a watch, and its connection is closed', async (_, scheme, says) => {
    const { served, open } = await hanging(scheme, says);
    expect(await failure(watching(served, 100))).toMatchObject({ code: 'timeout' });
    await eventually(() => open.size === 0);
  });

  test('in one request keeps an urgent one from nothing, however few connections there may be', async () => {
    const served = await serve(
      ({ path }, response) => {
        if (path === '/x') reply(response, 200, {});
      },
      { maxSockets: 1 },
    );
    const hangs = failure(served.request({ ...get, path: '/hangs', timeout: 3000 }));
    expect(await served.request({ ...get, urgent: true, timeout: 2000 })).toEqual({});
    expect(await hangs).toMatchObject({ code: 'timeout' });
  });
});

describe('a connection that is reset', () => {
  test.each([
    ['as soon as it is there', undefined],
    ['instead of an answer', ''],
    ['in the headers', 'HTTP/1.1 200 OK\r\ncontent-'],
    ['in the body', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"items":['],
    ['in a chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{"type"'],
  ])('%s says unreachable to a request and to a watch, each of which is sent once', async (_, says) => {
    let connections = 0;
    const served = await serveRaw((socket) => {
      connections++;
      if (says === undefined) socket.resetAndDestroy();
      else socket.once('data', () => socket.write(says, () => setTimeout(() => socket.resetAndDestroy(), 10)));
    });
    expect(await failure(served.request(get))).toMatchObject({ code: 'unreachable', status: 0 });
    expect(await failure(watching(served, 5000))).toMatchObject({ code: 'unreachable', status: 0 });
    expect(connections).toBe(2);
  });

  test('after the answer is noticed before the next request, also one that cannot be repeated', async () => {
    const served = await serve(friendly);
    await warm(served, 3);
    for (const socket of api?.sockets ?? []) socket.resetAndDestroy();
    await pause(50);
    expect(await served.request({ method: 'POST', path: '/x', body: {} })).toEqual({});
    expect(api?.connections()).toBe(4);
  });
});

describe('a server that closes idle connections just as a request is sent', () => {
  /** Each connection is good for one answer. */
  const onceEach = (close: (socket: Socket) => void): Answer => {
    const used = new WeakSet<Socket>();
    return (one, response) => {
      const socket = response.socket!;
      if (used.has(socket)) close(socket);
      else friendly(one, response);
      used.add(socket);
    };
  };
  const ways: [string, (socket: Socket) => void][] = [
    ['ends them', (socket) => socket.end()],
    ['resets them', (socket) => socket.resetAndDestroy()],
  ];

  test.each(ways)('and %s, all of them, gets what can be repeated over one new connection', async (_, close) => {
    const served = await serve(onceEach(close));
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE'] as const) {
      await warm(served, 3);
      const [requests, connections] = [api?.received.length ?? 0, api?.connections() ?? 0];
      expect(await served.request({ ...get, method, ...(method === 'GET' ? {} : { body: {} }) })).toEqual({});
      expect([api?.received.length, api?.connections()]).toEqual([requests + 2, connections + 1]);
      for (const socket of api?.sockets ?? []) socket.destroy();
      await pause(30);
    }
  });

  test.each(ways)('and %s, gets a creation once, since nobody knows whether it was done', async (_, close) => {
    const served = await serve(onceEach(close));
    await served.request(get);
    expect(await failure(served.request({ method: 'POST', path: '/x', body: {} }))).toMatchObject({ code: 'unreachable' });
    expect(api?.received.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  test('and breaks the new one as well is unreachable: nothing is sent three times', async () => {
    let requests = 0;
    const served = await serve((_, response) => {
      if (++requests === 1) reply(response, 200, {});
      else response.socket?.resetAndDestroy();
    });
    await served.request(get);
    expect(await failure(served.request(get))).toMatchObject({ code: 'unreachable' });
    expect(requests).toBe(3);
  });

  test('seldom gets the chance: we close first what is idle for long, and only that', async () => {
    const served = await serve(friendly, { idle: 60 });
    const slow = served.request({ ...get, path: '/slow' });
    await served.request(get);
    await eventually(() => api?.sockets.size === 0);
    expect(await slow).toEqual({});
    expect(api?.connections()).toBe(2);
  });

  test('says so beforehand, and is believed', async () => {
    const served = await serve((_, response) => reply(response, 200, {}, { connection: 'close' }));
    for (let i = 0; i < 3; i++) expect(await served.request({ method: 'POST', path: '/x', body: {} })).toEqual({});
    expect(api?.connections()).toBe(3);
  });
});

test('a Retry-After that is no number of seconds says nothing', async () => {
  for (const wait of ['Wed, 01 Jan 2031 00:00:00 GMT', '-5', '1.5', '1e9', '', 'soon']) {
    const { request } = await serve((_, response) => reply(response, 429, {}, { 'retry-after': wait }));
    expect((await failure(request(get))).retryAfter).toBeUndefined();
    transport?.close();
    await api?.close();
  }
});
