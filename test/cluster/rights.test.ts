import { describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { covers, grantText, grantsTo, holdersOf, includes, rightTexts, rightsOf, subjectText } from './support/rbac.js';
import type { PolicyRule, Subject } from './support/rbac.js';

const account = { namespace: 'ours', name: 'controller' };
const role = (kind: string, name: string, rules: readonly PolicyRule[], namespace?: string): Manifest => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind,
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  ...({ rules } as object),
});
const binding = (of: Manifest, subjects: readonly Subject[], namespace = of.metadata.namespace): Manifest => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
  metadata: { name: of.metadata.name, ...(namespace === undefined ? {} : { namespace }) },
  ...({ roleRef: { kind: of.kind, name: of.metadata.name }, subjects } as object),
});
const ours: Subject = { kind: 'ServiceAccount', ...account };

describe('rules', () => {
  test('are taken apart into single rights: verb, resource with its group, name', () => {
    const rules = [
      { verbs: ['get', 'list'], apiGroups: ['', 'core.orka.ai'], resources: ['tasks', 'tasks/status'] },
      { verbs: ['get'], apiGroups: [''], resources: ['secrets'], resourceNames: ['one', 'two'] },
      { verbs: ['get'], nonResourceURLs: ['/healthz'] },
    ];
    expect(rightTexts(rightsOf(rules))).toEqual([
      'get /healthz',
      'get core.orka.ai/tasks',
      'get core.orka.ai/tasks/status',
      'get secrets one',
      'get secrets two',
      'get tasks',
      'get tasks/status',
      'list core.orka.ai/tasks',
      'list core.orka.ai/tasks/status',
      'list tasks',
      'list tasks/status',
    ]);
  });

  test('mean the same whichever rule a right stands in', () => {
    const [one, two] = [['get'], ['list']].map((verbs) => ({ verbs, apiGroups: [''], resources: ['pods'] }));
    const both = { verbs: ['list', 'get', 'get'], apiGroups: [''], resources: ['pods'] };
    expect(rightTexts(rightsOf([one!, two!]))).toEqual(rightTexts(rightsOf([both])));
  });
});

describe('what objects grant to an account', () => {
  const pods = [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }];
  const here = role('Role', 'reader', pods, 'a');
  const everywhere = role('ClusterRole', 'reader', pods);

  test('holds where the binding stands, for a ClusterRole as well', () => {
    const objects = [here, everywhere, binding(here, [ours]), binding(everywhere, [ours], 'b'), binding(everywhere, [ours])];
    expect(grantsTo(objects, account).map(grantText)).toEqual(['a: get pods', 'b: get pods', 'everywhere: get pods']);
  });

  test('is nothing without a binding, without its role, or for another account', () => {
    const other = { ...ours, namespace: 'other' };
    expect(grantsTo([here, everywhere], account)).toEqual([]);
    expect(grantsTo([binding(here, [ours])], account)).toEqual([]);
    expect(grantsTo([here, binding(here, [other])], account)).toEqual([]);
  });
});

describe('a grant covers a request', () => {
  const grant = { verb: 'get', resource: 'secrets', namespace: 'a' };
  const target = { verb: 'get', resource: 'secrets', namespace: 'a', name: 'one' };

  test('of its verb and resource in its namespace', () => {
    expect(covers(grant, target)).toBe(true);
    for (const other of [{ verb: 'list' }, { resource: 'secrets/status' }, { namespace: 'b' }, { namespace: '' }])
      expect(covers(grant, { ...target, ...other })).toBe(false);
    expect(covers({ ...grant, namespace: '' }, target)).toBe(true);
  });

  test('for its one name, if it has one', () => {
    expect(covers({ ...grant, name: 'one' }, target)).toBe(true);
    expect(covers({ ...grant, name: 'two' }, target)).toBe(false);
    expect(covers({ ...grant, name: 'one' }, { ...target, name: '' })).toBe(false);
  });
});

describe('who may write something', () => {
  const wanted = { group: 'core.orka.ai', resource: 'classes', namespace: 'a', verbs: ['create', 'patch'] };
  const held = (verbs: readonly string[], apiGroups: readonly string[], resources: readonly string[]) => {
    const of = role('ClusterRole', 'some', [{ verbs, apiGroups, resources }]);
    return holdersOf([of, binding(of, [ours])], wanted).flatMap((holder) => holder.verbs);
  };

  test('is found by name and by wildcard, and only for that very resource', () => {
    expect(held(['patch', 'get'], ['core.orka.ai'], ['classes'])).toEqual(['patch']);
    expect(held(['*'], ['*'], ['*'])).toEqual(['create', 'patch']);
    expect(held(['*'], ['*'], ['classes/status'])).toEqual([]);
    expect(held(['*'], ['apps'], ['classes'])).toEqual([]);
    expect(held(['get'], ['*'], ['*'])).toEqual([]);
  });

  test('in one namespace is not asked of bindings in another', () => {
    const of = role('ClusterRole', 'edit', [{ verbs: ['create'], apiGroups: ['*'], resources: ['*'] }]);
    const team: Subject = { kind: 'Group', name: 'team' };
    const holders = [binding(of, [ours], 'b'), binding(of, [team], 'a')];
    expect(holdersOf([of, ...holders], wanted)).toEqual([{ subject: team, role: 'ClusterRole edit', verbs: ['create'] }]);
  });
});

test('an account is meant by its name and by each group that it is in', () => {
  const user = { kind: 'User', name: 'system:serviceaccount:ours:controller' };
  const groups = ['system:authenticated', 'system:serviceaccounts', 'system:serviceaccounts:ours'].map((name) => ({
    kind: 'Group',
    name,
  }));
  for (const subject of [ours, user, ...groups]) expect([subjectText(subject), includes(subject, account)]).toContain(true);
  const others: Subject[] = [
    { ...ours, name: 'default' },
    { ...ours, namespace: 'other' },
    { kind: 'User', name: 'controller' },
    { kind: 'Group', name: 'system:masters' },
    { kind: 'Group', name: 'system:serviceaccounts:other' },
  ];
  expect(others.filter((subject) => includes(subject, account))).toEqual([]);
});
