import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';

/** Bounds that a schema sets from above. */
const bounds = ['maxLength', 'maxItems', 'maxProperties', 'maximum'] as const;

/**
 * Where a served schema is not what a needed one asks for: a field that would be dropped or refused, a type, a value or a size that would be refused, a
 * field that would be demanded. What is served beyond that is no gap.
 *
 * @param at path of the two schemas: `Task`
 * @returns one sentence for each gap
 */
export function kindGaps(at: string, needed: Json | undefined, served: Json | undefined): readonly string[] {
  if (!isObject(needed)) return [];
  if (!isObject(served)) return [`${at} is not served`];
  if (served['x-kubernetes-preserve-unknown-fields'] === true) return [];
  return [...typeGaps(at, needed, served), ...valueGaps(at, needed, served), ...memberGaps(at, needed, served)];
}

function typeGaps(at: string, { type: needed }: JsonObject, { type: served }: JsonObject): readonly string[] {
  const both = typeof needed === 'string' && typeof served === 'string';
  return both && needed !== served ? [`${at} is served as ${served}, needed: ${needed}`] : [];
}

function valueGaps(at: string, needed: JsonObject, served: JsonObject): readonly string[] {
  const [wanted, taken] = [textsOf(needed['enum']), textsOf(served['enum'])];
  const refused = taken.length > 0 ? wanted.filter((value) => !taken.includes(value)) : [];
  const tighter = bounds.filter((bound) => numberOf(served[bound]) < numberOf(needed[bound]));
  return [
    ...(refused.length > 0 ? [`${at} is served without the values ${refused.join(', ')}`] : []),
    ...tighter.map((bound) => `${at} is served with ${bound} ${numberOf(served[bound])}, needed: ${numberOf(needed[bound])}`),
  ];
}

function memberGaps(at: string, needed: JsonObject, served: JsonObject): readonly string[] {
  const [wanted, given] = [membersOf(needed['properties']), membersOf(served['properties'])];
  const known = textsOf(needed['required']);
  const demanded = textsOf(served['required']).filter((name) => !known.includes(name));
  // Fields of any name stand for those of a name that is not listed.
  const any = isObject(served['additionalProperties']) ? served['additionalProperties'] : undefined;
  return [
    ...demanded.map((name) => `${at}.${name} is demanded`),
    ...Object.entries(wanted).flatMap(([name, schema]) =>
      at.includes('.') || name !== 'metadata' ? kindGaps(`${at}.${name}`, schema, given[name] ?? any) : [],
    ),
    ...('items' in needed ? kindGaps(`${at}[]`, needed['items'], served['items']) : []),
    ...(isObject(needed['additionalProperties']) ? kindGaps(`${at}.*`, needed['additionalProperties'], any) : []),
  ];
}

function membersOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function textsOf(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function numberOf(value: Json | undefined): number {
  return typeof value === 'number' ? value : Infinity;
}
