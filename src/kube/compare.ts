import type { Manifest } from '../api/index.js';
import { equalJson, isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { sendApply } from './apply.js';
import { get, refOf } from './client.js';
import type { CallOptions, KubeClient, ObjectKind } from './client.js';
import { KubeError } from './errors.js';
import type { KubeCause } from './sayings.js';
import { byManager, ownedByOthers } from './managed-fields.js';
import type { ManagedFields } from './managed-fields.js';

/** How an object of a set stands against the cluster. */
export interface Comparison {
  /**
   * `same`: an apply would change nothing. `changed`: it would. `missing`: the object, its namespace or its kind is not there yet.
   * `conflict`: an apply would be refused, since others own fields that are wanted otherwise.
   */
  readonly state: 'same' | 'changed' | 'missing' | 'conflict';
  /** As it is, without what only the server writes. Left out when it is missing. */
  readonly live?: JsonObject;
  /** As it would be after an apply that takes what it wants. Left out when the server cannot be asked yet. */
  readonly wanted?: JsonObject;
  /** Fields that are wanted otherwise, by the manager that owns them. */
  readonly conflicts: readonly ManagedFields[];
  /** Fields that the set says nothing about, by the manager that owns them; an apply leaves them as they are. */
  readonly others: readonly ManagedFields[];
}

/** What a set of objects brings with it, so that it need not be in the cluster yet. */
export interface Brought {
  readonly namespaces: ReadonlySet<string>;
  /** `group/version kind` of each version that a CRD of the set serves. */
  readonly kinds: ReadonlySet<string>;
}

export interface CompareOptions extends CallOptions {
  /** The field manager of the applies that the set is meant for. */
  readonly manager: string;
  readonly brought: Brought;
}

/**
 * Asks the server what an apply of an object would change; nothing is stored. Validation is strict.
 *
 * Throws {@link KubeError} for what an apply would fail on: an object that the server does not accept, a kind or a namespace that is neither in the
 * cluster nor in the set, no permission, no answer.
 */
export async function compare(client: KubeClient, manifest: Manifest, options: CompareOptions): Promise<Comparison> {
  const { manager, brought, ...call } = options;
  const intent = withoutServerFields(manifest) as unknown as Manifest;
  const ask = (force: boolean): Promise<Manifest> => sendApply(client, intent, { manager, force, dryRun: true, ...call });
  const nothing = { conflicts: [], others: [] };
  let live: Manifest | undefined;
  try {
    live = await get(client, refOf(intent), call);
    if (!live) return { state: 'missing', wanted: withoutServerFields(await ask(false)), ...nothing };
  } catch (error) {
    if (error instanceof KubeError && isBrought(error, intent, brought)) return { state: 'missing', ...nothing };
    throw error;
  }
  const { merged, conflicts } = await asked(ask);
  const [before, after] = [withoutServerFields(live), withoutServerFields(merged)];
  const wantedOtherwise = new Set(conflicts.flatMap(({ fields }) => fields));
  return {
    state: conflicts.length > 0 ? 'conflict' : equalJson(before, after) ? 'same' : 'changed',
    live: before,
    wanted: after,
    conflicts,
    others: ownedByOthers(live, manager).flatMap(({ manager: other, fields }) => {
      const left = fields.filter((field) => !wantedOtherwise.has(field) && !isServers(intent.kind, field));
      return left.length === 0 ? [] : [{ manager: other, fields: left }];
    }),
  };
}

/** First without force, so that the server names what is in the way; then with it, so that it says what would come of it. */
async function asked(
  ask: (force: boolean) => Promise<Manifest>,
): Promise<{ readonly merged: Manifest; readonly conflicts: readonly ManagedFields[] }> {
  try {
    return { merged: await ask(false), conflicts: [] };
  } catch (error) {
    const conflicts = error instanceof KubeError && error.code === 'conflict' ? conflictsOf(error.causes) : [];
    if (conflicts.length === 0) throw error;
    return { merged: await ask(true), conflicts };
  }
}

function conflictsOf(causes: readonly KubeCause[]): readonly ManagedFields[] {
  const fields = new Map<string, string[]>();
  for (const { reason, field = '', message = '' } of causes) {
    const [, quoted] = /^conflict with ("(?:[^"\\]|\\.)*")/.exec(message) ?? [];
    if (reason !== 'FieldManagerConflict' || quoted === undefined) continue;
    const manager = JSON.parse(quoted) as string;
    fields.set(manager, [...(fields.get(manager) ?? []), field.replace(/^\./, '')]);
  }
  return [...fields].map(([manager, of]) => ({ manager, fields: of.sort() })).sort(byManager);
}

/** Namespaces and kinds that a set makes. */
export function broughtBy(manifests: readonly Manifest[]): Brought {
  return {
    namespaces: new Set(
      manifests
        .filter(({ apiVersion, kind }) => apiVersion === 'v1' && kind === 'Namespace')
        .map(({ metadata }) => metadata.name),
    ),
    kinds: new Set(manifests.flatMap(servedBy)),
  };
}

/** The kinds, as `group/version kind`, that a CRD serves; of other objects none. */
export function servedBy({ apiVersion, kind, spec }: Manifest): readonly string[] {
  if (!apiVersion.startsWith('apiextensions.k8s.io/') || kind !== 'CustomResourceDefinition' || !isObject(spec)) return [];
  const { group, names, versions } = spec;
  const of = isObject(names) ? names['kind'] : undefined;
  if (typeof group !== 'string' || typeof of !== 'string' || !Array.isArray(versions)) return [];
  return (versions as readonly Json[]).flatMap((one) =>
    isObject(one) && one['served'] === true && typeof one['name'] === 'string' ? [`${group}/${one['name']} ${of}`] : [],
  );
}

export function kindName({ apiVersion, kind }: ObjectKind): string {
  return `${apiVersion} ${kind}`;
}

function isBrought({ code }: KubeError, { apiVersion, kind, metadata }: Manifest, { kinds, namespaces }: Brought): boolean {
  if (code === 'kind-missing') return kinds.has(kindName({ apiVersion, kind }));
  return code === 'not-found' && metadata.namespace !== undefined && namespaces.has(metadata.namespace);
}

const serverMetadata = [
  'managedFields',
  'resourceVersion',
  'uid',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
];
/** A copy of the object, Secrets included, for `kubectl apply` without a server's side. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/** Fields of a Namespace that the server sets, in the name of whoever makes it. */
function isServers(kind: string, field: string): boolean {
  return kind === 'Namespace' && ['metadata.labels.kubernetes.io/metadata.name', 'spec.finalizers'].includes(field);
}

/** An object without status and without what the server writes into its metadata. */
function withoutServerFields({ status: _status, ...manifest }: Manifest): JsonObject {
  const { annotations, ...metadata } = manifest.metadata as unknown as JsonObject;
  const kept = Object.entries(metadata).filter(([name]) => !serverMetadata.includes(name));
  const own = isObject(annotations) ? Object.entries(annotations).filter(([name]) => name !== lastApplied) : [];
  return {
    ...(manifest as unknown as JsonObject),
    metadata: { ...Object.fromEntries(kept), ...(own.length > 0 ? { annotations: Object.fromEntries(own) } : {}) },
  };
}
