import type { Manifest, PoolLifecycle } from '../../api/index.js';
import type { Credentials } from '../../harness/bootstrap.js';
import type { Finding } from '../../lib/errors.js';
import type { Computed } from '../../lib/remember.js';
import type { Digest } from '../../lib/sha256.js';
import type { RenderedPool } from '../../render/instantiate.js';
import type { PodView, PoolObservation, Probe, Undecided } from './observation.js';

/** What only the controller knows of a pool's bootstrap: the contents of one auth Secret. Immutable like it. */
export interface AuthMaterial {
  readonly secretName: string;
  readonly secretUid: string;
  /** Only of a workspace pool: a plain one mounts its credentials. */
  readonly bootstrap?: { readonly nonce: string; readonly signingSeed: string; readonly publicKey: string };
  readonly credentials: Pick<Credentials, 'controllerToken' | 'capabilitySecret'>;
}

/** The token of the provider proxy, and the Secret that holds this pool's copy of it. */
export interface TokenMaterial {
  readonly generation: string;
  readonly value: string;
  readonly secretName: string;
  /** How the Secret was known to the watch when it was read. Another one since: it must be read again. */
  readonly watchedAs: string | undefined;
}

/**
 * What a process remembers of a pool between two steps. All of it can be found out again, so losing it loses nothing; none of it is
 * ever written anywhere.
 */
export interface PoolMemory {
  /** By epoch; `lost` = the Secret that the pool names is gone, or another. */
  readonly auth: Map<number, AuthMaterial | 'lost'>;
  token: TokenMaterial | { readonly says: string } | undefined;
  /** `accepted`: digest of the Pod as admission made it, where that was compared. */
  attested: { readonly podUid: string; readonly accepted?: Digest } | undefined;
  /** Whether the chain of the attested Pod differed when it was compared last. */
  compared: Computed<boolean> | undefined;
  undecided: Undecided | undefined;
  mismatch: { readonly podUid: string; readonly finding: Finding } | undefined;
  seeded: { readonly podUid: string; readonly containerId: string | undefined } | undefined;
  seeding: 'conflict' | { readonly failedAt: number; readonly says: string } | undefined;
  probe: Probe | undefined;
  rendered: Computed<RenderedPool> | undefined;
  /** UID of the claim that was there at the last look. */
  claim: string | undefined;
  /** UID of the claim that this process created. */
  created: string | undefined;
  /** UID of the claim whose deletion was asked for, or of the Deployment that was scaled to zero. */
  deleting: string | undefined;
  /** When a Deployment was asked for its Pod. */
  askedAt: number | undefined;
  recycling: { count: number; at: number; because: string };
  /** Somebody wanted it at the last look, and that this is over is not on record. */
  wanted: boolean;
  /** When its lifecycle was entered, if this process saw it. */
  entered: { readonly lifecycle: PoolLifecycle; readonly at: number } | undefined;
  /** Nothing is left of another pool of the name. */
  swept: boolean;
  /** What the server refused to let us do, until it lets us. */
  refused: string | undefined;
}

export function createMemory(): PoolMemory {
  return {
    auth: new Map(),
    token: undefined,
    attested: undefined,
    compared: undefined,
    undecided: undefined,
    mismatch: undefined,
    seeded: undefined,
    seeding: undefined,
    probe: undefined,
    rendered: undefined,
    claim: undefined,
    created: undefined,
    deleting: undefined,
    askedAt: undefined,
    recycling: { count: 0, at: 0, because: '' },
    wanted: false,
    entered: undefined,
    swept: false,
    refused: undefined,
  };
}

/** A Pod tells the id of its container later than its address; the first one that it tells is the one that was seeded, or asked. */
export function learnContainer(memory: PoolMemory, pods: readonly PodView[]): void {
  const { seeded, probe } = memory;
  const containerOf = (podUid: string) => pods.find(({ uid }) => uid === podUid)?.containerId;
  if (seeded && seeded.containerId === undefined) memory.seeded = { ...seeded, containerId: containerOf(seeded.podUid) };
  if (probe && probe.containerId === undefined) memory.probe = { ...probe, containerId: containerOf(probe.podUid) };
}

/** We asked for the deletion of this claim. */
export const isDeleting = ({ deleting }: PoolMemory, { metadata }: Manifest): boolean => deleting === metadata.uid;

/**
 * The claim of the last look is gone, and its deletion was not asked for. Told once, and only of a claim that this process created: an earlier
 * leader may have asked for the deletion of any other.
 */
export function missesClaim(memory: PoolMemory, { claim }: Pick<PoolObservation, 'claim'>): boolean {
  const before = memory.claim;
  memory.claim = claim?.live.metadata.uid;
  return before !== undefined && before === memory.created && memory.claim !== before && memory.deleting !== before;
}

/** Nothing that was known of an instance holds for the next one. */
export function forgetInstance(memory: PoolMemory): void {
  memory.attested = undefined;
  memory.compared = undefined;
  memory.undecided = undefined;
  memory.mismatch = undefined;
  memory.seeded = undefined;
  memory.seeding = undefined;
  memory.probe = undefined;
}
