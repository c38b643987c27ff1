import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** One request as it came over the wire. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
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
  readonly close: () => Promise<void>;
}

export type Answer = (request: Received, response: ServerResponse) => void;

export async function fakeApi(answer: Answer): Promise<FakeApi> {
  const received: Received[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server: Server = createServer((request, response) => {
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
      };
      received.push(one);
      answer(one, response);
    });
  });
  server.on('connection', (socket) => {
    connections++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
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

export function reply(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(typeof body === 'string' ? body : JSON.stringify(body));
}

/** Discovery of the kinds that the tests use. */
export function discovery(path: string): unknown {
  const resource = (name: string, kind: string, namespaced = true) => ({ name, kind, namespaced });
  const lists: Record<string, unknown[]> = {
    '/api/v1': [
      resource('configmaps', 'ConfigMap'),
      resource('services', 'Service'),
      resource('secrets', 'Secret'),
      resource('namespaces', 'Namespace', false),
      resource('pods', 'Pod'),
      resource('pods/log', 'Pod'),
    ],
    '/apis/networking.k8s.io/v1': [resource('networkpolicies', 'NetworkPolicy')],
    '/apis/policy/v1': [resource('poddisruptionbudgets', 'PodDisruptionBudget')],
    '/apis/coordination.k8s.io/v1': [resource('leases', 'Lease')],
    '/apis/events.k8s.io/v1': [resource('events', 'Event')],
    '/apis/apps/v1': [resource('deployments', 'Deployment')],
    '/apis/core.orka.ai/v1alpha1': [resource('runtimepools', 'RuntimePool')],
    '/apis/extensions.agents.x-k8s.io/v1beta1': [
      resource('sandboxtemplates', 'SandboxTemplate'),
      resource('sandboxwarmpools', 'SandboxWarmPool'),
      resource('sandboxclaims', 'SandboxClaim'),
    ],
  };
  return path in lists ? { kind: 'APIResourceList', resources: lists[path] } : undefined;
}
