import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { readYaml } from '../render/yaml-read.js';
import { InputError, readInput } from './files.js';

/** One Kubernetes object of a file, and where it stands. */
export interface ReadObject {
  /** `file, line n`, for errors. */
  readonly at: string;
  readonly value: JsonObject & { readonly apiVersion: string; readonly kind: string };
}

/** The objects of a file, those of Lists one by one; `-` is standard input. Anything that is no object with apiVersion and kind is refused. */
export function readObjects(file: string): readonly ReadObject[] {
  const name = file === '-' ? 'standard input' : file;
  return readYaml(readInput(file), name)
    .flatMap(({ value, line }) => itemsOf(value).map((item) => ({ at: `${name}, line ${line}`, value: item })))
    .map(({ at, value }) => {
      if (!isObject(value) || typeof value['kind'] !== 'string' || typeof value['apiVersion'] !== 'string') {
        const found = isObject(value) ? Object.keys(value) : value;
        throw new InputError('input-invalid', { at, found, allowed: 'a Kubernetes object with apiVersion and kind' });
      }
      return { at, value: value as ReadObject['value'] };
    });
}

/** Standard input can be read once. */
export function refuseTwoInputs(command: string, files: readonly string[]): void {
  if (files.filter((file) => file === '-').length > 1)
    throw new InputError('input-invalid', { at: command, field: '--filename', found: files, allowed: 'standard input once' });
}

/** kubectl prints several objects as a List. */
function itemsOf(value: Json): readonly Json[] {
  return isObject(value) && value['kind'] === 'List' && Array.isArray(value['items'])
    ? (value['items'] as readonly Json[])
    : [value];
}
