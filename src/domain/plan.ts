import type { Agent, ProviderKind, RuntimePoolClassSpec, Task, WorkspaceIntent } from '../api/index.js';
import type { Finding } from '../lib/errors.js';
import { isPinnedImage, isUnbuiltImage } from '../lib/image-reference.js';
import { resolveBinding } from './binding.js';
import type { WorkspaceBinding } from './binding.js';
import { approvalPolicyDigest, mcpConfigurationDigest, toolPolicyDigest } from './digests.js';
import type { Digest } from './digests.js';
import { labelKeys } from './labels.js';
import { poolName } from './pool-name.js';
import { agentConfigurationDigest, lineageDigest, profileDigest } from './profile.js';
import type { AgentConfiguration, RuntimeProfile } from './profile.js';
import { toolPolicy, toolPolicyProblem } from './tool-policy.js';
import type { ToolPolicy } from './tool-policy.js';

/** `workspace`: a pool of one Task, in a sandbox. `plain`: a pool that Tasks share, in a Deployment. */
export type Family = 'workspace' | 'plain';

/** The pool that a Task needs, down to its name. Pure: same Task, Agent and class, same plan. */
export interface Plan {
  readonly family: Family;
  /** Namespace of the Task, and so of the RuntimePool. */
  readonly namespace: string;
  readonly poolName: string;
  readonly image: string;
  readonly runtimeNamespace: string;
  readonly configuration: AgentConfiguration;
  readonly toolPolicy: ToolPolicy;
  readonly profile: RuntimeProfile;
  readonly profileDigest: Digest;
  readonly lineageDigest: Digest;
  readonly binding?: WorkspaceBinding | undefined;
}

/** What {@link planTask} reads. */
export interface PlanInput {
  readonly task: Task;
  readonly agent: Agent;
  readonly poolClass: RuntimePoolClassSpec;
  readonly defaultProvider: string;
  /** UID of the Session that a `reusePolicy: session` Task continues. */
  readonly sessionUID?: string;
  /** Text of `spec.systemPrompt.configMapRef`, when the Agent has one. */
  readonly systemPromptText?: string;
}

/** The only resource class that a Task can select today. Source: design of RuntimePoolClass. */
export const selectableResourceClass = 'standard';

/**
 * Plans the pool of an admitted Task, or says why no pool can ever run it.
 * Source: dispatch.md §2.5, workload.md §2.6–2.7, corrections.md items 1, 2, 3, 21.
 */
export function planTask(input: PlanInput): Plan | { readonly problem: Finding } {
  const configured = agentConfiguration(input);
  if ('problem' in configured) return configured;
  const { task, agent, poolClass } = input;
  const kind = configured.providerKind;
  const intent: WorkspaceIntent = task.spec.workspace?.intent ?? 'read';
  const policy = toolPolicy(kind, intent, {
    allowed: task.spec.agentRuntime?.allowedTools ?? agent.spec.runtime?.defaultAllowedTools,
    disallowed: task.spec.agentRuntime?.disallowedTools,
    allowBash: task.spec.agentRuntime?.allowBash ?? agent.spec.runtime?.defaultAllowBash ?? true,
    delegatedChild: task.metadata.labels?.[labelKeys.parentTask] !== undefined,
  });
  const tools = toolPolicyProblem(kind, intent, policy);
  if (tools) return { problem: { ...whoseTools(task, agent), ...tools } };
  const refused = profileProblem(agent, kind);
  if (refused) return { problem: { at: nameOf('Agent', agent), ...refused } };
  const image = poolClass.runtime.image.trim();
  if (!isPinned(image)) {
    return {
      problem: {
        at: `RuntimePoolClass for ${kind}/${poolClass.resourceClass}`,
        field: 'spec.runtime.image',
        found: image,
        allowed: 'an image pinned by a sha256 digest that is not all zeros',
      },
    };
  }
  const limits =
    kind === 'opencode'
      ? { modelLimits: { context: agent.spec.model?.contextWindow ?? 0, output: agent.spec.model?.maxTokens ?? 0 } }
      : {};
  const profile: RuntimeProfile = {
    acpProfile: 'acp.v1',
    adapterDigests: poolClass.runtime.adapterDigests,
    providerKind: kind,
    model: configured.model,
    ...limits,
    agentConfigurationDigest: agentConfigurationDigest(configured),
    toolPolicyDigest: toolPolicyDigest(policy),
    approvalPolicyDigest: approvalPolicyDigest(agent.spec.coordination?.approvalRequiredTools ?? null),
    mcpConfigurationDigest: mcpConfigurationDigest(policy.allowed),
    workspaceIntent: intent,
    proxyCredentialRole: 'provider-inference',
    proxyCredentialScope: `model:${configured.model}`,
    resourceClass: poolClass.resourceClass,
  };
  const binding = resolveBinding(task, input.defaultProvider, input.sessionUID);
  const identity = { providerKind: kind, image, profileDigest: profileDigest(profile), binding };
  return {
    family: binding ? 'workspace' : 'plain',
    namespace: task.metadata.namespace ?? '',
    poolName: poolName(identity),
    image,
    runtimeNamespace: poolClass.network.runtimeNamespace,
    configuration: configured,
    toolPolicy: policy,
    profile,
    profileDigest: identity.profileDigest,
    lineageDigest: lineageDigest(identity),
    binding,
  };
}

const defaultMaxTurns = 50;
const efforts: Readonly<Record<ProviderKind, readonly string[]>> = {
  codex: ['low', 'medium', 'high', 'xhigh'],
  claude: ['low', 'medium', 'high', 'xhigh', 'max'],
  copilot: [],
  opencode: [],
};

function agentConfiguration({ task, agent, systemPromptText }: PlanInput): AgentConfiguration | { readonly problem: Finding } {
  const { spec } = agent;
  const kind = spec.runtime?.type;
  const refuse = (field: string, found: unknown, allowed: string) => ({
    problem: { at: nameOf('Agent', agent), field, found, allowed },
  });
  if (kind === undefined) return refuse('spec.runtime.type', undefined, 'codex, claude, copilot or opencode');
  const model = spec.model?.name?.trim() ?? '';
  if ((spec.skills ?? []).length > 0) return refuse('spec.skills', spec.skills, 'none: built-in agents take no skills');
  const enabled = (spec.tools ?? []).filter((tool) => tool.enabled !== false);
  if (enabled.length > 0)
    return refuse('spec.tools', enabled, 'none that is enabled: built-in agents take no tools of the Agent');
  if (spec.model?.temperature !== undefined && spec.model.temperature !== 0.7) {
    return refuse('spec.model.temperature', spec.model.temperature, 'nothing, or the default 0.7');
  }
  if (kind !== 'opencode') {
    for (const limit of ['contextWindow', 'maxTokens'] as const) {
      if (spec.model?.[limit] !== undefined)
        return refuse(`spec.model.${limit}`, spec.model[limit], 'nothing: only opencode takes model limits');
    }
  }
  if ((spec.model?.fallbacks ?? []).length > 0)
    return refuse('spec.model.fallbacks', spec.model?.fallbacks, 'none: a session has one model');
  if (model === '') return refuse('spec.model.name', spec.model?.name, 'the name of a model');
  if (model.length > 256) return refuse('spec.model.name', `${model.length} characters`, 'at most 256 characters');
  // The kubelet expands it in the environment, and the agent would run with another model than the profile says.
  if (model.includes('$(')) return refuse('spec.model.name', model, 'a name without "$("');
  const effort = spec.runtime?.defaultReasoningEffort?.trim().toLowerCase() ?? '';
  if (effort !== '' && !efforts[kind].includes(effort)) {
    return refuse(
      'spec.runtime.defaultReasoningEffort',
      effort,
      efforts[kind].length === 0 ? `nothing: ${kind} takes no reasoning effort` : efforts[kind].join(', '),
    );
  }
  const systemPrompt = spec.systemPrompt?.inline ?? systemPromptText ?? '';
  if (Buffer.byteLength(systemPrompt) > 256 * 1024)
    return refuse('spec.systemPrompt', `${Buffer.byteLength(systemPrompt)} bytes`, 'at most 256 KiB');
  return {
    agentUID: agent.metadata.uid ?? '',
    agentGeneration: agent.metadata.generation ?? 0,
    providerKind: kind,
    model,
    maxTurns: task.spec.agentRuntime?.maxTurns ?? spec.runtime?.defaultMaxTurns ?? defaultMaxTurns,
    ...(effort === '' ? {} : { reasoningEffort: effort }),
    ...(systemPrompt === '' ? {} : { systemPrompt }),
  };
}

/** The field that a tool policy comes from, so that a refusal names it. */
function whoseTools(task: Task, agent: Agent): Pick<Finding, 'at' | 'field'> {
  const own = task.spec.agentRuntime;
  const field = (['allowedTools', 'disallowedTools', 'allowBash'] as const).find((name) => own?.[name] !== undefined);
  if (field) return { at: nameOf('Task', task), field: `spec.agentRuntime.${field}` };
  const allowed = agent.spec.runtime?.defaultAllowedTools !== undefined;
  return { at: nameOf('Agent', agent), field: `spec.runtime.${allowed ? 'defaultAllowedTools' : 'defaultAllowBash'}` };
}

/** What a runtime cannot enforce of an otherwise valid configuration. */
function profileProblem(agent: Agent, kind: ProviderKind): Omit<Finding, 'at'> | undefined {
  const { systemPrompt } = agent.spec;
  if (kind === 'copilot' && (systemPrompt?.inline ?? systemPrompt?.configMapRef) !== undefined) {
    return { field: 'spec.systemPrompt', found: 'a system prompt', allowed: 'none: copilot cannot enforce it' };
  }
  return kind === 'opencode' ? openCodeProblem(agent) : undefined;
}

/** Rules of opencode alone; the compatibility gate asks them too. Source: dispatch.md §1.3. */
export function openCodeProblem(agent: Agent): Omit<Finding, 'at'> | undefined {
  const { model, systemPrompt, runtime } = agent.spec;
  if (systemPrompt !== undefined)
    return { field: 'spec.systemPrompt', found: 'a system prompt', allowed: 'none: opencode cannot enforce it' };
  if ((runtime?.defaultReasoningEffort ?? '') !== '') {
    return {
      field: 'spec.runtime.defaultReasoningEffort',
      found: runtime?.defaultReasoningEffort,
      allowed: 'nothing: opencode takes no reasoning effort',
    };
  }
  if (!/^[^/\s]+\/\S+$/.test(model?.name?.trim() ?? ''))
    return { field: 'spec.model.name', found: model?.name, allowed: 'provider/model for opencode' };
  for (const limit of ['contextWindow', 'maxTokens'] as const) {
    if ((model?.[limit] ?? 0) < 1)
      return { field: `spec.model.${limit}`, found: model?.[limit], allowed: 'a positive number: opencode needs model limits' };
  }
  if ((model?.contextWindow ?? 0) <= (model?.maxTokens ?? 0)) {
    return {
      field: 'spec.model.contextWindow',
      found: model?.contextWindow,
      allowed: `more than spec.model.maxTokens (${model?.maxTokens ?? 0})`,
    };
  }
  return undefined;
}

/** `Task demo/smoke`: how errors and events name an object. */
export function nameOf(
  kind: string,
  object: { readonly metadata: { readonly name: string; readonly namespace?: string | undefined } },
): string {
  return `${kind} ${object.metadata.namespace ? `${object.metadata.namespace}/` : ''}${object.metadata.name}`;
}

/** By a digest that is one. */
export function isPinned(image: string): boolean {
  return isPinnedImage(image) && !isUnbuiltImage(image);
}
