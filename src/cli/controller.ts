import type { Command } from 'commander';
import { podAccess } from '../kube/access.js';
import { settingsFrom } from './controller-flags.js';
import { accessBy } from './kubeconfig.js';
import { reported } from './report.js';

/** Runs the controller until a signal, or the loss of its leadership, ends it. */
export async function controller(command: Command, version: string): Promise<void> {
  const settings = settingsFrom(command, version);
  const { kubeconfig } = command.opts<{ readonly kubeconfig?: string }>();
  const access = kubeconfig === undefined ? podAccess() : accessBy(kubeconfig);
  const { runController } = await import('../controller/manager.js');
  const code = await runController(settings, access).catch(reported);
  // An open port or connection must not keep alive a process that could not start, or no longer leads.
  process.exit(code);
}
