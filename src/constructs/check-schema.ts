import { validateNode } from '../api/validate.js';
import type { Violation } from '../api/validate.js';
import type { StructuralNode } from '../api/structural.js';
import { newerFields } from './newer-provider.js';
import { schemaKinds, schemaTypes } from './schemas.js';

/** A node as the generated table has it: a text is the name of a type of the table. */
export type CompactNode = Omit<StructuralNode, 'properties' | 'additionalProperties' | 'items'> & {
  readonly properties?: Readonly<Record<string, CompactNode | string>>;
  readonly additionalProperties?: CompactNode | string;
  readonly items?: CompactNode | string;
};

/** `<apiVersion>/<kind>` of a kind whose schema is known. */
export type SchemaKind = keyof typeof schemaKinds;

export const isSchemaKind = (kind: string): kind is SchemaKind => Object.hasOwn(schemaKinds, kind);

/**
 * Lists what the schema of a kind refuses in an object: types, required and unknown members, enums, formats, duplicate list items.
 * `null` is refused wherever the schema does not ask for it. Pure.
 */
export function checkSchema(kind: SchemaKind, object: unknown): readonly Violation[] {
  return validateNode(typeOf(schemaKinds[kind]), object);
}

const expanded = new Map<string, StructuralNode>();

function typeOf(name: string): StructuralNode {
  const known = expanded.get(name);
  if (known) return known;
  const compact = schemaTypes[name];
  if (!compact) throw new RangeError(`schemas.ts: found no type ${name}`);
  const node = expand({ ...compact, ...withNewer(name, compact) });
  expanded.set(name, node);
  return node;
}

function withNewer(name: string, { properties }: CompactNode): Pick<CompactNode, 'properties'> {
  const newer = newerFields[name];
  return newer ? { properties: { ...properties, ...newer } } : {};
}

function expand(node: CompactNode | string): StructuralNode {
  if (typeof node === 'string') return typeOf(node);
  const { properties, additionalProperties, items, ...rest } = node;
  return {
    ...rest,
    ...(properties
      ? { properties: Object.fromEntries(Object.entries(properties).map(([name, member]) => [name, expand(member)])) }
      : {}),
    ...(additionalProperties ? { additionalProperties: expand(additionalProperties) } : {}),
    ...(items ? { items: expand(items) } : {}),
  };
}
