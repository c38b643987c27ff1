/** Bounds on the connections of servers that agents reach: descriptors are shared by all who are served. */
import { BlockList, isIPv4 } from 'node:net';
import type { Server, Socket } from 'node:net';
import { networkInterfaces } from 'node:os';

/** Limits of every server here. A connection without a request counts as one whose header is late. Milliseconds and bytes. */
export const serverLimits = {
  maxHeaderSize: 32 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 5_000,
  // Finds peers that vanished without a word, as on a node that died.
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
} as const;

/** Connections that may be open at once. */
export interface PeerBounds {
  /** From this Pod itself, whose addresses are one peer. */
  readonly local: number;
  /** From one address elsewhere. */
  readonly perPeer: number;
  /** From all addresses elsewhere. */
  readonly remote: number;
}

/** Far more than a controller and the probes of a node need. */
export const usualPeerBounds: PeerBounds = { local: 32, perPeer: 64, remote: 256 };

/**
 * Closes connections beyond the bounds as they come. The Pod's own connections have a bound of their own, so that agents cannot take
 * a connection away from the controller. `isLocal` tells the addresses of this Pod.
 */
export function boundPeers(
  server: Server,
  bounds: PeerBounds = usualPeerBounds,
  isLocal: (address: string) => boolean = isOwnAddress,
): void {
  const open = new Map<string, number>();
  let remote = 0;

  function takes(peer: string): boolean {
    const here = open.get(peer) ?? 0;
    return peer === localPeer ? here < bounds.local : here < bounds.perPeer && remote < bounds.remote;
  }

  function count(peer: string, change: 1 | -1): void {
    const now = (open.get(peer) ?? 0) + change;
    if (now === 0) open.delete(peer);
    else open.set(peer, now);
    if (peer !== localPeer) remote += change;
  }

  server.prependListener('connection', (socket: Socket) => {
    const address = socket.remoteAddress;
    const peer = address === undefined || isLocal(address) ? localPeer : address;
    if (!takes(peer)) {
      socket.destroy();
      return;
    }
    count(peer, 1);
    socket.once('close', () => {
      count(peer, -1);
    });
  });
}

const localPeer = 'local';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether an address is one of this network namespace: loopback, or of an interface. */
export function isOwnAddress(address: string): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  if (loopback.check(plain, isIPv4(plain) ? 'ipv4' : 'ipv6')) return true;
  return Object.values(networkInterfaces()).some((list) => list?.some((one) => one.address === plain));
}

/** Turns of the event loop: one takes a new connection into the next poll, and in that one its bytes are read. */
const readAfter = 2;

/**
 * Connections of a server whose clients prove who they are with their first request. One that has proven nothing gives way to newer
 * ones once its bytes were read, so that silent connections keep nobody out; each owner has its own bound.
 */
export class OwnedConnections {
  readonly #mostUnproven: number;
  readonly #mostPerOwner: number;
  /** Oldest first, with the turn in which they came. */
  readonly #unproven = new Map<Socket, number>();
  readonly #owned = new Map<string, Set<Socket>>();
  readonly #claimed = new WeakSet<Socket>();
  /** Counted only while there are too many. */
  #turn = 0;
  #sweeping = false;

  constructor({ unproven, perOwner }: { readonly unproven: number; readonly perOwner: number }) {
    this.#mostUnproven = unproven;
    this.#mostPerOwner = perOwner;
  }

  guard(server: Server): void {
    server.prependListener('connection', (socket: Socket) => {
      // More than can come in a turn of honest clients: descriptors are shared by every session.
      if (this.#unproven.size >= 4 * this.#mostUnproven) {
        socket.destroy();
        return;
      }
      this.#unproven.set(socket, this.#turn);
      socket.once('close', () => this.#unproven.delete(socket));
      this.#sweepLater();
    });
  }

  #sweepLater(): void {
    if (this.#sweeping || this.#unproven.size <= this.#mostUnproven) return;
    this.#sweeping = true;
    setImmediate(() => {
      this.#sweeping = false;
      this.#turn++;
      this.#sweep();
      this.#sweepLater();
    });
  }

  #sweep(): void {
    for (const [oldest, came] of this.#unproven) {
      if (this.#unproven.size <= this.#mostUnproven || this.#turn - came < readAfter) return;
      this.#unproven.delete(oldest);
      oldest.destroy();
    }
  }

  /** Counts a connection as one of the owner that first claims it; `false` = that owner has as many as it may have. */
  claim(socket: Socket, owner: string): boolean {
    if (this.#claimed.has(socket)) return true;
    const own = this.#owned.get(owner) ?? new Set<Socket>();
    if (own.size >= this.#mostPerOwner || !this.#unproven.delete(socket)) return false;
    this.#claimed.add(socket);
    this.#owned.set(owner, own.add(socket));
    socket.once('close', () => {
      own.delete(socket);
      if (own.size === 0 && this.#owned.get(owner) === own) this.#owned.delete(owner);
    });
    return true;
  }

  /** Ends the connections of an owner. */
  end(owner: string): void {
    for (const socket of [...(this.#owned.get(owner) ?? [])]) socket.destroy();
  }
}
