import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, test } from '@jest/globals';
import { createTransport } from '../../src/kube/transport.js';
import type { KubeStreamRequest, Transport, TransportOptions } from '../../src/kube/transport.js';
import { KubeError } from '../../src/kube/errors.js';
import type { JsonObject } from '../../src/lib/json.js';
import { eventually } from '../support/eventually.js';
import { fakeApi, reply } from '../support/fake-api.js';
import type { Answer, FakeApi } from '../support/fake-api.js';
import { settle } from '../support/fake-clock.js';

let api: FakeApi | undefined;
let transport: Transport | undefined;
afterEach(async () => {
  transport?.close();
  await api?.close();
});

async function serve(answer: Answer, options?: TransportOptions, token: () => string = () => 'token-1'): Promise<Transport> {
  api = await fakeApi(answer);
  transport = createTransport({ server: api.url, credentials: () => ({ token: token() }) }, options);
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
const get = { method: 'GET', path: '/x' } as const;

test('one connection serves many requests', async () => {
  const { request } = await serve((_, response) => reply(response, 200, {}));
  for (let i = 0; i < 20; i++) await request(get);
  expect(api?.connections()).toBe(1);
});

test('a body is sent as it is', async () => {
  const { request } = await serve((_, response) => reply(response, 200, {}));
  const body = { spec: { ingress: [{ from: [{ podSelector: {} }], _from: null, ports: [] }], 'x-new': { a: 'é' } } };
  await request({ method: 'POST', path: '/x', body });
  expect(api?.received[0]?.body).toBe(JSON.stringify(body));
});

describe('a write that may not be sent any more', () => {
  test('is not sent', async () => {
    const { request } = await serve((_, response) => reply(response, 200, {}));
    const refused = await failure(request({ method: 'POST', path: '/x', body: {}, onlyIf: () => false }));
    expect([refused.code, api?.received]).toEqual(['aborted', []]);
  });

  test('is not sent when it waited for a connection meanwhile', async () => {
    let free: () => void = () => undefined;
    let leads = true;
    const { request } = await serve(
      (_, response) => {
        free = () => reply(response, 200, {});
      },
      { maxSockets: 1 },
    );
    const first = request(get);
    await eventually(() => api?.received.length === 1);
    const refused = failure(request({ method: 'POST', path: '/x', body: {}, onlyIf: () => leads }));
    await settle();
    leads = false;
    free();
    await first;
    expect((await refused).code).toBe('aborted');
    expect(api?.received.map(({ method }) => method)).toEqual(['GET']);
  });
});

test('a rotated token is used at once', async () => {
  let token = 'token-1';
  const { request } = await serve(
    (_, response) => reply(response, 200, {}),
    {},
    () => token,
  );
  await request(get);
  token = 'token-2';
  await request(get);
  expect(api?.received.map(({ headers }) => headers.authorization)).toEqual(['Bearer token-1', 'Bearer token-2']);
});

describe('an answer becomes a code:', () => {
  test.each([
    [401, {}, 'unauthorized'],
    [403, { reason: 'Forbidden' }, 'forbidden'],
    [404, { reason: 'NotFound', details: { name: 'x', kind: 'y' } }, 'not-found'],
    [404, '404 page not found', 'kind-missing'],
    [404, { reason: 'NotFound', details: {} }, 'kind-missing'],
    [409, { reason: 'AlreadyExists' }, 'already-exists'],
    [409, { reason: 'Conflict' }, 'conflict'],
    [410, { reason: 'Expired' }, 'gone'],
    [422, { reason: 'Invalid' }, 'invalid'],
    [400, {}, 'invalid'],
    [500, { message: '.spec.x: field not declared in schema' }, 'invalid'],
    [500, {}, 'server-error'],
    [503, 'no', 'server-error'],
    [200, 'no json', 'server-error'],
  ])('%i %j is %s', async (status, body, code) => {
    const { request } = await serve((_, response) => reply(response, status, body));
    const error = await failure(request(get));
    expect({ code: error.code, status: error.status }).toEqual({ code, status });
    expect(error.message).toContain('GET /x');
  });
});

test('429 says how long to wait', async () => {
  const { request } = await serve((_, response) => reply(response, 429, {}, { 'retry-after': '7' }));
  expect(await failure(request(get))).toMatchObject({ code: 'too-many-requests', retryAfter: 7 });
});

test('the fields of a conflict are kept', async () => {
  const causes = [{ reason: 'FieldManagerConflict', message: 'conflict with "x"', field: '.spec.replicas' }];
  const { request } = await serve((_, response) => reply(response, 409, { reason: 'Conflict', details: { causes } }));
  expect((await failure(request(get))).causes).toEqual(causes);
});

test('a server that never answers is a timeout', async () => {
  const { request } = await serve(() => undefined);
  expect(await failure(request({ ...get, timeout: 50 }))).toMatchObject({ code: 'timeout' });
});

test('a server that stops in the middle of an answer is a timeout', async () => {
  const { request } = await serve((_, response) => response.writeHead(200).write('{'));
  expect(await failure(request({ ...get, timeout: 100 }))).toMatchObject({ code: 'timeout' });
});

test('a caller that gives up is told so', async () => {
  const { request } = await serve(() => undefined);
  const abort = new AbortController();
  const pending = failure(request({ ...get, signal: abort.signal }));
  setTimeout(() => abort.abort(), 20);
  expect(await pending).toMatchObject({ code: 'aborted' });
});

test('a closed server is unreachable', async () => {
  const { request } = await serve((_, response) => reply(response, 200, {}));
  await api?.close();
  expect(await failure(request(get))).toMatchObject({ code: 'unreachable', status: 0 });
});

describe('a kept-alive connection that the server closed just now', () => {
  const closing = (): Answer => {
    let requests = 0;
    return (_, response) => {
      requests++;
      if (requests === 2) response.socket?.resetAndDestroy();
      else reply(response, 200, { requests });
    };
  };

  test('is replaced, once, for what can be sent twice', async () => {
    const { request } = await serve(closing());
    await request(get);
    expect(await request(get)).toEqual({ requests: 3 });
  });

  test('is an error for a creation, whose outcome is unknown', async () => {
    const { request } = await serve(closing());
    await request(get);
    expect(await failure(request({ method: 'POST', path: '/x', body: {} }))).toMatchObject({ code: 'unreachable' });
    expect(api?.received).toHaveLength(2);
  });
});

test('an answer that is too long is refused', async () => {
  const { request } = await serve((_, response) => reply(response, 200, { a: 'x'.repeat(1000) }), { maxAnswer: 100 });
  expect(await failure(request(get))).toMatchObject({ code: 'unreachable' });
});

test('no error carries the token', async () => {
  const { request } = await serve(
    (_, response) => reply(response, 403, { message: 'no' }),
    {},
    () => 'secret-token-value',
  );
  const error = await failure(request(get));
  expect(`${error.stack} ${JSON.stringify(error)}`).not.toContain('secret-token-value');
});

describe('credentials that the server refuses', () => {
  const refusing: Answer = ({ headers }, response) =>
    headers.authorization === 'Bearer new' ? reply(response, 200, {}) : reply(response, 401, {});
  const remembering = async (fresh: string): Promise<Transport> => {
    api = await fakeApi(refusing);
    transport = createTransport({ server: api.url, credentials: (options) => ({ token: options?.fresh ? fresh : 'old' }) });
    return transport;
  };

  test('are fetched from their source once, for a creation too', async () => {
    const { request } = await remembering('new');
    expect(await request({ method: 'POST', path: '/x', body: {} })).toEqual({});
  });

  test('are sent once when there are no others', async () => {
    const { request } = await remembering('old');
    expect(await failure(request(get))).toMatchObject({ code: 'unauthorized' });
    expect(api?.received).toHaveLength(1);
  });

  test('are tried twice at most', async () => {
    const { request } = await remembering('other');
    expect(await failure(request(get))).toMatchObject({ code: 'unauthorized' });
    expect(api?.received).toHaveLength(2);
  });
});

test('credentials that never come are a timeout', async () => {
  api = await fakeApi((_, response) => reply(response, 200, {}));
  transport = createTransport({ server: api.url, credentials: () => new Promise(() => undefined) });
  expect(await failure(transport.request({ ...get, timeout: 50 }))).toMatchObject({ code: 'timeout' });
});

test('what is under way finishes when the transport is closed and when certificates rotate', async () => {
  let ca = 'one';
  api = await fakeApi((_, response) => void setTimeout(() => reply(response, 200, {}), 100));
  transport = createTransport({ server: api.url, credentials: () => ({ ca }) });
  const first = transport.request(get);
  await new Promise((resolve) => setTimeout(resolve, 30));
  ca = 'two';
  const second = transport.request(get);
  await new Promise((resolve) => setTimeout(resolve, 30));
  transport.close();
  expect(await Promise.all([first, second])).toEqual([{}, {}]);
  await eventually(() => api?.sockets.size === 0);
});

test('requests leave nothing behind on the signal of their caller', async () => {
  const { request } = await serve((_, response) => reply(response, 200, {}));
  const { signal } = new AbortController();
  for (let i = 0; i < 20; i++) await request({ ...get, signal });
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

describe('a stream', () => {
  const watch: KubeStreamRequest = { path: '/w', query: { watch: true }, inactivity: 1000 };
  const all = async (objects: AsyncIterable<JsonObject>): Promise<JsonObject[]> => {
    const read: JsonObject[] = [];
    for await (const object of objects) read.push(object);
    return read;
  };
  const sending =
    (...parts: readonly string[]): Answer =>
    (_, response) => {
      response.writeHead(200);
      for (const part of parts) response.write(part);
    };

  test('gives one object for each line until the server ends it, and its connection serves the next one', async () => {
    const { stream } = await serve((_, response) => reply(response, 200, '{"a":1}\n{"a":2}\n'));
    for (let i = 0; i < 3; i++) expect(await all(stream(watch))).toEqual([{ a: 1 }, { a: 2 }]);
    expect(api?.connections()).toBe(1);
    expect(api?.received[0]).toMatchObject({ method: 'GET', path: '/w' });
  });

  test('gives an object when it comes, not when the answer is complete', async () => {
    const { stream } = await serve(sending('{"a":', '1}\n'));
    for await (const object of stream(watch)) {
      expect(object).toEqual({ a: 1 });
      break;
    }
    await eventually(() => api?.sockets.size === 0);
  });

  test('keeps no request waiting, however many there are', async () => {
    const { stream, request } = await serve(
      ({ path }, response) => {
        if (path === '/x') reply(response, 200, {});
        else sending('{"a":1}\n')({} as never, response);
      },
      { maxSockets: 1 },
    );
    const open = Array.from({ length: 5 }, () => stream(watch));
    expect(await Promise.all(open.map(async (one) => (await one.next()).value))).toEqual(Array(5).fill({ a: 1 }));
    expect(await request(get)).toEqual({});
    for (const one of open) await one.return();
  });

  test.each([
    ['never answers', () => undefined],
    ['goes silent', sending('{"a":1}\n')],
    ['goes silent inside a line', sending('{"a"')],
  ] as [string, Answer][])('is a timeout when the server %s', async (_, answer) => {
    const { stream } = await serve(answer);
    expect(await failure(all(stream({ ...watch, inactivity: 60 })))).toMatchObject({ code: 'timeout' });
  });

  test('may live longer than the time that it may be silent', async () => {
    const { stream } = await serve((_, response) => {
      response.writeHead(200);
      let sent = 0;
      const timer = setInterval(() => {
        response.write('{"a":1}\n');
        if (++sent < 20) return;
        clearInterval(timer);
        response.end();
      }, 100);
    });
    expect(await all(stream({ ...watch, inactivity: 1500 }))).toHaveLength(20);
  });

  test('does not count the time that its reader takes', async () => {
    const { stream } = await serve((_, response) => {
      response.writeHead(200).write('{"a":1}\n');
      setTimeout(() => response.write('{"a":2}\n'), 200);
      setTimeout(() => response.end(), 1400);
    });
    const read: JsonObject[] = [];
    for await (const object of stream({ ...watch, inactivity: 600 })) {
      await new Promise((resolve) => setTimeout(resolve, 900));
      read.push(object);
    }
    expect(read).toHaveLength(2);
  });

  test.each([
    ['410', 'gone', (_, response) => reply(response, 410, { reason: 'Expired' })],
    [
      'a broken connection',
      'unreachable',
      (_, response) => response.writeHead(200).write('{}\n', () => response.socket?.resetAndDestroy()),
    ],
    ['half a line', 'unreachable', (_, response) => reply(response, 200, '{"a":1}\n{"a"')],
    ['a line that is too long', 'unreachable', (_, response) => reply(response, 200, `{"a":"${'x'.repeat(5000)}"}\n`)],
    ['a line that is no JSON', 'server-error', (_, response) => reply(response, 200, '<html>\n')],
  ] as [string, string, Answer][])('tells %s as %s', async (_, code, answer) => {
    const { stream } = await serve(answer);
    expect(await failure(all(stream({ ...watch, maxLine: 1000 })))).toMatchObject({ code });
  });

  test('that its caller ends says so, and leaves nothing behind on the signal', async () => {
    const { stream } = await serve(sending('{"a":1}\n'));
    const abort = new AbortController();
    const pending = failure(all(stream({ ...watch, signal: abort.signal })));
    setTimeout(() => abort.abort(), 30);
    expect(await pending).toMatchObject({ code: 'aborted' });
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(0);
  });
});
