import type { Readable } from 'node:stream';

import type { GitProcess } from './runner.js';

/** An answer of `cat-file` that is none to the question. */
export class BlobFraming extends Error {}

/** Bytes of questions that are written together. */
const askedAtOnce = 16 * 1024;

/** Contents of blobs, in the order in which they are asked for, from one process of git. */
export class BlobReader {
  readonly #process: GitProcess;
  readonly #stdout: Readable;
  readonly #asked: Promise<void>;
  #left: Buffer = Buffer.alloc(0);
  #wake: () => void = () => undefined;

  /** @param process `cat-file --batch --buffer` */
  constructor(process: GitProcess, oids: Iterable<string>) {
    this.#process = process;
    this.#stdout = process.stdout;
    // Listens from the start to the end: Node discards output that nothing listens for when the process exits.
    for (const event of ['readable', 'end', 'close', 'error']) this.#stdout.on(event, () => this.#wake());
    this.#asked = this.#ask(oids);
    this.#asked.catch(() => undefined);
  }

  /** The content of the next blob, in parts. It must be read to its end. */
  async *next(oid: string, size: number): AsyncGenerator<Buffer, void, undefined> {
    const expected = `${oid} blob ${size}\n`;
    const header = await this.#take(expected.length);
    if (header.toString('latin1') !== expected) throw new BlobFraming(`git does not answer with the blob ${oid}`);
    let missing = size;
    while (missing > 0) {
      if (this.#left.length === 0) this.#left = await this.#chunk();
      const part = this.#left.subarray(0, missing);
      this.#left = this.#left.subarray(part.length);
      missing -= part.length;
      yield part;
    }
    if ((await this.#take(1))[0] !== 0x0a) throw new BlobFraming(`the blob ${oid} does not end where it should`);
  }

  /** Fails unless all was read and git ended well. */
  async end(): Promise<void> {
    if (this.#left.length > 0 || (await this.#read()) !== undefined)
      throw new BlobFraming('git answers with more than was asked for');
    await this.#asked;
    await this.#process.done;
  }

  async #take(size: number): Promise<Buffer> {
    while (this.#left.length < size) this.#left = Buffer.concat([this.#left, await this.#chunk()]);
    const taken = this.#left.subarray(0, size);
    this.#left = this.#left.subarray(size);
    return taken;
  }

  async #chunk(): Promise<Buffer> {
    const chunk = await this.#read();
    if (chunk) return chunk;
    // A failure of git says more than an end that comes too early.
    await this.#process.done;
    throw new BlobFraming('git ends before its answer');
  }

  async #read(): Promise<Buffer | undefined> {
    for (;;) {
      const chunk = this.#stdout.read() as Buffer | null;
      if (chunk) return chunk;
      if (this.#stdout.readableEnded || this.#stdout.destroyed) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async #ask(oids: Iterable<string>): Promise<void> {
    const { stdin } = this.#process;
    // One listener for all waits.
    const closed = new Promise((resolve) => stdin.once('close', resolve));
    let lines = '';
    for (const oid of oids) {
      if (stdin.destroyed) return;
      lines += `${oid}\n`;
      if (lines.length < askedAtOnce) continue;
      if (!stdin.write(lines)) await Promise.race([new Promise((resolve) => stdin.once('drain', resolve)), closed]);
      lines = '';
    }
    stdin.write(lines);
    stdin.end();
  }
}
