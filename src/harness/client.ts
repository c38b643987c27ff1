/** The controller's side of the harness protocol: one client speaks to one supervisor. */
import { CodedError } from '../lib/errors.js';
import type { JsonObject } from '../lib/json.js';
import { bootstrapBody, signBootstrap } from './bootstrap.js';
import type { Credentials } from './bootstrap.js';
import { signOperation, signStatus } from './capability.js';
import type { StatusBinding } from './capability.js';
import { decodeText, WireError } from '../lib/decode.js';
import type { Decoder } from '../lib/decode.js';
import { workspaceDeltaResponse } from './deltas.js';
import type { DeltaOrder, WorkspaceDeltaResponse } from './deltas.js';
import { errorResponse, HarnessError } from './errors.js';
import type { ErrorResponse, WriteEvidence } from './errors.js';
import { readEvents, StreamError } from './event-stream.js';
import type { StreamLimits } from './event-stream.js';
import type { PromptEvent } from './events.js';
import { instant } from '../lib/instant.js';
import type { Instant } from '../lib/instant.js';
import { capabilities, drainResponse, health, status } from './introspection.js';
import type { Capabilities, DrainResponse, Health, Status } from './introspection.js';
import { scopeProblem, sealRequest } from './metadata.js';
import type { MutationScope, Operation, SealedRequest } from './metadata.js';
import { paths } from './paths.js';
import { cancelPromptResponse, renewLeaseResponse } from './prompts.js';
import type { CancelPromptResponse, CancelReason, Lease, McpAuthorization, PromptInput, RenewLeaseResponse } from './prompts.js';
import { bounds, contentTypes, headers } from './protocol.js';
import { createSessionResponse, deleteSessionResponse } from './sessions.js';
import type { CreateSessionResponse, DeleteSessionResponse, SessionOrder } from './sessions.js';
import { createTransport, readBody } from './transport.js';
import type { HttpAnswer, HttpCall } from './transport.js';

export interface HarnessClientOptions {
  /** `http://<pod IP>:8080`; IPv6 addresses in brackets. */
  readonly baseUrl: string;
  /** Both as they were delivered; needed for everything but health, capabilities and the delivery itself. */
  readonly credentials?: Pick<Credentials, 'controllerToken' | 'capabilitySecret'>;
  /** Milliseconds since 1970. @default Date.now */
  readonly now?: () => number;
}

interface CallOptions {
  /** Milliseconds. @default 30000 */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
  /** Opens a new connection, since a kept one may be dead. @default false */
  readonly fresh?: boolean;
}

/** A prompt that the server has accepted to look at: its events, and the way to stop reading them. */
export interface PromptStream {
  /** Ends with the terminal event. Throws {@link HarnessError} `stream` or `transport`; to be read once. */
  readonly events: AsyncGenerator<PromptEvent, void, undefined>;
  /** Breaks the connection, which makes the supervisor cancel the prompt. */
  readonly abort: () => void;
}

type BootstrapResult = 'seeded' | 'repeated' | 'complete' | 'conflict';

/** Calls of one supervisor. All throw {@link HarnessError}; requests that change something are sent once. */
export interface HarnessClient {
  readonly health: (options?: CallOptions) => Promise<Health>;
  readonly capabilities: (options?: CallOptions) => Promise<Capabilities>;
  /** Each call proves itself with a nonce of its own. Without an instance in `binding`: the first look at a new one. */
  readonly status: (binding: StatusBinding, options?: CallOptions) => Promise<Status>;
  readonly drain: (operation: Operation, reason: string, options?: CallOptions) => Promise<DrainResponse>;
  readonly createSession: (operation: Operation, order: SessionOrder, options?: CallOptions) => Promise<CreateSessionResponse>;
  readonly deleteSession: (
    operation: Operation,
    runtimeSessionID: string,
    reason: string,
    options?: CallOptions,
  ) => Promise<DeleteSessionResponse>;
  /** Resolves when the server begins to answer. `timeout` is for that; the events are bounded by lease and `signal` only. */
  readonly prompt: (operation: Operation, order: PromptOrder, options?: CallOptions) => Promise<PromptStream>;
  readonly renewLease: (operation: Operation, order: LeaseOrder, options?: CallOptions) => Promise<RenewLeaseResponse>;
  readonly cancel: (
    operation: Operation,
    runtimeSessionID: string,
    order: { readonly reason: CancelReason; readonly settlementDeadline: Instant },
    options?: CallOptions,
  ) => Promise<CancelPromptResponse>;
  readonly workspaceDelta: (
    operation: Operation,
    runtimeSessionID: string,
    order: DeltaOrder,
    options?: CallOptions,
  ) => Promise<WorkspaceDeltaResponse>;
  /**
   * Delivers credentials to a sandbox that awaits them: `seeded` now, `repeated` the same before, `complete` that phase is over,
   * `conflict` another party was first.
   */
  readonly bootstrap: (delivery: BootstrapDelivery, options?: CallOptions) => Promise<BootstrapResult>;
  /** Ends idle connections. */
  readonly close: () => void;
}

interface PromptOrder {
  readonly runtimeSessionID: string;
  readonly lease: Lease;
  readonly mcpAuthorization: McpAuthorization;
  readonly input: PromptInput;
  /** What the supervisor advertises; lines beyond it break the stream. */
  readonly limits: StreamLimits;
}

interface LeaseOrder {
  readonly runtimeSessionID: string;
  readonly expectedLeaseGeneration: number;
  readonly lease: Lease;
  readonly mcpAuthorization: McpAuthorization;
}

export interface BootstrapDelivery {
  readonly signingSeed: string;
  readonly nonce: string;
  readonly credentials: Credentials;
}

/** Opens connections as they are needed. Throws {@link HarnessError} `configuration` for a base URL that is none. */
export function createHarnessClient(options: HarnessClientOptions): HarnessClient {
  const transport = createTransport(options.baseUrl);
  const now = () => instant((options.now ?? Date.now)());

  function credentials(at: string): Pick<Credentials, 'controllerToken' | 'capabilitySecret'> {
    if (options.credentials) return options.credentials;
    throw new HarnessError('configuration', { at, says: 'the client has no credentials', evidence: 'zero_bytes_written' });
  }

  async function answered<T>(call: HttpCall, decoder: Decoder<T>): Promise<T> {
    const at = atOf(call);
    const answer = await transport.call(call);
    const expected = answer.status >= 200 && answer.status < 300;
    const body = await readBody(answer, at, expected ? bounds.responseBody : bounds.errorBody, call.timeout);
    if (!expected) throw refused(at, answer, body);
    return decoded(at, answer, body, decoder);
  }

  /** Signs and sends one request that changes something. */
  function mutation(
    method: 'PUT' | 'DELETE',
    path: () => string,
    scope: MutationScope,
    operation: Operation,
    members: JsonObject,
    call: CallOptions,
  ): HttpCall & { readonly sealed: SealedRequest } {
    return validated('mutation', () => {
      const target = path();
      const { controllerToken, capabilitySecret } = credentials(`${method} ${target}`);
      const sealed = sealRequest(operation, members);
      const problem = scopeProblem(sealed.metadata, scope);
      if (problem !== undefined)
        throw new HarnessError('validation', {
          at: `${method} ${target}`,
          says: problem,
          evidence: 'zero_bytes_written',
        });
      return {
        method,
        path: target,
        sealed,
        body: sealed.body,
        headers: {
          accept: contentTypes.json,
          authorization: `Bearer ${controllerToken}`,
          [headers.capability]: signOperation(capabilitySecret, sealed.metadata, now()),
        },
        timeout: call.timeout ?? bounds.controlTimeout,
        signal: call.signal,
        fresh: call.fresh ?? false,
      };
    });
  }

  const get = (path: string, call: CallOptions, extra: Record<string, string> = {}): HttpCall => ({
    method: 'GET',
    path,
    headers: { accept: contentTypes.json, ...extra },
    timeout: call.timeout ?? bounds.controlTimeout,
    signal: call.signal,
  });

  async function prompt(operation: Operation, order: PromptOrder, call: CallOptions = {}): Promise<PromptStream> {
    const { lease, mcpAuthorization, input, runtimeSessionID } = order;
    const promptID = operation.promptID ?? '';
    const wanted = mutation(
      'PUT',
      () => paths.prompt(runtimeSessionID, promptID),
      'prompt',
      operation,
      { lease, mcpAuthorization, input },
      call,
    );
    const at = atOf(wanted);
    const answer = await transport.call({
      ...wanted,
      fresh: true,
      headers: { ...wanted.headers, accept: `${contentTypes.events}, ${contentTypes.json}` },
    });
    if (answer.status !== 200 || answer.contentType !== contentTypes.events) {
      // "Accepted before" and "settled" come with status 200: whatever is no stream is no new run.
      const body = await readBody(answer, at, bounds.errorBody, wanted.timeout);
      throw refused(at, answer, body);
    }
    const { fence: target } = operation;
    const expected = {
      runtimeInstanceID: target.runtimeInstanceID,
      supervisorBootID: target.supervisorBootID,
      runtimeSessionUID: target.runtimeSessionUID ?? '',
      runtimeSessionGeneration: target.runtimeSessionGeneration ?? 0,
      taskUID: operation.taskUID ?? '',
      taskAttempt: operation.taskAttempt ?? 0,
      promptID,
      requestDigest: wanted.sealed.metadata.requestDigest,
    };
    const events = readEvents(answer.body as AsyncIterable<Buffer>, expected, order.limits);
    return { events: streamed(at, answer, events), abort: answer.abort };
  }

  async function bootstrap(delivery: BootstrapDelivery, call: CallOptions = {}): Promise<BootstrapResult> {
    const wanted = validated('credential bootstrap', (): HttpCall => {
      const body = bootstrapBody(delivery.credentials);
      return {
        method: 'PUT',
        path: paths.bootstrap,
        body,
        headers: {
          [headers.bootstrapNonce]: delivery.nonce.trim(),
          [headers.bootstrapSignature]: signBootstrap(delivery.signingSeed, delivery.nonce, body),
        },
        timeout: call.timeout ?? 10_000,
        signal: call.signal,
      };
    });
    const answer = await transport.call(wanted);
    const body = await readBody(answer, atOf(wanted), bounds.errorBody, wanted.timeout);
    const results: Readonly<Record<number, BootstrapResult>> = {
      201: 'seeded',
      200: 'repeated',
      404: 'complete',
      409: 'conflict',
    };
    const result = results[answer.status];
    if (result === undefined) throw refused(atOf(wanted), answer, body);
    return result;
  }

  return {
    health: (call = {}) => answered(get(paths.health, call), health),
    capabilities: (call = {}) => answered(get(paths.capabilities, call), capabilities),
    status: async (binding, call = {}) => {
      const { controllerToken, capabilitySecret } = credentials('GET /v2/status');
      const token = validated('GET /v2/status', () => signStatus(capabilitySecret, binding, { now: now() }));
      return answered(
        get(paths.status, call, { authorization: `Bearer ${controllerToken}`, [headers.capability]: token }),
        status,
      );
    },
    drain: async (operation, reason, call = {}) =>
      answered(
        mutation('PUT', () => paths.drain, 'pool', operation, { reason }, call),
        drainResponse,
      ),
    createSession: async (operation, order, call = {}) =>
      answered(
        mutation('PUT', () => paths.session(order.runtimeSessionID), 'session', operation, order as unknown as JsonObject, call),
        createSessionResponse,
      ),
    deleteSession: async (operation, id, reason, call = {}) =>
      answered(
        mutation('DELETE', () => paths.session(id), 'deletion', operation, { reason }, call),
        deleteSessionResponse,
      ),
    prompt,
    renewLease: async (operation, { runtimeSessionID, ...order }, call = {}) =>
      answered(
        mutation(
          'PUT',
          () => paths.lease(runtimeSessionID, operation.promptID ?? ''),
          'prompt',
          operation,
          order as unknown as JsonObject,
          call,
        ),
        renewLeaseResponse,
      ),
    cancel: async (operation, id, order, call = {}) =>
      answered(
        mutation('PUT', () => paths.cancel(id, operation.promptID ?? ''), 'prompt', operation, { ...order }, call),
        cancelPromptResponse,
      ),
    workspaceDelta: async (operation, id, order, call = {}) =>
      answered(
        mutation('PUT', () => paths.delta(id, order.deltaID), 'prompt', operation, order as unknown as JsonObject, call),
        workspaceDeltaResponse,
      ),
    bootstrap,
    close: transport.close,
  };
}

function atOf({ method, path }: HttpCall): string {
  return `${method} ${path}`;
}

/** What goes wrong before anything is sent is the caller's mistake, and proves that nothing was written. */
function validated<T>(at: string, make: () => T): T {
  try {
    return make();
  } catch (cause) {
    if (cause instanceof HarnessError) throw cause;
    const says = cause instanceof CodedError ? cause.message : 'the request cannot be written';
    throw new HarnessError('validation', { at, says, evidence: 'zero_bytes_written' }, { cause });
  }
}

function refused(at: string, answer: HttpAnswer, body: Buffer): HarnessError {
  const response = parsed(body);
  const says = response
    ? `${response.code}: ${response.message}`
    : `the answer with HTTP ${answer.status} is not of this protocol`;
  const kind = response || answer.status >= 300 ? 'http' : 'protocol';
  return new HarnessError(kind, {
    at,
    says,
    evidence: 'request_written',
    status: answer.status,
    ...(response ? { response } : {}),
  });
}

function parsed(body: Buffer): ErrorResponse | undefined {
  try {
    return decodeText(errorResponse, body);
  } catch {
    return undefined;
  }
}

/** An answer read strictly. An error of the protocol may come with status 200. */
function decoded<T>(at: string, answer: HttpAnswer, body: Buffer, decoder: Decoder<T>): T {
  try {
    return decodeText(decoder, body);
  } catch (cause) {
    if (!(cause instanceof WireError)) throw cause;
    if (parsed(body)) throw refused(at, answer, body);
    throw new HarnessError(
      'protocol',
      { at, says: cause.message, evidence: 'request_written', status: answer.status },
      { cause },
    );
  }
}

async function* streamed(
  at: string,
  answer: HttpAnswer,
  events: AsyncGenerator<PromptEvent, void, undefined>,
): AsyncGenerator<PromptEvent, void, undefined> {
  const evidence: WriteEvidence = 'request_written';
  let complete = false;
  try {
    yield* events;
    complete = true;
  } catch (cause) {
    if (cause instanceof HarnessError) throw cause;
    const says = cause instanceof Error ? cause.message : String(cause);
    throw new HarnessError(
      cause instanceof StreamError ? 'stream' : 'transport',
      { at, says, evidence, status: answer.status },
      { cause },
    );
  } finally {
    if (!complete) answer.abort();
  }
}
