import { fieldPath, isObject } from '../lib/json.js';
import type { Json, JsonObject, Path } from '../lib/json.js';

/**
 * Fields of an object that a served schema does not have, so that the server would drop them, and fields that it demands and the object lacks.
 * Features of a provider are told by its schema and never by its version.
 *
 * @param served - the schema of the kind as the API server publishes it
 * @returns one sentence for each field: `SandboxWarmPool.spec.x is not served`
 */
export function fieldGaps(
  { apiVersion: _apiVersion, kind, metadata: _metadata, ...rest }: KindObject,
  served: JsonObject,
): readonly string[] {
  return gapsOf([kind], rest, { ...served, required: namesOf(served['required']).filter((name) => !everywhere.includes(name)) });
}

interface KindObject extends JsonObject {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Every object has them. */
const everywhere: readonly string[] = ['apiVersion', 'kind', 'metadata'];

function gapsOf(path: Path, value: Json | undefined, served: Json | undefined): readonly string[] {
  if (!isObject(served)) return [`${fieldPath(path)} is not served`];
  if (Array.isArray(value)) {
    const { items } = served;
    return items === undefined ? [] : (value as readonly Json[]).flatMap((item, index) => gapsOf([...path, index], item, items));
  }
  if (!isObject(value)) return [];
  const { properties, additionalProperties: any } = served;
  const known = isObject(properties) ? properties : {};
  const isOpen = served['x-kubernetes-preserve-unknown-fields'] === true || any === true || '$ref' in served || 'allOf' in served;
  const missing = namesOf(served['required']).filter((name) => value[name] === undefined);
  return [
    ...missing.map((name) => `${fieldPath([...path, name])} is demanded`),
    ...Object.entries(value).flatMap(([name, member]) => {
      const at = (Object.hasOwn(known, name) ? known[name] : undefined) ?? (isObject(any) ? any : undefined);
      return at === undefined && isOpen ? [] : gapsOf([...path, name], member, at);
    }),
  ];
}

function namesOf(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
