import { describe, expect, test } from '@jest/globals';
import { checkSchema } from '../../src/constructs/check-schema.js';
import type { Json } from '../../src/lib/json.js';

const of = (apiVersion: string, kind: string, spec: Json) => ({ apiVersion, kind, metadata: { name: 'a' }, spec });
const deployment = (pod: Json): readonly unknown[] =>
  checkSchema('apps/v1/Deployment', of('apps/v1', 'Deployment', { selector: {}, template: { spec: pod } }));
const containers = [{ name: 'a', image: 'x' }];
const at = 'spec.template.spec';

test('an object as its kind has it breaks nothing', () => {
  expect(
    deployment({ containers, tolerations: [{ operator: 'Exists' }], terminationGracePeriodSeconds: 5, hostUsers: false }),
  ).toEqual([]);
});

describe('a schema of Kubernetes refuses, with field, what was found and what is allowed,', () => {
  test.each<readonly [string, Json, object]>([
    ['another type', { containers, tolerations: 'all' }, { field: `${at}.tolerations`, found: 'all', allowed: 'a list' }],
    ['null', { containers, affinity: null }, { field: `${at}.affinity`, found: null, allowed: 'an object' }],
    ['no member that is required', {}, { field: `${at}.containers`, found: undefined, rule: 'required' }],
    [
      'a word that is none of an enum',
      { containers, preemptionPolicy: 'x' },
      { field: `${at}.preemptionPolicy`, allowed: 'Never or PreemptLowerPriority' },
    ],
    [
      'a number that 32 bits cannot hold',
      { containers: [{ name: 'a', livenessProbe: { periodSeconds: 2 ** 31 } }] },
      { field: `${at}.containers[0].livenessProbe.periodSeconds`, rule: 'format' },
    ],
    [
      'a quantity that is none',
      { containers, volumes: [{ name: 'a', emptyDir: { sizeLimit: '1 GB' } }] },
      { field: `${at}.volumes[0].emptyDir.sizeLimit`, allowed: 'a quantity such as 250m, 4Gi or 2' },
    ],
    [
      'an item twice that is known by its name',
      { containers: [...containers, ...containers] },
      { field: `${at}.containers[1]`, allowed: 'one item for each name' },
    ],
  ])('%s', (_, pod, violation) => {
    expect(deployment(pod)).toEqual([expect.objectContaining(violation)]);
  });

  test('an unknown member, with the one that was meant', () => {
    expect(deployment({ containers: [{ name: 'a', imagePulPolicy: 'Always' }] })).toEqual([
      expect.objectContaining({
        field: `${at}.containers[0].imagePulPolicy`,
        allowed: expect.stringMatching(
          /^no such field \(did you mean imagePullPolicy\?\); spec\.template\.spec\.containers\[0\] has /,
        ),
      }),
    ]);
  });

  test('an unknown member like no other, with those that are known', () => {
    expect(checkSchema('policy/v1/PodDisruptionBudget', of('policy/v1', 'PodDisruptionBudget', { somethingElse: 1 }))).toEqual([
      expect.objectContaining({
        allowed: 'no such field; spec has maxUnavailable, minAvailable, selector and unhealthyPodEvictionPolicy',
      }),
    ]);
  });
});

test('a schema of the provider has the Pod that the provider knows, and its own enums', () => {
  const template = (spec: Json) =>
    checkSchema(
      'extensions.agents.x-k8s.io/v1beta1/SandboxTemplate',
      of('extensions.agents.x-k8s.io/v1beta1', 'SandboxTemplate', spec),
    ).map(({ field }) => field);
  expect(template({ podTemplate: { spec: { containers, hostnameOverride: 'x' } } })).toEqual([]);
  expect(template({ podTemplate: { spec: { containers, tomorrow: 'x' } } })).toEqual(['spec.podTemplate.spec.tomorrow']);
  expect(template({ podTemplate: { spec: { containers } }, networkPolicyManagement: 'None' })).toEqual([
    'spec.networkPolicyManagement',
  ]);
});
