export { RenderError } from './errors.js';
export type { RenderErrorCode } from './errors.js';
export type { FromManifestOptions } from './from-manifest.js';
export { NetworkPolicy } from './network-policy.js';
export type {
  LabelSelector,
  NetworkPolicyEgressRule,
  NetworkPolicyIngressRule,
  NetworkPolicyPeer,
  NetworkPolicyPort,
  NetworkPolicyProps,
} from './network-policy.js';
export { PlainPool } from './plain-pool.js';
export type { PlainPoolProps } from './plain-pool.js';
export type { PodSpec, PodTemplate, VolumeClaimTemplate } from './pod.js';
export { PoolIsolation } from './pool-isolation.js';
export type { PoolIsolationProps } from './pool-isolation.js';
export { Resource } from './resource.js';
export type { ResourceProps } from './resource.js';
export { policyRules, providerRules } from './rules/registry.js';
export type { RegisteredRule } from './rules/registry.js';
export type { Rule } from './rules/rule.js';
export { switchableRules } from './rules/switch.js';
export type { Allowance, AllowedField, SwitchableRule } from './rules/switch.js';
export { RuntimePool } from './runtime-pool.js';
export type { RuntimePoolProps } from './runtime-pool.js';
export { RuntimePoolClass } from './runtime-pool-class.js';
export type { RuntimePoolClassProps } from './runtime-pool-class.js';
export { Sandbox } from './sandbox.js';
export type { SandboxProps } from './sandbox.js';
export { SandboxClaim } from './sandbox-claim.js';
export type { ClaimFromManifestOptions, SandboxClaimProps } from './sandbox-claim.js';
export { SandboxTemplate } from './sandbox-template.js';
export type { ISandboxTemplate, SandboxTemplateProps, TemplateTraffic } from './sandbox-template.js';
export { SandboxWarmPool } from './sandbox-warm-pool.js';
export type { ISandboxWarmPool, SandboxWarmPoolProps } from './sandbox-warm-pool.js';
export { WorkspacePool } from './workspace-pool.js';
export type { WorkspacePoolProps } from './workspace-pool.js';
