import { describe, expect, test } from '@jest/globals';
import { Testing } from 'cdk8s';
import type { ApiObjectMetadata } from 'cdk8s';
import type { Construct } from 'constructs';
import type { Manifest } from '../../src/api/index.js';
import { policyRules, providerRules } from '../../src/constructs/rules/registry.js';
import { switchableRules } from '../../src/constructs/rules/switch.js';
import type { SwitchableRule } from '../../src/constructs/rules/switch.js';
import { Sandbox } from '../../src/constructs/sandbox.js';
import { SandboxClaim } from '../../src/constructs/sandbox-claim.js';
import { SandboxTemplate } from '../../src/constructs/sandbox-template.js';
import { SandboxWarmPool } from '../../src/constructs/sandbox-warm-pool.js';
import { manifestsOf } from '../../src/render/app.js';
import { fromManifest } from '../support/from-manifest.js';
import { policyCases } from '../support/policy-cases.js';
import { ruleCases } from '../support/rule-cases.js';

const cases = ruleCases('registry.example/agent:1');

/** All constructs of manifests; references are constructs where the other object is there. */
function build(scope: Construct, manifests: readonly Manifest[], allow: readonly SwitchableRule[]): void {
  const templates = new Map<string, SandboxTemplate>();
  const pools = new Map<string, SandboxWarmPool>();
  manifests.forEach((manifest, index) => {
    const id = `${index}`;
    const { name } = manifest.metadata;
    const metadata = manifest.metadata as ApiObjectMetadata;
    if (manifest.kind === 'SandboxWarmPool') {
      const { sandboxTemplateRef, ...spec } = manifest['spec'] as { sandboxTemplateRef: { name: string }; replicas: number };
      const template = templates.get(sandboxTemplateRef.name) ?? SandboxTemplate.fromName(sandboxTemplateRef.name);
      pools.set(name, new SandboxWarmPool(scope, id, { metadata, template, ...spec }));
    } else if (manifest.kind === 'SandboxClaim') {
      const { warmPoolRef, ...spec } = manifest['spec'] as { warmPoolRef: { name: string } };
      const warmPool = pools.get(warmPoolRef.name) ?? SandboxWarmPool.fromName(warmPoolRef.name);
      new SandboxClaim(scope, id, { metadata, warmPool, ...spec, allow });
    } else {
      const construct = fromManifest(scope, id, manifest, allow);
      if (construct instanceof SandboxTemplate) templates.set(name, construct);
    }
  });
}

describe('an object is refused at synth, with construct path, field, what was found and what is allowed, that has', () => {
  test.each(cases.map(({ rule, what, objects }) => [what, rule, objects] as const))('%s (%s)', (_, rule, objects) => {
    const chart = Testing.chart();
    const allow = switchableRules.filter((id) => id !== rule);
    const render = () => {
      build(chart, objects, allow);
      manifestsOf(chart);
    };
    expect(render).toThrow(new RegExp(`^test/\\d.*: found .*, allowed: .*\\(${rule}: `));
  });
});

describe('a rule of policy refuses, unless it is named, ', () => {
  test.each(policyCases.map(({ rule, what, object }) => [what, rule, object] as const))('%s (%s)', (_, rule, object) => {
    const others = switchableRules.filter((id) => id !== rule);
    expect(() => fromManifest(Testing.chart(), 'x', object, others)).toThrow(
      new RegExp(`^test/x: .*: found .*, allowed: .*\\(${rule}: `),
    );
    expect(fromManifest(Testing.chart(), 'x', object, switchableRules).resource.manifest()).toEqual(object);
  });
});

test('there is a case for each rule of policy', () => {
  expect([...new Set(policyCases.map(({ rule }) => rule))].sort()).toEqual(policyRules.map(({ id }) => id));
});

test('there is a case for each rule of the provider', () => {
  expect([...new Set(cases.map(({ rule }) => rule))].sort()).toEqual(providerRules.map(({ id }) => id));
});

test('the rules that may be switched off are those of policy, and those that do not hold everywhere', () => {
  const conditional = providerRules.filter(({ unless }) => unless !== undefined);
  expect([...policyRules, ...conditional].map(({ id }) => id).sort()).toEqual([...switchableRules]);
});

test('a rule of the provider cannot be switched off', () => {
  const allow = ['pod/containers'] as unknown as readonly SwitchableRule[];
  expect(() => Sandbox.fromManifest(Testing.chart(), 'x', cases[4]!.objects[0]!, { allow })).toThrow(
    /^test\/x: allow: found "pod\/containers", allowed: field:<path of an unknown field>, claim\/name, /,
  );
});

test('the registry asks an object of the kind that a rule is about, and no other', () => {
  const rule = providerRules.find(({ id }) => id === 'warm-pool/replicas')!;
  const pool: Manifest = {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxWarmPool',
    metadata: { name: 'a' },
    spec: { replicas: -1, sandboxTemplateRef: { name: 'a' } },
  };
  expect(rule.check(pool)).toEqual({ field: 'spec.replicas', found: -1, allowed: 'a whole number from 0' });
  expect(rule.check({ ...pool, kind: 'Sandbox' })).toBeUndefined();
});
