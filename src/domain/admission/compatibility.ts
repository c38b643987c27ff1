import { patterns, providerKinds } from '../../api/index.js';
import { nameOf, openCodeProblem } from '../plan.js';
import { agentRule, isBlank, isEmpty, ofClass, taskRule } from './rule.js';
import type { AdmissionRule } from './rule.js';

const positive = new RegExp(patterns.positiveDuration.pattern, 'u');

/**
 * Do Task and Agent fit together at all? Asked of `type: agent` Tasks, before anything about workspaces, and refused without a
 * workspace status. Source: corrections.md item 16. An Agent's `secretRef` is accepted: model access comes from the class's proxy.
 */
export const compatibilityRules: readonly AdmissionRule[] = [
  taskRule(
    'timeout',
    'spec.timeout',
    patterns.positiveDuration.says,
    ({ task: { spec } }) => spec.timeout !== undefined && !positive.test(spec.timeout),
  ),
  taskRule(
    'agent-namespace',
    'spec.agentRef.namespace',
    'nothing, or the namespace of the Task: another one has Agents of its own',
    ({ task }) => ![undefined, '', task.metadata.namespace].includes(task.spec.agentRef?.namespace),
  ),
  {
    id: 'agent-required',
    check: ({ task, agent }) =>
      agent
        ? undefined
        : {
            at: nameOf('Task', task),
            field: 'spec.agentRef',
            found: task.spec.agentRef?.name,
            allowed: 'the name of an existing Agent in the namespace of the Task',
          },
  },
  agentRule(
    'runtime-required',
    'spec.runtime',
    'a runtime with type codex, claude, copilot or opencode',
    ({ spec }) => spec.runtime === undefined,
  ),
  agentRule(
    'one-runtime',
    'spec.runtime',
    'exactly one of type and runtimeRef',
    ({ spec }) => isBlank(spec.runtime?.type) === isBlank(spec.runtime?.runtimeRef?.name),
  ),
  agentRule(
    'known-runtime',
    'spec.runtime.type',
    providerKinds.join(', '),
    ({ spec }) => !isBlank(spec.runtime?.type) && !providerKinds.some((kind) => kind === spec.runtime?.type),
  ),
  taskRule(
    'task-secret',
    'spec.secretRef',
    ofClass('credentials of the provider belong to', 'providerProxy'),
    ({ task }) => task.spec.secretRef !== undefined,
  ),
  {
    id: 'opencode',
    check: ({ agent }) => {
      const problem = agent?.spec.runtime?.type === 'opencode' ? openCodeProblem(agent) : undefined;
      return agent && problem ? { at: nameOf('Agent', agent), ...problem } : undefined;
    },
  },
  agentRule('agent-workspace', 'spec.execution.workspace', 'nothing: a workspace is asked for by the Task', ({ spec }) => {
    const workspace = spec.execution?.workspace;
    return workspace?.enabled === true || workspace?.classRef !== undefined;
  }),
  agentRule('provider-ref', 'spec.providerRef', 'nothing beside spec.runtime', ({ spec }) => spec.providerRef !== undefined),
  agentRule('model-provider', 'spec.model.provider', 'nothing beside spec.runtime', ({ spec }) => !isBlank(spec.model?.provider)),
  {
    id: 'task-env',
    check: ({ task }) => {
      const names = (task.spec.env ?? []).map(({ name }) => name);
      // A value may be a credential; a status is read by many.
      const allowed = 'no variables: the environment of a session is fixed';
      return names.length > 0 ? { at: nameOf('Task', task), field: 'spec.env', found: names, allowed } : undefined;
    },
  },
  agentRule(
    'approval-tools',
    'spec.coordination.approvalRequiredTools',
    'nothing: only autonomous Tasks of type ai ask for approval',
    ({ spec }) => (spec.coordination?.approvalRequiredTools ?? []).length > 0,
  ),
  agentRule(
    'rate-limit',
    'spec.rateLimit',
    'nothing: calls of the model are not limited by rate; spec.runtime.defaultMaxTurns limits their number',
    ({ spec }) => !isEmpty(spec.rateLimit),
  ),
  taskRule(
    'prompt-required',
    'spec.prompt',
    'a text that is not blank',
    ({ task }) => isBlank(task.spec.prompt) && task.spec.sessionRef?.promptIncluded !== true,
  ),
];
