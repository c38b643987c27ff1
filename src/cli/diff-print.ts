import type { Manifest } from '../api/index.js';
import type { Comparison } from '../kube/compare.js';
import type { ManagedFields } from '../kube/managed-fields.js';
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { counted } from '../lib/text.js';
import { toYaml } from '../render/yaml.js';
import { lineDiff, shortened } from './line-diff.js';

/** One object and what came of comparing it. */
export type DiffedObject = { readonly manifest: Manifest; readonly expected: readonly string[] } & (
  Comparison | { readonly state: 'error'; readonly error: string }
);

type DiffState = DiffedObject['state'];

/** What `diff -o json` prints; the shape is stable. */
export interface DiffResult {
  /** The field manager that was asked for. */
  readonly manager: string;
  /** In the order of the files. */
  readonly objects: readonly {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace: string | null;
    readonly name: string;
    readonly state: DiffState;
    /** From the live object to what an apply would make of it, as `diff -u` prints it; values of Secrets are replaced. */
    readonly diff: string | null;
    /** Fields that are wanted otherwise than their manager has them. */
    readonly conflicts: readonly ManagedFields[];
    /** Fields that the files say nothing about. `expected`: they are no drift. */
    readonly others: readonly (ManagedFields & { readonly expected: boolean })[];
    readonly error: string | null;
  }[];
  readonly counts: Readonly<Record<DiffState, number>>;
  /** Something is changed, missing, in conflict or owned by a manager that is not expected. */
  readonly drift: boolean;
}

export function diffResult(manager: string, compared: readonly DiffedObject[]): DiffResult {
  const objects = compared.map(row);
  const count = (state: DiffState): number => objects.filter((object) => object.state === state).length;
  const counts = {
    same: count('same'),
    changed: count('changed'),
    missing: count('missing'),
    conflict: count('conflict'),
    error: count('error'),
  };
  return {
    manager,
    objects,
    counts,
    drift: counts.changed + counts.missing + counts.conflict > 0 || objects.some(({ others }) => others.some(unexpected)),
  };
}

const unexpected = ({ expected }: { readonly expected: boolean }): boolean => !expected;

function row(object: DiffedObject): DiffResult['objects'][number] {
  const { apiVersion, kind, metadata } = object.manifest;
  const of = { apiVersion, kind, namespace: metadata.namespace ?? null, name: metadata.name, state: object.state };
  if (object.state === 'error') return { ...of, diff: null, conflicts: [], others: [], error: object.error };
  const { state, live, wanted, conflicts, others } = object;
  return {
    ...of,
    diff: live && wanted && (state === 'changed' || state === 'conflict') ? differenceOf(object.manifest, live, wanted) : null,
    conflicts,
    others: others.map((one) => ({ ...one, expected: object.expected.includes(one.manager) })),
    error: null,
  };
}

function differenceOf(manifest: Manifest, live: JsonObject, wanted: JsonObject): string {
  const [before, after] = manifest.kind === 'Secret' ? veiled(live, wanted) : [live, wanted];
  return lineDiff(titleOf(manifest), toYaml(before), toYaml(after), { old: 'live', wanted: 'wanted' });
}

/** Values of Secrets as words that say no more than whether they differ. */
function veiled(live: JsonObject, wanted: JsonObject): readonly [JsonObject, JsonObject] {
  const veil = (object: JsonObject, other: JsonObject, differing: string): JsonObject =>
    Object.fromEntries(
      Object.entries(object).map(([member, values]) =>
        member !== 'data' && member !== 'stringData'
          ? [member, values]
          : [member, veiledValues(values, other[member], differing)],
      ),
    );
  return [veil(live, wanted, 'not shown'), veil(wanted, live, 'not shown, differs')];
}

function veiledValues(values: Json | undefined, others: Json | undefined, differing: string): Json {
  if (!isObject(values)) return 'not shown';
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => {
      const same = isObject(others) && (!Object.hasOwn(others, key) || others[key] === value);
      return [key, same ? 'not shown' : differing];
    }),
  );
}

function titleOf({ apiVersion, kind, metadata: { namespace, name } }: Manifest): string {
  return `${apiVersion} ${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}

const width = 'conflict'.length + 1;
const mostFields = 10;

export function printDiff({ objects }: DiffResult): void {
  for (const { apiVersion, kind, namespace, name, state, diff, conflicts, others, error } of objects) {
    const title = `${apiVersion} ${kind} ${namespace === null ? '' : `${namespace}/`}${name}`;
    const lines = [
      `${state.padEnd(width)} ${title}`,
      ...(error === null ? [] : [`  ${error.replaceAll('\n', '\n  ')}`]),
      ...conflicts.map(({ manager, fields }) => `  ${manager} has otherwise: ${listed(fields)}`),
      ...others.map(
        ({ manager, fields, expected }) => `  left to ${manager}${expected ? '' : ' (not expected)'}: ${listed(fields)}`,
      ),
    ];
    process.stdout.write(`${lines.join('\n')}\n${diff === null ? '' : shortened(diff)}`);
  }
}

/** For people, beside the data. */
export function printSummary({ objects, counts, drift }: DiffResult): void {
  const told = Object.entries(counts).flatMap(([state, count]) => (count === 0 ? [] : [`${count} ${state}`]));
  const foreign = objects.filter(({ others }) => others.some(unexpected)).length;
  const more = foreign === 0 ? [] : [`${foreign} with fields of managers that are not expected`];
  const verdict = counts.error > 0 ? 'not all could be compared' : drift ? 'drift' : 'no drift';
  process.stderr.write(`${counted(objects.length, 'object')}: ${[...told, ...more].join(', ') || 'none'}; ${verdict}\n`);
}

function listed(fields: readonly string[]): string {
  const shown = fields.slice(0, mostFields).join(', ');
  return fields.length > mostFields ? `${shown} and ${fields.length - mostFields} more` : shown;
}
