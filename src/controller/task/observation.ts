import { executionOutcomes } from '../../api/index.js';
import type { Agent, RuntimePool, Task } from '../../api/index.js';
import type { Hosting } from '../../domain/admission/rule.js';
import type { PodEnd } from '../../domain/pod-end.js';
import type { Waiting } from '../../domain/queue-order.js';
import type { Thawed } from '../../domain/thaw.js';
import type { Finding } from '../../lib/errors.js';
import type { ClassVerdict } from '../classes.js';
import type { Pause } from '../pauses.js';
import type { Held, RefusedCreate } from './memory.js';
import type { Quota } from './places.js';
import type { SourcePlan, SourceStanding } from '../../domain/source-plan.js';
import type { SourceRefusal } from '../../domain/source-refusals.js';
import type { SourceWork } from './source-run.js';

/** The repository of a bound Task, as far as it has come. Times in milliseconds since 1970. */
export interface SourceView {
  readonly plan: SourcePlan;
  readonly standing: SourceStanding;
  /** What this process asks the publisher now, and since when. */
  readonly work: SourceWork | undefined;
  readonly since: number;
  /** Why the last try came to nothing. */
  readonly says: string | undefined;
  readonly refusal: SourceRefusal | undefined;
  /** When the publisher last named the archive. */
  readonly preparedAt: number;
  /** When the next run is due, after one that failed. */
  readonly heldUntil: number;
}

/** Everything that the next step of a Task depends on, as a plain value. */
export interface TaskObservation {
  readonly task: Task;
  readonly hosting: Hosting;
  /** Kinds of its namespace that decide about it and cannot be listed: what is absent here may be there. */
  readonly unreadableKinds: readonly string[];
  /** `unread` = the watch does not know it; the server has not been asked. */
  readonly agent: Agent | 'unread' | undefined;
  /** Text of the Agent's `systemPrompt.configMapRef`. `absent` = it refers to none. */
  readonly systemPrompt: 'absent' | 'unread' | { readonly missing: string } | { readonly text: string };
  /** Of the runtime of the Agent, or of the binding once there is one. */
  readonly poolClass: ClassVerdict | undefined;
  /** What the Task is bound to. */
  readonly frozen: 'unbound' | 'unread' | Thawed | { readonly problem: Finding };
  /** Of the plan's name, whoever made it. */
  readonly pool: RuntimePool | undefined;
  /** Other Tasks that wait for a slot of that pool, and hold none. */
  readonly rivals: readonly Waiting[];
  /** Of the Task's namespace. `undefined` = there may be as many Tasks as one likes, or this one has its place. */
  readonly quota: Quota | undefined;
  /** Who paused new Tasks of the namespace. */
  readonly paused: Pause | undefined;
  /** UID of the namespace as it is now. `undefined` = the server was not asked yet; only a bound Task asks. */
  readonly namespaceUid: string | undefined;
  /** Epoch of this leadership. */
  readonly epoch: number;
  /** Milliseconds since 1970 at which it began. */
  readonly ledSince: number;
  /** Seconds after which a finished Task is deleted that does not say so itself. `undefined` = it is kept. */
  readonly ttlSeconds: number | undefined;
  /** `undefined` = the Task is not bound, or has no repository. */
  readonly source: SourceView | { readonly problem: Finding } | undefined;
  /** A call to the publisher for this Task runs in this process. */
  readonly fetching: boolean;
  /** An attempt runs in this process. */
  readonly running: boolean;
  /** This process has begun an attempt of it before. */
  readonly begun: boolean;
  /** How the instance of its last attempt came to its end, if it did. */
  readonly ended: PodEnd | undefined;
  /** Of the instance that the pool has now. */
  readonly held: Held | undefined;
  /** An object that the Task needs could not be created in its namespace. */
  readonly refused: RefusedCreate | undefined;
  /** An attempt runs, and its instance is not there any more. */
  readonly lost: boolean;
  /**
   * The session of an attempt that no process runs may still be there, unless it is `gone` with its instance, which is not on record yet.
   * `unreachable` = nothing can be asked of its instance now.
   */
  readonly leftSession: 'none' | 'gone' | 'reachable' | 'unreachable';
  /** Generation of that session. */
  readonly leftGeneration: number;
}

/** States after which nothing is sent any more. */
const terminal: readonly string[] = executionOutcomes;

/** States that an attempt whose process ended may have been left in after its prompt was sent, or was about to be. */
const sentStates: readonly string[] = ['Submitting', 'SubmittedUnknown', 'Accepted', 'Running', 'Settling'];

export function mayHaveSent({ status }: Task): boolean {
  return sentStates.includes(status?.execution?.state ?? '');
}

/** Condition of a Task whose class is missing; its time is when that began. */
export const classAvailable = 'ClassAvailable';

/** Milliseconds since 1970; `undefined` = its class is not on record as missing. */
export function classMissingSince({ status }: Task): number | undefined {
  const found = status?.conditions?.find(({ type, status: is }) => type === classAvailable && is === 'False');
  const since = Date.parse(found?.lastTransitionTime ?? '');
  return Number.isNaN(since) ? undefined : since;
}

export function isBound({ status }: Task): boolean {
  return status?.agentExecutionBinding !== undefined;
}

export function isSettled({ status }: Task): boolean {
  return terminal.includes(status?.execution?.state ?? '') || ['Succeeded', 'Failed', 'Cancelled'].includes(status?.phase ?? '');
}
