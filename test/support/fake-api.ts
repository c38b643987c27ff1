import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { createServer as createRawServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Server as SecureServer, TLSSocket } from 'node:tls';
import type { Identity } from './certificates.js';

/** One request as it came over the wire. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** The subject of the client's certificate, if it can be trusted. */
  readonly client?: string;
}

/**
 * A loopback server for what a cluster cannot show on demand: hangs, resets, odd answers. It is no API server; each test says what it
 * answers.
 */
export interface FakeApi {
  readonly url: string;
  readonly received: readonly Received[];
  /** Connections opened so far. */
  readonly connections: () => number;
  readonly sockets: ReadonlySet<Socket>;
  /** Nothing comes any more over the connections that are there now, and nobody is told: half-open, as after a firewall lost its state. */
  readonly freeze: () => void;
  /** New connections see this certificate, and may show one of an authority. */
  readonly rotate: (tls: ServerIdentity) => void;
  readonly close: () => Promise<void>;
}

export interface ServerIdentity extends Identity {
  /** Of the clients. */
  readonly ca?: string;
}

export type Answer = (request: Received, response: ServerResponse) => void;

/** Answers over TLS when it is told who it is. `host`: the address that it listens on. */
export async function fakeApi(answer: Answer, tls?: ServerIdentity, host = '127.0.0.1'): Promise<FakeApi> {
  const received: Received[] = [];
  const sockets = new Set<Socket>();
  const frozen = new WeakSet<Socket>();
  let connections = 0;
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    if (frozen.has(request.socket)) return;
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://fake');
      const one = {
        method: request.method ?? '',
        path: pathname,
        query: searchParams,
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
        ...clientOf(request.socket),
      };
      received.push(one);
      answer(one, response);
    });
  };
  const server = tls
    ? createSecureServer({ ...tls, requestCert: true, rejectUnauthorized: false }, listener)
    : createServer(listener);
  server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
    connections++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  // As API servers have it: a client that ends closes its connections itself.
  server.keepAliveTimeout = 90_000;
  await listening(server, host);
  return {
    url: `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${portOf(server)}`,
    freeze: () => {
      for (const socket of sockets) {
        frozen.add(socket);
        socket.pause();
        socket.cork();
      }
    },
    rotate: (next) => (server as SecureServer).setSecureContext(next),
    received,
    connections: () => connections,
    sockets,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A server that speaks no HTTP: it accepts connections and does what it is told. */
export async function rawServer(
  accept: (socket: Socket) => void,
): Promise<{ readonly port: number; readonly close: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createRawServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    accept(socket);
  });
  await listening(server);
  return {
    port: portOf(server),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function clientOf(socket: Socket | TLSSocket): { readonly client?: string } {
  return 'authorized' in socket && socket.authorized ? { client: String(socket.getPeerCertificate().subject.CN) } : {};
}

function listening(server: Server, host = '127.0.0.1'): Promise<void> {
  return new Promise((resolve) => server.listen(0, host, resolve));
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

export function reply(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(typeof body === 'string' ? body : JSON.stringify(body));
}

/** Answers as the authorizer of an API server does. */
export function forbid(
  response: ServerResponse,
  [verb, resource, group, namespace]: readonly [string, string, string, string],
): void {
  const who = 'User "system:serviceaccount:orka-system:orka-workspaces-controller"';
  const message = `${resource}.${group} is forbidden: ${who} cannot ${verb} resource "${resource}" in API group "${group}" in the namespace "${namespace}"`;
  reply(response, 403, {
    kind: 'Status',
    status: 'Failure',
    code: 403,
    reason: 'Forbidden',
    message,
    details: { group, kind: resource },
  });
}

/** Discovery of the kinds that the tests use. */
export function discovery(path: string): unknown {
  const resource = (name: string, kind: string, namespaced = true) => ({ name, kind, namespaced });
  const lists: Record<string, unknown[]> = {
    '/api/v1': [
      resource('configmaps', 'ConfigMap'),
      resource('events', 'Event'),
      resource('services', 'Service'),
      resource('secrets', 'Secret'),
      resource('namespaces', 'Namespace', false),
      resource('pods', 'Pod'),
      resource('pods/log', 'Pod'),
    ],
    '/apis/networking.k8s.io/v1': [resource('networkpolicies', 'NetworkPolicy')],
    '/apis/policy/v1': [resource('poddisruptionbudgets', 'PodDisruptionBudget')],
    '/apis/coordination.k8s.io/v1': [resource('leases', 'Lease')],
    '/apis/apps/v1': [resource('deployments', 'Deployment')],
    '/apis/core.orka.ai/v1alpha1': [
      resource('tasks', 'Task'),
      resource('agents', 'Agent'),
      resource('runtimepools', 'RuntimePool'),
      resource('runtimepoolclasses', 'RuntimePoolClass'),
    ],
    '/apis/extensions.agents.x-k8s.io/v1beta1': [
      resource('sandboxtemplates', 'SandboxTemplate'),
      resource('sandboxwarmpools', 'SandboxWarmPool'),
      resource('sandboxclaims', 'SandboxClaim'),
    ],
  };
  return path in lists ? { kind: 'APIResourceList', resources: lists[path] } : undefined;
}
