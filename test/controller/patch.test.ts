import { expect, test } from '@jest/globals';
import { patchWatched } from '../../src/controller/patch.js';
import type { Watched } from '../../src/controller/world.js';
import { createView } from '../../src/kube/own-writes.js';
import { fakeClock } from '../support/fake-clock.js';
import { memoryClient, refusal } from '../support/memory-client.js';

const pool = {
  apiVersion: 'core.orka.ai/v1alpha1',
  kind: 'RuntimePool',
  metadata: { namespace: 'a', name: 'p', uid: 'u' },
  spec: { desiredReplicas: 1 },
};

/** A stored pool, and a watch that has told of it and then fails. */
function stored() {
  const client = memoryClient();
  const known = client.put(pool);
  const view = createView(() => ({ get: () => known, list: () => [known], reached: () => known.metadata.resourceVersion }), {
    clock: fakeClock(),
  });
  const watched: Watched = {
    ...view,
    kind: { apiVersion: pool.apiVersion, kind: pool.kind },
    missing: () => false,
    readable: () => true,
  };
  const latest = () => watched.get('a/p')!;
  return {
    client,
    watched,
    latest,
    patch: () => patchWatched(client, watched, latest(), { spec: { desiredReplicas: 0 } }, { manager: 'm' }),
  };
}

test('what the server answers counts at once', async () => {
  const { patch, latest, client } = stored();
  const patched = await patch();
  expect(latest()).toEqual(patched);
  expect(client.asked).toEqual(['PATCH runtimepools/p']);
});

test('while the watch fails a conflict is read once, and what is decided next is written', async () => {
  const { client, patch, latest } = stored();
  client.put({ ...latest(), metadata: { ...latest().metadata, labels: { someone: 'else' } } });
  await expect(patch()).rejects.toMatchObject({ code: 'conflict' });
  expect(latest().metadata.labels).toEqual({ someone: 'else' });
  await patch();
  expect(client.at('RuntimePool', 'p')).toMatchObject({
    metadata: { labels: { someone: 'else' } },
    spec: { desiredReplicas: 0 },
  });
  expect(client.asked).toEqual(['PATCH runtimepools/p', 'GET runtimepools/p', 'PATCH runtimepools/p']);
});

test('a write whose answer was lost is a conflict when it is sent again, and the state that is read then has it', async () => {
  const { client, patch, latest } = stored();
  client.after = ({ method }) => {
    if (method === 'PATCH') throw refusal('unreachable');
  };
  await expect(patch()).rejects.toMatchObject({ code: 'unreachable' });
  await expect(patch()).rejects.toMatchObject({ code: 'conflict' });
  expect(latest()).toMatchObject({ spec: { desiredReplicas: 0 } });
});

test('a conflict stays one when the object cannot be read', async () => {
  const { client, patch, latest } = stored();
  const before = latest();
  client.put(before);
  client.before = ({ method }) => {
    if (method === 'GET') throw refusal('server-error');
  };
  await expect(patch()).rejects.toMatchObject({ code: 'conflict' });
  expect(latest()).toEqual(before);
});

test.each([
  ['before', 'not-found'],
  ['between the conflict and the look at it', 'conflict'],
])('an object that went %s is gone, whatever the watch has', async (when, code) => {
  const { client, patch, watched, latest } = stored();
  if (when === 'before') client.stored.clear();
  else client.put(latest());
  client.before = ({ method }) => {
    if (method === 'GET') client.stored.clear();
  };
  await expect(patch()).rejects.toMatchObject({ code });
  expect(watched.get('a/p')).toBeUndefined();
});
