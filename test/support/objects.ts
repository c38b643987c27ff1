import type { Agent, RuntimePoolClassSpec, Task } from '../../src/api/index.js';
import type { WorkspaceFacts } from '../../src/domain/facts.js';
import { workspacePlaceholders } from '../../src/domain/placeholders.js';

const digit = (character: string): string => character.repeat(64);

/** A class with every field at its usual value. */
export function poolClass(change: Partial<RuntimePoolClassSpec> = {}): RuntimePoolClassSpec {
  return {
    providerKind: 'codex',
    resourceClass: 'standard',
    runtime: {
      image: `registry.example/acp-codex@sha256:${digit('b')}`,
      adapterDigests: { 'codex-acp': `sha256:${digit('1')}` },
    },
    pod: {
      resources: {
        requests: { cpu: '250m', memory: '512Mi', 'ephemeral-storage': '1Gi' },
        limits: { cpu: '2', memory: '4Gi', 'ephemeral-storage': '5Gi' },
      },
      volumes: { sessions: '4Gi', tmp: '512Mi', home: '256Mi' },
      placement: { nodeSelector: {}, tolerations: [] },
    },
    providerProxy: {
      url: 'http://vekil.vekil-system.svc:1337',
      namespace: 'vekil-system',
      podLabels: { 'orka.ai/network-role': 'provider-auth-proxy' },
      podPort: 1337,
      tokenSecretRef: { name: 'provider-proxy', key: 'token' },
    },
    network: {
      runtimeNamespace: 'orka-runtimes',
      controller: { namespace: 'orka-system', apiUrl: 'http://orka-api.orka-system.svc:8080', apiPort: 8080 },
      dns: { namespace: 'kube-system', podLabels: { 'k8s-app': 'kube-dns' } },
    },
    workspace: { maxArtifactBytes: 104857600 },
    disruptionBudget: true,
    attestation: 'Strict',
    patches: [],
    approvedDigests: [],
    ...change,
  };
}

export function agent(spec: Partial<Agent['spec']> = {}): Agent {
  return {
    apiVersion: 'core.orka.ai/v1alpha1',
    kind: 'Agent',
    metadata: { name: 'coder', namespace: 'team-a', uid: 'agent-uid-1', generation: 1 },
    spec: { model: { name: 'gpt-5' }, runtime: { type: 'codex', contractVersion: 'orka.harness.v2' }, ...spec },
  };
}

export function task(spec: Partial<Task['spec']> = {}): Task {
  return {
    apiVersion: 'core.orka.ai/v1alpha1',
    kind: 'Task',
    metadata: { name: 't1', namespace: 'team-a', uid: '11111111-1111-1111-1111-111111111111', generation: 1 },
    spec: {
      type: 'agent',
      prompt: 'Reply exactly: OK',
      agentRef: { name: 'coder' },
      execution: { workspace: { enabled: true } },
      ...spec,
    },
  };
}

/** Facts that look like those of a live pool. */
export function workspaceFacts(change: Partial<WorkspaceFacts> = {}): WorkspaceFacts {
  return Object.fromEntries(
    Object.keys({ ...workspacePlaceholders, ...change }).map((name) => [
      name,
      change[name as keyof WorkspaceFacts] ?? `v-${name.toLowerCase()}`,
    ]),
  ) as WorkspaceFacts;
}
