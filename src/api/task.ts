import { ExecutionSpecSchema, ReferenceSchema, ResourcesSchema, cleanupPolicies, reusePolicies } from './execution.js';
import { define, resource } from './kind.js';
import { conditions, digest, duration, patterns, positiveDuration } from './meta.js';
import { providerKinds, workspaceIntents, workspaceProviders } from './runtime-pool.js';
import {
  choice,
  flag,
  int32,
  int64,
  list,
  map,
  number,
  object,
  open,
  optional,
  text,
  timestamp,
  unchanging,
  withOptions,
} from './schema.js';
import type { Static } from './schema.js';

export type { ExecutionSpec, ExecutionWorkspace } from './execution.js';

const CredentialReferenceSchema = object({
  name: text({ minLength: 1, maxLength: 253, pattern: patterns.dnsSubdomain.pattern }),
  key: optional(text({ minLength: 1, maxLength: 253, pattern: patterns.secretKey.pattern, default: 'token' })),
});

const RepositoryIdentitySchema = object({
  provider: text({ minLength: 1, maxLength: 63 }),
  id: text({
    minLength: 1,
    maxLength: 512,
    description: 'Identity of the repository. For GitHub: github.com/<owner>/<repository>, in lower case.',
  }),
});

function credentialFree(member: string) {
  return {
    rule: `!has(self.${member}) || (!self.${member}.matches('^[A-Za-z][A-Za-z0-9+.-]*://[^/]*@') && !self.${member}.contains('?') && !self.${member}.contains('#'))`,
    message: `${member} must not carry credentials, a query or a fragment`,
    fieldPath: `.${member}`,
  };
}

const WorkspaceConfigSchema = object(
  {
    intent: optional(
      choice(workspaceIntents, {
        description:
          'What becomes of changes in the repository; write, which publishes them, is not available yet. Absent: read.',
      }),
    ),
    gitRepo: optional(text({ maxLength: 2048 })),
    sourceRepository: optional(RepositoryIdentitySchema),
    branch: optional(text({ maxLength: 255 })),
    ref: optional(text({ maxLength: 512 })),
    readCredentialRef: optional(CredentialReferenceSchema),
    publicationGitRepo: optional(text({ maxLength: 2048 })),
    publicationRepository: optional(RepositoryIdentitySchema),
    publicationReadCredentialRef: optional(CredentialReferenceSchema),
    publicationCredentialRef: optional(CredentialReferenceSchema),
    forgeCredentialRef: optional(CredentialReferenceSchema),
    subPath: optional(text({ maxLength: 1024 })),
    prBaseBranch: optional(text({ maxLength: 255 })),
    pushBranch: optional(text({ maxLength: 255 })),
    expectedRemoteSHA: optional(text({ pattern: patterns.commit.pattern })),
    maxChangedFiles: optional(int32({ minimum: 1 })),
    allowedPaths: optional(list(text(), { maxItems: 256 })),
    denyRepositoryControlPaths: optional(flag()),
    rejectBinaryFiles: optional(flag()),
    rejectSecretLikeContent: optional(flag()),
    createPR: optional(flag({ description: 'Whether a pull request is opened. Needs write intent. Absent: false.' })),
  },
  {
    description: 'The repository that the work is about.',
    rules: [
      {
        rule: "!has(self.createPR) || !self.createPR || (has(self.intent) && self.intent == 'write')",
        message: 'createPR needs intent: write',
        fieldPath: '.createPR',
      },
      credentialFree('gitRepo'),
      credentialFree('publicationGitRepo'),
    ],
  },
);

const SessionReferenceSchema = object({
  name: text(),
  create: optional(flag({ description: 'Whether the Session is made when it is not there. Absent: false.' })),
  append: optional(flag({ default: true })),
  maxMessages: optional(int32({ minimum: 1, default: 50 })),
  throughMessageId: optional(text({ maxLength: 256 })),
  promptIncluded: optional(flag()),
});

const AgentRuntimeSchema = object(
  {
    maxTurns: optional(int32({ minimum: 1, maximum: 1000 })),
    allowedTools: optional(
      list(text(), {
        description: "Tools that the agent may use, by name. Absent: the Agent's list. An empty list allows nothing.",
      }),
    ),
    disallowedTools: optional(list(text())),
    allowBash: optional(flag()),
    workspace: optional(open({ description: 'Settings of an older version. Refused.' })),
  },
  {
    description: "Overrides of the Agent's runtime settings for this Task.",
    rules: [
      { rule: '!has(self.workspace)', message: 'agentRuntime.workspace is legacy; use spec.workspace', fieldPath: '.workspace' },
    ],
  },
);

const agentOnly = "self.type == 'agent'";
const imageTask = "self.type == 'container' && has(self.image) && self.image != ''";

function notWithImage(members: string, carried: string) {
  return {
    rule: `!(${imageTask}) || !has(self.workspace) || !(${carried})`,
    message: `a container Task with an image cannot carry ${members}`,
    fieldPath: '.workspace',
  };
}

const effectiveIntent = (self: string) =>
  `(has(${self}.workspace) && has(${self}.workspace.intent) ? ${self}.workspace.intent : 'read')`;

/** Source: dispatch.md §1.1. Fields that no agent Task may use are here so that a gate can see and refuse them. */
export const TaskSpecSchema = object(
  {
    type: choice(['container', 'ai', 'agent']),
    prompt: optional(text()),
    agentRef: optional(ReferenceSchema),
    agentRuntime: optional(AgentRuntimeSchema),
    workspace: optional(WorkspaceConfigSchema),
    execution: optional(ExecutionSpecSchema),
    sessionRef: optional(SessionReferenceSchema),
    timeout: optional(withOptions(positiveDuration, { description: 'Time from creation to the end, above 0. Absent: 30m0s.' })),
    ttlSecondsAfterFinished: optional(
      int32({
        minimum: 0,
        description:
          "Seconds after which the finished Task is deleted, with its answer. 0: as soon as its session is gone. Absent: the controller's default.",
      }),
    ),
    priority: optional(int32({ minimum: 0, maximum: 1000, default: 500 })),
    retryPolicy: optional(
      object({
        maxRetries: optional(
          int32({
            minimum: 0,
            description: 'Further attempts; more than 0 is refused, since a prompt is never sent twice. Absent: 0.',
          }),
        ),
        backoffMultiplier: optional(number({ default: 2 })),
        initialDelay: optional(duration),
      }),
    ),
    priorTaskRef: optional(ReferenceSchema),
    transaction: optional(
      object({
        profile: optional(text()),
        id: optional(text()),
        issuer: optional(text()),
        audience: optional(list(text())),
        subject: optional(text()),
        requestingWorkload: optional(text()),
        scope: optional(text()),
        scopes: optional(list(text())),
        contextDigest: optional(text()),
        requesterContextDigest: optional(text()),
        context: optional(map(text())),
      }),
    ),
    requestedBy: optional(
      object({
        subject: optional(text()),
        issuer: optional(text()),
        username: optional(text()),
        email: optional(text()),
        groups: optional(list(text())),
        roles: optional(list(text())),
      }),
    ),
    resources: optional(ResourcesSchema),
    secretRef: optional(ReferenceSchema),
    image: optional(text()),
    command: optional(list(text())),
    args: optional(list(text())),
    env: optional(list(object({ name: text({ minLength: 1 }), value: optional(text()), valueFrom: optional(open()) }))),
    ai: optional(open()),
    webhookURL: optional(text()),
    schedule: optional(text()),
    timeZone: optional(text()),
    concurrencyPolicy: optional(choice(['Allow', 'Forbid'])),
    startingDeadlineSeconds: optional(int64()),
    successfulRunsHistoryLimit: optional(int32({ minimum: 0 })),
    failedRunsHistoryLimit: optional(int32({ minimum: 0 })),
    suspend: optional(flag()),
  },
  {
    rules: [
      { rule: 'self.type == oldSelf.type', message: 'the type of a Task never changes', fieldPath: '.type' },
      unchanging('prompt', 'the prompt of an agent Task never changes', agentOnly),
      unchanging('agentRef', 'the agentRef of an agent Task never changes', agentOnly),
      unchanging('agentRuntime', 'the agentRuntime of an agent Task never changes', agentOnly),
      unchanging('sessionRef', 'the sessionRef of an agent Task never changes', agentOnly),
      unchanging('workspace', 'the workspace of an agent Task never changes', agentOnly),
      unchanging('timeout', 'the timeout of an agent Task never changes', agentOnly),
      unchanging('transaction', 'the transaction of a Task never changes'),
      unchanging('requestedBy', 'the requestedBy of a Task never changes'),
      {
        rule: `${effectiveIntent('self')} == ${effectiveIntent('oldSelf')}`,
        message: 'the workspace intent of a Task never changes; an absent intent is read',
        fieldPath: '.workspace',
      },
      {
        rule:
          '!has(self.execution) || !has(self.execution.workspace) || !has(self.execution.workspace.reusePolicy)' +
          " || self.execution.workspace.reusePolicy != 'session' || has(self.sessionRef)",
        message: 'execution.workspace.reusePolicy: session needs sessionRef',
        fieldPath: '.sessionRef',
      },
      notWithImage('workspace.expectedRemoteSHA', 'has(self.workspace.expectedRemoteSHA)'),
      notWithImage('workspace.createPR', 'has(self.workspace.createPR) && self.workspace.createPR'),
      notWithImage('workspace.pushBranch', "has(self.workspace.pushBranch) && self.workspace.pushBranch != ''"),
      notWithImage(
        'change policies (workspace.maxChangedFiles, allowedPaths, denyRepositoryControlPaths, rejectBinaryFiles, rejectSecretLikeContent)',
        'has(self.workspace.maxChangedFiles) || (has(self.workspace.allowedPaths) && size(self.workspace.allowedPaths) > 0)' +
          ' || (has(self.workspace.denyRepositoryControlPaths) && self.workspace.denyRepositoryControlPaths)' +
          ' || (has(self.workspace.rejectBinaryFiles) && self.workspace.rejectBinaryFiles)' +
          ' || (has(self.workspace.rejectSecretLikeContent) && self.workspace.rejectSecretLikeContent)',
      ),
    ],
  },
);

/** Phases of a Task. `Succeeded`, `Failed` and `Cancelled` are terminal. */
export const taskPhases = ['Pending', 'Running', 'Finalizing', 'Succeeded', 'Failed', 'Scheduled', 'Cancelled'] as const;
/** One of {@link taskPhases}. */
export type TaskPhase = (typeof taskPhases)[number];

/** Terminal states of an attempt. */
export const executionOutcomes = ['Succeeded', 'Failed', 'Cancelled', 'OutcomeUnknown'] as const;
/** One of {@link executionOutcomes}. */
export type ExecutionOutcome = (typeof executionOutcomes)[number];

/** States of an attempt, in the order in which it passes them. */
export const executionStates = [
  'Queued',
  'Reserved',
  'SessionStarting',
  'Planned',
  'Submitting',
  'SubmittedUnknown',
  'Accepted',
  'Running',
  'Settling',
  ...executionOutcomes,
] as const;
/** One of {@link executionStates}. */
export type ExecutionState = (typeof executionStates)[number];

const sha256 = optional(digest);
const identifier = optional(text({ maxLength: 253 }));
const longIdentifier = optional(text({ maxLength: 512 }));
const reason = optional(text({ maxLength: 128, pattern: patterns.reason.pattern }));
const message = optional(text({ maxLength: 1024 }));

/** The largest count of tokens of one prompt that is shown. An agent may report any number. */
export const mostTokens = 1_000_000_000_000;

const tokens = (description: string) => optional(int64({ minimum: 0, maximum: mostTokens, description }));

const TokenUsageSchema = object(
  {
    inputTokens: tokens('Tokens that the model read. Codex and OpenCode leave out those that it read from its cache.'),
    outputTokens: tokens('Tokens that the model wrote.'),
    cachedInputTokens: tokens('Tokens that the model read from its cache.'),
  },
  {
    description:
      'Tokens of the prompt, as its agent reports them; a count that it does not report is absent. Codex reports the last call of the model.',
  },
);
/** Tokens that a prompt used, as the agent reported them. */
export type TokenUsage = Static<typeof TokenUsageSchema>;

const commit = optional(text({ pattern: patterns.commit.pattern }));

/** Calls of the publisher that a Task records. */
export const effectKinds = ['workspace.resolve', 'workspace.prepare'] as const;
/** One of {@link effectKinds}. */
export type EffectKind = (typeof effectKinds)[number];

/** States of a recorded call, in the order in which it passes them; the last three are final. */
export const effectStates = ['Pending', 'InFlight', 'Succeeded', 'Failed', 'OutcomeUnknown'] as const;
/** One of {@link effectStates}. */
export type EffectState = (typeof effectStates)[number];

const errorCode = text({ maxLength: 63, pattern: patterns.errorCode.pattern });
const count = int64({ minimum: 0 });

/** Members of all kinds of calls; each kind has its own. Source: repository.md §2.2, §3.1. */
const EffectResponseSchema = object({
  repositoryID: longIdentifier,
  sourceRef: optional(text({ maxLength: 1024 })),
  baselineOID: commit,
  treeOID: commit,
  manifestDigest: sha256,
  entryCount: optional(count),
  expandedBytes: optional(count),
  artifact: optional(
    object({
      artifactID: text({ minLength: 1, maxLength: 512 }),
      digest,
      sizeBytes: count,
      mediaType: text({ minLength: 1, maxLength: 255 }),
    }),
  ),
  notes: optional(
    list(object({ code: errorCode, count, path: optional(text({ maxLength: 1024 })) }), {
      maxItems: 16,
      description: 'What a person should know about the repository, such as files that Git LFS keeps elsewhere.',
    }),
  ),
});

const EffectSchema = object({
  id: text({ pattern: patterns.effectId.pattern }),
  kind: choice(effectKinds),
  operationID: text({ minLength: 1, maxLength: 253 }),
  requestDigest: digest,
  state: choice(effectStates),
  controllerEpoch: optional(int64({ minimum: 0 })),
  attempts: int32({ minimum: 0 }),
  startedAt: optional(timestamp()),
  responseDigest: sha256,
  response: optional(EffectResponseSchema),
  code: optional(errorCode),
  detail: optional(
    object(
      {
        reason: errorCode,
        path: optional(text({ maxLength: 1024 })),
        limit: optional(count),
        found: optional(count),
      },
      { description: 'Why a tree was refused; its path is escaped.' },
    ),
  ),
});

const TaskExecutionStatusSchema = object(
  {
    state: optional(choice(executionStates)),
    outcome: optional(choice(executionOutcomes)),
    reason,
    attempt: optional(int32({ minimum: 1 })),
    queuedAt: optional(
      timestamp({
        description:
          'Time at which the Task was queued first; its place in the queue follows from it. Written by the controller alone.',
      }),
    ),
    promptID: identifier,
    requestDigest: optional(
      withOptions(digest, {
        description:
          'Of the Task, its binding and its attempt. That of the prompt request is promptRequestDigest in the receipt.',
      }),
    ),
    controllerEpoch: optional(int64({ minimum: 0 })),
    runtimePoolName: identifier,
    runtimePoolUID: identifier,
    runtimeInstanceID: longIdentifier,
    agentRuntimeName: identifier,
    agentRuntimeUID: identifier,
    runtimeSessionUID: identifier,
    runtimeSessionGeneration: optional(int64({ minimum: 0 })),
    runtimeSessionSupervisorBootID: longIdentifier,
    runtimeSessionProfileDigest: sha256,
    runtimeSessionMCPDigest: sha256,
    runtimeSessionWorkspaceDigest: sha256,
    runtimeSessionRecreationPending: optional(flag()),
    runtimeSessionCleanupDigest: sha256,
    readCredentialResourceVersion: identifier,
    publicationReadCredentialResourceVersion: identifier,
    publicationCredentialResourceVersion: identifier,
    forgeCredentialResourceVersion: identifier,
    effects: optional(
      list(EffectSchema, {
        keys: ['id'],
        maxItems: 16,
        description: 'Calls of the publisher. A record is stored before its call leaves, and its response before it is used.',
      }),
    ),
    usage: optional(TokenUsageSchema),
    message,
    lastTransitionTime: optional(timestamp()),
  },
  {
    description: 'The current attempt.',
    rules: [
      {
        rule: '!has(self.outcome) || (has(self.state) && self.state == self.outcome)',
        message: 'an outcome stands only beside the terminal state of the same name',
        fieldPath: '.outcome',
      },
      {
        rule: "!has(self.state) || !(self.state in ['Succeeded', 'Failed', 'Cancelled', 'OutcomeUnknown']) || has(self.outcome)",
        message: 'a terminal state needs its outcome',
        fieldPath: '.outcome',
      },
    ],
  },
);

/** States of what a Task changed in its workspace. */
export const deliveryStates = [
  'NotRequested',
  'Validating',
  'Preparing',
  'Prepared',
  'Publishing',
  'Verifying',
  'VerifiedExact',
  'DeliveredSuperseded',
  'ReadValidated',
  'NoChange',
  'CancelledBeforePublish',
  'ReadOnlyWorkspaceModified',
  'DeliveryConflict',
  'CredentialBlocked',
  'PublicationOutcomeUnknown',
] as const;
/** One of {@link deliveryStates}. */
export type DeliveryState = (typeof deliveryStates)[number];

const branch = optional(text({ maxLength: 255 }));

const TaskDeliveryStatusSchema = object({
  state: optional(choice(deliveryStates)),
  outcome: optional(choice(deliveryStates)),
  reason,
  publicationID: identifier,
  sourceRepository: optional(RepositoryIdentitySchema),
  publicationRepository: optional(RepositoryIdentitySchema),
  branch,
  startingSHA: commit,
  remoteBeforeSHA: optional(
    text({
      pattern: patterns.commitOrAbsent.pattern,
      description: 'Commit of the branch before the push. Empty: the branch did not exist.',
    }),
  ),
  treeSHA: commit,
  expectedCommitSHA: commit,
  verifiedRemoteSHA: commit,
  supersedingRemoteSHA: commit,
  artifactDigest: sha256,
  prReceipt: optional(
    object({
      id: text({ minLength: 1, maxLength: 512 }),
      number: optional(int64({ minimum: 1 })),
      url: optional(text({ maxLength: 2048 })),
      state: optional(text({ maxLength: 64 })),
      baseBranch: branch,
      headBranch: branch,
      headSHA: commit,
    }),
  ),
  message,
  lastTransitionTime: optional(timestamp()),
});

/** Phases of the workspace of a Task. */
export const workspacePhases = ['Pending', 'Ready', 'Released', 'Retained', 'Deleted', 'Failed'] as const;
/** One of {@link workspacePhases}. */
export type WorkspacePhase = (typeof workspacePhases)[number];

/** Reasons of the workspace status of a Task. */
export const workspaceReasons = [
  'WorkspacePending',
  'WorkspaceClaimed',
  'WorkspaceReady',
  'WorkspaceReleased',
  'WorkspaceRetained',
  'WorkspaceDeleted',
  'WorkspaceValidationFailed',
  'WorkspaceAttachmentLocked',
  'WorkspaceClaimFailed',
  'WorkspaceReadinessFailed',
  'WorkspaceHandoffFailed',
  'WorkspaceCommandFailed',
  'WorkspaceSecretScrubFailed',
  'WorkspaceCleanupFailed',
  'WorkspaceStatusUpdateFailed',
] as const;
/** One of {@link workspaceReasons}. */
export type WorkspaceReason = (typeof workspaceReasons)[number];

const ExecutionWorkspaceStatusSchema = object(
  {
    classRef: optional(object({ name: text({ minLength: 1 }) })),
    workspaceRef: optional(object({ name: text(), uid: optional(text()) })),
    state: optional(text()),
    attachedEpoch: optional(int64()),
    conditions: optional(conditions),
    provider: optional(choice(workspaceProviders)),
    templateRef: optional(object({ name: optional(text()), namespace: optional(text()) })),
    phase: optional(choice(workspacePhases)),
    reason: optional(choice(workspaceReasons)),
    reusePolicy: optional(choice(reusePolicies)),
    cleanupPolicy: optional(choice(cleanupPolicies)),
    reused: optional(flag()),
    placement: optional(
      object({ workerNamespace: optional(text()), workerPool: optional(text()), workerPodName: optional(text()) }),
    ),
    density: optional(
      object({
        workerCount: optional(int32()),
        actorCount: optional(int32()),
        runningActorCount: optional(int32()),
        suspendedActorCount: optional(int32()),
        actorsPerWorker: optional(text()),
      }),
    ),
    resumeLatency: optional(duration),
    message: optional(text()),
    lastUpdateTime: optional(timestamp()),
  },
  { description: 'The requested workspace in words of no provider: no claim, sandbox, template or Pod is ever named here.' },
);

const AgentExecutionBindingSchema = object(
  {
    schemaVersion: int32({ minimum: 1, maximum: 1 }),
    contractVersion: choice(['orka.harness.v1', 'orka.harness.v2']),
    backend: choice(['harness-wrapper', 'runtime-pool', 'external-endpoint']),
    bindingDigest: digest,
    task: object({ namespaceUID: text(), uid: text(), boundSpecGeneration: int64({ minimum: 1 }) }),
    agent: optional(
      object({ namespace: text({ minLength: 1 }), name: text({ minLength: 1 }), uid: text(), generation: int64({ minimum: 1 }) }),
    ),
    snapshot: object({
      id: text({ minLength: 1, maxLength: 512, description: 'Identifier of the snapshot: <Task UID>/<digest>.' }),
      digest,
      schemaVersion: int32({ minimum: 1, maximum: 1 }),
    }),
    runtimeType: optional(choice(providerKinds)),
    runtimeRef: optional(
      object({ name: text({ minLength: 1 }), uid: optional(text()), generation: optional(int64({ minimum: 1 })) }),
    ),
    runtimeProfileDigest: sha256,
    runtimeProfileDigestSchemaVersion: optional(int32({ minimum: 1, maximum: 1 })),
    boundAt: timestamp(),
  },
  { description: 'The frozen plan. Written once; from then on the only authority.' },
);

const ResultReferenceSchema = object({
  available: flag({ description: 'Whether the answer is stored.' }),
  name: optional(
    text({
      maxLength: 253,
      description: 'ConfigMap with the answer, in the namespace of the Task: data.result and data.receipt.',
    }),
  ),
});

/** Schema of {@link TaskStatus}. */
export const TaskStatusSchema = object(
  {
    phase: optional(choice(taskPhases)),
    startTime: optional(timestamp()),
    completionTime: optional(timestamp()),
    duration: optional(withOptions(duration, { description: 'From startTime to completionTime, once both are there.' })),
    attempts: optional(int32()),
    iteration: optional(int32()),
    jobName: optional(text()),
    resultRef: optional(ResultReferenceSchema),
    execution: optional(TaskExecutionStatusSchema),
    delivery: optional(TaskDeliveryStatusSchema),
    harnessRuntime: optional(open({ description: 'State of protocol orka.harness.v1. Not written here.' })),
    agentExecutionBinding: optional(AgentExecutionBindingSchema),
    executionOutcome: optional(
      object({
        phase: choice(['Succeeded', 'Failed', 'Cancelled']),
        attempt: int32({ minimum: 1 }),
        resultRef: optional(ResultReferenceSchema),
        recordedAt: timestamp(),
        message: optional(text()),
      }),
    ),
    executionWorkspace: optional(ExecutionWorkspaceStatusSchema),
    webhookDelivered: optional(flag()),
    message: optional(text()),
    childTasks: optional(list(object({ name: text(), agent: text(), phase: choice(taskPhases), result: optional(text()) }))),
    conditions: optional(conditions),
    lastScheduleTime: optional(timestamp()),
    nextScheduleTime: optional(timestamp()),
  },
  {
    rules: [
      {
        rule: '!has(oldSelf.agentExecutionBinding) || (has(self.agentExecutionBinding) && self.agentExecutionBinding == oldSelf.agentExecutionBinding)',
        message: 'agentExecutionBinding is written once and never changes',
        fieldPath: '.agentExecutionBinding',
      },
      {
        rule: '!has(oldSelf.executionOutcome) || (has(self.executionOutcome) && self.executionOutcome == oldSelf.executionOutcome)',
        message: 'executionOutcome never changes once recorded',
        fieldPath: '.executionOutcome',
      },
    ],
  },
);

/** Schema of {@link Task}. */
export const TaskSchema = resource('Task', TaskSpecSchema, TaskStatusSchema, {
  description: 'One piece of work for an agent.',
  rules: [
    {
      rule: '!has(oldSelf.status) || !has(oldSelf.status.agentExecutionBinding) || self.spec == oldSelf.spec',
      message: 'the spec of a Task is frozen once status.agentExecutionBinding exists',
      fieldPath: '.spec',
    },
  ],
});

/** `spec.sessionRef`. */
export type SessionReference = Static<typeof SessionReferenceSchema>;
/** `spec.agentRuntime`: overrides for one Task. */
export type AgentRuntimeSpec = Static<typeof AgentRuntimeSchema>;
/** `spec.workspace`: the repository contract, not the sandbox. */
export type WorkspaceConfig = Static<typeof WorkspaceConfigSchema>;
/** `spec` of a Task: what to do, with which Agent, and where. */
export type TaskSpec = Static<typeof TaskSpecSchema>;
/** `status.execution`. */
export type TaskExecutionStatus = Static<typeof TaskExecutionStatusSchema>;
/** A record of a call of the publisher: an item of `status.execution.effects`. */
export type TaskEffect = Static<typeof EffectSchema>;
/** `status.delivery`. */
export type TaskDeliveryStatus = Static<typeof TaskDeliveryStatusSchema>;
/** `status.executionWorkspace`. */
export type ExecutionWorkspaceStatus = Static<typeof ExecutionWorkspaceStatusSchema>;
/** `status.agentExecutionBinding`. */
export type AgentExecutionBinding = Static<typeof AgentExecutionBindingSchema>;
/** `status` of a Task. */
export type TaskStatus = Static<typeof TaskStatusSchema>;
/** A Task object: one prompt for an Agent. */
export type Task = Static<typeof TaskSchema>;

/** Names, schema and columns of the kind Task, for {@link crd} and {@link validate}. */
export const taskKind = define({
  kind: 'Task',
  schema: TaskSchema,
  printerColumns: [
    { name: 'Type', type: 'string', jsonPath: '.spec.type' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Priority', type: 'integer', jsonPath: '.spec.priority' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Agent', type: 'string', jsonPath: '.spec.agentRef.name', wide: true },
    { name: 'Pool', type: 'string', jsonPath: '.status.execution.runtimePoolName', wide: true },
    { name: 'Started', type: 'date', jsonPath: '.status.startTime', wide: true },
    { name: 'Duration', type: 'string', jsonPath: '.status.duration', wide: true },
    // Last, since it is long: what a Task waits for, or why it failed.
    { name: 'Message', type: 'string', jsonPath: '.status.message' },
  ],
  crdAnnotations: { 'gateway.orka.ai/session-cutoff-schema': 'v1' },
});
