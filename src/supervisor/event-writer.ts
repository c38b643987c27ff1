import type { ServerResponse } from 'node:http';
import { eventLine, isTerminal, payloadSize } from '../harness/events.js';
import type { EventIdentity, PromptEvent } from '../harness/events.js';
import { instant, notAfter } from '../lib/instant.js';
import type { Instant } from '../lib/instant.js';
import type { Limits } from '../harness/introspection.js';
import { bounds, contentTypes, protocol } from '../harness/protocol.js';

/** Type and payload of an event, before it has a place in the stream. */
export type EventBody = PromptEvent extends infer E ? (E extends PromptEvent ? Pick<E, 'type' | 'payload'> : never) : never;

/** Milliseconds in which the rest of a stream must be read. */
export const tailTime = 30_000;
/** Bytes that a line may grow between being measured and being written: the digits of its sequence. */
const slack = 32;

/** Writes the events of one prompt to its answer, in order. */
export class EventWriter {
  readonly #response: ServerResponse;
  readonly #identity: Omit<EventIdentity, 'sequence' | 'timestamp'>;
  readonly #limits: Limits;
  #sequence = 0;
  #last: Instant = instant(0);
  #blocked = false;
  /** A second begins with its first update, as for the reader. */
  #second = { start: 0, events: 0, bytes: 0 };

  constructor(response: ServerResponse, identity: Omit<EventIdentity, 'sequence' | 'timestamp'>, limits: Limits) {
    this.#response = response;
    this.#identity = identity;
    this.#limits = limits;
  }

  /** Number of the last event. */
  get sequence(): number {
    return this.#sequence;
  }

  /** The timestamp that the next event gets; never before the last one's. */
  stamp(): Instant {
    const now = instant(Date.now());
    return notAfter(this.#last, now) ? now : this.#last;
  }

  /** Whether an event makes a line, and a result, that the reader takes. */
  fits(event: EventBody): boolean {
    const { maxEventLineBytes, maxTerminalResultBytes } = this.#limits;
    if (Buffer.byteLength(this.#line(event, this.stamp())) > maxEventLineBytes - slack) return false;
    return !isTerminal(event) || payloadSize(event.payload) <= maxTerminalResultBytes;
  }

  /**
   * Whether the reader takes an update now. It counts by the arrival of lines, which a slow network pushes together, so only half of what
   * it takes in a second is sent in one.
   */
  takesUpdates(): boolean {
    if (this.#blocked) return false;
    if (Date.now() - this.#second.start >= 1000) return true;
    const { events, bytes } = this.#second;
    return events < Math.ceil(this.#limits.maxUpdateEventsPerSecond / 2) && bytes < bounds.eventBytesPerSecond / 2;
  }

  /** Calls back each time that the reader has caught up. */
  whenRead(callback: () => void): void {
    this.#response.on('drain', () => {
      this.#blocked = false;
      callback();
    });
  }

  write(event: EventBody): void {
    if (!this.#response.headersSent) this.#response.writeHead(200, { 'content-type': contentTypes.events });
    const timestamp = this.stamp();
    const text = this.#next(event, timestamp);
    if (event.type === 'update') this.#count(timestamp, Buffer.byteLength(text));
    this.#blocked = !this.#response.write(text);
  }

  /** The last event. `timestamp` comes from `stamp`: a settlement repeats it. */
  end(event: EventBody, timestamp: Instant): void {
    const text = this.#next(event, timestamp);
    const impatience = setTimeout(() => this.#response.destroy(), tailTime).unref();
    this.#response.once('close', () => {
      clearTimeout(impatience);
    });
    this.#response.end(text);
  }

  #next(event: EventBody, timestamp: Instant): string {
    const text = this.#line(event, timestamp);
    this.#sequence++;
    this.#last = timestamp;
    return text;
  }

  #line(event: EventBody, timestamp: Instant): string {
    return eventLine({ protocol, ...event, identity: { ...this.#identity, sequence: this.#sequence + 1, timestamp } });
  }

  #count(timestamp: Instant, bytes: number): void {
    const at = Date.parse(timestamp);
    const { start, events, bytes: before } = this.#second;
    this.#second = at - start >= 1000 ? { start: at, events: 1, bytes } : { start, events: events + 1, bytes: before + bytes };
  }
}
