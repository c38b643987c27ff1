/**
 * The one way from an agent to its model: a loopback server that knows the upstream's token so that no agent has to. A session has a
 * route and a credential of its own, both worth nothing unless its prompt runs. Source: dispatch.md §6.4.
 */
import { randomBytes } from 'node:crypto';
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { isObject } from '../lib/json.js';
import type { Json } from '../lib/json.js';
import { closeServer, sameText, startListening } from './bootstrap.js';
import { OwnedConnections, serverLimits } from './connections.js';
import type { Provider } from './provider.js';
import { readBody } from './request-body.js';

export interface ProxyRoute {
  /** Base URL for the agent, without a slash at the end. */
  readonly url: string;
  readonly credential: string;
  /** Takes what belongs to this route alone out of a text. */
  readonly redact: (text: string) => string;
  /** Why the last call of the model since `enable` had no answer of the model; `undefined` = it had one, or there was none. */
  readonly trouble: () => ModelTrouble | undefined;
  /** Lets requests through until `disable`; `turnLimit` is told of the first inference call beyond `maxTurns`. */
  readonly enable: (turnLimit: () => void) => void;
  /** Also breaks what is under way. */
  readonly disable: () => void;
  readonly remove: () => void;
}

/** What kept the model from answering. */
interface ModelTrouble {
  readonly code: 'model_unauthorized' | 'model_rate_limited' | 'model_unavailable' | 'model_request_refused';
  readonly message: string;
}

export interface ProviderProxy {
  readonly addRoute: (route: { readonly model: string; readonly maxTurns: number; readonly outputLimit?: number }) => ProxyRoute;
  /** Ends every route for good. */
  readonly revoke: () => void;
  readonly close: () => Promise<void>;
}

const most = { request: 32 * 1024 * 1024, response: 64 * 1024 * 1024, perSession: 2, inAll: 8 } as const;
/** Twice what the kernel queues: a full queue never displaces a connection whose first request is still unread. */
const connectionBounds = { unproven: 1024, perOwner: 16 } as const;
const prefix = '/_orka/provider/';

interface Route {
  readonly credential: string;
  readonly model: string;
  readonly maxTurns: number;
  readonly outputLimit: number;
  readonly underWay: Set<() => void>;
  onTurnLimit: (() => void) | undefined;
  /** Calls that the model answered, and those that it may yet answer. */
  turns: number;
  trouble: ModelTrouble | undefined;
}

/** One of the few requests that a session may have under way. */
interface Place {
  /** Breaks it. */
  readonly stop: () => void;
  /** What else is to end when it is broken. */
  readonly onStop: (end: () => void) => void;
}

interface Refused {
  readonly status: number;
  readonly code: string;
}

/** Listens on a free port of 127.0.0.1. `token` stays in the closure: nothing else of the supervisor can read it. */
export async function startProviderProxy(upstream: URL, token: string, routes: Provider['routes']): Promise<ProviderProxy> {
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
    if (inference && route.turns >= route.maxTurns) {
      refuse(response, { status: 400, code: 'turn_limit' });
      route.onTurnLimit();
      return;
    }
    await forward(path, request, checked.body, response, place, inference ? callOf(route) : ignored);
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

  /** Sends one request on, and its answer back as it comes. */
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
      });
      onStop(() => outgoing.destroy());
      response.once('close', () => {
        outgoing.destroy();
        resolve();
      });
      outgoing.once('error', () => {
        call.failed({ code: 'model_unavailable', message: 'the provider proxy cannot be reached' });
        if (response.headersSent) response.destroy();
        else refuse(response, { status: 502, code: 'upstream_unreachable' });
        resolve();
      });
      outgoing.once('response', (incoming) => {
        call.answered(incoming.statusCode ?? 502);
        incoming.once('error', () => {
          call.failed({ code: 'model_unavailable', message: 'the answer of the model broke off' });
        });
        relay(incoming, response, stop);
      });
      outgoing.end(body);
    });
  }

  function upstreamHeaders(request: IncomingMessage, body: Buffer): OutgoingHttpHeaders {
    const kept = ['accept', 'content-type'].flatMap((name) => {
      const value = request.headers[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    return {
      ...Object.fromEntries(kept),
      authorization: `Bearer ${token}`,
      'accept-encoding': 'identity',
      ...(body.length > 0 ? { 'content-length': body.length } : {}),
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
        turns: 0,
        trouble: undefined,
      };
      known.set(id, route);
      return {
        url: `http://127.0.0.1:${port}${prefix}${id}`,
        credential,
        redact: (text) => text.replaceAll(credential, redacted).replaceAll(id, redacted),
        trouble: () => route.trouble,
        enable: (turnLimit) => {
          route.turns = 0;
          route.trouble = undefined;
          route.onTurnLimit = turnLimit;
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

/** One call of the model: a turn, unless the model does not answer it. An agent tries again by itself, which is no turn of its user's. */
interface ModelCall {
  readonly answered: (status: number) => void;
  readonly failed: (trouble: ModelTrouble) => void;
}

const ignored: ModelCall = { answered: () => undefined, failed: () => undefined };

function callOf(route: Route): ModelCall {
  route.turns++;
  let counts = true;
  const failed = (trouble: ModelTrouble): void => {
    if (counts) route.turns--;
    counts = false;
    route.trouble = trouble;
  };
  return {
    answered: (status) => {
      if (status < 300) route.trouble = undefined;
      else failed({ code: troubleCode(status), message: `the model was asked and HTTP ${status} was the answer` });
    },
    failed,
  };
}

function troubleCode(status: number): ModelTrouble['code'] {
  if (status === 401 || status === 403) return 'model_unauthorized';
  if (status === 429) return 'model_rate_limited';
  return status < 400 || status >= 500 ? 'model_unavailable' : 'model_request_refused';
}

type OutputMembers = readonly [string, ...string[]];

/** The body to send: that of the frozen model, with the output bounded. `members`: of the bound; `undefined` = no body is expected. */
function checkBody(route: Route, body: Buffer, members: OutputMembers | undefined): Refused | { readonly body: Buffer } {
  if (!members) return body.length === 0 ? { body } : { status: 400, code: 'no_body_expected' };
  const value = parse(body);
  if (!isObject(value)) return { status: 400, code: 'malformed_body' };
  if (value['model'] !== route.model) return { status: 403, code: 'outside_profile' };
  const limit = route.outputLimit;
  const given = members.filter((member) => value[member] !== undefined && value[member] !== null);
  const within = given.every((member) => typeof value[member] === 'number' && value[member] <= limit);
  if (limit === 0 || (given.length > 0 && within)) return { body };
  const bounded = Object.fromEntries((given.length > 0 ? given : [members[0]]).map((member) => [member, limit]));
  return { body: Buffer.from(JSON.stringify({ ...value, ...bounded })) };
}

function relay(incoming: IncomingMessage, response: ServerResponse, stop: () => void): void {
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
    if (size > most.response) stop();
  });
  incoming.once('error', stop);
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

function parse(body: Buffer): Json | undefined {
  try {
    return JSON.parse(body.toString()) as Json;
  } catch {
    return undefined;
  }
}
