/** The provider's kinds, and the one of Kubernetes that isolates. */
export const providerKinds = {
  sandbox: { apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox' },
  template: { apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxTemplate' },
  warmPool: { apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxWarmPool' },
  claim: { apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxClaim' },
  networkPolicy: { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
} as const;
