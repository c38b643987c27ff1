import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { canonicalJson } from '../lib/canonical-json.js';
import { boundPeers, serverLimits } from '../lib/connections.js';
import { parseDocument, WireError } from '../lib/decode.js';
import type { Json } from '../lib/json.js';
import { readBody } from '../lib/request-body.js';
import { prepareRequest, resolveRequest } from '../source/messages.js';
import type { PublisherCapabilities } from '../source/messages.js';
import { operationRequestDigest, verifyOperation } from '../source/operation-capability.js';
import { operationPaths, publisherBounds as bounds, publisherHeaders, publisherPaths } from '../source/protocol.js';
import type { Operation } from '../source/protocol.js';
import { CapabilityError } from '../source/signed-claims.js';
import { headerOf, sendJson } from './http.js';
import { isSecret } from './keys.js';
import type { Keys } from './keys.js';
import { codeOf } from './log.js';
import type { Log } from './log.js';
import type { PublisherMetrics } from './metrics.js';
import type { AcceptedOperation, Operations } from './operations.js';
import { Refusal, refusalOf } from './refusal.js';

export interface OperationServerOptions {
  readonly keys: Keys;
  readonly operations: Operations;
  readonly capabilities: PublisherCapabilities;
  readonly ready: () => boolean;
  readonly metrics: PublisherMetrics;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

/** The operations, over TLS. */
export function createOperationServer(options: OperationServerOptions): Server {
  const { keys } = options;
  const tls = ({ cert, key }: { readonly cert: string; readonly key: string }) => ({ cert, key, minVersion: 'TLSv1.2' }) as const;
  const server = createServer(
    {
      ...serverLimits,
      ...tls(keys.current),
      maxHeaderSize: bounds.headers,
      handshakeTimeout: 10_000,
      keepAliveTimeout: 120_000,
    },
    (request, response) => {
      answer(options, request, response).catch((error: unknown) => {
        const refusal = refusalOf(error);
        if (refusal.code === 'internal_error') options.log.error('request failed', { code: codeOf(refusal.cause) });
        sendJson(request, response, refusal.status, canonicalJson({ ...refusal.answer() }));
      });
    },
  );
  boundPeers(server);
  keys.onChange((changed) => {
    server.setSecureContext(tls(changed));
  });
  return server;
}

async function answer(options: OperationServerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url ?? '';
  if (path === publisherPaths.health && request.method === 'GET') {
    sendJson(request, response, 200, canonicalJson({ status: 'ok', ready: options.ready() }));
    return;
  }
  authenticate(options, request);
  if (path === publisherPaths.capabilities && request.method === 'GET') {
    sendJson(request, response, 200, JSON.stringify(options.capabilities));
    return;
  }
  const operation = (Object.keys(operationPaths) as Operation[]).find((one) => operationPaths[one] === path);
  if (!operation) throw new Refusal('invalid_request', { status: 404, says: 'endpoint not found' });
  if (request.method !== 'POST') throw new Refusal('invalid_request', { status: 405, says: 'the method is not allowed here' });
  await operate(options, operation, request, response);
}

/** The bearer is asked before a byte of the body is read. */
function authenticate({ keys }: OperationServerOptions, request: IncomingMessage): void {
  const bearer = /^Bearer ([\x21-\x7e]+)$/.exec(headerOf(request, 'authorization') ?? '')?.[1] ?? '';
  if (!isSecret(bearer, keys.current.controllerToken)) throw new Refusal('unauthorized', { status: 401 });
}

async function operate(
  options: OperationServerOptions,
  operation: Operation,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const from = performance.now();
  const accepted = await accept(options, operation, request);
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  const { status, body, code } = await options.operations.run(accepted, gone.signal);
  const milliseconds = Math.round(performance.now() - from);
  options.metrics.operation(operation, code, milliseconds / 1000);
  options.log.info('operation', { operationId: accepted.request.metadata.operationId, code, milliseconds });
  sendJson(request, response, status, body);
}

/** Reads a request in the order of the contract: type and size, canonical body, members, capability, credential. */
async function accept(
  { keys, clock }: OperationServerOptions,
  operation: Operation,
  request: IncomingMessage,
): Promise<AcceptedOperation> {
  if (!/^application\/json(?:; *charset=utf-8)?$/i.test(headerOf(request, 'content-type') ?? ''))
    throw new Refusal('invalid_request', { says: 'the content type is not application/json' });
  const body = await readBody(request, bounds.requestBody);
  if (!body) throw new Refusal('request_too_large');
  const message = decoded(operation, body);
  const { metadata, credentialRef } = message.request;
  const requestDigest = operationRequestDigest(operationPaths[operation], body);
  const capability = headerOf(request, publisherHeaders.capability) ?? '';
  const isNamed = headerOf(request, publisherHeaders.requestDigest) === requestDigest;
  if (!isNamed) throw new Refusal('unauthorized');
  try {
    verifyOperation(keys.current.operationSecret, capability, { operation, metadata, requestDigest }, clock());
  } catch (cause) {
    if (cause instanceof CapabilityError) throw new Refusal('unauthorized', { cause });
    throw cause;
  }
  const credential = credentialOf(request);
  if ((credential === undefined) !== (credentialRef === undefined)) throw new Refusal('invalid_credential_ref');
  return { ...message, requestDigest, credential };
}

type Message = {
  [O in Operation]: Pick<Extract<AcceptedOperation, { readonly operation: O }>, 'operation' | 'request'>;
}[Operation];

function decoded(operation: Operation, body: Buffer): Message {
  try {
    const document: Json = parseDocument(body);
    return operation === 'workspace.resolve'
      ? { operation, request: resolveRequest(document, []) }
      : { operation, request: prepareRequest(document, []) };
  } catch (error) {
    if (error instanceof WireError) throw new Refusal('invalid_request', { says: error.message, cause: error });
    throw error;
  }
}

/** The header line for the forge: one line, of a scheme that git passes on as it is. */
function credentialOf(request: IncomingMessage): string | undefined {
  if (request.headersDistinct[publisherHeaders.credential] === undefined) return undefined;
  const encoded = headerOf(request, publisherHeaders.credential) ?? '';
  const line = Buffer.from(encoded, 'base64url').toString('latin1');
  const isLine = /^Authorization: (?:Basic|Bearer) [\x21-\x7e]+$/.test(line) && line.length <= bounds.credential;
  if (!isLine || Buffer.from(line, 'latin1').toString('base64url') !== encoded) throw new Refusal('invalid_credential_ref');
  return line;
}
