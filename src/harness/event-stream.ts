import { CodedError } from '../lib/errors.js';
import { decodeText, WireError } from '../lib/decode.js';
import { isTerminal, payloadSize, promptEvent } from './events.js';
import type { EventIdentity, PromptEvent } from './events.js';
import { notAfter } from '../lib/instant.js';
import { bounds } from './protocol.js';

/** A stream broke one of its rules, or ended before its terminal event. */
export class StreamError extends CodedError<'line' | 'order' | 'identity' | 'rate' | 'ended' | 'size'> {}

export interface StreamLimits {
  /** Bytes of one line. */
  readonly maxEventLineBytes: number;
  /** Updates within any one second of the sender's clock. */
  readonly maxUpdateEventsPerSecond: number;
  /** Bytes of the payload of a terminal event, escaped as Go does. @default - no bound but that of a line */
  readonly maxTerminalResultBytes?: number;
}

/** Who must have sent every line; the sequence and the timestamp are the sender's. */
export type ExpectedIdentity = Omit<EventIdentity, 'sequence' | 'timestamp'>;

/**
 * Reads the lines of one prompt, strictly: `accepted` first with sequence 1, sequence rising, time not running backwards, one identity,
 * one terminal event and nothing after it. Throws {@link StreamError}. Source: dispatch.md §5.8.
 */
export async function* readEvents(
  chunks: AsyncIterable<Buffer>,
  expected: ExpectedIdentity,
  limits: StreamLimits,
): AsyncGenerator<PromptEvent, void, undefined> {
  const check = eventChecker(expected, limits);
  let ended = false;
  for await (const line of lines(chunks, limits.maxEventLineBytes)) {
    if (ended) throw problem('order', 'an event follows the terminal one');
    const event = check(line);
    ended = isTerminal(event);
    yield event;
  }
  if (!ended) throw problem('ended', 'it ended without a terminal event');
}

/** Lines without their end. A last line without an end is no line. */
async function* lines(chunks: AsyncIterable<Buffer>, max: number): AsyncGenerator<Buffer, void, undefined> {
  let pending: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const part = chunk.subarray(start, end);
      if (size + part.length > max) throw problem('size', `a line has more than ${max} bytes`);
      yield Buffer.concat([...pending, part]);
      pending = [];
      size = 0;
      start = end + 1;
    }
    const rest = chunk.subarray(start);
    size += rest.length;
    if (size > max) throw problem('size', `a line has more than ${max} bytes`);
    if (rest.length > 0) pending.push(rest);
  }
  if (size > 0) throw problem('ended', 'it ended within a line');
}

/** A function that is shown the lines in their order. */
function eventChecker(expected: ExpectedIdentity, limits: StreamLimits): (line: Buffer) => PromptEvent {
  let last: EventIdentity | undefined;
  let second = { start: 0, events: 0, bytes: 0 };

  function checkOrder({ type, identity }: PromptEvent): void {
    if (!last && (type !== 'accepted' || identity.sequence !== 1))
      throw problem('order', 'it does not begin with accepted and sequence 1');
    if (last && type === 'accepted') throw problem('order', 'a second accepted event');
    if (last && identity.sequence <= last.sequence)
      throw problem('order', `sequence ${identity.sequence} follows ${last.sequence}`);
    if (last && !notAfter(last.timestamp, identity.timestamp)) throw problem('order', 'a timestamp goes back');
  }

  function checkRate(event: PromptEvent, bytes: number): void {
    if (event.type !== 'update') return;
    const at = Date.parse(event.identity.timestamp);
    if (at - second.start >= 1000) second = { start: at, events: 0, bytes: 0 };
    second = { start: second.start, events: second.events + 1, bytes: second.bytes + bytes };
    if (second.events > limits.maxUpdateEventsPerSecond)
      throw problem('rate', `more than ${limits.maxUpdateEventsPerSecond} updates in a second`);
    if (second.bytes > bounds.eventBytesPerSecond)
      throw problem('rate', `more than ${bounds.eventBytesPerSecond} bytes in a second`);
  }

  function checkSize(event: PromptEvent): void {
    const { maxTerminalResultBytes: most } = limits;
    if (most !== undefined && isTerminal(event) && payloadSize(event.payload) > most)
      throw problem('size', `the terminal payload has more than ${most} bytes`);
  }

  return (line) => {
    const event = decodeLine(line);
    checkSize(event);
    const stranger = Object.entries(expected).find(([name, value]) => event.identity[name as keyof EventIdentity] !== value);
    if (stranger) throw problem('identity', `${stranger[0]} is not that of the request`);
    checkOrder(event);
    checkRate(event, line.length);
    last = event.identity;
    return event;
  };
}

function decodeLine(line: Buffer): PromptEvent {
  try {
    return decodeText(promptEvent, line);
  } catch (cause) {
    if (!(cause instanceof WireError)) throw cause;
    throw new StreamError('line', { at: 'prompt stream', says: cause.message }, { cause });
  }
}

function problem(code: StreamError['code'], says: string): StreamError {
  return new StreamError(code, { at: 'prompt stream', says });
}
