import {
  approvalPolicyDigest,
  emptyWorkspaceDigest,
  mcpConfigurationDigest,
  toolDescriptorsDigest,
  toolPolicyDigest,
} from '../../src/domain/digests.js';
import { agentConfigurationDigest, profileDigest } from '../../src/domain/profile.js';
import type { AgentConfiguration, RuntimeProfile } from '../../src/domain/profile.js';
import type { HarnessClient, PromptStream } from '../../src/harness/client.js';
import type { DeltaOrder } from '../../src/harness/deltas.js';
import type { PromptEvent } from '../../src/harness/events.js';
import type { Fence } from '../../src/harness/fence.js';
import { sessionFence } from '../../src/harness/fence.js';
import { instant } from '../../src/lib/instant.js';
import type { Operation } from '../../src/harness/metadata.js';
import type { McpConfiguration } from '../../src/harness/profile.js';
import { digestOfSettlement } from '../../src/harness/prompts.js';
import type { Lease, McpAuthorization } from '../../src/harness/prompts.js';
import type { SessionOrder } from '../../src/harness/sessions.js';

export interface Policy {
  readonly allowed: readonly string[] | null;
  readonly disallowed: readonly string[] | null;
  readonly allowBash: boolean;
}

/** One Task as a controller would send it to a supervisor. */
export interface TaskOrders {
  readonly taskUID: string;
  readonly sessionUID: string;
  readonly runtimeSessionID: string;
  readonly promptID: string;
  readonly session: SessionOrder;
  readonly operation: (verb: string, fence: Fence, options?: { readonly prompt?: boolean; readonly life?: number }) => Operation;
  readonly lease: (generation?: number, life?: number) => Lease;
  readonly authorization: (lease: Lease) => McpAuthorization;
}

/** What an instance was made for: the part of its environment that follows from profile and policy. */
export interface Runtime {
  readonly profile: RuntimeProfile;
  readonly profileDigest: string;
  readonly configuration: AgentConfiguration;
  readonly mcp: McpConfiguration;
  readonly env: Readonly<Record<string, string>>;
}

export const unrestricted: Policy = { allowed: null, disallowed: null, allowBash: true };

export interface RuntimeOptions {
  /** @default unrestricted */
  readonly policy?: Policy;
  readonly maxTurns?: number;
  readonly systemPrompt?: string;
  /** @default 'codex' */
  readonly providerKind?: 'codex' | 'opencode';
  readonly modelLimits?: { readonly context: number; readonly output: number };
}

export function runtime(adapterDigests: Readonly<Record<string, string>>, options: RuntimeOptions = {}): Runtime {
  const policy = options.policy ?? unrestricted;
  const configuration: AgentConfiguration = {
    agentUID: 'agent-1',
    agentGeneration: 1,
    providerKind: options.providerKind ?? 'codex',
    model: 'gpt-5.5',
    maxTurns: options.maxTurns ?? 50,
    ...(options.systemPrompt === undefined ? {} : { systemPrompt: options.systemPrompt }),
  };
  const mcp: McpConfiguration = {
    toolPolicyDigest: toolPolicyDigest(policy),
    approvalPolicyDigest: approvalPolicyDigest(null),
    mcpConfigurationDigest: mcpConfigurationDigest(policy.allowed),
    toolPolicy: {
      allowedToolNames: policy.allowed,
      disallowedToolNames: policy.disallowed,
      allowBash: policy.allowBash,
      tools: [],
      descriptorDigest: toolDescriptorsDigest([]),
    },
    approvalPolicy: {},
  };
  const profile: RuntimeProfile = {
    acpProfile: 'acp.v1',
    adapterDigests,
    providerKind: configuration.providerKind,
    model: configuration.model,
    ...(options.modelLimits ? { modelLimits: options.modelLimits } : {}),
    agentConfigurationDigest: agentConfigurationDigest(configuration),
    toolPolicyDigest: mcp.toolPolicyDigest,
    approvalPolicyDigest: mcp.approvalPolicyDigest,
    mcpConfigurationDigest: mcp.mcpConfigurationDigest,
    workspaceIntent: 'read',
    proxyCredentialRole: 'provider-inference',
    proxyCredentialScope: `model:${configuration.model}`,
    resourceClass: 'standard',
  };
  return {
    profile,
    profileDigest: profileDigest(profile),
    configuration,
    mcp,
    env: {
      ORKA_ACP_PROVIDER: profile.providerKind,
      ORKA_ACP_MODEL: profile.model,
      ORKA_ACP_MODEL_CONTEXT_LIMIT: String(options.modelLimits?.context ?? ''),
      ORKA_ACP_MODEL_OUTPUT_LIMIT: String(options.modelLimits?.output ?? ''),
      ORKA_ACP_WORKSPACE_INTENT: profile.workspaceIntent,
      ORKA_ACP_AGENT_CONFIGURATION_DIGEST: profile.agentConfigurationDigest,
      ORKA_ACP_TOOL_POLICY_DIGEST: profile.toolPolicyDigest,
      ORKA_ACP_APPROVAL_POLICY_DIGEST: profile.approvalPolicyDigest,
      ORKA_ACP_MCP_CONFIGURATION_DIGEST: profile.mcpConfigurationDigest,
      ORKA_ACP_PROXY_CREDENTIAL_ROLE: profile.proxyCredentialRole,
      ORKA_ACP_PROXY_CREDENTIAL_SCOPE: profile.proxyCredentialScope,
      ORKA_ACP_RESOURCE_CLASS: profile.resourceClass,
    },
  };
}

export function taskOrders(taskUID: string, { profile, configuration, mcp }: Runtime): TaskOrders {
  const sessionUID = `session-${taskUID}`;
  const runtimeSessionID = `runtime-${sessionUID}-g1`;
  const promptID = `prompt-${taskUID}-1`;
  const baseline = { repositoryIdentity: `empty:${taskUID}`, revision: 'empty', treeDigest: emptyWorkspaceDigest(taskUID) };
  return {
    taskUID,
    sessionUID,
    runtimeSessionID,
    promptID,
    session: {
      runtimeSessionID,
      profile: profile as SessionOrder['profile'],
      agentConfiguration: configuration,
      mcpConfiguration: mcp,
      workspace: { intent: 'read', baseline },
    },
    operation: (verb, fence, { prompt = false, life = 30_000 } = {}) => ({
      fence: sessionFence(fence, sessionUID, 1),
      taskUID,
      taskAttempt: 1,
      ...(prompt ? { promptID } : {}),
      operationID: `${verb}-${promptID}`,
      expiresAt: instant(Date.now() + life),
    }),
    lease: (generation = 1, life = 90_000) => {
      const now = Date.now();
      return { generation, issuedAt: instant(now), expiresAt: instant(now + life) };
    },
    authorization: (lease) => ({
      runtimeSessionUID: sessionUID,
      sessionGeneration: 1,
      taskUID,
      taskAttempt: 1,
      promptID,
      leaseGeneration: lease.generation,
      ...mcp,
      expiresAt: lease.expiresAt,
    }),
  };
}

/** Asks what a prompt that ended well has changed in its workspace. */
export function deltaOrder(
  task: TaskOrders,
  { identity: { timestamp: settledAt } }: PromptEvent,
  limits: DeltaOrder['limits'] = { maxBytes: 104_857_600, maxEntries: 100_000 },
): DeltaOrder {
  const settlement = { terminalEvent: 'completed', outcome: 'succeeded', stopReason: 'end_turn', settledAt } as const;
  return {
    deltaID: `delta-${task.promptID}`,
    intent: 'read',
    verifiedBaseline: task.session.workspace.baseline,
    promptSettlementDigest: digestOfSettlement(settlement),
    limits,
  };
}

export async function collect(stream: PromptStream): Promise<readonly PromptEvent[]> {
  const events: PromptEvent[] = [];
  for await (const event of stream.events) events.push(event);
  return events;
}

/** Sends a prompt with what the supervisor advertises, and reads its events to the end. */
export async function runPrompt(
  client: HarnessClient,
  fence: Fence,
  task: TaskOrders,
  text: string,
): Promise<readonly PromptEvent[]> {
  const lease = task.lease();
  const { limits } = await client.capabilities();
  const stream = await client.prompt(task.operation('start-prompt', fence, { prompt: true }), {
    runtimeSessionID: task.runtimeSessionID,
    lease,
    mcpAuthorization: task.authorization(lease),
    input: { content: [{ type: 'text', text }] },
    limits,
  });
  return collect(stream);
}
