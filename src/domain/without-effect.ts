import type { Agent, Task } from '../api/index.js';
import { isObject } from '../lib/json.js';
import { nameOf } from './plan.js';

/** A field that is accepted and changes nothing. */
export interface FieldWithoutEffect {
  /** `Task team-a/smoke`. */
  readonly at: string;
  readonly field: string;
  readonly because: string;
}

interface Unused {
  readonly field: string;
  readonly because: string;
}

const noSchedule = 'a Task runs once, as soon as it is there';
const noChildren = 'an agent creates no Tasks of its own';

/**
 * Fields of the contract for other Tasks and Agents than those that run here. A field that a user relies on for safety is not in this
 * list: admission refuses it. Source: dispatch.md §1.1, §1.3.
 */
export const unusedTaskFields: readonly Unused[] = [
  { field: 'webhookURL', because: 'the end of a Task is not sent anywhere; watch its status' },
  { field: 'requestedBy', because: 'the identity of the requester is neither checked nor passed on' },
  { field: 'ai', because: 'it is for Tasks of type ai' },
  { field: 'timeZone', because: noSchedule },
  { field: 'concurrencyPolicy', because: noSchedule },
  { field: 'startingDeadlineSeconds', because: noSchedule },
  { field: 'successfulRunsHistoryLimit', because: noSchedule },
  { field: 'failedRunsHistoryLimit', because: noSchedule },
  { field: 'retryPolicy', because: 'a prompt is never sent twice' },
];

export const unusedAgentFields: readonly Unused[] = [
  { field: 'secretRef', because: 'access to the model comes from the proxy of the class' },
  { field: 'session', because: 'each Task has a conversation of its own' },
  { field: 'ttlAfterLastTask', because: 'an Agent is never deleted by the controller' },
  { field: 'coordination', because: noChildren },
];

/** The fields of a Task and its Agent that are set and change nothing, in the order of the tables. */
export function withoutEffect(task: Task, agent: Agent | undefined): readonly FieldWithoutEffect[] {
  return [
    ...unusedIn(nameOf('Task', task), task.spec, unusedTaskFields),
    ...workspaceSettings(task),
    ...branchBesideRef(task),
    ...(agent ? unusedIn(nameOf('Agent', agent), agent.spec, unusedAgentFields) : []),
  ];
}

function unusedIn(at: string, spec: object, fields: readonly Unused[]): readonly FieldWithoutEffect[] {
  return fields
    .filter(({ field }) => isSet((spec as Readonly<Record<string, unknown>>)[field]))
    .map(({ field, because }) => ({ at, field: `spec.${field}`, because }));
}

/** Settings of a workspace that is not asked for. `enabled: false` alone is clear; an empty workspace is probably a slip. */
function workspaceSettings(task: Task): readonly FieldWithoutEffect[] {
  const workspace = task.spec.execution?.workspace;
  if (workspace === undefined) return [];
  const { enabled, classRef, ...settings } = workspace;
  if (enabled === true || classRef !== undefined || (enabled === false && !isSet(settings))) return [];
  const at = nameOf('Task', task);
  return [
    { at, field: 'spec.execution.workspace', because: 'enabled is not true, so that the Task has no workspace of its own' },
  ];
}

/** `ref` says everything that `branch` could say. */
function branchBesideRef(task: Task): readonly FieldWithoutEffect[] {
  const { branch = '', ref = '' } = task.spec.workspace ?? {};
  if (branch.trim() === '' || ref.trim() === '') return [];
  return [{ at: nameOf('Task', task), field: 'spec.workspace.branch', because: 'spec.workspace.ref wins over it' }];
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== '' && !(isObject(value) && Object.keys(value).length === 0);
}
