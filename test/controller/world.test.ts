import { afterEach, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { watchWorld } from '../../src/controller/world.js';
import type { WatchedName } from '../../src/controller/world.js';
import type { KubeClient } from '../../src/kube/client.js';
import { KubeError } from '../../src/kube/errors.js';
import type { KubeRequest } from '../../src/kube/transport.js';

const settings = { controllerNamespace: 'orka-system', runtimeNamespace: 'orka-runtimes', taskNamespaces: ['team-a'] };
const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
});

/** Lists what there is of a kind, or refuses; watches tell nothing. */
function watched(listed: (kind: string, request: KubeRequest) => readonly Manifest[] | KubeError) {
  const changes: [WatchedName, string | undefined][] = [];
  const errors: unknown[] = [];
  const client: KubeClient = {
    pathOf: ({ kind }) => Promise.resolve(kind),
    request: async (request) => {
      await Promise.resolve();
      const items = listed(request.path, request);
      if (items instanceof KubeError) throw items;
      return { kind: `${request.path}List`, metadata: { resourceVersion: '1' }, items: items as never };
    },
    stream: async function* ({ signal }) {
      await new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }));
      yield* [];
    },
  };
  const { world, synced, stop } = watchWorld(client, settings, {
    onChange: (name, _before, after) => changes.push([name, after?.metadata.name]),
    onMissing: () => undefined,
    onReadable: () => undefined,
    onBroken: () => undefined,
    onError: (_name, error) => errors.push(error),
  });
  stops.push(stop);
  return { world, synced, changes, errors };
}

const node = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, uid: name, resourceVersion: '1', labels: { zone: 'a' } },
  spec: { unschedulable: true },
});

test('cordoned nodes are known by name, and nothing else of any node', async () => {
  const asked: unknown[] = [];
  const { world, synced, changes } = watched((kind, { query = {} }) => {
    if (kind === 'Node') asked.push(query['fieldSelector']);
    return kind === 'Node' ? [node('node-1')] : [];
  });
  await synced;
  expect([asked, changes]).toEqual([['spec.unschedulable=true'], [['cordonedNodes', 'node-1']]]);
  expect(world.cordonedNodes.get('node-1')).toEqual({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-1', uid: 'node-1', resourceVersion: '1' },
  });
});

test('without the right to list nodes everything else is known, and the refusal is reported', async () => {
  const says = 'nodes is forbidden: User "orka" cannot list resource "nodes" in API group "" at the cluster scope';
  const refused = new KubeError('forbidden', { at: 'GET Node', says, status: 403, reason: 'Forbidden' });
  const { world, synced, errors } = watched((kind) => (kind === 'Node' ? refused : []));
  await synced;
  expect(world.cordonedNodes.get('node-1')).toBeUndefined();
  expect([world.cordonedNodes.readable(), world.tasks.readable()]).toEqual([false, true]);
  expect(new Set(errors)).toEqual(new Set([refused]));
});
