import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { App, Chart, JsonPatch, Testing } from 'cdk8s';
import type { Manifest } from '../../src/api/index.js';
import type { Allowance } from '../../src/constructs/rules/switch.js';
import { RuntimePool } from '../../src/constructs/runtime-pool.js';
import { RuntimePoolClass } from '../../src/constructs/runtime-pool-class.js';
import { SandboxClaim } from '../../src/constructs/sandbox-claim.js';
import { SandboxTemplate } from '../../src/constructs/sandbox-template.js';
import { SandboxWarmPool } from '../../src/constructs/sandbox-warm-pool.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { manifestsOf } from '../../src/render/app.js';
import { fromManifest } from '../support/from-manifest.js';
import { poolClass } from '../support/objects.js';
import { claim, podTemplate, pool, sandbox, template } from '../support/rule-cases.js';

const image = 'registry.example/agent:1';
const box = (metadata: object = {}, rest: object = {}): Manifest => {
  const plain = sandbox('box', { podTemplate: podTemplate(image) });
  return { ...plain, ...rest, metadata: { ...plain.metadata, ...metadata } };
};
const written = (manifest: Manifest, ...allow: readonly Allowance[]) =>
  fromManifest(Testing.chart(), 'x', manifest, allow).resource;

describe('a manifest comes out as it went in', () => {
  test.each<[string, Manifest]>([
    ['with empty labels and annotations', box({ labels: {}, annotations: {} })],
    [
      'with members of metadata that only a server writes',
      box({ creationTimestamp: null, managedFields: [{ fieldsV1: { 'f:a': {} } }] }),
    ],
    ['with finalizers and a status', box({ finalizers: ['example.com/a'] }, { status: { conditions: [] } })],
    [
      'with empty lists and maps in its Pod',
      sandbox('box', { podTemplate: podTemplate(image, { tolerations: [], nodeSelector: {} }) }),
    ],
    ['with nulls, which the API server drops', sandbox('box', { podTemplate: podTemplate(image, { affinity: null }) })],
  ])('%s', (_, manifest) => {
    expect(written(manifest).manifest()).toEqual(manifest);
  });

  test('whatever JSON stands in fields that are let through', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (inSpec, beside) => {
        const manifest = { ...sandbox('box', { podTemplate: podTemplate(image), any: inSpec }), beside: beside as Json };
        const object = written(manifest, 'field:spec.any', 'field:beside').manifest();
        expect(JSON.stringify(object)).toBe(JSON.stringify(manifest));
      }),
    );
  });

  test('nothing of a template is filled in that the constructor would fill in', () => {
    const manifest = template('t', { podTemplate: podTemplate(image), networkPolicyManagement: 'Managed', networkPolicy: {} });
    expect(written(manifest).manifest()).toEqual(manifest);
  });

  test('a pool and a class of ours', () => {
    const scope = Testing.chart();
    const spec = poolClass({ approvedDigests: [`sha256:${'a'.repeat(64)}`] });
    const original = new RuntimePoolClass(scope, 'class', {
      metadata: { name: 'class', namespace: 'a' },
      spec,
    }).resource.manifest();
    expect(RuntimePoolClass.fromManifest(Testing.chart(), 'again', original).resource.manifest()).toEqual(original);
    const runtimePool = {
      apiVersion: 'core.orka.ai/v1alpha1',
      kind: 'RuntimePool',
      metadata: { name: 'pool', namespace: 'a' },
      spec: {},
    };
    expect(() => RuntimePool.fromManifest(Testing.chart(), 'pool', runtimePool)).toThrow(/^test\/pool: spec\.trustDomain/);
  });
});

test('the chart around a manifest gives it its namespace and labels, as it does to any object', () => {
  const chart = new Chart(new App(), 'c', { namespace: 'team', labels: { a: 'b' } });
  const { namespace: _namespace, ...metadata } = box().metadata;
  expect(fromManifest(chart, 'x', { ...box(), metadata }).resource.manifest().metadata).toEqual({
    name: 'box',
    namespace: 'team',
    labels: { a: 'b' },
  });
});

test('labels that are added afterwards are not lost', () => {
  const resource = written(box({ labels: {} }));
  resource.metadata.addLabel('a', 'b');
  expect(resource.manifest().metadata.labels).toEqual({ a: 'b' });
});

test('a patch of a manifest is checked by the same rules', () => {
  expect(() => written(box()).addJsonPatch(JsonPatch.replace('/spec/podTemplate/spec/containers', []))).toThrow(
    /pod\/containers/,
  );
});

describe('a manifest is refused, with construct path and field,', () => {
  test.each<[string, unknown, RegExp]>([
    [
      'of another version',
      { ...box(), apiVersion: 'agents.x-k8s.io/v1alpha1' },
      /^test\/x: apiVersion: found "agents.x-k8s.io\/v1alpha1"/,
    ],
    ['without a name', { ...box(), metadata: {} }, /^test\/x: metadata\.name: found nothing/],
    ['without a spec', { ...box(), spec: null }, /^test\/x: spec: found null/],
    [
      'with what JSON cannot hold',
      box({}, { spec: { podTemplate: podTemplate(image), at: new Date(0) } }),
      /^test\/x: spec\.at: found "Date"/,
    ],
    [
      'with a token that nobody named',
      sandbox('box', { podTemplate: podTemplate(image, { automountServiceAccountToken: true }) }),
      /pod\/service-account-token/,
    ],
  ])('%s', (_, manifest, message) => {
    expect(() => written(manifest as Manifest)).toThrow(message);
  });
});

test('a manifest of another kind is refused', () => {
  expect(() => SandboxClaim.fromManifest(Testing.chart(), 'x', pool('a'))).toThrow(
    'test/x: kind: found "SandboxWarmPool", allowed: SandboxClaim',
  );
});

test('what a manifest refers to by name is looked at where it is in the same tree, in whatever order', () => {
  const chart = Testing.chart();
  const allow = ['template/unmanaged-network'] as const;
  fromManifest(chart, 'claim', claim('a', { env: [{ name: 'A', value: '1' }] }), allow);
  fromManifest(chart, 'pool', pool('a'), allow);
  fromManifest(chart, 'template', template('a', { podTemplate: podTemplate(image) }), allow);
  expect(() => void Testing.synth(chart)).toThrow(/\[test\/claim\] spec\.env: found \["A"\]/);
  expect(() => manifestsOf(chart)).toThrow(
    /^test\/claim: .*spec\.env: found \["A"\], allowed: nothing: the template says Disallowed/,
  );
});

test('what a manifest refers to in another tree or namespace is not known, and not asked', () => {
  const chart = Testing.chart();
  fromManifest(chart, 'claim', claim('a', { env: [{ name: 'A', value: '1' }] }));
  fromManifest(chart, 'pool', { ...pool('a'), metadata: { name: 'a', namespace: 'elsewhere' } });
  expect(manifestsOf(chart)).toHaveLength(2);
});

test('other domains of labels can be named, as the administrator of the provider can', () => {
  const labelled = claim('a', { additionalPodMetadata: { labels: { 'team.example/a': 'b' } } });
  expect(() => SandboxClaim.fromManifest(Testing.chart(), 'x', labelled)).toThrow(/claim\/pod-labels/);
  const options = { allowedLabelDomains: ['team.example'] };
  expect(SandboxClaim.fromManifest(Testing.chart(), 'x', labelled, options).resource.manifest()).toEqual(labelled);
});

describe('a manifest is refused by path, with the field that was meant, that has', () => {
  const container = (member: object) => sandbox('box', { podTemplate: podTemplate(image, {}, member as JsonObject) });
  const at = 'spec\\.podTemplate\\.spec';
  test.each<[string, Manifest, string]>([
    [
      'a text for a flag',
      container({ securityContext: { privileged: 'true' } }),
      `${at}\\.containers\\[0\\]\\.securityContext\\.privileged: found "true", allowed: true or false \\(object/schema: `,
    ],
    ['a number for a text', container({ image: 1 }), `${at}\\.containers\\[0\\]\\.image: found 1, allowed: text`],
    ['an object for a list', container({ env: {} }), `${at}\\.containers\\[0\\]\\.env: found \\{\\}, allowed: a list`],
    [
      'a misspelled field of its Pod',
      sandbox('box', { podTemplate: podTemplate(image, { hostNetwrk: true }) }),
      `${at}\\.hostNetwrk: found true, allowed: no such field \\(did you mean hostNetwork\\?\\)`,
    ],
    [
      'a misspelled field of a pool',
      pool('a', 'a', { replica: 1 }),
      'spec\\.replica: found 1, allowed: no such field \\(did you mean replicas\\?\\)',
    ],
    ['a misspelled field of a claim', claim('a', { lifecyle: {} }), 'spec\\.lifecyle: found \\{\\}, .*did you mean lifecycle'],
    [
      'a misspelled field of a template',
      template('a', { podTemplate: podTemplate(image), networkPolicyManagment: 'Managed' }),
      'spec\\.networkPolicyManagment: found "Managed", .*did you mean networkPolicyManagement',
    ],
    ['a member beside its spec', { ...box(), spce: {} }, 'spce: found \\{\\}, .*did you mean spec'],
    ['an unknown member of metadata', box({ lables: {} }), 'metadata\\.lables: found \\{\\}, .*did you mean labels'],
  ])('%s', (_, manifest, message) => {
    expect(() => written(manifest, 'template/unmanaged-network')).toThrow(new RegExp(`^test/x: ${message}`));
  });

  test('an unknown field of a NetworkPolicy', () => {
    const policy = {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'a' },
      spec: { podSelector: {}, policyTypes: ['Ingress'], ingres: [] },
    };
    expect(() => written(policy)).toThrow(/^test\/x: spec\.ingres: found \[\], .*did you mean ingress/);
  });
});

describe('a field that this version does not know', () => {
  const newer = sandbox('box', { podTemplate: podTemplate(image, {}, { tomorrow: { a: [null] } }), later: 1 });

  test('is refused with the name that lets it through', () => {
    expect(() => written(newer)).toThrow(
      /spec\.podTemplate\.spec\.containers\[0\]\.tomorrow: .* allow: \['field:spec\.podTemplate\.spec\.containers\[0\]\.tomorrow'\]/,
    );
    expect(() => written(newer, 'field:spec.podTemplate.spec.containers[0].tomorrow')).toThrow(
      /spec\.later: .*allow: \['field:spec\.later'\]/,
    );
  });

  test('is rendered as it is when it is named', () => {
    expect(written(newer, 'field:spec.podTemplate.spec.containers[0].tomorrow', 'field:spec.later').manifest()).toEqual(newer);
    expect(written(newer, 'field:spec.podTemplate.spec.containers[*].tomorrow', 'field:spec.later').manifest()).toEqual(newer);
  });

  test('is let through alone', () => {
    const other = sandbox('box', { podTemplate: podTemplate(image), later: 1, sooner: 2 });
    expect(() => written(other, 'field:spec.later')).toThrow(/spec\.sooner/);
  });

  test('can be patched into a construct that names it', () => {
    const make = (...allow: readonly Allowance[]) =>
      new SandboxWarmPool(Testing.chart(), 'x', { metadata: { name: 'a' }, template: SandboxTemplate.fromName('a'), allow })
        .resource;
    const patch = JsonPatch.add('/spec/later', 1);
    expect(() => make().addJsonPatch(patch)).toThrow(/spec\.later/);
    const resource = make('field:spec.later');
    resource.addJsonPatch(patch);
    expect(resource.manifest()['spec']).toMatchObject({ later: 1 });
  });

  test('is not named by an empty path', () => {
    expect(() => written(box(), 'field:')).toThrow('test/x: allow: found "field:", allowed: field:<path of an unknown field>, ');
  });

  test('cannot let a value of a known field have another type', () => {
    const typed = sandbox('box', { podTemplate: podTemplate(image), service: 'true' });
    expect(() => written(typed, 'field:spec.service')).toThrow(/spec\.service: found "true"/);
  });

  test('may be a new word of a known field', () => {
    const word = sandbox('box', { podTemplate: podTemplate(image), operatingMode: 'Hibernated' });
    expect(() => written(word)).toThrow(/spec\.operatingMode: found "Hibernated"/);
    expect(written(word, 'field:spec.operatingMode').manifest()).toEqual(word);
  });
});

// Facts of agent-sandbox v1.0.12, which is newer than the pinned release.
describe('readinessGracePeriodSeconds of a warm pool', () => {
  const make = (readinessGracePeriodSeconds: number) =>
    new SandboxWarmPool(Testing.chart(), 'x', { template: SandboxTemplate.fromName('a'), readinessGracePeriodSeconds }).resource;

  test('is rendered by the construct, and comes out of a manifest as it went in', () => {
    expect(make(30).manifest()['spec']).toEqual({ sandboxTemplateRef: { name: 'a' }, readinessGracePeriodSeconds: 30 });
    const manifest = pool('a', 'a', { readinessGracePeriodSeconds: 600 });
    expect(written(manifest).manifest()).toEqual(manifest);
  });

  test.each([29, 0, -1, 30.5])('%s is refused', (seconds) => {
    expect(() => make(seconds)).toThrow(`spec.readinessGracePeriodSeconds: found ${seconds}, allowed: `);
  });

  test('is no text', () => {
    expect(() => written(pool('a', 'a', { readinessGracePeriodSeconds: '60' }))).toThrow(
      'spec.readinessGracePeriodSeconds: found "60", allowed: an integer',
    );
  });
});

// A fact of agent-sandbox v1.0.6, which is newer than the pinned release: a CEL rule of the whole Sandbox.
test('a Sandbox with a Service has a name of 63 characters at most', () => {
  const named = (length: number, service: boolean) => sandbox('a'.repeat(length), { podTemplate: podTemplate(image), service });
  expect(written(named(63, true)).name).toHaveLength(63);
  expect(written(named(64, false)).name).toHaveLength(64);
  expect(() => written(named(64, true))).toThrow(/metadata\.name: found "a{64}", .*\(sandbox\/service-name: /);
  expect(() => written(named(64, false)).addJsonPatch(JsonPatch.replace('/spec/service', true))).toThrow(/sandbox\/service-name/);
});
