import { afterEach, describe, expect, test } from '@jest/globals';
import { apply } from '../../src/kube/apply.js';
import { createClient, get, refOf } from '../../src/kube/client.js';
import type { KubeClient } from '../../src/kube/client.js';
import { create } from '../../src/kube/create.js';
import { kindPresent } from '../../src/kube/discovery.js';
import { mergePatch } from '../../src/kube/patch.js';
import { remove } from '../../src/kube/remove.js';
import { createTransport } from '../../src/kube/transport.js';
import { update } from '../../src/kube/update.js';
import { compile } from '../../src/render/compile.js';
import { instantiate, renderedObjects } from '../../src/render/instantiate.js';
import { poolClass, workspaceFacts } from '../support/objects.js';
import { discovery, fakeApi, reply } from '../support/fake-api.js';
import type { Answer, FakeApi } from '../support/fake-api.js';

let api: FakeApi | undefined;
afterEach(() => api?.close());

async function client(answer: Answer): Promise<KubeClient> {
  api = await fakeApi((request, response) => {
    const list = discovery(request.path);
    if (list) reply(response, 200, list);
    else if (/^\/apis?\/[^/]+(\/v\d\w*)?$/.test(request.path)) reply(response, 404, '404 page not found');
    else answer(request, response);
  });
  return createClient(createTransport({ server: api.url, credentials: () => ({}) }));
}
const missing = { kind: 'Status', reason: 'NotFound', details: { name: 'n', kind: 'configmaps' } };
const configMap = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'n', namespace: 'a', resourceVersion: '5', uid: 'u' },
};

test('for every kind of a pool the body that is sent is the rendered object', async () => {
  const kube = await client((request, response) =>
    reply(response, request.method === 'GET' ? 404 : 200, request.method === 'GET' ? missing : JSON.parse(request.body)),
  );
  const compiled = compile(poolClass());
  const objects = renderedObjects(instantiate(compiled, workspaceFacts(), compiled.frozen));
  for (const object of objects) await apply(kube, object, { manager: 'test' });
  expect(api?.received.filter(({ method }) => method === 'PATCH').map(({ body }) => body)).toEqual(
    objects.map((object) => JSON.stringify(object)),
  );
});

describe('apply', () => {
  test('is strict, names its manager and does not force unless told', async () => {
    const kube = await client((request, response) =>
      reply(response, request.method === 'GET' ? 404 : 200, request.method === 'GET' ? missing : configMap),
    );
    await apply(kube, configMap, { manager: 'orka', dryRun: true });
    const patch = api?.received.find(({ method }) => method === 'PATCH');
    expect(patch?.path).toBe('/api/v1/namespaces/a/configmaps/n');
    expect(Object.fromEntries(patch?.query ?? [])).toEqual({
      fieldManager: 'orka',
      force: 'false',
      fieldValidation: 'Strict',
      dryRun: 'All',
    });
    expect(patch?.headers['content-type']).toBe('application/apply-patch+yaml');
  });

  test.each([
    ['created', undefined, '5'],
    ['unchanged', '5', '5'],
    ['configured', '4', '5'],
  ])('says %s', async (outcome, before, after) => {
    const kube = await client((request, response) => {
      if (request.method !== 'GET')
        reply(response, 200, { ...configMap, metadata: { ...configMap.metadata, resourceVersion: after } });
      else if (before === undefined) reply(response, 404, missing);
      else reply(response, 200, { ...configMap, metadata: { ...configMap.metadata, resourceVersion: before } });
    });
    expect((await apply(kube, configMap, { manager: 'orka' })).outcome).toBe(outcome);
  });
});

describe('apply sends nothing', () => {
  const policy = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'n', namespace: 'a' },
    spec: { podSelector: { matchLabels: { a: 'b' } }, ingress: [], policyTypes: ['Ingress'] },
  };
  const managedFields = [{ manager: 'orka', operation: 'Apply' }];
  const patches = async (change: object, fields: unknown = managedFields) => {
    const stored = {
      ...policy,
      metadata: { ...policy.metadata, uid: 'u', resourceVersion: '5', managedFields: fields },
      spec: { podSelector: { matchLabels: { a: 'b' } }, policyTypes: ['Ingress'], ...change },
    };
    const kube = await client((_, response) => reply(response, 200, stored));
    await apply(kube, policy, { manager: 'orka' });
    return api?.received.filter(({ method }) => method === 'PATCH').length;
  };

  test('when the object has everything already, empty lists left out', async () => {
    expect(await patches({})).toBe(0);
  });

  test.each([
    ['someone added a rule to an empty list', { ingress: [{}] }, managedFields],
    ['a selector is wider', { podSelector: {} }, managedFields],
    ['a list has an item more', { policyTypes: ['Ingress', 'Egress'] }, managedFields],
    ['we have never applied it', {}, []],
  ])('but not when %s', async (_, change, fields) => {
    expect(await patches(change, fields)).toBe(1);
  });
});

test('a missing object is undefined, a missing kind is an error', async () => {
  const kube = await client((_, response) => reply(response, 404, missing));
  expect(await get(kube, refOf(configMap))).toBeUndefined();
  await expect(get(kube, { apiVersion: 'v1', kind: 'Widget', name: 'x' })).rejects.toMatchObject({ code: 'kind-missing' });
  await expect(get(kube, { apiVersion: 'none.example/v1', kind: 'Widget', name: 'x' })).rejects.toMatchObject({
    code: 'kind-missing',
  });
});

test('kinds are asked for once, and again while one is missing', async () => {
  const kube = await client((_, response) => reply(response, 200, configMap));
  for (let i = 0; i < 3; i++) await get(kube, refOf(configMap));
  expect(api?.received.filter(({ path }) => path === '/api/v1')).toHaveLength(1);
  for (let i = 0; i < 2; i++) await get(kube, { apiVersion: 'v1', kind: 'Widget', name: 'x' }).catch(() => undefined);
  expect(api?.received.filter(({ path }) => path === '/api/v1')).toHaveLength(3);
});

test('a kind without namespaces has no namespace in its path', async () => {
  const kube = await client((_, response) => reply(response, 200, configMap));
  expect(await kube.pathOf({ apiVersion: 'v1', kind: 'Namespace', namespace: 'x', name: 'y' })).toBe('/api/v1/namespaces/y');
});

test('create posts to the collection and reports what is there already', async () => {
  const kube = await client((_, response) => reply(response, 409, { reason: 'AlreadyExists' }));
  await expect(create(kube, configMap, { manager: 'orka' })).rejects.toMatchObject({ code: 'already-exists' });
  expect(api?.received.at(-1)).toMatchObject({ method: 'POST', path: '/api/v1/namespaces/a/configmaps' });
});

describe('remove', () => {
  test('names the object by uid and state, and how what it owns goes', async () => {
    const kube = await client((_, response) => reply(response, 200, { kind: 'Status' }));
    expect(await remove(kube, refOf(configMap), { uid: 'u', resourceVersion: '5', propagation: 'Foreground' })).toBe('requested');
    expect(JSON.parse(api?.received.at(-1)?.body ?? '')).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Foreground',
      preconditions: { uid: 'u', resourceVersion: '5' },
    });
  });

  test.each([
    ['absent', 404, missing],
    ['another', 409, { reason: 'Conflict' }],
  ])('says %s', async (outcome, status, body) => {
    const kube = await client((_, response) => reply(response, status, body));
    expect(await remove(kube, refOf(configMap), { uid: 'u', propagation: 'Background' })).toBe(outcome);
  });
});

const stored = (resourceVersion: string) => ({ ...configMap, metadata: { ...configMap.metadata, resourceVersion } });

describe('mergePatch', () => {
  test.each([
    [undefined, '/api/v1/namespaces/a/configmaps/n'],
    ['status', '/api/v1/namespaces/a/configmaps/n/status'],
  ] as const)('sends the change with the state that it was computed from: %s', async (subresource, path) => {
    const kube = await client((_, response) => reply(response, 200, stored('6')));
    const change = { metadata: { annotations: { a: null } }, data: { b: 'c' } };
    await mergePatch(kube, refOf(configMap), change, {
      manager: 'orka',
      resourceVersion: '5',
      ...(subresource ? { subresource } : {}),
    });
    const patch = api?.received.at(-1);
    expect(patch).toMatchObject({ method: 'PATCH', path });
    expect(patch?.headers['content-type']).toBe('application/merge-patch+json');
    expect(Object.fromEntries(patch?.query ?? [])).toEqual({ fieldManager: 'orka', fieldValidation: 'Strict' });
    expect(JSON.parse(patch?.body ?? '')).toEqual({
      metadata: { annotations: { a: null }, resourceVersion: '5' },
      data: { b: 'c' },
    });
  });

  test.each([
    ['configured', '6'],
    ['unchanged', '5'],
  ])('says %s', async (outcome, after) => {
    const kube = await client((_, response) => reply(response, 200, stored(after)));
    const changed = await mergePatch(kube, refOf(configMap), {}, { manager: 'orka', resourceVersion: '5' });
    expect(changed).toEqual({ outcome, object: stored(after) });
  });
});

describe('update', () => {
  test('sends exactly this object, by uid and state', async () => {
    const kube = await client((_, response) => reply(response, 200, stored('6')));
    const wanted = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'n', namespace: 'a' }, data: { x: 'y' } };
    const changed = await update(kube, wanted, { manager: 'orka', uid: 'u', resourceVersion: '5' });
    expect(changed).toEqual({ outcome: 'configured', object: stored('6') });
    const put = api?.received.at(-1);
    expect(put).toMatchObject({ method: 'PUT', path: '/api/v1/namespaces/a/configmaps/n' });
    expect(Object.fromEntries(put?.query ?? [])).toEqual({ fieldManager: 'orka', fieldValidation: 'Strict' });
    expect(JSON.parse(put?.body ?? '')).toEqual({ ...wanted, metadata: { ...wanted.metadata, uid: 'u', resourceVersion: '5' } });
  });
});

describe.each([
  ['mergePatch', (kube: KubeClient) => mergePatch(kube, refOf(configMap), {}, { manager: 'orka', resourceVersion: '5' })],
  ['update', (kube: KubeClient) => update(kube, configMap, { manager: 'orka', uid: 'u', resourceVersion: '5' })],
] as const)('%s', (_, change) => {
  test.each([
    ['conflict', 409, { reason: 'Conflict' }],
    ['not-found', 404, missing],
    ['invalid', 422, { reason: 'Invalid' }],
  ])('throws %s', async (code, status, body) => {
    const kube = await client((_, response) => reply(response, status, body));
    await expect(change(kube)).rejects.toMatchObject({ code });
  });
});

describe('kindPresent', () => {
  const ask = async (status: number, body: unknown) => {
    api = await fakeApi((_, response) => reply(response, status, body));
    return createClient(createTransport({ server: api.url, credentials: () => ({}) }));
  };
  const widget = { apiVersion: 'example.org/v1', kind: 'Widget' };
  const listOf = (...kinds: string[]) => ({
    kind: 'APIResourceList',
    resources: kinds.map((kind) => ({ name: `${kind.toLowerCase()}s`, kind, namespaced: true })),
  });

  test.each([
    ['a list with it', 200, listOf('Widget'), true],
    ['a list without it', 200, listOf('Other'), false],
    ['no such group or version', 404, '404 page not found', false],
  ])('answers by %s', async (_, status, body, present) => {
    expect(await kindPresent(await ask(status, body), widget)).toBe(present);
    expect(api?.received[0]?.path).toBe('/apis/example.org/v1');
  });

  test.each([
    ['forbidden', 403, {}],
    ['server-error', 503, 'service unavailable'],
    ['server-error', 200, { welcome: 'proxy' }],
  ])('throws when it could not ask: %s', async (code, status, body) => {
    await expect(kindPresent(await ask(status, body), widget)).rejects.toMatchObject({ code });
  });

  test('asks anew each time', async () => {
    let kinds = listOf('Widget');
    api = await fakeApi((_, response) => reply(response, 200, kinds));
    const kube = createClient(createTransport({ server: api.url, credentials: () => ({}) }));
    await kube.pathOf(widget);
    kinds = listOf();
    expect(await kindPresent(kube, widget)).toBe(false);
  });
});
