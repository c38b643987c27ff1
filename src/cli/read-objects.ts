import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { yamlDocuments } from '../render/yaml-read.js';
import { InputError, inputName, readInput } from './files.js';
import type { InputLimit } from './files.js';
import { progress } from './progress.js';

/** One Kubernetes object of a file, and where it stands. */
export interface ReadObject {
  /** `file, line n`, for errors; with its position for an item of a List. */
  readonly at: string;
  readonly value: JsonObject & { readonly apiVersion: string; readonly kind: string };
}

/** In characters. */
const largeText = 1_000_000;

/** The objects of a file, those of Lists one by one; `-` is standard input. Anything that is no object with apiVersion and kind is refused. */
export function readObjects(file: string, limit?: InputLimit): readonly ReadObject[] {
  const name = inputName(file);
  const text = readInput(file, limit);
  const much = text.length >= largeText;
  const onLine = (offset: number): void => progress.at(much, () => `${name}: read ${Math.floor((offset / text.length) * 100)} %`);
  const objects: ReadObject[] = [];
  for (const { value, line } of yamlDocuments(text, name, onLine)) collect(`${name}, line ${line}`, value, objects);
  return objects;
}

function collect(at: string, value: Json, objects: ReadObject[]): void {
  if (!isObject(value) || typeof value['kind'] !== 'string' || typeof value['apiVersion'] !== 'string') {
    const found = isObject(value) ? Object.keys(value) : value;
    throw new InputError('input-invalid', { at, found, allowed: 'a Kubernetes object with apiVersion and kind' });
  }
  const object = value as ReadObject['value'];
  const { kind, apiVersion, items } = object;
  // Every other kind may have such a name; a plain List is kubectl's own, which takes one without items for an empty one.
  if (kind === 'List' && apiVersion === 'v1') {
    if (items === undefined || items === null) return;
    if (!Array.isArray(items)) throw new InputError('input-invalid', { at, field: 'items', found: items, allowed: 'a list' });
  }
  if (!kind.endsWith('List') || !Array.isArray(items)) {
    objects.push({ at, value: object });
    return;
  }
  // The API names apiVersion and kind once for all items of a typed list; kubectl fills them in, too.
  const shared = kind === 'List' ? {} : { apiVersion, kind: kind.slice(0, -'List'.length) };
  (items as readonly Json[]).forEach((item, index) =>
    collect(`${at}, items[${index}]`, isObject(item) ? { ...shared, ...item } : item, objects),
  );
}
