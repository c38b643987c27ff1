import type { ActiveInstance, RuntimePool, Task, TaskStatus } from '../../api/index.js';
import type { PodEnd } from '../../domain/pod-end.js';
import type { Thawed } from '../../domain/thaw.js';
import type { HarnessClient } from '../../harness/client.js';
import { backoffOf } from '../../kube/backoff.js';
import { sleep } from '../../kube/clock.js';
import type { Clock } from '../../kube/clock.js';
import { askedWait, KubeError } from '../../kube/errors.js';
import type { Ending } from './decision.js';
import type { SessionOrder } from '../../harness/sessions.js';
import type { ArtifactRequest } from '../../source/artifact-capability.js';
import type { AttemptOrders } from './orders.js';
import type { Receipt } from './result.js';
import { ended } from './status.js';

/** States in which a prompt may have been sent, and is not settled. */
export const afterSubmission: readonly string[] = ['Submitting', 'Accepted', 'Running'];

/** What an attempt changes outside itself. Each write is durable before the step that it allows. */
export interface AttemptPort {
  /** Writes what `change` makes of the Task as it is stored, if it is still in `from`; throws otherwise. */
  readonly advance: (from: readonly string[], change: (task: Task) => TaskStatus) => Promise<Task>;
  readonly storeResult: (text: string, receipt: Receipt) => Promise<void>;
  /** Writes why the Task waits, if it is still in `from`. What fails is reported. */
  readonly say: (from: readonly string[], message: string) => Promise<void>;
  /** Something failed, with all that the log should have of it: a Task says only the cause. */
  readonly report: (error: unknown) => void;
  readonly passed: (phase: 'running' | 'settling', took: number) => void;
  /** Its pool and Pod are there, not being deleted, and the pool has the instance of the attempt, as far as this process has seen. */
  readonly serves: () => boolean;
  /** How its instance came to its end, as far as this process has seen; one whose Pod was deleted may still settle. */
  readonly ended: () => PodEnd | undefined;
  /** The same, after a wait for what its node may be about to report. A connection breaks before that. */
  readonly endReported: () => Promise<PodEnd | undefined>;
  /** Permits the download of the archive, after one more look at the Secret. `says`: why that Secret cannot be used any more. */
  readonly authorize: (
    download: ArtifactRequest,
  ) => Promise<
    { readonly authorization: NonNullable<SessionOrder['workspaceArtifactAuthorization']> } | { readonly says: string }
  >;
  /** Takes one step, and tells whoever watches. */
  readonly step: <T>(name: AttemptStep, take: () => Promise<T>) => Promise<T>;
}

/** Everything that an attempt does to the outside, in its order. Each may be the last one of a process. */
export const attemptSteps = [
  'reserve',
  'write-session-starting',
  'create-session',
  'write-submitting',
  'start-prompt',
  'write-running',
  'store-result',
  'write-settling',
  'workspace-delta',
  'write-outcome',
  'delete-session',
  'release',
] as const;
export type AttemptStep = (typeof attemptSteps)[number];

export interface Attempt {
  readonly task: Task;
  readonly pool: RuntimePool;
  readonly instance: ActiveInstance;
  readonly thawed: Thawed;
  readonly orders: AttemptOrders;
  readonly client: HarnessClient;
  readonly clock: Clock;
  /** The process must end, or does not lead any more: nothing is written after it. */
  readonly signal: AbortSignal;
  /** Somebody wants the prompt to end. */
  readonly cancelled: AbortSignal;
  /** The instance is gone, and nothing can be asked of it any more. */
  readonly lost: AbortSignal;
  /** No other session is tried after this one. */
  readonly lastTry: boolean;
  /** No other session is tried if the archive of its repository does not come. */
  readonly lastDownload: boolean;
}

/** One that was submitted. */
export interface Submitted extends Attempt {
  /** Bytes that a workspace may have changed, as its supervisor advertises. */
  readonly maxDelta: number;
  /** When its first lease was issued, in elapsed milliseconds. */
  readonly leasedAt: number;
}

/** What became of an attempt, and of its session: `none` was begun, it may be `open`, or it is `gone` with its instance. */
export type AttemptResult = AttemptEnd & { readonly session: 'none' | 'open' | 'gone' };

/** `queued`: no prompt was sent, for this reason, and it is tried again. `failed`: it stopped where its Task says. */
export type AttemptEnd =
  | { readonly outcome: 'settled' }
  | { readonly outcome: 'queued'; readonly because: string; readonly failedDownload?: boolean }
  | { readonly outcome: 'failed'; readonly error: unknown };

/** Settles the Task otherwise than well. */
export async function end(attempt: Attempt, port: AttemptPort, ending: Ending, from: readonly string[]): Promise<void> {
  await port.step('write-outcome', () =>
    insist(attempt, port, () => port.advance(from, (task) => ended(task, ending, attempt.clock.now()))),
  );
}

const insistence = { base: 1_000, cap: 15_000 };

/**
 * Writes to the API server until it is stored, for as long as this process leads: what the write is about has happened. Throws what is no
 * failure of the API server, above all that the attempt is not ours any more.
 */
export async function insist<T>(
  { clock, signal }: Attempt,
  port: AttemptPort,
  write: () => Promise<T>,
  over?: AbortSignal,
): Promise<T | undefined> {
  const ends = over ? AbortSignal.any([signal, over]) : signal;
  for (let failures = 1; ; failures++) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof KubeError) || signal.aborted) throw error;
      port.report(error);
      await sleep(clock, Math.max(backoffOf(failures, insistence), askedWait(error)), ends);
      if (over?.aborted) return undefined;
    }
  }
}
