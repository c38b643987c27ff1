import type { Agent, AgentExecutionBinding, Task } from '../api/index.js';
import { protocolVersion } from '../api/index.js';
import { canonicalJson } from '../lib/canonical-json.js';
import { normalizeDuration } from '../lib/duration.js';
import type { JsonObject } from '../lib/json.js';
import { digestOf } from '../lib/sha256.js';
import type { WorkspaceBinding } from './binding.js';
import { domainDigest, promptId, taskRequestDigest, toolDescriptorsDigest } from './digests.js';
import type { Digest } from './digests.js';
import type { Plan } from './plan.js';
import { descriptorsOf } from './tool-policy.js';

/** Everything a Task will run with, frozen before anything is created: live edits of Task, Agent and class change nothing after it. */
export interface Snapshot {
  /** Canonical bytes; the stored snapshot is exactly this text. */
  readonly body: string;
  readonly digest: Digest;
  /** `<task UID>/<digest>` */
  readonly id: string;
}

export const backend = 'runtime-pool';

/** Freezes a plan. Pure: same Task, Agent and plan, same bytes. Source: dispatch.md §3.3, corrections.md items 11, 30. */
export function freeze(task: Task, agent: Agent, plan: Plan): Snapshot {
  const body = canonicalJson({
    schemaVersion: 1,
    contractVersion: protocolVersion,
    backend,
    runtimeType: plan.configuration.providerKind,
    agent: agentIdentity(agent),
    configuration: { ...plan.configuration },
    runtimeImage: plan.image,
    runtimeProfile: { ...plan.profile },
    profileDigest: plan.profileDigest,
    poolName: plan.poolName,
    mcpConfiguration: mcpConfigurationOf(plan.toolPolicy, plan.profile),
    ...requestOf(task),
    defaultTools: defaultTools(agent),
    executionWorkspace: plan.binding && frozenBinding(plan.binding),
  });
  const digest = digestOf(body);
  return { body, digest, id: `${task.metadata.uid ?? ''}/${digest}` };
}

/** What a Task itself asks for, as it is frozen; its spec cannot change after that. */
export function requestOf({ spec }: Task) {
  return {
    prompt: spec.prompt ?? '',
    timeout: spec.timeout === undefined ? undefined : (normalizeDuration(spec.timeout) ?? spec.timeout),
    retryPolicy: spec.retryPolicy && withoutZeros(spec.retryPolicy),
    sessionRef: spec.sessionRef && withoutZeros(spec.sessionRef),
    workspace: spec.workspace && withoutZeros(spec.workspace),
    runtimeOverride: spec.agentRuntime && { ...spec.agentRuntime },
  };
}

/** The binding of a Task to its snapshot, but for the time. Written once into `status.agentExecutionBinding`. Source: dispatch.md §1.4, §3.4. */
export function bind(
  task: Task,
  agent: Agent,
  plan: Plan,
  snapshot: Snapshot,
  namespaceUID: string,
): Omit<AgentExecutionBinding, 'boundAt'> {
  const binding = {
    schemaVersion: 1,
    contractVersion: protocolVersion,
    backend,
    task: { namespaceUID, uid: task.metadata.uid ?? '', boundSpecGeneration: task.metadata.generation ?? 0 },
    agent: agentIdentity(agent),
    snapshot: { id: snapshot.id, digest: snapshot.digest, schemaVersion: 1 },
    runtimeType: plan.configuration.providerKind,
    runtimeProfileDigest: plan.profileDigest,
    runtimeProfileDigestSchemaVersion: 1,
  } as const;
  return { ...binding, bindingDigest: bindingDigest(binding) };
}

/** Digest and time are cleared, not left out: the digest is taken over `""` and `null`. Source: corrections.md item 10. */
function bindingDigest(binding: JsonObject): Digest {
  return domainDigest('agent-execution-binding', { ...binding, bindingDigest: '', boundAt: null });
}

/** Does a stored binding carry its own digest? */
export function isIntact({ bindingDigest: digest, boundAt: _boundAt, ...rest }: AgentExecutionBinding): boolean {
  return bindingDigest(rest) === digest;
}

/** Digest of what one attempt of a bound Task sends. Source: dispatch.md §4.1. */
export function attemptDigest(
  task: Task,
  plan: Plan,
  bound: { readonly bindingDigest: string; readonly snapshotDigest: string },
  attempt: number,
): Digest {
  const uid = task.metadata.uid ?? '';
  const { agentUID, agentGeneration } = plan.configuration;
  return taskRequestDigest({
    taskUID: uid,
    taskGeneration: task.metadata.generation ?? 0,
    attempt,
    promptID: promptId(uid, attempt),
    prompt: task.spec.prompt ?? '',
    agentUID,
    agentGeneration,
    agentConfiguration: { ...plan.configuration },
    runtimeProfileDigest: plan.profileDigest,
    workspace: task.spec.workspace ? withoutZeros(task.spec.workspace) : null,
    bindingDigest: bound.bindingDigest,
    snapshotDigest: bound.snapshotDigest,
  });
}

function agentIdentity({ metadata }: Agent) {
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    generation: metadata.generation ?? 0,
  };
}

/** What the supervisor is told about tools; it computes the three digests again. Source: dispatch.md §5.4. */
export function mcpConfigurationOf(toolPolicy: Plan['toolPolicy'], profile: Plan['profile']): JsonObject {
  const tools = descriptorsOf(toolPolicy);
  return {
    toolPolicyDigest: profile.toolPolicyDigest,
    approvalPolicyDigest: profile.approvalPolicyDigest,
    mcpConfigurationDigest: profile.mcpConfigurationDigest,
    toolPolicy: {
      allowedToolNames: toolPolicy.allowed,
      disallowedToolNames: toolPolicy.disallowed,
      allowBash: toolPolicy.allowBash,
      tools,
      descriptorDigest: toolDescriptorsDigest(tools),
    },
    approvalPolicy: {},
  };
}

/** An explicit empty list of the Agent is told only by `allowedToolsOmitted`. */
function defaultTools({ spec: { runtime } }: Agent): JsonObject | undefined {
  const { defaultAllowedTools: allowed, defaultAllowBash: allowBash } = runtime ?? {};
  if (allowed === undefined && allowBash === undefined) return undefined;
  return {
    allowedTools: allowed === undefined || allowed.length === 0 ? null : allowed,
    allowedToolsOmitted: allowed === undefined,
    allowBash,
  };
}

/** Empty members are left out here, although the binding's digest is taken over all eight. */
function frozenBinding(binding: WorkspaceBinding): JsonObject {
  return Object.fromEntries(Object.entries(binding).filter(([, value]) => value !== ''));
}

/** Members at their zero value are as if absent, so that `create: false` and no `create` freeze alike. */
function withoutZeros(value: object): JsonObject {
  return Object.fromEntries(
    Object.entries(value as JsonObject).filter(([, member]) => member !== 0 && member !== false && member !== ''),
  );
}
