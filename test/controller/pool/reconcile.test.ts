import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Manifest, RuntimePool } from '../../../src/api/index.js';
import type { PoolEffect } from '../../../src/controller/pool/decision.js';
import { isObject } from '../../../src/lib/json.js';
import type { JsonObject } from '../../../src/lib/json.js';
import { fakePoolCluster, providerToken } from '../../support/fake-pool-cluster.js';
import type { FakePoolCluster, Sent } from '../../support/fake-pool-cluster.js';
import { rendered } from '../../support/pool-observation.js';

let cluster: FakePoolCluster;
beforeEach(async () => {
  cluster = await fakePoolCluster();
});
afterEach(() => cluster.close());

const lifecycle = () => cluster.pool()?.status?.lifecycle;
const isServing = () => cluster.pool()?.status?.admissionState === 'Accepting';
const annotations = () => cluster.pool()?.metadata.annotations ?? {};
const ownSecrets = () => cluster.objects('Secret').filter(({ metadata }) => metadata.namespace === 'orka-runtimes');
const written = (from = 0) =>
  cluster.sent.slice(from).flatMap(({ method, kind, body }) => {
    if (method === 'GET') return [];
    const status = (JSON.parse(body) as JsonObject)['status'];
    return status === undefined || method === 'POST' ? [`${method} ${kind}`] : [];
  });
const asPool = (pool: RuntimePool | undefined) => pool as unknown as Manifest;
const scale = (desiredReplicas: number) => {
  const pool = cluster.pool()!;
  cluster.put(asPool({ ...pool, spec: { ...pool.spec, desiredReplicas } }));
};
/** Everything that must not be seen anywhere: values of the private Secrets and the provider's token. */
const secretValues = () => {
  const values = ownSecrets().flatMap(({ data }) => Object.values(data as Readonly<Record<string, string>>));
  return [...new Set([providerToken, ...values.map((value) => Buffer.from(value, 'base64').toString())])];
};
/** The nonce is public: it stands in the template. */
const publicNonce = () => {
  const auth = ownSecrets().find(({ metadata }) => metadata.labels?.['orka.ai/runtime-pool-auth'] === 'true');
  return Buffer.from((auth?.['data'] as Record<string, string> | undefined)?.['bootstrap-nonce'] ?? '', 'base64').toString();
};

describe('from nothing to an instance that takes work', () => {
  test('everything is made once, in the order in which it protects what comes after it', async () => {
    await cluster.run(cluster.start(), isServing);
    expect(written()).toEqual([
      'PATCH RuntimePool',
      'POST Secret',
      'POST Secret',
      'PATCH RuntimePool',
      ...rendered.isolation.map(({ kind }) => `POST ${kind}`),
      'POST SandboxTemplate',
      'POST SandboxWarmPool',
      'PATCH RuntimePool',
      'POST SandboxClaim',
      'PATCH RuntimePool',
    ]);
  });

  test('an instance that serves is left alone', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    const before = cluster.sent.length;
    await cluster.run(controller);
    expect(cluster.sent.slice(before)).toEqual([]);
  });

  test('credentials go to the instance and into their two Secrets, and nowhere else', async () => {
    await cluster.run(cluster.start(), isServing);
    const hidden = secretValues().filter((value) => value !== publicNonce());
    const elsewhere = cluster.sent.filter(({ method, kind }) => !(method === 'POST' && kind === 'Secret'));
    const everything = JSON.stringify([elsewhere, cluster.pool(), cluster.objects('SandboxTemplate'), cluster.objects('Pod')]);
    const found = hidden.filter(
      (value) => everything.includes(value) || everything.includes(Buffer.from(value).toString('base64')),
    );
    expect([hidden.length, found]).toEqual([4, []]);
    expect(cluster.supervisor.seeds.length).toBe(1);
  });

  test('an instance that does not answer puts no credential into the status', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    cluster.supervisor.silent = true;
    controller.lookAgain(cluster.key);
    await cluster.run(controller, () => lifecycle() === 'Degraded');
    const status = JSON.stringify(cluster.pool()?.status);
    expect(secretValues().filter((value) => status.includes(value))).toEqual([]);
  });
});

/** What each start writes, so that each of it can be the last thing that a process did. */
const writes: readonly { readonly name: string; readonly matching: (sent: Sent) => boolean }[] = [
  { name: 'the finalizer', matching: ({ method, body }) => method === 'PATCH' && body.includes('"finalizers"') },
  { name: 'the first Secret', matching: ({ method, kind }) => method === 'POST' && kind === 'Secret' },
  { name: 'the name of the Secret', matching: ({ body }) => body.includes('private-auth-secret') },
  { name: 'the Service', matching: ({ method, kind }) => method === 'POST' && kind === 'Service' },
  { name: 'a policy', matching: ({ method, kind }) => method === 'POST' && kind === 'NetworkPolicy' },
  { name: 'the template', matching: ({ method, kind }) => method === 'POST' && kind === 'SandboxTemplate' },
  { name: 'the record of the template', matching: ({ body }) => body.includes('sandbox-template-revision') },
  { name: 'the warm pool', matching: ({ method, kind }) => method === 'POST' && kind === 'SandboxWarmPool' },
  { name: 'the claim', matching: ({ method, kind }) => method === 'POST' && kind === 'SandboxClaim' },
  { name: 'the binding', matching: ({ body }) => body.includes('bootstrap-instance-binding') },
  { name: 'the admission', matching: ({ body }) => body.includes('"Accepting"') },
];

describe('a process that ends between two steps', () => {
  const converges = async (epoch: number, sent: (typeof writes)[number], done: boolean): Promise<void> => {
    cluster.fail(sent.matching, 'crash', done);
    await expect(cluster.run(cluster.start(7), isServing)).rejects.toThrow('the process ends here');
    const successor = cluster.start(epoch);
    await cluster.run(successor, () => isServing() && cluster.pool()?.status?.activeInstance?.controllerEpoch === epoch);
    await cluster.run(successor);
    expect([
      isServing(),
      ownSecrets().length,
      cluster.objects('SandboxClaim').length,
      cluster.objects('NetworkPolicy').length,
    ]).toEqual([true, 2, 1, 5]);
    expect(Object.keys(annotations()).filter((name) => name.includes('private-auth-secret'))).toEqual([
      `orka.ai/private-auth-secret-e${epoch}`,
    ]);
  };
  test.each(writes)('before $name, is followed by another to the same end', (sent) => converges(8, sent, false));
  test.each(writes)('after $name, is followed by another to the same end', (sent) => converges(8, sent, true));
  test.each(writes)('after $name, may lose its memory and go on', (sent) => converges(7, sent, true));
});

describe('another epoch while an instance lives', () => {
  test('the old instance drains with its own credentials, and only then their Secrets go', async () => {
    await cluster.run(cluster.start(7), isServing);
    const [before, old] = [cluster.sent.length, ownSecrets().map(({ metadata }) => metadata.name)];
    await cluster.run(cluster.start(8), () => cluster.pool()?.status?.activeInstance?.controllerEpoch === 8);
    const ends = cluster.sent.slice(before).filter(({ method }) => method === 'DELETE');
    expect(ends.map(({ kind }) => kind)).toEqual(['SandboxClaim', 'Secret', 'Secret']);
    expect(ends.slice(1).map(({ name }) => name)).toEqual(expect.arrayContaining(old));
    expect(cluster.supervisor.drains).toBe(1);
  });

  test('credentials that no Pod was given are made once', async () => {
    await cluster.run(cluster.start(7), isServing);
    const before = cluster.sent.length;
    await cluster.run(cluster.start(8), () => cluster.pool()?.status?.activeInstance?.controllerEpoch === 8);
    expect(written(before).filter((one) => one === 'POST Secret').length).toBe(2);
  });
});

describe('an instance that is lost', () => {
  test('is followed by another with other credentials', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    const first = cluster.pool()?.status?.activeInstance?.podUID;
    cluster.remove('Pod', cluster.objects('Pod')[0]!.metadata.name);
    cluster.supervisor.seeded = false;
    await cluster.run(controller, () => isServing() && cluster.pool()?.status?.activeInstance?.podUID !== first);
    const [one, other] = cluster.supervisor.seeds;
    expect([cluster.supervisor.seeds.length, one === other]).toEqual([2, false]);
  });

  test('a token that was rotated since is the one that the next instance gets', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    const rotated = `${providerToken}-rotated`;
    const [proxy] = cluster.objects('Secret').filter(({ metadata }) => metadata.name === 'provider-proxy');
    cluster.put({ ...proxy!, data: { token: Buffer.from(rotated).toString('base64') } });
    cluster.remove('Pod', cluster.objects('Pod')[0]!.metadata.name);
    cluster.supervisor.seeded = false;
    await cluster.run(controller, () => cluster.supervisor.seeds.length === 2);
    expect(cluster.supervisor.seeds[1]).toContain(rotated);
  });

  test('a container that is started again is never used again, though it cannot be asked at first', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    const [pod] = cluster.objects('Pod');
    const status = {
      ...(pod!['status'] as JsonObject),
      containerStatuses: [{ name: 'runtime', containerID: 'containerd://2', state: {} }],
    };
    cluster.put({ ...pod!, status });
    Object.assign(cluster.supervisor, { silent: true, seeded: false, boot: 'boot-2' });
    await cluster.run(controller, () => cluster.objects('Pod').length === 0);
    expect(cluster.supervisor.seeds.length).toBe(1);
  });
});

describe('a token of the provider that is rotated under an instance', () => {
  const rotate = (token: string) => {
    cluster.put({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'provider-proxy', namespace: 'orka-system' },
      data: { token: Buffer.from(token).toString('base64') },
    });
  };

  test('drains the instance first, and the next one gets the new token', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    const before = cluster.pool()?.status?.activeInstance?.providerTokenGeneration;
    const rotated = `another-${providerToken}`;
    rotate(rotated);
    await cluster.run(controller, () => cluster.supervisor.drains === 1);
    expect(cluster.pool()?.status?.activeInstance?.providerTokenGeneration).toBe(before);
    await cluster.run(controller, () => cluster.supervisor.seeds.length === 2 && isServing());
    expect([cluster.supervisor.seeds[1]?.includes(rotated), ownSecrets().length]).toEqual([true, 2]);
  });

  test('changes nothing when it is the same token again', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    rotate(providerToken);
    const before = cluster.sent.length;
    await cluster.run(controller);
    expect(cluster.sent.slice(before).filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});

describe('what is refused', () => {
  const settles = async (): Promise<number> => {
    const controller = cluster.start();
    await cluster.run(controller, () => lifecycle() === 'Degraded');
    const before = cluster.sent.length;
    for (let round = 0; round < 5; round++) await controller.reconcile(cluster.key, new AbortController().signal);
    return cluster.sent.slice(before).filter(({ body }) => body.includes('"status"')).length;
  };

  test('a foreign object under our name is reported, stays as it is, and is no reason to write again and again', async () => {
    const foreign = cluster.put({ ...rendered.claim!, metadata: { ...rendered.claim!.metadata, labels: { team: 'a' } } });
    await expect(settles()).resolves.toBe(0);
    expect(cluster.pool()?.status?.message).toContain('nothing, or an object with the full ownership identity');
    expect([cluster.objects('SandboxClaim'), cluster.objects('Pod')]).toEqual([[foreign], []]);
  });

  test('a claim that a quota forbids is said on its condition, and written about once', async () => {
    for (let more = 0; more < 9; more++)
      cluster.fail(({ method, kind }) => method === 'POST' && kind === 'SandboxClaim', 'forbidden');
    await expect(settles()).resolves.toBe(0);
  });

  test('a missing token of the provider is written about once, and found when it is there', async () => {
    cluster.remove('Secret', 'provider-proxy');
    await expect(settles()).resolves.toBe(0);
    cluster.put({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'provider-proxy', namespace: 'orka-system' },
      data: { token: Buffer.from(providerToken).toString('base64') },
    });
    await cluster.run(cluster.start(), isServing);
    expect(isServing()).toBe(true);
  });
});

test('a private Secret that someone deleted is missed though it is remembered, and ends what was started with it', async () => {
  const controller = cluster.start();
  await cluster.run(controller, isServing);
  const auth = ownSecrets().find(({ metadata }) => metadata.labels?.['orka.ai/runtime-pool-auth'] === 'true');
  cluster.remove('Secret', auth!.metadata.name);
  await cluster.run(controller, () => cluster.supervisor.seeds.length === 2 && isServing());
  expect(new Set(cluster.supervisor.seeds).size).toBe(2);
});

describe('the end of a pool', () => {
  test('scaled to zero it drains, records that it is quiet, and deletes its claim', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    scale(0);
    const before = cluster.sent.length;
    await cluster.run(controller, () => lifecycle() === 'Stopped');
    const bodies = cluster.sent.slice(before);
    const quiet = bodies.findIndex(({ body }) => body.includes('"Quiescent"'));
    const ended = bodies.findIndex(({ method, kind }) => method === 'DELETE' && kind === 'SandboxClaim');
    expect([cluster.supervisor.drains === 1, quiet >= 0 && quiet < ended, cluster.objects('Pod').length]).toEqual([
      true,
      true,
      0,
    ]);
  });

  test('wanted again it gets another instance with other credentials', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    scale(0);
    await cluster.run(controller, () => lifecycle() === 'Stopped');
    scale(1);
    await cluster.run(controller, isServing);
    expect([cluster.supervisor.seeds.length, ownSecrets().length]).toEqual([2, 2]);
  });

  const deletePool = () => {
    const pool = cluster.pool()!;
    cluster.put(
      asPool({ ...pool, metadata: { ...pool.metadata, deletionTimestamp: new Date(cluster.clock.now()).toISOString() } }),
    );
  };

  test('deleted it leaves nothing behind', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    deletePool();
    await cluster.run(controller, () => cluster.pool() === undefined);
    const kinds = ['SandboxClaim', 'SandboxTemplate', 'SandboxWarmPool', 'Service', 'NetworkPolicy', 'PodDisruptionBudget'];
    expect([...kinds.flatMap((kind) => cluster.objects(kind)), ...ownSecrets()]).toEqual([]);
  });

  test('nothing is decided while pools of its namespace cannot be listed', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    deletePool();
    cluster.unreadable.add('pools');
    const before = cluster.sent.length;
    expect(await controller.reconcile(cluster.key, new AbortController().signal)).toBeUndefined();
    expect(cluster.sent.slice(before)).toEqual([]);
    cluster.unreadable.clear();
    await cluster.run(controller, () => cluster.pool() === undefined);
  });

  test('deleted it waits for what somebody holds', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    const [template] = cluster.objects('SandboxTemplate');
    const held = cluster.put({ ...template!, metadata: { ...template!.metadata, finalizers: ['example.com/held'] } });
    deletePool();
    await cluster.run(controller, () => cluster.objects('SandboxTemplate')[0]?.metadata.deletionTimestamp !== undefined);
    expect(await controller.reconcile(cluster.key, new AbortController().signal)).toEqual({ requeueAfter: 1_000 });
    expect([cluster.pool() !== undefined, cluster.objects('NetworkPolicy').length]).toEqual([true, 5]);
    cluster.remove('SandboxTemplate', held.metadata.name);
    await cluster.run(controller, () => cluster.pool() === undefined);
  });

  describe('by someone who took its finalizer away', () => {
    const left = () =>
      ['SandboxClaim', 'Pod', 'SandboxTemplate', 'SandboxWarmPool', 'Service', 'NetworkPolicy', 'PodDisruptionBudget']
        .flatMap((kind) => cluster.objects(kind))
        .concat(ownSecrets());

    test('it leaves nothing behind either: its sandbox goes before its isolation, and Secrets last', async () => {
      await cluster.run(cluster.start(), isServing);
      cluster.remove('RuntimePool', cluster.pool()!.metadata.name);
      const before = cluster.sent.length;
      await cluster.run(cluster.start(), () => left().length === 0);
      const deleted = cluster.sent.slice(before).flatMap(({ method, kind }) => (method === 'DELETE' ? [kind] : []));
      expect([...new Set(deleted)]).toEqual([
        'SandboxClaim',
        'SandboxWarmPool',
        'SandboxTemplate',
        'Service',
        'NetworkPolicy',
        'PodDisruptionBudget',
        'Secret',
      ]);
    });

    test('nothing of it is removed while a kind of its children cannot be listed', async () => {
      await cluster.run(cluster.start(), isServing);
      cluster.remove('RuntimePool', cluster.pool()!.metadata.name);
      cluster.unreadable.add('claims');
      const before = cluster.sent.length;
      expect(await cluster.start().reconcile(cluster.key, new AbortController().signal)).toEqual({ requeueAfter: 1_000 });
      expect(cluster.sent.slice(before)).toEqual([]);
      cluster.unreadable.clear();
      await cluster.run(cluster.start(), () => left().length === 0);
    });

    test('it is asked of the server whether it is really gone', async () => {
      const controller = cluster.start();
      await cluster.run(controller, isServing);
      const pool = cluster.pool()!;
      cluster.remove('RuntimePool', pool.metadata.name);
      const before = cluster.sent.length;
      await cluster.run(controller, () => left().length === 0);
      expect(cluster.sent[before]).toMatchObject({ method: 'GET', kind: 'RuntimePool', name: pool.metadata.name });
    });

    test('its name is free for another pool, which gets everything of its own', async () => {
      await cluster.run(cluster.start(), isServing);
      const pool = cluster.pool()!;
      cluster.remove('RuntimePool', pool.metadata.name);
      const { uid: _uid, resourceVersion: _version, finalizers: _held, annotations, ...metadata } = pool.metadata;
      const kept = Object.entries(annotations ?? {}).filter(
        ([name]) => name.includes('runtime-pool-class') || name.includes('demand'),
      );
      const { status: _status, ...rest } = pool;
      cluster.put(asPool({ ...rest, metadata: { ...metadata, annotations: Object.fromEntries(kept) } }));
      await cluster.run(cluster.start(), isServing, 200);
      const { uid } = cluster.pool()!.metadata;
      expect([
        uid !== pool.metadata.uid,
        left().every(({ metadata: { labels } }) => labels?.['orka.ai/runtime-pool-uid'] === uid),
      ]).toEqual([true, true]);
    });
  });

  test('what its claim left is deleted, though nobody owns it', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    for (const kind of ['Sandbox', 'Pod']) {
      const [one] = cluster.objects(kind);
      const { ownerReferences: _owners, ...metadata } = one!.metadata;
      cluster.put({ ...one!, metadata });
    }
    cluster.remove('SandboxClaim', cluster.objects('SandboxClaim')[0]!.metadata.name);
    const before = cluster.sent.length;
    await controller.reconcile(cluster.key, new AbortController().signal);
    const deleted = cluster.sent.slice(before).flatMap(({ method, kind }) => (method === 'DELETE' ? [kind] : []));
    expect(deleted).toEqual(['Sandbox', 'Pod']);
  });

  test('an object with only a label of the pool is not its own, and stays', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    const labels = { 'app.kubernetes.io/managed-by': 'orka', 'orka.ai/runtime-pool-uid': cluster.pool()?.metadata.uid ?? '' };
    cluster.put({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'foreign', namespace: 'orka-runtimes', labels } });
    deletePool();
    await cluster.run(controller, () => cluster.pool() === undefined);
    expect(ownSecrets().map(({ metadata }) => metadata.name)).toEqual(['foreign']);
  });

  test('a Task that is deleted takes nothing of the idle time of a shared pool along', async () => {
    const shared = await fakePoolCluster({}, 'plain');
    try {
      const controller = shared.start();
      await shared.run(controller, () => shared.pool()?.status?.admissionState === 'Accepting');
      const recorded = () => Date.parse(shared.pool()?.metadata.annotations?.['orka.ai/acp-last-demand-at'] ?? '');
      shared.remove('Task', 'wanting');
      const ended = shared.clock.now();
      await controller.reconcile(shared.key, new AbortController().signal);
      expect([recorded(), shared.pool()?.spec.desiredReplicas]).toEqual([ended, 1]);
      await shared.run(controller, () => shared.pool()?.spec.desiredReplicas === 0, 2_000);
      expect(shared.clock.now() - ended).toBeGreaterThanOrEqual(900_000);
    } finally {
      await shared.close();
    }
  });

  test.each<[string, () => void]>([
    ['is over', () => cluster.put({ ...cluster.objects('Task')[0]!, status: { execution: { state: 'Succeeded' } } })],
    ['was deleted', () => cluster.remove('Task', 'wanting')],
  ])('a pool of one Task that %s drains, loses its sandbox, and is deleted at once', async (_, end) => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    const [before, ended] = [cluster.sent.length, cluster.clock.now()];
    end();
    await cluster.run(controller, () => cluster.pool() === undefined);
    const kinds = ['RuntimePool', 'SandboxClaim', 'SandboxTemplate', 'SandboxWarmPool'];
    const gone = cluster.sent.slice(before).filter(({ method, kind }) => method === 'DELETE' && kinds.includes(kind));
    expect(gone.map(({ kind }) => kind)).toEqual(['SandboxClaim', 'RuntimePool', 'SandboxWarmPool', 'SandboxTemplate']);
    expect([cluster.supervisor.drains, ownSecrets()]).toEqual([1, []]);
    expect(cluster.clock.now() - ended).toBeLessThan(5_000);
  });

  const oom = { containerID: 'containerd://1', reason: 'OOMKilled', exitCode: 137 };
  const restartedAfter = (terminated: JsonObject, pod: Manifest): Manifest => ({
    ...pod,
    status: {
      ...(pod['status'] as JsonObject),
      containerStatuses: [{ name: 'runtime', containerID: 'containerd://2', state: { running: {} }, lastState: { terminated } }],
    },
  });
  const limitOf = (pod: Manifest) =>
    (pod['spec'] as { containers: { name: string; resources: { limits: { memory: string } } }[] }).containers.find(
      ({ name }) => name === 'runtime',
    )?.resources.limits.memory ?? 'none';

  test('a supervisor that ran out of memory is named with its limit, in message, conditions, event and effect', async () => {
    const effects: PoolEffect[] = [];
    const controller = cluster.start(7, (effect) => effects.push(effect));
    await cluster.run(controller, isServing);
    const [pod] = cluster.objects('Pod');
    const says = `its container runtime used more than its memory limit of ${limitOf(pod!)} and was killed (OOMKilled, exit code 137)`;
    cluster.put(restartedAfter(oom, pod!));
    await controller.reconcile(cluster.key, new AbortController().signal);
    const { status } = cluster.pool()!;
    expect(status?.message).toContain(says);
    expect(status?.conditions?.find(({ type }) => type === 'RolloutReady')?.message).toContain(says);
    expect(cluster.events.find(({ reason }) => reason === 'SandboxEnded')?.note).toContain(says);
    expect(effects.find((effect) => effect.do === 'delete-claim')).toMatchObject({ cause: 'restarted', by: 'OOMKilled' });
  });

  test('a Pod that was drained and replaced between two looks is named as the cause', async () => {
    const effects: PoolEffect[] = [];
    const controller = cluster.start(7, (effect) => effects.push(effect));
    await cluster.run(controller, isServing);
    const [pod] = cluster.objects('Pod');
    const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' }];
    cluster.put({ ...pod!, status: { ...(pod!['status'] as JsonObject), conditions } });
    cluster.remove('Pod', pod!.metadata.name);
    const { uid: _uid, ...metadata } = pod!.metadata;
    cluster.put({ ...pod!, metadata });
    await cluster.run(controller, () => effects.some((effect) => effect.do === 'delete-claim'));
    expect(effects.find((effect) => effect.do === 'delete-claim')).toMatchObject({
      by: 'NodeDrained',
      because: expect.stringContaining('its Pod was evicted') as unknown,
    });
    const rollout = cluster.pool()?.status?.conditions?.find(({ type }) => type === 'RolloutReady');
    expect(rollout?.message).toContain('its Pod was evicted');
  });

  /** Puts a shared pool beside the served one, idle and with a Pod on a node. */
  function putIdle(name: string, change: Partial<Manifest['metadata']> = {}): Manifest {
    const pool = cluster.pool()!;
    const { executionWorkspace: _workspace, ...spec } = pool.spec;
    const { uid: _uid, ...metadata } = pool.metadata;
    const idle = cluster.put({ ...asPool(pool), metadata: { ...metadata, name, ...change }, spec: { ...spec }, status: {} });
    const [pod] = cluster.objects('Pod');
    const labels = { ...pod!.metadata.labels, 'orka.ai/runtime-pool-name': name, 'orka.ai/runtime-pool-uid': `${name}-uid` };
    cluster.put({ ...pod!, metadata: { ...pod!.metadata, name, labels }, spec: { nodeName: 'node-1' } });
    return idle;
  }

  /** The scheduler finds no node for the Pod of the served pool. */
  function unschedule(): void {
    const [pod] = cluster.objects('Pod');
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'Insufficient cpu' }];
    cluster.put({ ...pod!, status: { phase: 'Pending', conditions } });
  }

  const replicasOf = (name: string) => {
    const stored = cluster.objects('RuntimePool').find(({ metadata }) => metadata.name === name);
    return isObject(stored?.['spec']) ? stored['spec']['desiredReplicas'] : undefined;
  };

  test('an idle pool is scaled to zero, with an event, for a Pod of another pool that cannot be scheduled', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    const idle = putIdle('idle');
    unschedule();
    await controller.reconcile(cluster.key, new AbortController().signal);
    expect(replicasOf('idle')).toBe(0);
    expect(cluster.events.find(({ reason }) => reason === 'RoomNeeded')).toMatchObject({
      regarding: { metadata: { uid: idle.metadata.uid } },
      note: expect.stringContaining(cluster.pool()!.metadata.name) as unknown,
    });
  });

  test('the room of a deleted pool that only a finalizer of somebody else holds is not waited for', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    putIdle('held', { deletionTimestamp: new Date(cluster.clock.now()).toISOString(), finalizers: ['example.com/mine'] });
    putIdle('idle');
    unschedule();
    await controller.reconcile(cluster.key, new AbortController().signal);
    expect(replicasOf('idle')).toBe(0);
  });

  test('the end of a pool is told step by step: it drains, and nothing is left', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    const { metadata, ...pool } = cluster.pool()!;
    cluster.put({ ...pool, metadata: { ...metadata, deletionTimestamp: new Date(cluster.clock.now()).toISOString() } });
    await cluster.run(controller, () => cluster.milestones.includes('PoolEnded'));
    expect(cluster.milestones.filter((what, at, all) => all.indexOf(what) === at)).toEqual(['Draining', 'PoolEnded']);
  });

  test('demand that came while a deletion was decided is not overlooked', async () => {
    const controller = cluster.start();
    await cluster.run(controller, isServing);
    scale(0);
    await cluster.run(controller, () => lifecycle() === 'Stopped');
    cluster.remove('Task', 'wanting');
    const stopped = cluster.pool()!;
    const long = new Date(cluster.clock.now() - 2_000_000).toISOString();
    const asked = { ...stopped.metadata.annotations, 'orka.ai/acp-last-demand-at': long };
    cluster.put(asPool({ ...stopped, metadata: { ...stopped.metadata, annotations: asked } }));
    cluster.fail(({ method, kind }) => method === 'DELETE' && kind === 'RuntimePool', 'conflict');
    // One that did not see who wanted it.
    await cluster.start().reconcile(cluster.key, new AbortController().signal);
    const deletion = cluster.sent.findLast(({ method, kind }) => method === 'DELETE' && kind === 'RuntimePool');
    expect(deletion?.body).toContain(`"resourceVersion":"${cluster.pool()?.metadata.resourceVersion ?? ''}"`);
  });
});
