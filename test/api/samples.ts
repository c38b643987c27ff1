import type { Agent, RuntimePool, RuntimePoolClass, Task } from '../../src/api/index.js';

export const digest = `sha256:${'a'.repeat(64)}`;
const image = `registry.example/acp@sha256:${'b'.repeat(64)}`;
const time = '2026-01-31T12:00:00Z';
const conditions = [{ type: 'Ready', status: 'True' as const, reason: 'Ok', message: '', lastTransitionTime: time }];
const apiVersion = 'core.orka.ai/v1alpha1';

export const smokeTask: Task = {
  apiVersion,
  kind: 'Task',
  metadata: { name: 'orka-live-sandbox-smoke', namespace: 'demo-magic' },
  spec: {
    type: 'agent',
    agentRef: { name: 'sandbox-codex-agent' },
    agentRuntime: { maxTurns: 1 },
    timeout: '10m0s',
    execution: { workspace: { enabled: true, reusePolicy: 'none', cleanupPolicy: 'delete' } },
    prompt: 'Reply exactly: ORKA_LIVE_SANDBOX_OK',
  },
};

export const smokeAgent: Agent = {
  apiVersion,
  kind: 'Agent',
  metadata: { name: 'sandbox-codex-agent', namespace: 'demo-magic' },
  spec: {
    runtime: { type: 'codex', defaultMaxTurns: 1, defaultAllowBash: true },
    model: { name: 'gpt-5.5' },
    secretRef: { name: 'sandbox-model-key' },
  },
};

/** Every part of a Task that a gate or a reader may meet. */
export const fullTask: Task = {
  apiVersion,
  kind: 'Task',
  metadata: {
    name: 't',
    labels: { 'orka.ai/runtime-pool': 'p' },
    annotations: { a: 'any text' },
    finalizers: ['orka.ai/cleanup'],
  },
  spec: {
    type: 'agent',
    prompt: 'hi',
    agentRef: { name: 'a', namespace: 'b' },
    agentRuntime: { maxTurns: 1, allowedTools: [], disallowedTools: ['x'], allowBash: true },
    workspace: {
      intent: 'write',
      gitRepo: 'https://github.com/acme/app',
      sourceRepository: { provider: 'github', id: 'github.com/acme/app' },
      readCredentialRef: { name: 's' },
      allowedPaths: ['a/**'],
      createPR: true,
      maxChangedFiles: 3,
      expectedRemoteSHA: 'a'.repeat(40),
    },
    execution: {
      runtimeClassName: 'x',
      nodeSelector: { a: 'b' },
      tolerations: [{ key: 'k', operator: 'Exists', tolerationSeconds: 3 }],
      affinity: { nodeAffinity: { x: [1] } },
      workspace: {
        enabled: true,
        provider: 'agent-sandbox',
        templateRef: {},
        reusePolicy: 'session',
        cleanupPolicy: 'delete',
        workspaceSlot: 'default',
        onDetach: 'Delete',
        boot: true,
        poolRef: { name: 'x' },
        snapshot: {},
        hibernation: { processMode: 'fresh' },
      },
    },
    sessionRef: { name: 's', create: true },
    timeout: '10m0s',
    priority: 5,
    retryPolicy: { maxRetries: 1, initialDelay: '1s' },
    priorTaskRef: { name: 'x' },
    transaction: { id: 'x', context: { a: 'b' } },
    requestedBy: { subject: 'x', groups: ['g'] },
    resources: { requests: { cpu: '250m', memory: 1 }, limits: { cpu: 2 } },
    secretRef: { name: 'x' },
    image: 'x',
    command: ['a'],
    args: [],
    env: [{ name: 'A', value: 'b', valueFrom: { secretKeyRef: { name: 'x' } } }],
    ai: { x: 1 },
    webhookURL: 'x',
    schedule: '* * * * *',
  },
  status: {
    phase: 'Running',
    startTime: time,
    attempts: 1,
    resultRef: { available: true },
    execution: {
      state: 'Succeeded',
      outcome: 'Succeeded',
      reason: 'Ok',
      attempt: 1,
      requestDigest: digest,
      readCredentialResourceVersion: '17',
      effects: [
        {
          id: `external-effect:${digest}`,
          kind: 'workspace.resolve',
          operationID: 'workspace-resolve-p1',
          requestDigest: digest,
          state: 'Succeeded',
          controllerEpoch: 2,
          attempts: 1,
          startedAt: time,
          responseDigest: digest,
          response: { repositoryID: 'github.com/acme/app', sourceRef: 'refs/heads/main', baselineOID: 'a'.repeat(40) },
        },
        {
          id: `external-effect:sha256:${'b'.repeat(64)}`,
          kind: 'workspace.prepare',
          operationID: 'workspace-prepare-p1',
          requestDigest: digest,
          state: 'InFlight',
          attempts: 1,
          response: {
            treeOID: 'b'.repeat(64),
            manifestDigest: digest,
            entryCount: 1,
            expandedBytes: 0,
            artifact: { artifactID: 'a1', digest, sizeBytes: 1, mediaType: 'application/vnd.orka.workspace.v1+tar' },
            notes: [{ code: 'lfs_pointers', count: 1, path: 'model.bin' }],
          },
          code: 'scm_timeout',
        },
      ],
      lastTransitionTime: time,
    },
    delivery: { state: 'NotRequested', outcome: 'NotRequested', remoteBeforeSHA: '', prReceipt: { id: '1', number: 3 } },
    harnessRuntime: { a: 1 },
    executionOutcome: { phase: 'Failed', attempt: 1, recordedAt: time },
    agentExecutionBinding: {
      schemaVersion: 1,
      contractVersion: 'orka.harness.v2',
      backend: 'runtime-pool',
      bindingDigest: digest,
      task: { namespaceUID: 'n', uid: 'u', boundSpecGeneration: 1 },
      agent: { namespace: 'a', name: 'b', uid: 'c', generation: 1 },
      snapshot: { id: `u/${digest}`, digest, schemaVersion: 1 },
      runtimeType: 'codex',
      boundAt: time,
    },
    executionWorkspace: { provider: 'agent-sandbox', phase: 'Ready', reason: 'WorkspaceReady', reused: true, conditions },
    childTasks: [{ name: 'a', agent: 'b', phase: 'Running' }],
    conditions,
  },
};

export const fullAgent: Agent = {
  apiVersion,
  kind: 'Agent',
  metadata: { name: 'a' },
  spec: {
    runtime: {
      type: 'codex',
      contractVersion: 'orka.harness.v2',
      defaultMaxTurns: 1,
      defaultAllowedTools: [],
      defaultAllowBash: true,
      defaultReasoningEffort: 'low',
    },
    model: { provider: 'x', name: 'm', temperature: 0.7, contextWindow: 5, maxTokens: 3, fallbacks: [{ providerRef: 'x' }] },
    systemPrompt: { inline: '', configMapRef: { name: 'a', key: 'b' } },
    providerRef: { name: 'x' },
    tools: [{ name: 'x', enabled: false }],
    skills: [{ name: 'x' }],
    resources: { limits: { cpu: '1' } },
    execution: { nodeSelector: {}, workspace: { enabled: true } },
    secretRef: { name: 'k' },
    session: { a: 1 },
    rateLimit: {},
    coordination: { enabled: true, allowedAgents: [{ name: 'x' }], approvalRequiredTools: [] },
    ttlAfterLastTask: '1h',
  },
  status: { ready: true, activeTasks: 1, conditions },
};

export const fullPool: RuntimePool = {
  apiVersion,
  kind: 'RuntimePool',
  metadata: { name: 'p' },
  spec: {
    trustDomain: { namespace: 'a', identity: 'namespace:a' },
    runtimeNamespace: 'orka-runtimes',
    runtime: {
      image,
      profile: {
        protocolVersion: 'orka.harness.v2',
        digest,
        digestSchemaVersion: '1',
        acpProfile: 'acp.v1',
        adapterDigests: { 'opencode-acp': digest },
        providerKind: 'opencode',
        model: 'openai/gpt-5',
        modelLimits: { context: 5, output: 3 },
        agentConfigurationDigest: digest,
        toolPolicyDigest: digest,
        approvalPolicyDigest: digest,
        mcpConfigurationDigest: digest,
        workspaceIntent: 'read',
        proxyCredentialRole: 'provider-inference',
        proxyCredentialScope: 'model:openai/gpt-5',
        resourceClass: 'standard',
      },
    },
    executionWorkspace: {
      provider: 'substrate',
      bindingDigest: digest,
      substrate: { baseTemplateNamespace: 'a', baseTemplateName: 'b' },
    },
    desiredReplicas: 1,
    capacity: { maxResidentSessions: 1, maxRunningPrompts: 1 },
    coldStartTimeoutSeconds: 3,
  },
  status: {
    observedGeneration: 1,
    controllerEpoch: 1,
    lifecycle: 'Serving',
    admissionState: 'Accepting',
    activeInstance: {
      podNamespace: 'a',
      podName: 'b',
      podAddress: '10.0.0.1',
      podUID: 'd',
      bootID: 'e',
      runtimeInstanceID: 'd.e',
      controllerEpoch: 1,
      protocolVersion: 'orka.harness.v2',
      profileDigest: digest,
      profileDigestSchemaVersion: '1',
      providerTokenGeneration: '0123456789abcdef',
    },
    capacity: {
      reservations: [
        {
          poolUID: 'a',
          taskUID: 'b',
          attempt: 1,
          controllerEpoch: 1,
          runtimeInstanceID: 'x',
          residentSlots: 1,
          promptSlots: 0,
          reservedAt: time,
          expiresAt: time,
        },
      ],
    },
    conditions,
  },
};

const amounts = { cpu: '250m', memory: '512Mi', 'ephemeral-storage': '1Gi' };

export const fullClass: RuntimePoolClass = {
  apiVersion,
  kind: 'RuntimePoolClass',
  metadata: { name: 'codex-standard', namespace: 'orka-system' },
  spec: {
    providerKind: 'codex',
    resourceClass: 'standard',
    runtime: { image, adapterDigests: { 'codex-acp': digest } },
    pod: {
      runtimeClassName: 'gvisor',
      resources: { requests: amounts, limits: amounts },
      volumes: { sessions: '4Gi', tmp: '512Mi', home: '256Mi' },
      placement: { nodeSelector: { a: 'b' }, tolerations: [{ key: 'x', effect: 'NoExecute', tolerationSeconds: 60 }] },
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
      artifacts: {
        namespace: 'orka-publisher',
        podLabels: { 'orka.ai/network-role': 'workspace-publisher' },
        url: 'http://orka-publisher.orka-publisher.svc:8080',
        port: 8080,
      },
    },
    workspace: { maxArtifactBytes: 104857600 },
    disruptionBudget: true,
    attestation: 'Strict',
    patches: [
      {
        target: { kind: 'SandboxTemplate', suffix: 'sandbox-template' },
        operations: [
          { op: 'add', path: '/a/b~1c', value: null },
          { op: 'move', path: '/a', from: '/b' },
          { op: 'remove', path: '/c' },
        ],
      },
    ],
    approvedDigests: [digest],
  },
  status: { observedGeneration: 1, digest, conditions },
};

/** A copy with one member replaced, `undefined` removing it; the path is text with dots and indices: `spec.env.0.name`. */
export function edited<T>(object: T, path: string, value: unknown): T {
  const copy = structuredClone(object) as unknown;
  const steps = path.split('.');
  const last = steps.pop() ?? '';
  let at = copy as Record<string, unknown>;
  for (const step of steps) at = (at[step] ??= {}) as Record<string, unknown>;
  if (value === undefined) Reflect.deleteProperty(at, last);
  else at[last] = value;
  return copy as T;
}
