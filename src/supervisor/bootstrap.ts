import { timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { BootstrapError, isPublicKey, parseBootstrapBody, verifyBootstrap } from '../harness/bootstrap.js';
import type { Credentials } from '../harness/bootstrap.js';
import { paths } from '../harness/paths.js';
import { bounds, headers, protocol } from '../harness/protocol.js';
import { ConfigError } from './config.js';
import { closeServer } from '../lib/close-server.js';
import { boundPeers, serverLimits } from '../lib/connections.js';
import type { ListenAddress } from './config.js';
import { credentialVariables } from './credentials.js';
import { deferred } from './deferred.js';
import { readBody } from '../lib/request-body.js';

/** Public material of the phase in which a sandbox awaits its credentials. */
export interface BootstrapPhase {
  readonly nonce: string;
  readonly publicKey: string;
}

/** Whether this process has to wait for credentials: a nonce, and none of the variables that could bring them. Source: workload.md §5.3. */
export function bootstrapPhase(env: Readonly<Record<string, string | undefined>>): BootstrapPhase | undefined {
  const isSet = (name: string) => (env[name] ?? '').trim() !== '';
  const nonce = (env['ORKA_ACP_CREDENTIAL_BOOTSTRAP_NONCE'] ?? '').trim();
  if (nonce === '' || credentialVariables.some(isSet)) return undefined;
  const publicKey = (env['ORKA_ACP_CREDENTIAL_BOOTSTRAP_PUBLIC_KEY'] ?? '').trim();
  if (!isPublicKey(publicKey))
    throw new ConfigError('invalid', {
      at: 'environment',
      field: 'ORKA_ACP_CREDENTIAL_BOOTSTRAP_PUBLIC_KEY',
      allowed: '32 bytes in base64url without padding',
    });
  return { nonce, publicKey };
}

/**
 * Answers in the phase before credentials. The first valid delivery is kept and told to `onSeeded`; an equal one is confirmed, any
 * other refused, so that two controllers cannot both believe to have been first. Source: workload.md §5.3.
 */
export function bootstrapHandler(
  phase: BootstrapPhase,
  onSeeded: (credentials: Credentials) => void,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  let seeded: Credentials | undefined;

  async function statusOf(request: IncomingMessage): Promise<number> {
    if (request.method !== 'PUT') return 405;
    if (!sameText(headerText(request, headers.bootstrapNonce), phase.nonce)) return 403;
    const body = await readBody(request, bounds.bootstrapBody);
    if (!body) return 400;
    if (!verifyBootstrap(phase.publicKey, phase.nonce, body, headerText(request, headers.bootstrapSignature))) return 403;
    const delivered = parse(body);
    if (typeof delivered === 'number') return delivered;
    if (seeded) return sameCredentials(seeded, delivered) ? 200 : 409;
    seeded = delivered;
    return 201;
  }

  return async (request, response) => {
    if (request.url === paths.health) {
      const body = JSON.stringify({ protocol, lifecycle: 'booting' });
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
      response.end(body);
      return;
    }
    const status = request.url === paths.bootstrap ? await statusOf(request) : 404;
    if (status !== 201) {
      response.writeHead(status, { 'content-length': 0, ...(status >= 400 ? { connection: 'close' } : {}) }).end();
      return;
    }
    // The phase ends when its sender knows that it did.
    response.writeHead(status, { 'content-length': 0, connection: 'close' });
    response.end(() => {
      if (seeded) onSeeded(seeded);
    });
  };
}

/** Waits on the normal address, without a deadline of its own, until the credentials are there; then the address is free again. */
export async function awaitCredentials(phase: BootstrapPhase, listen: ListenAddress, signal: AbortSignal): Promise<Credentials> {
  const seeded = deferred<Credentials>();
  const answer = bootstrapHandler(phase, seeded.resolve);
  const server = createServer({ ...serverLimits, keepAliveTimeout: 60_000 }, (request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  boundPeers(server);
  const stop = () => {
    seeded.reject(new Error('stopped while waiting for credentials'));
  };
  signal.addEventListener('abort', stop, { once: true });
  try {
    await startListening(server, listen);
    if (signal.aborted) stop();
    return await seeded.promise;
  } finally {
    signal.removeEventListener('abort', stop);
    await closeServer(server, 10_000);
  }
}

/** Resolves when a server takes connections. */
export function startListening(server: Server, { port, host }: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}

function parse(body: Buffer): Credentials | 400 | 422 {
  try {
    return parseBootstrapBody(body);
  } catch (error) {
    if (error instanceof BootstrapError) return error.code === 'shape' ? 422 : 400;
    throw error;
  }
}

function headerText(request: IncomingMessage, name: string): string {
  const value = request.headers[name];
  return (typeof value === 'string' ? value : '').trim();
}

function sameCredentials(a: Credentials, b: Credentials): boolean {
  const same = [
    sameText(a.controllerToken, b.controllerToken),
    sameText(a.capabilitySecret, b.capabilitySecret),
    sameText(a.providerToken, b.providerToken),
  ];
  return same.every((equal) => equal);
}

/** Equality in a time that does not depend on where two texts differ. */
export function sameText(a: string, b: string): boolean {
  const [x, y] = [Buffer.from(a), Buffer.from(b)];
  return x.length === y.length && timingSafeEqual(x, y);
}
