import { afterEach, describe, expect, test } from '@jest/globals';
import { createTransport } from '../../src/kube/transport.js';
import type { Transport, TransportOptions } from '../../src/kube/transport.js';
import { KubeError } from '../../src/kube/errors.js';
import { fakeApi, reply } from '../support/fake-api.js';
import type { Answer, FakeApi } from '../support/fake-api.js';

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
