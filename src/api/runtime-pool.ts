import { define, resource } from './kind.js';
import { conditions, digest, dnsLabel, patterns, pinnedImage } from './meta.js';
import { choice, int32, int64, list, map, object, optional, text, timestamp, unchanging, withOptions } from './schema.js';
import type { Static } from './schema.js';

/** The one protocol that pools speak. */
export const protocolVersion = 'orka.harness.v2';

/** Coding agents that a class can run. */
export const providerKinds = ['codex', 'claude', 'copilot', 'opencode'] as const;
/** One of {@link providerKinds}. */
export type ProviderKind = (typeof providerKinds)[number];
/** Schema of {@link ProviderKind}. */
export const providerKind = choice(providerKinds);

/** Providers of workspaces. This version runs agent-sandbox. */
export const workspaceProviders = ['agent-sandbox', 'substrate'] as const;
/** One of {@link workspaceProviders}. */
export type WorkspaceProvider = (typeof workspaceProviders)[number];

/** `read`: the workspace must be unchanged at the end. `write`: changes are published. */
export const workspaceIntents = ['read', 'write'] as const;
/** One of {@link workspaceIntents}. */
export type WorkspaceIntent = (typeof workspaceIntents)[number];

/** Schema of the name of a resource class, such as `standard`. */
export const resourceClass = text({ minLength: 1, maxLength: 63, pattern: patterns.resourceClass.pattern });

const schemaVersion = text({ minLength: 1, maxLength: 64, pattern: patterns.schemaVersion.pattern });

/** Schema of {@link RuntimeProfileSpec}. */
export const RuntimeProfileSpecSchema = object(
  {
    protocolVersion: optional(choice([protocolVersion], { default: protocolVersion })),
    digest: withOptions(digest, { description: 'Canonical digest of the profile.' }),
    digestSchemaVersion: schemaVersion,
    acpProfile: choice(['acp.v1']),
    adapterDigests: map(text(), { minProperties: 1, maxProperties: 32 }),
    providerKind,
    model: text({ minLength: 1, maxLength: 256 }),
    modelLimits: optional(
      object(
        { context: int64({ minimum: 1 }), output: int64({ minimum: 1 }) },
        {
          description: 'Limits of the model, in tokens.',
          rules: [
            {
              rule: 'self.context > self.output',
              message: 'the context limit of a model must be greater than its output limit',
              fieldPath: '.context',
            },
          ],
        },
      ),
    ),
    agentConfigurationDigest: digest,
    toolPolicyDigest: digest,
    approvalPolicyDigest: digest,
    mcpConfigurationDigest: digest,
    workspaceIntent: choice(workspaceIntents),
    proxyCredentialRole: text({ minLength: 1, maxLength: 256 }),
    proxyCredentialScope: text({ minLength: 1, maxLength: 1024 }),
    resourceClass,
  },
  {
    description: 'The behaviour that every instance of the pool must show.',
    rules: [
      {
        rule: "self.providerKind != 'opencode' || has(self.modelLimits)",
        message: 'an opencode profile must state modelLimits',
        fieldPath: '.modelLimits',
      },
    ],
  },
);

/** Schema of {@link RuntimePoolSpec}. */
export const RuntimePoolSpecSchema = object(
  {
    trustDomain: object({ namespace: dnsLabel, identity: text({ minLength: 1, maxLength: 253 }) }),
    runtimeNamespace: optional(
      text({ maxLength: 63, pattern: patterns.dnsLabel.pattern, description: 'Where the workload runs. It never changes.' }),
    ),
    runtime: object({ image: pinnedImage, profile: RuntimeProfileSpecSchema }),
    executionWorkspace: optional(
      object(
        {
          provider: choice(workspaceProviders),
          bindingDigest: digest,
          substrate: optional(
            object({ baseTemplateNamespace: dnsLabel, baseTemplateName: text({ minLength: 1, maxLength: 253 }) }),
          ),
        },
        {
          description: 'The workspace that the one instance runs in. Absent: it runs in a Deployment. It never changes.',
          rules: [
            {
              rule: "(self.provider == 'substrate') == has(self.substrate)",
              message: 'the substrate block belongs to provider substrate, and only to it',
              fieldPath: '.substrate',
            },
          ],
        },
      ),
    ),
    desiredReplicas: optional(int32({ minimum: 0, maximum: 1, default: 0 })),
    capacity: optional(
      object(
        {
          maxResidentSessions: optional(int32({ minimum: 1, maximum: 1000, default: 10 })),
          maxRunningPrompts: optional(int32({ minimum: 1, maximum: 1000, default: 4 })),
        },
        {
          default: { maxResidentSessions: 10, maxRunningPrompts: 4 },
          rules: [
            {
              rule: 'self.maxRunningPrompts <= self.maxResidentSessions',
              message: 'there cannot be more running prompts than resident sessions',
              fieldPath: '.maxRunningPrompts',
            },
          ],
        },
      ),
    ),
    coldStartTimeoutSeconds: optional(int32({ minimum: 1, maximum: 3600, default: 120 })),
  },
  {
    rules: [
      {
        rule: 'self.trustDomain == oldSelf.trustDomain',
        message: 'the trust domain of a pool never changes',
        fieldPath: '.trustDomain',
      },
      unchanging('runtimeNamespace', 'the runtime namespace of a pool never changes'),
      {
        rule: 'self.runtime == oldSelf.runtime',
        message: 'the image and the profile of a pool never change',
        fieldPath: '.runtime',
      },
      unchanging('executionWorkspace', 'the workspace binding of a pool never changes'),
    ],
  },
);

const counter = int32({ minimum: 0 });

const ReservationSchema = object(
  {
    poolUID: text({ minLength: 1, maxLength: 128 }),
    taskUID: text({ minLength: 1, maxLength: 128 }),
    attempt: int32({ minimum: 1 }),
    controllerEpoch: int64({ minimum: 1 }),
    runtimeInstanceID: text({ minLength: 1, maxLength: 253 }),
    residentSlots: int32({ minimum: 0, maximum: 1 }),
    promptSlots: int32({ minimum: 0, maximum: 1 }),
    reservedAt: timestamp(),
    expiresAt: timestamp(),
  },
  { rules: [{ rule: 'self.residentSlots + self.promptSlots > 0', message: 'a reservation must claim at least one slot' }] },
);

const ActiveInstanceSchema = object(
  {
    podNamespace: text({ minLength: 1, maxLength: 63 }),
    podName: text({ minLength: 1, maxLength: 253 }),
    podAddress: text({ minLength: 1, maxLength: 253 }),
    podUID: text({ minLength: 1, maxLength: 128 }),
    bootID: text({ minLength: 1, maxLength: 128 }),
    runtimeInstanceID: text({ minLength: 1, maxLength: 253, description: 'Identifier of the instance: <podUID>.<bootID>.' }),
    controllerEpoch: int64({ minimum: 1 }),
    protocolVersion: choice([protocolVersion]),
    profileDigest: digest,
    profileDigestSchemaVersion: text({ minLength: 1, maxLength: 64 }),
    providerTokenGeneration: text({ pattern: patterns.tokenGeneration.pattern }),
    lastObservedTime: optional(timestamp()),
  },
  { description: 'The one authenticated instance. Nothing is ever sent anywhere else.' },
);

const PoolCapacityStatusSchema = object({
  maxResidentSessions: optional(counter),
  maxRunningPrompts: optional(counter),
  residentSessions: optional(counter),
  runningPrompts: optional(counter),
  queuedTasks: optional(counter),
  reservedSessions: optional(counter),
  reservedPrompts: optional(counter),
  reservations: optional(list(ReservationSchema, { maxItems: 1000, keys: ['poolUID', 'taskUID', 'attempt', 'controllerEpoch'] })),
  pendingPermissions: optional(counter),
  finalizingSessions: optional(counter),
  liveDescendants: optional(counter),
});

/** States of a pool. */
export const poolLifecycles = [
  'Stopped',
  'Starting',
  'Serving',
  'Draining',
  'Quiescent',
  'Stopping',
  'Degraded',
  'Ambiguous',
] as const;
/** One of {@link poolLifecycles}. */
export type PoolLifecycle = (typeof poolLifecycles)[number];

/** `Accepting`: the pool takes sessions. In the other states it takes none. */
export const admissionStates = ['Closed', 'Accepting', 'Draining', 'Ambiguous'] as const;
/** One of {@link admissionStates}. */
export type AdmissionState = (typeof admissionStates)[number];

/** Schema of {@link RuntimePoolStatus}. */
export const RuntimePoolStatusSchema = object({
  observedGeneration: optional(int64()),
  controllerEpoch: optional(int64({ minimum: 0 })),
  desiredReplicas: optional(int32({ minimum: 0, maximum: 1 })),
  currentReplicas: optional(int32({ minimum: 0 })),
  lifecycle: optional(choice(poolLifecycles)),
  admissionState: optional(choice(admissionStates)),
  activeInstance: optional(ActiveInstanceSchema),
  capacity: optional(PoolCapacityStatusSchema),
  message: optional(text({ maxLength: 1024 })),
  conditions: optional(conditions),
});

/** Schema of {@link RuntimePool}. */
export const RuntimePoolSchema = resource('RuntimePool', RuntimePoolSpecSchema, RuntimePoolStatusSchema, {
  description:
    'One agent runtime, at most one instance, made by the controller for the Tasks that share its profile or its workspace.',
});

/** Agent, model, adapters and policies of an instance, with their digests. */
export type RuntimeProfileSpec = Static<typeof RuntimeProfileSpecSchema>;
/** `spec` of a RuntimePool, written by the controller alone. */
export type RuntimePoolSpec = Static<typeof RuntimePoolSpecSchema>;
/** Workspace that a pool was made for. */
export type PoolExecutionWorkspace = NonNullable<RuntimePoolSpec['executionWorkspace']>;
/** Sessions and prompts that a pool has, and may have. */
export type PoolCapacityStatus = Static<typeof PoolCapacityStatusSchema>;
/** A slot of a pool that a Task holds. */
export type PoolReservation = Static<typeof ReservationSchema>;
/** The instance that serves a pool. */
export type ActiveInstance = Static<typeof ActiveInstanceSchema>;
/** `status` of a RuntimePool. */
export type RuntimePoolStatus = Static<typeof RuntimePoolStatusSchema>;
/** A RuntimePool object: the instance that runs sessions of one profile. */
export type RuntimePool = Static<typeof RuntimePoolSchema>;

/** Names, schema and columns of the kind RuntimePool, for {@link crd} and {@link validate}. */
export const runtimePoolKind = define({
  kind: 'RuntimePool',
  shortNames: ['rtpool'],
  schema: RuntimePoolSchema,
  printerColumns: [
    { name: 'Lifecycle', type: 'string', jsonPath: '.status.lifecycle' },
    { name: 'Admission', type: 'string', jsonPath: '.status.admissionState' },
    { name: 'Desired', type: 'integer', jsonPath: '.status.desiredReplicas' },
    { name: 'Current', type: 'integer', jsonPath: '.status.currentReplicas' },
    { name: 'Sessions', type: 'integer', jsonPath: '.status.capacity.residentSessions' },
    { name: 'Prompts', type: 'integer', jsonPath: '.status.capacity.runningPrompts' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Task', type: 'string', jsonPath: '.metadata.annotations.orka\\.ai/task', wide: true },
    // Last, since it is long: why a pool is not what somebody wants it to be.
    { name: 'Message', type: 'string', jsonPath: '.status.message' },
  ],
});
