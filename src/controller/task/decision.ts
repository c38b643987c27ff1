import type { Agent, TokenUsage } from '../../api/index.js';
import type { Refusal } from '../../domain/admission/admit.js';
import type { Plan } from '../../domain/plan.js';
import type { SourceWork } from './source-run.js';

/** How an attempt ends that does not end by itself. */
export interface Ending {
  readonly state: 'Failed' | 'Cancelled' | 'OutcomeUnknown';
  /** Of the execution, in the words of the contract. */
  readonly reason: string;
  readonly message: string;
  /** Tokens that its prompt cost, as far as they were reported. */
  readonly usage?: TokenUsage | undefined;
  /** What it came from, for the condition `Complete` and the event. @default the reason */
  readonly cause?: string;
}

/** Why a Task waits, as its events say it. `AtCapacity` is the execution's reason too. */
export type WaitReason = Exclude<WaitsFor, 'RuntimePoolStarting'>;

/** What a Task waits for that has not begun. Without a reason that its events say, its pool is on its way. */
export const waitReasons = [
  'Paused',
  'AtCapacity',
  'CreateRefused',
  'RuntimePoolUnavailable',
  'RuntimePoolClassUnavailable',
  /** Recorded as a condition too: it is waited for for a bounded time. */
  'RuntimePoolClassMissing',
  'NamespaceTaskLimitReached',
  'RightMissing',
  /** Its repository is looked up, or fetched. */
  'RepositoryFetching',
  'RuntimePoolStarting',
] as const;
export type WaitsFor = (typeof waitReasons)[number];

/** One thing to be done for a Task. */
export type TaskEffect =
  | { readonly do: 'read-agent' }
  | { readonly do: 'read-system-prompt' }
  | { readonly do: 'refuse'; readonly refusal: Refusal }
  /** Finalizer, pool label and time, before anything exists that must be cleaned. */
  | { readonly do: 'take'; readonly plan: Plan }
  | { readonly do: 'bind'; readonly plan: Plan; readonly agent: Agent }
  | { readonly do: 'read-snapshot' }
  | { readonly do: 'read-namespace' }
  /** Makes sure of the pool, and joins its queue. */
  | { readonly do: 'queue'; readonly recovered: boolean }
  /** Records which version of the Secret its repository is read with. */
  | { readonly do: 'freeze-credential' }
  /** Asks the publisher beside everything else, with a record of the call. */
  | { readonly do: 'fetch-source'; readonly work: SourceWork }
  | { readonly do: 'cancel-source' }
  | { readonly do: 'start' }
  /** Tells why a Task waits, in its status and once as an event; without a message, that it does not any more. */
  | { readonly do: 'say'; readonly message: string | undefined; readonly reason?: WaitReason }
  | { readonly do: 'settle'; readonly ending: Ending }
  /** The prompt may have been sent by an earlier process: what it left on record decides, then what the instance says. */
  | { readonly do: 'settle-from-record' }
  | { readonly do: 'cancel'; readonly reason: 'deleted' | 'lost' }
  | { readonly do: 'clean-session' }
  /** Its session ended with its instance, which is as good as a deletion. */
  | { readonly do: 'record-cleanup' }
  /** It is finished for as long as it may stay. */
  | { readonly do: 'delete-task'; readonly because: string }
  | { readonly do: 'release' };

export interface TaskDecision {
  /** Why it waits. @default nothing that its events would say */
  readonly waits?: WaitReason;
  readonly effect?: TaskEffect;
  /** Milliseconds; only without an effect. Absent: until something changes. */
  readonly wait?: number;
  /** It could go on, but for a place in its namespace. @default it needs none, or something else as well */
  readonly forPlace?: true;
}
