import { protocolVersion } from '../../api/index.js';
import { nameOf } from '../plan.js';
import { agentRule, isBlank, isEmpty, notAvailable, ofClass, taskRule, wantsWorkspace } from './rule.js';
import type { AdmissionInput, AdmissionRule } from './rule.js';

/** What a Task asks of its placement; what the Task gives, even an empty map, replaces the Agent's. */
function placement(
  { task, agent }: AdmissionInput,
  field: 'runtimeClassName' | 'nodeSelector' | 'tolerations' | 'affinity',
): boolean {
  const wanted: unknown = task.spec.execution?.[field] ?? agent?.spec.execution?.[field];
  return typeof wanted === 'string' ? wanted !== '' : !isEmpty(wanted as object | undefined);
}

const placementFields = ['runtimeClassName', 'nodeSelector', 'tolerations', 'affinity'] as const;

/**
 * Is this work that runtime pools run at all? None of these writes a workspace status, but the external runtime with a
 * workspace: its user asked for one and is told so. Source: workload.md §8.3, dispatch.md §2.2, corrections.md items 4, 18.
 */
export const routingRules: readonly AdmissionRule[] = [
  taskRule('task-type', 'spec.type', 'agent: other Tasks are not run here', ({ task }) => task.spec.type !== 'agent'),
  agentRule(
    'external-runtime',
    'spec.runtime.runtimeRef',
    `nothing: ${notAvailable('an external runtime')}; name a built-in runtime by type`,
    ({ spec }) => !isBlank(spec.runtime?.runtimeRef?.name),
  ),
  agentRule(
    'contract',
    'spec.runtime.contractVersion',
    `${protocolVersion}, or nothing, which means the same; no other protocol is ever substituted`,
    ({ spec }) => (spec.runtime?.contractVersion ?? protocolVersion) !== protocolVersion,
  ),
  taskRule('image', 'spec.image', ofClass('the image belongs to', 'runtime.image'), ({ task }) => !isBlank(task.spec.image)),
  taskRule('command', 'spec.command', 'nothing: an agent Task has a prompt', ({ task }) => (task.spec.command ?? []).length > 0),
  taskRule('args', 'spec.args', 'nothing: an agent Task has a prompt', ({ task }) => (task.spec.args ?? []).length > 0),
  taskRule(
    'schedule',
    'spec.schedule',
    `nothing: ${notAvailable('a scheduled Task')}`,
    ({ task }) => !isBlank(task.spec.schedule),
  ),
  taskRule('suspend', 'spec.suspend', `false: ${notAvailable('a suspended Task')}`, ({ task }) => task.spec.suspend === true),
  taskRule(
    'transaction',
    'spec.transaction',
    'nothing: sessions run without a transaction',
    ({ task }) => task.spec.transaction !== undefined,
  ),
  agentRule('autonomous', 'spec.coordination.autonomous', 'false', ({ spec }) => spec.coordination?.autonomous === true),
  taskRule(
    'retries',
    'spec.retryPolicy.maxRetries',
    '0: a prompt is never sent twice',
    ({ task }) => (task.spec.retryPolicy?.maxRetries ?? 0) > 0,
  ),
  taskRule(
    'task-resources',
    'spec.resources',
    ofClass('resources belong to', 'pod.resources'),
    ({ task }) => !isEmpty(task.spec.resources),
  ),
  agentRule(
    'agent-resources',
    'spec.resources',
    ofClass('resources belong to', 'pod.resources'),
    ({ spec }) => !isEmpty(spec.resources),
  ),
  {
    id: 'placement',
    check: (input) => {
      const field = placementFields.find((name) => placement(input, name));
      if (field === undefined) return undefined;
      const { task, agent } = input;
      const own = task.spec.execution?.[field];
      return {
        at: own === undefined && agent ? nameOf('Agent', agent) : nameOf('Task', task),
        field: `spec.execution.${field}`,
        found: own ?? agent?.spec.execution?.[field],
        allowed: ofClass('placement belongs to', 'pod'),
      };
    },
  },
  taskRule(
    'prior-task',
    'spec.priorTaskRef',
    'nothing: a Task does not continue another one',
    ({ task }) => task.spec.priorTaskRef !== undefined,
  ),
  taskRule(
    'plain-pool',
    'spec.execution.workspace.enabled',
    `true: ${notAvailable('a Task without a workspace of its own')}`,
    (input) => !input.hosting.available.plainPools && !wantsWorkspace(input),
  ),
  taskRule(
    'session',
    'spec.sessionRef',
    `nothing: ${notAvailable('a Session')}`,
    (input) => !input.hosting.available.sessionReuse && !wantsWorkspace(input) && !isBlank(input.task.spec.sessionRef?.name),
  ),
];

/** The routing refusals that also write the workspace status. */
export const routingWithWorkspaceStatus: readonly string[] = ['external-runtime'];
