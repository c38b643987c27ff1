import type { ActiveInstance, RuntimePool, Task, TaskStatus } from '../../api/index.js';
import type { Thawed } from '../../domain/thaw.js';
import type { HarnessClient } from '../../harness/client.js';
import type { Clock } from '../../kube/clock.js';
import type { Ending } from './decision.js';
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
  readonly passed: (phase: 'running' | 'settling', took: number) => void;
  /** Its pool is there, not being deleted, and has the instance of the attempt, as far as this process has seen. */
  readonly serves: () => boolean;
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
}

/** One that was submitted. */
export interface Submitted extends Attempt {
  /** Bytes that a workspace may have changed, as its supervisor advertises. */
  readonly maxDelta: number;
}

/** `requeue`: no prompt was sent, for this reason, and it is tried again; `session`: in another one. */
export type AttemptOutcome = 'settled' | { readonly requeue: string; readonly session?: 'another' };

/** Settles the Task otherwise than well. */
export async function end({ clock }: Attempt, port: AttemptPort, ending: Ending, from: readonly string[]): Promise<void> {
  await port.step('write-outcome', () => port.advance(from, (task) => ended(task, ending, clock.now())));
}
