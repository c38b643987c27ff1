import { workspaceProviders } from '../api/runtime-pool.js';
import { available } from '../domain/available.js';
import { parseDuration } from '../lib/duration.js';
import type { Milliseconds } from '../lib/duration.js';
import { CodedError } from '../lib/errors.js';
import { isDnsLabel } from '../lib/kubernetes-names.js';

/** What the operator decided about one controller process; nothing of it changes while it runs. */
export interface ControllerSettings {
  /** Holds the classes, the tokens of provider proxies and the Lease. */
  readonly controllerNamespace: string;
  /** At least one, each once. */
  readonly taskNamespaces: readonly string[];
  /** Holds the sandboxes, and neither Tasks nor the controller. */
  readonly runtimeNamespace: string;
  readonly apiPort: number;
  /** Metrics and probes; never the port of the API. */
  readonly probePort: number;
  /** Without demand for so long, a pool is scaled to zero; after twice the time it is deleted. Source: workload.md §7.12. */
  readonly idlePoolTtl: Milliseconds;
  /** Tasks of one namespace that may be under way at once; 0 = as many as one likes. Source: dispatch.md §2.1. */
  readonly maxTasksPerNamespace: number;
  /** Provider of a Task that names none. */
  readonly defaultProvider: string;
  readonly gates: { readonly agentSandbox: boolean; readonly workspaceDispatch: boolean };
  /** Of this package. */
  readonly version: string;
}

/** A value as somebody wrote it; without a text nobody did. */
export interface Written {
  /** Where: `--api-port`, `ORKA_ACP_IDLE_POOL_TTL`. */
  readonly from: string;
  readonly text?: string;
}

/** What {@link readSettings} reads. Defaults are filled in already. */
export interface WrittenSettings extends Readonly<
  Record<
    | 'controllerNamespace'
    | 'runtimeNamespace'
    | 'apiPort'
    | 'probePort'
    | 'idlePoolTtl'
    | 'maxTasksPerNamespace'
    | 'defaultProvider'
    | 'agentSandboxEnabled'
    | 'workspaceDispatchEnabled',
    Written
  >
> {
  readonly taskNamespaces: readonly Written[];
}

/** The controller was started with settings that it cannot use; it has not begun. */
export class SettingsError extends CodedError<'setting-invalid'> {}

/** Checks settings, each by itself and then together. Throws {@link SettingsError} for the first that cannot be used. */
export function readSettings(written: WrittenSettings, version: string): ControllerSettings {
  const settings = {
    controllerNamespace: namespace(written.controllerNamespace),
    taskNamespaces: written.taskNamespaces.map(namespace),
    runtimeNamespace: namespace(written.runtimeNamespace),
    apiPort: port(written.apiPort),
    probePort: port(written.probePort),
    idlePoolTtl: ttl(written.idlePoolTtl),
    maxTasksPerNamespace: count(written.maxTasksPerNamespace),
    defaultProvider: provider(written.defaultProvider),
    gates: { agentSandbox: flag(written.agentSandboxEnabled), workspaceDispatch: flag(written.workspaceDispatchEnabled) },
    version,
  };
  checkTogether(settings, written);
  return settings;
}

/** What RBAC and network policies take for granted: three kinds of namespaces that do not overlap. */
function checkTogether(settings: ControllerSettings, written: WrittenSettings): void {
  const { controllerNamespace, taskNamespaces, runtimeNamespace } = settings;
  for (const [index, one] of written.taskNamespaces.entries()) {
    if (one.text === controllerNamespace) refuse(one, 'a namespace other than that of the controller');
    if (taskNamespaces.indexOf(one.text ?? '') < index) refuse(one, 'each namespace once');
  }
  if ([controllerNamespace, ...taskNamespaces].includes(runtimeNamespace))
    refuse(written.runtimeNamespace, 'a namespace that holds neither the controller nor Tasks');
  if (settings.probePort === settings.apiPort) refuse(written.probePort, 'a port other than that of the API');
}

function refuse({ from, text }: Written, allowed: string): never {
  throw new SettingsError('setting-invalid', { at: 'controller', field: from, found: text, allowed });
}

function namespace(written: Written): string {
  const { text } = written;
  return text !== undefined && isDnsLabel(text) ? text : refuse(written, 'the name of a namespace');
}

function port(written: Written): number {
  const number = /^\d{1,5}$/.test(written.text ?? '') ? Number(written.text) : 0;
  return number >= 1 && number <= 65535 ? number : refuse(written, 'a port from 1 to 65535');
}

function ttl(written: Written): Milliseconds {
  const found = parseDuration(written.text ?? '') ?? 0;
  return found > 0 ? found : refuse(written, 'a duration of at least 1ms, such as 15m or 1h30m');
}

function count(written: Written): number {
  return /^\d{1,6}$/.test(written.text ?? '')
    ? Number(written.text)
    : refuse(written, 'a number from 0, which is no limit, to 999999');
}

function provider(written: Written): string {
  const runs = workspaceProviders.filter((name) => name !== 'substrate' || available.substrate);
  return runs.find((name) => name === written.text) ?? refuse(written, runs.join(', '));
}

function flag(written: Written): boolean {
  const text = written.text?.toLowerCase();
  return text === 'true' || (text === 'false' ? false : refuse(written, 'true or false'));
}
