import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { CodedError } from '../lib/errors.js';
import { systemWords } from '../lib/system-words.js';

/** A port cannot be opened. */
class PortError extends CodedError<'port-unusable'> {}

const always = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'",
  'x-content-type-options': 'nosniff',
} as const;

/** One answer as a whole. A request whose body was not read ends its connection. */
export function sendJson(request: IncomingMessage, response: ServerResponse, status: number, body: string): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  if (!request.complete) response.setHeader('connection', 'close');
  response.writeHead(status, { ...always, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

/** The one value of a header; `undefined` when it is absent or stands there twice. */
export function headerOf(request: IncomingMessage, name: string): string | undefined {
  const found = request.headersDistinct[name];
  return found?.length === 1 ? found[0] : undefined;
}

/** Opens a port on all addresses; 0 takes any that is free. */
export async function listen(server: Server | TlsServer, field: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const finding = { at: 'publisher', field, found: port, says: systemWords(cause), allowed: 'a free port' };
      reject(new PortError('port-unusable', finding, { cause }));
    });
    server.listen(port, resolve);
  });
  return (server.address() as AddressInfo).port;
}
