import { backoffOf } from '../../kube/backoff.js';
import { keyOf } from '../../kube/store.js';
import type { TaskMemory } from './memory.js';
import type { TaskObservation } from './observation.js';
import { SourceRun } from './source-run.js';
import type { SourceEnd, SourceRunOptions, SourceWork } from './source-run.js';

export interface SourceRunnerOptions extends Omit<SourceRunOptions, 'onError'> {
  /** The Task of a run that is over must be decided on again. */
  readonly again: (taskKey: string) => void;
  readonly onError: (taskKey: string, error: unknown) => void;
}

/** Between runs that failed for a reason of their own, such as an API server that does not answer. */
const backoff = { base: 1_000, cap: 30_000 };

/** Fetches sources beside everything else, one call at a time for each Task. */
export class SourceRunner {
  readonly #options: SourceRunnerOptions;
  readonly #runs = new Set<Promise<void>>();

  constructor(options: SourceRunnerOptions) {
    this.#options = options;
  }

  start({ task, source }: TaskObservation, memory: TaskMemory, work: SourceWork): void {
    if (!source || 'problem' in source || memory.source.run) return;
    const { clock, signal, onError } = this.#options;
    const stop = new AbortController();
    const key = keyOf(task);
    const options = { ...this.#options, onError: (error: unknown) => onError(key, error) };
    const run = new SourceRun(options, task, source.plan, AbortSignal.any([signal, stop.signal]));
    const underWay = { work, since: clock.now(), says: () => run.says, cancel: () => stop.abort() };
    memory.source.run = underWay;
    const ended = run.run(work).then((end) => {
      this.#runs.delete(ended);
      // The end of a run that was cancelled does not count.
      if (memory.source.run !== underWay) return;
      memory.source.run = undefined;
      this.#settle(key, memory, end);
      this.#options.again(key);
    });
    this.#runs.add(ended);
  }

  /** Resolves when nothing is fetched any more. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#runs);
  }

  #settle(key: string, memory: TaskMemory, end: SourceEnd): void {
    const { clock, onError, signal } = this.#options;
    const { source } = memory;
    source.heldUntil = undefined;
    switch (end.outcome) {
      case 'done':
        source.preparedAt = end.prepared ?? source.preparedAt;
        return;
      case 'refused':
        source.refusal = end.refusal;
        return;
      case 'failed': {
        const failedRuns = (source.failedRuns ?? 0) + 1;
        source.failedRuns = failedRuns;
        source.heldUntil = clock.now() + backoffOf(failedRuns, backoff);
        if (!signal.aborted) onError(key, end.error);
        return;
      }
      case 'stopped':
        return;
    }
  }
}
