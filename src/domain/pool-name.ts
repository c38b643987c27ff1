import { domainDigest, short } from './digests.js';
import type { Digest } from './digests.js';

/** What a pool's name depends on. */
export interface PlanIdentity {
  readonly providerKind: string;
  readonly profileDigest: Digest;
  readonly image: string;
  readonly binding?:
    | {
        readonly reusePolicy: string;
        readonly sessionUID: string;
        readonly workspaceSlot: string;
        readonly bindingDigest: Digest;
      }
    | undefined;
}

const ofSession = 'acp-ws-session-';

/**
 * Name of the RuntimePool that hosts a plan.
 *
 * A pool that belongs to a Session is named after Session and slot alone: an incompatible continuation must meet the existing
 * pool and be refused, never get a fresh file system. Source: workload.md §2.6.
 */
export function poolName({ providerKind, profileDigest, image, binding }: PlanIdentity): string {
  if (binding?.reusePolicy === 'session') {
    return `${ofSession}${hash({ sessionUID: binding.sessionUID, workspaceSlot: binding.workspaceSlot })}`;
  }
  const runtime = { profileDigest, runtimeImage: image };
  return binding
    ? `acp-ws-${providerKind}-${hash({ ...runtime, workspaceBindingDigest: binding.bindingDigest })}`
    : `acp-${providerKind}-${hash(runtime)}`;
}

/** A workspace pool of this name serves all Tasks of a Session; one of any other name serves one Task. */
export function belongsToSession(poolName: string): boolean {
  return poolName.startsWith(ofSession);
}

function hash(identity: Readonly<Record<string, string>>): string {
  return short(domainDigest('runtime-pool-identity', identity));
}
