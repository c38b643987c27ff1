import { isTerminal } from '../../harness/events.js';
import type { PromptStream } from '../../harness/client.js';
import type { PromptEvent } from '../../harness/events.js';
import { afterSubmission, end } from './attempt-port.js';
import type { Attempt, AttemptPort, Submitted } from './attempt-port.js';
import type { Ending } from './decision.js';
import { guard } from './guard.js';
import type { Guard } from './guard.js';
import { cancellation, longestResult, settle } from './settling.js';
import { moved } from './status.js';
import { textOf } from './words.js';

/** Reads the events to the end, keeps the lease, and ends the prompt when it is wanted or its time is over. */
export async function follow(attempt: Submitted, port: AttemptPort, stream: PromptStream): Promise<void> {
  const { clock, signal } = attempt;
  const watch = guard(attempt, stream);
  const began = clock.elapsed();
  const spoken = transcript(longestResult);
  let last: PromptEvent | undefined;
  try {
    for await (const event of stream.events) {
      last = event;
      if (event.type === 'accepted')
        await port.step('write-running', () =>
          port.advance(['Submitting'], (task) => moved(task, 'Running', { state: 'Running' }, clock.now())),
        );
      if (event.type === 'update') spoken.add(event.payload.assistantMessage?.text ?? '');
      if (event.type === 'permission_requested') await watch.reject(event.payload);
    }
  } catch (error) {
    if (signal.aborted) throw error;
    await settleLost(attempt, port, watch, textOf(error));
    return;
  } finally {
    watch.stop();
  }
  if (signal.aborted) throw new Error('the controller is stopping');
  if (!last || !isTerminal(last)) {
    await settleLost(attempt, port, watch, 'the stream ended without a terminal event');
    return;
  }
  port.passed('running', clock.elapsed() - began);
  await settle(attempt, port, last, spoken.text(), watch.gaveUp());
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
async function settleLost(attempt: Attempt, port: AttemptPort, watch: Guard, says: string): Promise<void> {
  const settlement = attempt.lost.aborted ? undefined : await watch.cancel('stream_disconnected');
  if (attempt.signal.aborted) throw new Error('the controller is stopping');
  const stop = settlement?.stopReason ?? settlement?.outcome;
  const lost: Ending = {
    state: 'OutcomeUnknown',
    reason: 'RuntimeLost',
    message: attempt.lost.aborted
      ? 'its instance is gone while the prompt ran'
      : `the connection to the prompt was lost: ${says}`,
  };
  const ending: Ending =
    settlement?.outcome === 'failed'
      ? { state: 'Failed', reason: 'PromptFailed', message: `the prompt ended (${stop}): ${says}` }
      : settlement?.outcome === 'cancelled'
        ? cancellation(watch.gaveUp(), `${stop}, ${says}`)
        : lost;
  await end(attempt, port, ending, afterSubmission);
}
