import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../src/api/index.js';
import { get, refOf } from '../../src/kube/client.js';
import type { ObjectRef } from '../../src/kube/client.js';
import { create } from '../../src/kube/create.js';
import { remove } from '../../src/kube/remove.js';
import { apply } from '../../src/kube/apply.js';
import { isObject } from '../../src/lib/json.js';
import type { Json } from '../../src/lib/json.js';
import { toYaml } from '../../src/render/yaml.js';
import { applyAll, eventually, gone, kube, manager, namespace, platform, readyPod } from './support/cluster.js';
import { removePool, renderPool, startPool } from './support/pool.js';

const pool = renderPool('task-pool-test');
const claim = refOf(pool.claim!);
const sandbox: ObjectRef = {
  apiVersion: 'agents.x-k8s.io/v1beta1',
  kind: 'Sandbox',
  name: claim.name,
  namespace: claim.namespace ?? '',
};
const podRef: ObjectRef = { apiVersion: 'v1', kind: 'Pod', name: claim.name, namespace: claim.namespace ?? '' };

beforeAll(async () => {
  await applyAll([namespace(platform.namespaces.runtime)]);
  await applyAll(pool.isolation);
  await startPool(pool);
});
afterAll(() => removePool(pool), 240_000);

/** What the server added to what was sent: every member that was not there. What it changed is an error. */
function added(sent: Json | undefined, stored: Json | undefined, path: string): Json | undefined {
  if (sent === undefined) return stored;
  if (isObject(sent) && isObject(stored)) {
    const members = Object.keys({ ...sent, ...stored }).map((name): [string, Json | undefined] => [
      name,
      added(sent[name], stored[name], `${path}.${name}`),
    ]);
    const given = members.filter(([, value]) => value !== undefined);
    return given.length === 0 ? undefined : Object.fromEntries(given);
  }
  if (Array.isArray(sent) && Array.isArray(stored)) {
    const items = (stored as readonly Json[]).map((item, index): [string, Json | undefined] => [
      `[${index}]`,
      added((sent as readonly Json[])[index], item, `${path}[${index}]`),
    ]);
    const given = items.filter(([, value]) => value !== undefined);
    return given.length === 0 ? undefined : Object.fromEntries(given);
  }
  if (sent !== stored) throw new Error(`${path}: sent ${JSON.stringify(sent)}, stored ${JSON.stringify(stored)}`);
  return undefined;
}

/** A volume and a mount that Kubernetes would add for a service account must not be there; names of live objects vary. */
const steady = (value: Json | undefined): string => toYaml(value ?? {}).replaceAll(claim.name, '<claim>');

test('the provider makes a Sandbox and a Pod of the claim, and the Pod becomes ready', async () => {
  await eventually('Sandbox', () => get(kube, sandbox));
  expect((await readyPod(podRef)).status.phase).toBe('Running');
});

test('the Pod is the rendered one, but for the defaults of the server', async () => {
  const { spec } = (await readyPod(podRef)) as unknown as { spec: Json };
  const { podTemplate } = (pool.workload[0] as unknown as { spec: { podTemplate: { spec: Json } } }).spec;
  expect(steady(added(podTemplate.spec, spec, 'spec'))).toMatchSnapshot();
});

test('the Pod carries our labels and annotations, and of the provider only its own', async () => {
  const { labels = {}, annotations = {} } = (await readyPod(podRef)).metadata;
  const { podTemplate } = (
    pool.workload[0] as unknown as { spec: { podTemplate: { metadata: { labels: object; annotations: object } } } }
  ).spec;
  expect(labels).toMatchObject(podTemplate.metadata.labels);
  expect(annotations).toMatchObject(podTemplate.metadata.annotations);
  const theirs = (all: object, ours: object) =>
    Object.keys(all)
      .filter((name) => !(name in ours))
      .sort();
  expect(theirs(labels, podTemplate.metadata.labels)).toEqual([
    'agents.x-k8s.io/claim-uid',
    'agents.x-k8s.io/sandbox-name-hash',
    'agents.x-k8s.io/sandbox-template-ref-hash',
  ]);
  expect(theirs(annotations, podTemplate.metadata.annotations)).toEqual([
    'agents.x-k8s.io/propagated-annotations',
    'agents.x-k8s.io/propagated-labels',
  ]);
});

describe('our apply', () => {
  test('changes nothing when nothing changed', async () => {
    const outcomes = await Promise.all(
      [...pool.isolation, ...pool.workload].map((manifest) => apply(kube, manifest, { manager, force: true })),
    );
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(Array<string>(outcomes.length).fill('unchanged'));
  });

  test('is refused with the field when the object is not what the schema says', async () => {
    const [template] = pool.workload;
    const wrong = { ...template, spec: { ...(template?.['spec'] as object), colour: 'red' } } as unknown as Manifest;
    await expect(apply(kube, wrong, { manager, force: true, dryRun: true })).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('colour'),
    });
  });

  test('tells who owns a field that it may not take', async () => {
    const [, warmPool] = pool.workload;
    const other = { ...warmPool, spec: { ...(warmPool?.['spec'] as object), replicas: 1 } } as unknown as Manifest;
    const refused = apply(kube, other, { manager: 'someone-else', dryRun: true });
    await expect(refused).rejects.toMatchObject({
      code: 'conflict',
      causes: [expect.objectContaining({ field: '.spec.replicas' })],
    });
  });
});

test('a claim is created once: a second creation finds the first', async () => {
  await expect(create(kube, pool.claim!, { manager })).rejects.toMatchObject({ code: 'already-exists' });
});

test('a deletion that means another object of the name deletes nothing', async () => {
  expect(await remove(kube, claim, { uid: '00000000-0000-4000-8000-000000000000', propagation: 'Foreground' })).toBe('another');
  expect(await get(kube, claim)).toBeDefined();
});

test('a kind that is not there and an object that is not there are told apart', async () => {
  await expect(get(kube, { apiVersion: 'none.orka.ai/v1', kind: 'None', name: 'x' })).rejects.toMatchObject({
    code: 'kind-missing',
  });
  expect(await get(kube, { ...claim, name: 'not-there' })).toBeUndefined();
});

test('deleting the claim in the foreground removes Sandbox and Pod before the claim', async () => {
  const uid = (await get(kube, claim))?.metadata.uid ?? '';
  expect(await remove(kube, claim, { uid, propagation: 'Foreground' })).toBe('requested');
  await gone(claim, 180);
  expect(await get(kube, sandbox)).toBeUndefined();
  expect(await get(kube, podRef)).toBeUndefined();
}, 240_000);
