import type { PromptStream } from '../../harness/client.js';
import type { CancelReason, Settlement } from '../../harness/prompts.js';
import type { Submitted } from './attempt-port.js';
import { Cancellation, cancelWait } from './cancellation.js';
import { deadlineOf } from './decide.js';
import { LeaseKeeper } from './lease-keeper.js';

/** Milliseconds in which the stream of a prompt that is proven to have ended must end too. */
const lastWords = 5_000;

/**
 * Keeps a running prompt alive, and asks for its end: when the time of the Task is over, when nobody wants it any more, and when its lease cannot
 * be kept. The stream tells what came of it; breaking that is the last resort. Source: dispatch.md §4.4–4.5.
 */
export class Guard {
  readonly #attempt: Submitted;
  readonly #stream: PromptStream;
  readonly #cancellation: Cancellation;
  readonly #lease: LeaseKeeper;
  readonly #onCancelled = () => this.giveUp('controller_shutdown');
  readonly #onLost = () => this.#stream.abort();
  #why: CancelReason | undefined;
  #stopped = false;
  #cancelAbort: () => void = () => undefined;
  #cancelDeadline: () => void = () => undefined;

  constructor(attempt: Submitted, stream: PromptStream) {
    this.#attempt = attempt;
    this.#stream = stream;
    this.#cancellation = new Cancellation(attempt);
    this.#lease = new LeaseKeeper(attempt, () => this.giveUp('lease_expired'));
  }

  start(): void {
    const { cancelled, lost } = this.#attempt;
    void this.#lease.keep();
    this.#watchDeadline();
    cancelled.addEventListener('abort', this.#onCancelled, { once: true });
    if (cancelled.aborted) this.#onCancelled();
    // With its instance everything is over at once.
    lost.addEventListener('abort', this.#onLost, { once: true });
    if (lost.aborted) this.#onLost();
  }

  /** The first reason for which the prompt was asked to end. */
  get gaveUp(): CancelReason | undefined {
    return this.#why;
  }

  /** Asks for the end of the prompt, and breaks the stream when that does not end soon. */
  giveUp(reason: CancelReason): void {
    if (this.#stopped) return;
    this.#why ??= reason;
    this.#abortIn(cancelWait);
    void this.#cancellation.ask(reason).then((settlement) => {
      if (settlement) this.#abortIn(lastWords);
    });
  }

  /** How the prompt ended, asked for after its stream broke. `undefined` = not proven. */
  settlement(): Promise<Settlement | undefined> {
    return this.#cancellation.ask('stream_disconnected');
  }

  /** What is proven without another question. */
  get proven(): Settlement | undefined {
    return this.#cancellation.proven;
  }

  stop(): void {
    const { cancelled, lost } = this.#attempt;
    this.#stopped = true;
    this.#cancelAbort();
    this.#cancelDeadline();
    this.#lease.stop();
    cancelled.removeEventListener('abort', this.#onCancelled);
    lost.removeEventListener('abort', this.#onLost);
  }

  #abortIn(wait: number): void {
    this.#cancelAbort();
    if (!this.#stopped) this.#cancelAbort = this.#attempt.clock.after(wait, () => this.#stream.abort());
  }

  /** A clock waits for some weeks at most. */
  #watchDeadline(): void {
    const { clock } = this.#attempt;
    const left = deadlineOf(this.#attempt) - clock.now();
    if (left <= 0) this.giveUp('task_timeout');
    else this.#cancelDeadline = clock.after(left, () => this.#watchDeadline());
  }
}
