import { group, kinds } from '../api/index.js';
import { nearest } from '../lib/nearest.js';
import { InputError } from './files.js';
import type { ReadObject } from './read-objects.js';

/** Kinds that a plan reads, and the group of each. Another group may have a kind of the same name, as Tekton has. */
const planned: Readonly<Record<string, string>> = { Task: group, Agent: group, ConfigMap: '' };
/** Kinds that a note names one by one. */
const named = 5;

/** Separates what a plan reads from what it skips. A kind of our group that is spelt wrong is refused. */
export function sorted(documents: readonly ReadObject[]): {
  readonly planned: readonly ReadObject[];
  readonly notes: readonly string[];
} {
  const skipped = new Map<string, number>();
  const read = documents.filter((document) => {
    if (isPlanned(document)) return true;
    const { kind } = document.value;
    skipped.set(kind, (skipped.get(kind) ?? 0) + 1);
    return false;
  });
  return { planned: read, notes: skipped.size > 0 ? [noteOn(skipped)] : [] };
}

function isPlanned({ at, value }: ReadObject): boolean {
  const own = value.apiVersion.includes('/') ? value.apiVersion.split('/')[0] : '';
  if (planned[value.kind] === own) return true;
  const near =
    own === group
      ? nearest(
          value.kind,
          kinds.map(({ kind }) => kind),
        )
      : undefined;
  if (near === undefined || near === value.kind) return false;
  throw new InputError('input-invalid', { at, field: 'kind', found: value.kind, allowed: `${near}, if that is meant` });
}

function noteOn(skipped: ReadonlyMap<string, number>): string {
  const all = [...skipped].map(([kind, number]) => (number === 1 ? kind : `${number} ${kind}`));
  const more = all.length > named ? ` and others` : '';
  const hint = skipped.has('RuntimePoolClass') ? '; --class reads a RuntimePoolClass' : '';
  return `skipped ${all.slice(0, named).join(', ')}${more}: a plan reads ${Object.keys(planned).join(', ')}${hint}`;
}
