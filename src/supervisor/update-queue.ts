import { updateBounds } from '../harness/events.js';
import type { Update } from '../harness/events.js';
import { headOf } from '../lib/text.js';
import type { Deferred } from './deferred.js';
import { deferred } from './deferred.js';
import { tailTime } from './event-writer.js';
import type { EventWriter } from './event-writer.js';
import { withoutContent } from './updates.js';

/** Milliseconds in which small pieces of text are joined, and characters from which they go out at once. */
const joinFor = 25;
const joinUpTo = 8 * 1024;
/** Bytes of updates that may wait; the caller bounds text. */
const mostWaiting = 8 * 1024 * 1024;

interface QueuedUpdate {
  readonly update: Update;
  readonly bytes: number;
}

/** Updates of one prompt, sent in order and as fast as their reader takes them. Text that waits is joined. */
export class UpdateQueue {
  readonly #writer: EventWriter;
  readonly #redact: (text: string) => string;
  readonly #most: number;
  readonly #items: (string | QueuedUpdate)[] = [];
  /** Redacted text whose first part is the next update. */
  #text = '';
  #updates = 0;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #sent: Deferred<undefined> | undefined;

  constructor(writer: EventWriter, options: { readonly redact: (text: string) => string; readonly maxBufferedEvents: number }) {
    this.#writer = writer;
    this.#redact = options.redact;
    this.#most = options.maxBufferedEvents;
    writer.whenRead(() => {
      this.pump();
    });
  }

  addText(text: string): void {
    const last = this.#items.at(-1);
    const joined = typeof last === 'string' ? last + text : text;
    if (typeof last === 'string') this.#items.pop();
    this.#items.push(joined);
    if (joined.length >= joinUpTo) this.pump();
    else this.#wait();
  }

  /** `false` = too much waits already. What makes too long a line is sent without content, or left out. */
  addUpdate(update: Update): boolean {
    const fitting = [update, withoutContent(update)].find((payload) => this.#writer.fits({ type: 'update', payload }));
    if (!fitting) return true;
    const bytes = Buffer.byteLength(JSON.stringify(fitting));
    if (this.#updates >= this.#most || this.#bytes + bytes > mostWaiting) return false;
    this.#updates++;
    this.#bytes += bytes;
    this.#items.push({ update: fitting, bytes });
    this.pump();
    return true;
  }

  /** Sends what its reader takes now. */
  pump(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#writer.takesUpdates()) {
      const payload = this.#next();
      if (!payload) break;
      this.#writer.write({ type: 'update', payload });
    }
    if (this.#text !== '' || this.#items.length > 0) this.#wait();
    else this.#sent?.resolve(undefined);
  }

  /** Resolves once all is sent, `stop` was called, or the reader had half a minute. */
  async drained(): Promise<void> {
    this.#sent = deferred<undefined>();
    const late = setTimeout(() => {
      this.stop();
    }, tailTime);
    this.pump();
    await this.#sent.promise;
    clearTimeout(late);
  }

  /** Drops what waits. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#items.length = 0;
    this.#text = '';
    this.#sent?.resolve(undefined);
  }

  #wait(): void {
    this.#timer ??= setTimeout(() => {
      this.pump();
    }, joinFor);
  }

  #next(): Update | undefined {
    if (this.#text === '') {
      const item = this.#items.shift();
      if (item === undefined) return undefined;
      if (typeof item !== 'string') {
        this.#updates--;
        this.#bytes -= item.bytes;
        return item.update;
      }
      this.#text = this.#redact(item);
      if (this.#text === '') return this.#next();
    }
    const text = headOf(this.#text, updateBounds.chunk);
    this.#text = this.#text.slice(text.length);
    return { kind: 'assistant_message_chunk', assistantMessage: { text } };
  }
}
