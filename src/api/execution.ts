/** What Task and Agent have in common: references, resources, and where and in which workspace the work runs. */
import { patterns } from './meta.js';
import { workspaceProviders } from './runtime-pool.js';
import { choice, flag, int64, list, map, object, open, optional, quantity, text } from './schema.js';
import type { Static } from './schema.js';

/** Another object, by default in the namespace of the one that names it. */
export const ReferenceSchema = object({ name: text(), namespace: optional(text()) });
/** An object by name, and by namespace where that may differ. */
export type Reference = Static<typeof ReferenceSchema>;

/** Schema of a key of a ConfigMap. */
export const ConfigMapKeySchema = object({ name: text(), key: text() });

/** Schema of a skill that an Agent names. */
export const SkillReferenceSchema = object({ name: optional(text()), configMapRef: optional(ConfigMapKeySchema) });

/** Schema of {@link Resources}. */
export const ResourcesSchema = object({
  requests: optional(map(quantity())),
  limits: optional(map(quantity())),
  claims: optional(list(open())),
});
/** Requests and limits of a container. */
export type Resources = Static<typeof ResourcesSchema>;

/** A toleration as Pods have it. */
export const TolerationSchema = object({
  key: optional(text()),
  operator: optional(choice(['Exists', 'Equal'])),
  value: optional(text()),
  effect: optional(choice(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])),
  tolerationSeconds: optional(int64()),
});
/** A toleration of a Pod. */
export type Toleration = Static<typeof TolerationSchema>;

/** `none`: a workspace for one Task. `session`: the workspace of a Session. */
export const reusePolicies = ['none', 'session'] as const;
/** One of {@link reusePolicies}. */
export type ReusePolicy = (typeof reusePolicies)[number];

/** `delete`: a workspace ends with its Task. `retain` is refused. */
export const cleanupPolicies = ['delete', 'retain'] as const;
/** One of {@link cleanupPolicies}. */
export type CleanupPolicy = (typeof cleanupPolicies)[number];

/** `execution.workspace`. No server defaults: absent and default are told apart when a plan is made. Source: workload.md §2.1. */
export const ExecutionWorkspaceSchema = object(
  {
    classRef: optional(object({ name: text({ minLength: 1 }) })),
    enabled: optional(
      flag({
        description: 'Whether the Task gets a workspace of its own. Absent or false: as if the whole request were absent.',
      }),
    ),
    provider: optional(
      choice(workspaceProviders, {
        description: "Provider of the workspace; substrate is not available. Absent: the controller's default.",
      }),
    ),
    templateRef: optional(object({ name: optional(text()), namespace: optional(text()) })),
    reusePolicy: optional(
      choice(reusePolicies, {
        description:
          'Which workspace the work gets: one of its own (none), or that of the Session (session, not available). Absent: none.',
      }),
    ),
    cleanupPolicy: optional(
      choice(cleanupPolicies, {
        description: 'What becomes of the workspace after the work; retain is refused. Absent: delete.',
      }),
    ),
    workspaceSlot: optional(
      text({
        minLength: 1,
        maxLength: 63,
        pattern: patterns.dnsLabel.pattern,
        description: 'Which of the workspaces of a Session. Absent: default.',
      }),
    ),
    onDetach: optional(choice(['Suspend', 'Delete'])),
    boot: optional(flag()),
    poolRef: optional(object({ name: optional(text()), namespace: optional(text()) })),
    snapshot: optional(
      object({ restoreURI: optional(text()), checkpointURI: optional(text()), checkpointOnRelease: optional(flag()) }),
    ),
    hibernation: optional(object({ processMode: optional(choice(['fresh', 'resident'])), residentKey: optional(text()) })),
  },
  {
    description: 'Asks for an isolated workspace from a provider.',
    rules: [
      {
        rule:
          '!has(self.classRef) || (!has(self.provider) && !has(self.templateRef) && !has(self.poolRef) && (!has(self.enabled) || !self.enabled)' +
          ' && !has(self.cleanupPolicy) && (!has(self.boot) || !self.boot) && !has(self.snapshot) && !has(self.hibernation))',
        message:
          'classRef stands alone: no provider, templateRef, poolRef, enabled, cleanupPolicy, boot, snapshot or hibernation beside it',
        fieldPath: '.classRef',
      },
    ],
  },
);
/** `spec.execution.workspace`. */
export type ExecutionWorkspace = Static<typeof ExecutionWorkspaceSchema>;

/** Members that `spec.execution` of Tasks and Agents share. */
export const executionMembers = {
  runtimeClassName: optional(text()),
  nodeSelector: optional(map(text())),
  tolerations: optional(list(TolerationSchema)),
  affinity: optional(open()),
  workspace: optional(ExecutionWorkspaceSchema),
};

/** Schema of {@link ExecutionSpec}. */
export const ExecutionSpecSchema = object(executionMembers, { description: 'Where the work runs.' });
/** `spec.execution`: placement, and the workspace that is asked for. */
export type ExecutionSpec = Static<typeof ExecutionSpecSchema>;
