import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { runController } from '../../src/controller/manager.js';
import type { ControllerSettings } from '../../src/controller/settings.js';
import { crd, kinds } from '../../src/api/index.js';
import type { JsonObject } from '../../src/lib/json.js';
import { valueAt } from '../../src/lib/json.js';
import { eventually, eventuallyAnswers } from '../support/eventually.js';
import { fakeApi, forbid, reply } from '../support/fake-api.js';
import type { FakeApi, Received } from '../support/fake-api.js';
import { fakeObjects } from '../support/fake-objects.js';
import type { FakeObjects } from '../support/fake-objects.js';
import { boundTask, inState } from '../support/controlled-task.js';
import { storedPool } from '../support/pool-observation.js';

const poolsIn = (namespace: string) => `/apis/core.orka.ai/v1alpha1/namespaces/${namespace}/runtimepools`;
const lease = '/apis/coordination.k8s.io/v1/namespaces/orka-system/leases';
const portOf = (api: FakeApi) => Number(new URL(api.url).port);

let api: FakeApi;
let objects: FakeObjects;
let running: Promise<number>;
let probePort: number;
/** Whether the server refuses a request for want of a right. */
let refuses: (request: Received) => boolean;

beforeEach(async () => {
  process.env['ORKA_LOG_LEVEL'] = 'error';
  objects = fakeObjects();
  api = await fakeApi((request, response) => {
    if (!refuses(request)) objects.answer(request, response);
    else forbid(response, [request.query.has('watch') ? 'watch' : 'list', 'runtimepools', 'core.orka.ai', 'team-a']);
  });
  // A port that was free a moment ago.
  const other = await fakeApi(() => undefined);
  probePort = portOf(other);
  await other.close();
});
afterEach(async () => {
  process.emit('SIGTERM');
  await running;
  // A controller that ended leaves no connection.
  await eventually(() => api.sockets.size === 0);
  await api.close();
  delete process.env['ORKA_LOG_LEVEL'];
});

function start(): void {
  const settings: ControllerSettings = {
    controllerNamespace: 'orka-system',
    taskNamespaces: ['team-a', 'team-b'],
    runtimeNamespace: 'orka-runtimes',
    apiPort: 9090,
    probePort,
    idlePoolTtl: 900_000,
    maxTasksPerNamespace: 0,
    taskTtlSeconds: -1,
    publisherNamespace: '',
    defaultProvider: '',
    forges: [],
    gates: { agentSandbox: true, workspaceDispatch: true },
    version: 'test',
  };
  running = runController(settings, { server: api.url, credentials: () => ({}) });
}

/** Puts a pool that no controller has touched. */
function putPool(namespace: string): void {
  const { metadata, ...pool } = storedPool();
  const { finalizers: _none, ...rest } = metadata;
  objects.put(poolsIn(namespace), { ...pool, metadata: { ...rest, namespace } });
}
/** Whether the controller took a pool of this namespace. That lasts: the pool itself, idle for long, is soon deleted. */
const isServed = (namespace: string) =>
  api.received.some(({ method, path }) => method === 'PATCH' && path.startsWith(`${poolsIn(namespace)}/`));
async function ask(path: string): Promise<string> {
  try {
    const answer = await fetch(`http://127.0.0.1:${probePort}${path}`);
    return `${answer.status} ${await answer.text()}`;
  } catch {
    return '';
  }
}

test('a process that stands by has the series of its build and of its leadership, at zero', async () => {
  refuses = () => false;
  const spec = { holderIdentity: 'another', leaseDurationSeconds: 15, renewTime: new Date().toISOString().replace('Z', '000Z') };
  const metadata = { name: 'orka-workspaces-controller', namespace: 'orka-system' };
  objects.put(lease, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec });
  start();
  const text = await eventuallyAnswers(async () => {
    const answer = await ask('/metrics');
    if (answer === '') throw new Error('no answer yet');
    return answer;
  });
  for (const series of [
    'leader_election_master_status{name="orka-workspaces-controller"} 0',
    `orka_workspaces_build_info{version="test",node="${process.version}"} 1`,
    'orka_workspaces_watch_reconnects_total{kind="Task"} 0',
    'workqueue_depth{name="task",controller="task"} 0',
  ])
    expect(text).toContain(series);
});

describe('a namespace whose pools may not be listed', () => {
  const right = 'list runtimepools.core.orka.ai in namespace team-a';

  test('keeps no other from being served, is reported, and is served once it may', async () => {
    let granted = false;
    refuses = ({ path }) => !granted && path === poolsIn('team-a');
    putPool('team-a');
    putPool('team-b');
    start();
    await eventually(() => isServed('team-b'));
    expect(isServed('team-a')).toBe(false);
    expect(await ask('/readyz')).toBe(`200 ok\nmay not ${right}\n`);
    const series = 'orka_workspaces_missing_rights{verb="list",resource="runtimepools.core.orka.ai",namespace="team-a"} 1';
    expect(await ask('/metrics')).toContain(series);
    await eventually(() => objects.list('/api/v1/namespaces/orka-system/events').length === 1);
    expect(objects.list('/api/v1/namespaces/orka-system/events')[0]).toMatchObject({
      reason: 'RightMissing',
      message: `the controller may not ${right}: apply the installation again`,
      involvedObject: { kind: 'Lease', name: 'orka-workspaces-controller' },
    });
    granted = true;
    await eventually(() => isServed('team-a'));
    expect(await ask('/readyz')).toBe('200 ok\n');
  });
});

describe('kinds of an older version', () => {
  const schemaOf = (kind: (typeof kinds)[number]): JsonObject =>
    valueAt(crd(kind), ['spec', 'versions', '0', 'schema', 'openAPIV3Schema']) as JsonObject;
  const published = (kind: (typeof kinds)[number], schema: JsonObject) => ({
    ...schema,
    'x-kubernetes-group-version-kind': [{ group: kind.group, version: kind.version, kind: kind.kind }],
  });
  /** Answers for the published schemas. */
  const publish = (change: (kind: string, schema: JsonObject) => JsonObject) => {
    const { answer } = objects;
    objects = {
      ...objects,
      answer: (request, response) => {
        if (!request.path.startsWith('/openapi/')) {
          answer(request, response);
          return;
        }
        const schemas = Object.fromEntries(kinds.map((kind) => [kind.kind, published(kind, change(kind.kind, schemaOf(kind)))]));
        reply(response, 200, { components: { schemas } });
      },
    };
  };

  test('are named on /readyz, which is not ready', async () => {
    refuses = () => false;
    publish((kind, schema) => {
      if (kind !== 'Task') return schema;
      const older = structuredClone(schema) as { properties: { status: { properties: Record<string, unknown> } } };
      delete older.properties.status.properties['executionOutcome'];
      return older as unknown as JsonObject;
    });
    start();
    await eventuallyAnswers(async () => {
      expect(await ask('/readyz')).toBe(
        '503 not ready\nthe CustomResourceDefinitions are of another version, apply those of this one: Task.status.executionOutcome is not served\n',
      );
    });
  });

  test('are nothing of this when they are as this controller has them', async () => {
    refuses = () => false;
    publish((_, schema) => schema);
    start();
    await eventuallyAnswers(async () => expect(await ask('/readyz')).toBe('200 ok\n'));
  });
});

test('a process that does not know yet what there is neither takes the Lease nor says that it is ready', async () => {
  refuses = () => false;
  let down = true;
  const answer = objects.answer;
  objects = {
    ...objects,
    answer: (request, response) => {
      if (down && request.path === poolsIn('team-a')) response.writeHead(503).end('{}');
      else answer(request, response);
    },
  };
  start();
  const tries = () => api.received.filter(({ path }) => path === poolsIn('team-a')).length;
  await eventually(() => tries() >= 4);
  expect([objects.list(lease), await ask('/readyz')]).toEqual([[], '503 not ready\n']);
  down = false;
  await eventually(() => objects.list(lease).length === 1);
});

test('without any epoch on record a process that can list neither pools nor Pods takes no Lease, and goes on trying', async () => {
  let granted = false;
  refuses = ({ path }) => !granted && (path === poolsIn('team-a') || path.endsWith('/orka-runtimes/pods'));
  start();
  const looks = () => api.received.filter(({ path }) => path.startsWith(lease)).length;
  await eventually(() => looks() >= 2);
  expect(objects.list(lease)).toEqual([]);
  granted = true;
  await eventually(() => objects.list(lease).length === 1);
});

test('a port of the probes that is taken ends the process before it asks the server for anything', async () => {
  refuses = () => false;
  const taken = await fakeApi(() => undefined);
  try {
    probePort = portOf(taken);
    start();
    await expect(running).rejects.toMatchObject({ code: 'port-unusable' });
    expect(api.received).toEqual([]);
  } finally {
    running = Promise.resolve(0);
    await taken.close();
  }
});

test('a Task of a namespace that was made again is not taken for one of the namespace before', async () => {
  refuses = () => false;
  const { task } = boundTask();
  const { status } = inState(task, { state: 'Queued' });
  const tasks = '/apis/core.orka.ai/v1alpha1/namespaces/team-a/tasks';
  /** A Task that was bound in a namespace of that UID. */
  const putTask = (name: string, namespaceUID: string) => {
    const metadata = { name, namespace: 'team-a', creationTimestamp: new Date().toISOString() };
    const { uid = '' } = objects.put(tasks, { ...task, status: {}, metadata }).metadata;
    const binding = { ...status?.agentExecutionBinding, task: { ...status?.agentExecutionBinding?.task, uid, namespaceUID } };
    objects.put(tasks, { ...task, metadata, status: { ...status, agentExecutionBinding: binding } });
  };
  const putNamespace = () => {
    const made = objects.put('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team-a' } });
    return made.metadata.uid ?? '';
  };
  const reasonOf = (name: string) => valueAt(objects.get(tasks, name) ?? {}, ['status', 'execution', 'reason']);
  const before = putNamespace();
  putTask('in-another', 'another');
  start();
  await eventually(() => reasonOf('in-another') === 'RestoreIdentityChanged');
  objects.remove('/api/v1/namespaces', 'team-a');
  expect(putNamespace()).not.toBe(before);
  putTask('in-the-one-before', before);
  await eventually(() => reasonOf('in-the-one-before') === 'RestoreIdentityChanged');
});
