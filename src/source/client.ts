import { X509Certificate } from 'node:crypto';
import { Agent, request as httpsRequest } from 'node:https';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import { decodeText, WireError } from '../lib/decode.js';
import type { Decoder } from '../lib/decode.js';
import type { Digest } from '../lib/sha256.js';
import { errorAnswer, PublisherError } from './errors.js';
import type { PublisherErrorCode } from './errors.js';
import { capabilitiesAnswer, prepareAnswer, resolveAnswer } from './messages.js';
import type { OperationMetadata, PrepareRequest, PrepareResponse, PublisherCapabilities } from './messages.js';
import type { ResolveRequest, ResolveResponse } from './messages.js';
import { operationBody, signOperation } from './operation-capability.js';
import { operationPaths, publisherBounds as bounds, publisherHeaders, publisherPaths, sourceProtocol } from './protocol.js';
import type { Operation } from './protocol.js';

export interface PublisherClientOptions {
  /** Like `https://orka-publisher.orka-publisher.svc:8443`. */
  readonly url: string;
  /** Certificates of the publisher, PEM: the present one, and the one before it. No other is trusted, also if one of these signed it. */
  readonly ca: string;
  readonly controllerToken: string;
  readonly capabilitySecret: string;
  /** Milliseconds since 1970. @default that of the system */
  readonly clock?: () => number;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  /** Milliseconds until the whole answer must be there. */
  readonly timeout: number;
}

interface Call extends CallOptions {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body?: string;
}

interface Answer {
  readonly status: number;
  readonly text: Buffer;
}

/**
 * Calls one publisher over kept-alive TLS connections. It follows no redirect, uses no proxy of the environment and repeats nothing.
 * Every method throws {@link PublisherError}, which says whether the request may have arrived.
 */
export class PublisherClient {
  readonly #base: URL;
  readonly #agent: Agent;
  readonly #controllerToken: string;
  readonly #capabilitySecret: string;
  readonly #clock: () => number;

  constructor({ url, ca, controllerToken, capabilitySecret, clock = Date.now }: PublisherClientOptions) {
    this.#base = parseBase(url);
    this.#controllerToken = controllerToken;
    this.#capabilitySecret = capabilitySecret;
    this.#clock = clock;
    this.#agent = new Agent({ keepAlive: true, maxSockets: 16, timeout: idle, ...trustOf(ca, this.#base.hostname) });
  }

  /** `credential`: the header line for the forge; `undefined` = none. */
  async resolve(request: ResolveRequest, credential: string | undefined, options: CallOptions): Promise<ResolveResponse> {
    const answer = await this.#operate('workspace.resolve', request, resolveAnswer, credential, options);
    return { repositoryId: answer.repositoryId, sourceRef: answer.sourceRef, baselineOid: answer.baselineOid };
  }

  async prepare(request: PrepareRequest, credential: string | undefined, options: CallOptions): Promise<PrepareResponse> {
    const {
      operationId: _id,
      requestDigest: _digest,
      ...answer
    } = await this.#operate('workspace.prepare', request, prepareAnswer, credential, options);
    return answer;
  }

  async capabilities(options: CallOptions): Promise<PublisherCapabilities> {
    const { path, at } = named('GET', publisherPaths.capabilities);
    const answer = await this.#call({ ...options, method: 'GET', path, headers: this.#bearer() });
    if (answer.status !== 200) throw refusalOf(at, answer);
    const found = read(at, answer, capabilitiesAnswer);
    if (found.protocol === sourceProtocol) return found;
    throw protocolError(at, answer.status, `the publisher does not speak ${sourceProtocol}`);
  }

  /** Ends all connections, also those in use. */
  close(): void {
    this.#agent.destroy();
  }

  async #operate<T extends { readonly operationId: string; readonly requestDigest: Digest }>(
    operation: Operation,
    message: ResolveRequest | PrepareRequest,
    decoder: Decoder<T>,
    credential: string | undefined,
    options: CallOptions,
  ): Promise<T> {
    const { path, at } = named('POST', operationPaths[operation]);
    const { metadata } = message;
    const { body, requestDigest } = operationBody(operation, message);
    const headers = {
      ...this.#bearer(),
      ...this.#proof(operation, metadata, requestDigest),
      ...(credential === undefined ? {} : { [publisherHeaders.credential]: Buffer.from(credential).toString('base64url') }),
    };
    const answer = await this.#call({ ...options, method: 'POST', path, headers, body });
    if (answer.status !== 200) throw refusalOf(at, answer);
    const found = read(at, answer, decoder);
    if (found.operationId === metadata.operationId && found.requestDigest === requestDigest) return found;
    throw protocolError(at, answer.status, 'the answer is for another request');
  }

  #bearer(): OutgoingHttpHeaders {
    return { authorization: `Bearer ${this.#controllerToken}` };
  }

  #proof(operation: Operation, metadata: OperationMetadata, requestDigest: Digest): OutgoingHttpHeaders {
    const capability = signOperation(this.#capabilitySecret, { operation, metadata, requestDigest }, this.#clock());
    return { [publisherHeaders.capability]: capability, [publisherHeaders.requestDigest]: requestDigest };
  }

  async #call(call: Call): Promise<Answer> {
    const { at } = named(call.method, call.path);
    // Whether a byte may have left; a kept-alive connection stands already.
    let mayHaveArrived = false;
    const limit = AbortSignal.timeout(call.timeout);
    const signal = AbortSignal.any([limit, call.signal]);
    try {
      return await new Promise<Answer>((resolve, reject) => {
        signal.throwIfAborted();
        const outgoing = httpsRequest(this.#base, {
          method: call.method,
          path: call.path,
          agent: this.#agent,
          signal,
          headers: {
            'accept-encoding': 'identity',
            ...call.headers,
            ...(call.body === undefined
              ? {}
              : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(call.body) }),
          },
        });
        outgoing.once('socket', (socket) => {
          if (socket.connecting) socket.once('secureConnect', () => (mayHaveArrived = true));
          else mayHaveArrived = true;
        });
        outgoing.once('error', reject);
        outgoing.once('response', (answer) => {
          readAll(answer, at).then(resolve, reject);
        });
        outgoing.end(call.body);
      });
    } catch (error) {
      if (error instanceof PublisherError) throw error;
      const code = limit.aborted ? 'timeout' : call.signal.aborted ? 'aborted' : 'unreachable';
      throw noAnswer(at, code, call.timeout, mayHaveArrived, error);
    }
  }
}

/** Servers and what stands before them close what was idle for longer. */
const idle = 45_000;

const named = (method: string, path: string) => ({ path, at: `publisher: ${method} ${path}` });

function parseBase(url: string): URL {
  const base = URL.canParse(url) ? new URL(url) : undefined;
  const isPlain =
    base?.protocol === 'https:' &&
    [base.username, base.password, base.search, base.hash].every((part) => part === '') &&
    base.pathname === '/';
  if (base && isPlain) return base;
  throw protocolError('publisher client', 0, 'its URL is not https://host:port');
}

/** The given certificates and no others: one that they signed is refused too. */
function trustOf(ca: string, hostname: string): object {
  const certificates = ca.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const trusted = certificates.map((pem) => new X509Certificate(pem).raw);
  return {
    ca: certificates,
    minVersion: 'TLSv1.2',
    ...(isIP(hostname.replace(/^\[(.*)\]$/, '$1')) === 0 ? { servername: hostname } : {}),
    checkServerIdentity: (host: string, peer: Parameters<typeof checkServerIdentity>[1]): Error | undefined =>
      trusted.some((raw) => raw.equals(peer.raw))
        ? checkServerIdentity(host, peer)
        : new Error('the certificate is not that of the publisher'),
  };
}

async function readAll(answer: IncomingMessage, at: string): Promise<Answer> {
  const parts: Buffer[] = [];
  let size = 0;
  const status = answer.statusCode ?? 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > bounds.responseBody) {
      answer.destroy();
      throw protocolError(at, status, `the answer has more than ${bounds.responseBody} bytes`);
    }
    parts.push(part);
  }
  return { status, text: Buffer.concat(parts) };
}

function read<T>(at: string, answer: Answer, decoder: Decoder<T>): T {
  try {
    return decodeText(decoder, answer.text);
  } catch (cause) {
    if (!(cause instanceof WireError)) throw cause;
    throw protocolError(at, answer.status, 'the answer is none of this protocol', cause);
  }
}

/** What the publisher said instead of a result. */
function refusalOf(at: string, answer: Answer): PublisherError {
  try {
    const { code, message, retryable, detail } = read(at, answer, errorAnswer);
    return new PublisherError(code, {
      at,
      says: message,
      retryable,
      mayHaveArrived: true,
      status: answer.status,
      detail,
    });
  } catch (error) {
    if (error instanceof PublisherError) return error;
    throw error;
  }
}

function protocolError(at: string, status: number, says: string, cause?: unknown): PublisherError {
  return new PublisherError(
    'protocol',
    { at, says: status === 0 ? says : `${says} (HTTP ${status})`, retryable: false, mayHaveArrived: status !== 0, status },
    { cause },
  );
}

function noAnswer(
  at: string,
  code: Extract<PublisherErrorCode, 'timeout' | 'aborted' | 'unreachable'>,
  timeout: number,
  mayHaveArrived: boolean,
  cause: unknown,
): PublisherError {
  const told = cause instanceof Error ? cause.message : String(cause);
  const says = { timeout: `no answer within ${timeout} ms`, aborted: 'the caller gave up', unreachable: told }[code];
  return new PublisherError(code, { at, says, retryable: code !== 'aborted', mayHaveArrived }, { cause });
}
