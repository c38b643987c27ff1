/** JSON-RPC 2.0 over the pipes of a child, one message a line: the transport of the Agent Client Protocol. */
import type { Readable, Writable } from 'node:stream';
import { CodedError } from '../lib/errors.js';
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { deferred } from './deferred.js';
import type { Deferred } from './deferred.js';
import { readMessage } from './json-rpc.js';
import type { RpcAnswer, RpcId } from './json-rpc.js';
import { readLines } from './lines.js';
import { mostStrayLines, StrayLines } from './stray-lines.js';

/**
 * `answer`: the agent answered with an error. `closed`: it is gone. `protocol`: it said what is no message. `timeout`: nothing in time.
 * `unusable`: it cannot serve its session, and a repetition does not change that.
 */
export class AcpError extends CodedError<'answer' | 'closed' | 'protocol' | 'timeout' | 'unusable'> {}

export interface AcpConnection {
  /**
   * `written` resolves when the whole request has been given to the child, which is when it may begin to act on it. `answered` is called
   * when the answer is read, before any line after it.
   */
  readonly request: (
    method: string,
    params: JsonObject,
    answered?: () => void,
  ) => { readonly written: Promise<void>; readonly answer: Promise<Json> };
  readonly notify: (method: string, params: JsonObject) => void;
  /** Resolves with the reason when the connection is over; never rejects. */
  readonly closed: Promise<AcpError>;
  readonly close: (error: AcpError) => void;
}

export interface AcpHandlers {
  readonly notification: (method: string, params: JsonObject) => void;
  /** The answer, or `undefined` for a method that this client does not offer. */
  readonly request: (method: string, params: JsonObject) => Promise<Json> | undefined;
  /** An update that was too long to be kept; `kind` as far as its beginning tells. */
  readonly oversized: (kind: string | undefined) => void;
  /** A line that is no JSON-RPC message and was skipped; redacted and cut. */
  readonly skipped: (line: string) => void;
}

export interface AcpLimits {
  /** Bytes of one message in either direction. */
  readonly maxMessage: number;
  /** Takes secrets out of a text. */
  readonly redact: (text: string) => string;
}

/** The child at the other end. */
export interface AcpPeer {
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Resolves with how it ended. */
  readonly exited: Promise<string>;
}

const methodNotFound = -32_601;
const overloaded = -32_000;
const maxAgentRequests = 32;
/** A line this many times too long is not waited for. */
const endless = 16;
/** Milliseconds in which what a child wrote before its end is still read: others may hold its pipes open. */
const lastWords = 1000;

/**
 * Of the child's messages that are too long only updates are survived: they are skipped and reported. Lines that are no messages are
 * skipped up to a bound. Whatever the child sends, it costs bounded memory and never throws.
 */
export function createAcpConnection(
  { stdin, stdout, exited }: AcpPeer,
  handlers: AcpHandlers,
  { maxMessage, redact }: AcpLimits,
): AcpConnection {
  const waiting = new Map<RpcId, Deferred<Json> & { readonly answered: () => void }>();
  const stray = new StrayLines(redact);
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
    if (Buffer.byteLength(line) > maxMessage) return Promise.reject(broken(`a message has more than ${maxMessage} bytes`));
    if (stdin.writableLength > maxMessage) {
      // It asks, and does not read what it is answered.
      const unread = broken('it does not read its messages');
      close(unread);
      return Promise.reject(unread);
    }
    return new Promise((resolve, reject) => {
      stdin.write(line, (error) => {
        if (!error) resolve();
        // Who cannot be written to is about to be known to have ended, and how.
        else void leave(lastWords).then(() => reject(end ?? gone()));
      });
    });
  }

  const ignore = (): undefined => undefined;

  function answerAgent(id: RpcId, method: string, params: JsonObject): void {
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
    if (end) return;
    const message = readMessage(line);
    if (!message) skip(line);
    else if (message.kind === 'notification') handlers.notification(message.method, message.params);
    else if (message.kind === 'request') answerAgent(message.id, message.method, message.params);
    else settle(message);
  }

  function settle(message: RpcAnswer): void {
    const pending = waiting.get(message.id);
    if (!pending) return;
    waiting.delete(message.id);
    pending.answered();
    if (message.kind === 'result') pending.resolve(message.result);
    else pending.reject(answeredError(message.error, redact));
  }

  function skip(line: string): void {
    if (line.trim() === '') return;
    const shown = stray.skip(line);
    if (shown !== undefined) handlers.skipped(shown);
    else
      close(
        new AcpError('protocol', {
          at: 'agent',
          field: 'standard output',
          says: `more than ${mostStrayLines} lines are no JSON-RPC 2.0 messages, the first of which is`,
          found: stray.first,
        }),
      );
  }

  function receiveLong(head: string): void {
    if (end) return;
    if (/"method"\s*:\s*"session\/update"/.test(head)) handlers.oversized(/"sessionUpdate"\s*:\s*"(\w+)"/.exec(head)?.[1]);
    else close(broken(`a message has more than ${maxMessage} bytes`));
  }

  async function leave(wait: number): Promise<void> {
    const how = await Promise.race([exited, pause(wait)]);
    close(gone(how));
  }

  const limits = { longest: maxMessage, endless: endless * maxMessage };
  readLines(stdout, limits, {
    line: receive,
    long: receiveLong,
    endless: () => {
      close(broken('it writes a line without end'));
    },
  });
  void exited.then(async (how) => {
    await pause(lastWords);
    close(gone(how));
  });
  stdout.once('close', () => void leave(lastWords));
  stdout.on('error', ignore);
  // What it wrote before it stopped reading may be its answer.
  stdin.on('error', () => void pause(lastWords).then(async () => leave(0)));

  return {
    request: (method, params, answered = ignore) => {
      const id = ++nextId;
      const pending = deferred<Json>();
      waiting.set(id, { ...pending, answered });
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
      reject(new AcpError('timeout', { at: 'agent', field: what, says: `no answer within ${timeout} ms` }));
    }, timeout);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function pause(milliseconds: number): Promise<undefined> {
  return new Promise((resolve) => {
    setTimeout(() => {
      resolve(undefined);
    }, milliseconds).unref();
  });
}

/** One line, redacted before anything cuts it: half a secret would pass. */
function answeredError(error: Json, redact: (text: string) => string): AcpError {
  const { code, message } = isObject(error) ? error : ({} as JsonObject);
  const text = typeof message === 'string' ? inOneLine(redact(message)).slice(0, 500).toWellFormed() : 'no message';
  return new AcpError('answer', { at: 'agent', says: `error ${typeof code === 'number' ? code : 'without code'}: ${text}` });
}

const inOneLine = (text: string): string => text.replaceAll(/\p{Cc}+/gu, ' ');

function broken(says: string): AcpError {
  return new AcpError('protocol', { at: 'agent', says });
}

function gone(how?: string): AcpError {
  return new AcpError('closed', { at: 'agent', says: how ?? 'its pipes are closed' });
}
