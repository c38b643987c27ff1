import { describe, expect, test } from '@jest/globals';
import { X509Certificate } from 'node:crypto';
import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Manifest } from '../../src/api/index.js';
import { PublisherKeys, PublisherKeysError } from '../../src/controller/publisher-keys.js';
import { fakeClock } from '../support/fake-clock.js';
import { memoryClient, refusal } from '../support/memory-client.js';
import type { MemoryClient } from '../support/memory-client.js';

const start = Date.UTC(2030, 0, 1);
const day = 86_400_000;

function keysOf(client: MemoryClient, at: number = start) {
  const errors: unknown[] = [];
  const stop = new AbortController();
  const keys = new PublisherKeys({
    client,
    namespace: 'orka-publisher',
    manager: 'test',
    clock: fakeClock(at),
    onError: (error) => errors.push(error),
    signal: stop.signal,
  });
  return { keys, errors, stop };
}

const stored = (client: MemoryClient) => client.at('Secret', 'orka-publisher-auth');
const texts = (secret: Manifest | undefined): Record<string, string> =>
  Object.fromEntries(
    Object.entries(secret?.['data'] ?? {}).map(([name, value]) => [name, Buffer.from(String(value), 'base64').toString()]),
  );

describe('the keys of the publisher', () => {
  test('are made when there are none: three secrets that differ, and a certificate for both names', async () => {
    const client = memoryClient();
    const { keys } = keysOf(client);
    const access = await keys.access();
    const found = texts(stored(client));
    const secrets = ['controller-token', 'operation-capability-secret', 'artifact-capability-secret'].map((name) => found[name]);
    expect(secrets).toEqual([access.controllerToken, access.capabilitySecret, access.artifactSecret]);
    expect(new Set(secrets).size).toBe(3);
    for (const secret of secrets) expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
    const certificate = new X509Certificate(found['tls.crt'] ?? '');
    expect(certificate.subjectAltName).toBe(
      'DNS:orka-publisher.orka-publisher.svc, DNS:orka-publisher.orka-publisher.svc.cluster.local',
    );
    expect(Date.parse(certificate.validTo)).toBe(start + 365 * day);
    expect(access.url).toBe('https://orka-publisher.orka-publisher.svc:8443');
    expect(access.ca.trim()).toBe((found['tls.crt'] ?? '').trim());
  });

  test('are those of the controller that was first', async () => {
    const [first, second] = [memoryClient(), memoryClient()];
    const theirs = await keysOf(first).keys.access();
    second.before = ({ method }) => {
      if (method !== 'POST') return;
      second.before = () => undefined;
      second.put(stored(first) ?? {});
    };
    expect(await keysOf(second).keys.access()).toEqual(theirs);
    expect(second.asked).toEqual(['GET secrets/orka-publisher-auth', 'POST secrets', 'GET secrets/orka-publisher-auth']);
  });

  test('are read once', async () => {
    const client = memoryClient();
    const { keys } = keysOf(client);
    await keys.access();
    const before = client.asked.length;
    await keys.access();
    expect(client.asked).toHaveLength(before);
    keys.forget();
    await keys.access();
    expect(client.asked).toHaveLength(before + 1);
  });

  test.each([
    ['a secret that is missing', { 'controller-token': undefined }, 'data[controller-token]'],
    ['a secret of another form', { 'artifact-capability-secret': 'dG9vIHNob3J0' }, 'data[artifact-capability-secret]'],
  ])('are refused with %s, by name and without its value', async (_, change, field) => {
    const client = memoryClient();
    await keysOf(client).keys.access();
    const secret = stored(client)!;
    client.put(JSON.parse(JSON.stringify({ ...secret, data: { ...(secret['data'] as object), ...change } })) as object);
    const failed = keysOf(client).keys.access();
    await expect(failed).rejects.toThrow(PublisherKeysError);
    await expect(failed).rejects.toThrow(field);
    await expect(failed).rejects.not.toThrow('too short');
  });

  test('are refused when two of them are one', async () => {
    const client = memoryClient();
    await keysOf(client).keys.access();
    const secret = stored(client)!;
    const data = secret['data'] as Record<string, string>;
    client.put({ ...secret, data: { ...data, 'controller-token': data['operation-capability-secret'] } });
    await expect(keysOf(client).keys.access()).rejects.toThrow('three secrets that differ');
  });
});

describe('the certificate of the publisher', () => {
  test.each([
    [334, false],
    [336, true],
    [400, true],
  ])('after %d days is renewed: %s', async (days, renewed) => {
    const client = memoryClient();
    const old = await keysOf(client).keys.access();
    const before = texts(stored(client));
    const access = await keysOf(client, start + days * day).keys.access();
    const after = texts(stored(client));
    if (!renewed) {
      expect([access, after]).toEqual([old, before]);
      return;
    }
    const { controllerToken, capabilitySecret, artifactSecret } = old;
    expect(access).toMatchObject({ controllerToken, capabilitySecret, artifactSecret });
    expect(after['tls.crt']).not.toBe(before['tls.crt']);
    expect(after['tls.previous.crt']).toBe(before['tls.crt']);
    // A publisher may show the one before until its kubelet has brought the new one.
    expect(access.ca).toBe(`${after['tls.crt'] ?? ''}\n${before['tls.crt'] ?? ''}`);
  });

  test('is trusted when a server shows it, and no other one is', async () => {
    const [own, other] = [memoryClient(), memoryClient()];
    const [access, foreign] = [await keysOf(own, Date.now()).keys.access(), await keysOf(other, Date.now()).keys.access()];
    const { 'tls.crt': cert = '', 'tls.key': key = '' } = texts(stored(own));
    const server = createServer({ cert, key }, (_, response) => response.end('here'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const ask = (ca: string) =>
      new Promise<string>((resolve, reject) => {
        const servername = 'orka-publisher.orka-publisher.svc';
        request({ host: '127.0.0.1', port, ca, servername, agent: false }, (response) => {
          response.resume().on('end', () => resolve('trusted'));
        })
          .on('error', reject)
          .end();
      });
    try {
      await expect(ask(access.ca)).resolves.toBe('trusted');
      await expect(ask(foreign.ca)).rejects.toThrow();
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });
});

test('a Secret that cannot be made is tried again, and reported', async () => {
  const client = memoryClient();
  client.before = ({ method }) => {
    if (method === 'POST') throw refusal('forbidden');
  };
  const { keys, errors, stop } = keysOf(client);
  const kept = keys.keep();
  while (errors.length === 0) await new Promise((resolve) => setImmediate(resolve));
  stop.abort();
  await kept;
  expect(errors).toEqual([expect.objectContaining({ code: 'forbidden' })]);
});
