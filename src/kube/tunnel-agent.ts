import { request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { AgentOptions, RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';

/** Milliseconds until a proxy has opened the way. An abort of the request is noticed after that at the latest. */
const openWithin = 10_000;

type Callback = (error: Error | null, stream: Duplex) => void;

/** TLS to servers through an HTTP proxy, which sees no byte inside it. Source: RFC 9110 §9.3.6. */
export class TunnelAgent extends Agent {
  readonly #proxy: URL;

  constructor(options: AgentOptions, proxy: string) {
    super(options);
    this.#proxy = new URL(proxy);
  }

  override createConnection(options: RequestOptions, callback?: Callback): undefined {
    this.#open(options).then(
      (socket) => callback?.(null, socket),
      (error: unknown) => callback?.(error as Error, undefined as never),
    );
  }

  /** Rejects also for certificates and keys that cannot be read, which TLS throws at once. */
  async #open(options: RequestOptions): Promise<Duplex> {
    const socket = await openTunnel(this.#proxy, options);
    const through: RequestOptions & { readonly socket: Duplex } = { ...options, socket };
    try {
      // With options alone the agent makes its socket at once.
      return super.createConnection(through) ?? socket.destroy();
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }
}

function openTunnel(proxy: URL, { host, port }: RequestOptions): Promise<Duplex> {
  const target = `${host?.includes(':') ? `[${host}]` : (host ?? '')}:${port ?? 443}`;
  const at = `proxy ${proxy.host}`;
  return new Promise((resolve, reject) => {
    const outgoing = connectRequest(proxy, target);
    const timer = setTimeout(() => outgoing.destroy(new Error(`${at}: no answer within ${openWithin} ms`)), openWithin);
    outgoing.once('connect', ({ statusCode = 0 }: IncomingMessage, socket: Duplex, head: Buffer) => {
      clearTimeout(timer);
      // A server speaks after its client in TLS: bytes before that are the proxy's.
      if (statusCode === 200 && head.length === 0) resolve(socket);
      else {
        socket.destroy();
        reject(new Error(`${at}: found HTTP ${statusCode} for CONNECT ${target}, allowed: HTTP 200`));
      }
    });
    outgoing.once('error', (error) => {
      clearTimeout(timer);
      reject(error.message.startsWith(at) ? error : new Error(`${at}: ${error.message}`, { cause: error }));
    });
    outgoing.end();
  });
}

function connectRequest(proxy: URL, target: string): ClientRequest {
  const user = [proxy.username, proxy.password].map(decodeURIComponent).join(':');
  const secure = proxy.protocol === 'https:';
  return (secure ? httpsRequest : httpRequest)({
    method: 'CONNECT',
    host: proxy.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: proxy.port === '' ? (secure ? 443 : 80) : proxy.port,
    path: target,
    agent: false,
    headers: {
      host: target,
      ...(user === ':' ? {} : { 'proxy-authorization': `Basic ${Buffer.from(user).toString('base64')}` }),
    },
  });
}
