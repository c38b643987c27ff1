import { afterEach, describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { createClient } from '../../src/kube/client.js';
import { broughtBy, compare } from '../../src/kube/compare.js';
import type { Comparison } from '../../src/kube/compare.js';
import { ownedByOthers } from '../../src/kube/managed-fields.js';
import { createTransport } from '../../src/kube/transport.js';
import { discovery, fakeApi, reply } from '../support/fake-api.js';
import type { FakeApi } from '../support/fake-api.js';

let api: FakeApi | undefined;
afterEach(() => api?.close());

const configMap: Manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'n', namespace: 'a' }, data: { x: '1' } };
const stored = {
  ...configMap,
  metadata: { ...configMap.metadata, uid: 'u', resourceVersion: '5', generation: 3, creationTimestamp: '2026-01-31T12:00:00Z' },
};
const notFound = (name: string) => ({ kind: 'Status', reason: 'NotFound', message: `${name} not found`, details: { name } });

interface World {
  readonly live?: object;
  /** What a dry run answers; a status with `reason` is a refusal. */
  readonly dryRun?: (force: boolean) => object;
}

/** Compares with a server that has one object, and says what an apply would make of it. */
async function compared(
  world: World,
  { manifest = configMap, set = [] }: { readonly manifest?: Manifest; readonly set?: readonly Manifest[] } = {},
): Promise<Comparison> {
  api = await fakeApi((request, response) => {
    const kinds = discovery(request.path);
    if (kinds) reply(response, 200, kinds);
    else if (/^\/apis?\/[^/]+(\/v\d\w*)?$/.test(request.path)) reply(response, 404, '404 page not found');
    else if (request.method === 'GET') reply(response, world.live ? 200 : 404, world.live ?? notFound('n'));
    else {
      const answer = world.dryRun?.(request.query.get('force') === 'true') ?? stored;
      reply(response, 'reason' in answer ? ('code' in answer ? Number(answer.code) : 404) : 200, answer);
    }
  });
  const client = createClient(createTransport({ server: api.url, credentials: () => ({}) }));
  return compare(client, manifest, { manager: 'git', brought: broughtBy([...set, manifest]) });
}

const sent = () => api?.received.filter(({ method }) => method !== 'GET') ?? [];

test('the server is asked by a strict dry run under the name of the manager, and nothing else is sent', async () => {
  await compared({ live: stored });
  expect(sent().map(({ method, query }) => [method, Object.fromEntries(query)])).toEqual([
    ['PATCH', { fieldManager: 'git', force: 'false', fieldValidation: 'Strict', dryRun: 'All' }],
  ]);
});

test('what a server wrote into a file that was read from it is not sent', async () => {
  await compared({ live: stored }, { manifest: { ...stored, status: { phase: 'x' } } });
  expect(JSON.parse(sent()[0]?.body ?? '')).toEqual(configMap);
});

test('an object is the same whatever the server writes about it', async () => {
  const dryRun = () => ({ ...stored, metadata: { ...stored.metadata, generation: 4, managedFields: [] }, status: { a: 2 } });
  expect(await compared({ live: { ...stored, status: { a: 1 } }, dryRun })).toMatchObject({ state: 'same' });
});

test('the copy of kubectl apply in an annotation is no difference', async () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}' };
  const live = { ...stored, metadata: { ...stored.metadata, annotations } };
  expect(await compared({ live, dryRun: () => stored })).toMatchObject({ state: 'same' });
});

test('a changed object comes as it is and as it would be, without what the server writes', async () => {
  const dryRun = () => ({ ...stored, data: { x: '2' } });
  expect(await compared({ live: stored, dryRun })).toEqual({
    state: 'changed',
    live: configMap,
    wanted: { ...configMap, data: { x: '2' } },
    conflicts: [],
    others: [],
  });
});

describe('a conflict', () => {
  const cause = (field: string, message: string) => ({ reason: 'FieldManagerConflict', field, message });
  const refusal = (causes: readonly object[]) => ({ kind: 'Status', code: 409, reason: 'Conflict', details: { causes } });
  const dryRun = (force: boolean) =>
    force
      ? { ...stored, data: { x: '2' } }
      : refusal([
          cause('.data.y', 'conflict with "kubectl-edit" using v1 at 2026-01-31T12:00:00Z'),
          cause('.data.x', 'conflict with "kubectl-edit" using v1'),
          cause('.spec.replicas', 'conflict with "a \\"b\\"" with subresource "scale" using v1'),
        ]);

  test('names each field and its manager, and says what taking them would change', async () => {
    expect(await compared({ live: stored, dryRun })).toMatchObject({
      state: 'conflict',
      wanted: { data: { x: '2' } },
      conflicts: [
        { manager: 'a "b"', fields: ['spec.replicas'] },
        { manager: 'kubectl-edit', fields: ['data.x', 'data.y'] },
      ],
    });
  });

  test('does not name its fields a second time as left to others', async () => {
    const managedFields = [{ manager: 'kubectl-edit', operation: 'Update', fieldsV1: { 'f:data': { 'f:x': {}, 'f:z': {} } } }];
    const live = { ...stored, metadata: { ...stored.metadata, managedFields } };
    expect((await compared({ live, dryRun })).others).toEqual([{ manager: 'kubectl-edit', fields: ['data.z'] }]);
  });

  test('that names no manager is an error', async () => {
    await expect(compared({ live: stored, dryRun: () => refusal([]) })).rejects.toMatchObject({ code: 'conflict' });
  });
});

describe('missing is', () => {
  const widget: Manifest = { apiVersion: 'example.org/v1', kind: 'Widget', metadata: { name: 'w', namespace: 'a' } };
  const crd = (served: boolean): Manifest => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.org' },
    spec: { group: 'example.org', names: { kind: 'Widget' }, versions: [{ name: 'v1', served }] },
  });

  test('an object that is not there', async () => {
    expect(await compared({ dryRun: () => stored })).toMatchObject({ state: 'missing', wanted: configMap });
  });

  test('an object whose namespace is in the same set and not there', async () => {
    const set: Manifest[] = [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' } }];
    expect(await compared({ dryRun: () => notFound('a') }, { set })).toMatchObject({ state: 'missing' });
  });

  test('an object whose CRD is in the same set and not there', async () => {
    expect(await compared({}, { manifest: widget, set: [crd(true)] })).toMatchObject({ state: 'missing' });
  });

  test('nothing that the set does not bring', async () => {
    await expect(compared({ dryRun: () => notFound('a') })).rejects.toMatchObject({ code: 'not-found' });
    await api?.close();
    await expect(compared({}, { manifest: widget, set: [crd(false)] })).rejects.toMatchObject({ code: 'kind-missing' });
  });

  test('no object that the server refuses', async () => {
    const dryRun = () => ({ kind: 'Status', code: 422, reason: 'Invalid', message: 'spec.x: Invalid value' });
    await expect(compared({ dryRun })).rejects.toMatchObject({ code: 'invalid' });
  });
});

describe('fields of others', () => {
  const owned = (entries: readonly object[], manager = 'git') =>
    ownedByOthers({ metadata: { name: 'n', managedFields: entries } as unknown as Manifest['metadata'] }, manager);
  const entry = (manager: string, fieldsV1: object, change: object = {}) => ({
    manager,
    operation: 'Update',
    fieldsV1,
    ...change,
  });
  const ours = { operation: 'Apply' };

  test('are named as the server names them', () => {
    const fields = {
      'f:metadata': { 'f:labels': { '.': {}, 'f:a.b/c': {} }, 'f:finalizers': { '.': {}, 'v:"x"': {} } },
      'f:spec': {
        'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:name': {} } },
        'f:list': { 'i:0': {} },
        'f:empty': { '.': {} },
      },
    };
    expect(owned([entry('x', fields)])).toEqual([
      {
        manager: 'x',
        fields: [
          'metadata.finalizers[="x"]',
          'metadata.labels.a.b/c',
          'spec.empty',
          'spec.list[0]',
          'spec.ports[port=80,protocol="TCP"].name',
        ],
      },
    ]);
  });

  test('are not those that we own as well', () => {
    const mine = entry('git', { 'f:data': { 'f:a': {} } }, ours);
    expect(owned([mine, entry('x', { 'f:data': { 'f:a': {}, 'f:b': {} } })])).toEqual([{ manager: 'x', fields: ['data.b'] }]);
    expect(owned([mine, entry('x', { 'f:data': { 'f:a': {} } })])).toEqual([]);
  });

  test('are those that someone wrote under our name without applying', () => {
    expect(owned([entry('git', { 'f:data': { 'f:a': {} } })])).toEqual([{ manager: 'git', fields: ['data.a'] }]);
  });

  test('are not what is written through the status', () => {
    const status = { subresource: 'status' };
    expect(owned([entry('x', { 'f:metadata': { 'f:annotations': { 'f:revision': {} } } }, status)])).toEqual([]);
  });

  test('of several entries of a manager come together, managers in the order of their names', () => {
    expect(
      owned([
        entry('y', { 'f:b': {} }),
        entry('x', { 'f:a': {} }),
        entry('y', { 'f:replicas': {} }, { subresource: 'scale', operation: 'Apply' }),
      ]),
    ).toEqual([
      { manager: 'x', fields: ['a'] },
      { manager: 'y', fields: ['b', 'replicas'] },
    ]);
  });
});
