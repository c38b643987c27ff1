/** A Pod that fits on no node beside the sandbox of an idle pool. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Task } from '../../src/api/index.js';
import { labelKeys } from '../../src/domain/labels.js';
import { quantityValue } from '../../src/lib/quantity.js';
import { cluster, kubectl } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import { applyObjects, example, plainTaskLike, readPool, taskLike, taskOver } from './support/first-task.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';

const { namespace = '' } = example.task.metadata;
const [idle, next] = ['room-idle', 'room-next'] as const;

// The room of a cluster with other nodes and other work is not known.
(cluster.node ? describe : describe.skip)('a Pod that finds no node while another pool is idle', () => {
  let product: Installed;
  let tasks: readonly Task[] = [];
  const poolOf = (task: Task | undefined) => task?.metadata.labels?.[labelKeys.taskPool] ?? '';
  const over = (name: string) => taskOver(kubectl, { name, namespace }, 180);

  beforeAll(async () => {
    const allocatable = await kubectl(['get', 'nodes', '-o', 'jsonpath={.items[0].status.allocatable.cpu}']);
    // Two of them are more than the node has.
    const cpu = `${Math.round((Number(quantityValue(allocatable.trim())) / 1e9) * 600)}m`;
    product = await installed({ gates: true, requests: { cpu, memory: '128Mi' } });
    await applyObjects(kubectl, [example.agent]);
    const after = stopwatch('room for a Pod');
    await explained(product, async () => {
      await applyObjects(kubectl, [plainTaskLike(idle, { prompt: 'Reply exactly: ROOM_IDLE' })]);
      const first = await over(idle);
      after('a pool is idle');
      await applyObjects(kubectl, [taskLike(next, { prompt: 'Reply exactly: ROOM_NEXT' })]);
      tasks = [first, await over(next)];
      after('the other Task is over');
    });
  }, 600_000);
  afterAll(async () => {
    await product.remove();
  }, 600_000);

  test('gets the room of that pool, long before its idle time is over, and its Task succeeds', async () => {
    expect(tasks.map(({ status }) => status?.phase)).toEqual(['Succeeded', 'Succeeded']);
    expect((await readPool(kubectl, { name: poolOf(tasks[0]), namespace }))?.spec.desiredReplicas).toBe(0);
  });

  test('is named in an event of the pool that ended for it', async () => {
    const events = JSON.parse(await kubectl(['get', 'events.events.k8s.io', '-n', namespace, '-o', 'json'])) as {
      readonly items: readonly {
        readonly reason: string;
        readonly note: string;
        readonly regarding: { readonly name: string };
      }[];
    };
    const told = events.items.filter(({ reason, regarding }) => reason === 'RoomNeeded' && regarding.name === poolOf(tasks[0]));
    expect(told.map(({ note }) => note)).toEqual([expect.stringContaining(`${namespace}/${poolOf(tasks[1])}`)]);
  });
});
