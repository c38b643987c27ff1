import type { ProviderKind, WorkspaceIntent } from '../api/index.js';
import { domainDigest, harnessDigest } from './digests.js';
import type { Digest } from './digests.js';

/** Version of the way in which profiles are digested. */
export const digestSchemaVersion = '1';

/** What one ACP session of an agent runs with; its digest is frozen into the profile. Source: dispatch.md §5.4. */
export interface AgentConfiguration {
  readonly agentUID: string;
  readonly agentGeneration: number;
  readonly providerKind: ProviderKind;
  readonly model: string;
  readonly maxTurns: number;
  readonly reasoningEffort?: string;
  readonly systemPrompt?: string;
}

export const agentConfigurationDigest = (configuration: AgentConfiguration): Digest =>
  harnessDigest('agent-configuration.v1', { ...configuration });

/** Everything about a runtime that a prompt may depend on. Two pools with one digest are interchangeable. Source: workload.md §2.7. */
export interface RuntimeProfile {
  readonly acpProfile: string;
  readonly adapterDigests: Readonly<Record<string, string>>;
  readonly providerKind: ProviderKind;
  readonly model: string;
  readonly modelLimits?: { readonly context: number; readonly output: number };
  readonly agentConfigurationDigest: Digest;
  readonly toolPolicyDigest: Digest;
  readonly approvalPolicyDigest: Digest;
  readonly mcpConfigurationDigest: Digest;
  readonly workspaceIntent: WorkspaceIntent;
  readonly proxyCredentialRole: string;
  readonly proxyCredentialScope: string;
  readonly resourceClass: string;
}

export const profileDigest = (profile: RuntimeProfile): Digest => harnessDigest('profile.v1', { ...profile });

/** Identity that a continuation of a Session must keep. Source: workload.md §2.8. */
export function lineageDigest(plan: {
  readonly profileDigest: Digest;
  readonly image: string;
  readonly binding?: { readonly reusePolicy: string; readonly bindingDigest: Digest } | undefined;
}): Digest {
  if (plan.binding?.reusePolicy !== 'session') return plan.profileDigest;
  return domainDigest('runtime-session-lineage-configuration/v1', {
    runtimeProfileDigest: plan.profileDigest,
    runtimeImage: plan.image,
    workspaceBindingDigest: plan.binding.bindingDigest,
  });
}
