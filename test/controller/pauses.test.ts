import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Pauses } from '../../src/controller/pauses.js';
import { createClient } from '../../src/kube/client.js';
import { createTransport } from '../../src/kube/transport.js';
import type { Transport } from '../../src/kube/transport.js';
import { eventually } from '../support/eventually.js';
import { fakeApi } from '../support/fake-api.js';
import type { FakeApi } from '../support/fake-api.js';
import { fakeObjects } from '../support/fake-objects.js';

const path = '/api/v1/namespaces';
const namespace = (name: string, paused?: string) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, ...(paused === undefined ? {} : { annotations: { 'orka.ai/paused': paused } }) },
});

const notGranted = JSON.stringify({
  kind: 'Status',
  code: 403,
  reason: 'Forbidden',
  message: 'namespaces is forbidden: User "x" cannot list resource "namespaces" in API group ""',
});

const objects = fakeObjects();
const asked: string[] = [];
let refused = false;
let failing = false;
let api: FakeApi;
let transport: Transport;
let pauses: Pauses;
let told: (readonly [string, boolean])[] = [];
let errors = 0;
beforeEach(async () => {
  refused = failing = false;
  told = [];
  errors = 0;
  api = await fakeApi((request, response) => {
    asked.push(decodeURIComponent(`${request.path}?${String(request.query)}`));
    if (refused) response.writeHead(403, { 'content-type': 'application/json' }).end(notGranted);
    else if (failing) response.writeHead(503, { 'content-type': 'application/json' }).end('{"kind":"Status","code":503}');
    else objects.answer(request, response);
  });
  transport = createTransport({ server: api.url, credentials: () => ({}) });
  for (const name of ['orka-runtimes', 'team-a', 'team-b']) objects.put(path, namespace(name));
});
afterEach(async () => {
  await pauses.stop();
  transport.close();
  await api.close();
});

const watch = () => {
  pauses = new Pauses(createClient(transport), {
    runtimeNamespace: 'orka-runtimes',
    taskNamespaces: ['team-a', 'team-b'],
    onChange: (name, paused) => told.push([name, paused]),
    onError: () => (errors += 1),
  });
};
const both = () => [pauses.of('team-a'), pauses.of('team-b')];

test('nothing is known before the namespaces were read, each by its name', async () => {
  watch();
  expect(both()).toEqual(['unread', 'unread']);
  await eventually(() => both().every((pause) => pause === undefined));
  for (const name of ['orka-runtimes', 'team-a', 'team-b'])
    expect(asked).toContainEqual(expect.stringContaining(`fieldSelector=metadata.name=${name}`));
});

test('an annotated Task namespace pauses its own Tasks, until the annotation goes', async () => {
  objects.put(path, namespace('team-a', 'true'));
  watch();
  await eventually(() => pauses.of('team-a') === 'namespace' && pauses.of('team-b') === undefined);
  objects.put(path, namespace('team-a'));
  await eventually(() => pauses.of('team-a') === undefined);
  expect(told.filter(([name]) => name === 'team-a')).toEqual([
    ['team-a', true],
    ['team-a', false],
  ]);
});

test('the annotation of the runtime namespace pauses all Tasks', async () => {
  watch();
  await eventually(() => pauses.of('team-a') === undefined);
  objects.put(path, namespace('orka-runtimes', 'true'));
  await eventually(() => both().every((pause) => pause === 'platform'));
});

test('only the value true pauses', async () => {
  objects.put(path, namespace('team-a', 'yes'));
  watch();
  await eventually(() => both().every((pause) => pause === undefined));
});

test('a namespace that may not be read is reported, and not paused', async () => {
  refused = true;
  watch();
  await eventually(() => errors >= 3 && both().every((pause) => pause === undefined));
});

test('a namespace is not taken for one that goes on while the server fails', async () => {
  objects.put(path, namespace('orka-runtimes', 'true'));
  failing = true;
  watch();
  await eventually(() => errors >= 3);
  expect(both()).toEqual(['unread', 'unread']);
  failing = false;
  await eventually(() => both().every((pause) => pause === 'platform'));
  expect(told).not.toContainEqual(['orka-runtimes', false]);
});
