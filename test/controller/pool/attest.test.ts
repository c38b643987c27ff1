import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Manifest } from '../../../src/api/index.js';
import type { PoolReconciler } from '../../../src/controller/pool/reconcile.js';
import type { KubeErrorCode } from '../../../src/kube/errors.js';
import type { JsonObject } from '../../../src/lib/json.js';
import { fakePoolCluster, providerToken } from '../../support/fake-pool-cluster.js';
import type { FakePoolCluster } from '../../support/fake-pool-cluster.js';

let cluster: FakePoolCluster;
let controller: PoolReconciler;
afterEach(() => cluster.close());

const isServing = () => cluster.pool()?.status?.admissionState === 'Accepting';
const dryRuns = () => cluster.sent.filter(({ dryRun }) => dryRun);
const claimsMade = () => cluster.sent.filter(({ method, kind }) => method === 'POST' && kind === 'SandboxClaim').length;
const given = () =>
  cluster.sent.filter(({ body }) => body.includes('bootstrap-instance-binding')).length + cluster.supervisor.seeds.length;
/** Some status has said it. */
const said = (text: string) => cluster.sent.some(({ kind, body }) => kind === 'RuntimePool' && body.includes(text));
const message = () => cluster.pool()?.status?.message ?? '';
const change = (edit: (pod: Manifest) => Manifest) => cluster.put(edit(cluster.objects('Pod')[0]!));
const again = (edit: () => void) => {
  edit();
  return cluster.run(controller);
};

/** A sidecar before the supervisor, and a note of it. */
const injected = (pod: Manifest, image = 'example.com/proxy:1'): Manifest => {
  const spec = pod['spec'] as JsonObject;
  const containers = [{ name: 'proxy', image }, ...(spec['containers'] as readonly JsonObject[])];
  const annotations = { ...pod.metadata.annotations, 'example.com/injected': 'true' };
  return { ...pod, metadata: { ...pod.metadata, annotations }, spec: { ...spec, containers } };
};
const labelled = (pod: Manifest): Manifest => ({
  ...pod,
  metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, 'example.com/by-hand': 'true' } },
});

describe('a class that takes admission into account', () => {
  beforeEach(async () => {
    cluster = await fakePoolCluster({ attestation: 'AdmissionAware' });
    controller = cluster.start();
  });

  test('serves from a Pod that admission added to', async () => {
    cluster.admission.mutate = injected;
    await cluster.run(controller, isServing);
    expect([claimsMade(), cluster.supervisor.seeds.length]).toEqual([1, 1]);
  });

  test('asks in a dry run, in our name, for the expected Pod under another name, and nothing is made', async () => {
    await cluster.run(controller, isServing);
    const [pod] = cluster.objects('Pod');
    const [asked] = dryRuns();
    expect(dryRuns().length).toBe(1);
    expect(asked).toMatchObject({ method: 'POST', kind: 'Pod', manager: 'controller', dryRun: true });
    const { metadata, spec } = JSON.parse(asked!.body) as Manifest;
    expect([metadata.name.length, metadata.name === pod!.metadata.name]).toEqual([pod!.metadata.name.length, false]);
    expect([metadata.labels, spec]).toEqual([pod!.metadata.labels, pod!['spec']]);
    expect([
      cluster.objects('Pod').length,
      cluster.sent.filter(({ method, kind, dryRun }) => method !== 'GET' && kind === 'Pod' && !dryRun),
    ]).toEqual([1, []]);
  });

  test('sends no credential with it', async () => {
    await cluster.run(controller, isServing);
    const secrets = cluster.objects('Secret').filter(({ metadata }) => metadata.namespace === 'orka-runtimes');
    const isPublic = ([name]: readonly [string, string]) => name === 'bootstrap-nonce';
    const values = secrets.flatMap(({ data }) =>
      Object.entries(data as Readonly<Record<string, string>>).filter((one) => !isPublic(one)),
    );
    const told = [providerToken, ...values.flatMap(([, value]) => [value, Buffer.from(value, 'base64').toString()])];
    const { body } = dryRuns()[0]!;
    expect([values.length > 2, told.filter((value) => body.includes(value))]).toEqual([true, []]);
  });

  test('does not ask again as long as the Pod stays as it was accepted', async () => {
    cluster.admission.mutate = injected;
    await cluster.run(controller, isServing);
    await again(() => change((pod) => ({ ...pod, status: { ...(pod['status'] as JsonObject), note: 'probed' } })));
    // Other Pods are made otherwise from now on; this one was accepted.
    cluster.admission.mutate = (pod) => injected(pod, 'example.com/proxy:2');
    await again(() => controller.lookAgain(cluster.key));
    expect([isServing(), dryRuns().length, claimsMade()]).toEqual([true, 1, 1]);
  });

  test.each<readonly [string, (pod: Manifest) => Manifest]>([
    ['a label', labelled],
    ['a sidecar of its own', (pod) => injected(pod, 'example.com/other')],
  ])('gives up an instance whose Pod alone was given %s', async (_what, edit) => {
    await cluster.run(controller, isServing);
    await again(() => change(edit));
    await cluster.run(controller, () => claimsMade() === 2 && isServing());
    expect(cluster.supervisor.seeds.length).toBe(2);
  });

  test('gives up a Pod that was changed alone before anything was given to it, and says what', async () => {
    let made = 0;
    // Only what the provider creates has an owner that blocks; the expected Pod has none.
    cluster.admission.mutate = (pod) => (pod.metadata.uid !== undefined && made++ === 0 ? labelled(pod) : pod);
    await cluster.run(controller, () => message().includes('example.com/by-hand'));
    expect([given(), message()]).toEqual([0, expect.stringContaining('found "true"')]);
    await cluster.run(controller, isServing);
    expect(claimsMade()).toBe(2);
  });

  test('does not give up a Pod faster and faster where admission answers otherwise each time', async () => {
    let time = 0;
    cluster.admission.mutate = (pod) => ({
      ...pod,
      metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, 'example.com/injected-at': String(time++) } },
    });
    const began = cluster.clock.now();
    await cluster.run(controller, () => claimsMade() === 9, 500);
    // 0, 1, 2, 4, 8, 16, 32 and 60 seconds between them.
    expect(cluster.clock.now() - began).toBeGreaterThanOrEqual(123_000);
    expect([given(), said('metadata.annotations[example.com/injected-at]')]).toEqual([0, true]);
  });

  const codes: readonly KubeErrorCode[] = [
    'forbidden',
    'server-error',
    'timeout',
    'invalid',
    'too-many-requests',
    'already-exists',
    'unreachable',
  ];
  test.each(codes)('decides nothing while the dry run fails with %s, and goes on when it is answered', async (code) => {
    for (let time = 0; time < 5; time++) cluster.fail(({ dryRun }) => dryRun, code);
    await cluster.run(controller, () => cluster.pool()?.status?.lifecycle === 'Degraded');
    expect([message(), given()]).toEqual([expect.stringContaining(`refused: ${code}`), 0]);
    const began = cluster.clock.now();
    await cluster.run(controller, isServing);
    // 1, 2, 4, 8 and 10 seconds, in which it is said once.
    const lasted = cluster.clock.now() - began;
    expect(lasted).toBeGreaterThanOrEqual(25_000);
    expect(lasted).toBeLessThan(26_000);
    expect([dryRuns().length, claimsMade(), cluster.supervisor.seeds.length]).toEqual([6, 1, 1]);
  });

  test('keeps an instance that was changed, and gives it no work, while admission cannot be asked', async () => {
    await cluster.run(controller, isServing);
    for (let time = 0; time < 3; time++) cluster.fail(({ dryRun }) => dryRun, 'server-error');
    change(labelled);
    await cluster.run(controller, () => cluster.pool()?.status?.lifecycle === 'Degraded');
    expect([cluster.pool()?.status?.admissionState, cluster.pool()?.status?.activeInstance !== undefined, claimsMade()]).toEqual([
      'Closed',
      true,
      1,
    ]);
    await cluster.run(controller, () => claimsMade() === 2);
  });

  test('needs no answer for what no admission may do', async () => {
    await cluster.run(controller, isServing);
    const spec = cluster.objects('Pod')[0]!['spec'] as JsonObject;
    const [runtime] = spec['containers'] as readonly JsonObject[];
    change((pod) => ({ ...pod, spec: { ...spec, containers: [{ ...runtime, image: 'example.com/other' }] } }));
    await cluster.run(controller, () => message().includes('spec.containers[0].image'));
    expect(dryRuns().length).toBe(1);
  });
});

describe('a class that does not', () => {
  beforeEach(async () => {
    cluster = await fakePoolCluster();
    controller = cluster.start();
  });

  test('never asks, and gives up a Pod that admission added to', async () => {
    cluster.admission.mutate = injected;
    await cluster.run(controller, () => claimsMade() === 3);
    expect([dryRuns(), given(), said('example.com/injected')]).toEqual([[], 0, true]);
  });
});
