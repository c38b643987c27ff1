import { slotOf } from '../binding.js';
import { isDnsLabel, isDnsSubdomain } from '../../lib/kubernetes-names.js';
import { nameOf } from '../plan.js';
import { isBlank, notAvailable, operatorSets, providerOf, taskRule, workspaceOf } from './rule.js';
import type { AdmissionInput, AdmissionRule } from './rule.js';

const at = 'spec.execution.workspace';

const isSandbox = (input: AdmissionInput): boolean => providerOf(input) === 'agent-sandbox';
const isSubstrate = (input: AdmissionInput): boolean => providerOf(input) === 'substrate';
const reuse = (input: AdmissionInput): string => (workspaceOf(input)?.reusePolicy ?? '') || 'none';
const template = (input: AdmissionInput) => workspaceOf(input)?.templateRef;
const templateNamespace = (input: AdmissionInput): string =>
  template(input)?.namespace?.trim() ?? input.task.metadata.namespace ?? '';

/**
 * Gate B: can a session run in this workspace? What this version does not run is refused first; the switches come last, so that switching
 * something on never turns up another refusal. Every refusal writes the workspace status. Source: workload.md §8.3, dispatch.md §2.4.
 */
export const workspaceRules: readonly AdmissionRule[] = [
  taskRule('task-uid', 'metadata.uid', 'the UID of a stored Task: the binding is made of it', ({ task }) =>
    isBlank(task.metadata.uid),
  ),
  // First what no other setting can fix, so that no other correction is in vain.
  taskRule(
    'session-reuse',
    `${at}.reusePolicy`,
    `none: ${notAvailable('reusePolicy session')}`,
    (input) => !input.hosting.available.sessionReuse && reuse(input) === 'session',
  ),
  taskRule(
    'substrate',
    `${at}.provider`,
    `agent-sandbox: ${notAvailable('provider substrate')}`,
    (input) => !input.hosting.available.substrate && isSubstrate(input),
  ),
  taskRule(
    'template',
    `${at}.templateRef`,
    'nothing: sessions run only in templates that the controller renders',
    (input) => isSandbox(input) && template(input) !== undefined,
  ),
  taskRule(
    'substrate-template',
    `${at}.templateRef.name`,
    'the name of an ActorTemplate that the operator owns',
    (input) => isSubstrate(input) && isBlank(template(input)?.name),
  ),
  taskRule(
    'substrate-template-namespace',
    `${at}.templateRef.namespace`,
    'a DNS label of at most 63 characters',
    (input) => isSubstrate(input) && !isDnsLabel(templateNamespace(input)),
  ),
  taskRule(
    'substrate-template-name',
    `${at}.templateRef.name`,
    'a DNS subdomain',
    (input) => isSubstrate(input) && !isDnsSubdomain(template(input)?.name?.trim() ?? ''),
  ),
  taskRule(
    'substrate-cross-namespace',
    `${at}.templateRef.namespace`,
    ({ task }) => `${task.metadata.namespace ?? ''}, the namespace of the Task`,
    (input) => isSubstrate(input) && templateNamespace(input) !== input.task.metadata.namespace,
  ),
  taskRule('boot', `${at}.boot`, 'false', (input) => workspaceOf(input)?.boot === true),
  taskRule(
    'pool-ref',
    `${at}.poolRef`,
    'nothing: a workspace has a pool of its own',
    (input) => workspaceOf(input)?.poolRef !== undefined,
  ),
  taskRule(
    'snapshot',
    `${at}.snapshot`,
    'nothing: workspaces are not restored',
    (input) => workspaceOf(input)?.snapshot !== undefined,
  ),
  taskRule(
    'hibernation',
    `${at}.hibernation`,
    'nothing: workspaces do not hibernate',
    (input) => workspaceOf(input)?.hibernation !== undefined,
  ),
  taskRule(
    'on-detach',
    `${at}.onDetach`,
    'nothing: a workspace ends with its Task',
    (input) => !isBlank(workspaceOf(input)?.onDetach),
  ),
  taskRule(
    'cleanup',
    `${at}.cleanupPolicy`,
    'delete: a workspace is always deleted after its drain',
    (input) => workspaceOf(input)?.cleanupPolicy === 'retain',
  ),
  taskRule(
    'session-not-reused',
    'spec.sessionRef',
    'nothing with reusePolicy none',
    (input) => reuse(input) === 'none' && !isBlank(input.task.spec.sessionRef?.name),
  ),
  taskRule(
    'session-required',
    'spec.sessionRef.name',
    'the name of a Session, because reusePolicy is session',
    (input) => reuse(input) === 'session' && isBlank(input.task.spec.sessionRef?.name),
  ),
  taskRule(
    'session-slot',
    `${at}.workspaceSlot`,
    'default',
    (input) => reuse(input) === 'session' && slotOf(workspaceOf(input)?.workspaceSlot) !== 'default',
  ),
  switchedOff(
    'sandbox-switch',
    { field: `${at}.provider`, what: 'sandboxes of agent-sandbox', key: 'agentSandbox' },
    (input) => isSandbox(input) && !input.hosting.agentSandboxEnabled,
  ),
  switchedOff(
    'dispatch-switch',
    { field: `${at}.enabled`, what: 'workspaces', key: 'workspaceDispatch' },
    (input) => !input.hosting.workspaceDispatchEnabled,
  ),
];

/** The Task is right as it is: only the operator can let it run. */
function switchedOff(
  id: string,
  { field, what, key }: { readonly field: string; readonly what: string; readonly key: string },
  refused: (input: AdmissionInput) => boolean,
): AdmissionRule {
  return {
    id,
    check: (input) =>
      refused(input)
        ? {
            at: nameOf('Task', input.task),
            field,
            says: `${what} are switched off in this installation`,
            remedy: operatorSets(`controller.gates.${key}: true`),
          }
        : undefined,
  };
}
