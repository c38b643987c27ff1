/** Objects that are not a pool's own and pass for it, and Pods that are other than what was rendered from their first moment on. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Agent, Manifest, RuntimePool, RuntimePoolStatus, Task } from '../../src/api/index.js';
import { labelKeys } from '../../src/domain/labels.js';
import { planTask } from '../../src/domain/plan.js';
import { get } from '../../src/kube/client.js';
import { create } from '../../src/kube/create.js';
import type { JsonObject } from '../../src/lib/json.js';
import { startChronicle } from './support/chronicle.js';
import type { Chronicle } from './support/chronicle.js';
import { cluster, eventually, kube, kubectl } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import { applyObjects, example, read, readPool, readTask, taskLike, taskOver } from './support/first-task.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { recording, recordingContainer } from './support/recorder.js';
import {
  boundPods,
  change,
  claimsOf,
  deleteNow,
  demand,
  demandedBy,
  dismiss,
  exposed,
  instanceOf,
  objectsOf,
  serve,
  somebody,
  statusesOf,
  takesWork,
  waiting,
} from './support/tampering.js';
import type { Demanded, Instance, PoolObjects, Serving } from './support/tampering.js';
import { podWebhook } from './support/webhook.js';
import type { PodWebhook } from './support/webhook.js';

const { namespace = '' } = example.task.metadata;
const closed = expect.objectContaining({ type: 'AdmissionReady', status: 'False', reason: 'AdmissionClosed' });

let product: Installed;
let chronicle: Chronicle;

beforeAll(async () => {
  product = await installed({ gates: true });
  chronicle = startChronicle(product);
  await applyObjects(kubectl, [example.agent, ...waiting.objects(product)]);
}, 300_000);
afterAll(async () => {
  chronicle.stop();
  await kubectl(['delete', 'runtimepoolclasses.core.orka.ai', 'never-approved', '-n', product.namespaces.controller]);
  await product.remove();
}, 600_000);

const tell = stopwatch('intruders');
const statusOf = (seen: { readonly object: Manifest }) => (seen.object as unknown as RuntimePool).status;
/** The pool's status once it says something. */
const says = async ({ metadata }: RuntimePool, text: string, seconds = 120): Promise<RuntimePoolStatus | undefined> => {
  const told = await chronicle.first(
    'pools',
    (seen) => seen.object.metadata.uid === metadata.uid && (statusOf(seen)?.message ?? '').includes(text),
    seconds,
  );
  return statusOf({ object: told });
};

/** What happens while no controller runs; the next one has another epoch. */
async function withoutController(body: () => Promise<void>): Promise<void> {
  const { controller } = product.namespaces;
  const { name } = product.deployment.metadata;
  const scale = (replicas: number) => kubectl(['scale', `deployment/${name}`, '-n', controller, `--replicas=${replicas}`]);
  await scale(0);
  await kubectl(['wait', '--for=delete', 'pods', '-n', controller, '-l', `app.kubernetes.io/name=${name}`, '--timeout=60s']);
  try {
    await body();
  } finally {
    await scale(1);
    await kubectl(['rollout', 'status', `deployment/${name}`, '-n', controller, '--timeout=120s']);
  }
}

describe('where an object of a pool should stand, and another one does:', () => {
  interface Row {
    readonly what: string;
    readonly of: (objects: PoolObjects) => PoolObjects['claim'];
    readonly spec: JsonObject;
  }
  const rows: readonly Row[] = [
    {
      what: 'SandboxTemplate',
      of: ({ template }) => template,
      spec: { podTemplate: { spec: { containers: [recordingContainer] } } },
    },
    {
      what: 'SandboxWarmPool',
      of: ({ warmPool }) => warmPool,
      spec: { replicas: 0, sandboxTemplateRef: { name: 'of-somebody' } },
    },
    { what: 'SandboxClaim', of: ({ claim }) => claim, spec: { warmPoolRef: { name: 'of-somebody' } } },
  ];
  interface Met extends Demanded {
    readonly before: Manifest;
    readonly after: Manifest | undefined;
    readonly status: RuntimePoolStatus;
    readonly claims: readonly string[];
    readonly over: Task;
  }
  const met = new Map<string, Met>();
  /** A Secret with all labels of the pool, of the epoch that comes next. */
  let forged: Manifest;
  let forgedLater: Manifest | undefined;
  let forgedPool: Serving;
  let forgedStatuses: readonly RuntimePoolStatus[] = [];
  let forgedAfter: Instance | undefined;

  /** The pool that a Task will be given. */
  function plannedName(task: Task, agent: Agent): string {
    const plan = planTask({ task, agent, poolClass: product.poolClass, defaultProvider: 'agent-sandbox' });
    if ('problem' in plan) throw new Error(JSON.stringify(plan.problem));
    return plan.poolName;
  }

  async function forge({ pool }: Serving): Promise<Manifest> {
    const { runtime } = product.namespaces;
    const selected = ['-n', runtime, '-l', `${labelKeys.poolUid}=${pool.metadata.uid},${labelKeys.poolAuth}=true`];
    const { items } = JSON.parse(await kubectl(['get', 'secrets', ...selected, '-o', 'json'])) as {
      readonly items: readonly Manifest[];
    };
    const [{ metadata: { labels = {} } } = { metadata: {} }] = items as readonly Pick<Manifest, 'metadata'>[];
    const epoch = Number(labels[labelKeys.controllerEpoch]) + 1;
    const known = Buffer.from('k'.repeat(43)).toString('base64');
    return create(
      kube,
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: {
          name: 'put-there-by-somebody',
          namespace: runtime,
          labels: { ...labels, [labelKeys.controllerEpoch]: String(epoch) },
        },
        data: {
          'controller-token': known,
          'capability-secret': known,
          'bootstrap-nonce': known,
          'bootstrap-signing-seed': known,
        },
      },
      { manager: somebody },
    );
  }

  beforeAll(
    () =>
      explained(product, async () => {
        forgedPool = await serve(product, chronicle, 'forged-secret');
        const tasks = rows.map((_, index) => taskLike(`foreign-${index}`));
        const foreign = new Map<string, Manifest>();
        await withoutController(async () => {
          forged = await forge(forgedPool);
          const agent = (await read(kubectl, 'agents.core.orka.ai', example.agent.metadata)) as Agent;
          await applyObjects(kubectl, tasks);
          for (const [index, { what, of, spec }] of rows.entries()) {
            const task = (await readTask(kubectl, tasks[index]!.metadata))!;
            const { apiVersion, kind, name, namespace: where = '' } = of(objectsOf(product, plannedName(task, agent)));
            const object = { apiVersion, kind, metadata: { name, namespace: where, labels: { app: 'of-somebody' } }, spec };
            foreign.set(what, await create(kube, object, { manager: somebody }));
          }
        });
        tell('a controller again');
        await Promise.all(
          rows.map(async ({ what, of }, index) => {
            const task = (await readTask(kubectl, tasks[index]!.metadata))!;
            const pool = await demandedBy(chronicle, task);
            const objects = objectsOf(product, pool.metadata.name);
            const status = (await says(pool, 'ownership identity'))!;
            const claims = claimsOf(chronicle, pool);
            const after = await get(kube, of(objects));
            await deleteNow(of(objects));
            const over = await taskOver(kubectl, task.metadata, 240);
            tell(`${what}: ${over.status?.phase}`);
            met.set(what, { task, pool, objects, before: foreign.get(what)!, after, status, claims, over });
            await dismiss({ task, pool, objects });
          }),
        );
        forgedStatuses = statusesOf(chronicle, forgedPool.pool);
        forgedLater = await get(kube, {
          apiVersion: 'v1',
          kind: 'Secret',
          name: forged.metadata.name,
          namespace: forged.metadata.namespace!,
        });
        if (forgedLater)
          await deleteNow({
            apiVersion: 'v1',
            kind: 'Secret',
            name: forged.metadata.name,
            namespace: forged.metadata.namespace!,
          });
        await takesWork(forgedPool.pool, (podUid) => podUid !== forgedPool.before.pod);
        forgedAfter = await instanceOf(forgedPool.objects);
        await dismiss(forgedPool);
      }),
    800_000,
  );

  describe.each(rows)('a $what', ({ what, of }) => {
    test('is named, and the pool takes no work', () => {
      const { status, objects } = met.get(what)!;
      expect(status).toMatchObject({
        lifecycle: 'Degraded',
        admissionState: 'Closed',
        message: expect.stringContaining(`${what} ${product.namespaces.runtime}/${of(objects).name}`),
        conditions: expect.arrayContaining([closed]),
      });
    });

    test('is not touched, and no sandbox is asked for beside it', () => {
      const { before, after, claims } = met.get(what)!;
      const own = (object: Manifest | undefined) => ({
        uid: object?.metadata.uid,
        // The provider marks every template, whoever's it is.
        label: object?.metadata.labels?.['app'],
        owners: object?.metadata.ownerReferences,
        spec: object?.['spec'],
        deleted: object?.metadata.deletionTimestamp,
      });
      expect(own(after)).toEqual(own(before));
      expect(claims).toEqual([]);
    });

    test('is waited for: the Task succeeds once it is gone', () => {
      expect(met.get(what)!.over.status?.phase).toBe('Succeeded');
    });
  });

  describe('a Secret with the labels of its credentials', () => {
    test('is never adopted: what the next instance was bootstrapped with is something else', () => {
      const { data } = forged as unknown as { readonly data: Readonly<Record<string, string>> };
      const nonce = Buffer.from(data['bootstrap-nonce'] ?? '', 'base64').toString();
      expect(forgedAfter?.nonce).not.toBe(nonce);
      const named = chronicle.of('pools').filter(({ object }) => JSON.stringify(object.metadata).includes(forged.metadata.name));
      expect(named).toEqual([]);
    });

    test('is named, and not touched', () => {
      expect(forgedStatuses.map(({ message }) => message)).toContainEqual(expect.stringContaining(forged.metadata.name));
      expect(forgedLater).toMatchObject({ metadata: { uid: forged.metadata.uid } });
      expect(forgedLater?.metadata.deletionTimestamp).toBeUndefined();
    });
  });
});

describe('a second Pod that is ready and has all labels of a pool', () => {
  let serving: Serving;
  let forged: Manifest;
  let ambiguous: RuntimePoolStatus | undefined;
  let control = '';
  let heard = '';
  let later: Instance;

  /** Stands beside the one of the pool. */
  async function double({ objects }: Demanded, name: string): Promise<Manifest> {
    const { metadata } = (await get(kube, objects.pod))!;
    const pod: Manifest = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace: product.namespaces.runtime,
        labels: metadata.labels ?? {},
        annotations: metadata.annotations ?? {},
      },
      spec: { automountServiceAccountToken: false, terminationGracePeriodSeconds: 1, containers: [recordingContainer] },
    };
    return create(kube, pod, { manager: somebody });
  }

  /** What a controller would send is heard: from its Pod, by the way that credentials take. */
  async function sendFromController(pod: Manifest): Promise<string> {
    const { podIP } = (await get(kube, {
      apiVersion: 'v1',
      kind: 'Pod',
      name: pod.metadata.name,
      namespace: pod.metadata.namespace!,
    }))!['status'] as { podIP: string };
    const script = `fetch('http://${podIP}:8080/v2/credential-bootstrap',{method:'PUT',body:'control\\n',signal:AbortSignal.timeout(2000)}).catch(()=>0)`;
    const { controller } = product.namespaces;
    const to = `deployment/${product.deployment.metadata.name}`;
    // Packets to a new Pod are dropped until its policies are in force.
    return eventually('what was sent from the Pod of the controller', async () => {
      await kubectl(['exec', '-n', controller, to, '--', '/usr/local/bin/node', '-e', script]);
      const log = await kubectl(['logs', '-n', product.namespaces.runtime, pod.metadata.name]);
      return log.includes('PUT') ? log : undefined;
    });
  }

  beforeAll(
    () =>
      explained(product, async () => {
        serving = await serve(product, chronicle, 'doubled');
        forged = await double(serving, 'a-double');
        ambiguous = await says(serving.pool, 'a-double');
        tell('ambiguous');
        await sleep(3_000);
        heard = await kubectl(['logs', '-n', product.namespaces.runtime, 'a-double']);
        control = await sendFromController(forged);
        await kubectl(['delete', 'pod', 'a-double', '-n', product.namespaces.runtime, '--timeout=60s']);
        await takesWork(serving.pool, () => true);
        later = await instanceOf(serving.objects);
        tell('serves again');
        await dismiss(serving);
      }),
    600_000,
  );

  test('makes it ambiguous which is the one: nothing is admitted', () => {
    expect(ambiguous).toMatchObject({
      lifecycle: 'Ambiguous',
      admissionState: 'Ambiguous',
      message: expect.stringContaining(serving.objects.pod.name),
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: 'AdmissionReady', status: 'False', reason: 'RuntimeAmbiguous' }),
        expect.objectContaining({ type: 'RolloutReady', status: 'False', reason: 'RuntimeAmbiguous' }),
      ]),
    });
    expect(ambiguous).not.toHaveProperty('activeInstance');
  });

  test('is asked nothing and gets nothing, though it could be reached', () => {
    expect(heard).toBe('');
    expect(control).toContain('PUT /v2/credential-bootstrap');
    expect(boundPods(chronicle, serving.pool)).not.toContain(forged.metadata.uid);
  });

  test('leaves the instance as it was: once it is gone that one serves again', () => {
    expect(later).toEqual(serving.before);
  });

  test.each([
    { what: 'scale to zero', name: 'doubled-scaled' },
    { what: 'delete', name: 'doubled-deleted' },
  ])(
    'does not keep anybody from ending the pool: $what',
    async ({ what, name }) => {
      await explained(product, async () => {
        const one = await serve(product, chronicle, name);
        await double(one, name);
        await says(one.pool, name);
        const { metadata } = one.pool;
        const ref = { apiVersion: one.pool.apiVersion, kind: 'RuntimePool', name: metadata.name, namespace };
        if (what === 'delete') await deleteNow(ref);
        else await change(ref, { spec: { desiredReplicas: 0 } });
        await eventually(`the end of ${metadata.name}`, async () => {
          const pool = await readPool(kubectl, { name: metadata.name, namespace });
          return pool === undefined || pool.status?.lifecycle === 'Stopped' ? true : undefined;
        });
        expect(await get(kube, one.objects.claim)).toBeUndefined();
        tell(`${what} beside a double`);
        await kubectl(['delete', 'pod', name, '-n', product.namespaces.runtime, '--ignore-not-found', '--timeout=60s']);
        await dismiss(one);
      });
    },
    900_000,
  );
});

// A webhook on the loopback of this machine is one that only the API server of this machine reaches.
(cluster.node ? describe : describe.skip)('where a webhook changes Pods and the class is strict,', () => {
  interface Row {
    readonly what: string;
    readonly patch: ReturnType<PodWebhook['answer']>;
    readonly names: string;
  }
  const idle = ['/bin/busybox', 'sh', '-c', 'trap exit TERM; /bin/busybox sleep 3600 & wait'];
  const rows: readonly Row[] = [
    {
      what: 'a sidecar',
      patch: [{ op: 'add', path: '/spec/containers/-', value: { ...recordingContainer, command: idle } }],
      names: 'spec.containers: found ["runtime","recorder"]',
    },
    {
      what: 'another command',
      patch: [{ op: 'add', path: '/spec/containers/0/command', value: recording }],
      names: 'spec.containers[0].command',
    },
  ];
  /** Seconds for three sandboxes, one after the other and ever later. */
  const watched = 300;
  /** Milliseconds that the last of them came after the one before. */
  const later = 4_000;
  interface Refused extends Demanded {
    /** When each claim was made, in milliseconds since the first. */
    readonly claims: readonly number[];
    readonly refused: readonly string[];
    readonly logs: readonly string[];
    readonly statuses: readonly RuntimePoolStatus[];
    readonly toldTask: string;
    readonly over: Task;
  }
  const outcomes = new Map<string, Refused>();

  beforeAll(async () => {
    const webhook = await podWebhook('orka-test-tampering', product.namespaces.runtime, labelKeys.poolUid);
    const demanded = new Map<string, Demanded>();
    const logs = new Map<string, Promise<string>[]>(rows.map(({ what }) => [what, []]));
    webhook.answer = ({ object }) => {
      const named = [...demanded].find(([, { pool }]) => pool.metadata.name === object.metadata.labels?.[labelKeys.poolName]);
      const row = rows.find(({ what }) => what === named?.[0]);
      return row?.patch ?? 'nobody knows yet what to do with it';
    };
    try {
      await explained(product, async () => {
        for (const [index, { what }] of rows.entries()) demanded.set(what, await demand(product, chronicle, `injected-${index}`));
        const first = (pool: RuntimePool) =>
          chronicle.first('claims', ({ object }) => object.metadata.labels?.[labelKeys.poolUid] === pool.metadata.uid);
        await Promise.all([...demanded.values()].map(({ pool }) => first(pool)));
        const followed = new Set<string>();
        const follow = (what: string, { objects }: Demanded) => {
          for (const { object } of chronicle.of('pods').filter((seen) => seen.object.metadata.name === objects.pod.name)) {
            const { uid = '' } = object.metadata;
            const { containerStatuses = [] } = object['status'] as { containerStatuses?: readonly { state?: object }[] };
            if (followed.has(uid) || !containerStatuses.some(({ state = {} }) => 'running' in state)) continue;
            followed.add(uid);
            const log = kubectl(['logs', '-f', '-c', 'runtime', '-n', objects.pod.namespace ?? '', objects.pod.name]);
            logs.get(what)?.push(log.catch(() => ''));
          }
        };
        const look = ({ task, pool, objects }: Demanded) => {
          const claims = chronicle
            .of('claims')
            .filter(({ type, object }) => type === 'ADDED' && object.metadata.labels?.[labelKeys.poolUid] === pool.metadata.uid);
          const pods = chronicle.of('pods').filter(({ object }) => object.metadata.name === objects.pod.name);
          const told = chronicle
            .of('tasks')
            .filter(({ object }) => object.metadata.uid === task.metadata.uid)
            .map(({ object }) => (object as unknown as Task).status?.message ?? '');
          return {
            claims: claims.map(({ at }) => at - (claims[0]?.at ?? 0)),
            refused: [...new Set(pods.map(({ object }) => object.metadata.uid ?? ''))],
            statuses: statusesOf(chronicle, pool),
            toldTask: told.join('\n'),
          };
        };
        const seenEnough = ({ what, names }: Row) => {
          const one = demanded.get(what)!;
          follow(what, one);
          const { claims, refused, toldTask } = look(one);
          const lately = (claims.at(-1) ?? 0) - (claims.at(-2) ?? 0);
          return refused.length > 2 && lately > later && logs.get(what)!.length > 0 && toldTask.includes(names);
        };
        for (const end = Date.now() + watched * 1000; !rows.every(seenEnough) && Date.now() < end;) await sleep(100);
        const seen = rows.map(({ what }) => ({ what, ...look(demanded.get(what)!) }));
        webhook.answer = () => [];
        await Promise.all(
          seen.map(async ({ what, ...rest }) => {
            const one = demanded.get(what)!;
            const over = await taskOver(kubectl, one.task.metadata, 240);
            tell(`${what}: ${over.status?.phase}`);
            outcomes.set(what, { ...one, ...rest, logs: await Promise.all(logs.get(what)!), over });
            await dismiss(one);
          }),
        );
      });
    } finally {
      await webhook.close();
    }
  }, 900_000);

  describe.each(rows)('$what', ({ what, names }) => {
    test('is refused, and the status names it for as long as that lasts', () => {
      const { statuses } = outcomes.get(what)!;
      const refused = statuses.filter(({ lifecycle }) => lifecycle === 'Degraded');
      expect(refused.length).toBeGreaterThan(0);
      for (const { message, admissionState } of refused) {
        expect(admissionState).toBe('Closed');
        // Until the provider has looked at a claim there is nothing to compare.
        if (!message?.includes('has not looked at the')) expect(message).toContain(names);
      }
    });

    test('is told to the user who waits for the Task', () => {
      expect(outcomes.get(what)!.toldTask).toContain(names);
    });

    test('is tried later and later', () => {
      const { claims } = outcomes.get(what)!;
      const gaps = claims.slice(1).map((at, index) => at - claims[index]!);
      expect(claims.length).toBeGreaterThan(2);
      expect(claims.length).toBeLessThanOrEqual(8);
      expect(gaps.at(-1)).toBeGreaterThan(later);
    });

    test('gets no credentials: none was meant for such a Pod, and none came to one', () => {
      const { pool, refused, logs } = outcomes.get(what)!;
      expect(refused.length).toBeGreaterThan(2);
      expect(refused.filter((uid) => boundPods(chronicle, pool).has(uid))).toEqual([]);
      expect(logs.length).toBeGreaterThan(0);
      for (const log of logs) {
        expect(log).not.toContain('PUT');
        expect(log).not.toContain('"event":"serving"');
      }
    });

    test('is forgotten once nobody adds it any more: the Task succeeds', () => {
      expect(outcomes.get(what)!.over.status?.phase).toBe('Succeeded');
    });
  });
});

test('no credential was in a status, an event, an object of the provider, or a log of the controller', async () => {
  expect(await exposed(product, chronicle)).toEqual([]);
}, 120_000);
