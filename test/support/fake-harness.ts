import type { HarnessClient, PromptStream } from '../../src/harness/client.js';
import type { WorkspaceDelta } from '../../src/harness/deltas.js';
import { HarnessError } from '../../src/harness/errors.js';
import type { ErrorCode, HarnessErrorKind, WriteEvidence } from '../../src/harness/errors.js';
import type { PromptEvent } from '../../src/harness/events.js';
import type { Capabilities } from '../../src/harness/introspection.js';
import type { Settlement } from '../../src/harness/prompts.js';
import type { Classification } from '../../src/harness/replay.js';

/** An instance that answers as a test says, and tells what it was asked. */
export interface FakeHarness {
  readonly client: HarnessClient;
  /** What was asked, with what matters of it, in order. */
  readonly asked: string[];
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
  } = {},
): HarnessError {
  const { kind = 'transport', status = 0, code, retryable = false, classification } = more;
  const response = code && ({ protocol: 'orka.harness.v2', code, message: 'm', retryable, classification } as const);
  return new HarnessError(kind, {
    at: 'PUT /v2/x',
    says: 'connect ECONNREFUSED 10.1.2.3:8080',
    evidence,
    status,
    ...(response ? { response } : {}),
  });
}

export function fakeHarness(runtimeProfileDigest: string): FakeHarness {
  const asked: string[] = [];
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
    createSession: (operation, _order, call) => {
      asked.push(operation.operationID);
      return it.answers.createSession(call?.signal) as never;
    },
    prompt: async (operation, order, call) => {
      asked.push(`${operation.operationID}: ${order.input.content[0]?.text ?? ''}`);
      await it.answers.prompt();
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
    renewLease: (operation) => {
      asked.push(operation.operationID);
      return it.answers.renewLease() as never;
    },
    cancel: (_operation, _id, { reason }) => {
      asked.push(`cancel ${reason}`);
      return it.answers.cancel() as never;
    },
    workspaceDelta: async (operation) => {
      asked.push(operation.operationID);
      return { delta: await it.answers.delta() } as never;
    },
    close: () => undefined,
  };

  const it: FakeHarness = {
    asked,
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
