import { expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { createClassReconciler } from '../../src/controller/class-status.js';
import { createClasses } from '../../src/controller/classes.js';
import type { KubeEvent } from '../../src/kube/events.js';
import { classDigest, compile } from '../../src/render/compile.js';
import { fakeClock } from '../support/fake-clock.js';
import { worldOf } from '../support/controlled-task.js';
import { memoryClient } from '../support/memory-client.js';
import { poolClass } from '../support/objects.js';

const digest = classDigest(compile(poolClass()));
const other = `sha256:${'0'.repeat(64)}` as const;

function classOf(approvedDigests: readonly `sha256:${string}`[]): Manifest {
  return {
    apiVersion: 'core.orka.ai/v1alpha1',
    kind: 'RuntimePoolClass',
    metadata: { name: 'codex', namespace: 'orka-system', uid: 'class-uid', generation: 1, resourceVersion: '1' },
    spec: poolClass({ approvedDigests: [...approvedDigests] }),
  };
}

function bench(stored: Manifest) {
  const client = memoryClient();
  client.put(stored);
  const world = worldOf(client);
  const events: KubeEvent[] = [];
  const reconcile = createClassReconciler({
    client,
    world,
    classes: createClasses(() => world.classes.list()),
    manager: 'm',
    clock: fakeClock(),
    record: (event) => events.push(event),
  });
  return { client, events, look: () => reconcile('orka-system/codex', new AbortController().signal) };
}

test('a class that drifts gets one Warning event that names its digest', async () => {
  const { events, look } = bench(classOf([other]));
  await look();
  await look();
  expect(events).toEqual([
    expect.objectContaining({ type: 'Warning', reason: 'Drifted', action: 'Compile', note: expect.stringContaining(digest) }),
  ]);
});

test('a class that is approved gets one Normal event', async () => {
  const { events, look } = bench(classOf([digest]));
  await look();
  await look();
  expect(events.map(({ type, reason }) => [type, reason])).toEqual([['Normal', 'Approved']]);
});
