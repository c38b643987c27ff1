import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { open, readdir, rename, rm, utimes } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import path from 'node:path';
import type { Digest } from '../lib/sha256.js';
import { publisherBounds } from '../source/protocol.js';
import { isCode, openFolder, syncFolder } from './durable.js';
import { Refusal } from './refusal.js';

export interface StoreLimits {
  /** Of all artifacts, those being made included. */
  readonly bytes: number;
  /** Of one artifact. */
  readonly artifact: number;
  /** Milliseconds that an artifact stays after an answer named it. */
  readonly retention: number;
}

export const usualStoreLimits: StoreLimits = {
  bytes: 1024 * 1024 * 1024,
  artifact: publisherBounds.artifact,
  retention: 15 * 60_000,
};

export interface StoredReference {
  readonly digest: Digest;
  readonly sizeBytes: number;
}

interface Stored {
  readonly size: number;
  /** When it was last named or read; milliseconds since 1970. */
  usedAt: number;
}

/** Room for one artifact that is being made. */
export interface Reservation {
  /** The file that the archive is written to. It does not exist yet. */
  readonly target: string;
  /** Takes the file in, if it has the digest and the size of `reference`. Throws {@link Refusal} `workspace_archive_failed`. */
  readonly admit: (reference: StoredReference) => Promise<void>;
  /** Removes the file unless it was taken in. */
  readonly release: () => Promise<void>;
}

/** Artifacts by their digest. None can be read before its bytes were hashed. The time of a file is that of its last use. */
export class ArtifactStore {
  readonly #objects: string;
  readonly #unfinished: string;
  readonly #limits: StoreLimits;
  readonly #clock: () => number;
  readonly #stored = new Map<string, Stored>();
  #bytes = 0;
  #reserved = 0;

  private constructor(folder: string, limits: StoreLimits, clock: () => number) {
    this.#objects = path.join(folder, 'objects');
    this.#unfinished = path.join(folder, 'tmp');
    this.#limits = limits;
    this.#clock = clock;
  }

  static async open(
    folder: string,
    { limits = usualStoreLimits, clock = Date.now }: { readonly limits?: StoreLimits; readonly clock?: () => number } = {},
  ): Promise<ArtifactStore> {
    const store = new ArtifactStore(folder, limits, clock);
    for (const one of [folder, store.#objects, store.#unfinished]) await openFolder(one);
    for (const name of await readdir(store.#unfinished)) await rm(path.join(store.#unfinished, name), { recursive: true });
    for (const name of await readdir(store.#objects)) await store.#load(name);
    await store.#makeRoom().catch(() => undefined);
    return store;
  }

  get size(): { readonly artifacts: number; readonly bytes: number } {
    return { artifacts: this.#stored.size, bytes: this.#bytes };
  }

  /** Throws {@link Refusal} `storage_full` when nothing may go that would make room. */
  async reserve(): Promise<Reservation> {
    const { artifact } = this.#limits;
    this.#reserved += artifact;
    try {
      await this.#makeRoom();
    } catch (error) {
      this.#reserved -= artifact;
      throw error;
    }
    const target = path.join(this.#unfinished, randomBytes(16).toString('hex'));
    let isHeld = true;
    return {
      target,
      admit: (reference) => this.#admit(target, reference),
      release: async () => {
        if (isHeld) this.#reserved -= artifact;
        isHeld = false;
        await rm(target, { force: true, recursive: true });
      },
    };
  }

  /** Keeps an artifact from now on for its time; `false` = it is not there. */
  async keep({ digest, sizeBytes }: StoredReference): Promise<boolean> {
    const hex = hexOf(digest);
    const found = this.#stored.get(hex);
    if (found?.size !== sizeBytes) return false;
    await this.#use(hex, found);
    return this.#stored.has(hex);
  }

  /** A file to read, which the caller closes; `undefined` = it is not there. */
  async read({ digest, sizeBytes }: StoredReference): Promise<FileHandle | undefined> {
    const hex = hexOf(digest);
    const found = this.#stored.get(hex);
    if (found?.size !== sizeBytes) return undefined;
    const file = await open(path.join(this.#objects, hex), constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => undefined);
    const size = await file?.stat().then((known) => (known.isFile() ? known.size : -1));
    if (file && size === found.size) {
      await this.#use(hex, found);
      return file;
    }
    await file?.close();
    await this.drop(digest);
    return undefined;
  }

  /** Removes an artifact whose bytes are wrong. */
  async drop(digest: Digest): Promise<void> {
    await this.#remove(hexOf(digest));
  }

  async #admit(target: string, { digest, sizeBytes }: StoredReference): Promise<void> {
    const found = await hashed(target, this.#limits.artifact);
    if (found?.digest !== digest || found.size !== sizeBytes) throw new Refusal('workspace_archive_failed');
    const hex = hexOf(digest);
    await rename(target, path.join(this.#objects, hex));
    await syncFolder(this.#objects);
    this.#forget(hex);
    const stored = { size: sizeBytes, usedAt: this.#clock() };
    this.#stored.set(hex, stored);
    this.#bytes += sizeBytes;
    await this.#use(hex, stored);
  }

  async #load(hex: string): Promise<void> {
    const file = path.join(this.#objects, hex);
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined);
    const found = await handle?.stat();
    await handle?.close();
    if (!found?.isFile() || !/^[0-9a-f]{64}$/.test(hex)) {
      await rm(file, { force: true, recursive: true });
      return;
    }
    this.#stored.set(hex, { size: found.size, usedAt: Math.min(found.mtimeMs, this.#clock()) });
    this.#bytes += found.size;
  }

  async #use(hex: string, stored: Stored): Promise<void> {
    stored.usedAt = this.#clock();
    const at = stored.usedAt / 1000;
    await utimes(path.join(this.#objects, hex), at, at).catch((error: unknown) => {
      if (!isCode(error, 'ENOENT')) throw error;
      this.#forget(hex);
    });
  }

  /** Removes what was used least recently, and not within its time. */
  async #makeRoom(): Promise<void> {
    const free = this.#clock() - this.#limits.retention;
    while (this.#bytes + this.#reserved > this.#limits.bytes) {
      const [oldest] = [...this.#stored].filter(([, { usedAt }]) => usedAt < free).sort(([, a], [, b]) => a.usedAt - b.usedAt);
      if (!oldest) throw new Refusal('storage_full');
      await this.#remove(oldest[0]);
    }
  }

  async #remove(hex: string): Promise<void> {
    this.#forget(hex);
    await rm(path.join(this.#objects, hex), { force: true });
  }

  #forget(hex: string): void {
    this.#bytes -= this.#stored.get(hex)?.size ?? 0;
    this.#stored.delete(hex);
  }
}

const hexOf = (digest: Digest): string => digest.slice('sha256:'.length);

/** Size and digest of a regular file, read through one buffer; `undefined` for everything else. */
async function hashed(file: string, limit: number): Promise<{ readonly digest: Digest; readonly size: number } | undefined> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined);
  if (!handle) return undefined;
  try {
    const found = await handle.stat();
    if (!found.isFile() || found.size > limit) return undefined;
    const hash = createHash('sha256');
    const buffer = Buffer.allocUnsafeSlow(256 * 1024);
    let size = 0;
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, size);
      if (bytesRead === 0) break;
      hash.update(buffer.subarray(0, bytesRead));
      size += bytesRead;
    }
    return { digest: `sha256:${hash.digest('hex')}`, size };
  } finally {
    await handle.close();
  }
}
