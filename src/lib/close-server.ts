import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';

/** Ends a server: idle connections at once, those with a request after `grace` milliseconds. Resolves when all are closed. */
export async function closeServer(server: Server | TlsServer, grace: number): Promise<void> {
  if (!server.listening) return;
  const timer = setTimeout(() => {
    server.closeAllConnections();
  }, grace);
  await new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeIdleConnections();
  });
  clearTimeout(timer);
}
