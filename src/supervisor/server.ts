import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { requestDigest } from '../domain/digests.js';
import { decodeText, WireError } from '../lib/decode.js';
import type { Decoder } from '../lib/decode.js';
import { workspaceDeltaRequest } from '../harness/deltas.js';
import { drainRequest } from '../harness/introspection.js';
import { scopeProblem } from '../harness/metadata.js';
import type { MutationMetadata, MutationScope } from '../harness/metadata.js';
import { cancelPromptRequest, renewLeaseRequest, startPromptRequest } from '../harness/prompts.js';
import { contentTypes, protocol } from '../harness/protocol.js';
import { fresh } from '../harness/replay.js';
import { createSessionRequest, deleteSessionRequest } from '../harness/sessions.js';
import type { Authority } from './authority.js';
import { boundPeers, serverLimits } from '../lib/connections.js';
import { takeDelta } from './delta.js';
import type { Instance } from './instance.js';
import { capabilitiesOf, healthOf, statusOf } from './introspect.js';
import { beginPrompt, cancelPrompt, renewLease } from './prompt-calls.js';
import { Refusal } from './refusal.js';
import { readBody } from '../lib/request-body.js';

/** What a handler gives back: a status and a body; `undefined` = it has answered itself. */
type Answer = { readonly status: number; readonly body: object } | undefined;

interface Route {
  readonly method: string;
  readonly pattern: RegExp;
  readonly handle: (request: IncomingMessage, response: ServerResponse, ids: readonly string[]) => Promise<Answer> | Answer;
}

/** The endpoints of one instance. Source: dispatch.md §5.1. */
export function createSupervisorServer(instance: Instance, authority: Authority): Server {
  const routes = routesOf(instance, authority);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').split('?')[0] ?? '';
    const here = routes.filter(({ pattern }) => pattern.test(path));
    const route = here.find(({ method }) => method === request.method);
    if (!route) throw unknownEndpoint(request.method ?? '', here.length > 0);
    const ids = route.pattern.exec(path)?.slice(1).map(decodeId) ?? [];
    const result = await route.handle(request, response, ids);
    if (result) send(response, result.status, result.body);
  }

  const server = createServer({ ...serverLimits, keepAliveTimeout: 120_000 }, (request, response) => {
    answer(request, response).catch((error: unknown) => {
      fail(instance, request, response, error);
    });
  });
  boundPeers(server);
  return server;
}

function routesOf(instance: Instance, authority: Authority): readonly Route[] {
  const { config } = instance.host;

  /** A request that changes something: authenticated before it is read, then decoded, then authorized. */
  function mutation<T extends { readonly metadata: MutationMetadata }>(
    method: 'PUT' | 'DELETE',
    pattern: RegExp,
    scope: MutationScope,
    decoder: Decoder<T>,
    handle: (message: T, ids: readonly string[], response: ServerResponse) => Promise<Answer> | Answer,
  ): Route {
    return {
      method,
      pattern,
      handle: async (request, response, ids) => {
        const token = authority.authenticateOperation(request);
        const body = await readBody(request, config.limits.maxRequestBytes);
        if (!body) throw new Refusal('invalid_request', `the body has more than ${config.limits.maxRequestBytes} bytes`);
        const message = decode(decoder, body);
        const { metadata } = message;
        const problem = scopeProblem(metadata, scope);
        if (problem !== undefined) throw new Refusal('invalid_request', problem);
        if (requestDigest(body) !== metadata.requestDigest)
          throw new Refusal('invalid_request', 'requestDigest is not the digest of the request');
        authority.authorize(token, metadata, scope);
        return handle(message, ids, response);
      },
    };
  }

  const session = String.raw`/v2/runtime-sessions/([^/]+)`;
  const prompt = String.raw`${session}/prompts/([^/]+)`;
  const get = (path: string, handle: Route['handle']): Route => ({ method: 'GET', pattern: new RegExp(`^${path}$`), handle });
  const at = (path: string) => new RegExp(`^${path}$`);

  return [
    get('/v2/health', () => ok(healthOf(instance))),
    get('/v2/capabilities', () => ok(capabilitiesOf(instance))),
    get('/v2/status', (request) => {
      authority.authorizeStatus(authority.authenticate(request));
      return ok(statusOf(instance));
    }),
    mutation('PUT', at('/v2/drain'), 'pool', drainRequest, async ({ metadata, reason }) =>
      ok(
        await instance.journal.run(metadata, config.fence, () => {
          instance.drain(reason ?? 'unspecified');
          return Promise.resolve({ protocol, classification: fresh, drain: instance.drainState() });
        }),
      ),
    ),
    mutation('PUT', at(session), 'session', createSessionRequest, async (message, [id = '']) => {
      if (message.runtimeSessionID !== id) throw new Refusal('invalid_request', 'runtimeSessionID is not that of the path');
      const body = await instance.createSession(message);
      return { status: body.classification.class === 'fresh' ? 201 : 200, body };
    }),
    mutation('DELETE', at(session), 'deletion', deleteSessionRequest, async (message, [id = '']) =>
      ok(await instance.deleteSession(id, message)),
    ),
    mutation('PUT', at(prompt), 'prompt', startPromptRequest, async (message, [id = '', promptID], response) => {
      checkPrompt(message.metadata, promptID);
      await beginPrompt(instance, id, message, response);
      return undefined;
    }),
    mutation('PUT', at(`${prompt}/lease`), 'prompt', renewLeaseRequest, async (message, [id = '', promptID]) => {
      checkPrompt(message.metadata, promptID);
      return ok(await renewLease(instance, id, message));
    }),
    mutation('PUT', at(`${prompt}/cancel`), 'prompt', cancelPromptRequest, async (message, [id = '', promptID]) => {
      checkPrompt(message.metadata, promptID);
      return ok(await cancelPrompt(instance, id, message));
    }),
    mutation(
      'PUT',
      at(`${session}/workspace-deltas/([^/]+)`),
      'prompt',
      workspaceDeltaRequest,
      async (message, [id = '', deltaID]) => {
        if (message.deltaID !== deltaID) throw new Refusal('invalid_request', 'deltaID is not that of the path');
        const found = instance.find(id, message.metadata);
        const body = await found.journal.run(message.metadata, found.fence, async () => {
          try {
            return { protocol, classification: fresh, delta: await takeDelta(found, message, instance) };
          } finally {
            instance.settle(found);
          }
        });
        return ok(body);
      },
    ),
    ...unavailable(authority, [
      [at(`${prompt}/permissions/([^/]+)`), 'permissions are answered by the tool policy; no broker is part of this version'],
      [at(`${session}/publication-finalization`), 'publication is not part of this version'],
    ]),
  ];
}

/** Endpoints of the protocol that this version refuses by name. */
function unavailable(authority: Authority, endpoints: readonly (readonly [RegExp, string])[]): readonly Route[] {
  return endpoints.map(([pattern, says]) => ({
    method: 'PUT',
    pattern,
    handle: (request) => {
      authority.authenticateOperation(request);
      throw new Refusal('invalid_request', says);
    },
  }));
}

const ok = (body: object): Answer => ({ status: 200, body });

function checkPrompt({ promptID }: MutationMetadata, id: string | undefined): void {
  if (promptID !== id) throw new Refusal('invalid_request', 'promptID is not that of the path');
}

function decode<T>(decoder: Decoder<T>, body: Buffer): T {
  try {
    return decodeText(decoder, body);
  } catch (error) {
    if (error instanceof WireError) throw new Refusal('invalid_request', error.message);
    throw error;
  }
}

/** `known`: the path is one of the protocol, the method is not. */
function unknownEndpoint(method: string, known: boolean): Refusal {
  if (!known) return new Refusal('invalid_request', 'endpoint not found', { status: 404 });
  return new Refusal('invalid_request', `method ${method.slice(0, 16)} is not allowed here`, { status: 405 });
}

function decodeId(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    throw new Refusal('invalid_request', 'the path is malformed');
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': contentTypes.json, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

function fail(instance: Instance, request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  // A body that nobody will read ends the connection.
  if (!request.complete) response.setHeader('connection', 'close');
  if (error instanceof Refusal) {
    send(response, error.status, error.body);
    return;
  }
  instance.log.error('request failed', error, { method: request.method ?? '', path: request.url ?? '' });
  const { body } = new Refusal('outcome_unknown', 'internal error');
  send(response, 500, body);
}
