import { afterEach, describe, expect, test } from '@jest/globals';
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { supervisorUrl } from '../../src/harness/address.js';
import { createHarnessClient } from '../../src/harness/client.js';
import type { Fence } from '../../src/harness/fence.js';
import { instant } from '../../src/lib/instant.js';
import { startListening } from '../../src/supervisor/bootstrap.js';

const credentials = { controllerToken: 'c'.repeat(43), capabilitySecret: 'k'.repeat(43) };
const fence: Fence = {
  runtimeInstanceID: 'pod.boot',
  supervisorBootID: 'boot',
  controllerEpoch: 3,
  runtimePoolUID: 'pool',
  runtimePoolGeneration: 1,
  runtimeProfileDigest: `sha256:${'a'.repeat(64)}`,
  profileDigestSchemaVersion: 1,
};
let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function against(listener: RequestListener) {
  server = createServer(listener);
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return createHarnessClient({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, credentials });
}
const operation = () => ({ fence, operationID: 'runtime-pool-drain-1', expiresAt: instant(Date.now() + 30_000) });
const json =
  (status: number, body: object): RequestListener =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
const drain = { acceptingNewSessions: false, requested: true, requestedAt: '2026-11-29T16:50:42Z' };
const good = { protocol: 'orka.harness.v2', classification: { class: 'fresh' }, drain };

describe('the address of a Pod', () => {
  test.each([
    ['10.0.0.7', 'http://10.0.0.7:8080'],
    ['fd00::7', 'http://[fd00::7]:8080'],
    ['::ffff:10.0.0.7', 'http://[::ffff:10.0.0.7]:8080'],
  ])('%s is a part of the URL %s', (address, url) => {
    expect(supervisorUrl(address)).toBe(url);
  });

  test.each(['', 'sandbox.example', 'fe80::1%eth0', '[fd00::7]', '10.0.0.7:80', '10.0.0.7/@x', '0x7f.1'])(
    'is not %j, and nothing is asked there',
    (address) => {
      expect(() => supervisorUrl(address)).toThrow(
        expect.objectContaining({ code: 'configuration', evidence: 'zero_bytes_written' }),
      );
    },
  );

  test('of IPv6 reaches a supervisor that listens on every address, with brackets in the Host header', async () => {
    const hosts: (string | undefined)[] = [];
    server = createServer((request, response) => {
      hosts.push(request.headers.host);
      json(200, good)(request, response);
    });
    await startListening(server, { port: 0 });
    const { port } = server.address() as AddressInfo;
    for (const address of ['::1', '127.0.0.1']) {
      const client = createHarnessClient({ baseUrl: supervisorUrl(address, port), credentials });
      await expect(client.drain(operation(), 'x')).resolves.toMatchObject({ classification: { class: 'fresh' } });
      client.close();
    }
    expect(hosts).toEqual([`[::1]:${port}`, `127.0.0.1:${port}`]);
  });
});

test('a refused connection proves that nothing was written', async () => {
  const client = createHarnessClient({ baseUrl: 'http://127.0.0.1:1', credentials });
  await expect(client.drain(operation(), 'x')).rejects.toMatchObject({ code: 'transport', evidence: 'zero_bytes_written' });
});

test('a connection that breaks after the request proves nothing', async () => {
  const client = await against((request) => {
    request.resume();
    request.on('end', () => request.socket.destroy());
  });
  await expect(client.drain(operation(), 'x')).rejects.toMatchObject({ code: 'transport', evidence: 'request_written' });
});

test('silence ends with the time of the call, or when its caller gives up', async () => {
  const client = await against(() => undefined);
  await expect(client.drain(operation(), 'x', { timeout: 50 })).rejects.toMatchObject({ code: 'timeout' });
  const signal = AbortSignal.timeout(50);
  await expect(client.drain(operation(), 'x', { signal })).rejects.toMatchObject({ code: 'aborted' });
});

test('a redirect is an error, never followed', async () => {
  let calls = 0;
  const client = await against((_, response) => {
    calls++;
    response.writeHead(307, { location: '/elsewhere' }).end();
  });
  await expect(client.capabilities()).rejects.toMatchObject({ code: 'http', status: 307 });
  expect(calls).toBe(1);
});

test('an answer with an unknown member, of another version, or too long is refused', async () => {
  for (const body of [
    { ...good, more: 1 },
    { ...good, protocol: 'orka.harness.v3' },
  ]) {
    const client = await against(json(200, body));
    await expect(client.drain(operation(), 'x')).rejects.toMatchObject({ code: 'protocol', evidence: 'request_written' });
    server?.close();
  }
  const client = await against(json(200, { ...good, more: 'x'.repeat(2 * 1024 * 1024) }));
  await expect(client.drain(operation(), 'x')).rejects.toMatchObject({ code: 'protocol' });
});

test('an error of the protocol is one also when it comes with status 200', async () => {
  const error = { protocol: 'orka.harness.v2', code: 'already_accepted', message: 'it runs', retryable: false };
  const client = await against(json(200, error));
  await expect(client.drain(operation(), 'x')).rejects.toMatchObject({
    code: 'http',
    status: 200,
    response: { code: 'already_accepted' },
  });
  const task = {
    ...operation(),
    fence: { ...fence, runtimeSessionUID: 's', runtimeSessionGeneration: 1 },
    taskUID: 't',
    taskAttempt: 1,
    promptID: 'p',
  };
  const order = {
    runtimeSessionID: 'r',
    lease: {},
    mcpAuthorization: {},
    input: {},
    limits: { maxEventLineBytes: 1, maxUpdateEventsPerSecond: 1 },
  };
  await expect(client.prompt(task, order as unknown as Parameters<typeof client.prompt>[1])).rejects.toMatchObject({
    response: { code: 'already_accepted' },
  });
});

test('an error of the protocol is printed with its code and its words, not as something that was found', async () => {
  const error = { protocol: 'orka.harness.v2', code: 'invalid_request', message: 'session not found', retryable: false };
  const client = await against(json(404, error));
  await expect(client.drain(operation(), 'x')).rejects.toThrow(new Error('PUT /v2/drain: invalid_request: session not found'));
});

test('an answer that cannot be decoded is printed with what was found and what is allowed', async () => {
  const client = await against(json(200, { ...good, drain: { ...drain, requested: 'yes' } }));
  await expect(client.drain(operation(), 'x')).rejects.toMatchObject({
    message: 'PUT /v2/drain: message: drain.requested: found a text of 3 bytes, allowed: true or false',
  });
});

test('only what the server calls retryable is, and an unknown outcome never', async () => {
  const error = (code: string) => ({ protocol: 'orka.harness.v2', code, message: '', retryable: true });
  await expect((await against(json(429, error('rate_limited')))).drain(operation(), 'x')).rejects.toMatchObject({
    retryable: true,
  });
  server?.close();
  await expect((await against(json(500, error('outcome_unknown')))).drain(operation(), 'x')).rejects.toMatchObject({
    retryable: false,
  });
});

test('a request that could never be right is not sent', async () => {
  let calls = 0;
  const client = await against(() => calls++);
  const evidence = { code: 'validation', evidence: 'zero_bytes_written' };
  await expect(client.deleteSession({ ...operation(), fence }, '../x', 'r')).rejects.toMatchObject(evidence);
  await expect(client.deleteSession({ ...operation(), fence }, 'x', 'r')).rejects.toMatchObject(evidence);
  await expect(client.drain({ ...operation(), expiresAt: '2020-01-01T00:00:00Z' }, 'x')).rejects.toMatchObject(evidence);
  expect(() => createHarnessClient({ baseUrl: 'ftp://x' })).toThrow(expect.objectContaining({ code: 'configuration' }));
  expect(calls).toBe(0);
});

test('no error holds a token', async () => {
  const client = await against(json(500, { protocol: 'x' }));
  const error = await client.drain(operation(), 'x').catch((caught: unknown) => caught);
  for (const secret of Object.values(credentials)) expect(JSON.stringify(error) + String(error)).not.toContain(secret);
});
