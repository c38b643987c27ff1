/** JSON-RPC 2.0 over the pipes of a child, one message a line: the transport of the Agent Client Protocol. */
import type { Readable, Writable } from 'node:stream';
import { CodedError } from '../lib/errors.js';
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { deferred } from './deferred.js';
import type { Deferred } from './deferred.js';

/** `answer`: the agent answered with an error. `closed`: it is gone. `protocol`: it said what is no message. `timeout`: nothing in time. */
export class AcpError extends CodedError<'answer' | 'closed' | 'protocol' | 'timeout'> {}

export interface AcpConnection {
  /** `written` resolves when the whole request has been given to the child, which is when it may begin to act on it. */
  readonly request: (method: string, params: JsonObject) => { readonly written: Promise<void>; readonly answer: Promise<Json> };
  readonly notify: (method: string, params: JsonObject) => void;
  /** Resolves with the reason when the connection is over; never rejects. */
  readonly closed: Promise<AcpError>;
  readonly close: (error: AcpError) => void;
}

export interface AcpHandlers {
  readonly notification: (method: string, params: JsonObject) => void;
  /** The answer, or `undefined` for a method that this client does not offer. */
  readonly request: (method: string, params: JsonObject) => Promise<Json> | undefined;
}

const methodNotFound = -32_601;
const overloaded = -32_000;
const maxAgentRequests = 32;

/** `maxMessage`: bytes of one message in either direction; a longer one from the child ends the connection. */
export function createAcpConnection(stdin: Writable, stdout: Readable, handlers: AcpHandlers, maxMessage: number): AcpConnection {
  const waiting = new Map<number, Deferred<Json>>();
  const over = deferred<AcpError>();
  let end: AcpError | undefined;
  let nextId = 0;
  let agentRequests = 0;

  function close(error: AcpError): void {
    if (end) return;
    end = error;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
    stdin.destroy();
    stdout.destroy();
    over.resolve(error);
  }

  function send(message: JsonObject): Promise<void> {
    const line = `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
    if (end) return Promise.reject(end);
    if (Buffer.byteLength(line) > maxMessage) return Promise.reject(broken(`messages of at most ${maxMessage} bytes`));
    return new Promise((resolve, reject) => {
      stdin.write(line, (error) => {
        if (error) reject(gone());
        else resolve();
      });
    });
  }

  const ignore = (): undefined => undefined;

  function answerAgent(id: Json, method: string, params: JsonObject): void {
    const refuse = (code: number, message: string) => void send({ id, error: { code, message } }).catch(ignore);
    if (agentRequests >= maxAgentRequests) {
      refuse(overloaded, 'too many requests at once');
      return;
    }
    const answer = handlers.request(method, params);
    if (!answer) {
      refuse(methodNotFound, 'this client does not offer the method');
      return;
    }
    agentRequests++;
    void answer
      .then(
        (result) => send({ id, result }),
        () => refuse(overloaded, 'the request cannot be answered'),
      )
      .catch(ignore)
      .finally(() => agentRequests--);
  }

  function receive(line: string): void {
    const message = parse(line);
    if (!isObject(message) || message['jsonrpc'] !== '2.0') {
      close(broken('JSON-RPC 2.0 messages'));
      return;
    }
    const { id, method, params } = message;
    if (typeof method === 'string') {
      const given = isObject(params) ? params : {};
      if (id === undefined) handlers.notification(method, given);
      else answerAgent(id, method, given);
      return;
    }
    const pending = typeof id === 'number' ? waiting.get(id) : undefined;
    if (!pending) return;
    waiting.delete(id as number);
    const { error } = message;
    if (isObject(error)) pending.reject(new AcpError('answer', { at: 'agent', found: describe(error) }));
    else pending.resolve(message['result'] ?? null);
  }

  readLines(stdout, maxMessage, receive, () => {
    close(broken(`messages of at most ${maxMessage} bytes`));
  });
  stdout.once('close', () => {
    close(gone());
  });
  stdout.on('error', () => {
    close(gone());
  });
  stdin.on('error', () => {
    close(gone());
  });

  return {
    request: (method, params) => {
      const id = ++nextId;
      const pending = deferred<Json>();
      waiting.set(id, pending);
      const written = send({ id, method, params });
      written.catch((error: unknown) => {
        waiting.delete(id);
        pending.reject(error);
      });
      pending.promise.catch(ignore);
      return { written, answer: pending.promise };
    },
    notify: (method, params) => void send({ method, params }).catch(ignore),
    closed: over.promise,
    close,
  };
}

/** The result of `promise`, or a {@link AcpError} `timeout` after so many milliseconds. */
export async function within<T>(promise: Promise<T>, timeout: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new AcpError('timeout', { at: 'agent', field: what, allowed: `an answer within ${timeout} ms` }));
    }, timeout);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function readLines(stream: Readable, max: number, receive: (line: string) => void, tooLong: () => void): void {
  let parts: Buffer[] = [];
  let size = 0;
  stream.on('data', (chunk: Buffer) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const line = Buffer.concat([...parts, chunk.subarray(start, end)]);
      parts = [];
      size = 0;
      start = end + 1;
      if (line.length > max) {
        tooLong();
        return;
      }
      if (line.length > 0) receive(line.toString());
    }
    const rest = chunk.subarray(start);
    size += rest.length;
    parts.push(rest);
    if (size > max) {
      parts = [];
      tooLong();
    }
  });
}

function parse(line: string): Json | undefined {
  try {
    return JSON.parse(line) as Json;
  } catch {
    return undefined;
  }
}

function describe(error: JsonObject): string {
  const { code, message } = error;
  return `${typeof code === 'number' ? code : 'no code'}: ${typeof message === 'string' ? message.slice(0, 500) : 'no message'}`;
}

function broken(allowed: string): AcpError {
  return new AcpError('protocol', { at: 'agent', allowed });
}

function gone(): AcpError {
  return new AcpError('closed', { at: 'agent', found: 'its pipes are closed' });
}
