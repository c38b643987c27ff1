/**
 * Reduces the OpenAPI documents of Kubernetes and the CRDs of the provider to what a check needs: types, required members, enums, formats,
 * patterns and keys of lists. Every object type is written once, under a name, however often it occurs.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';

/** Kinds that a pool renders, and the file of the OpenAPI document that has them. */
const kubernetesKinds = {
  'v1/Service': ['api__v1', 'io.k8s.api.core.v1.Service'],
  'v1/PodTemplate': ['api__v1', 'io.k8s.api.core.v1.PodTemplate'],
  'apps/v1/Deployment': ['apis__apps__v1', 'io.k8s.api.apps.v1.Deployment'],
  'networking.k8s.io/v1/NetworkPolicy': ['apis__networking.k8s.io__v1', 'io.k8s.api.networking.v1.NetworkPolicy'],
  'policy/v1/PodDisruptionBudget': ['apis__policy__v1', 'io.k8s.api.policy.v1.PodDisruptionBudget'],
};
const providerVersion = 'v1beta1';

/** Types that are no objects with members of their own. */
const scalars = {
  any: { 'x-kubernetes-preserve-unknown-fields': true },
  boolean: { type: 'boolean' },
  'date-time': { type: 'string', format: 'date-time' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  'int-or-string': { 'x-kubernetes-int-or-string': true },
  number: { type: 'number' },
  open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  quantity: {
    'x-kubernetes-int-or-string': true,
    pattern:
      '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$',
  },
  string: { type: 'string' },
};

const kept = [
  'x-kubernetes-int-or-string',
  'x-kubernetes-preserve-unknown-fields',
  'enum',
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
];
const formats = ['int32', 'int64', 'date-time'];
const kubernetesScalars = {
  'io.k8s.apimachinery.pkg.api.resource.Quantity': 'quantity',
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': 'int-or-string',
  'io.k8s.apimachinery.pkg.apis.meta.v1.Time': 'date-time',
  'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime': 'date-time',
  'io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1': 'open',
};

/** Types under names; equal ones get one name, the first. */
class Types {
  #byText = new Map();
  #byName = new Map();

  constructor() {
    for (const [name, node] of Object.entries(scalars)) this.add(name, node);
  }

  add(name, node) {
    const text = JSON.stringify(node);
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    if (this.#byName.has(name)) throw new Error(`two types have the name ${name}`);
    this.#byText.set(text, name);
    this.#byName.set(name, text);
    return name;
  }

  /** The name of a node that is known already, else the node itself. */
  nameOf(node) {
    return this.#byText.get(JSON.stringify(node)) ?? node;
  }

  get entries() {
    return [...this.#byName];
  }
}

/** Enums of Kubernetes' types. Its OpenAPI documents lack them; the Go source that they are made from has them. */
function enumsOf(source) {
  const enums = new Map();
  let type;
  let member;
  for (const line of source.split('\n')) {
    const opened = /^func schema_k8sio_api_(\w+)\(/.exec(line);
    if (opened) type = `io.k8s.api.${opened[1].replaceAll('_', '.')}`;
    member = /^\t{5}"(\w+)": \{$/.exec(line)?.[1] ?? member;
    const values = /^\t{7,}Enum: +\[\]interface\{\}\{(.*)\},$/.exec(line)?.[1];
    if (values !== undefined) enums.set(`${type}.${member}`, JSON.parse(`[${values}]`));
  }
  if (enums.size === 0) throw new Error('found no enum in the source of the OpenAPI documents of Kubernetes');
  return enums;
}

/**
 * @param place - what a type at this node is called
 * @param reference - the name of a type that is referred to
 */
function reduce(types, given, place, reference) {
  const node = given.allOf?.length === 1 ? { ...given, ...given.allOf[0] } : given;
  if (node.$ref !== undefined) return reference(node.$ref.split('/').at(-1));
  const keywords = Object.fromEntries(kept.flatMap((name) => (name in node ? [[name, node[name]]] : [])));
  if (node['x-kubernetes-int-or-string']) return types.nameOf(keywords);
  const below = (child, name) => reduce(types, child, `${place}.${name}`, reference);
  if (node.type === 'array') {
    const keys = node['x-kubernetes-list-map-keys'];
    const list = keys ? { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys } : {};
    return { type: 'array', items: reduce(types, node.items, place, reference), ...list, ...keywords };
  }
  if (node.properties !== undefined) {
    const properties = Object.fromEntries(
      Object.keys(node.properties)
        .sort()
        .map((name) => [name, below(node.properties[name], name)]),
    );
    const required = node.required ? { required: [...node.required].sort() } : {};
    return types.add(place, { type: 'object', properties, ...required, ...keywords });
  }
  if (node.additionalProperties) return { type: 'object', additionalProperties: below(node.additionalProperties, '*') };
  if (node.type === 'object') return 'open';
  const format = formats.includes(node.format) ? { format: node.format } : {};
  return types.nameOf({ ...(node.type ? { type: node.type } : {}), ...format, ...keywords });
}

/** Names that the reduced schema uses: `core.v1.PodSpec`. */
const shortName = (name) => name.replace(/^io\.k8s\.(api|apimachinery\.pkg\.apis)\./, '');

function kubernetesKindsOf(types, folder) {
  const enums = enumsOf(readFileSync(path.join(folder, 'pkg/generated/openapi/zz_generated.openapi.go'), 'utf8'));
  const kinds = {};
  for (const [kind, [file, type]] of Object.entries(kubernetesKinds)) {
    const document = JSON.parse(readFileSync(path.join(folder, `api/openapi-spec/v3/${file}_openapi.json`), 'utf8'));
    const schemas = document.components.schemas;
    const done = new Map(Object.entries(kubernetesScalars));
    const reference = (name) => {
      if (!done.has(name)) done.set(name, reduce(types, withEnums(name, schemas[name], enums), shortName(name), reference));
      return done.get(name);
    };
    const { status: _status, ...properties } = schemas[type].properties;
    kinds[kind] = reduce(
      types,
      { ...schemas[type], properties: { ...properties, status: { type: 'object' } } },
      shortName(type),
      reference,
    );
  }
  return kinds;
}

function withEnums(type, schema, enums) {
  const properties = Object.entries(schema.properties ?? {}).map(([name, node]) => {
    const values = enums.get(`${type}.${name}`);
    if (values === undefined) return [name, node];
    return [name, node.type === 'array' ? { ...node, items: { ...node.items, enum: values } } : { ...node, enum: values }];
  });
  return properties.length > 0 ? { ...schema, properties: Object.fromEntries(properties) } : schema;
}

function providerKindsOf(types, crds) {
  const kinds = {};
  for (const text of crds) {
    const { spec } = parse(text);
    const version = spec.versions.find(({ name }) => name === providerVersion);
    const { metadata: _metadata, status: _status, ...properties } = version.schema.openAPIV3Schema.properties;
    const reference = (name) => shortName(name);
    const metadata = { $ref: 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' };
    const { kind } = spec.names;
    kinds[`${spec.group}/${providerVersion}/${kind}`] = reduce(
      types,
      { ...version.schema.openAPIV3Schema, properties: { ...properties, metadata, status: { type: 'object' } } },
      kind,
      reference,
    );
  }
  return kinds;
}

/**
 * The text of the generated module.
 *
 * @param kubernetes - folder of the module k8s.io/kubernetes
 * @param crds - texts of the provider's CRDs, one each
 */
export function schemaModule(head, kubernetes, crds) {
  const types = new Types();
  const kinds = { ...kubernetesKindsOf(types, kubernetes), ...providerKindsOf(types, crds) };
  const line = ([name, text]) => `  ${JSON.stringify(name)}: ${text},\n`;
  return [
    head,
    "import type { CompactNode } from './check-schema.js';\n\n",
    'export const schemaKinds = {\n',
    ...Object.entries(kinds).map(([kind, type]) => line([kind, JSON.stringify(type)])),
    '} as const;\n\nexport const schemaTypes: Readonly<Record<string, CompactNode>> = {\n',
    ...types.entries.map(line),
    '};\n',
  ].join('');
}
