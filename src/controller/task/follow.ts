import type { TokenUsage } from '../../api/index.js';
import { isTerminal } from '../../harness/events.js';
import type { PromptStream } from '../../harness/client.js';
import type { PromptEvent } from '../../harness/events.js';
import type { PodEnd } from '../../domain/pod-end.js';
import { afterSubmission, end, insist } from './attempt-port.js';
import type { AttemptPort, Submitted } from './attempt-port.js';
import type { Ending } from './decision.js';
import { Guard } from './guard.js';
import { endingOf, longestResult, settle } from './settling.js';
import { moved } from './status.js';
import { tokensOf } from './usage.js';
import { causeOf } from './cause.js';

/** Reads the events to the end, keeps the lease, and ends the prompt when nobody wants it any more or its time is over. */
export async function follow(attempt: Submitted, port: AttemptPort, stream: PromptStream): Promise<void> {
  const { clock, signal } = attempt;
  const watch = new Guard(attempt, stream);
  const began = clock.elapsed();
  const over = new AbortController();
  let writing = Promise.resolve();
  let heard: Heard = { spoken: '', last: undefined, usage: undefined };
  watch.start();
  try {
    heard = await listen(stream, {
      accepted: () => {
        writing = writeRunning(attempt, port, watch, over.signal);
      },
      // Nobody is there to ask: what the policy does not allow by itself is not allowed.
      asks: () => watch.giveUp('user_requested'),
    });
  } catch (error) {
    if (signal.aborted) throw error;
    if (!attempt.lost.aborted) port.report(error);
    heard = { ...heard, broken: causeOf(error) };
  } finally {
    watch.stop();
    over.abort();
    await writing;
  }
  if (signal.aborted) throw new Error('the controller is stopping');
  const { last, broken = 'the stream ended without a terminal event' } = heard;
  if (!last || !isTerminal(last)) {
    await settleLost(attempt, port, watch, broken);
    return;
  }
  port.passed('running', clock.elapsed() - began);
  await settle(attempt, port, last, heard, watch);
}

/** What was heard of a prompt. */
interface Heard {
  readonly spoken: string;
  readonly last: PromptEvent | undefined;
  /** Tokens that its updates reported. */
  readonly usage: TokenUsage | undefined;
  /** Why the stream broke. */
  readonly broken?: string;
}

async function listen(stream: PromptStream, on: { readonly accepted: () => void; readonly asks: () => void }): Promise<Heard> {
  const spoken = transcript(longestResult);
  let last: PromptEvent | undefined;
  let usage: TokenUsage | undefined;
  for await (const event of stream.events) {
    last = event;
    if (event.type === 'accepted') on.accepted();
    if (event.type === 'update') {
      spoken.add(event.payload.assistantMessage?.text ?? '');
      usage = tokensOf(event.payload.usage) ?? usage;
    }
    if (event.type === 'permission_requested') on.asks();
  }
  return { spoken: spoken.text(), last, usage };
}

/**
 * Goes on beside the prompt until it is stored, or the prompt is over, which is settled from `Submitting` as well. An attempt that is not ours
 * any more has no use for its prompt. Never rejects.
 */
async function writeRunning(attempt: Submitted, port: AttemptPort, watch: Guard, over: AbortSignal): Promise<void> {
  const write = () => port.advance(['Submitting'], (task) => moved(task, 'Running', { state: 'Running' }, attempt.clock.now()));
  try {
    await port.step('write-running', () => insist(attempt, port, write, over));
  } catch (error) {
    if (!attempt.signal.aborted) port.report(error);
    watch.giveUp('controller_shutdown');
  }
}

/** What was said, up to the first part that goes beyond so many bytes. */
function transcript(most: number): { readonly add: (text: string) => void; readonly text: () => string } {
  const parts: string[] = [];
  let size = 0;
  return {
    add: (text) => {
      if (size > most) return;
      parts.push(text);
      size += Buffer.byteLength(text);
    },
    text: () => parts.join(''),
  };
}

/** The connection broke after the prompt was accepted. Only a proven settlement says more than that nobody knows. */
async function settleLost(attempt: Submitted, port: AttemptPort, watch: Guard, says: string): Promise<void> {
  const settlement = watch.proven ?? (attempt.lost.aborted ? undefined : await watch.settlement());
  if (attempt.signal.aborted) throw new Error('the controller is stopping');
  const ending = endingOf(settlement, watch.gaveUp, says) ?? lossOf(await port.endReported(), attempt, says);
  await end(attempt, port, ending, afterSubmission);
}

function lossOf(instance: PodEnd | undefined, { lost }: Submitted, says: string): Ending {
  const unknown = { state: 'OutcomeUnknown', reason: 'RuntimeLost' } as const;
  if (instance) return { ...unknown, message: `the prompt was lost: ${instance.says}`, cause: instance.cause };
  return { ...unknown, message: `the prompt was lost: ${lost.aborted ? 'its instance is gone' : says}` };
}
