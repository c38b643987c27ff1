import { define, resource } from './kind.js';
import { conditions, digest, dnsLabel, patterns, pinnedImage } from './meta.js';
import { choice, int32, int64, list, map, object, optional, text, timestamp, unchanging, withOptions } from './schema.js';
import type { Static } from './schema.js';

/** The one protocol that pools speak. */
export const protocolVersion = 'orka.harness.v2';

export const providerKinds = ['codex', 'claude', 'copilot', 'opencode'] as const;
export type ProviderKind = (typeof providerKinds)[number];
export const providerKind = choice(providerKinds);

export const workspaceProviders = ['agent-sandbox', 'substrate'] as const;
export type WorkspaceProvider = (typeof workspaceProviders)[number];

export const workspaceIntents = ['read', 'write'] as const;
export type WorkspaceIntent = (typeof workspaceIntents)[number];

export const resourceClass = text({ minLength: 1, maxLength: 63, pattern: patterns.resourceClass.pattern });

const schemaVersion = text({ minLength: 1, maxLength: 64, pattern: patterns.schemaVersion.pattern });

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
export type PoolLifecycle = (typeof poolLifecycles)[number];

export const admissionStates = ['Closed', 'Accepting', 'Draining', 'Ambiguous'] as const;
export type AdmissionState = (typeof admissionStates)[number];

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

export const RuntimePoolSchema = resource('RuntimePool', RuntimePoolSpecSchema, RuntimePoolStatusSchema, {
  description:
    'One agent runtime, at most one instance, made by the controller for the Tasks that share its profile or its workspace.',
});

export type RuntimeProfileSpec = Static<typeof RuntimeProfileSpecSchema>;
export type RuntimePoolSpec = Static<typeof RuntimePoolSpecSchema>;
export type PoolExecutionWorkspace = NonNullable<RuntimePoolSpec['executionWorkspace']>;
export type PoolCapacityStatus = Static<typeof PoolCapacityStatusSchema>;
export type PoolReservation = Static<typeof ReservationSchema>;
export type ActiveInstance = Static<typeof ActiveInstanceSchema>;
export type RuntimePoolStatus = Static<typeof RuntimePoolStatusSchema>;
export type RuntimePool = Static<typeof RuntimePoolSchema>;

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
