import { describe, expect, test } from '@jest/globals';

import { agentKind, apiVersion, crd, kinds, runtimePoolClassKind, runtimePoolKind, taskKind } from '../../src/api/index.js';
import type { Kind } from '../../src/api/index.js';
import { defaulted } from '../../src/api/defaults.js';
import type { StructuralNode } from '../../src/api/structural.js';

interface Definition {
  readonly metadata: {
    readonly name: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly labels?: unknown;
  };
  readonly spec: {
    readonly group: string;
    readonly scope: string;
    readonly names: Readonly<Record<string, unknown>>;
    readonly versions: readonly [
      {
        readonly name: string;
        readonly additionalPrinterColumns: readonly {
          readonly name: string;
          readonly type: string;
          readonly priority?: number;
          readonly jsonPath: string;
        }[];
        readonly schema: { readonly openAPIV3Schema: StructuralNode };
        readonly subresources: unknown;
      },
    ];
  };
}

const definition = (kind: Kind<unknown>) => crd(kind) as unknown as Definition;
const version = (kind: Kind<unknown>) => definition(kind).spec.versions[0];
const root = (kind: Kind<unknown>) => version(kind).schema.openAPIV3Schema;

function nodes(node: StructuralNode, path = ''): readonly (readonly [string, StructuralNode])[] {
  return [
    [path, node],
    ...Object.entries(node.properties ?? {}).flatMap(([name, member]) => nodes(member, `${path}.${name}`)),
    ...(node.items ? nodes(node.items, `${path}[]`) : []),
    ...(node.additionalProperties ? nodes(node.additionalProperties, `${path}{}`) : []),
  ];
}

describe.each(kinds)('the CRD of $kind', (kind) => {
  test('is JSON and nothing else', () => {
    expect(crd(kind)).toEqual(JSON.parse(JSON.stringify(crd(kind))));
    expect(nodes(root(kind)).flatMap(([, node]) => Object.getOwnPropertySymbols(node))).toEqual([]);
  });

  test('is the same each time', () => {
    expect(JSON.stringify(crd(kind))).toBe(JSON.stringify(crd(kind)));
  });

  test('gives every node a type, or says why it has none', () => {
    const untyped = nodes(root(kind)).filter(
      ([, node]) => !node.type && !node['x-kubernetes-int-or-string'] && !node['x-kubernetes-preserve-unknown-fields'],
    );
    expect(untyped.map(([path]) => path)).toEqual([]);
  });

  test('uses only what a structural schema may say', () => {
    const allowed =
      /^(description|type|format|nullable|default|enum|pattern|m(in|ax)(Length|imum|Properties|Items)|required|properties|additionalProperties|items|x-kubernetes-(int-or-string|list-map-keys|list-type|preserve-unknown-fields|validations))$/;
    const others = nodes(root(kind)).flatMap(([path, node]) =>
      Object.keys(node)
        .filter((keyword) => !allowed.test(keyword))
        .map((keyword) => `${path} ${keyword}`),
    );
    expect(others).toEqual([]);
  });

  test('never has members of its own and members alike in one node', () => {
    expect(nodes(root(kind)).filter(([, node]) => node.properties && node.additionalProperties)).toEqual([]);
  });

  test('gives each rule a message, and blames members that exist', () => {
    for (const [path, node] of nodes(root(kind))) {
      const members = ['', ...Object.keys(node.properties ?? {}).map((name) => `.${name}`)];
      for (const { rule, message, fieldPath } of node['x-kubernetes-validations'] ?? []) {
        expect([path, message]).toEqual([path, expect.stringMatching(/\S/)]);
        expect([path, rule, members.includes(fieldPath ?? '')]).toEqual([path, rule, true]);
      }
    }
  });

  test('asks no rule about a transition inside a list without keys', () => {
    const transitions = (node: StructuralNode) =>
      (node['x-kubernetes-validations'] ?? []).filter(({ rule }) => rule.includes('oldSelf'));
    const lists = nodes(root(kind)).filter(
      ([, { type, 'x-kubernetes-list-type': listType }]) => type === 'array' && listType !== 'map',
    );
    expect(lists.flatMap(([, list]) => nodes(list)).flatMap(([, node]) => transitions(node))).toEqual([]);
  });

  test('names no member that CEL would have to escape in a rule', () => {
    const reserved =
      /self\.(?:\w+\.)*(namespace|package|loop|import|const|var|let|if|else|for|while|in|as|void|break|continue|function|return)\b/;
    expect(
      nodes(root(kind)).flatMap(([, node]) => (node['x-kubernetes-validations'] ?? []).filter(({ rule }) => reserved.test(rule))),
    ).toEqual([]);
  });

  test('requires only members that it has, and requires the keys of its lists', () => {
    for (const [path, node] of nodes(root(kind))) {
      expect([path, (node.required ?? []).filter((name) => !node.properties?.[name])]).toEqual([path, []]);
      for (const key of node['x-kubernetes-list-map-keys'] ?? [])
        expect([path, node.items?.required]).toEqual([path, expect.arrayContaining([key])]);
    }
  });

  test('has defaults that are complete, so that the stored default is the default', () => {
    for (const [, node] of nodes(root(kind)))
      if (node.default !== undefined) expect(defaulted(node, node.default)).toEqual(node.default);
  });

  test('leaves apiVersion, kind and metadata to the API server', () => {
    expect(root(kind).properties).toMatchObject({ apiVersion: { type: 'string' }, kind: { type: 'string' } });
    expect(root(kind).properties?.['metadata']).toEqual({ type: 'object' });
    expect(root(kind).required).toEqual(['spec']);
  });

  test('is namespaced, served and stored in one version, with a status subresource and without labels', () => {
    expect(definition(kind)).toMatchObject({
      metadata: { name: `${kind.plural}.core.orka.ai` },
      spec: {
        group: 'core.orka.ai',
        scope: 'Namespaced',
        versions: [{ name: 'v1alpha1', served: true, storage: true, subresources: { status: {} } }],
      },
    });
    expect(definition(kind).metadata).not.toHaveProperty('labels');
  });
});

describe('the names', () => {
  test.each([
    [taskKind, { kind: 'Task', listKind: 'TaskList', plural: 'tasks', singular: 'task' }],
    [agentKind, { kind: 'Agent', listKind: 'AgentList', plural: 'agents', singular: 'agent' }],
    [
      runtimePoolKind,
      {
        kind: 'RuntimePool',
        listKind: 'RuntimePoolList',
        plural: 'runtimepools',
        singular: 'runtimepool',
        shortNames: ['rtpool'],
      },
    ],
    [
      runtimePoolClassKind,
      {
        kind: 'RuntimePoolClass',
        listKind: 'RuntimePoolClassList',
        plural: 'runtimepoolclasses',
        singular: 'runtimepoolclass',
        shortNames: ['rtpc'],
      },
    ],
  ] as const)('of $kind', (kind, names) => {
    expect(definition(kind).spec.names).toEqual(names);
  });

  test('apiVersion is group and version', () => {
    expect(apiVersion(taskKind)).toBe('core.orka.ai/v1alpha1');
  });
});

describe('the columns', () => {
  test.each([
    [taskKind, 'Type Phase Priority Age (Agent) (Pool) (Started) (Duration) Message'],
    [agentKind, 'Provider Model Age'],
    [runtimePoolKind, 'Lifecycle Admission Desired Current Sessions Prompts Age (Task) Message'],
    [runtimePoolClassKind, 'Provider Class Ready Reason Age'],
  ] as const)('of $kind, those of -o wide in brackets', (kind, columns) => {
    expect(
      version(kind)
        .additionalPrinterColumns.map(({ name, priority }) => (priority === 1 ? `(${name})` : name))
        .join(' '),
    ).toBe(columns);
  });
});

test('the CRD of Task says which session cut-off it has, and no other does', () => {
  expect(kinds.map((kind) => definition(kind).metadata.annotations)).toEqual([
    { 'gateway.orka.ai/session-cutoff-schema': 'v1' },
    undefined,
    undefined,
    undefined,
  ]);
});

test('what a gate of Task and Agent refuses is not pruned before it gets there', () => {
  expect(Object.keys(root(taskKind).properties?.['spec']?.properties ?? {})).toEqual(
    expect.arrayContaining([
      'image',
      'command',
      'args',
      'env',
      'secretRef',
      'resources',
      'transaction',
      'requestedBy',
      'priorTaskRef',
      'retryPolicy',
      'schedule',
      'webhookURL',
    ]),
  );
  expect(Object.keys(root(agentKind).properties?.['spec']?.properties ?? {})).toEqual(
    expect.arrayContaining(['providerRef', 'tools', 'skills', 'resources', 'execution', 'coordination', 'session', 'rateLimit']),
  );
});
