/**
 * Reports from users of the libraries below and beside us, in their smallest form. What right looks like is the sentence; {@link told} says
 * which report each one answers, here or elsewhere.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { App, Chart, JsonPatch, Testing } from 'cdk8s';
import { NetworkPolicy } from '../../src/constructs/network-policy.js';
import { Resource } from '../../src/constructs/resource.js';
import { manifestsOf, renderApp } from '../../src/render/app.js';
import { toYaml } from '../../src/render/yaml.js';

const metadata = { name: 'n' };
const resource = (kind: string, body: object = {}) =>
  new Resource(Testing.chart(), 'r', { apiVersion: 'v1', kind, metadata, ...body });

describe('a patch', () => {
  test('adds a structure with whole numbers where text may stand too', () => {
    const object = resource('Deployment', { spec: {} });
    object.addJsonPatch(JsonPatch.add('/spec/strategy', { rollingUpdate: { maxSurge: 1, maxUnavailable: '25%' } }));
    expect(object.manifest()['spec']).toEqual({ strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: '25%' } } });
  });

  test('adds a member that no schema of ours knows', () => {
    const object = resource('Namespace');
    object.addJsonPatch(JsonPatch.add('/spec', { test: 1 }));
    expect(object.manifest()['spec']).toEqual({ test: 1 });
  });

  test('is applied once, however often the object is rendered and in whatever way', () => {
    const chart = new Chart(new App(), 'c');
    const object = new Resource(chart, 'r', { apiVersion: 'v1', kind: 'X', metadata, spec: { l: ['a'] } });
    object.addJsonPatch(JsonPatch.add('/spec/l/-', 'b'));
    const spec = { l: ['a', 'b'] };
    expect([object.toJson(), object.toJson(), ...manifestsOf(chart), ...manifestsOf(chart)]).toEqual(
      Array<unknown>(4).fill(expect.objectContaining({ spec })),
    );
    expect(Testing.synth(chart)).toEqual([expect.objectContaining({ spec })]);
  });

  test('outside of a list, or of a member that is not there, is refused instead of making one', () => {
    const object = resource('X', { spec: { l: ['a'] } });
    for (const operation of [
      JsonPatch.add('/spec/l/7', 'b'),
      JsonPatch.replace('/spec/x', 1),
      JsonPatch.remove('/spec/x'),
      JsonPatch.test('/spec/l/0', 'b'),
      JsonPatch.move('/spec/x', '/spec/y'),
    ])
      expect(() => object.addJsonPatch(operation)).toThrow(expect.objectContaining({ code: 'patch-failed' }));
    expect(object.manifest()['spec']).toEqual({ l: ['a'] });
  });
});

describe('a NetworkPolicy', () => {
  const peer = { podSelector: { matchLabels: { app: 'b' } } };
  const policy = (ingress: readonly unknown[]) =>
    new NetworkPolicy(Testing.chart(), 'p', { metadata, podSelector: {}, ingress: ingress as never });

  test('for all ports of a protocol names the protocol and no port', () => {
    const rule = { from: [peer], ports: [{ protocol: 'TCP' }] };
    expect(policy([rule]).resource.manifest()['spec']).toMatchObject({ ingress: [rule] });
  });

  test.each([
    ['with port 0, which would mean all ports', { from: [peer], ports: [{ port: 0 }] }],
    ['with an empty port, which means all ports', { from: [peer], ports: [{}] }],
    ['whose peers are spelled _from, and which is open to everyone then', { _from: [peer], ports: [{ port: 80 }] }],
  ])('%s is refused', (_, rule) => {
    expect(() => policy([rule])).toThrow(expect.objectContaining({ code: 'rule-violated' }));
  });
});

test('empty objects and lists stay, in YAML too', () => {
  const object = resource('X', { spec: { emptyDir: {}, egress: [], nested: [{}, []] } });
  expect(toYaml(object.manifest())).toContain('spec:\n  egress: []\n  emptyDir: {}\n  nested:\n    - {}\n    - []\n');
});

test('members and values that other tools take for their own are ordinary', () => {
  const data = JSON.parse('{"constructor": "a", "__proto__": "b", "resolve": "c", "toJSON": "d"}') as object;
  const chart = new Chart(new App(), 'c');
  new Resource(chart, 'r', { apiVersion: 'v1', kind: 'X', metadata, data });
  expect(renderApp(chart.node.root as App)[0]?.text).toContain(
    'data:\n  "__proto__": b\n  constructor: a\n  resolve: c\n  toJSON: d\n',
  );
});

test('a function is refused instead of being run', () => {
  const resolve = () => 'run';
  expect(() => resource('X', { spec: { resolve } })).toThrow('spec.resolve');
});

/** Report, file, and a part of the sentence of its test. */
const told: readonly (readonly [report: string, file: string, sentence: string])[] = [
  ['core#72, cdk8s#2172', 'constructs/reports', 'adds a structure with whole numbers where text may stand too'],
  ['core#2571, cdk8s#1883, #2163', 'constructs/reports', 'adds a member that no schema of ours knows'],
  ['core#954', 'constructs/reports', 'is applied once, however often the object is rendered'],
  ['core#1230, cdk8s#325, core#2565, cdk8s#1416', 'render/yaml', 'kubectl reads every torture string and structure as it was'],
  ['core#731, cdk8s#1558, #1618, #2170, plus#4239', 'render/order', 'have no namespace of the chart on kinds without namespaces'],
  ['cdk8s#2496', 'render/order', 'have both objects of one name in two namespaces'],
  ['cdk8s#3270', 'render/order', 'that are cut to the same text without a hash are refused'],
  ['cdk8s#334, #392', 'render/order', 'are cut to 63 characters and told apart by their hash, always the same'],
  ['cdk8s#334, #392: names of our own', 'domain/names', 'a child has the golden name'],
  ['cdk8s#200, #201', 'constructs/reports', 'empty objects and lists stay'],
  ['cdk8s#328', 'render/order', 'what an object depends on comes before it'],
  ['cdk8s#857, cli#210, core#783', 'cli/synth', 'cdk8s synth writes the same bytes'],
  ['self-dependency', 'render/order', 'an object that depends on itself'],
  ['cycle', 'render/order', 'a cycle behind and before objects that are not a part of it'],
  ['exponential and quadratic order', 'render/order', 'twenty waves of five objects, each after all of the wave before'],
  ['two objects of one identity', 'render/order', 'two objects of one identity'],
  ['ids that look like numbers', 'render/order', 'those with a whole number as id before their siblings'],
  ['half a patch', 'constructs/kinds', 'refuses a patch that does not apply, and stays as it was'],
  ['lenient patches', 'constructs/reports', 'is refused instead of making one'],
  ['cli#3797, #696, cdk8s#2156, #885; cli#1042', 'imports', 'all kinds of one group can be imported'],
  ['cli#943, cdk8s#2155', 'render/yaml', 'documents of a stream are separated by three dashes'],
  ['aws/aws-cdk#25331', 'cli/synth', 'refused with exit code 2, one message and nothing written:'],
  ['cdk8s#2146', 'cli/synth', 'an output folder that belongs to someone else'],
  ['cdk8s#2269', 'cli/synth', 'only the paths of changed files are on stdout'],
  ['plus#4395', 'constructs/reports', 'for all ports of a protocol names the protocol and no port'],
  ['port 0', 'constructs/reports', 'with port 0, which would mean all ports'],
  ['cdk8s#2238', 'constructs/install', 'the policy, the Services and the Deployment mean the same Pods'],
  ['BetterDB-inc/monitor#279', 'constructs/reports', 'whose peers are spelled _from'],
];

test.each(told)('%s has its test in %s', (_, file, sentence) => {
  expect(readFileSync(new URL(`../${file}.test.ts`, import.meta.url), 'utf8')).toContain(sentence);
});
