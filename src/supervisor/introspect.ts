import { instant } from '../lib/instant.js';
import type { Capabilities, Status } from '../harness/introspection.js';
import { acpVersion, profileDigestSchemaVersion, protocol, transport } from '../harness/protocol.js';
import type { Instance } from './instance.js';
import { processesOf } from './processes.js';
import type { Session } from './session.js';

/** What an instance says of itself to everybody. */
export function healthOf(instance: Instance) {
  const lifecycle = instance.lifecycle();
  const degraded = lifecycle !== 'ready' || !instance.drainState().acceptingNewSessions;
  const status = lifecycle === 'unhealthy' ? 'unhealthy' : degraded ? 'degraded' : 'ok';
  return { protocol, status, timestamp: instant(Date.now()) } as const;
}

export function capabilitiesOf({ host: { config } }: Instance): Capabilities {
  return {
    protocol,
    transport,
    acpVersion,
    runtimeProfileDigest: config.profileDigest,
    profileDigestSchemaVersion,
    adapterDigests: config.profile.adapterDigests as Capabilities['adapterDigests'],
    limits: config.limits,
    provider: {
      providerKinds: [config.profile.providerKind],
      models: [config.profile.model],
      supportsPermissions: true,
      supportsCancel: true,
      supportsTools: true,
    },
    // The promises about publication are kept by there being none.
    workspaceGovernance: {
      mode: 'strict-governed',
      orkaOwnedWorkspaceDeltas: true,
      promptScopedBrokerAuthorization: true,
      noDirectSCMPublication: true,
      orkaOwnedCleanRoomPublication: true,
      exactInstanceFencing: true,
      duplicateSafeMutations: true,
      cancellationSettlement: true,
    },
    supportsDrain: true,
    supportsPublicationFinalization: false,
    supportsAgentSessionConfiguration: true,
  };
}

export function statusOf(instance: Instance): Status {
  const { host, sessions } = instance;
  const all = [...sessions.values()];
  const described = all.map(describe);
  const prompts = all.flatMap(activePrompt);
  return {
    protocol,
    fence: host.config.fence,
    lifecycle: instance.lifecycle(),
    drain: instance.drainState(),
    sessions: described,
    activePrompts: prompts,
    pendingPermissions: [],
    pressure: {
      residentSessions: described.length,
      activePrompts: prompts.length,
      queuedAdmissions: 0,
      pendingPermissions: 0,
      liveDescendants: described.reduce((sum, { liveDescendantCount }) => sum + liveDescendantCount, 0),
    },
    sessionIdentityCapacity: host.identities.capacity(),
    timestamp: instant(Date.now()),
  };
}

function describe({ order, fence, state, prompt, owner, lastTransitionAt }: Session) {
  return {
    runtimeSessionID: order.runtimeSessionID,
    runtimeSessionUID: fence.runtimeSessionUID ?? '',
    generation: fence.runtimeSessionGeneration ?? 0,
    state,
    ...(state === 'prompt_running' && prompt ? { activePromptID: prompt.request.metadata.promptID } : {}),
    pendingPermissionCount: 0,
    reservedForFinalization: false,
    liveDescendantCount: owner === undefined ? 0 : processesOf(owner).length,
    lastTransitionAt,
  };
}

function activePrompt({ fence, state, prompt }: Session): NonNullable<Status['activePrompts']> {
  if (!prompt || state !== 'prompt_running') return [];
  const { metadata } = prompt.request;
  return [
    {
      runtimeSessionUID: fence.runtimeSessionUID ?? '',
      sessionGeneration: fence.runtimeSessionGeneration ?? 0,
      taskUID: metadata.taskUID ?? '',
      taskAttempt: metadata.taskAttempt ?? 0,
      promptID: metadata.promptID ?? '',
      leaseExpiresAt: prompt.lease().expiresAt,
      frameSequence: prompt.sequence(),
      pendingPermissions: 0,
      startedAt: prompt.startedAt,
    },
  ];
}
