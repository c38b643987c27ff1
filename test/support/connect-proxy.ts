import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** An HTTP proxy that opens tunnels to the loopback. */
export interface ConnectProxy {
  readonly port: number;
  /** Targets and headers of the requests so far. */
  readonly seen: readonly { readonly target: string; readonly headers: IncomingHttpHeaders }[];
  readonly close: () => Promise<void>;
}

/** `status` other than 200 refuses each tunnel. */
export async function connectProxy(status = 200): Promise<ConnectProxy> {
  const seen: { target: string; headers: IncomingHttpHeaders }[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((_, response) => response.writeHead(405).end());
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.on('connect', ({ url = '', headers }: IncomingMessage, client: Socket) => {
    seen.push({ target: url, headers });
    client.on('error', () => undefined);
    if (status !== 200) {
      client.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const port = Number(url.split(':').at(-1));
    const upstream = connect(port, url.startsWith('[') ? '::1' : '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(client).pipe(upstream);
    });
    sockets.add(upstream);
    upstream.on('error', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
