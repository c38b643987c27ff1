import { providerKinds } from '../api/index.js';
import {
  checked,
  digest,
  flag,
  identifier,
  instantText,
  integer,
  list,
  map,
  nullable,
  oneOf,
  optional,
  record,
  text,
} from '../lib/decode.js';
import type { Decoded } from '../lib/decode.js';
import { fence } from './fence.js';
import { zeroInstant } from '../lib/instant.js';
import { mutationMetadata } from './metadata.js';
import { acpVersion, bounds, profileDigestSchemaVersion, protocol, transport } from './protocol.js';
import { classification } from './replay.js';
import { sessionStates } from './sessions.js';

/** Answers about an instance as a whole. Source: dispatch.md §5.6, workload.md §6.2, §6.3. */

/** Before its credentials have arrived a supervisor says only that. */
const bootingHealth = record({ protocol: oneOf(protocol), lifecycle: oneOf('booting') });
const fullHealth = record({ protocol: oneOf(protocol), status: oneOf('ok', 'degraded', 'unhealthy'), timestamp: instantText });
export type Health = { readonly status: 'booting' | 'ok' | 'degraded' | 'unhealthy' };

export const health = (value: unknown): Health => {
  if (typeof value === 'object' && value !== null && 'lifecycle' in value) {
    bootingHealth(value, []);
    return { status: 'booting' };
  }
  return { status: fullHealth(value, []).status };
};

const limits = checked(
  record({
    maxResidentSessions: integer(1),
    maxConcurrentPrompts: integer(1),
    maxRequestBytes: integer(1, bounds.requestBody),
    maxEventLineBytes: integer(1),
    maxTerminalResultBytes: integer(1),
    maxBufferedEvents: integer(1),
    maxUpdateEventsPerSecond: integer(1),
    minPromptLeaseMillis: integer(1),
    maxPromptLeaseMillis: integer(1),
    maxPendingPermissions: integer(1),
    maxWorkspaceDeltaBytes: integer(1),
  }),
  (value) => {
    if (value.maxConcurrentPrompts > value.maxResidentSessions) return 'no more prompts than sessions';
    return value.minPromptLeaseMillis <= value.maxPromptLeaseMillis ? undefined : 'a shortest lease below the longest';
  },
);
export type Limits = Decoded<typeof limits>;

const governance = record({
  mode: oneOf('strict-governed', 'trusted-non-governed'),
  trusted: optional(flag),
  orkaOwnedWorkspaceDeltas: flag,
  promptScopedBrokerAuthorization: flag,
  noDirectSCMPublication: flag,
  orkaOwnedCleanRoomPublication: flag,
  exactInstanceFencing: flag,
  duplicateSafeMutations: flag,
  cancellationSettlement: flag,
});

export const capabilities = record({
  protocol: oneOf(protocol),
  transport: oneOf(transport),
  acpVersion: oneOf(acpVersion),
  runtimeProfileDigest: digest,
  profileDigestSchemaVersion: oneOf(profileDigestSchemaVersion),
  adapterDigests: map(digest, { min: 1, max: 32 }),
  limits,
  provider: record({
    providerKinds: list(oneOf(...providerKinds), { min: 1, max: 32 }),
    models: optional(nullable(list(text({ min: 1, max: 1024 }), { max: 256 }))),
    supportsPermissions: flag,
    supportsCancel: flag,
    supportsTools: flag,
    supportsImages: optional(flag),
    supportsAudio: optional(flag),
    supportsEmbeddedResources: optional(flag),
  }),
  workspaceGovernance: governance,
  supportsDrain: flag,
  supportsPublicationFinalization: flag,
  supportsAgentSessionConfiguration: optional(flag),
});
export type Capabilities = Decoded<typeof capabilities>;

/** Whether an instance keeps all seven promises, which is what a controller admits. */
export function isStrictlyGoverned({ workspaceGovernance: promises }: Capabilities): boolean {
  const { mode, trusted, ...rest } = promises;
  return mode === 'strict-governed' && trusted !== true && Object.values(rest).every((promise) => promise);
}

const lifecycles = ['booting', 'ready', 'draining', 'terminating', 'unhealthy'] as const;
export type Lifecycle = (typeof lifecycles)[number];

/** `requestedAt` is {@link zeroInstant} while no drain is requested. */
const drainState = record({
  acceptingNewSessions: flag,
  requested: flag,
  requestedAt: instantText,
  reason: optional(text({ max: 1024 })),
});
export type DrainState = Decoded<typeof drainState>;

/** Why an instance drains by itself that fails to make one session after the other. */
export const sessionsFailed = 'session_creation_failed';

const most = 10_000;

const sessionStatus = record({
  runtimeSessionID: identifier,
  runtimeSessionUID: identifier,
  generation: integer(1),
  state: oneOf(...sessionStates),
  activePromptID: optional(identifier),
  pendingPermissionCount: integer(0),
  reservedForFinalization: flag,
  liveDescendantCount: integer(0),
  lastTransitionAt: instantText,
});
type SessionStatus = Decoded<typeof sessionStatus>;

const activePrompt = record({
  runtimeSessionUID: identifier,
  sessionGeneration: integer(1),
  taskUID: identifier,
  taskAttempt: integer(1),
  promptID: identifier,
  leaseExpiresAt: instantText,
  frameSequence: integer(1),
  pendingPermissions: integer(0),
  startedAt: instantText,
});
type ActivePrompt = Decoded<typeof activePrompt>;

const pendingPermission = record({
  runtimeSessionUID: identifier,
  promptID: identifier,
  requestID: identifier,
  requestedAt: instantText,
  expiresAt: instantText,
});

export const status = checked(
  record({
    protocol: oneOf(protocol),
    fence,
    lifecycle: oneOf(...lifecycles),
    drain: drainState,
    sessions: nullable(list(sessionStatus, { max: most })),
    activePrompts: nullable(list(activePrompt, { max: most })),
    pendingPermissions: nullable(list(pendingPermission, { max: most })),
    pressure: record({
      residentSessions: integer(0),
      activePrompts: integer(0),
      queuedAdmissions: integer(0),
      pendingPermissions: integer(0),
      liveDescendants: integer(0),
      memoryWorkingSetBytes: optional(integer(0)),
      writableBytes: optional(integer(0)),
      pidCurrent: optional(integer(0)),
    }),
    sessionIdentityCapacity: optional(record({ total: integer(1), remaining: integer(0), exhaustionReserve: integer(1) })),
    timestamp: instantText,
  }),
  (value) => statusProblem(value),
);
export type Status = Decoded<typeof status>;

/**
 * What in a status contradicts itself. A poisoned instance does (unhealthy and drain requested), so that nothing is ever admitted to
 * it. Source: dispatch.md §5.6.
 */
function statusProblem(value: {
  readonly fence: { readonly runtimeSessionUID?: string | undefined };
  readonly lifecycle: Lifecycle;
  readonly drain: DrainState;
  readonly sessions: readonly SessionStatus[] | null;
  readonly activePrompts: readonly ActivePrompt[] | null;
  readonly pendingPermissions: readonly Decoded<typeof pendingPermission>[] | null;
  readonly pressure: { readonly residentSessions: number; readonly activePrompts: number; readonly pendingPermissions: number };
  readonly sessionIdentityCapacity?:
    { readonly total: number; readonly remaining: number; readonly exhaustionReserve: number } | undefined;
}): string | undefined {
  const { drain, lifecycle, pressure, sessionIdentityCapacity: capacity } = value;
  const [sessions, prompts, permissions] = [value.sessions ?? [], value.activePrompts ?? [], value.pendingPermissions ?? []];
  const asked = drain.requestedAt !== zeroInstant;
  const ending = lifecycle === 'draining' || lifecycle === 'terminating';
  if (value.fence.runtimeSessionUID !== undefined) return 'a fence without a session';
  if (drain.requested && (drain.acceptingNewSessions || !asked || !ending))
    return 'a requested drain with its time, in lifecycle draining or terminating, accepting nothing';
  if (!drain.requested && (asked || drain.reason !== undefined || lifecycle === 'draining'))
    return 'neither time, reason nor lifecycle of a drain that was not requested';
  const counted =
    sessions.length === pressure.residentSessions &&
    prompts.length === pressure.activePrompts &&
    permissions.length === pressure.pendingPermissions;
  if (!counted) return 'lists as long as their counters';
  const running = sessions.filter(({ state }) => state === 'prompt_running');
  const uids = new Set(sessions.map(({ runtimeSessionUID }) => runtimeSessionUID));
  if (uids.size < sessions.length) return 'each session once';
  if (sessions.some((session) => session.activePromptID !== undefined && session.state !== 'prompt_running'))
    return 'active prompts only in sessions that run one';
  const paired =
    prompts.length === running.length &&
    prompts.every((prompt) =>
      running.some(
        (session) => session.runtimeSessionUID === prompt.runtimeSessionUID && session.activePromptID === prompt.promptID,
      ),
    );
  if (!paired) return 'one active prompt for each session that runs one';
  if (sessions.some((session) => session.state === 'finalizing' && !session.reservedForFinalization))
    return 'sessions in finalizing only with their reservation';
  if (permissions.some((asking) => !prompts.some((prompt) => prompt.promptID === asking.promptID)))
    return 'pending permissions only of active prompts';
  const fits = !capacity || (capacity.exhaustionReserve < capacity.total && capacity.remaining <= capacity.total);
  return fits ? undefined : 'an identity capacity that fits its total';
}

/** Whether a drained instance has nothing left that could run. */
export function isQuiescent({ drain, sessions, activePrompts, pendingPermissions, pressure }: Status): boolean {
  const counters = [
    pressure.residentSessions,
    pressure.activePrompts,
    pressure.queuedAdmissions,
    pressure.pendingPermissions,
    pressure.liveDescendants,
  ];
  const lists = [sessions, activePrompts, pendingPermissions];
  return (
    drain.requested && !drain.acceptingNewSessions && counters.every((n) => n === 0) && lists.every((l) => (l ?? []).length === 0)
  );
}

export const drainRequest = record({
  protocol: oneOf(protocol),
  metadata: mutationMetadata,
  reason: optional(text({ max: 1024 })),
});

export const drainResponse = record({ protocol: oneOf(protocol), classification, drain: drainState });
export type DrainResponse = Decoded<typeof drainResponse>;
