import { createHash, randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { createServer } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import { connect, isIP } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import { mayConnect } from './addresses.js';
import { portOf } from './forge.js';
import type { Forge } from './forge.js';

/** Why a tunnel was not opened or did not last. */
export type EgressRefusal =
  'host-not-allowed' | 'address-refused' | 'name-unknown' | 'unreachable' | 'busy' | 'too-many-bytes' | 'too-long';

/** All addresses of a host. */
export type ResolveHost = (host: string) => Promise<readonly string[]>;

export interface EgressLimits {
  readonly tunnels: number;
  /** Of one tunnel, both directions together. */
  readonly bytes: number;
  /** Milliseconds. */
  readonly resolve: number;
  readonly connect: number;
  readonly tunnel: number;
}

/** Source: repository.md §5.2. */
const defaultLimits: EgressLimits = {
  tunnels: 8,
  bytes: 1024 * 1024 * 1024,
  resolve: 5_000,
  connect: 10_000,
  tunnel: 600_000,
};
const headerBytes = 32 * 1024;
const headerTime = 10_000;

/** The right of one operation to reach one forge. */
export interface EgressPass {
  /** For git's `http.proxy`; holds the pass's own credential. */
  readonly proxy: string;
  /** The first refusal that the operation met. */
  readonly refusal: () => EgressRefusal | undefined;
  /** Takes the right away and ends its tunnels. */
  readonly revoke: () => void;
}

interface Right {
  readonly forge: Forge;
  readonly sockets: Set<Duplex>;
  refusal: EgressRefusal | undefined;
}

class Refused extends Error {
  readonly refusal: EgressRefusal;
  constructor(refusal: EgressRefusal) {
    super(refusal);
    this.refusal = refusal;
  }
}

const lookUp: ResolveHost = async (host) => (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);
const user = 'orka-publisher';
const keyOf = (authorization: string): string => createHash('sha256').update(authorization).digest('hex');

/** The only way from git to the network: a proxy on the loopback that opens tunnels to listed forges at addresses it has checked. */
export class EgressProxy {
  readonly #server: Server;
  readonly #rights = new Map<string, Right>();
  readonly #sockets = new Set<Duplex>();
  readonly #limits: EgressLimits;
  readonly #resolve: ResolveHost;
  #tunnels = 0;

  private constructor(limits: EgressLimits, resolve: ResolveHost) {
    this.#limits = limits;
    this.#resolve = resolve;
    this.#server = createServer({ maxHeaderSize: headerBytes, headersTimeout: headerTime, keepAlive: false }, (_, response) => {
      response.writeHead(405, { connection: 'close' }).end();
    });
    this.#server.on('connection', (socket) => track(socket, this.#sockets));
    this.#server.on('connect', (request, client, head) => void this.#connect(request, client, head));
  }

  static async start(options: { limits?: Partial<EgressLimits>; resolve?: ResolveHost } = {}): Promise<EgressProxy> {
    const proxy = new EgressProxy({ ...defaultLimits, ...options.limits }, options.resolve ?? lookUp);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject);
      proxy.#server.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  /** Makes a pass. Its credential opens tunnels to this forge and no other. */
  admit(forge: Forge): EgressPass {
    const password = randomBytes(32).toString('base64url');
    const key = keyOf(`Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`);
    const right: Right = { forge, sockets: new Set(), refusal: undefined };
    this.#rights.set(key, right);
    const { port } = this.#server.address() as AddressInfo;
    return {
      proxy: `http://${user}:${password}@127.0.0.1:${port}`,
      refusal: () => right.refusal,
      revoke: () => {
        this.#rights.delete(key);
        for (const socket of right.sockets) socket.destroy();
      },
    };
  }

  async close(): Promise<void> {
    this.#rights.clear();
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #connect(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    client.on('error', () => client.destroy());
    const right = this.#rights.get(keyOf(request.headers['proxy-authorization'] ?? ''));
    if (!right) {
      client.end(
        'HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic realm="egress"\r\ncontent-length: 0\r\n\r\n',
      );
      return;
    }
    track(client, right.sockets);
    try {
      if (request.url !== targetOf(right.forge)) throw new Refused('host-not-allowed');
      if (this.#tunnels >= this.#limits.tunnels) throw new Refused('busy');
      this.#tunnels++;
      client.once('close', () => this.#tunnels--);
      const upstream = await this.#reach(right.forge, client);
      track(upstream, right.sockets);
      track(upstream, this.#sockets);
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      if (head.length > 0) upstream.write(head);
      this.#join(client, upstream, right);
    } catch (error) {
      right.refusal ??= error instanceof Refused ? error.refusal : 'unreachable';
      client.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n');
    }
  }

  /** Resolves once, refuses when any address is refused, and connects to a checked address. */
  async #reach(forge: Forge, client: Duplex): Promise<Socket> {
    const { resolve, connect: patience } = this.#limits;
    const addresses =
      isIP(forge.host) === 0
        ? await within(resolve, 'name-unknown', this.#resolve(forge.host)).catch(() => {
            throw new Refused('name-unknown');
          })
        : [forge.host];
    if (addresses.length === 0) throw new Refused('name-unknown');
    if (!addresses.every((address) => mayConnect(forge, address))) throw new Refused('address-refused');
    const end = performance.now() + patience;
    for (const address of addresses) {
      if (client.destroyed) break;
      const left = end - performance.now();
      const socket = left > 0 ? await open(address, portOf(forge), left) : undefined;
      if (socket) return checkedPeer(socket, address, forge);
    }
    throw new Refused('unreachable');
  }

  #join(client: Duplex, upstream: Socket, right: Right): void {
    const { bytes, tunnel } = this.#limits;
    let carried = 0;
    const end = (refusal?: EgressRefusal): void => {
      if (refusal) right.refusal ??= refusal;
      client.destroy();
      upstream.destroy();
    };
    const clock = setTimeout(() => end('too-long'), tunnel);
    const count = (chunk: Buffer): void => {
      carried += chunk.length;
      if (carried > bytes) end('too-many-bytes');
    };
    for (const stream of [client, upstream]) {
      stream.on('data', count);
      stream.on('error', () => end());
      stream.on('close', () => {
        clearTimeout(clock);
        end();
      });
    }
    client.pipe(upstream);
    upstream.pipe(client);
  }
}

const targetOf = (forge: Forge): string => `${isIP(forge.host) === 6 ? `[${forge.host}]` : forge.host}:${portOf(forge)}`;

function track(socket: Duplex, sockets: Set<Duplex>): void {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
}

async function within<T>(milliseconds: number, refusal: EgressRefusal, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Refused(refusal)), milliseconds);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** A connection to exactly this address; `undefined` = there is none in time. */
function open(address: string, port: number, milliseconds: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, allowHalfOpen: true });
    const done = (result: Socket | undefined): void => {
      clearTimeout(timer);
      if (!result) socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => done(undefined), milliseconds);
    socket.once('error', () => done(undefined));
    socket.once('connect', () => done(socket));
  });
}

function checkedPeer(socket: Socket, address: string, forge: Forge): Socket {
  const peer = socket.remoteAddress ?? '';
  if (mayConnect(forge, peer) && sameAddress(peer, address)) return socket;
  socket.destroy();
  throw new Refused('address-refused');
}

/** IPv6 has several spellings of one address; a URL has one. */
const sameAddress = (one: string, other: string): boolean => one === other || urlHost(one) === urlHost(other);
const urlHost = (address: string): string => new URL(`http://${isIP(address) === 6 ? `[${address}]` : address}/`).hostname;
