import type { ActiveInstance, AdmissionState, Condition, Manifest, PoolLifecycle, RuntimePool } from '../../api/index.js';
import type { PodEndCause } from '../../domain/pod-end.js';
import type { PodView } from './observation.js';

export const poolConditions = ['AdmissionReady', 'PodSecurityReady', 'QuotaReady', 'SchedulingReady', 'RolloutReady'] as const;
export type PoolCondition = (typeof poolConditions)[number];

/** A condition without its times. */
export type ConditionIntent = Pick<Condition, 'status' | 'reason' | 'message'>;

/** What the status of a pool should say. Conditions that are not named stay. */
export interface StatusIntent {
  readonly lifecycle: PoolLifecycle;
  readonly admission: AdmissionState;
  /** `keep` = the one that is recorded; nobody is told to forget a fence that may still be needed. */
  readonly instance: ActiveInstance | 'keep' | 'none';
  readonly message: string;
  readonly conditions: Readonly<Partial<Record<PoolCondition, ConditionIntent>>>;
  /** Counters of the instance. @default those that are recorded, zero without an instance */
  readonly pressure?: Readonly<
    Record<
      | 'maxResidentSessions'
      | 'maxRunningPrompts'
      | 'residentSessions'
      | 'runningPrompts'
      | 'pendingPermissions'
      | 'liveDescendants',
      number
    >
  >;
}

/** Why a sandbox was given up. It counts: the next one follows later and later. */
export const recycleCauses = [
  'claim-changed',
  'claim-ended',
  'claim-blocked',
  'credentials-lost',
  'template-changed',
  'isolation-lost',
  'cold-start',
  'pod-ended',
  'not-attested',
  'instance-changed',
  'seed-conflict',
  'restarted',
  'unhealthy',
  'sessions-failed',
  'identity-capacity',
] as const;
export type RecycleCause = (typeof recycleCauses)[number];
/** `planned`: drained, or never used. `unproven`: nobody knows whether it was quiet, which somebody should know. */
export type EndCause = RecycleCause | 'planned' | 'unproven';

export function isRecycled(cause: EndCause): cause is RecycleCause {
  return recycleCauses.some((one) => one === cause);
}

/** One thing to be done. Each may be repeated: done twice it is as if done once. */
export type PoolEffect =
  | { readonly do: 'add-finalizer' }
  /** Reads token and private Secrets into memory. */
  | { readonly do: 'read-credentials' }
  /** Makes new private Secrets, and publishes them after that. */
  | { readonly do: 'create-credentials' }
  /** Stops using credentials that were consumed, or are gone: new ones will be made. */
  | { readonly do: 'retire-credentials' }
  /** Forgets which Pod was given credentials that are not used any more. */
  | { readonly do: 'unbind-instance' }
  /** Reads the Secret of the epoch that the instance was started with. */
  | { readonly do: 'read-instance-credentials'; readonly epoch: number }
  /** Creates what is absent, replaces what was changed. */
  | { readonly do: 'ensure'; readonly objects: readonly { readonly wanted: Manifest; readonly live: Manifest | undefined }[] }
  | { readonly do: 'record-template'; readonly digest: string }
  | { readonly do: 'create-claim'; readonly claim: Manifest }
  | {
      readonly do: 'delete-claim';
      readonly claim: Manifest;
      readonly cause: EndCause;
      readonly because: string;
      /** What ended the Pod, or its container, before. */
      readonly by?: PodEndCause;
    }
  /** Makes the Deployment ask for its Pod. */
  | {
      readonly do: 'start-workload';
      readonly objects: readonly { readonly wanted: Manifest; readonly live: Manifest | undefined }[];
    }
  /** Scales the Deployment to zero. */
  | {
      readonly do: 'stop-workload';
      readonly claim: Manifest;
      readonly cause: EndCause;
      readonly because: string;
      /** What ended the Pod, or its container, before. */
      readonly by?: PodEndCause;
    }
  | { readonly do: 'attest'; readonly pod: PodView }
  | { readonly do: 'bind-instance'; readonly authSecretUid: string; readonly podUid: string }
  | { readonly do: 'seed'; readonly pod: PodView }
  | { readonly do: 'probe'; readonly pod: PodView }
  | { readonly do: 'drain'; readonly pod: PodView; readonly reason: string }
  | { readonly do: 'remove'; readonly objects: readonly Manifest[] }
  /** That it is wanted, or until when it was; in milliseconds since 1970. */
  | { readonly do: 'record-demand'; readonly at: number }
  /** `instead`: another pool, which is idle, and why. */
  | { readonly do: 'scale-to-zero'; readonly instead?: { readonly pool: RuntimePool; readonly because: string } }
  | { readonly do: 'delete-pool' }
  | { readonly do: 'remove-finalizer' };

export type PoolEffectName = PoolEffect['do'];

/** Every effect that a pool can have: what a test of each of them enumerates, so that none is forgotten. */
export const poolEffects = Object.keys({
  'add-finalizer': true,
  'read-credentials': true,
  'create-credentials': true,
  'retire-credentials': true,
  'unbind-instance': true,
  'read-instance-credentials': true,
  ensure: true,
  'record-template': true,
  'create-claim': true,
  'delete-claim': true,
  'start-workload': true,
  'stop-workload': true,
  attest: true,
  'bind-instance': true,
  seed: true,
  probe: true,
  drain: true,
  remove: true,
  'record-demand': true,
  'scale-to-zero': true,
  'delete-pool': true,
  'remove-finalizer': true,
} satisfies Readonly<Record<PoolEffectName, true>>) as readonly PoolEffectName[];

/** The next step: what the status should say now, what is done after it is written, or how long nothing need be done. */
export interface PoolDecision {
  readonly status?: StatusIntent;
  readonly effect?: PoolEffect;
  /** Milliseconds; only without an effect. Absent: until something changes. */
  readonly wait?: number;
}
