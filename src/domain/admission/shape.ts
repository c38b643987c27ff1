import { notAvailable, providerOf, taskRule, wantsWorkspace, workspaceOf } from './rule.js';
import type { AdmissionRule } from './rule.js';

const at = 'spec.execution.workspace';
export const knownProviders: readonly string[] = ['agent-sandbox', 'substrate'];
export const knownReusePolicies: readonly string[] = ['none', 'session'];
export const knownCleanupPolicies: readonly string[] = ['delete', 'retain'];

const unknown = (value: string | undefined, known: readonly string[]): boolean =>
  (value ?? '') !== '' && !known.includes(value ?? '');

/** Gate A: is the request well-formed, whoever will serve it? Source: workload.md §8.2, corrections.md item 17. */
export const shapeRules: readonly AdmissionRule[] = [
  taskRule(
    'class',
    `${at}.classRef`,
    notAvailable('a workspace by class'),
    (input) => workspaceOf(input)?.classRef !== undefined,
  ),
  {
    id: 'provider',
    check: (input) =>
      wantsWorkspace(input) && !knownProviders.includes(providerOf(input))
        ? {
            at: `Task ${input.task.metadata.namespace ?? ''}/${input.task.metadata.name}`,
            field: `${at}.provider`,
            found: providerOf(input),
            allowed: knownProviders.join(', '),
          }
        : undefined,
  },
  taskRule(
    'task-type',
    'spec.type',
    'agent: only agent Tasks run in a workspace',
    (input) => wantsWorkspace(input) && input.task.spec.type !== 'agent',
  ),
  taskRule(
    'reuse-policy',
    `${at}.reusePolicy`,
    knownReusePolicies.join(', '),
    (input) => wantsWorkspace(input) && unknown(workspaceOf(input)?.reusePolicy, knownReusePolicies),
  ),
  taskRule(
    'cleanup-policy',
    `${at}.cleanupPolicy`,
    knownCleanupPolicies.join(', '),
    (input) => wantsWorkspace(input) && unknown(workspaceOf(input)?.cleanupPolicy, knownCleanupPolicies),
  ),
  taskRule(
    'session-name',
    'spec.sessionRef.name',
    'the name of a Session, because reusePolicy is session',
    (input) =>
      // Without sessions the next gate says so: a name would not help.
      input.hosting.available.sessionReuse &&
      wantsWorkspace(input) &&
      workspaceOf(input)?.reusePolicy === 'session' &&
      (input.task.spec.sessionRef?.name ?? '') === '',
  ),
];
