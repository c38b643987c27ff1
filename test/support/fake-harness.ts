import type { HarnessClient, PromptStream } from '../../src/harness/client.js';
import type { WorkspaceDelta } from '../../src/harness/deltas.js';
import { HarnessError } from '../../src/harness/errors.js';
import type { ErrorCode, HarnessErrorKind, WriteEvidence } from '../../src/harness/errors.js';
import type { PromptEvent } from '../../src/harness/events.js';
import type { Capabilities } from '../../src/harness/introspection.js';
import { sealRequest } from '../../src/harness/metadata.js';
import type { Operation } from '../../src/harness/metadata.js';
import type { Settlement } from '../../src/harness/prompts.js';
import type { Classification } from '../../src/harness/replay.js';
import type { JsonObject } from '../../src/lib/json.js';
import { createJournal } from '../../src/supervisor/journal.js';
import { refusalOf } from '../../src/supervisor/refusal.js';
import type { Refusal } from '../../src/supervisor/refusal.js';

/** An instance that answers as a test says, and tells what it was asked. Its journal is the one of a supervisor. */
export interface FakeHarness {
  readonly client: HarnessClient;
  /** What was asked, with what matters of it, in order. */
  readonly asked: string[];
  /** Operations that came over a connection of their own. */
  readonly fresh: string[];
  /** What the answers are; each may be replaced. */
  readonly answers: {
    capabilities: () => Promise<Capabilities>;
    createSession: (signal: AbortSignal | undefined) => Promise<unknown>;
    prompt: () => Promise<unknown>;
    renewLease: () => Promise<unknown>;
    cancel: () => Promise<{ readonly settlementProven: boolean; readonly settlement: Settlement }>;
    delta: () => Promise<Partial<WorkspaceDelta>>;
  };
  /** The next lines of the prompt. */
  readonly say: (...events: readonly PromptEvent[]) => void;
  /** Ends the stream, or breaks it. */
  readonly end: (error?: Error) => void;
  readonly events: Readonly<Record<'accepted' | 'completed' | 'failed' | 'cancelled' | 'unknown' | 'asks', PromptEvent>> & {
    readonly update: (text: string) => PromptEvent;
    readonly completedWith: (text: string) => PromptEvent;
  };
}

export function broken(
  evidence: WriteEvidence,
  more: {
    readonly kind?: HarnessErrorKind;
    readonly status?: number;
    readonly code?: ErrorCode;
    readonly retryable?: boolean;
    readonly classification?: Classification;
    readonly message?: string;
  } = {},
): HarnessError {
  const { kind = 'transport', status = 0, code, retryable = false, classification, message = 'm' } = more;
  const response = code && ({ protocol: 'orka.harness.v2', code, message, retryable, classification } as const);
  const says = 'connect ECONNREFUSED 10.1.2.3:8080';
  const cause = Object.assign(new Error(says), { code: 'ECONNREFUSED' });
  const where = { at: 'PUT /v2/x', says, evidence, status, ...(response ? { response } : {}) };
  return new HarnessError(kind, where, { cause });
}

/** What a client throws for a refusal. */
function answered({ status, body }: Refusal): HarnessError {
  return new HarnessError('http', { at: 'PUT /v2/x', says: body.message, evidence: 'request_written', status, response: body });
}

/** @param now milliseconds since 1970 */
export function fakeHarness(runtimeProfileDigest: string, now: () => number): FakeHarness {
  const journal = createJournal(now);

  /** What was asked under an operation id before is refused with another body, as a supervisor does, also if its answer was lost. */
  async function journalled<T>(operation: Operation, order: object, answer: () => Promise<T>): Promise<T> {
    const { metadata } = sealRequest(operation, order as JsonObject);
    const found = journal.classify(metadata, operation.fence);
    if (found.class !== 'fresh' && found.class !== 'duplicate') throw answered(refusalOf(found));
    journal.put(metadata, 'applied');
    try {
      return await answer();
    } catch (error) {
      if (error instanceof HarnessError && error.response) journal.forget(metadata.operationID);
      throw error;
    }
  }

  const asked: string[] = [];
  const fresh: string[] = [];
  const lines: (PromptEvent | { readonly error: Error | undefined })[] = [];
  let wake: () => void = () => undefined;
  const put = (...more: typeof lines) => {
    lines.push(...more);
    wake();
  };
  const identity = {
    runtimeInstanceID: 'pod-uid-1.boot-1',
    supervisorBootID: 'boot-1',
    runtimeSessionUID: 's',
    runtimeSessionGeneration: 1,
    taskUID: 't',
    taskAttempt: 1,
    promptID: 'p',
    sequence: 1,
    requestDigest: `sha256:${'a'.repeat(64)}`,
    timestamp: '2030-01-01T00:00:05.123456789Z',
  } as PromptEvent['identity'];
  const event = (type: PromptEvent['type'], payload: object): PromptEvent =>
    ({ protocol: 'orka.harness.v2', type, identity, payload }) as PromptEvent;
  const said = (content: readonly object[]) => event('completed', { stopReason: 'end_turn', result: { content } });

  async function* events(): AsyncGenerator<PromptEvent, void, undefined> {
    for (;;) {
      const next = lines.shift();
      if (!next)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      else if (!('error' in next)) yield next;
      else if (next.error) throw next.error;
      else return;
    }
  }

  const client: Pick<
    HarnessClient,
    'capabilities' | 'createSession' | 'prompt' | 'renewLease' | 'cancel' | 'workspaceDelta' | 'close'
  > = {
    capabilities: () => {
      asked.push('capabilities');
      return it.answers.capabilities();
    },
    createSession: (operation, order, call) => {
      asked.push(operation.operationID);
      return journalled(operation, order, () => it.answers.createSession(call?.signal)) as never;
    },
    prompt: async (operation, order, call) => {
      asked.push(`${operation.operationID}: ${order.input.content[0]?.text ?? ''}`);
      await journalled(operation, { input: order.input }, () => it.answers.prompt());
      call?.signal?.addEventListener('abort', () => put({ error: broken('request_written', { kind: 'aborted' }) }));
      const stream: PromptStream = {
        events: events(),
        abort: () => {
          asked.push('abort');
          put({ error: broken('request_written') });
        },
      };
      return stream;
    },
    renewLease: (operation, order, call) => {
      asked.push(operation.operationID);
      if (call?.fresh) fresh.push(operation.operationID);
      return journalled(operation, order, () => it.answers.renewLease()) as never;
    },
    cancel: (operation, _id, order) => {
      asked.push(`cancel ${order.reason}`);
      return journalled(operation, order, () => it.answers.cancel()) as never;
    },
    workspaceDelta: async (operation, _id, order) => {
      asked.push(operation.operationID);
      return { delta: await journalled(operation, order, () => it.answers.delta()) } as never;
    },
    close: () => undefined,
  };

  const it: FakeHarness = {
    asked,
    fresh,
    answers: {
      capabilities: () =>
        Promise.resolve({
          runtimeProfileDigest,
          supportsAgentSessionConfiguration: true,
          workspaceGovernance: { mode: 'strict-governed', exactInstanceFencing: true },
          limits: { maxWorkspaceDeltaBytes: 1_000 },
        } as unknown as Capabilities),
      createSession: () => Promise.resolve({}),
      prompt: () => Promise.resolve({}),
      renewLease: () => Promise.resolve({}),
      cancel: () => Promise.reject(broken('unknown', { kind: 'timeout' })),
      delta: () => Promise.resolve({ state: 'no_change', changedFileCount: 0 }),
    },
    say: put,
    end: (error) => put({ error }),
    events: {
      accepted: event('accepted', {}),
      completed: said([]),
      failed: event('failed', { code: 'agent_error', message: 'it broke', retryable: false }),
      cancelled: event('cancelled', { stopReason: 'cancelled' }),
      unknown: event('outcome_unknown', { code: 'settlement_unproven', message: 'nobody knows', retryable: false }),
      asks: event('permission_requested', { requestID: 'r', title: 't', options: [] }),
      update: (text) => event('update', { kind: 'assistant_message_chunk', assistantMessage: { text } }),
      completedWith: (text) => said([{ type: 'text', text }]),
    },
    client: client as HarnessClient,
  };
  return it;
}

export function settled(outcome: Settlement['outcome']): { readonly settlementProven: boolean; readonly settlement: Settlement } {
  const settlement = { terminalEvent: outcome, outcome, stopReason: outcome, settledAt: '2030-01-01T00:00:05Z' } as never;
  return { settlementProven: outcome !== 'outcome_unknown', settlement };
}
