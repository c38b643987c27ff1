import { dnsLabel, patterns, positiveDuration } from '../api/meta.js';
import { workspaceProviders } from '../api/runtime-pool.js';
import { choice, flag, int32, list, text, withOptions } from '../api/schema.js';
import type { Static, TSchema } from '../api/schema.js';
import { available } from './available.js';

/** One setting of the controller. `platform.yaml`, the arguments of the Deployment, the flags and their help come from it. */
export interface Setting {
  /** Where platform.yaml has it. Absent: the installation decides. */
  readonly key?: string;
  readonly flag: `--${string}`;
  /** Environment variable that counts where there is no flag. */
  readonly variable?: string;
  /** What stands for the value in the help; `[bool]` = the flag alone means true. */
  readonly argument: string;
  /** Type, bounds, default and description, for the key and for the flag. */
  readonly schema: TSchema;
  /** Default of the flag where the key is required. */
  readonly flagDefault?: string;
}

const providers = workspaceProviders.filter((name) => name !== 'substrate' || available.substrate);

/** In the order of the Deployment's arguments. Sources: workload.md §7.12, dispatch.md §2.1. */
export const settings = {
  controllerNamespace: {
    key: 'namespaces.controller',
    flag: '--controller-namespace',
    variable: 'ORKA_CONTROLLER_NAMESPACE',
    argument: '<name>',
    schema: withOptions(dnsLabel, { description: 'Namespace of the controller, the classes and the Lease.' }),
  },
  taskNamespaces: {
    key: 'namespaces.tasks',
    flag: '--watch-namespace',
    variable: 'ORKA_WATCH_NAMESPACE',
    argument: '<name>',
    schema: list(dnsLabel, { minItems: 1, set: true, description: 'Namespaces whose Tasks are served. They belong to users.' }),
  },
  runtimeNamespace: {
    key: 'namespaces.runtime',
    flag: '--acp-runtime-namespace',
    variable: 'ORKA_ACP_RUNTIME_NAMESPACE',
    argument: '<name>',
    schema: withOptions(dnsLabel, { description: 'Namespace of the sandboxes.' }),
    flagDefault: 'orka-runtimes',
  },
  // No variables for the ports: a Service of the name orka-api puts ORKA_API_PORT=tcp://… into Pods of its namespace.
  apiPort: {
    key: 'controller.api.port',
    flag: '--api-port',
    argument: '<port>',
    schema: int32({ minimum: 1, maximum: 65535, default: 8080, description: 'Port of the API that sandboxes reach.' }),
  },
  probePort: {
    flag: '--probe-port',
    argument: '<port>',
    schema: int32({ minimum: 1, maximum: 65535, default: 8081, description: 'Port of metrics and probes.' }),
  },
  idlePoolTtl: {
    key: 'controller.idlePoolTtl',
    flag: '--acp-idle-pool-ttl',
    variable: 'ORKA_ACP_IDLE_POOL_TTL',
    argument: '<duration>',
    schema: withOptions(positiveDuration, {
      default: '15m',
      description: 'A shared pool without demand for so long is scaled to zero, after twice the time deleted.',
    }),
  },
  maxTasksPerNamespace: {
    key: 'controller.maxTasksPerNamespace',
    flag: '--max-tasks-per-namespace',
    variable: 'ORKA_MAX_TASKS_PER_NAMESPACE',
    argument: '<number>',
    schema: int32({
      minimum: 0,
      maximum: 999_999,
      default: 0,
      description: 'Tasks of one namespace that run at once; the others wait. 0 is no limit.',
    }),
  },
  taskTtlSeconds: {
    key: 'controller.tasks.ttlSecondsAfterFinished',
    flag: '--task-ttl-seconds-after-finished',
    variable: 'ORKA_TASK_TTL_SECONDS_AFTER_FINISHED',
    argument: '<seconds>',
    schema: int32({
      minimum: -1,
      maximum: 999_999_999,
      default: -1,
      description: 'A finished Task that says nothing itself is deleted after so many seconds. -1 keeps it.',
    }),
  },
  defaultProvider: {
    key: 'controller.defaultProvider',
    flag: '--execution-workspace-default-provider',
    variable: 'ORKA_EXECUTION_WORKSPACE_DEFAULT_PROVIDER',
    argument: '<name>',
    schema: choice(providers, { default: 'agent-sandbox', description: 'Workspace provider of a Task that names none.' }),
  },
  agentSandboxEnabled: {
    key: 'controller.gates.agentSandbox',
    flag: '--agent-sandbox-enabled',
    variable: 'ORKA_AGENT_SANDBOX_ENABLED',
    argument: '[bool]',
    schema: flag({ default: false, description: 'Tasks may ask for sandboxes of agent-sandbox.' }),
  },
  workspaceDispatchEnabled: {
    key: 'controller.gates.workspaceDispatch',
    flag: '--acp-workspace-dispatch-enabled',
    variable: 'ORKA_ACP_WORKSPACE_DISPATCH_ENABLED',
    argument: '[bool]',
    schema: flag({ default: false, description: 'Tasks may ask for workspaces.' }),
  },
  // The installation makes it from publisher.forges, whose items say more than the controller needs.
  forges: {
    flag: '--source-forge',
    variable: 'ORKA_SOURCE_FORGES',
    argument: '<host[:port]>',
    schema: list(text({ minLength: 1, maxLength: 259, pattern: patterns.forge.pattern }), {
      set: true,
      description: 'Forges whose repositories Tasks may use, as host or host:port. None: repositories are refused.',
    }),
  },
  publisherNamespace: {
    flag: '--publisher-namespace',
    variable: 'ORKA_PUBLISHER_NAMESPACE',
    argument: '<name>',
    schema: text({
      maxLength: 63,
      pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$',
      default: '',
      description: 'Namespace of the publisher, which fetches repositories. Empty: there is none.',
    }),
  },
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof settings;
export const settingNames = Object.keys(settings) as readonly SettingName[];

/** The value of each setting, as platform.yaml has it. */
export type SettingValues = { readonly [Name in SettingName]: Static<(typeof settings)[Name]['schema']> };

/** The settings of a controller as an installation groups them. */
export interface InstallationSettings {
  readonly namespaces: { readonly controller: string; readonly runtime: string; readonly tasks: readonly string[] };
  readonly apiPort: number;
  /** Go duration. */
  readonly idlePoolTtl: string;
  /** @default - no limit */
  readonly maxTasksPerNamespace?: number | undefined;
  /** @default - finished Tasks are kept */
  readonly taskTtlSeconds?: number | undefined;
  readonly defaultProvider: string;
  readonly gates: { readonly agentSandbox: boolean; readonly workspaceDispatch: boolean };
  /**
   * Forges whose repositories Tasks may use: `host` or `host:port`.
   * @default - Tasks with a repository are refused
   */
  readonly forges?: readonly string[] | undefined;
  /** @default - there is no publisher */
  readonly publisherNamespace?: string | undefined;
}

/** The default of a setting that has one. */
export function defaultOf<Name extends SettingName>(name: Name): SettingValues[Name] {
  return (settings[name].schema as { readonly default?: unknown }).default as SettingValues[Name];
}

/** The settings that an installation starts its controller with. What is absent keeps the controller's default. */
export function settingsOf(
  installation: InstallationSettings,
): Omit<SettingValues, 'maxTasksPerNamespace' | 'taskTtlSeconds' | 'forges' | 'publisherNamespace'> & Partial<SettingValues> {
  const { namespaces, apiPort, idlePoolTtl, maxTasksPerNamespace, taskTtlSeconds, defaultProvider, gates } = installation;
  const { forges, publisherNamespace } = installation;
  return {
    controllerNamespace: namespaces.controller,
    taskNamespaces: namespaces.tasks,
    runtimeNamespace: namespaces.runtime,
    apiPort,
    probePort: defaultOf('probePort'),
    idlePoolTtl,
    ...(maxTasksPerNamespace === undefined ? {} : { maxTasksPerNamespace }),
    ...(taskTtlSeconds === undefined ? {} : { taskTtlSeconds }),
    defaultProvider: defaultProvider as SettingValues['defaultProvider'],
    agentSandboxEnabled: gates.agentSandbox,
    workspaceDispatchEnabled: gates.workspaceDispatch,
    ...(forges === undefined ? {} : { forges }),
    ...(publisherNamespace === undefined ? {} : { publisherNamespace }),
  };
}

/** The arguments that start a controller with these settings; an item of a list is an argument. */
export function argumentsOf(values: Partial<SettingValues>): readonly string[] {
  return settingNames.flatMap((name) => [values[name] ?? []].flat().map((value) => `${settings[name].flag}=${String(value)}`));
}

/** A setting that another one rules out. */
export interface SettingConflict {
  readonly setting: SettingName;
  /** Of the item of a list. */
  readonly index?: number;
  readonly found: string | number;
  readonly allowed: string;
}

/** Rules across settings, each value being valid by itself. RBAC and NetworkPolicies rely on namespaces that do not overlap. */
export function settingConflicts(
  values: Pick<SettingValues, 'controllerNamespace' | 'taskNamespaces' | 'runtimeNamespace' | 'apiPort' | 'probePort'>,
): readonly SettingConflict[] {
  const { controllerNamespace, taskNamespaces, runtimeNamespace, apiPort, probePort } = values;
  const conflicts: SettingConflict[] = [];
  taskNamespaces.forEach((found, index) => {
    if (found === controllerNamespace)
      conflicts.push({ setting: 'taskNamespaces', index, found, allowed: 'a namespace other than that of the controller' });
  });
  if ([controllerNamespace, ...taskNamespaces].includes(runtimeNamespace))
    conflicts.push({
      setting: 'runtimeNamespace',
      found: runtimeNamespace,
      allowed: 'a namespace that holds neither the controller nor Tasks',
    });
  if (apiPort === probePort)
    conflicts.push({ setting: 'apiPort', found: apiPort, allowed: 'a port other than that of metrics and probes' });
  return conflicts;
}
