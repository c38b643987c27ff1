import type { Manifest, RuntimePool } from '../../api/index.js';
import type { DeployedIdentity } from '../../domain/deployed.js';
import type { PodEnd } from '../../domain/pod-end.js';
import type { Family } from '../../domain/plan.js';
import type { Finding } from '../../lib/errors.js';
import type { Capabilities, Status } from '../../harness/introspection.js';
import type { RenderedPool } from '../../render/instantiate.js';
import type { ClassVerdict } from '../classes.js';
import type { Demand } from './demand.js';

/** Everything that the next step of a pool depends on, as a plain value. */
export interface PoolObservation {
  readonly pool: RuntimePool;
  readonly family: Family;
  /** Only one Task ever uses it: it ends with that Task, and the idle time is not for it. */
  readonly ofOneTask: boolean;
  /** Why the pool cannot be run at all. */
  readonly problem: Finding | undefined;
  /** `outdated`: the class can be used, but the pool was made from it as it was before. */
  readonly poolClass: ClassVerdict | { readonly state: 'outdated'; readonly name: string; readonly says: string };
  /** The operator's switch for the provider. */
  readonly enabled: boolean;
  /** Kinds of the provider that the server does not know. */
  readonly missingKinds: readonly string[];
  /** Fields that the class needs and the installed provider does not serve, or demands: one sentence each. */
  readonly unservedFields: readonly string[];
  /** Kinds that a pool of its family is made of, and that cannot be listed: what is absent here may be there. */
  readonly unreadableKinds: readonly string[];
  /** Epoch of this leadership. */
  readonly epoch: number;
  readonly demand: Demand;
  /** Milliseconds without demand after which a pool is not wanted any more. */
  readonly idleTtl: number;
  readonly credentials: CredentialsState;
  /** What should stand in the cluster; absent while credentials are not known. */
  readonly rendered: RenderedPool | undefined;
  /** In the order in which it is applied; empty while nothing is rendered. */
  readonly isolation: readonly IsolationObject[];
  /** What a Pod is made from: the SandboxTemplate, or the Deployment of a plain pool. */
  readonly template: TemplateView | undefined;
  readonly warmPool: ChildView | undefined;
  /** What asks for the one instance: the SandboxClaim, or the Deployment of a plain pool while it is not at zero. */
  readonly claim: ClaimView | undefined;
  readonly sandbox: Manifest | undefined;
  /** All Pods of this pool that are there, finished and dying ones included. */
  readonly pods: readonly PodView[];
  /** How the instance came to its end, if it did: of the recorded one, else of the Pod that was to become one. */
  readonly ended: PodEnd | undefined;
  /** Cordoned node that a Pod of this pool runs on and has to leave. */
  readonly cordonedNode: string | undefined;
  /** Sandbox and Pods of this pool that no owner holds: an orphaning deletion left them, or someone made them. */
  readonly orphans: readonly Manifest[];
  /** Policies of this pool that are not there. */
  readonly unguarded: readonly string[];
  /** Secrets of this pool that are of no use any more. */
  readonly staleSecrets: readonly Manifest[];
  /** Secrets with every label of this pool that no controller made so. */
  readonly strangers: readonly Manifest[];
  /** What would outlive the pool: isolation and Secrets, by the label of its UID. */
  readonly remains: readonly Manifest[];
  readonly recorded: RecordedState;
  readonly known: KnownOfInstance;
  /** Other pools, while a Pod of this one cannot be scheduled; otherwise none. */
  readonly neighbours: readonly Neighbour[];
  readonly recycling: { readonly count: number; readonly at: number; readonly because: string };
}

/** Another pool of the installation, which may have the room that a Pod needs. */
export interface Neighbour extends Pick<PoolObservation, 'pool' | 'family' | 'ofOneTask' | 'demand'> {
  /** A Pod of it is on a node. */
  readonly placed: boolean;
}

/** Private Secrets of the current epoch, and the token of the provider proxy. Values are never here. */
export type CredentialsState =
  /** Must be read before anything can be said. */
  | { readonly state: 'unread' }
  /** None was published for this epoch. */
  | { readonly state: 'unpublished' }
  /** The pool names a Secret that is gone. */
  | { readonly state: 'lost' }
  /** There is no usable token, or a Secret that is not ours stands where ours should. */
  | { readonly state: 'unusable'; readonly says: string }
  | { readonly state: 'ready'; readonly authSecretUid: string; readonly tokenGeneration: string };

export interface IsolationObject {
  readonly wanted: Manifest;
  readonly state: 'absent' | 'whole' | 'changed' | 'foreign';
  readonly live: Manifest | undefined;
}

interface ChildView {
  readonly live: Manifest;
  readonly owned: boolean;
  /** As it is rendered. */
  readonly whole: boolean;
}

export interface TemplateView extends ChildView {
  readonly specDigest: string;
  /** What its annotation says; a rendered template with another one is another rollout. */
  readonly revision: string | undefined;
}

export interface ClaimView extends ChildView {
  readonly deleting: boolean;
  readonly verdict: ClaimVerdict;
  /** When a Deployment was asked for its Pod, if it was by this process. @default when it was created */
  readonly askedAt?: number;
}

/**
 * What the claim's condition says about it. `unseen`: the provider has written nothing yet; `open`: it may still become ready, and `says` why it is not; `blocked`: a quota or an admission
 * forbids it for now, and the provider itself looks again ever later. Source: provider.md §4.3.
 */
export type ClaimVerdict =
  | { readonly state: 'unseen' }
  | { readonly state: 'open'; readonly says?: string }
  | { readonly state: 'refused' | 'blocked' | 'ended'; readonly says: string };

export interface PodView {
  readonly live: Manifest;
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  /** It has an address, is not finished and not being deleted: it may be an instance. */
  readonly address: string | undefined;
  readonly deleting: boolean;
  readonly finished: boolean;
  readonly ready: boolean;
  /** Changes when the container is started again. */
  readonly containerId: string | undefined;
  /** A reason that does not pass by itself soon: `ErrImagePull`, `CrashLoopBackOff` … */
  readonly waiting: string | undefined;
  /** Where it runs, or is about to. */
  readonly node: string | undefined;
  /** It may be placed on a cordoned node, and would be again. */
  readonly toleratesCordon: boolean;
  readonly unschedulable: { readonly reason: string; readonly message: string } | undefined;
  readonly identity: DeployedIdentity | undefined;
}

/** What annotations of the pool record. */
export interface RecordedState {
  readonly templateDigest: string | undefined;
  readonly instance: { readonly authSecretUID: string; readonly workloadUID: string } | 'unreadable' | undefined;
}

/** What is known of the one instance; lost with the process, and found out again. */
interface KnownOfInstance {
  /** UID of the Pod whose chain was compared, uncached. */
  readonly attested: string | undefined;
  /** The watched chain differs from what was attested. */
  readonly suspect: boolean;
  /** What the last comparison found different. */
  readonly mismatch: { readonly podUid: string; readonly finding: Finding } | undefined;
  /** Why the last comparison came to no end. */
  readonly undecided: Undecided | undefined;
  readonly seeded: { readonly podUid: string; readonly containerId: string | undefined } | undefined;
  readonly seeding: 'conflict' | { readonly failedAt: number; readonly says: string } | undefined;
  /** Credentials of the instance's own epoch can be had. */
  readonly authenticated: 'unread' | 'lost' | 'ready';
  readonly probe: Probe | undefined;
}

/** What admission makes of a Pod could not be asked, for the `count`th time at `at`. */
export interface Undecided {
  readonly podUid: string;
  readonly at: number;
  readonly count: number;
  readonly says: string;
}

/** The last look at the instance. */
export type Probe =
  (ProbeTimes & { readonly capabilities: Capabilities; readonly status: Status }) | (ProbeTimes & { readonly error: string });

interface ProbeTimes {
  readonly podUid: string;
  /** Of the container that answered. */
  readonly containerId?: string | undefined;
  readonly at: number;
  /** First of the answers, or of the failures, that followed each other without a break. */
  readonly since: number;
}
