import { createSocket } from 'node:dgram';
import type { Socket as UdpSocket } from 'node:dgram';
import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { run } from '../run.js';

/** DNS that runs with the network of the node, as NodeLocal DNSCache does: no Pod, and addresses of the node. */
export interface HostDns {
  readonly close: () => Promise<void>;
}

/** What every name resolves to. */
export const answerAddress = '192.0.2.53';

/** Needs access to the node. Each address answers on port 53, UDP and TCP, and takes connections on the other `ports`. */
export async function hostDns(link: string, addresses: readonly string[], ports: readonly number[] = []): Promise<HostDns> {
  const remove = () => run('ip', ['link', 'del', link]).catch(() => undefined);
  await remove();
  await run('ip', ['link', 'add', link, 'type', 'bridge']);
  for (const address of addresses) await run('ip', ['address', 'add', `${address}/32`, 'dev', link]);
  await run('ip', ['link', 'set', link, 'up']);
  const udp = await Promise.all(addresses.map(resolver));
  const tcp = await Promise.all(addresses.flatMap((address) => [53, ...ports].map((port) => listener(address, port))));
  return {
    close: async () => {
      for (const socket of udp) socket.close();
      for (const server of tcp) server.close();
      await remove();
    },
  };
}

function resolver(address: string): Promise<UdpSocket> {
  const socket = createSocket('udp4');
  socket.on('message', (query, { port, address: client }) => socket.send(answerTo(query), port, client));
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(53, address, () => resolve(socket));
  });
}

function listener(address: string, port: number): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).resume());
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, address, () => resolve(server));
  });
}

/** The question, and one A record for it. Source: RFC 1035 §4.1. */
function answerTo(query: Buffer): Buffer {
  let end = 12;
  while ((query[end] ?? 0) > 0) end += (query[end] ?? 0) + 1;
  const question = query.subarray(12, end + 5);
  const head = Buffer.from([query[0] ?? 0, query[1] ?? 0, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...answerAddress.split('.').map(Number)]);
  return Buffer.concat([head, question, record]);
}
