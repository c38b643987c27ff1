/** An agent without a process: what it says comes over the real connection, and what is made of it is the bytes of the real stream. */
import type { ServerResponse } from 'node:http';
import { PassThrough, Writable } from 'node:stream';
import { readEvents } from '../../src/harness/event-stream.js';
import type { PromptEvent } from '../../src/harness/events.js';
import type { Fence } from '../../src/harness/fence.js';
import { sessionFence } from '../../src/harness/fence.js';
import type { Limits } from '../../src/harness/introspection.js';
import { sealRequest } from '../../src/harness/metadata.js';
import { protocol } from '../../src/harness/protocol.js';
import { connectAgent } from '../../src/supervisor/agent.js';
import { defaultLimits } from '../../src/supervisor/config.js';
import type { ProcessOwner } from '../../src/supervisor/processes.js';
import { startPrompt } from '../../src/supervisor/prompt.js';
import type { PromptRun } from '../../src/supervisor/prompt.js';
import type { ProxyRoute } from '../../src/supervisor/provider-proxy.js';
import { move, newSession, usualTiming } from '../../src/supervisor/session.js';
import type { Session } from '../../src/supervisor/session.js';
import { runtime, taskOrders } from './harness-orders.js';

export const secret = 'loopback-credential-4c1e';
const redact = (text: string) => text.replaceAll(secret, '[redacted]');

const made = runtime({ adapter: `sha256:${'a'.repeat(64)}` });
const pool: Fence = {
  runtimeInstanceID: 'pod-uid-1.boot-1',
  supervisorBootID: 'boot-1',
  controllerEpoch: 3,
  runtimePoolUID: 'pool-uid-1',
  runtimePoolGeneration: 2,
  runtimeProfileDigest: made.profileDigest as Fence['runtimeProfileDigest'],
  profileDigestSchemaVersion: 1,
};

export interface PlayedPrompt {
  /** The stream as the strict reader has it. */
  readonly events: readonly PromptEvent[];
  readonly bytes: string;
  readonly session: Session;
  /** Lines that were skipped. */
  readonly skipped: readonly string[];
  /** Updates without a prompt. */
  readonly late: number;
}

/** Collects what a prompt answers; its reader is fast. */
class Answer extends Writable {
  headersSent = false;
  readonly parts: Buffer[] = [];

  writeHead(): this {
    this.headersSent = true;
    return this;
  }

  override _write(part: Buffer, _encoding: string, done: () => void): void {
    this.parts.push(part);
    done();
  }
}

interface PlayOptions {
  /** Besides the usual ones. */
  readonly limits?: Partial<Limits>;
  /** Whose processes are the agent's. @default - nobody's */
  readonly owner?: ProcessOwner;
  /** Told once the prompt runs. */
  readonly started?: (run: PromptRun) => void;
  /** How it answers a cancellation. @default - it has stopped */
  readonly cancelAnswer?: string;
}

/** `lines`: what the agent writes after it was given the prompt, one message a line. Asked to cancel, it stops. */
export async function playPrompt(
  lines: readonly string[],
  {
    limits = {},
    owner = { sid: -1 },
    started = () => undefined,
    cancelAnswer = answerLine({ stopReason: 'cancelled' }),
  }: PlayOptions = {},
): Promise<PlayedPrompt> {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  let prompted = 0;
  const write = (line: string) => stdout.write(`${line.replaceAll('"$prompt"', String(prompted))}\n`);
  stdin.on('data', (sent: Buffer) => {
    for (const text of sent.toString().split('\n').filter(Boolean)) {
      const { id, method } = JSON.parse(text) as { id?: number; method: string };
      const greetings: Record<string, object> = { initialize: { protocolVersion: 1 }, 'session/new': { sessionId: 's' } };
      if (method === 'session/prompt') prompted = id ?? 0;
      if (method === 'session/prompt') for (const line of lines) write(line);
      else if (method === 'session/cancel') write(cancelAnswer);
      else if (method in greetings) stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: greetings[method] })}\n`);
    }
  });
  const task = taskOrders('played', made);
  const operation = task.operation('start-prompt', pool, { prompt: true });
  const lease = task.lease();
  const members = {
    lease,
    mcpAuthorization: task.authorization(lease),
    input: { content: [{ type: 'text', text: 'x' }] },
  } as const;
  const { metadata } = sealRequest(operation, members);
  const session = newSession({ protocol, metadata, ...task.session }, made.configuration, pool);
  move(session, 'idle');
  const skipped: string[] = [];
  let late = 0;
  const greeting = {
    session: { runtimeSessionID: task.runtimeSessionID, generation: 1, profileDigest: made.profileDigest },
    cwd: '/',
    maxMessage: 2 * 1024 * 1024,
    initializeTimeout: 10_000,
    model: made.configuration.model,
    redact,
    reports: {
      skippedLine: (line: string) => void skipped.push(line),
      lateUpdate: (count: number) => {
        late = count;
      },
    },
  };
  const peer = { stdin, stdout, exited: new Promise<string>(() => undefined) };
  const agent = await connectAgent(peer, owner, greeting);
  const answer = new Answer();
  const all = { ...defaultLimits, maxUpdateEventsPerSecond: 10_000, ...limits };
  const idle = () => undefined;
  const route: ProxyRoute = { ...({} as ProxyRoute), redact, trouble: idle, enable: idle, disable: idle, remove: idle };
  const run = await startPrompt(
    session,
    { protocol, metadata, ...members },
    {
      limits: all,
      model: 'gpt-5.5',
      agent,
      route,
      response: answer as unknown as ServerResponse,
      redact,
      ended: idle,
      timing: usualTiming,
    },
  );
  started(run);
  await run.settled;
  const {
    runtimeInstanceID,
    supervisorBootID,
    runtimeSessionUID = '',
    runtimeSessionGeneration = 0,
  } = sessionFence(pool, task.sessionUID, 1);
  const expected = {
    ...{ runtimeInstanceID, supervisorBootID, runtimeSessionUID, runtimeSessionGeneration },
    ...{ taskUID: task.taskUID, taskAttempt: 1, promptID: task.promptID, requestDigest: metadata.requestDigest },
  };
  async function* chunks() {
    yield* await Promise.resolve(answer.parts);
  }
  const events: PromptEvent[] = [];
  for await (const event of readEvents(chunks(), expected, all)) events.push(event);
  stdout.end();
  return { events, bytes: Buffer.concat(answer.parts).toString(), session, skipped, late };
}

/** The line of one `session/update`. */
export function updateLine(update: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's', update } });
}

/** The line of the answer to the prompt. */
export function answerLine(result: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', id: '$prompt', result });
}

export function errorLine(error: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', id: '$prompt', error });
}
