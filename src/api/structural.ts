import type { Json } from '../lib/json.js';
import type { CelRule, TSchema } from './schema.js';

/** A schema as the API server reads it: the keywords that the helpers in `schema.ts` write, and no others. */
export interface StructuralNode {
  readonly description?: string;
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly format?: 'int32' | 'int64' | 'date-time';
  readonly nullable?: boolean;
  readonly default?: Json;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, StructuralNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: StructuralNode;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly items?: StructuralNode;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly 'x-kubernetes-int-or-string'?: true;
  readonly 'x-kubernetes-preserve-unknown-fields'?: true;
  readonly 'x-kubernetes-list-type'?: 'map' | 'set';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-validations'?: readonly CelRule[];
}

export function structural(schema: TSchema): StructuralNode {
  return schema;
}

/** The schema of a member: its own, else that of all members of a map, else none. Names such as `constructor` are names like any other. */
export function memberNode(node: StructuralNode, name: string): StructuralNode | undefined {
  return node.properties && Object.hasOwn(node.properties, name) ? node.properties[name] : node.additionalProperties;
}
