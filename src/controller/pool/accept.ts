import type { ActiveInstance, RuntimePool } from '../../api/index.js';
import { protocolVersion } from '../../api/index.js';
import type { DeployedIdentity } from '../../domain/deployed.js';
import type { Capabilities, Status } from '../../harness/introspection.js';
import { isStrictlyGoverned } from '../../harness/introspection.js';
import type { Finding } from '../../lib/errors.js';
import { timestamp } from '../../kube/clock.js';
import { equalJson } from '../../lib/json.js';
import type { PodView } from './observation.js';

/**
 * The first thing in an authenticated answer that is not what the instance was started as. Only an instance without one is ever routed to.
 * Source: workload.md §6.5.
 */
export function instanceProblem(
  pool: RuntimePool,
  pod: PodView,
  expected: DeployedIdentity,
  { capabilities, status }: { readonly capabilities: Capabilities; readonly status: Status },
): Finding | undefined {
  const { profile } = pool.spec.runtime;
  const { fence } = status;
  const capacity = status.sessionIdentityCapacity;
  const checks: readonly (readonly [string, unknown, unknown])[] = [
    ['capabilities.acpVersion', capabilities.acpVersion, profile.acpProfile],
    ['capabilities.adapterDigests', capabilities.adapterDigests, profile.adapterDigests],
    ['capabilities.provider.providerKinds', capabilities.provider.providerKinds, [profile.providerKind]],
    ['capabilities.provider.models', capabilities.provider.models, [profile.model]],
    ['capabilities.provider.supportsCancel', capabilities.provider.supportsCancel, true],
    ['capabilities.provider.supportsTools', capabilities.provider.supportsTools, true],
    ['capabilities.workspaceGovernance', isStrictlyGoverned(capabilities), true],
    ['capabilities.runtimeProfileDigest', capabilities.runtimeProfileDigest, expected.profileDigest],
    ['status.fence.runtimeProfileDigest', fence.runtimeProfileDigest, expected.profileDigest],
    ['status.fence.runtimePoolUID', fence.runtimePoolUID, pool.metadata.uid],
    ['status.fence.runtimePoolGeneration', fence.runtimePoolGeneration, expected.poolGeneration],
    ['status.fence.controllerEpoch', fence.controllerEpoch, expected.controllerEpoch],
    ['capabilities.supportsDrain', capabilities.supportsDrain, true],
    ['status.fence.runtimeInstanceID', fence.runtimeInstanceID, `${pod.uid}.${fence.supervisorBootID}`],
    [
      'status.sessionIdentityCapacity',
      !capacity || capacity.total - capacity.exhaustionReserve >= capabilities.limits.maxResidentSessions,
      true,
    ],
  ];
  const wrong = checks.find(([, found, wanted]) => !equalJson(found, wanted));
  return wrong && { at: `the instance in Pod ${pod.name}`, field: wrong[0], found: wrong[1], allowed: JSON.stringify(wrong[2]) };
}

/** The routing surface of an accepted instance. Source: workload.md §1.4. */
export function activeInstance(pod: PodView, identity: DeployedIdentity, { fence }: Status, at: number): ActiveInstance {
  return {
    podNamespace: pod.namespace,
    podName: pod.name,
    podAddress: pod.address ?? '',
    podUID: pod.uid,
    bootID: fence.supervisorBootID,
    runtimeInstanceID: fence.runtimeInstanceID,
    controllerEpoch: fence.controllerEpoch,
    protocolVersion,
    profileDigest: fence.runtimeProfileDigest,
    profileDigestSchemaVersion: String(fence.profileDigestSchemaVersion),
    providerTokenGeneration: identity.tokenGeneration,
    lastObservedTime: timestamp(at),
  };
}
