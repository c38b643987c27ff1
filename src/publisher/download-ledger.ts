import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { canonicalJson } from '../lib/canonical-json.js';
import { decodeText, digest, integer, record, WireError } from '../lib/decode.js';
import type { Decoded } from '../lib/decode.js';
import { sha256Hex } from '../lib/sha256.js';
import type { Digest } from '../lib/sha256.js';
import { operationId } from '../source/messages.js';
import { publisherBounds } from '../source/protocol.js';
import { openFolder, readWhole, writeDurably } from './durable.js';

const ledgerEntry = record({
  operationID: operationId,
  requestDigest: digest,
  /** Milliseconds since 1970. */ expiresAt: integer(0),
});
type LedgerEntry = Decoded<typeof ledgerEntry>;

/** `full`: too many downloads that could still be repeated. */
export type Spending = 'first' | 'replayed' | 'conflict' | 'full';

/** Which downloads took place, for as long as their capabilities are valid. Survives restarts. Source: repository.md §4.1. */
export class DownloadLedger {
  readonly #folder: string;
  readonly #most: number;
  readonly #clock: () => number;
  /** Without a digest: the file is not as it was written, so no request is known to be the same. */
  readonly #spent = new Map<string, { readonly requestDigest?: Digest; readonly expiresAt: number }>();

  private constructor(folder: string, most: number, clock: () => number) {
    this.#folder = folder;
    this.#most = most;
    this.#clock = clock;
  }

  static async open(
    folder: string,
    { most = 10_000, clock = Date.now }: { readonly most?: number; readonly clock?: () => number } = {},
  ): Promise<DownloadLedger> {
    await openFolder(folder);
    const ledger = new DownloadLedger(folder, most, clock);
    for (const name of await readdir(folder)) await ledger.#load(name);
    await ledger.prune();
    return ledger;
  }

  get size(): number {
    return this.#spent.size;
  }

  /** Uses a capability up. A download begins only after `first`. A second call sees the first one, even before that is written. */
  async spend(entry: LedgerEntry): Promise<Spending> {
    const name = nameOf(entry.operationID);
    const found = this.#spent.get(name);
    if (found) return found.requestDigest === entry.requestDigest || !found.requestDigest ? 'replayed' : 'conflict';
    if (this.#spent.size >= this.#most) await this.prune();
    if (this.#spent.has(name)) return 'replayed';
    if (this.#spent.size >= this.#most) return 'full';
    this.#spent.set(name, entry);
    await writeDurably(this.#folder, name, canonicalJson({ ...entry }));
    return 'first';
  }

  /** Forgets downloads whose capabilities have expired. */
  async prune(): Promise<void> {
    const now = this.#clock() - publisherBounds.clockSkew;
    for (const [name, { expiresAt }] of [...this.#spent]) {
      if (expiresAt > now) continue;
      this.#spent.delete(name);
      await rm(path.join(this.#folder, name), { force: true, recursive: true });
    }
  }

  async #load(name: string): Promise<void> {
    const content = await readWhole(path.join(this.#folder, name), 4096);
    const entry = content === undefined ? undefined : intact(content);
    if (entry && nameOf(entry.operationID) === name) {
      this.#spent.set(name, entry);
      return;
    }
    const { mtimeMs } = await stat(path.join(this.#folder, name)).catch(() => ({ mtimeMs: 0 }));
    this.#spent.set(name, { expiresAt: mtimeMs + publisherBounds.longestCapabilityLife });
  }
}

const nameOf = (id: string): string => `${sha256Hex(`download\0${id}`)}.json`;

function intact(content: string): LedgerEntry | undefined {
  try {
    return decodeText(ledgerEntry, content);
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}
