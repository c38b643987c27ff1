/**
 * The one way from an agent to its model: a loopback server that knows the upstream's token so that no agent has to. A session has a
 * route and a credential of its own, both worth nothing unless its prompt runs. Source: dispatch.md §6.4.
 */
import { randomBytes } from 'node:crypto';
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { sameText, startListening } from './bootstrap.js';
import { closeServer } from '../lib/close-server.js';
import { OwnedConnections, serverLimits } from '../lib/connections.js';
import { ModelCalls, uncounted } from './model-call.js';
import type { ModelCall, ModelTrouble } from './model-call.js';
import { boundedRequest } from './model-request.js';
import type { Refused } from './model-request.js';
import type { Provider } from './provider.js';
import { readBody } from '../lib/request-body.js';

export interface ProxyRoute {
  /** Base URL for the agent, without a slash at the end. */
  readonly url: string;
  readonly credential: string;
  /** Takes what belongs to this route alone out of a text. */
  readonly redact: (text: string) => string;
  /** Why the model's side failed last since `enable`; `undefined` = it answered after that, or never failed. */
  readonly trouble: () => ModelTrouble | undefined;
  /**
   * Lets requests through until `disable`. `turnLimit` is called for the first inference call beyond `maxTurns`, `retry` for one that
   * follows a broken-off answer of the model.
   */
  readonly enable: (turnLimit: () => void, retry?: () => void) => void;
  /** Also breaks what is under way. */
  readonly disable: () => void;
  readonly remove: () => void;
}

export interface ProviderProxy {
  readonly addRoute: (route: { readonly model: string; readonly maxTurns: number; readonly outputLimit?: number }) => ProxyRoute;
  /** Ends every route for good. */
  readonly revoke: () => void;
  readonly close: () => Promise<void>;
}

const most = { request: 32 * 1024 * 1024, response: 64 * 1024 * 1024, perSession: 2, inAll: 8 } as const;
const connectionBounds = { unproven: 1024, perOwner: 16 } as const;
const prefix = '/_orka/provider/';

interface Route {
  readonly credential: string;
  readonly model: string;
  readonly maxTurns: number;
  readonly outputLimit: number;
  readonly underWay: Set<() => void>;
  onTurnLimit: (() => void) | undefined;
  onRetry: (() => void) | undefined;
  readonly calls: ModelCalls;
}

/** One of the few requests that a session may have under way. */
interface Place {
  /** Breaks it. */
  readonly stop: () => void;
  /** What else is to end when it is broken. */
  readonly onStop: (end: () => void) => void;
}

/** Milliseconds in which the provider proxy has to take a connection. */
const connectWithin = 10_000;
const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'it refuses connections',
  ENOTFOUND: 'its name is not known',
  EAI_AGAIN: 'its name cannot be looked up',
  EHOSTUNREACH: 'there is no route to it',
  ENETUNREACH: 'there is no route to it',
};

/** Less than the five minutes after which agents give up a silent model: who was silent stays known. */
const longestSilence = 270_000;

/** Listens on a free port of 127.0.0.1. `silence`: milliseconds that a model may say nothing. `token` stays in the closure: nothing else of the supervisor can read it. */
export async function startProviderProxy(
  upstream: URL,
  token: string,
  routes: Provider['routes'],
  silence = longestSilence,
): Promise<ProviderProxy> {
  const known = new Map<string, Route>();
  let inAll = 0;
  const connections = new OwnedConnections(connectionBounds);
  const server = createServer({ ...serverLimits, requestTimeout: 60_000 }, (request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n'));
  connections.guard(server);
  await startListening(server, { host: '127.0.0.1', port: 0 });
  const { port } = server.address() as AddressInfo;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = find(request);
    if ('status' in target) {
      refuse(response, target);
      return;
    }
    const { route, path, inference, outputMembers } = target;
    if (route.underWay.size >= most.perSession || inAll >= most.inAll) {
      refuse(response, { status: 429, code: 'busy' });
      return;
    }
    const place = takePlace(route, response);
    const body = await readBody(request, most.request);
    const checked = body
      ? checkBody(route, body, request.method === 'POST' ? outputMembers : undefined)
      : { status: 413, code: 'request_too_large' };
    if ('status' in checked) {
      refuse(response, checked);
      return;
    }
    if (!route.onTurnLimit) {
      refuse(response, { status: 403, code: 'no_active_prompt' });
      return;
    }
    if (inference && route.calls.turns >= route.maxTurns) {
      refuse(response, { status: 400, code: 'turn_limit' });
      route.onTurnLimit();
      return;
    }
    if (inference && route.calls.isRetry) route.onRetry?.();
    await forward(path, request, checked.body, response, place, inference ? route.calls.begin() : uncounted);
  }

  function find(
    request: IncomingMessage,
  ):
    | Refused
    | { readonly route: Route; readonly path: string; readonly inference: boolean; readonly outputMembers: OutputMembers } {
    const [path = ''] = (request.url ?? '').split('?');
    const [id = '', ...rest] = path.startsWith(prefix) ? path.slice(prefix.length).split('/') : [];
    const route = known.get(id);
    const bearer = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (!route || !sameText(bearer, route.credential)) return { status: 401, code: 'unauthenticated' };
    if (!connections.claim(request.socket, id)) return { status: 429, code: 'too_many_connections' };
    if (!route.onTurnLimit) return { status: 403, code: 'no_active_prompt' };
    const wanted = `/${rest.join('/')}`;
    const allowed = routes[`${request.method ?? ''} ${wanted}`];
    if (!allowed) return { status: 403, code: 'outside_profile' };
    return { route, path: wanted, inference: allowed.inference, outputMembers: allowed.outputMembers ?? ['max_output_tokens'] };
  }

  /** Counts a request from before its body is read, as the body is what costs memory, until its connection is done with it. */
  function takePlace(route: Route, response: ServerResponse): Place {
    const ends = new Set<() => void>([() => response.destroy()]);
    const stop = () => {
      for (const end of ends) end();
    };
    route.underWay.add(stop);
    inAll++;
    response.once('close', () => {
      if (route.underWay.delete(stop)) inAll--;
    });
    return { stop, onStop: (end) => ends.add(end) };
  }

  /** Sends one request on, and its answer back as it comes. Resolves when the agent has all of it, or left. */
  function forward(
    path: string,
    request: IncomingMessage,
    body: Buffer,
    response: ServerResponse,
    { stop, onStop }: Place,
    call: ModelCall,
  ): Promise<void> {
    return new Promise((resolve) => {
      const send = upstream.protocol === 'https:' ? httpsRequest : httpRequest;
      const outgoing = send({
        method: request.method,
        host: upstream.hostname.replace(/^\[(.*)\]$/, '$1'),
        port: upstream.port === '' ? undefined : upstream.port,
        path: upstream.pathname.replace(/\/$/, '') + path,
        headers: upstreamHeaders(request, body),
        timeout: silence,
      });
      let answered = false;
      let connected = false;
      onStop(() => {
        call.ended();
        outgoing.destroy();
      });
      response.once('close', () => {
        call.ended();
        outgoing.destroy();
        resolve();
      });
      const broken = (message: string, code?: ModelTrouble['code']) => {
        clearTimeout(connecting);
        call.failed(message, code);
        if (response.headersSent) response.destroy();
        else refuse(response, { status: 502, code: 'upstream_unreachable' });
      };
      outgoing.once('timeout', () => {
        // An agent that does not read keeps its model from speaking.
        if (response.writableNeedDrain) call.ended();
        broken('the model was silent for too long');
        outgoing.destroy();
      });
      const lost = (message: string) => {
        broken(`the provider proxy ${message}`, 'provider_proxy_unavailable');
      };
      const connecting = setTimeout(() => {
        lost(`cannot be reached: no connection within ${connectWithin / 1000} s`);
        outgoing.destroy();
      }, connectWithin);
      outgoing.once('socket', (socket) => {
        const standing = () => {
          connected = true;
          clearTimeout(connecting);
        };
        // A kept connection stands already.
        if (socket.connecting) socket.once('connect', standing);
        else standing();
      });
      outgoing.once('error', ({ code = '' }: NodeJS.ErrnoException) => {
        if (connected) lost('closed the connection before it answered');
        else lost(`cannot be reached: ${reasons[code] ?? (code || 'no connection')}`);
      });
      outgoing.once('response', (incoming) => {
        answered = true;
        call.answered(incoming.statusCode ?? 502);
        incoming.once('error', () => {
          lost('closed the connection in the middle of an answer');
        });
        incoming.once('end', () => {
          call.ended();
        });
        relay(incoming, response, () => {
          call.failed(`the answer of the model is longer than ${most.response} bytes`);
          stop();
        });
      });
      // A server that switches protocols closes the request without an error.
      outgoing.once('close', () => {
        clearTimeout(connecting);
        if (!answered) lost('gave no answer');
      });
      outgoing.end(body);
    });
  }

  function upstreamHeaders(request: IncomingMessage, body: Buffer): OutgoingHttpHeaders {
    const { accept } = request.headers;
    return {
      ...(accept === undefined ? {} : { accept }),
      authorization: `Bearer ${token}`,
      'accept-encoding': 'identity',
      // The type as which the body was checked.
      ...(body.length > 0 ? { 'content-type': 'application/json', 'content-length': body.length } : {}),
    };
  }

  function disable(route: Route): void {
    route.onTurnLimit = undefined;
    for (const stop of [...route.underWay]) stop();
  }

  function revoke(): void {
    for (const [id, route] of known) {
      disable(route);
      connections.end(id);
    }
    known.clear();
  }

  return {
    addRoute: ({ model, maxTurns, outputLimit }) => {
      const id = randomBytes(24).toString('base64url');
      const credential = randomBytes(32).toString('base64url');
      const route: Route = {
        credential,
        model,
        maxTurns,
        outputLimit: outputLimit ?? 0,
        underWay: new Set(),
        onTurnLimit: undefined,
        onRetry: undefined,
        calls: new ModelCalls(),
      };
      known.set(id, route);
      return {
        url: `http://127.0.0.1:${port}${prefix}${id}`,
        credential,
        redact: (text) => text.replaceAll(credential, redacted).replaceAll(id, redacted),
        trouble: () => route.calls.trouble,
        enable: (turnLimit, retry) => {
          route.calls.reset();
          route.onTurnLimit = turnLimit;
          route.onRetry = retry;
        },
        disable: () => {
          disable(route);
        },
        remove: () => {
          disable(route);
          known.delete(id);
          connections.end(id);
        },
      };
    },
    revoke,
    close: async () => {
      revoke();
      await closeServer(server, 0);
    },
  };
}

const redacted = '[redacted]';

type OutputMembers = readonly [string, ...string[]];

/** `outputMembers`: of the bound of an answer; `undefined` = no body is expected. */
function checkBody(route: Route, body: Buffer, outputMembers: OutputMembers | undefined): Refused | { readonly body: Buffer } {
  if (outputMembers) return boundedRequest(body, { model: route.model, outputLimit: route.outputLimit, outputMembers });
  return body.length === 0 ? { body } : { status: 400, code: 'no_body_expected' };
}

function relay(incoming: IncomingMessage, response: ServerResponse, tooLong: () => void): void {
  const status = incoming.statusCode ?? 502;
  if (status >= 300 && status < 400) {
    incoming.destroy();
    refuse(response, { status: 502, code: 'upstream_redirect' });
    return;
  }
  const kept = ['content-type', 'retry-after'].flatMap((name) => {
    const value = incoming.headers[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  response.writeHead(status, Object.fromEntries(kept));
  let size = 0;
  incoming.on('data', (part: Buffer) => {
    size += part.length;
    if (size > most.response) tooLong();
  });
  incoming.pipe(response);
}

/** In the form in which inference APIs tell errors, so that an agent can show it. */
function refuse(response: ServerResponse, { status, code }: Refused): void {
  if (response.headersSent || response.destroyed) return;
  const body = JSON.stringify({
    error: { type: 'orka_provider_proxy', code, message: `refused by the provider proxy: ${code}` },
  });
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
  response.end(body);
}
