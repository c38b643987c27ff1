import type { Manifest } from '../api/index.js';
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';

/** Fields of one manager, spelled as the API server does, without the leading point: `spec.ports[port=80,protocol="TCP"].name`. */
export interface ManagedFields {
  readonly manager: string;
  readonly fields: readonly string[];
}

/** One entry of `metadata.managedFields`. */
interface Entry {
  readonly manager: string;
  readonly applied: boolean;
  readonly subresource: string;
  readonly fields: readonly string[];
}

/**
 * What others than `manager` own of an object and it does not, by manager. What is written through `status` is nobody's intent
 * and left out.
 */
export function ownedByOthers({ metadata }: Pick<Manifest, 'metadata'>, manager: string): readonly ManagedFields[] {
  const entries = entriesOf(metadata);
  const isOurs = (entry: Entry): boolean => entry.manager === manager && entry.applied && entry.subresource === '';
  const ours = new Set(entries.filter(isOurs).flatMap(({ fields }) => fields));
  const others = new Map<string, Set<string>>();
  for (const entry of entries) {
    if (isOurs(entry) || entry.subresource === 'status') continue;
    const foreign = entry.fields.filter((field) => !ours.has(field));
    if (foreign.length > 0) others.set(entry.manager, new Set([...(others.get(entry.manager) ?? []), ...foreign]));
  }
  return [...others].map(([name, fields]) => ({ manager: name, fields: [...fields].sort() })).sort(byManager);
}

/** For `sort`: by the name of the manager. */
export function byManager(a: ManagedFields, b: ManagedFields): number {
  return a.manager < b.manager ? -1 : 1;
}

function entriesOf({ managedFields }: { readonly managedFields?: Json }): readonly Entry[] {
  if (!Array.isArray(managedFields)) return [];
  return (managedFields as readonly Json[]).filter(isObject).map((entry) => ({
    manager: textOf(entry['manager']),
    applied: entry['operation'] === 'Apply',
    subresource: textOf(entry['subresource']),
    fields: isObject(entry['fieldsV1']) ? leaves(entry['fieldsV1'], '') : [],
  }));
}

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '');

/** The paths of a FieldsV1 set: members that have none below them. `.` is the member itself, which counts when it is alone. */
function leaves(set: JsonObject, path: string): readonly string[] {
  const below = Object.entries(set).filter(([step]) => step !== '.');
  if (below.length === 0) return path === '' ? [] : [path];
  return below.flatMap(([step, inner]) => leaves(isObject(inner) ? inner : {}, joined(path, step)));
}

/** `f:` a member, `k:` an item by its keys, `v:` an item of a set, `i:` an item by its place. */
function joined(path: string, step: string): string {
  const rest = step.slice(2);
  switch (step.slice(0, 2)) {
    case 'k:': {
      const keys = JSON.parse(rest) as JsonObject;
      return `${path}[${Object.entries(keys)
        .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
        .join(',')}]`;
    }
    case 'v:':
      return `${path}[=${rest}]`;
    case 'i:':
      return `${path}[${rest}]`;
    default:
      return path === '' ? rest : `${path}.${rest}`;
  }
}
