import { agentKind, runtimePoolClassKind, runtimePoolKind, taskKind } from '../../src/api/index.js';
import type { Kind } from '../../src/api/index.js';
import { isTransition } from '../../src/api/cel.js';
import { structural } from '../../src/api/structural.js';
import type { StructuralNode } from '../../src/api/structural.js';
import { digest, edited, fullAgent, fullClass, fullPool, fullTask, smokeAgent, smokeTask } from './samples.js';

/** A rule of a schema, and what it lets pass and what it does not. */
export interface CelRow {
  readonly says: string;
  readonly kind: Kind<unknown>;
  /** The stored object, for a rule about a transition. */
  readonly from?: object;
  readonly accepted: object;
  readonly refused: object;
  /** The member to blame, in the refused object. */
  readonly field: string;
}

const plainPool = edited(edited(fullPool, 'spec.executionWorkspace', undefined), 'spec.runtime.profile.providerKind', 'codex');
const container = edited(edited(smokeTask, 'spec.type', 'container'), 'spec.image', 'x');
const aiTask = edited(smokeTask, 'spec.type', 'ai');

function frozenForAgents(member: string, value: unknown): CelRow {
  const path = `spec.${member}`;
  return {
    says: `the ${member} of an agent Task never changes`,
    kind: taskKind,
    from: smokeTask,
    accepted: edited(smokeTask, 'spec.priority', 7),
    refused: edited(smokeTask, path, value),
    field: path,
  };
}

function frozenForAll(member: string): CelRow {
  const path = `spec.${member}`;
  return {
    says: `the ${member} of a Task never changes`,
    kind: taskKind,
    from: edited(smokeTask, path, { subject: 'x' }),
    accepted: edited(smokeTask, path, { subject: 'x' }),
    refused: edited(smokeTask, path, { subject: 'y' }),
    field: path,
  };
}

function notWithImage(message: string, member: string, value: unknown): CelRow {
  return {
    says: `a container Task with an image cannot carry ${message}`,
    kind: taskKind,
    accepted: edited(
      edited(edited(container, `spec.workspace.${member}`, value), 'spec.image', undefined),
      'spec.workspace.intent',
      'write',
    ),
    refused: edited(edited(container, `spec.workspace.${member}`, value), 'spec.workspace.intent', 'write'),
    field: 'spec.workspace',
  };
}

/** Asked offline and, by `test/cluster/parity.test.ts`, of a real API server. */
export const celRows: readonly CelRow[] = [
  // workload.md §1.2, the nine rules of a RuntimePool
  {
    says: 'the trust domain of a pool never changes',
    kind: runtimePoolKind,
    from: fullPool,
    accepted: edited(fullPool, 'spec.desiredReplicas', 0),
    refused: edited(fullPool, 'spec.trustDomain.identity', 'other'),
    field: 'spec.trustDomain',
  },
  {
    says: 'the runtime namespace of a pool never changes',
    kind: runtimePoolKind,
    from: fullPool,
    accepted: edited(fullPool, 'spec.coldStartTimeoutSeconds', 9),
    refused: edited(fullPool, 'spec.runtimeNamespace', undefined),
    field: 'spec.runtimeNamespace',
  },
  {
    says: 'the image and the profile of a pool never change',
    kind: runtimePoolKind,
    from: fullPool,
    accepted: edited(fullPool, 'spec.capacity.maxResidentSessions', 9),
    refused: edited(fullPool, 'spec.runtime.profile.modelLimits.output', 2),
    field: 'spec.runtime',
  },
  {
    says: 'the workspace binding of a pool never changes',
    kind: runtimePoolKind,
    from: plainPool,
    accepted: edited(plainPool, 'spec.desiredReplicas', 0),
    refused: edited(plainPool, 'spec.executionWorkspace', { provider: 'agent-sandbox', bindingDigest: digest }),
    field: 'spec.executionWorkspace',
  },
  {
    says: 'there cannot be more running prompts than resident sessions',
    kind: runtimePoolKind,
    accepted: edited(fullPool, 'spec.capacity', { maxRunningPrompts: 10 }),
    refused: edited(fullPool, 'spec.capacity', { maxRunningPrompts: 11 }),
    field: 'spec.capacity.maxRunningPrompts',
  },
  {
    says: 'the substrate block belongs to provider substrate, and only to it',
    kind: runtimePoolKind,
    accepted: edited(fullPool, 'spec.executionWorkspace', { provider: 'agent-sandbox', bindingDigest: digest }),
    refused: edited(fullPool, 'spec.executionWorkspace.provider', 'agent-sandbox'),
    field: 'spec.executionWorkspace.substrate',
  },
  {
    says: 'an opencode profile must state modelLimits',
    kind: runtimePoolKind,
    accepted: edited(plainPool, 'spec.runtime.profile.modelLimits', undefined),
    refused: edited(fullPool, 'spec.runtime.profile.modelLimits', undefined),
    field: 'spec.runtime.profile.modelLimits',
  },
  {
    says: 'the context limit of a model must be greater than its output limit',
    kind: runtimePoolKind,
    accepted: edited(fullPool, 'spec.runtime.profile.modelLimits', { context: 2, output: 1 }),
    refused: edited(fullPool, 'spec.runtime.profile.modelLimits', { context: 2, output: 2 }),
    field: 'spec.runtime.profile.modelLimits.context',
  },
  {
    says: 'a reservation must claim at least one slot',
    kind: runtimePoolKind,
    accepted: edited(fullPool, 'status.capacity.reservations.0.promptSlots', 1),
    refused: edited(fullPool, 'status.capacity.reservations.0.residentSlots', 0),
    field: 'status.capacity.reservations[0]',
  },
  // dispatch.md §1.1
  {
    says: 'the type of a Task never changes',
    kind: taskKind,
    from: smokeTask,
    accepted: smokeTask,
    refused: aiTask,
    field: 'spec.type',
  },
  frozenForAgents('prompt', 'another'),
  frozenForAgents('agentRef', undefined),
  frozenForAgents('agentRuntime', { maxTurns: 1, allowedTools: [] }),
  frozenForAgents('sessionRef', { name: 's' }),
  frozenForAgents('workspace', {}),
  frozenForAgents('timeout', '11m0s'),
  frozenForAll('transaction'),
  frozenForAll('requestedBy'),
  {
    says: 'the workspace intent of a Task never changes; an absent intent is read',
    kind: taskKind,
    from: aiTask,
    accepted: edited(aiTask, 'spec.workspace.intent', 'read'),
    refused: edited(aiTask, 'spec.workspace.intent', 'write'),
    field: 'spec.workspace',
  },
  {
    says: 'execution.workspace.reusePolicy: session needs sessionRef',
    kind: taskKind,
    accepted: edited(edited(smokeTask, 'spec.execution.workspace.reusePolicy', 'session'), 'spec.sessionRef', { name: '' }),
    refused: edited(smokeTask, 'spec.execution.workspace.reusePolicy', 'session'),
    field: 'spec.sessionRef',
  },
  notWithImage('workspace.expectedRemoteSHA', 'expectedRemoteSHA', 'a'.repeat(40)),
  notWithImage('workspace.createPR', 'createPR', true),
  notWithImage('workspace.pushBranch', 'pushBranch', 'b'),
  notWithImage(
    'change policies (workspace.maxChangedFiles, allowedPaths, denyRepositoryControlPaths, rejectBinaryFiles, rejectSecretLikeContent)',
    'rejectBinaryFiles',
    true,
  ),
  {
    says: 'agentRuntime.workspace is legacy; use spec.workspace',
    kind: taskKind,
    accepted: edited(smokeTask, 'spec.agentRuntime.allowBash', false),
    refused: edited(smokeTask, 'spec.agentRuntime.workspace', {}),
    field: 'spec.agentRuntime.workspace',
  },
  {
    says: 'createPR needs intent: write',
    kind: taskKind,
    accepted: edited(smokeTask, 'spec.workspace', { createPR: true, intent: 'write' }),
    refused: edited(smokeTask, 'spec.workspace', { createPR: true }),
    field: 'spec.workspace.createPR',
  },
  ...['gitRepo', 'publicationGitRepo'].map((member) => ({
    says: `${member} must not carry credentials, a query or a fragment`,
    kind: taskKind,
    accepted: edited(smokeTask, `spec.workspace.${member}`, 'https://github.com/acme/app@v1'),
    refused: edited(smokeTask, `spec.workspace.${member}`, 'https://user:word@github.com/acme/app'),
    field: `spec.workspace.${member}`,
  })),
  {
    says: 'a terminal state needs its outcome',
    kind: taskKind,
    accepted: edited(fullTask, 'status.execution', { state: 'Settling' }),
    refused: edited(fullTask, 'status.execution', { state: 'OutcomeUnknown' }),
    field: 'status.execution.outcome',
  },
  {
    says: 'an outcome stands only beside the terminal state of the same name',
    kind: taskKind,
    accepted: edited(fullTask, 'status.execution', { state: 'Failed', outcome: 'Failed' }),
    refused: edited(fullTask, 'status.execution', { state: 'Running', outcome: 'Failed' }),
    field: 'status.execution.outcome',
  },
  {
    says: 'agentExecutionBinding is written once and never changes',
    kind: taskKind,
    from: fullTask,
    accepted: edited(fullTask, 'status.phase', 'Finalizing'),
    refused: edited(fullTask, 'status.agentExecutionBinding', undefined),
    field: 'status.agentExecutionBinding',
  },
  {
    says: 'executionOutcome never changes once recorded',
    kind: taskKind,
    from: fullTask,
    accepted: edited(fullTask, 'status.phase', 'Finalizing'),
    refused: edited(fullTask, 'status.executionOutcome.attempt', 2),
    field: 'status.executionOutcome',
  },
  {
    says: 'the spec of a Task is frozen once status.agentExecutionBinding exists',
    kind: taskKind,
    from: fullTask,
    accepted: edited(fullTask, 'metadata.finalizers', []),
    refused: edited(fullTask, 'spec.priority', 6),
    field: 'spec',
  },
  // workload.md §2.1
  {
    says: 'classRef stands alone: no provider, templateRef, poolRef, enabled, cleanupPolicy, boot, snapshot or hibernation beside it',
    kind: taskKind,
    accepted: edited(smokeTask, 'spec.execution.workspace', {
      classRef: { name: 'c' },
      enabled: false,
      reusePolicy: 'none',
      onDetach: 'Suspend',
    }),
    refused: edited(smokeTask, 'spec.execution.workspace.classRef', { name: 'c' }),
    field: 'spec.execution.workspace.classRef',
  },
  // dispatch.md §1.3
  {
    says: 'a runtime names exactly one of type and runtimeRef',
    kind: agentKind,
    accepted: edited(smokeAgent, 'spec.runtime', { runtimeRef: { name: 'external' } }),
    refused: edited(smokeAgent, 'spec.runtime.runtimeRef', { name: 'external' }),
    field: 'spec.runtime',
  },
  {
    says: 'contractVersion goes with type; with runtimeRef the referenced runtime states it',
    kind: agentKind,
    accepted: edited(smokeAgent, 'spec.runtime.contractVersion', 'orka.harness.v2'),
    refused: edited(smokeAgent, 'spec.runtime', { runtimeRef: { name: 'external' }, contractVersion: 'orka.harness.v2' }),
    field: 'spec.runtime.contractVersion',
  },
  {
    says: 'runtime.contractVersion never changes once set',
    kind: agentKind,
    from: fullAgent,
    accepted: edited(fullAgent, 'spec.runtime.defaultMaxTurns', 2),
    refused: edited(fullAgent, 'spec.runtime.contractVersion', undefined),
    field: 'spec.runtime',
  },
  {
    says: 'a system prompt is inline or in a ConfigMap, not both',
    kind: agentKind,
    accepted: edited(smokeAgent, 'spec.systemPrompt', { inline: 'a' }),
    refused: edited(smokeAgent, 'spec.systemPrompt', { inline: 'a', configMapRef: { name: 'a', key: 'b' } }),
    field: 'spec.systemPrompt',
  },
  {
    says: 'classRef stands alone: no provider, templateRef, poolRef, enabled, cleanupPolicy, boot, snapshot or hibernation beside it',
    kind: agentKind,
    accepted: edited(smokeAgent, 'spec.execution.workspace', { enabled: true, cleanupPolicy: 'delete' }),
    refused: edited(smokeAgent, 'spec.execution.workspace', { classRef: { name: 'c' }, enabled: true }),
    field: 'spec.execution.workspace.classRef',
  },
  {
    says: 'an Agent cannot choose a workspace class; a Task can',
    kind: agentKind,
    accepted: edited(smokeAgent, 'spec.execution.workspace', { enabled: true }),
    refused: edited(smokeAgent, 'spec.execution.workspace', { classRef: { name: 'c' } }),
    field: 'spec.execution.workspace',
  },
  // design: classes
  ...['spec.network.artifacts', 'spec.network.dns', 'spec.providerProxy'].map((path) => ({
    says: 'podLabels, addresses or both are needed',
    kind: runtimePoolClassKind,
    accepted: edited(edited(fullClass, `${path}.podLabels`, {}), `${path}.addresses`, ['169.254.20.10/32']),
    refused: edited(fullClass, `${path}.podLabels`, {}),
    field: `${path}.podLabels`,
  })),
  ...['providerKind', 'resourceClass'].map((member) => ({
    says: `the ${member} of a class never changes; make another class`,
    kind: runtimePoolClassKind,
    from: fullClass,
    accepted: edited(fullClass, 'spec.disruptionBudget', false),
    refused: edited(fullClass, `spec.${member}`, 'claude'),
    field: `spec.${member}`,
  })),
  {
    says: 'from belongs to move and copy, and only to them',
    kind: runtimePoolClassKind,
    accepted: edited(fullClass, 'spec.patches.0.operations.0', { op: 'copy', path: '/a', from: '/b' }),
    refused: edited(fullClass, 'spec.patches.0.operations.0', { op: 'copy', path: '/a' }),
    field: 'spec.patches[0].operations[0]',
  },
];

/** A rule of a schema. */
export interface CelRuleName {
  /** `kind field: message`; the items of lists have no number. */
  readonly name: string;
  readonly transition: boolean;
}

export function rulesOf(kind: Kind<unknown>): readonly CelRuleName[] {
  const visit = (node: StructuralNode, path: string): readonly CelRuleName[] => [
    ...(node['x-kubernetes-validations'] ?? []).map(({ rule, message, fieldPath = '' }) => ({
      name: ruleName(kind, `${path}${fieldPath}`.replace(/^\./, ''), message),
      transition: isTransition(rule),
    })),
    ...Object.entries(node.properties ?? {}).flatMap(([name, member]) => visit(member, path === '' ? name : `${path}.${name}`)),
    ...(node.items ? visit(node.items, path) : []),
    ...(node.additionalProperties ? visit(node.additionalProperties, path) : []),
  ];
  return visit(structural(kind.schema), '');
}

export function ruleName({ kind }: Kind<unknown>, field: string, says: string): string {
  return `${kind} ${field.replaceAll(/\[\d+\]/g, '')}: ${says}`;
}
