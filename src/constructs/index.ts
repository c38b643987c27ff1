export { RenderError } from './errors.js';
export type { RenderErrorCode } from './errors.js';
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
export type { PodSpec, PodTemplate } from './pod.js';
export { PoolIsolation } from './pool-isolation.js';
export type { PoolIsolationProps } from './pool-isolation.js';
export { Resource } from './resource.js';
export type { ResourceProps } from './resource.js';
export { RuntimePool } from './runtime-pool.js';
export type { RuntimePoolProps } from './runtime-pool.js';
export { RuntimePoolClass } from './runtime-pool-class.js';
export type { RuntimePoolClassProps } from './runtime-pool-class.js';
export { SandboxClaim } from './sandbox-claim.js';
export type { SandboxClaimProps } from './sandbox-claim.js';
export { SandboxTemplate } from './sandbox-template.js';
export type { ISandboxTemplate, SandboxTemplateProps } from './sandbox-template.js';
export { SandboxWarmPool } from './sandbox-warm-pool.js';
export type { ISandboxWarmPool, SandboxWarmPoolProps } from './sandbox-warm-pool.js';
export { WorkspacePool } from './workspace-pool.js';
export type { WorkspacePoolProps } from './workspace-pool.js';
