import type { Json, JsonObject } from '../lib/json.js';
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
          schema: { openAPIV3Schema: rootNode(structural(kind.schema)) },
          subresources: { status: {} },
        },
      ],
    },
  };
}

function rootNode(root: StructuralNode): JsonObject {
  const { spec, status } = root.properties ?? {};
  const known = { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { type: 'object' } } as const;
  return crdNode({
    ...root,
    properties: { ...known, ...(spec ? { spec } : {}), ...(status ? { status } : {}) },
    required: ['spec'],
  });
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

function crdNode(node: StructuralNode): JsonObject {
  return Object.fromEntries(
    keywords.filter((keyword) => node[keyword] !== undefined).map((keyword) => [keyword, crdKeyword(node, keyword)]),
  );
}

function crdKeyword(node: StructuralNode, keyword: (typeof keywords)[number]): Json {
  switch (keyword) {
    case 'properties':
      return Object.fromEntries(Object.entries(node.properties ?? {}).map(([name, member]) => [name, crdNode(member)]));
    case 'additionalProperties':
      return crdNode(node.additionalProperties ?? {});
    case 'items':
      return crdNode(node.items ?? {});
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
