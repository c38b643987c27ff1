import type { Command } from 'commander';
import { readSettings } from '../controller/settings.js';
import type { ControllerSettings, Written } from '../controller/settings.js';
import { podAccess } from '../kube/access.js';
import { accessBy } from './kubeconfig.js';

/** Runs the controller until a signal, or the loss of its leadership, ends it. */
export async function controller(command: Command, version: string): Promise<void> {
  const settings = settingsOf(command, version);
  const { kubeconfig } = command.opts<{ readonly kubeconfig?: string }>();
  const access = kubeconfig === undefined ? podAccess() : accessBy(kubeconfig);
  const { runController } = await import('../controller/manager.js');
  const code = await runController(settings, access);
  // A connection that is still open must not keep alive what no longer leads.
  process.exit(code);
}

function settingsOf(command: Command, version: string): ControllerSettings {
  const one = (flag: string): Written => written(command, flag)[0] ?? { from: flag };
  const tasks = '--watch-namespace';
  const taskNamespaces = written(command, tasks);
  return readSettings(
    {
      controllerNamespace: one('--controller-namespace'),
      taskNamespaces: taskNamespaces.length > 0 ? taskNamespaces : [{ from: tasks }],
      runtimeNamespace: one('--acp-runtime-namespace'),
      apiPort: one('--api-port'),
      probePort: one('--probe-port'),
      idlePoolTtl: one('--acp-idle-pool-ttl'),
      maxTasksPerNamespace: one('--max-tasks-per-namespace'),
      defaultProvider: one('--execution-workspace-default-provider'),
      agentSandboxEnabled: one('--agent-sandbox-enabled'),
      workspaceDispatchEnabled: one('--acp-workspace-dispatch-enabled'),
    },
    version,
  );
}

/** What a flag was given, or else its variable, or else its default. A variable of a repeatable flag is a list with commas. */
function written(command: Command, flag: string): readonly Written[] {
  const option = command.options.find(({ long }) => long === flag);
  if (!option) throw new Error(`the command has no ${flag}`);
  const value: unknown = command.getOptionValue(option.attributeName());
  const given = textsOf(value);
  if (option.envVar === undefined || command.getOptionValueSource(option.attributeName()) !== 'env')
    return given.map((text) => ({ from: flag, text }));
  const { envVar } = option;
  const set = (Array.isArray(value) ? given.flatMap((text) => text.split(',')) : given)
    .map((text) => text.trim())
    .filter((text) => text !== '');
  if (set.length > 0) return set.map((text) => ({ from: envVar, text }));
  return textsOf(option.defaultValue).map((text) => ({ from: flag, text }));
}

const textsOf = (value: unknown): readonly string[] => (value === undefined ? [] : [value].flat().map(String));
