import { Agent, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { HarnessError } from './errors.js';
import type { WriteEvidence } from './errors.js';

export interface HttpCall {
  readonly method: 'GET' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | undefined;
  /** Over a connection of its own: only there is it certain that nothing was written before it stood. @default false */
  readonly fresh?: boolean;
  /** Milliseconds until the head of the answer must be there. */
  readonly timeout: number;
  readonly signal?: AbortSignal | undefined;
}

/** An answer whose body is still to be read. */
export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: IncomingMessage;
  /** Ends the connection; whoever reads the body sees an error. */
  readonly abort: () => void;
  readonly evidence: () => WriteEvidence;
}

export interface HttpTransport {
  readonly call: (call: HttpCall) => Promise<HttpAnswer>;
  readonly close: () => void;
}

/**
 * Plain HTTP to one supervisor: no redirects (node:http follows none), no proxy from the environment, nothing repeated.
 * A failure tells whether anything can have reached the other side. `baseUrl` like `http://10.0.0.7:8080`.
 */
export function createTransport(baseUrl: string): HttpTransport {
  const base = parseBase(baseUrl);
  const agent = new Agent({ keepAlive: true, maxSockets: 8, keepAliveMsecs: 5_000 });

  function call(wanted: HttpCall): Promise<HttpAnswer> {
    const at = `${wanted.method} ${wanted.path}`;
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest({
        method: wanted.method,
        host: base.hostname.replace(/^\[(.*)\]$/, '$1'),
        port: base.port === '' ? 80 : base.port,
        path: wanted.path,
        agent: wanted.fresh ? false : agent,
        headers: {
          'accept-encoding': 'identity',
          ...wanted.headers,
          ...(wanted.body === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(wanted.body) }),
        },
      });
      const evidence = traceOf(outgoing);
      const stop = (kind: 'timeout' | 'aborted', says: string) => {
        outgoing.destroy(new HarnessError(kind, { at, says, evidence: evidence() }));
      };
      const timer = setTimeout(() => {
        stop('timeout', `no answer within ${wanted.timeout} ms`);
      }, wanted.timeout);
      const abort = () => {
        stop('aborted', 'the caller gave up');
      };
      if (wanted.signal?.aborted) abort();
      wanted.signal?.addEventListener('abort', abort, { once: true });
      outgoing.once('response', (answer) => {
        clearTimeout(timer);
        answer.once('close', () => wanted.signal?.removeEventListener('abort', abort));
        resolve({
          status: answer.statusCode ?? 0,
          contentType: (answer.headers['content-type'] ?? '').split(';')[0]?.trim() ?? '',
          body: answer,
          abort: () => outgoing.destroy(),
          evidence,
        });
      });
      outgoing.once('error', (error) => {
        clearTimeout(timer);
        wanted.signal?.removeEventListener('abort', abort);
        const known = error instanceof HarnessError;
        reject(
          known ? error : new HarnessError('transport', { at, says: error.message, evidence: evidence() }, { cause: error }),
        );
      });
      outgoing.end(wanted.body);
    });
  }

  return {
    call,
    close: () => {
      agent.destroy();
    },
  };
}

/**
 * What the socket proves. Before a new connection stands nothing can have been written; on a reused one, and from then on, anything may.
 */
function traceOf(outgoing: ClientRequest): () => WriteEvidence {
  let connected = false;
  let finished = false;
  outgoing.once('socket', (socket) => {
    if (socket.connecting) socket.once('connect', () => (connected = true));
    else connected = true;
  });
  outgoing.once('finish', () => (finished = true));
  return () => {
    if (!connected) return 'zero_bytes_written';
    return finished ? 'request_written' : 'request_write_ambiguous';
  };
}

function parseBase(baseUrl: string): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  const plain =
    url?.protocol === 'http:' && url.username === '' && url.password === '' && url.pathname === '/' && url.search === '';
  if (url && plain) return url;
  throw new HarnessError('configuration', {
    at: 'harness client',
    says: 'the base URL is not http://host:port',
    evidence: 'zero_bytes_written',
  });
}

/** A body as a whole. Throws {@link HarnessError} `protocol` for one that is longer than `limit` bytes, or that breaks off. */
export async function readBody(answer: HttpAnswer, at: string, limit: number, timeout: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  const timer = setTimeout(answer.abort, timeout);
  try {
    for await (const part of answer.body as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > limit) {
        answer.abort();
        throw new HarnessError('protocol', {
          at,
          says: `the answer has more than ${limit} bytes`,
          evidence: 'request_written',
          status: answer.status,
        });
      }
      parts.push(part);
    }
  } catch (error) {
    if (error instanceof HarnessError) throw error;
    const says = error instanceof Error ? error.message : String(error);
    throw new HarnessError('transport', { at, says, evidence: 'request_written', status: answer.status }, { cause: error });
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(parts);
}
