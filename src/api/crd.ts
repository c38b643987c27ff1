import type { Json, JsonObject } from '../lib/json.js';
import { descriptionOf } from './descriptions/index.js';
import type { Kind } from './kind.js';
import type { Manifest } from './meta.js';
import { structural } from './structural.js';
import type { StructuralNode } from './structural.js';

/**
 * The CustomResourceDefinition of a kind, from its schema: the same bytes every time, no labels.
 *
 * apiVersion, kind and metadata stand in it as types only, as the API server demands; it knows them by itself.
 */
export function crd(kind: Kind<unknown>): Manifest {
  const { group, version, plural, singular, listKind, shortNames, printerColumns, crdAnnotations } = kind;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${plural}.${group}`,
      ...(Object.keys(crdAnnotations).length > 0 ? { annotations: { ...crdAnnotations } } : {}),
    },
    spec: {
      group,
      names: { kind: kind.kind, listKind, plural, singular, ...(shortNames.length > 0 ? { shortNames: [...shortNames] } : {}) },
      scope: 'Namespaced',
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          additionalPrinterColumns: printerColumns.map(({ name, type, jsonPath, wide }) => ({
            name,
            type,
            ...(wide ? { priority: 1 } : {}),
            jsonPath,
          })),
          schema: { openAPIV3Schema: rootNode(kind.kind, structural(kind.schema)) },
          subresources: { status: {} },
        },
      ],
    },
  };
}

function rootNode(kind: string, root: StructuralNode): JsonObject {
  const { spec, status } = root.properties ?? {};
  const known = { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { type: 'object' } } as const;
  const properties = { ...known, ...(spec ? { spec } : {}), ...(status ? { status } : {}) };
  return crdNode({ ...root, properties, required: ['spec'] }, kind);
}

/** The keywords in the order in which a reader wants them. */
const keywords = [
  'description',
  'type',
  'format',
  'nullable',
  'default',
  'enum',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'minProperties',
  'maxProperties',
  'minItems',
  'maxItems',
  'required',
  'properties',
  'additionalProperties',
  'items',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-list-type',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
] as const satisfies readonly (keyof StructuralNode)[];

/** @param path - of the node, from the kind on */
function crdNode(node: StructuralNode, path: string): JsonObject {
  const description = explanation(node, path);
  const described: StructuralNode = description === '' ? node : { ...node, description };
  return Object.fromEntries(
    keywords
      .filter((keyword) => described[keyword] !== undefined)
      .map((keyword) => [keyword, crdKeyword(described, keyword, path)]),
  );
}

/** What a field is, and the value that the API server writes where there is none. */
function explanation({ description, default: value }: StructuralNode, path: string): string {
  const written = value === undefined ? undefined : `Default: ${JSON.stringify(value)}.`;
  return [description ?? descriptionOf(path), written].filter((part) => part !== undefined).join(' ');
}

function crdKeyword(node: StructuralNode, keyword: (typeof keywords)[number], path: string): Json {
  switch (keyword) {
    case 'properties':
      return Object.fromEntries(
        Object.entries(node.properties ?? {}).map(([name, member]) => [name, crdNode(member, `${path}.${name}`)]),
      );
    case 'additionalProperties':
      return crdNode(node.additionalProperties ?? {}, `${path}.*`);
    case 'items':
      return crdNode(node.items ?? {}, `${path}[]`);
    case 'x-kubernetes-validations':
      return (node[keyword] ?? []).map(({ rule, message, fieldPath }) => ({
        rule,
        message,
        ...(fieldPath ? { fieldPath } : {}),
      }));
    default:
      return structuredClone<Json>(node[keyword] ?? null);
  }
}
