import { afterEach, describe, expect, test } from '@jest/globals';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { createHarnessClient } from '../../src/harness/client.js';
import { bootstrapPublicKey } from '../../src/harness/bootstrap.js';
import { awaitCredentials, bootstrapHandler, bootstrapPhase } from '../../src/supervisor/bootstrap.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

interface Step {
  readonly method: string;
  readonly path: string;
  readonly nonceHeader: string | null;
  readonly signatureHeader: string | null;
  readonly body: string;
}
interface Conversation {
  readonly responses: readonly { readonly status: number; readonly body: string; readonly location: string }[];
  readonly seeded: boolean;
  readonly stored?: object;
}
const { supervisor, phaseEntry } = readVectors<{
  readonly supervisor: {
    readonly nonce: string;
    readonly publicKey: string;
    readonly vectors: readonly Vector<{ readonly steps: readonly Step[] }, Conversation>[];
  };
  readonly phaseEntry: readonly {
    readonly input: { readonly env: Record<string, string> };
    readonly output: { readonly awaitBootstrap: boolean };
  }[];
}>('bootstrap');

/** Deviations: name of the vector, why, and what ours answers. */
const deviations: Readonly<Record<string, readonly number[]>> = {
  // One spelling of a member name: what is signed is exactly what was meant.
  'member-names-other-case-accepted': [400],
  // A name that stands twice can be read in two ways.
  'duplicate-member-last-wins': [400, 201],
  // Paths are taken as they are; nobody who speaks this protocol needs a redirect.
  'path-not-clean-redirect': [404],
};

let server: Server | undefined;
afterEach(() => {
  server?.close();
});

/** Sends a request as it is written, without a client that would tidy it. */
function send(
  port: number,
  { method, path, nonceHeader, signatureHeader, body }: Step,
): Promise<{ status: number; body: string }> {
  const headers = [
    ...(nonceHeader === null ? [] : [`X-Orka-Credential-Bootstrap-Nonce: ${nonceHeader}`]),
    ...(signatureHeader === null ? [] : [`X-Orka-Credential-Bootstrap-Signature: ${signatureHeader}`]),
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers.join('\r\n')}\r\n\r\n${body}`),
    );
    socket.on('data', (part) => (text += part.toString()));
    socket.on('error', reject);
    socket.on('close', () =>
      resolve({ status: Number(text.split(' ')[1]), body: text.split('\r\n\r\n').slice(1).join('\r\n\r\n') }),
    );
  });
}

describe('golden conversations', () => {
  test.each(supervisor.vectors)('$name', async ({ name, input, output }) => {
    let stored: object | undefined;
    const handler = bootstrapHandler(supervisor, (credentials) => (stored = credentials));
    server = createServer((request, response) => void handler(request, response));
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const answers = [];
    for (const step of input.steps) answers.push(await send(port, step));
    const expected = deviations[name];
    expect(answers.map(({ status }) => status)).toEqual(expected ?? output.responses.map(({ status }) => status));
    if (expected) return;
    expect(answers.map(({ body }) => body)).toEqual(output.responses.map(({ body }) => body));
    expect(stored).toEqual(output.stored);
  });
});

test.each(phaseEntry)('the phase of $input.env: $output.awaitBootstrap', ({ input, output }) => {
  const env = { ORKA_ACP_CREDENTIAL_BOOTSTRAP_PUBLIC_KEY: supervisor.publicKey, ...input.env };
  expect(bootstrapPhase(env) !== undefined).toBe(output.awaitBootstrap);
});

test('a nonce without a public key is an error, not a phase without check', () => {
  expect(() => bootstrapPhase({ ORKA_ACP_CREDENTIAL_BOOTSTRAP_NONCE: 'n' })).toThrow('PUBLIC_KEY');
});

test('the phase ends with its credentials and gives the address back', async () => {
  const free = createServer();
  await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve));
  const { port } = free.address() as AddressInfo;
  await new Promise((resolve) => free.close(resolve));
  const signingSeed = 's'.repeat(43);
  const credentials = { controllerToken: 'c'.repeat(32), capabilitySecret: 'k'.repeat(32), providerToken: 'p' };
  const phase = { nonce: 'nonce', publicKey: bootstrapPublicKey(signingSeed) };
  const waiting = awaitCredentials(phase, { host: '127.0.0.1', port }, new AbortController().signal);
  const client = createHarnessClient({ baseUrl: `http://127.0.0.1:${port}` });
  expect(await client.health()).toEqual({ status: 'booting' });
  expect(await client.bootstrap({ signingSeed, nonce: 'nonce', credentials })).toBe('seeded');
  expect(await waiting).toEqual(credentials);
  await expect(client.health()).rejects.toMatchObject({ evidence: 'zero_bytes_written' });
  client.close();
});

test('waiting ends when the process is told to', async () => {
  const stop = new AbortController();
  const waiting = awaitCredentials(supervisor, { host: '127.0.0.1', port: 0 }, stop.signal);
  stop.abort();
  await expect(waiting).rejects.toThrow('stopped');
});
