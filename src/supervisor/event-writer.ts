import type { ServerResponse } from 'node:http';
import { eventLine } from '../harness/events.js';
import type { EventIdentity, PromptEvent } from '../harness/events.js';
import { instant, notAfter } from '../harness/instant.js';
import type { Instant } from '../harness/instant.js';
import type { Limits } from '../harness/introspection.js';
import { contentTypes, protocol } from '../harness/protocol.js';

/** Type and payload of an event, before it has a place in the stream. */
export type EventBody = PromptEvent extends infer E ? (E extends PromptEvent ? Pick<E, 'type' | 'payload'> : never) : never;

/** Why an event cannot be sent. */
type WriteProblem = 'event_too_large' | 'event_buffer_overflow' | 'update_rate_exceeded';

/** Writes the events of one prompt to its answer, in order, as fast as the other side reads. */
export interface EventWriter {
  /** `undefined` = sent or waiting to be. */
  readonly write: (event: EventBody) => WriteProblem | undefined;
  /** The last event, after all that waits. `timestamp` comes from `stamp`: a settlement repeats it. */
  readonly end: (event: EventBody, timestamp: Instant) => void;
  /** The timestamp that the next event gets; never before the last one's. */
  readonly stamp: () => Instant;
  readonly sequence: () => number;
}

export function createEventWriter(
  response: ServerResponse,
  identity: Omit<EventIdentity, 'sequence' | 'timestamp'>,
  limits: Limits,
): EventWriter {
  const waiting: string[] = [];
  let sequence = 0;
  let last: Instant = instant(0);
  let blocked = false;
  let window = { start: 0, count: 0 };

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
    if (blocked) waiting.push(text);
    else blocked = !response.write(text);
  }

  response.on('drain', () => {
    blocked = false;
    for (let text = waiting.shift(); text !== undefined; text = waiting.shift()) {
      if (!response.write(text)) {
        blocked = true;
        return;
      }
    }
  });

  function overRate(timestamp: Instant): boolean {
    const at = Date.parse(timestamp);
    if (at - window.start >= 1000) window = { start: at, count: 0 };
    window = { ...window, count: window.count + 1 };
    return window.count > limits.maxUpdateEventsPerSecond;
  }

  return {
    write: (event) => {
      if (!response.headersSent) response.writeHead(200, { 'content-type': contentTypes.events });
      const timestamp = stamp();
      const text = line(event, timestamp);
      if (Buffer.byteLength(text) > limits.maxEventLineBytes) return 'event_too_large';
      if (waiting.length >= limits.maxBufferedEvents) return 'event_buffer_overflow';
      if (event.type === 'update' && overRate(timestamp)) return 'update_rate_exceeded';
      send(text, timestamp);
      return undefined;
    },
    end: (event, timestamp) => {
      const text = line(event, timestamp);
      sequence++;
      last = timestamp;
      for (const queued of waiting.splice(0)) response.write(queued);
      response.end(text);
    },
    stamp,
    sequence: () => sequence,
  };
}
