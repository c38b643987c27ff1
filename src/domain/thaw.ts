import type { AgentExecutionBinding, Task } from '../api/index.js';
import { protocolVersion } from '../api/index.js';
import { canonicalJson } from '../lib/canonical-json.js';
import type { Finding } from '../lib/errors.js';
import { parseDuration } from '../lib/duration.js';
import { equalJson, isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { digestOf } from '../lib/sha256.js';
import { slotOf } from './binding.js';
import type { WorkspaceBinding } from './binding.js';
import { domainDigest, mcpConfigurationDigest, toolPolicyDigest } from './digests.js';
import { isPinned, nameOf } from './plan.js';
import type { Plan } from './plan.js';
import { poolName } from './pool-name.js';
import { agentConfigurationDigest, lineageDigest, profileDigest } from './profile.js';
import type { AgentConfiguration, RuntimeProfile } from './profile.js';
import { backend, isIntact, mcpConfigurationOf, requestOf } from './snapshot.js';
import type { ToolPolicy } from './tool-policy.js';

/** What a bound Task runs with, read back from its snapshot. Live objects are never asked again. */
export interface Thawed {
  readonly plan: Plan;
  readonly prompt: string;
  /** Milliseconds from the creation of the Task to its end. */
  readonly timeout: number;
  readonly mcpConfiguration: JsonObject;
  /** `workspace` as it was frozen; `null` = none. */
  readonly workspace: JsonObject | null;
}

const defaultTimeout = 30 * 60_000;

interface Body extends JsonObject {
  readonly schemaVersion: number;
  readonly contractVersion: string;
  readonly backend: string;
  readonly runtimeType: string;
  readonly agent: JsonObject;
  readonly runtimeImage: string;
  readonly configuration: AgentConfiguration & JsonObject;
  readonly runtimeProfile: RuntimeProfile & JsonObject;
  readonly profileDigest: string;
  readonly poolName: string;
  readonly mcpConfiguration: JsonObject;
  readonly prompt: string;
}

const members = {
  schemaVersion: 'number',
  contractVersion: 'string',
  backend: 'string',
  runtimeType: 'string',
  agent: 'object',
  runtimeImage: 'string',
  configuration: 'object',
  runtimeProfile: 'object',
  profileDigest: 'string',
  poolName: 'string',
  mcpConfiguration: 'object',
  prompt: 'string',
} as const;
const optionalMembers = {
  timeout: 'string',
  retryPolicy: 'object',
  sessionRef: 'object',
  workspace: 'object',
  runtimeOverride: 'object',
  defaultTools: 'object',
  executionWorkspace: 'object',
} as const;

type Mismatch = readonly [field: string, found: unknown, wanted: unknown];

/**
 * Reads a snapshot back and recomputes everything that can be: anything off, and the Task fails closed. Source: dispatch.md §3.5,
 * workload.md §2.9.
 * @param runtimeNamespace of the class that serves the plan; it is no part of what is frozen
 */
export function thaw(task: Task, body: string, runtimeNamespace: string): Thawed | { readonly problem: Finding } {
  const refuse = ([field, found, wanted]: Mismatch) => {
    const allowed = typeof wanted === 'string' ? wanted : JSON.stringify(wanted ?? null);
    return { problem: { at: nameOf('Task', task), field, found, allowed } };
  };
  const binding = task.status?.agentExecutionBinding;
  if (!binding) return refuse(['status.agentExecutionBinding', undefined, 'the binding that was written once']);
  const bound = bindingProblem(task, binding);
  if (bound) return refuse(bound);
  if (digestOf(body) !== binding.snapshot.digest)
    return refuse(['status.agentExecutionBinding.snapshot.digest', binding.snapshot.digest, digestOf(body)]);
  const frozen = parsed(body);
  if (!frozen) return refuse(['snapshot', 'another text', 'canonical JSON of a snapshot']);
  const { configuration, runtimeProfile, mcpConfiguration } = frozen;
  const policy = toolPolicyOf(mcpConfiguration);
  const workspace = isObject(frozen['executionWorkspace']) ? wholeBinding(frozen['executionWorkspace']) : undefined;
  const identity = {
    providerKind: configuration.providerKind,
    image: frozen.runtimeImage,
    profileDigest: profileDigest(runtimeProfile),
    binding: workspace,
  };
  const agent = binding.agent ?? {};
  const { agentUID, agentGeneration, providerKind } = configuration;
  const recomputed: readonly Mismatch[] = [
    ['schemaVersion', frozen.schemaVersion, binding.snapshot.schemaVersion],
    ['contractVersion', frozen.contractVersion, protocolVersion],
    ['backend', frozen.backend, backend],
    ['runtimeType', frozen.runtimeType, binding.runtimeType],
    ['agent', frozen.agent, agent],
    ['configuration.agentUID', agentUID, binding.agent?.uid],
    ['configuration.agentGeneration', agentGeneration, binding.agent?.generation],
    ['configuration.providerKind', providerKind, binding.runtimeType],
    ['runtimeProfile.providerKind', runtimeProfile.providerKind, providerKind],
    ['runtimeProfile.model', runtimeProfile.model, configuration.model],
    ['runtimeProfile.agentConfigurationDigest', runtimeProfile.agentConfigurationDigest, agentConfigurationDigest(configuration)],
    ['runtimeProfile.toolPolicyDigest', runtimeProfile.toolPolicyDigest, toolPolicyDigest(policy)],
    ['runtimeProfile.mcpConfigurationDigest', runtimeProfile.mcpConfigurationDigest, mcpConfigurationDigest(policy.allowed)],
    ['mcpConfiguration', mcpConfiguration, mcpConfigurationOf(policy, runtimeProfile)],
    ['profileDigest', frozen.profileDigest, identity.profileDigest],
    ['profileDigest', frozen.profileDigest, binding.runtimeProfileDigest],
    ...Object.entries(requestOf(task)).map(([name, wanted]): Mismatch => [name, frozen[name], wanted]),
    ...(workspace ? workspaceMismatches(task, workspace) : []),
    ['poolName', frozen.poolName, poolName(identity)],
  ];
  const wrong = recomputed.find(([, found, wanted]) => !equalJson(found, wanted));
  if (wrong) return refuse([`snapshot.${wrong[0]}`, wrong[1], wrong[2]]);
  if (!isPinned(frozen.runtimeImage))
    return refuse(['snapshot.runtimeImage', frozen.runtimeImage, 'an image pinned by its digest']);
  const { timeout, workspace: repository } = frozen;
  return {
    plan: {
      family: workspace ? 'workspace' : 'plain',
      namespace: task.metadata.namespace ?? '',
      poolName: frozen.poolName,
      image: frozen.runtimeImage,
      runtimeNamespace,
      configuration,
      toolPolicy: policy,
      profile: runtimeProfile,
      profileDigest: identity.profileDigest,
      lineageDigest: lineageDigest(identity),
      binding: workspace,
    },
    prompt: frozen.prompt,
    timeout: (typeof timeout === 'string' ? parseDuration(timeout) : undefined) ?? defaultTimeout,
    mcpConfiguration,
    workspace: isObject(repository) ? repository : null,
  };
}

/** A body with all of its members, and no others. */
function parsed(body: string): Body | undefined {
  try {
    const value: unknown = JSON.parse(body);
    if (!isObject(value) || canonicalJson(value) !== body) return undefined;
    const required = Object.entries(members).every(([name, type]) => isA(value[name], type));
    const known: Readonly<Record<string, string | undefined>> = { ...members, ...optionalMembers };
    return required && Object.entries(value).every(([name, member]) => isA(member, known[name])) ? (value as Body) : undefined;
  } catch {
    return undefined;
  }
}

function isA(value: Json | undefined, type: string | undefined): boolean {
  return type === 'object' ? isObject(value) : typeof value === type;
}

function bindingProblem(task: Task, binding: AgentExecutionBinding): Mismatch | undefined {
  const { uid, generation, deletionTimestamp } = task.metadata;
  const { digest, id } = binding.snapshot;
  const checks: readonly Mismatch[] = [
    ['bindingDigest', isIntact(binding) ? binding.bindingDigest : 'another digest', binding.bindingDigest],
    ['task.uid', binding.task.uid, uid],
    // A deletion counts as a generation of its own.
    [
      'task.boundSpecGeneration',
      binding.task.boundSpecGeneration,
      deletionTimestamp === undefined ? generation : binding.task.boundSpecGeneration,
    ],
    ['contractVersion', binding.contractVersion, protocolVersion],
    ['backend', binding.backend, backend],
    ['snapshot.id', id, `${uid ?? ''}/${digest}`],
  ];
  const wrong = checks.find(([, found, wanted]) => found !== wanted);
  return wrong && [`status.agentExecutionBinding.${wrong[0]}`, wrong[1], wrong[2]];
}

/** The values that a frozen workspace may have. Source: workload.md §2.9. */
function workspaceMismatches(task: Task, workspace: WorkspaceBinding): readonly Mismatch[] {
  const { bindingDigest, ...fields } = workspace;
  const reuses = workspace.reusePolicy === 'session';
  const templated = workspace.provider === 'substrate';
  const has = (text: string) => (text === '' ? 'none' : 'some');
  const wanted: readonly Mismatch[] = [
    ['bindingDigest', bindingDigest, domainDigest('execution-workspace-binding', fields)],
    ['provider', workspace.provider, templated ? 'substrate' : 'agent-sandbox'],
    ['reusePolicy', workspace.reusePolicy, reuses ? 'session' : 'none'],
    ['cleanupPolicy', workspace.cleanupPolicy, 'delete'],
    ['templateNamespace', has(workspace.templateNamespace), templated ? 'some' : 'none'],
    ['templateName', has(workspace.templateName), templated ? 'some' : 'none'],
    ['sessionKey', workspace.sessionKey, reuses ? `session:${workspace.sessionUID}` : `task:${task.metadata.uid ?? ''}`],
    ['sessionUID', has(workspace.sessionUID), reuses ? 'some' : 'none'],
    ['workspaceSlot', workspace.workspaceSlot, reuses ? 'default' : slotOf(workspace.workspaceSlot)],
  ];
  return wanted.map(([name, ...values]) => [`executionWorkspace.${name}`, ...values]);
}

function toolPolicyOf(configuration: JsonObject): ToolPolicy {
  const policy = isObject(configuration['toolPolicy']) ? configuration['toolPolicy'] : {};
  const names = (value: Json | undefined) => (Array.isArray(value) ? (value as readonly string[]) : null);
  return {
    allowed: names(policy['allowedToolNames']),
    disallowed: names(policy['disallowedToolNames']),
    allowBash: policy['allowBash'] === true,
  };
}

/** Members that were left out because they are empty. */
function wholeBinding(frozen: JsonObject): WorkspaceBinding {
  const empty = {
    provider: '',
    reusePolicy: '',
    cleanupPolicy: '',
    workspaceSlot: '',
    sessionUID: '',
    sessionKey: '',
    templateNamespace: '',
    templateName: '',
  };
  return { ...empty, ...frozen } as unknown as WorkspaceBinding;
}
