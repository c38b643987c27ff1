import type { Readable } from 'node:stream';

export interface LineLimits {
  /** Bytes of a line that is kept. A longer one is read to its end without being kept. */
  readonly longest: number;
  /** Bytes after which a line counts as endless. */
  readonly endless: number;
}

export interface LineHandlers {
  readonly line: (text: string) => void;
  /** A line that was too long, by how it began. */
  readonly long: (head: string) => void;
  /** A line that does not end; nothing is read any more. */
  readonly endless: () => void;
}

/** What a second of somebody's output may cost us; beyond it the writer waits. */
const pace = { bytes: 32 * 1024 * 1024, lines: 10_000 } as const;
const headKept = 4096;

/** Reads lines of bounded memory at a bounded pace, whatever the other side writes. Empty lines are none. */
export function readLines(stream: Readable, limits: LineLimits, handlers: LineHandlers): void {
  const kept = growingBuffer(limits.longest);
  let size = 0;
  let over = false;
  let second = { start: 0, bytes: 0, lines: 0 };

  function add(part: Buffer): void {
    if (size + part.length <= limits.longest) kept.append(part);
    else if (size <= limits.longest) kept.append(part.subarray(0, limits.longest - size));
    size += part.length;
  }

  function end(): void {
    const text = kept.take();
    const whole = size <= limits.longest;
    size = 0;
    if (!whole) handlers.long(text.subarray(0, headKept).toString());
    else if (text.length > 0) handlers.line(text.toString());
  }

  /** Stops reading for the rest of a second in which enough was read. */
  function spend(bytes: number, lines: number): void {
    const now = Date.now();
    if (now - second.start >= 1000) second = { start: now, bytes: 0, lines: 0 };
    second = { start: second.start, bytes: second.bytes + bytes, lines: second.lines + lines };
    if (second.bytes < pace.bytes && second.lines < pace.lines) return;
    stream.pause();
    setTimeout(
      () => {
        stream.resume();
      },
      second.start + 1000 - now,
    ).unref();
  }

  stream.on('data', (chunk: Buffer) => {
    if (over) return;
    let start = 0;
    let lines = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, start)) {
      add(chunk.subarray(start, at));
      end();
      start = at + 1;
      lines++;
    }
    add(chunk.subarray(start));
    over = size > limits.endless;
    if (over) handlers.endless();
    else spend(chunk.length, lines);
  });
}

/** Bytes in one buffer that grows with them, so that many small parts cost no more than a large one. */
function growingBuffer(most: number): { readonly append: (part: Buffer) => void; readonly take: () => Buffer } {
  let buffer = Buffer.alloc(0);
  let size = 0;
  return {
    append: (part) => {
      if (size + part.length > buffer.length) {
        const grown = Buffer.allocUnsafe(Math.min(most, Math.max(2 * buffer.length, size + part.length, 64 * 1024)));
        buffer.copy(grown, 0, 0, size);
        buffer = grown;
      }
      part.copy(buffer, size);
      size += part.length;
    },
    take: () => {
      const taken = buffer.subarray(0, size);
      // The next line may overwrite what is returned, so it is used at once; a large buffer is not kept for small lines.
      if (buffer.length > 256 * 1024) buffer = Buffer.alloc(0);
      size = 0;
      return taken;
    },
  };
}
