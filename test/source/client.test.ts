import { afterEach, expect, jest, test } from '@jest/globals';
import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { PublisherClient } from '../../src/source/client.js';
import { PublisherError } from '../../src/source/errors.js';
import type { PrepareRequest, ResolveRequest } from '../../src/source/messages.js';
import { operationRequestDigest, verifyOperation } from '../../src/source/operation-capability.js';
import { artifactId } from '../../src/source/protocol.js';
import { authority, selfSigned } from '../support/certificates.js';
import type { Identity } from '../support/certificates.js';
import { limit } from '../support/pace.js';

const own = selfSigned('publisher');
const elsewhere = selfSigned('publisher', ['10.0.0.1']);
const controllerToken = 't'.repeat(43);
const capabilitySecret = 'k'.repeat(43);
const credential = `Authorization: Basic ${Buffer.from('x-access-token:hunter2').toString('base64')}`;
const oid = 'a'.repeat(40);
const metadata = { namespace: 'demo', operationId: 'workspace-resolve-prompt-1', taskId: '1111' };
const source = { provider: 'github', id: 'git.example/acme/app', url: 'https://git.example/acme/app.git' };
const resolve: ResolveRequest = { metadata, source, sourceRef: '' };
const prepare: PrepareRequest = { metadata, source, sourceRef: 'refs/heads/main', baselineOid: oid };
const resolved = { repositoryId: source.id, sourceRef: 'refs/heads/main', baselineOid: oid };
const digest = `sha256:${'1'.repeat(64)}` as const;
const prepared = {
  treeOid: oid,
  manifestDigest: digest,
  entryCount: 3,
  expandedBytes: 12,
  artifact: {
    artifactId: artifactId(digest),
    digest,
    sizeBytes: 10,
    mediaType: 'application/vnd.orka.workspace.v1+tar',
  },
} as const;

interface Seen {
  readonly request: IncomingMessage;
  readonly body: string;
}
type Handler = (seen: Seen, response: ServerResponse) => void;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function serve(
  handler: Handler,
  identity: Identity = own,
): Promise<{ readonly url: string; readonly connections: () => number }> {
  let connections = 0;
  const server = createServer(identity, (request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      handler({ request, body: Buffer.concat(parts).toString() }, response);
    });
  });
  server.on('secureConnection', () => connections++);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  closing.push(
    () =>
      new Promise((done) => {
        server.close(() => {
          done();
        });
        server.closeAllConnections();
      }),
  );
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections };
}

function clientOf(url: string, ca: string = own.cert): PublisherClient {
  const client = new PublisherClient({ url, ca, controllerToken, capabilitySecret });
  closing.unshift(() => {
    client.close();
    return Promise.resolve();
  });
  return client;
}

const usual = () => ({ signal: new AbortController().signal, timeout: limit(10_000) });

const answered =
  (operation: object): Handler =>
  ({ request, body }, response) => {
    const requestDigest = operationRequestDigest(request.url ?? '', body);
    response.end(JSON.stringify({ operationId: metadata.operationId, requestDigest, ...operation }));
  };

async function failure(work: Promise<unknown>): Promise<PublisherError> {
  const error: unknown = await work.then(
    () => undefined,
    (found: unknown) => found,
  );
  if (!(error instanceof PublisherError)) throw new Error(`no PublisherError: ${String(error)}`);
  for (const secret of [controllerToken, capabilitySecret, 'hunter2', credential.slice(-20)])
    expect(`${error.message} ${error.stack ?? ''} ${JSON.stringify(error)}`).not.toContain(secret);
  return error;
}

test('an operation carries bearer, capability, digest and credential, and the result comes without the envelope', async () => {
  const seen: Seen[] = [];
  const { url, connections } = await serve((request, response) => {
    seen.push(request);
    answered(request.request.url === '/v1/workspaces/resolve' ? resolved : prepared)(request, response);
  });
  const client = clientOf(url);
  expect(await client.resolve(resolve, credential, usual())).toEqual(resolved);
  expect(await client.prepare(prepare, undefined, usual())).toEqual(prepared);
  const [{ headers }, second] = seen.map(({ request }) => request) as [IncomingMessage, IncomingMessage];
  const requestDigest = operationRequestDigest('/v1/workspaces/resolve', seen[0]!.body);
  expect(headers).toMatchObject({
    authorization: `Bearer ${controllerToken}`,
    'content-type': 'application/json',
    'x-orka-publisher-request-digest': requestDigest,
  });
  expect(Buffer.from(String(headers['x-orka-publisher-credential']), 'base64url').toString()).toBe(credential);
  const capability = String(headers['x-orka-publisher-operation-capability']);
  const expected = { operation: 'workspace.resolve', metadata, requestDigest } as const;
  expect(verifyOperation(capabilitySecret, capability, expected, Date.now())).toMatchObject(expected);
  expect(second.headers).not.toHaveProperty('x-orka-publisher-credential');
  expect(JSON.parse(seen[0]!.body)).toEqual(resolve);
  expect(connections()).toBe(1);
});

test('calls on one connection leave no listener on its socket', async () => {
  const listening = jest.spyOn(TLSSocket.prototype, 'once');
  try {
    const { url } = await serve(answered(resolved));
    const client = clientOf(url);
    for (let call = 0; call < 3; call++) await client.resolve(resolve, undefined, usual());
    const events: readonly (readonly unknown[])[] = listening.mock.calls;
    const contexts = listening.mock.contexts as readonly TLSSocket[];
    const sockets = contexts.filter((_, index) => events[index]?.[0] === 'secureConnect');
    expect(sockets.length).toBeGreaterThan(0);
    expect(sockets.map((socket) => socket.listenerCount('secureConnect'))).toEqual(sockets.map(() => 0));
  } finally {
    listening.mockRestore();
  }
});

test('a certificate that the trusted one signed is refused, and nothing is sent', async () => {
  const issuer = authority('issuer');
  let requests = 0;
  const { url } = await serve(() => requests++, issuer.issue('publisher'));
  const error = await failure(clientOf(url, issuer.ca).resolve(resolve, credential, usual()));
  expect(error).toMatchObject({ code: 'unreachable', retryable: true, mayHaveArrived: false });
  expect(error.message).toContain('not that of the publisher');
  expect(requests).toBe(0);
});

test.each<[string, Identity, string]>([
  ['another certificate', selfSigned('publisher'), own.cert],
  ['its own certificate for another host', elsewhere, elsewhere.cert],
])('a server with %s is refused', async (_, identity, trusted) => {
  const { url } = await serve(() => undefined, identity);
  const error = await failure(clientOf(url, trusted).resolve(resolve, credential, usual()));
  expect(error).toMatchObject({ code: 'unreachable', mayHaveArrived: false });
});

test('a refusal has the code, the wish for a repeat and the detail of the publisher', async () => {
  const detail = { reason: 'submodule', path: 'vendor/x' };
  const { url } = await serve((_, response) => {
    response.statusCode = 422;
    response.end(JSON.stringify({ code: 'tree_refused', message: 'the tree has a submodule', retryable: false, detail }));
  });
  const error = await failure(clientOf(url).prepare(prepare, credential, usual()));
  expect(error).toMatchObject({ code: 'tree_refused', retryable: false, status: 422, mayHaveArrived: true, detail });
});

test.each<[string, Handler]>([
  ['a redirect', (_, response) => response.writeHead(302, { location: 'https://127.0.0.1:1/' }).end()],
  ['a page', (_, response) => response.end('<html>')],
  ['an unknown member', answered({ ...resolved, extra: 1 })],
  ['the answer to another operation', answered({ ...resolved, operationId: 'other' })],
  ['the answer to another request', answered({ ...resolved, requestDigest: digest })],
  ['more than 2 MiB', (_, response) => response.end(Buffer.alloc(2 * 1024 * 1024 + 1, 32))],
  ['an error with an unknown code', (_, response) => response.writeHead(500).end('{"code":"x","message":"","retryable":true}')],
])('%s is a failure of the protocol', async (_, handler) => {
  const { url } = await serve(handler);
  expect(await failure(clientOf(url).resolve(resolve, credential, usual()))).toMatchObject({
    code: 'protocol',
    retryable: false,
  });
});

test('who does not answer in time may have read the request', async () => {
  const { url } = await serve(() => undefined);
  const call = clientOf(url).resolve(resolve, credential, { ...usual(), timeout: limit(300) });
  expect(await failure(call)).toMatchObject({ code: 'timeout', retryable: true, mayHaveArrived: true });
});

test('an answer that does not end runs into the same limit', async () => {
  const { url } = await serve((_, response) => response.write('{'));
  const call = clientOf(url).resolve(resolve, credential, { ...usual(), timeout: limit(300) });
  expect(await failure(call)).toMatchObject({ code: 'timeout' });
});

test('a connection that breaks inside the answer is unreachable', async () => {
  const { url } = await serve(({ request }, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('{');
    setTimeout(() => request.socket.destroy(), 20);
  });
  expect(await failure(clientOf(url).resolve(resolve, credential, usual()))).toMatchObject({
    code: 'unreachable',
    retryable: true,
    mayHaveArrived: true,
  });
});

test('a caller that gives up ends the call', async () => {
  const stop = new AbortController();
  const { url } = await serve(() => {
    stop.abort();
  });
  const call = clientOf(url).resolve(resolve, credential, { signal: stop.signal, timeout: limit(10_000) });
  expect(await failure(call)).toMatchObject({ code: 'aborted', retryable: false, mayHaveArrived: true });
  const late = clientOf(url).resolve(resolve, credential, { signal: stop.signal, timeout: limit(10_000) });
  expect(await failure(late)).toMatchObject({ code: 'aborted', mayHaveArrived: false });
});

test('nobody listens: nothing was sent', async () => {
  const error = await failure(clientOf('https://127.0.0.1:1').resolve(resolve, credential, usual()));
  expect(error).toMatchObject({ code: 'unreachable', retryable: true, mayHaveArrived: false });
});

test('a proxy of the environment is not used', async () => {
  const { url } = await serve(answered(resolved));
  process.env['HTTPS_PROXY'] = process.env['https_proxy'] = 'http://127.0.0.1:1';
  try {
    expect(await clientOf(url).resolve(resolve, credential, usual())).toEqual(resolved);
  } finally {
    delete process.env['HTTPS_PROXY'];
    delete process.env['https_proxy'];
  }
});

test.each(['http://127.0.0.1:1', 'https://user:pw@127.0.0.1:1', 'https://127.0.0.1/x', 'nothing'])(
  '%s is no URL of a publisher',
  (url) => {
    expect(() => clientOf(url)).toThrow(PublisherError);
  },
);
