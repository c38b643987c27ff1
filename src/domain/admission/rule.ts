import type { Agent, Task } from '../../api/index.js';
import type { Finding } from '../../lib/errors.js';
import { resolveProvider } from '../binding.js';
import { nameOf } from '../plan.js';

/** What this controller can and may host. `available` is a matter of the version, the switches are the operator's. */
export interface Hosting {
  readonly agentSandboxEnabled: boolean;
  readonly workspaceDispatchEnabled: boolean;
  /** Provider of a Task that names none; `''` = agent-sandbox. */
  readonly defaultProvider: string;
  /** Forges whose repositories may be used: `host` or `host:port`. Empty = repositories are switched off. */
  readonly forges: readonly string[];
  /** Parts of the contract whose rules are complete but which this version does not run. */
  readonly available: {
    readonly substrate: boolean;
    readonly sessionReuse: boolean;
    readonly plainPools: boolean;
  };
}

/** A built-in runtime is described by the Agent alone; an external one by an AgentRuntime that may not exist. */
export interface AdmissionInput {
  readonly task: Task;
  readonly agent?: Agent | undefined;
  readonly hosting: Hosting;
}

/** One reason to refuse a Task. Rules of a gate are asked in order; the first finding refuses. */
export interface AdmissionRule {
  readonly id: string;
  readonly check: (input: AdmissionInput) => Finding | undefined;
}

/** What only the operator can give: a key of platform.yaml, with its value if that is one. */
export const operatorSets = (key: string): string => `the operator of the platform sets ${key} in platform.yaml and applies it`;

/** What a Task may not say, since its class says it. */
export const ofClass = (what: string, key: string): string =>
  `nothing: ${what} the class (classes.<name>.${key} of platform.yaml, which the operator sets)`;

/** A rule about a field of the Task. `found` is read from the Task, so that the message cannot disagree with it. */
export function taskRule(
  id: string,
  field: string,
  allowed: string | ((input: AdmissionInput) => string),
  refused: (input: AdmissionInput) => boolean,
): AdmissionRule {
  return {
    id,
    check: (input) =>
      refused(input)
        ? {
            at: nameOf('Task', input.task),
            field,
            found: valueAt(input.task, field),
            allowed: typeof allowed === 'string' ? allowed : allowed(input),
          }
        : undefined,
  };
}

/** The same for the Agent; without an Agent it never applies. */
export function agentRule(
  id: string,
  field: string,
  allowed: string,
  refused: (agent: Agent, input: AdmissionInput) => boolean,
): AdmissionRule {
  return {
    id,
    check: (input) =>
      input.agent && refused(input.agent, input)
        ? { at: nameOf('Agent', input.agent), field, found: valueAt(input.agent, field), allowed }
        : undefined,
  };
}

function valueAt(object: object, field: string): unknown {
  return field.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined | null)?.[name], object);
}

export const workspaceOf = (input: AdmissionInput) => input.task.spec.execution?.workspace;

/** A workspace is asked for only by `enabled: true`; every other block is as if absent. */
export const wantsWorkspace = (input: AdmissionInput): boolean => workspaceOf(input)?.enabled === true;

export const providerOf = (input: AdmissionInput): string => resolveProvider(input.task, input.hosting.defaultProvider);

export const isBlank = (text: string | undefined): boolean => (text ?? '').trim() === '';
export const isEmpty = (value: object | undefined): boolean => value === undefined || Object.keys(value).length === 0;

export const notAvailable = (what: string): string => `${what} is not available in this version`;
