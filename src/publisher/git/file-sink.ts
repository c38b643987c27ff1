import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

import type { Digest } from '../../lib/sha256.js';

const bufferBytes = 512 * 1024;

/** A new file whose bytes are counted and hashed as they are written. Small parts are written together. */
export class FileSink {
  readonly #file: FileHandle;
  readonly #hash = createHash('sha256');
  readonly #buffer = Buffer.allocUnsafe(bufferBytes);
  #used = 0;
  #size = 0;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  static async create(path: string): Promise<FileSink> {
    return new FileSink(await open(path, 'wx', 0o600));
  }

  get size(): number {
    return this.#size;
  }

  async write(chunk: Buffer): Promise<void> {
    this.#hash.update(chunk);
    this.#size += chunk.length;
    for (let from = 0; from < chunk.length;) {
      const copied = chunk.copy(this.#buffer, this.#used, from);
      this.#used += copied;
      from += copied;
      if (this.#used === bufferBytes) await this.#flush();
    }
  }

  /** Puts the file on disk. */
  async finish(): Promise<Digest> {
    await this.#flush();
    await this.#file.sync();
    await this.#file.close();
    return `sha256:${this.#hash.digest('hex')}`;
  }

  /** Closes the file when it is not finished. */
  async abandon(): Promise<void> {
    await this.#file.close().catch(() => undefined);
  }

  async #flush(): Promise<void> {
    if (this.#used > 0) await writeAll(this.#file, this.#buffer.subarray(0, this.#used));
    this.#used = 0;
  }
}

/** One write may take less than it is given. */
async function writeAll(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let from = 0; from < bytes.length;) from += (await file.write(bytes, from)).bytesWritten;
}
