import type { ServerResponse } from 'node:http';
import { eventLine } from '../harness/events.js';
import type { EventIdentity, PromptEvent } from '../harness/events.js';
import { instant, notAfter } from '../harness/instant.js';
import type { Instant } from '../harness/instant.js';
import type { Limits } from '../harness/introspection.js';
import { bounds, contentTypes, protocol } from '../harness/protocol.js';

/** Type and payload of an event, before it has a place in the stream. */
export type EventBody = PromptEvent extends infer E ? (E extends PromptEvent ? Pick<E, 'type' | 'payload'> : never) : never;

/** Why an event cannot be sent. */
type WriteProblem = 'event_too_large' | 'event_buffer_overflow' | 'update_rate_exceeded';

/** Writes the events of one prompt to its answer, in order, as fast as the other side reads. */
export interface EventWriter {
  /** `undefined` = sent or waiting to be. */
  readonly write: (event: EventBody) => WriteProblem | undefined;
  /** Whether an event makes a line that the other side takes. */
  readonly fits: (event: EventBody) => boolean;
  /**
   * The last event, after all that waits. `timestamp` comes from `stamp`: a settlement repeats it. Whoever has not read all of it in half
   * a minute is not going to.
   */
  readonly end: (event: EventBody, timestamp: Instant) => void;
  /** The timestamp that the next event gets; never before the last one's. */
  readonly stamp: () => Instant;
  readonly sequence: () => number;
}

/** Bytes of events that wait for a slow reader, beside their number. */
const mostWaiting = 8 * 1024 * 1024;
/** Milliseconds in which the rest of a stream must be read. */
const tailTime = 30_000;

export function createEventWriter(
  response: ServerResponse,
  identity: Omit<EventIdentity, 'sequence' | 'timestamp'>,
  limits: Limits,
): EventWriter {
  const waiting: string[] = [];
  let waitingBytes = 0;
  let sequence = 0;
  let last: Instant = instant(0);
  let blocked = false;
  let window = { start: 0, count: 0, bytes: 0 };

  const stamp = (): Instant => {
    const now = instant(Date.now());
    return notAfter(last, now) ? now : last;
  };

  function line(event: EventBody, timestamp: Instant): string {
    return eventLine({ protocol, ...event, identity: { ...identity, sequence: sequence + 1, timestamp } });
  }

  function send(text: string, timestamp: Instant): void {
    sequence++;
    last = timestamp;
    if (blocked) {
      waiting.push(text);
      waitingBytes += Buffer.byteLength(text);
    } else blocked = !response.write(text);
  }

  response.on('drain', () => {
    blocked = false;
    for (let text = waiting.shift(); text !== undefined; text = waiting.shift()) {
      waitingBytes -= Buffer.byteLength(text);
      if (!response.write(text)) {
        blocked = true;
        return;
      }
    }
  });

  /** Counts as the reader does: seconds begin with the first update in them. */
  function overRate(timestamp: Instant, bytes: number): boolean {
    const at = Date.parse(timestamp);
    if (at - window.start >= 1000) window = { start: at, count: 0, bytes: 0 };
    window = { start: window.start, count: window.count + 1, bytes: window.bytes + bytes };
    return window.count > limits.maxUpdateEventsPerSecond || window.bytes > bounds.eventBytesPerSecond;
  }

  return {
    write: (event) => {
      if (!response.headersSent) response.writeHead(200, { 'content-type': contentTypes.events });
      const timestamp = stamp();
      const text = line(event, timestamp);
      const bytes = Buffer.byteLength(text);
      if (bytes > limits.maxEventLineBytes) return 'event_too_large';
      if (waiting.length >= limits.maxBufferedEvents || waitingBytes + bytes > mostWaiting) return 'event_buffer_overflow';
      if (event.type === 'update' && overRate(timestamp, bytes)) return 'update_rate_exceeded';
      send(text, timestamp);
      return undefined;
    },
    fits: (event) => Buffer.byteLength(line(event, stamp())) <= limits.maxEventLineBytes,
    end: (event, timestamp) => {
      const text = line(event, timestamp);
      sequence++;
      last = timestamp;
      for (const queued of waiting.splice(0)) response.write(queued);
      const impatience = setTimeout(() => response.destroy(), tailTime).unref();
      response.once('close', () => {
        clearTimeout(impatience);
      });
      response.end(text);
    },
    stamp,
    sequence: () => sequence,
  };
}
