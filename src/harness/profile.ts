import { providerKinds, workspaceIntents } from '../api/index.js';
import { approvalPolicyDigest, mcpConfigurationDigest, toolDescriptorsDigest, toolPolicyDigest } from '../domain/digests.js';
import {
  anyJson,
  checked,
  digest,
  flag,
  identifier,
  integer,
  list,
  map,
  nullable,
  oneOf,
  optional,
  record,
  text,
} from '../lib/decode.js';
import type { Decoded, Decoder, Shaped } from '../lib/decode.js';
import { acpVersion } from './protocol.js';

/** Messages about what a session runs with. The types of the first two are those of `domain/profile.ts`. Source: dispatch.md §5.4. */
export const runtimeProfile = record({
  acpProfile: oneOf(acpVersion),
  adapterDigests: map(digest, { min: 1, max: 32 }),
  providerKind: oneOf(...providerKinds),
  model: text({ min: 1, max: 1024 }),
  modelLimits: optional(record({ context: integer(0), output: integer(0) })),
  agentConfigurationDigest: digest,
  toolPolicyDigest: digest,
  approvalPolicyDigest: digest,
  mcpConfigurationDigest: digest,
  workspaceIntent: oneOf(...workspaceIntents),
  proxyCredentialRole: text({ max: 256 }),
  proxyCredentialScope: text({ max: 1024 }),
  resourceClass: text({ max: 128 }),
});

export const agentConfiguration = record({
  agentUID: identifier,
  agentGeneration: integer(1),
  providerKind: oneOf(...providerKinds),
  model: text({ min: 1, max: 1024 }),
  maxTurns: integer(1, 1000),
  reasoningEffort: optional(text({ max: 64 })),
  systemPrompt: optional(text({ max: 256 * 1024 })),
});

const toolNames = nullable(list(text({ min: 1, max: 256 }), { max: 128 }));

const toolDescriptor = record({
  name: text({ min: 1, max: 256 }),
  description: optional(text({ max: 64 * 1024 })),
  inputSchema: optional(anyJson),
  source: oneOf('brokered_builtin', 'brokered_custom', 'provider_native'),
  effect: oneOf('read_only', 'consequential'),
  definitionDigest: optional(digest),
});

const toolPolicyMessage = record({
  allowedToolNames: toolNames,
  disallowedToolNames: toolNames,
  allowBash: flag,
  tools: list(toolDescriptor, { max: 128 }),
  descriptorDigest: digest,
});
export type ToolPolicyMessage = Decoded<typeof toolPolicyMessage>;

const approvalPolicyMessage = record({ requiredTools: optional(toolNames) });

/** Members that a session's MCP configuration and the authorization of each prompt share. */
export const policyMembers = {
  toolPolicyDigest: digest,
  approvalPolicyDigest: digest,
  mcpConfigurationDigest: digest,
  toolPolicy: toolPolicyMessage,
  approvalPolicy: approvalPolicyMessage,
} as const;

/** `policy` with every digest recomputed; anything else is refused. */
export type McpConfiguration = Shaped<typeof policyMembers>;
export const mcpConfiguration: Decoder<McpConfiguration> = checked(record(policyMembers), policyProblem);

/** Which digest of a policy does not follow from it; `undefined` = all do. */
export function policyProblem(policy: McpConfiguration): string | undefined {
  const { toolPolicy, approvalPolicy } = policy;
  const expected = policyDigests(toolPolicy, approvalPolicy.requiredTools);
  if (toolPolicy.descriptorDigest !== expected.descriptorDigest) return 'the descriptorDigest of its tools';
  if (policy.toolPolicyDigest !== expected.toolPolicyDigest) return 'the toolPolicyDigest of its tool policy';
  if (!expected.approvalPolicyDigests.includes(policy.approvalPolicyDigest))
    return 'the approvalPolicyDigest of its approval policy';
  return policy.mcpConfigurationDigest === expected.mcpConfigurationDigest
    ? undefined
    : 'the mcpConfigurationDigest of its allowed tools';
}

/** An empty list of required tools is not sent, although it is digested as one: without a list, both digests are right. */
function policyDigests(policy: ToolPolicyMessage, requiredTools: readonly string[] | null | undefined) {
  return {
    descriptorDigest: toolDescriptorsDigest(policy.tools),
    toolPolicyDigest: toolPolicyDigest({
      allowed: policy.allowedToolNames,
      disallowed: policy.disallowedToolNames,
      allowBash: policy.allowBash,
    }),
    approvalPolicyDigests: requiredTools
      ? [approvalPolicyDigest(requiredTools)]
      : [approvalPolicyDigest(null), approvalPolicyDigest([])],
    mcpConfigurationDigest: mcpConfigurationDigest(policy.allowedToolNames),
  };
}
