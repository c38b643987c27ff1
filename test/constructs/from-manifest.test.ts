import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { App, Chart, JsonPatch, Testing } from 'cdk8s';
import type { Manifest } from '../../src/api/index.js';
import { RuntimePool } from '../../src/constructs/runtime-pool.js';
import { RuntimePoolClass } from '../../src/constructs/runtime-pool-class.js';
import { SandboxClaim } from '../../src/constructs/sandbox-claim.js';
import type { Json } from '../../src/lib/json.js';
import { manifestsOf } from '../../src/render/app.js';
import { fromManifest } from '../support/from-manifest.js';
import { poolClass } from '../support/objects.js';
import { claim, podTemplate, pool, sandbox, template } from '../support/rule-cases.js';

const image = 'registry.example/agent:1';
const box = (metadata: object = {}, rest: object = {}): Manifest => {
  const plain = sandbox('box', { podTemplate: podTemplate(image) });
  return { ...plain, ...rest, metadata: { ...plain.metadata, ...metadata } };
};
const written = (manifest: Manifest) => fromManifest(Testing.chart(), 'x', manifest).resource;

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
    ['with fields that nobody knows', sandbox('box', { podTemplate: podTemplate(image, { tomorrow: { a: [null] } }), later: 1 })],
  ])('%s', (_, manifest) => {
    expect(written(manifest).manifest()).toEqual(manifest);
  });

  test('whatever JSON stands in it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (inSpec, beside) => {
        const manifest = { ...sandbox('box', { podTemplate: podTemplate(image), any: inSpec }), beside: beside as Json };
        expect(JSON.stringify(written(manifest).manifest())).toBe(JSON.stringify(manifest));
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
