/** Messages on Tasks of namespaces that this installation does not serve. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { UnservedTasks } from '../../src/controller/unserved-tasks.js';
import { createClient } from '../../src/kube/client.js';
import { createTransport } from '../../src/kube/transport.js';
import type { Transport } from '../../src/kube/transport.js';
import type { JsonObject } from '../../src/lib/json.js';
import { eventually } from '../support/eventually.js';
import { fakeApi, reply } from '../support/fake-api.js';
import type { FakeApi } from '../support/fake-api.js';
import { fakeClock } from '../support/fake-clock.js';
import type { FakeClock } from '../support/fake-clock.js';
import { fakeObjects } from '../support/fake-objects.js';

const everywhere = '/apis/core.orka.ai/v1alpha1/tasks';
const minute = 60_000;

let clock: FakeClock;
let api: FakeApi;
let transport: Transport;
let unserved: UnservedTasks;
let patches: { readonly path: string; readonly body: JsonObject }[];
let errors: unknown[];
let objects: ReturnType<typeof fakeObjects>;
beforeEach(async () => {
  clock = fakeClock();
  patches = [];
  errors = [];
  objects = fakeObjects();
  api = await fakeApi((request, response) => {
    if (request.method !== 'PATCH') {
      objects.answer(request, response);
      return;
    }
    patches.push({ path: request.path, body: JSON.parse(request.body) as JsonObject });
    reply(response, 200, { metadata: { name: 'any', resourceVersion: '1' } });
  });
  transport = createTransport({ server: api.url, credentials: () => ({}) });
});
afterEach(async () => {
  await unserved.stop();
  expect(errors).toEqual([]);
  transport.close();
  await api.close();
});

function task(name: string, age: number, more: { readonly metadata?: JsonObject; readonly status?: JsonObject } = {}): Manifest {
  const creationTimestamp = new Date(clock.now() - age).toISOString().replace(/\.\d+Z$/, 'Z');
  return objects.put(everywhere, {
    apiVersion: 'core.orka.ai/v1alpha1',
    kind: 'Task',
    metadata: { name, namespace: 'team-x', creationTimestamp, ...more.metadata },
    ...(more.status ? { status: more.status } : {}),
  });
}

async function look(): Promise<void> {
  unserved = new UnservedTasks(createClient(transport), {
    served: ['team-a', 'team-b'],
    controllerNamespace: 'orka-system',
    manager: 'm',
    onError: (error) => errors.push(error),
    clock,
  });
  await eventually(() => objects.watches() === 1);
  await eventually(() => clock.timers() === 1);
  await clock.advance(25_000);
}

test('a Task without a phase is given the reason and the key of platform.yaml after a minute, for the version that was seen', async () => {
  const { metadata } = task('old', 2 * minute);
  await look();
  await eventually(() => patches.length > 0);
  expect(patches[0]).toEqual({
    path: '/apis/core.orka.ai/v1alpha1/namespaces/team-x/tasks/old/status',
    body: {
      status: {
        message:
          'the controller in orka-system does not serve namespace team-x; ' +
          'the operator of the platform adds it to namespaces.tasks in platform.yaml and applies it',
      },
      metadata: { resourceVersion: metadata.resourceVersion },
    },
  });
});

test('served namespaces are not watched a second time', async () => {
  await look();
  const lists = api.received.filter(({ path }) => path === everywhere);
  expect(lists.map(({ query }) => query.get('fieldSelector'))).toEqual(
    lists.map(() => 'metadata.namespace!=team-a,metadata.namespace!=team-b'),
  );
});

test.each([
  ['is younger than a minute', 10_000, {}],
  ['has a phase', 2 * minute, { status: { phase: 'Pending' } }],
  ['has a message', 2 * minute, { status: { message: 'of another controller' } }],
  ['is being executed', 2 * minute, { status: { execution: { attempt: 1 } } }],
  ['is being deleted', 2 * minute, { metadata: { deletionTimestamp: '2030-01-01T00:00:00Z' } }],
])('a Task that %s is left alone', async (_, age, more) => {
  task('one', age, more);
  task('silent', 2 * minute);
  await look();
  await eventually(() => patches.length > 0);
  expect(new Set(patches.map(({ path }) => path.split('/').at(-2)))).toEqual(new Set(['silent']));
});
