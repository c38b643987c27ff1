import { ConfigMapKeySchema, ReferenceSchema, ResourcesSchema, SkillReferenceSchema, executionMembers } from './execution.js';
import { define, resource } from './kind.js';
import { conditions, duration } from './meta.js';
import { providerKinds } from './runtime-pool.js';
import { choice, flag, int32, int64, list, number, object, open, optional, text, timestamp } from './schema.js';
import type { Static } from './schema.js';

/** Versions of the protocol between controller and runtime. This version runs `orka.harness.v2`. */
export const contractVersions = ['orka.harness.v1', 'orka.harness.v2'] as const;
/** One of {@link contractVersions}. */
export type ContractVersion = (typeof contractVersions)[number];

/** Values of `spec.model.reasoningEffort` of an Agent. */
export const reasoningEfforts = ['low', 'medium', 'high', 'xhigh', 'max'] as const;
/** One of {@link reasoningEfforts}. */
export type ReasoningEffort = (typeof reasoningEfforts)[number];

const AgentCLIRuntimeSchema = object(
  {
    type: optional(choice(providerKinds)),
    runtimeRef: optional(object({ name: text({ minLength: 1 }) })),
    contractVersion: optional(
      choice(contractVersions, {
        description: 'Protocol of the runtime; orka.harness.v1 is refused. It never changes once set. Absent: orka.harness.v2.',
      }),
    ),
    defaultMaxTurns: optional(
      int32({ minimum: 1, maximum: 1000, description: 'Calls of the model that a prompt may make. Absent: 50.' }),
    ),
    defaultAllowedTools: optional(
      list(text(), { description: 'Tools that the agent may use, by name. Absent: no restriction.' }),
    ),
    defaultAllowBash: optional(flag({ description: 'Whether the agent may run shell commands. Absent: true.' })),
    defaultReasoningEffort: optional(choice(reasoningEfforts)),
  },
  {
    rules: [
      { rule: 'has(self.type) != has(self.runtimeRef)', message: 'a runtime names exactly one of type and runtimeRef' },
      {
        rule: '!has(self.contractVersion) || has(self.type)',
        message: 'contractVersion goes with type; with runtimeRef the referenced runtime states it',
        fieldPath: '.contractVersion',
      },
    ],
  },
);

const ModelConfigSchema = object({
  provider: optional(text()),
  name: optional(text()),
  temperature: optional(number()),
  contextWindow: optional(int64({ minimum: 1, description: 'Size of the context, in tokens. For runtime opencode only.' })),
  maxTokens: optional(int64({ description: 'Longest answer, in tokens. For runtime opencode only.' })),
  fallbacks: optional(list(object({ providerRef: text(), model: optional(text()) }))),
});

const SystemPromptSchema = object(
  { inline: optional(text()), configMapRef: optional(ConfigMapKeySchema) },
  {
    rules: [
      {
        rule: "!(has(self.inline) && self.inline != '' && has(self.configMapRef))",
        message: 'a system prompt is inline or in a ConfigMap, not both',
      },
    ],
  },
);

/** Source: dispatch.md §1.3. No server defaults: an absent member and its default give different digests. */
export const AgentSpecSchema = object(
  {
    runtime: optional(AgentCLIRuntimeSchema),
    model: optional(ModelConfigSchema),
    systemPrompt: optional(SystemPromptSchema),
    providerRef: optional(ReferenceSchema),
    tools: optional(
      list(object({ name: text(), enabled: optional(flag({ description: 'Whether the agent has the tool. Absent: true.' })) })),
    ),
    skills: optional(list(SkillReferenceSchema)),
    resources: optional(ResourcesSchema),
    execution: optional(
      object(executionMembers, {
        description: 'Where the work of this Agent runs.',
        rules: [
          {
            rule: '!has(self.workspace) || !has(self.workspace.classRef)',
            message: 'an Agent cannot choose a workspace class; a Task can',
            fieldPath: '.workspace',
          },
        ],
      }),
    ),
    secretRef: optional(
      object({ name: text() }, { description: "Not used: access to a model comes from the proxy of the pool's class." }),
    ),
    session: optional(open()),
    rateLimit: optional(open()),
    coordination: optional(
      object({
        enabled: optional(flag()),
        allowedAgents: optional(list(ReferenceSchema)),
        maxConcurrentChildren: optional(int32({ minimum: 1, description: 'Tasks of its own that run at once. Absent: 5.' })),
        maxDepth: optional(int32({ minimum: 1, description: 'Levels of Tasks that make Tasks. Absent: 3.' })),
        autonomous: optional(flag()),
        maxIterations: optional(int32({ minimum: 0 })),
        approvalRequiredTools: optional(list(text())),
      }),
    ),
    ttlAfterLastTask: optional(duration),
  },
  {
    rules: [
      {
        rule:
          '!has(oldSelf.runtime) || !has(oldSelf.runtime.contractVersion)' +
          ' || (has(self.runtime) && has(self.runtime.contractVersion) && self.runtime.contractVersion == oldSelf.runtime.contractVersion)',
        message: 'runtime.contractVersion never changes once set',
        fieldPath: '.runtime',
      },
    ],
  },
);

/** Schema of {@link AgentStatus}. */
export const AgentStatusSchema = object({
  ready: optional(flag()),
  activeTasks: optional(int32()),
  lastUsed: optional(timestamp()),
  conditions: optional(conditions),
});

/** Schema of {@link Agent}. */
export const AgentSchema = resource('Agent', AgentSpecSchema, AgentStatusSchema, {
  description: 'An agent as Tasks refer to it: runtime, model and policies.',
});

/** `spec.runtime`. */
export type AgentCLIRuntime = Static<typeof AgentCLIRuntimeSchema>;
/** `spec.model`. */
export type ModelConfig = Static<typeof ModelConfigSchema>;
/** `spec` of an Agent: runtime, model, prompt and tools. */
export type AgentSpec = Static<typeof AgentSpecSchema>;
/** `status` of an Agent. */
export type AgentStatus = Static<typeof AgentStatusSchema>;
/** An Agent object: how a coding agent is configured. Tasks name it. */
export type Agent = Static<typeof AgentSchema>;

/** Names, schema and columns of the kind Agent, for {@link crd} and {@link validate}. */
export const agentKind = define({
  kind: 'Agent',
  schema: AgentSchema,
  printerColumns: [
    { name: 'Provider', type: 'string', jsonPath: '.spec.runtime.type' },
    { name: 'Model', type: 'string', jsonPath: '.spec.model.name' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
});
