import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { apply } from '../../src/kube/apply.js';
import { createClient, get } from '../../src/kube/client.js';
import type { KubeClient, ObjectRef } from '../../src/kube/client.js';
import { create } from '../../src/kube/create.js';
import { mergePatch } from '../../src/kube/patch.js';
import { remove } from '../../src/kube/remove.js';
import { createTransport } from '../../src/kube/transport.js';
import type { Transport } from '../../src/kube/transport.js';
import { update } from '../../src/kube/update.js';
import { fakeApi } from '../support/fake-api.js';
import type { FakeApi } from '../support/fake-api.js';
import { fakeObjects } from '../support/fake-objects.js';
import type { FakeObjects } from '../support/fake-objects.js';

const maps = '/api/v1/namespaces/a/configmaps';
const ref: ObjectRef = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'a', name: 'x' };
const map = (by: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace: 'a' }, data: { by } });

let api: FakeApi;
let transport: Transport;
let objects: FakeObjects;
let client: KubeClient;
/** The next write is carried out, and the connection is reset instead of an answer. */
let lose: boolean;
beforeEach(async () => {
  objects = fakeObjects();
  lose = false;
  api = await fakeApi((request, response) => {
    if (!lose || request.method === 'GET') {
      objects.answer(request, response);
      return;
    }
    lose = false;
    const nobody = { writeHead: () => nobody, end: () => undefined };
    objects.answer(request, nobody as unknown as ServerResponse);
    response.socket?.resetAndDestroy();
  });
  transport = createTransport({ server: api.url, credentials: () => ({}) });
  client = createClient(transport);
  // The way to the kind is known, so that there is a connection to lose.
  await client.pathOf(ref);
});
afterEach(async () => {
  transport.close();
  await api.close();
});
const writes = () => api.received.filter(({ method }) => method !== 'GET').map(({ method }) => method);

test('a creation is unreachable, sent once, and already-exists next time; who made it is told by what is there', async () => {
  lose = true;
  await expect(create(client, map('us'), { manager: 'm' })).rejects.toMatchObject({ code: 'unreachable' });
  expect(writes()).toEqual(['POST']);
  await expect(create(client, map('us'), { manager: 'm' })).rejects.toMatchObject({ code: 'already-exists' });
  expect(await get(client, ref)).toMatchObject({ data: { by: 'us' } });
});

test('a creation that somebody else was faster with is already-exists as well, and leaves theirs alone', async () => {
  objects.put(maps, map('others'));
  await expect(create(client, map('us'), { manager: 'm' })).rejects.toMatchObject({ code: 'already-exists' });
  expect(objects.get(maps, 'x')).toMatchObject({ data: { by: 'others' } });
});

test('a change is a conflict by the time that it is repeated, is stored once, and what is there tells', async () => {
  const { metadata } = objects.put(maps, map('others'));
  const resourceVersion = metadata.resourceVersion ?? '';
  lose = true;
  await expect(mergePatch(client, ref, { data: { by: 'us' } }, { manager: 'm', resourceVersion })).rejects.toMatchObject({
    code: 'conflict',
  });
  expect(await get(client, ref)).toMatchObject({
    data: { by: 'us' },
    metadata: { resourceVersion: String(Number(resourceVersion) + 1) },
  });
});

test('a replacement is a conflict by the time that it is repeated, and is stored once', async () => {
  const { uid = '', resourceVersion = '' } = objects.put(maps, map('others')).metadata;
  lose = true;
  await expect(update(client, map('us'), { manager: 'm', uid, resourceVersion })).rejects.toMatchObject({ code: 'conflict' });
  expect(objects.get(maps, 'x')).toMatchObject({
    data: { by: 'us' },
    metadata: { resourceVersion: String(Number(resourceVersion) + 1) },
  });
});

test('an apply is repeated at once, and nobody notices', async () => {
  objects.put(maps, map('others'));
  lose = true;
  expect((await apply(client, map('us'), { manager: 'm' })).object).toMatchObject({ data: { by: 'us' } });
  expect(writes()).toEqual(['PATCH', 'PATCH']);
});

test('a deletion is repeated at once, and what is not found is done', async () => {
  const { uid = '', resourceVersion = '' } = objects.put(maps, map('us')).metadata;
  lose = true;
  expect(await remove(client, ref, { uid, resourceVersion, propagation: 'Background' })).toBe('absent');
  expect(writes()).toEqual(['DELETE', 'DELETE']);
});

test('a deletion whose object was made again meanwhile leaves the new one alone', async () => {
  const { uid = '' } = objects.put(maps, map('us')).metadata;
  objects.remove(maps, 'x');
  objects.put(maps, map('others'));
  expect(await remove(client, ref, { uid, propagation: 'Background' })).toBe('another');
  expect(objects.get(maps, 'x')).toMatchObject({ data: { by: 'others' } });
});
