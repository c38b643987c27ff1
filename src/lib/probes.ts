import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CodedError } from './errors.js';
import { systemWords } from './system-words.js';

export interface ProbesOptions {
  /** The process that opens the port, for its error. @default 'controller' */
  readonly at?: string;
  /** On all addresses of the Pod. 0 takes any that is free. */
  readonly port: number;
  /** Whether the process can do its part; a standby can. */
  readonly ready: () => boolean;
  /** What keeps a part of the work from being done, one line each. @default nothing */
  readonly notes?: () => readonly string[];
  readonly metrics: { readonly expose: () => Promise<{ readonly contentType: string; readonly text: string }> };
}

/** An open port with `/healthz`, `/readyz` and `/metrics`. */
export interface Probes {
  readonly port: number;
  /** Ends connections too, also those in use. May be called often. */
  readonly close: () => Promise<void>;
}

/** The port cannot be opened. */
export class ProbesError extends CodedError<'port-unusable'> {}

interface Answer {
  readonly status: number;
  readonly contentType?: string;
  readonly text: string;
}

/**
 * Answers the kubelet and a scraper: `/healthz` says that the event loop turns, `/readyz` what `ready` and `notes` say, `/metrics` all series.
 * Everything else is 404. Nothing that a request brings is read.
 */
export async function startProbes({ at = 'controller', port, ready, notes = () => [], metrics }: ProbesOptions): Promise<Probes> {
  const answers: Readonly<Record<string, () => Answer | Promise<Answer>>> = {
    '/healthz': () => ({ status: 200, text: 'ok\n' }),
    '/readyz': () => {
      const isReady = ready();
      return { status: isReady ? 200 : 503, text: [isReady ? 'ok' : 'not ready', ...notes(), ''].join('\n') };
    },
    '/metrics': async () => ({ status: 200, ...(await metrics.expose()) }),
  };

  async function answer({ method, url = '' }: IncomingMessage): Promise<Answer> {
    const [path = ''] = url.split('?');
    const known = method === 'GET' && Object.hasOwn(answers, path) ? answers[path] : undefined;
    try {
      return (await known?.()) ?? { status: 404, text: 'not found\n' };
    } catch {
      return { status: 500, text: 'failed\n' };
    }
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, contentType = 'text/plain; charset=utf-8', text } = await answer(request);
    response.writeHead(status, {
      'content-type': contentType,
      'content-length': Buffer.byteLength(text),
      'cache-control': 'no-store',
    });
    response.end(text);
  }

  const server = createServer(
    { maxHeaderSize: 8 * 1024, headersTimeout: 5_000, requestTimeout: 10_000, keepAliveTimeout: 30_000 },
    (request, response) => {
      void respond(request, response);
    },
  );
  server.maxConnections = 100;
  await new Promise<void>((resolve, reject) => {
    server.on('error', (cause: NodeJS.ErrnoException) => {
      reject(
        new ProbesError(
          'port-unusable',
          {
            at,
            field: '--probe-port',
            found: port,
            says: systemWords(cause),
            allowed: 'a free port',
          },
          { cause },
        ),
      );
    });
    server.listen(port, resolve);
  });
  let closed: Promise<void> | undefined;
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      (closed ??= new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      })),
  };
}
