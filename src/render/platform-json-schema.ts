import { structural } from '../api/structural.js';
import type { StructuralNode } from '../api/structural.js';
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { classWithDefaults, platformSchema } from './platform.js';

/**
 * JSON schema (draft-07, as the YAML language server reads it) of `platform.yaml`, made of the schema by which synth reads it.
 *
 * It has types, bounds, enums, patterns, descriptions and defaults. Rules across keys are checked by synth alone.
 */
export function platformJsonSchema(): JsonObject {
  const root = structural(platformSchema);
  const classes = root.properties?.['classes'] ?? {};
  const withClasses = {
    ...root,
    properties: { ...root.properties, classes: { ...classes, additionalProperties: withClassDefaults(classes) } },
  };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'platform.yaml of orka-workspaces',
    ...jsonSchema(withClasses),
  };
}

/** Defaults of a class that do not depend on the rest of the file. */
function withClassDefaults({ additionalProperties: node = {} }: StructuralNode): StructuralNode {
  const network = {
    runtimeNamespace: '',
    controller: { namespace: '', apiUrl: '', apiPort: 1 },
    dns: { namespace: '', podLabels: {} },
  };
  const {
    network: _network,
    providerKind: _kind,
    runtime: _runtime,
    ...defaults
  } = classWithDefaults({ providerKind: 'codex', runtime: { image: '', adapterDigests: {} } }, network);
  return withLeafDefaults(node, defaults);
}

function withLeafDefaults(node: StructuralNode, value: Json): StructuralNode {
  const { properties } = node;
  if (!properties || !isObject(value)) return { ...node, default: value };
  const members = Object.entries(properties).map(([name, member]): [string, StructuralNode] => {
    const given = value[name];
    return [name, given === undefined ? member : withLeafDefaults(member, given)];
  });
  return { ...node, properties: Object.fromEntries(members) };
}

function jsonSchema(node: StructuralNode): JsonObject {
  const { properties, items, additionalProperties, nullable, format, 'x-kubernetes-int-or-string': intOrString, ...rest } = node;
  const open = node['x-kubernetes-preserve-unknown-fields'] === true;
  const type = intOrString ? ['integer', 'string'] : node.type;
  const standard = Object.fromEntries(Object.entries(rest).filter(([name]) => !name.startsWith('x-')));
  return {
    ...(standard as JsonObject),
    ...(type === undefined ? {} : { type: nullable ? [type, 'null'].flat() : type }),
    ...(format === 'date-time' ? { format } : {}),
    ...(node['x-kubernetes-list-type'] === 'set' ? { uniqueItems: true } : {}),
    ...(items ? { items: jsonSchema(items) } : {}),
    ...(properties ? { properties: mapped(properties), additionalProperties: open } : {}),
    ...(additionalProperties ? { additionalProperties: jsonSchema(additionalProperties) } : {}),
  };
}

function mapped(properties: Readonly<Record<string, StructuralNode>>): JsonObject {
  return Object.fromEntries(Object.entries(properties).map(([name, member]) => [name, jsonSchema(member)]));
}
