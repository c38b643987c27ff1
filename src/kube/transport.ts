import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { IncomingMessage, RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Json, JsonObject } from '../lib/json.js';
import { isObject } from '../lib/json.js';
import type { ClusterAccess, Credentials } from './access.js';
import { codeOf, KubeError } from './errors.js';
import type { ServerStatus } from './errors.js';

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
}

export interface TransportOptions {
  /** Connections kept open. @default 32 */
  readonly maxSockets?: number;
  /** Bytes of an answer; more is an error. @default 64 MiB */
  readonly maxAnswer?: number;
  readonly userAgent?: string;
}

/** Kept-alive connections to one API server. */
export interface Transport {
  /** The decoded answer. Throws {@link KubeError} for everything else. */
  readonly request: (request: KubeRequest) => Promise<JsonObject>;
  /** Ends idle connections; what is under way finishes. */
  readonly close: () => void;
}

const defaultTimeout = 30_000;
const defaultMaxAnswer = 64 * 1024 * 1024;

/** Opens connections as they are needed. Credentials are asked for before each request, so that rotated ones are used at once. */
export function createTransport(access: ClusterAccess, options: TransportOptions = {}): Transport {
  const server = new URL(access.server);
  const pool = agentPool(server.protocol === 'https:', options.maxSockets ?? 32);

  async function request(wanted: KubeRequest): Promise<JsonObject> {
    const deadline = AbortSignal.timeout(wanted.timeout ?? defaultTimeout);
    const signal = wanted.signal ? AbortSignal.any([deadline, wanted.signal]) : deadline;
    try {
      return await attempt(wanted, signal, false);
    } catch (error) {
      if (error instanceof KubeError) throw error;
      if (wanted.signal?.aborted) throw failure('aborted', wanted, 'the caller gave up', error);
      if (deadline.aborted) throw failure('timeout', wanted, `no answer within ${wanted.timeout ?? defaultTimeout} ms`, error);
      throw failure('unreachable', wanted, error instanceof Error ? error.message : String(error), error);
    }
  }

  /** A kept-alive connection may have been closed just now; what can be sent twice is, once, over another one. */
  async function attempt(wanted: KubeRequest, signal: AbortSignal, again: boolean): Promise<JsonObject> {
    const credentials = await access.credentials();
    try {
      const { answer, text } = await send(wanted, credentials, signal);
      return decode(wanted, answer, text);
    } catch (error) {
      const stale = error instanceof StaleSocket && wanted.method !== 'POST';
      if (stale && !again && !signal.aborted) return attempt(wanted, signal, true);
      throw error instanceof StaleSocket ? error.cause : error;
    }
  }

  function send(
    wanted: KubeRequest,
    credentials: Credentials,
    signal: AbortSignal,
  ): Promise<{ answer: IncomingMessage; text: string }> {
    const body = wanted.body === undefined ? undefined : JSON.stringify(wanted.body);
    const parameters: RequestOptions = {
      method: wanted.method,
      host: server.hostname,
      port: server.port,
      path: server.pathname.replace(/\/$/, '') + wanted.path + search(wanted.query),
      agent: pool.agentFor(credentials),
      signal,
      headers: {
        accept: 'application/json',
        'user-agent': options.userAgent ?? 'orka-workspaces',
        ...(credentials.token === undefined ? {} : { authorization: `Bearer ${credentials.token}` }),
        ...(body === undefined
          ? {}
          : { 'content-type': wanted.contentType ?? 'application/json', 'content-length': Buffer.byteLength(body) }),
      },
    };
    return new Promise((resolve, reject) => {
      const outgoing = (server.protocol === 'https:' ? httpsRequest : httpRequest)(parameters, (answer) => {
        readAll(answer, options.maxAnswer ?? defaultMaxAnswer).then((text) => {
          resolve({ answer, text });
        }, reject);
      });
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        reject(outgoing.reusedSocket && error.code === 'ECONNRESET' ? new StaleSocket(error) : error);
      });
      outgoing.end(body);
    });
  }

  return { request, close: pool.close };
}

class StaleSocket extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

/** One agent for one set of TLS credentials; another one when they rotate, so that no old connection outlives its certificate. */
function agentPool(
  secure: boolean,
  maxSockets: number,
): { agentFor: (credentials: Credentials) => HttpAgent; close: () => void } {
  let current: { readonly key: string; readonly agent: HttpAgent } | undefined;
  return {
    agentFor: ({ ca, cert, key }) => {
      const identity = JSON.stringify([ca, cert, key]);
      if (current?.key === identity) return current.agent;
      current?.agent.destroy();
      const options = { keepAlive: true, maxSockets, scheduling: 'lifo' as const };
      const agent = secure
        ? new HttpsAgent({
            ...options,
            minVersion: 'TLSv1.2',
            ...(ca ? { ca } : {}),
            ...(cert ? { cert } : {}),
            ...(key ? { key } : {}),
          })
        : new HttpAgent(options);
      current = { key: identity, agent };
      return agent;
    },
    close: () => current?.agent.destroy(),
  };
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

function decode(wanted: KubeRequest, answer: IncomingMessage, text: string): JsonObject {
  const status = answer.statusCode ?? 0;
  const value = parse(text);
  if (status >= 200 && status < 300) {
    if (isObject(value)) return value;
    throw failure('server-error', wanted, `an answer that is no JSON object (HTTP ${status})`, undefined, status);
  }
  const said = (isObject(value) ? value : {}) as ServerStatus;
  const wait = Number(answer.headers['retry-after'] ?? said.details?.retryAfterSeconds);
  throw new KubeError(codeOf(status, said), {
    at: `${wanted.method} ${wanted.path}`,
    says: said.message ?? `HTTP ${status} ${text.slice(0, 200).trim()}`,
    status,
    causes: said.details?.causes ?? [],
    ...(Number.isFinite(wait) ? { retryAfter: wait } : {}),
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
