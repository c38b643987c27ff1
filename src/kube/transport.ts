import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { IncomingMessage, RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { AgentOptions } from 'node:https';
import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import type { Json, JsonObject } from '../lib/json.js';
import { isObject } from '../lib/json.js';
import type { ClusterAccess, Credentials } from './access.js';
import { codeOf, KubeError, secondsOf } from './errors.js';
import type { ServerStatus } from './errors.js';
import { readLines } from './lines.js';
import { TunnelAgent } from './tunnel-agent.js';

/** One request. Bodies are sent as they are: no model comes between. */
export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute path, segments encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: Json;
  /** @default 'application/json' */
  readonly contentType?: string;
  /** Milliseconds until the whole answer must be there. @default 30000 */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
  /** Waits for no other request: it has a connection besides the `maxSockets`. @default false */
  readonly urgent?: boolean;
  /** Asked each time before a byte is sent; `false` ends the request as `aborted`. @default always */
  readonly onlyIf?: () => boolean;
}

/** A request whose answer goes on: one JSON object in each line, as a watch has them. */
export interface KubeStreamRequest extends Pick<KubeRequest, 'path' | 'query' | 'signal'> {
  /** Milliseconds without a byte, before or inside the answer, until `timeout`. A dead connection shows in no other way. */
  readonly inactivity: number;
  /** Bytes of one line. @default 16 MiB */
  readonly maxLine?: number;
}

export interface TransportOptions {
  /** Connections for requests. Streams have connections of their own, so that no number of watches keeps a request waiting. @default 32 */
  readonly maxSockets?: number;
  /** Milliseconds after which an idle connection is closed, so that it is seldom the server that does it. @default 45000 */
  readonly idle?: number;
  /** Bytes of an answer; more is an error. @default 64 MiB */
  readonly maxAnswer?: number;
  readonly userAgent?: string;
  /** Told of each answer, and of each request that got none (`undefined`). @default no report */
  readonly onAnswer?: (method: string, status: number | undefined) => void;
}

/** Kept-alive connections to one API server. */
export interface Transport {
  /** The decoded answer. Throws {@link KubeError} for everything else. */
  readonly request: (request: KubeRequest) => Promise<JsonObject>;
  /**
   * The objects of an answer as they come. Ends when the server ends it. Throws {@link KubeError}: what the server answered instead,
   * `timeout` after `inactivity`, `aborted`, `unreachable` when the connection breaks or a line is too long, `server-error` for a line that
   * is no JSON object. Leaving the loop closes the connection.
   */
  readonly stream: (request: KubeStreamRequest) => AsyncGenerator<JsonObject, void, undefined>;
  /** Ends idle connections; what is under way finishes. */
  readonly close: () => void;
}

const defaultTimeout = 30_000;
/** API servers close what was idle for 90 s, and what stands before them often after 60. */
const defaultIdle = 45_000;
const defaultMaxAnswer = 64 * 1024 * 1024;
const defaultMaxLine = 16 * 1024 * 1024;

/**
 * Opens connections as they are needed. Credentials are asked for before each request, so that rotated ones are used at once; when they
 * are refused, once more, from their source.
 */
export function createTransport(access: ClusterAccess, options: TransportOptions = {}): Transport {
  const server = new URL(access.server);
  const secure = server.protocol === 'https:';
  const idle = options.idle ?? defaultIdle;
  const pool = agentPool(access, { timeout: idle, maxSockets: options.maxSockets ?? 32 });
  const unlimited = agentPool(access, { timeout: idle, maxSockets: Infinity });

  /** Who is not answered in time on one connection may have lost all of them: none is tried again that nothing came over since. */
  function suspect(error: KubeError): KubeError {
    if (error.code === 'timeout') for (const agents of [pool, unlimited]) agents.dropIdle();
    return error;
  }

  async function request(wanted: KubeRequest): Promise<JsonObject> {
    const timeout = wanted.timeout ?? defaultTimeout;
    const limit = limitOf(wanted.signal);
    limit.arm(timeout);
    try {
      return await attempt(wanted, wanted.urgent ? unlimited : pool, limit.signal, async (answer) => {
        const text = await readAll(answer, options.maxAnswer ?? defaultMaxAnswer);
        if (!isGood(answer)) throw refusal(wanted, answer, text);
        const value = parse(text);
        if (isObject(value)) return value;
        const status = answer.statusCode ?? 0;
        throw failure('server-error', wanted, `an answer that is no JSON object (HTTP ${status})`, undefined, status);
      });
    } catch (error) {
      throw suspect(limit.explain(error, wanted, `no answer within ${timeout} ms`));
    } finally {
      limit.end();
    }
  }

  async function* stream(wanted: KubeStreamRequest): AsyncGenerator<JsonObject, void, undefined> {
    const { inactivity, maxLine = defaultMaxLine } = wanted;
    const get: KubeRequest = { method: 'GET', ...wanted };
    const limit = limitOf(wanted.signal);
    let answer: IncomingMessage | undefined;
    limit.arm(inactivity);
    try {
      answer = await attempt(get, unlimited, limit.signal, async (opened) => {
        if (isGood(opened)) return opened;
        throw refusal(get, opened, await readAll(opened, options.maxAnswer ?? defaultMaxAnswer));
      });
      yield* readLines(watched(answer, limit, inactivity), maxLine);
    } catch (error) {
      if (error instanceof SyntaxError) throw failure('server-error', get, error.message, error);
      throw suspect(limit.explain(error, get, `nothing came for ${inactivity} ms`));
    } finally {
      limit.end();
      answer?.destroy();
    }
  }

  /**
   * Sends, and sends again once where that is safe: over a new connection when a kept-alive one had been closed just now, for what can be
   * sent twice, and with credentials from their source when the server refused the remembered ones.
   */
  async function attempt<T>(
    wanted: KubeRequest,
    agents: AgentPool,
    signal: AbortSignal,
    read: (answer: IncomingMessage) => Promise<T>,
  ): Promise<T> {
    let credentials = await inTime(access.credentials(), signal);
    let again = { stale: wanted.method !== 'POST', refused: true };
    for (;;) {
      try {
        if (!isAllowed(wanted)) throw notAllowed(wanted);
        const answer = await open(wanted, agents.agentFor(credentials), credentials, signal);
        options.onAnswer?.(wanted.method, answer.statusCode);
        return await read(answer);
      } catch (error) {
        if (!(error instanceof KubeError)) options.onAnswer?.(wanted.method, undefined);
        if (signal.aborted) throw error;
        if (error instanceof StaleSocket && again.stale) {
          again = { ...again, stale: false };
          // Who closes one idle connection often closes all of them.
          agents.dropIdle();
        } else if (error instanceof KubeError && error.code === 'unauthorized' && again.refused) {
          again = { ...again, refused: false };
          const fresh = await inTime(access.credentials({ fresh: true }), signal);
          if (fresh.token === credentials.token && fresh.cert === credentials.cert) throw error;
          credentials = fresh;
        } else {
          throw error instanceof StaleSocket ? error.cause : error;
        }
      }
    }
  }

  function open(wanted: KubeRequest, agent: HttpAgent, credentials: Credentials, signal: AbortSignal): Promise<IncomingMessage> {
    const body = wanted.body === undefined ? undefined : JSON.stringify(wanted.body);
    const parameters: RequestOptions = {
      method: wanted.method,
      host: server.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: server.port,
      path: server.pathname.replace(/\/$/, '') + wanted.path + search(wanted.query),
      agent,
      signal,
      headers: {
        accept: 'application/json',
        'user-agent': options.userAgent ?? 'orka-workspaces',
        ...access.headers,
        ...(credentials.token === undefined ? {} : { authorization: `Bearer ${credentials.token}` }),
        ...(body === undefined
          ? {}
          : { 'content-type': wanted.contentType ?? 'application/json', 'content-length': Buffer.byteLength(body) }),
      },
    };
    return new Promise((resolve, reject) => {
      const outgoing = (secure ? httpsRequest : httpRequest)(parameters, resolve);
      // It may have waited for a connection.
      outgoing.on('socket', () => {
        if (!isAllowed(wanted)) outgoing.destroy(notAllowed(wanted));
      });
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        const closed = error.code === 'ECONNRESET' || error.code === 'EPIPE';
        reject(outgoing.reusedSocket && closed ? new StaleSocket(error) : error);
      });
      outgoing.end(body);
    });
  }

  return {
    request,
    stream,
    close: () => {
      pool.close();
      unlimited.close();
    },
  };
}

/** The end of a request: the caller's, or ours after a time. `AbortSignal.any` would leave something behind on the caller's signal. */
interface Limit {
  readonly signal: AbortSignal;
  /** Ends the request after so many milliseconds from now. */
  readonly arm: (wait: number) => void;
  readonly disarm: () => void;
  readonly end: () => void;
  /** The error that a caller sees. */
  readonly explain: (error: unknown, wanted: KubeRequest, late: string) => KubeError;
}

function limitOf(caller: AbortSignal | undefined): Limit {
  const own = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let late = false;
  const give = () => {
    own.abort(caller?.reason);
  };
  const disarm = () => {
    clearTimeout(timer);
  };
  if (caller?.aborted) give();
  else caller?.addEventListener('abort', give);
  return {
    signal: own.signal,
    arm: (wait) => {
      disarm();
      timer = setTimeout(() => {
        late = true;
        own.abort();
      }, wait);
    },
    disarm,
    end: () => {
      disarm();
      caller?.removeEventListener('abort', give);
    },
    explain: (error, wanted, says) => {
      if (error instanceof KubeError) return error;
      if (late) return failure('timeout', wanted, says, error);
      if (caller?.aborted) return failure('aborted', wanted, 'the caller gave up', error);
      return failure('unreachable', wanted, error instanceof Error ? error.message : String(error), error);
    },
  };
}

/** What cannot be aborted, a program that prints credentials, is no longer waited for. */
async function inTime<T>(wanted: T | Promise<T>, signal: AbortSignal): Promise<T> {
  if (!(wanted instanceof Promise)) return wanted;
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => {
      reject(new Error('aborted'));
    };
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([wanted, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Chunks of an answer. Only the time spent waiting for one counts; a reader may take as long as it likes. */
async function* watched(answer: IncomingMessage, limit: Limit, inactivity: number): AsyncGenerator<Buffer, void, undefined> {
  const chunks = (answer as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  for (;;) {
    limit.arm(inactivity);
    const next = await chunks.next();
    limit.disarm();
    if (next.done) return;
    yield next.value;
  }
}

const isAllowed = ({ onlyIf }: KubeRequest): boolean => onlyIf === undefined || onlyIf();

const notAllowed = (wanted: KubeRequest): KubeError =>
  failure('aborted', wanted, 'nothing was sent, as this process does not lead any more', undefined);

class StaleSocket extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

interface AgentPool {
  readonly agentFor: (credentials: Credentials) => HttpAgent;
  readonly dropIdle: () => void;
  readonly close: () => void;
}

/** One agent for one set of TLS credentials; another one when they rotate, so that no idle connection outlives its certificate. */
function agentPool(access: ClusterAccess, limits: { readonly timeout: number; readonly maxSockets: number }): AgentPool {
  const options: AgentOptions = { keepAlive: true, scheduling: 'lifo', ...limits };
  let current: { readonly key: string; readonly agent: HttpAgent } | undefined;
  return {
    agentFor: ({ ca, cert, key }) => {
      const identity = JSON.stringify([ca, cert, key]);
      if (current?.key === identity) return current.agent;
      if (current) retire(current.agent);
      const tls = {
        ...options,
        ...tlsOptions(access),
        ...(ca ? { ca } : {}),
        ...(cert ? { cert } : {}),
        ...(key ? { key } : {}),
      };
      const agent = new URL(access.server).protocol === 'https:' ? secureAgent(tls, access.proxy) : new HttpAgent(options);
      current = { key: identity, agent };
      return agent;
    },
    dropIdle: () => {
      if (current) dropIdle(current.agent);
    },
    close: () => {
      if (current) retire(current.agent);
      current = undefined;
    },
  };
}

const secureAgent = (options: AgentOptions, proxy: string | undefined): HttpsAgent =>
  proxy === undefined ? new HttpsAgent(options) : new TunnelAgent(options, proxy);

/** An address cannot be sent as a server's name (RFC 6066 §3); the certificate is still checked for it. */
function tlsOptions({ serverName, insecure }: ClusterAccess): AgentOptions {
  return {
    minVersion: 'TLSv1.2',
    ...(insecure ? { rejectUnauthorized: false } : {}),
    ...(serverName === undefined ? {} : { servername: isIP(serverName) === 0 ? serverName : '' }),
    ...(serverName === undefined || isIP(serverName) === 0
      ? {}
      : { checkServerIdentity: (_host, certificate) => checkServerIdentity(serverName, certificate) }),
  };
}

/** Closes what is idle now, and the rest when it becomes idle. `destroy()` would break requests whose outcome nobody knows then. */
function retire(agent: HttpAgent): void {
  agent.maxFreeSockets = 0;
  dropIdle(agent);
}

function dropIdle(agent: HttpAgent): void {
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

function search(query: KubeRequest['query'] = {}): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}

async function readAll(answer: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) throw new Error(`the answer is longer than ${limit} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function isGood({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

function refusal(wanted: KubeRequest, answer: IncomingMessage, text: string): KubeError {
  const status = answer.statusCode ?? 0;
  const value = parse(text);
  const said = (isObject(value) ? value : {}) as ServerStatus;
  const wait = secondsOf(answer.headers['retry-after'] ?? said.details?.retryAfterSeconds);
  return new KubeError(codeOf(status, said), {
    at: `${wanted.method} ${wanted.path}`,
    says: said.message ?? `HTTP ${status} ${text.slice(0, 200).trim()}`,
    status,
    causes: said.details?.causes ?? [],
    reason: said.reason,
    ...(wait === undefined ? {} : { retryAfter: wait }),
  });
}

function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function failure(code: KubeError['code'], { method, path }: KubeRequest, says: string, cause: unknown, status = 0): KubeError {
  return new KubeError(code, { at: `${method} ${path}`, says, status }, { cause });
}
