import { expect, test } from '@jest/globals';
import { podView } from '../../../src/controller/pool/pod-view.js';
import type { JsonObject } from '../../../src/lib/json.js';
import { pod, runningStatus } from '../../support/pool-observation.js';

const view = (status: JsonObject, metadata: JsonObject = {}) =>
  podView({ ...pod.live, metadata: { ...pod.live.metadata, ...metadata }, status });
const running = runningStatus('10.0.0.7');

test('a running Pod with an address may be an instance, whether it is ready or not', () => {
  expect(view(running)).toMatchObject({ address: '10.0.0.7', ready: true, deleting: false, finished: false });
  expect(view({ ...running, conditions: [] })).toMatchObject({ address: '10.0.0.7', ready: false });
});

test('a Pod that is being deleted is neither ready nor an instance', () => {
  expect(view(running, { deletionTimestamp: '2030-01-01T00:00:00Z' })).toMatchObject({
    address: undefined,
    ready: false,
    deleting: true,
  });
});

test.each(['Failed', 'Succeeded'])('a Pod in phase %s is finished and no instance', (phase) => {
  expect(view({ ...running, phase })).toMatchObject({ address: undefined, ready: false, finished: true });
});

test('a Pod without a status is not an instance yet', () => {
  expect(view({})).toMatchObject({ address: undefined, ready: false, finished: false, containerId: undefined });
});

test.each([
  ['IPv4 first', ['10.0.0.7', 'fd00::7']],
  ['IPv6 first', ['fd00::7', '10.0.0.7']],
])('a Pod of two families is asked at its first address: %s', (_, addresses) => {
  const [podIP = ''] = addresses;
  expect(view({ ...running, podIP, podIPs: addresses.map((ip) => ({ ip })) }).address).toBe(podIP);
});

test('an empty address is none', () => {
  expect(view({ ...running, podIP: '' }).address).toBeUndefined();
});

test.each([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'CreateContainerConfigError',
  'RunContainerError',
  'CrashLoopBackOff',
])('a container that waits because of %s needs somebody', (reason) => {
  expect(view({ phase: 'Pending', containerStatuses: [{ state: { waiting: { reason } } }] }).waiting).toBe(reason);
});

test('a container that is being created needs nobody', () => {
  const containerStatuses = [{ state: { waiting: { reason: 'ContainerCreating' } } }];
  expect(view({ phase: 'Pending', containerStatuses }).waiting).toBeUndefined();
});

test('a Pod that cannot be scheduled says why', () => {
  const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes' }];
  expect(view({ phase: 'Pending', conditions }).unschedulable).toEqual({ reason: 'Unschedulable', message: '0/1 nodes' });
});

test('a container that admission added and that does not start needs somebody, an init container too', () => {
  const proxy = { name: 'proxy', state: { waiting: { reason: 'ImagePullBackOff' } } };
  expect(view({ phase: 'Pending', containerStatuses: [{ name: 'runtime', state: {} }, proxy] }).waiting).toBe('ImagePullBackOff');
  expect(view({ phase: 'Pending', initContainerStatuses: [proxy] }).waiting).toBe('ImagePullBackOff');
});

test('only the container of the supervisor is told from the next', () => {
  const containerStatuses = [
    { name: 'proxy', containerID: 'containerd://9' },
    ...(running['containerStatuses'] as readonly JsonObject[]),
  ];
  expect(view({ ...running, containerStatuses }).containerId).toBe('containerd://1');
});

test('the id of the container tells one start from the next', () => {
  expect(view(running).containerId).toBe('containerd://1');
});

test('the node of a Pod is known once it has one', () => {
  expect([podView({ ...pod.live, spec: { nodeName: 'node-1' } }).node, pod.node]).toEqual(['node-1', undefined]);
});

test.each<[string, boolean, object[]]>([
  ['nothing', false, []],
  ['other taints', false, [{ key: 'example.com/gpu', operator: 'Exists' }]],
  ['every taint', true, [{ operator: 'Exists' }]],
  ['that a node is cordoned', true, [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' }]],
  ['that a node is cordoned, by its empty value', true, [{ key: 'node.kubernetes.io/unschedulable' }]],
  ['another effect', false, [{ operator: 'Exists', effect: 'NoExecute' }]],
])('a Pod that tolerates %s stays on a cordoned node: %s', (_, stays, tolerations) => {
  expect(podView({ ...pod.live, spec: { tolerations: tolerations as JsonObject[] } }).toleratesCordon).toBe(stays);
});
