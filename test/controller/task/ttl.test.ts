import { expect, test } from '@jest/globals';
import { perform } from '../../../src/controller/task/act.js';
import type { TaskActOptions, TaskWork } from '../../../src/controller/task/act.js';
import { createTaskMemory } from '../../../src/controller/task/memory.js';
import type { KubeEvent } from '../../../src/kube/events.js';
import type { KubeRequest } from '../../../src/kube/transport.js';
import { boundTask, seen, worldOf } from '../../support/controlled-task.js';
import { fakeClock } from '../../support/fake-clock.js';
import { memoryClient, refusal } from '../../support/memory-client.js';

const { task } = boundTask();
const effect = { do: 'delete-task', because: 'it finished 60 s ago' } as const;

function bench(answer: () => void = () => undefined) {
  const client = memoryClient();
  client.put(task);
  const [requests, events]: [KubeRequest[], KubeEvent[]] = [[], []];
  client.before = (request) => {
    requests.push(request);
    answer();
  };
  const options = { client, world: worldOf(client), clock: fakeClock(), record: (event: KubeEvent) => events.push(event) };
  const signal = new AbortController().signal;
  const work: TaskWork = { options: options as unknown as TaskActOptions, o: seen(task), memory: createTaskMemory(), signal };
  return { requests, events, run: () => perform(work, effect) };
}

test('a finished Task is deleted by UID and resourceVersion, with all that it owns', async () => {
  const { requests, events, run } = bench();
  await run();
  expect(requests.map(({ method, body }) => [method, body])).toEqual([
    [
      'DELETE',
      {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy: 'Background',
        preconditions: { uid: task.metadata.uid, resourceVersion: task.metadata.resourceVersion },
      },
    ],
  ]);
  expect(events.map(({ reason, note }) => [reason, note])).toEqual([['TaskExpired', 'it finished 60 s ago']]);
});

test('a Task that was written since is a conflict, and nothing is told', async () => {
  const { events, run } = bench(() => {
    throw refusal('conflict');
  });
  await expect(run()).rejects.toMatchObject({ code: 'conflict' });
  expect(events).toEqual([]);
});

test('a Task that is gone already needs nothing', async () => {
  const { events, run } = bench(() => {
    throw refusal('not-found');
  });
  await run();
  expect(events).toEqual([]);
});
