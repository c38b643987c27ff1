import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { podAccess } from '../../src/kube/access.js';
import { kubeconfigAccess } from '../../src/kube/kubeconfig.js';
import type { ClusterAccess } from '../../src/kube/access.js';
import { KubeError } from '../../src/kube/errors.js';
import { createTransport } from '../../src/kube/transport.js';
import type { Transport } from '../../src/kube/transport.js';
import { authority } from '../support/certificates.js';
import type { Authority, Identity } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { fakeApi, reply } from '../support/fake-api.js';
import type { Answer, FakeApi } from '../support/fake-api.js';
import { fakeClock } from '../support/fake-clock.js';

let folder: string;
let api: FakeApi;
let transport: Transport | undefined;
let first: Authority;
const clock = fakeClock();
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rotation-'));
  first = authority('first');
});
afterEach(async () => {
  transport?.close();
  await api.close();
  rmSync(folder, { recursive: true });
});

/** As the kubelet does it: the new file is there at once, or not at all. */
const write = (files: Readonly<Record<string, string>>): void => {
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, `${name}.new`), text);
    renameSync(join(folder, `${name}.new`), join(folder, name));
  }
};
const failure = async (of: Promise<unknown>): Promise<KubeError> => {
  try {
    await of;
  } catch (error) {
    if (error instanceof KubeError) return error;
    throw error;
  }
  throw new Error('it did not fail');
};
const serve = async (answer: Answer): Promise<void> => {
  api = await fakeApi(answer, { ...first.issue('server'), ca: first.ca });
};
const inPod = (): ClusterAccess => {
  const port = new URL(api.url).port;
  return podAccess({ KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: port }, folder, clock);
};
const byCertificate = (): ClusterAccess =>
  kubeconfigAccess(
    {
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: api.url, 'certificate-authority': 'ca.crt' } }],
      users: [{ name: 'u', user: { 'client-certificate': 'tls.crt', 'client-key': 'tls.key' } }],
    },
    join(folder, 'config'),
  );
const use = (access: ClusterAccess): Transport => (transport = createTransport(access));
const get = { method: 'GET', path: '/x' } as const;
const tokens = () => api.received.map(({ headers }) => headers.authorization);

describe('a service account token', () => {
  const only =
    (valid: { token: string }): Answer =>
    ({ headers }, response) =>
      reply(response, headers.authorization === `Bearer ${valid.token}` ? 200 : 401, '{}\n');

  test('that was rotated is used within a minute, over the connection that is there', async () => {
    await serve((_, response) => reply(response, 200, {}));
    write({ token: 'one', 'ca.crt': first.ca });
    const { request } = use(inPod());
    await request(get);
    write({ token: 'two' });
    await clock.advance(60_000);
    await request(get);
    expect(tokens()).toEqual(['Bearer one', 'Bearer two']);
    expect(api.connections()).toBe(1);
  });

  test('that expired is read again at once, for a request and for a watch', async () => {
    const valid = { token: 'one' };
    await serve(only(valid));
    write({ token: 'one', 'ca.crt': first.ca });
    const { request, stream } = use(inPod());
    await request(get);
    for (const token of ['two', 'three']) {
      valid.token = token;
      write({ token });
      if (token === 'two') await request({ method: 'POST', path: '/x', body: {} });
      else for await (const _ of stream({ path: '/x', inactivity: 1000 }));
    }
    expect(tokens()).toEqual(['one', 'one', 'two', 'two', 'three'].map((token) => `Bearer ${token}`));
  });

  test('that expired and is not replaced is unauthorized, once for each request, until it is', async () => {
    await serve(only({ token: 'two' }));
    write({ token: 'one', 'ca.crt': first.ca });
    const { request } = use(inPod());
    for (let i = 0; i < 3; i++) expect(await failure(request(get))).toMatchObject({ code: 'unauthorized' });
    expect(tokens()).toHaveLength(3);
    write({ token: 'two' });
    await request(get);
  });

  test('that cannot be read for a moment is an error that says which file, and nothing more', async () => {
    await serve(only({ token: 'two' }));
    write({ token: 'one', 'ca.crt': first.ca });
    const { request } = use(inPod());
    await failure(request(get));
    rmSync(join(folder, 'token'));
    const error = await failure(request(get));
    expect(error.message).toContain(join(folder, 'token'));
    write({ token: 'two' });
    await request(get);
  });
});

describe('a certificate authority', () => {
  test('whose bundle is rotated before the certificate of the server is never missed', async () => {
    await serve((_, response) => reply(response, 200, {}));
    const second = authority('second');
    write({ token: 't', 'ca.crt': first.ca });
    const { request } = use(inPod());
    await request(get);
    write({ 'ca.crt': first.ca + second.ca });
    await clock.advance(60_000);
    await request(get);
    api.rotate({ ...second.issue('server'), ca: second.ca });
    for (const socket of api.sockets) socket.destroy();
    await eventually(() => api.sockets.size === 0);
    await request(get);
    expect(api.received).toHaveLength(3);
  });

  test('that changes without notice costs a minute at most, in which nothing is sent to whom we do not know', async () => {
    await serve((_, response) => reply(response, 200, {}));
    const second = authority('second');
    write({ token: 't', 'ca.crt': first.ca });
    const { request } = use(inPod());
    await request(get);
    api.rotate({ ...second.issue('server'), ca: second.ca });
    for (const socket of api.sockets) socket.destroy();
    write({ 'ca.crt': second.ca });
    await clock.advance(59_999);
    expect(await failure(request(get))).toMatchObject({ code: 'unreachable' });
    expect(api.received).toHaveLength(1);
    await clock.advance(1);
    await request(get);
  });

  test('that did not sign the server is no reason to talk to it', async () => {
    await serve((_, response) => reply(response, 200, {}));
    write({ token: 't', 'ca.crt': authority('other').ca });
    expect(await failure(use(inPod()).request(get))).toMatchObject({ code: 'unreachable' });
    expect(api.received).toEqual([]);
  });
});

describe('a client certificate', () => {
  const files = ({ cert, key }: Identity) => ({ 'tls.crt': cert, 'tls.key': key });
  const whoAmI: Answer = ({ client }, response) =>
    client === undefined ? reply(response, 401, {}) : reply(response, 200, `${JSON.stringify({ client })}\n`);

  test('that was rotated is shown at once, and no connection of the former one stays', async () => {
    await serve(whoAmI);
    write({ ...files(first.issue('one')), 'ca.crt': first.ca });
    const { request } = use(byCertificate());
    expect(await request(get)).toEqual({ client: 'one' });
    write(files(first.issue('two')));
    expect(await request(get)).toEqual({ client: 'two' });
    await eventually(() => api.sockets.size === 1);
    expect(api.connections()).toBe(2);
  });

  test('that is rotated while a watch runs does not end the watch; the next one shows the new one', async () => {
    await serve((one, response) => {
      if (one.query.has('end')) whoAmI(one, response);
      else response.writeHead(200).write('{"a":1}\n', () => setTimeout(() => response.end('{"a":2}\n'), 100));
    });
    write({ ...files(first.issue('one')), 'ca.crt': first.ca });
    const { stream } = use(byCertificate());
    const seen: unknown[] = [];
    for await (const event of stream({ path: '/w', inactivity: 2000 })) {
      if (seen.push(event) === 1) write(files(first.issue('two')));
    }
    for await (const event of stream({ path: '/w', query: { end: true }, inactivity: 2000 })) seen.push(event);
    expect(seen).toEqual([{ a: 1 }, { a: 2 }, { client: 'two' }]);
    await eventually(() => api.sockets.size === 1);
  });

  test('that expired is unauthorized until it is replaced', async () => {
    await serve(whoAmI);
    write({ ...files(first.issue('one', -1)), 'ca.crt': first.ca });
    const { request } = use(byCertificate());
    expect(await failure(request(get))).toMatchObject({ code: 'unauthorized' });
    write(files(first.issue('two')));
    expect(await request(get)).toEqual({ client: 'two' });
  });

  test('that is there while its key is still the former one is an error, and no connection or request is left behind', async () => {
    await serve(whoAmI);
    const [one, two] = [first.issue('one'), first.issue('two')];
    write({ ...files(one), 'ca.crt': first.ca });
    const { request } = use(byCertificate());
    await request(get);
    write({ 'tls.crt': two.cert });
    for (let i = 0; i < 40; i++) expect(await failure(request(get))).toMatchObject({ code: 'unreachable' });
    write({ 'tls.key': two.key });
    expect(await request(get)).toEqual({ client: 'two' });
    await eventually(() => api.sockets.size === 1);
  });
});
