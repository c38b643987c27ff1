import { validateNode } from '../api/validate.js';
import { typeText } from '../api/limits.js';
import { structural } from '../api/structural.js';
import type { StructuralNode } from '../api/structural.js';
import { settingConflicts, settingNames, settings } from '../domain/settings.js';
import type { Setting, SettingName, SettingValues } from '../domain/settings.js';
import { parseDuration } from '../lib/duration.js';
import type { Milliseconds } from '../lib/duration.js';
import { CodedError } from '../lib/errors.js';
import type { Json } from '../lib/json.js';

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
  /** Seconds after which a finished Task is deleted that does not say so itself; -1 = it is kept. */
  readonly taskTtlSeconds: number;
  /** Provider of a Task that names none. */
  readonly defaultProvider: string;
  readonly gates: { readonly agentSandbox: boolean; readonly workspaceDispatch: boolean };
  /** Forges whose repositories Tasks may use: `host` or `host:port`. Empty = repositories are refused. */
  readonly forges: readonly string[];
  /** Of the publisher, which fetches repositories; `''` = there is none. */
  readonly publisherNamespace: string;
  /** Of this package. */
  readonly version: string;
}

/** The text of a value, and its origin. */
export interface Written {
  /** `--api-port`, `ORKA_ACP_IDLE_POOL_TTL`. */
  readonly from: string;
  readonly text: string;
}

/** What {@link readSettings} reads; a setting that takes one value has one text at most. Defaults are filled in already. */
export type WrittenSettings = Readonly<Record<SettingName, readonly Written[]>>;

/** The controller was started with settings that it cannot use; it has not begun. */
export class SettingsError extends CodedError<'setting-invalid'> {}

/** Checks settings, each by itself and then together. Throws {@link SettingsError} for the first that cannot be used. */
export function readSettings(written: WrittenSettings, version: string): ControllerSettings {
  const values = Object.fromEntries(settingNames.map((name) => [name, valueOf(name, written[name])])) as unknown as SettingValues;
  const [conflict] = settingConflicts(values);
  if (conflict) refuse(conflict.setting, written[conflict.setting][conflict.index ?? 0], conflict.allowed);
  const { agentSandboxEnabled, workspaceDispatchEnabled, idlePoolTtl, ...rest } = values;
  return {
    ...rest,
    // A duration above 0 may be shorter than the clock can tell.
    idlePoolTtl: Math.max(parseDuration(idlePoolTtl) ?? 0, 1),
    gates: { agentSandbox: agentSandboxEnabled, workspaceDispatch: workspaceDispatchEnabled },
    version,
  };
}

/** The value of a setting by its schema. */
function valueOf(name: SettingName, texts: readonly Written[]): Json {
  const node = structural(settings[name].schema);
  const single = node.items ?? node;
  const [first] = texts;
  if (first === undefined && node.items && (node.minItems ?? 0) === 0) return [];
  if (first === undefined) refuse(name, undefined, typeText(single));
  const values = texts.map((one) => parsed(single, one.text) ?? refuse(name, one, typeText(single)));
  const value = node.items ? values : (values[0] ?? null);
  const [problem] = validateNode(node, value);
  if (problem) refuse(name, texts[Number(/^\[(\d+)\]/.exec(problem.field)?.[1] ?? 0)], problem.allowed);
  return value;
}

/** Reads the text of a flag as the type of its setting; `undefined` = it is none of that type. */
function parsed({ type }: StructuralNode, text: string): Json | undefined {
  if (type === 'integer') return /^(?:\d{1,9}|-[1-9]\d{0,8})$/.test(text) ? Number(text) : undefined;
  if (type !== 'boolean') return text;
  return { true: true, false: false }[text.toLowerCase()];
}

function refuse(name: SettingName, written: Written | undefined, allowed: string): never {
  const { flag }: Setting = settings[name];
  throw new SettingsError('setting-invalid', { at: 'controller', field: written?.from ?? flag, found: written?.text, allowed });
}
