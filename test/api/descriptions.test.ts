import { describe, expect, test } from '@jest/globals';
import { crd, kinds } from '../../src/api/index.js';
import type { StructuralNode } from '../../src/api/structural.js';
import { descriptions, keyOf } from '../../src/api/descriptions/index.js';
import { valueAt } from '../../src/lib/json.js';

/** Bytes that `kubectl apply` without `--server-side` can put into its annotation, less what else stands in annotations. */
const mostBytes = 262_144 - 2_048;

interface Field {
  readonly path: string;
  readonly node: StructuralNode;
}

/** Every field of ours. What the API server knows by itself has its own descriptions. */
function fieldsOf(path: string, node: StructuralNode): readonly Field[] {
  const own = Object.entries(node.properties ?? {})
    .filter(([name]) => path.includes('.') || !['apiVersion', 'kind', 'metadata'].includes(name))
    .flatMap(([name, member]) => [{ path: `${path}.${name}`, node: member }, ...fieldsOf(`${path}.${name}`, member)]);
  return [
    ...own,
    ...(node.items ? fieldsOf(`${path}[]`, node.items) : []),
    ...(node.additionalProperties ? fieldsOf(`${path}.*`, node.additionalProperties) : []),
  ];
}

const schemaOf = (kind: (typeof kinds)[number]): StructuralNode =>
  valueAt(crd(kind), ['spec', 'versions', '0', 'schema', 'openAPIV3Schema']) as unknown as StructuralNode;
const fields = kinds.flatMap((kind) => fieldsOf(kind.kind, schemaOf(kind)));

describe('kubectl explain', () => {
  test('says of every kind and field what it is, in sentences', () => {
    const mute = [...kinds.map((kind) => ({ path: kind.kind, node: schemaOf(kind) })), ...fields].filter(
      ({ node }) => !/^(?!Absent)[A-Z].{7,}\.$/s.test(node.description ?? ''),
    );
    expect(mute.map(({ path, node }) => `${path}: ${node.description ?? ''}`)).toEqual([]);
  });

  test('says the default that the API server writes', () => {
    const silent = fields.filter(
      ({ node }) => node.default !== undefined && !node.description?.includes(`Default: ${JSON.stringify(node.default)}.`),
    );
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  test.each([
    [/Seconds$/, /[Ss]econds/],
    [/Bytes$/, /[Bb]ytes/],
    [/Tokens$|\.contextWindow$|modelLimits\./, /[Tt]okens/],
    [/(?:Time|At)$/, /[Tt]ime|End|run of/],
    [/(?:timeout|initialDelay|Latency|ttlAfterLastTask)$/, /[Dd]uration|[Tt]ime|30m0s/],
  ])('says the unit of %s', (names, unit) => {
    const silent = fields.filter(({ path, node }) => names.test(path) && !unit.test(node.description ?? ''));
    expect(silent.map(({ path, node }) => `${path}: ${node.description ?? ''}`)).toEqual([]);
  });
});

test('a CRD with its descriptions can be applied by kubectl without --server-side', () => {
  expect(kinds.filter((kind) => JSON.stringify(crd(kind)).length > mostBytes).map(({ kind }) => kind)).toEqual([]);
});

test('every sentence of the table is about a field', () => {
  const paths = [...kinds.map(({ kind }) => kind), ...fields.map(({ path }) => path)];
  const used = new Set(paths.map(keyOf));
  expect(Object.keys(descriptions).filter((key) => !used.has(key))).toEqual([]);
});
