import { expect, test } from '@jest/globals';
import type { Manifest } from '../../../src/api/index.js';
import { differs } from '../../../src/controller/pool/differs.js';
import type { JsonObject } from '../../../src/lib/json.js';
import { rendered, stored } from '../../support/pool-observation.js';

const of = (kind: string, name = ''): Manifest => {
  const found = [...rendered.isolation, ...rendered.workload].find(
    (one) => one.kind === kind && one.metadata.name.endsWith(name),
  );
  if (!found) throw new Error(`${kind} ${name}`);
  return found;
};
/** As the server keeps it, with some members of its spec changed. */
const live = (wanted: Manifest, spec: JsonObject = {}, metadata: JsonObject = {}): Manifest =>
  stored({ ...wanted, spec: { ...(wanted['spec'] as JsonObject), ...spec } }, 'uid-1', metadata);

test.each(
  [...rendered.isolation, ...rendered.workload].map((wanted) => ({ wanted, name: `${wanted.kind} ${wanted.metadata.name}` })),
)('an object that is as it was rendered does not differ: $name', ({ wanted }) => {
  expect(differs(wanted, live(wanted))).toBe(false);
});

test('what the server writes into a Service is no difference', () => {
  const service = of('Service');
  const { publishNotReadyAddresses: _notKept, ...spec } = service['spec'] as JsonObject;
  const kept = {
    ...spec,
    sessionAffinity: 'None',
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
    internalTrafficPolicy: 'Cluster',
  };
  expect(differs(service, stored({ ...service, spec: kept }, 'uid-1'))).toBe(false);
});

test('a Service that publishes addresses that are not ready differs', () => {
  const service = of('Service');
  expect(differs(service, live(service, { publishNotReadyAddresses: true }))).toBe(true);
});

test('a rule that someone added to a policy without rules opens it, and differs', () => {
  const denyAll = of('NetworkPolicy', 'deny-all');
  expect(differs(denyAll, live(denyAll, { egress: [{}] }))).toBe(true);
  expect(differs(denyAll, live(denyAll, { ingress: [{}] }))).toBe(true);
});

test('lists without members that the server does not keep are no difference', () => {
  const denyAll = of('NetworkPolicy', 'deny-all');
  const { ingress: _ingress, egress: _egress, ...spec } = denyAll['spec'] as JsonObject;
  expect(differs(denyAll, stored({ ...denyAll, spec }, 'uid-1'))).toBe(false);
});

test('the protocol that the provider adds to a port of the Pod is no difference', () => {
  const pod = (port: JsonObject) => ({ podTemplate: { spec: { containers: [{ name: 'runtime', ports: [port] }] } } });
  const template = { ...of('SandboxTemplate'), spec: pod({ containerPort: 9000 }) };
  expect(differs(template, live(template, pod({ containerPort: 9000, protocol: 'TCP' })))).toBe(false);
  expect(differs(template, live(template, pod({ containerPort: 9000, protocol: 'UDP' })))).toBe(true);
});

test('a peer that someone added to a rule differs', () => {
  const policy = of('NetworkPolicy', 'dns-egress');
  const [rule] = (policy['spec'] as { egress: { to: JsonObject[] }[] }).egress;
  expect(differs(policy, live(policy, { egress: [{ ...rule, to: [...(rule?.to ?? []), { podSelector: {} }] }] }))).toBe(true);
});

test('a policy type that is missing differs', () => {
  const denyAll = of('NetworkPolicy', 'deny-all');
  expect(differs(denyAll, live(denyAll, { policyTypes: ['Ingress'] }))).toBe(true);
});

test('a container that someone added to a template differs', () => {
  const template = of('SandboxTemplate');
  const { podTemplate } = template['spec'] as { podTemplate: { spec: { containers: JsonObject[] } } };
  const containers = [...podTemplate.spec.containers, { name: 'sidecar', image: 'sidecar' }];
  const changed = { podTemplate: { ...podTemplate, spec: { ...podTemplate.spec, containers } } };
  expect(differs(template, live(template, changed))).toBe(true);
});

test('a member of a spec that was not rendered differs', () => {
  const template = of('SandboxTemplate');
  expect(differs(template, live(template, { service: true }))).toBe(true);
});

test('the update strategy that the server gives a warm pool is no difference, another number of members is', () => {
  const warmPool = of('SandboxWarmPool');
  expect(differs(warmPool, live(warmPool, { updateStrategy: { type: 'Recreate' } }))).toBe(false);
  expect(differs(warmPool, live(warmPool, { replicas: 3 }))).toBe(true);
});

test('a label that was changed differs, and one that someone added does not', () => {
  const service = of('Service');
  const labels = service.metadata.labels ?? {};
  expect(differs(service, live(service, {}, { labels: { ...labels, 'app.kubernetes.io/name': 'another' } }))).toBe(true);
  expect(differs(service, live(service, {}, { labels: { ...labels, team: 'a' } }))).toBe(false);
});

test.each([
  ['nodeName', 'evil'],
  ['priority', 1_000_000],
  ['priorityClassName', 'system-node-critical'],
  ['preemptionPolicy', 'Never'],
  ['overhead', { cpu: '1' }],
  ['imagePullSecrets', [{ name: 'evil' }]],
  ['tolerations', [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' }]],
] as const)('a Deployment whose Pods are to have another %s differs, though admission may give it to a Pod', (member, value) => {
  const spec = { containers: [{ name: 'runtime', image: 'runtime' }] };
  const deployment: Manifest = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'pool' },
    spec: { template: { metadata: {}, spec } },
  };
  expect(differs(deployment, live(deployment))).toBe(false);
  expect(differs(deployment, live(deployment, { template: { metadata: {}, spec: { ...spec, [member]: value } } }))).toBe(true);
});
