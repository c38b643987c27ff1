/**
 * A pool on a provider that is newer than the pinned v1.0.3. No newer provider runs here: the fake does what the notes of its releases say, and each
 * test names the release.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../../src/api/index.js';
import { fakePoolCluster } from '../../support/fake-pool-cluster.js';
import type { FakePoolCluster } from '../../support/fake-pool-cluster.js';

let cluster: FakePoolCluster;
beforeEach(async () => {
  cluster = await fakePoolCluster();
});
afterEach(() => cluster.close());

const lifecycle = () => cluster.pool()?.status?.lifecycle;
const message = () => cluster.pool()?.status?.message ?? '';
const isServing = () => cluster.pool()?.status?.admissionState === 'Accepting';
const claimsDeleted = () => cluster.sent.filter(({ method, kind }) => method === 'DELETE' && kind === 'SandboxClaim').length;
const claimsCreated = () => cluster.sent.filter(({ method, kind }) => method === 'POST' && kind === 'SandboxClaim').length;

test('a claim that is InvalidConfiguration is said, kept and not made again (v1.0.4)', async () => {
  cluster.provider.starts = false;
  cluster.provider.ready = { status: 'False', reason: 'InvalidConfiguration', message: 'the Service name is too long' };
  const controller = cluster.start();
  await cluster.run(controller, () => lifecycle() === 'Degraded');
  const end = cluster.clock.now() + 600_000;
  await cluster.run(controller, () => cluster.clock.now() > end, 200);
  expect(message()).toContain('InvalidConfiguration: the Service name is too long');
  expect([claimsCreated(), claimsDeleted()]).toEqual([1, 0]);
});

test('a reason of tomorrow is shown, waited for as long as a cold start may take, and recycled with a back-off', async () => {
  cluster.provider.starts = false;
  cluster.provider.ready = { status: 'False', reason: 'WaitingForTheMoon', message: 'it is not up' };
  const controller = cluster.start();
  const began = cluster.clock.now();
  await cluster.run(controller, () => message().includes('WaitingForTheMoon: it is not up'));
  expect(claimsDeleted()).toBe(0);
  const deletedAt: number[] = [];
  await cluster.run(
    controller,
    () => {
      if (claimsDeleted() > deletedAt.length) deletedAt.push(cluster.clock.now());
      return deletedAt.length === 3;
    },
    400,
  );
  const [first = 0, second = 0, third = 0] = deletedAt;
  expect(first - began).toBeGreaterThanOrEqual(120_000);
  expect(message()).toContain('WaitingForTheMoon: it is not up');
  // Each start has its whole time, and each pause before it is longer.
  expect(second - first).toBeGreaterThanOrEqual(120_000);
  expect(third - second).toBeGreaterThan(second - first);
});

test('a reason of tomorrow that passes leaves nothing behind', async () => {
  cluster.provider.starts = false;
  cluster.provider.ready = { status: 'False', reason: 'WaitingForTheMoon', message: 'it is not up' };
  const controller = cluster.start();
  await cluster.run(controller, () => message().includes('WaitingForTheMoon'));
  cluster.provider.starts = true;
  cluster.provider.ready = { status: 'True', reason: 'DependenciesReady', message: 'Pod is Ready' };
  await cluster.run(controller, isServing);
  expect([message().includes('WaitingForTheMoon'), claimsCreated(), claimsDeleted()]).toEqual([false, 1, 0]);
});

describe('a Sandbox that is not Ready while its Pod terminates (v1.0.11)', () => {
  const terminating = (pod: Manifest): Manifest => ({
    ...pod,
    metadata: { ...pod.metadata, deletionTimestamp: new Date(cluster.clock.now()).toISOString() },
  });

  test.each(['DependenciesNotReady', 'PodTerminating', 'PodFailed', 'PodSucceeded'])(
    'is neither refused nor given up: %s',
    async (reason) => {
      const controller = cluster.start();
      await cluster.run(controller, isServing);
      const [pod] = cluster.objects('Pod');
      cluster.provider.ready = { status: 'False', reason, message: 'Pod is terminating' };
      cluster.put(terminating(pod!));
      await cluster.run(controller, () => lifecycle() === 'Degraded');
      expect([claimsCreated(), claimsDeleted(), cluster.pool()?.status?.activeInstance?.podUID]).toEqual([
        1,
        0,
        pod!.metadata.uid,
      ]);
    },
  );

  test('takes no work away from an instance whose Pod is Ready', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    cluster.provider.ready = { status: 'False', reason: 'PodTerminating', message: 'Pod is terminating' };
    await cluster.run(controller);
    expect([isServing(), claimsDeleted()]).toEqual([true, 0]);
  });
});

test('lifecycle events of a Sandbox change nothing (v1.0.4)', async () => {
  const controller = cluster.start();
  await cluster.run(controller, isServing);
  const before = cluster.sent.length;
  const [sandbox] = cluster.objects('Sandbox');
  for (const reason of ['SandboxCreated', 'SandboxReady', 'SandboxTerminating'])
    cluster.put({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `event-${reason.toLowerCase()}`, namespace: 'orka-runtimes', labels: { ...sandbox!.metadata.labels } },
      reason,
      involvedObject: {
        kind: 'Sandbox',
        name: sandbox!.metadata.name,
        namespace: 'orka-runtimes',
        uid: sandbox!.metadata.uid ?? '',
      },
    });
  await cluster.run(controller);
  expect([isServing(), cluster.sent.length - before]).toEqual([true, 0]);
});

test('a field that the installed provider does not serve is named before anything exists, and needs no restart once it is served', async () => {
  cluster.unserved.push('SandboxWarmPool.spec.readinessGracePeriodSeconds is not served');
  const controller = cluster.start();
  await cluster.run(controller, () => lifecycle() === 'Degraded');
  expect(message()).toContain('SandboxWarmPool.spec.readinessGracePeriodSeconds is not served');
  expect(cluster.sent.filter(({ method }) => method === 'POST').map(({ kind }) => kind)).toEqual([]);
  cluster.unserved.pop();
  await cluster.run(controller, isServing);
});
