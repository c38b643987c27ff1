import { isObject } from '../lib/json.js';
import type { Json } from '../lib/json.js';
import type { Kind } from './kind.js';
import { memberNode, structural } from './structural.js';
import type { StructuralNode } from './structural.js';

/**
 * The object as the API server stores it: defaults written, `null` where no `null` may stand taken for absent.
 *
 * @returns a new object; the given one is left alone. Values of the wrong type are passed through for {@link validate} to report.
 */
export function withDefaults<T>(kind: Kind<T>, object: T): T {
  return defaulted(structural(kind.schema), object as Json) as T;
}

/** Source: Kubernetes' structural defaulting. A default goes only where the object around it exists, and is itself defaulted further down. */
export function defaulted(node: StructuralNode, value: Json): Json {
  if (Array.isArray(value)) {
    const { items } = node;
    const list = value as readonly Json[];
    return items ? list.map((item) => defaulted(items, item)) : list;
  }
  if (!isObject(value)) return value;
  const members: [string, Json][] = [];
  for (const [name, member] of Object.entries(value)) {
    const at = memberNode(node, name);
    if (member === undefined || (member === null && at && !at.nullable)) continue;
    members.push([name, at ? defaulted(at, member) : member]);
  }
  const present = new Set(members.map(([name]) => name));
  for (const [name, at] of Object.entries(node.properties ?? {})) {
    if (at.default !== undefined && !present.has(name)) members.push([name, defaulted(at, at.default)]);
  }
  return Object.fromEntries(members);
}
