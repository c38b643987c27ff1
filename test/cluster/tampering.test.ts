/** What somebody who may change everything in the runtime namespace does to pools, and what becomes of them. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Manifest, RuntimePool, RuntimePoolStatus, Task } from '../../src/api/index.js';
import { isAuthSecretAnnotation, labelKeys } from '../../src/domain/labels.js';
import { get } from '../../src/kube/client.js';
import { create } from '../../src/kube/create.js';
import type { ObjectRef } from '../../src/kube/client.js';
import { equalJson } from '../../src/lib/json.js';
import type { JsonObject } from '../../src/lib/json.js';
import { startChronicle } from './support/chronicle.js';
import type { Chronicle } from './support/chronicle.js';
import { eventually, kube, kubectl } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import { unplaced } from './support/faults.js';
import { applyObjects, example, readPool, taskOver } from './support/first-task.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { recording, recordingImage } from './support/recorder.js';
import {
  applyAs,
  boundPods,
  change,
  changeByOperations,
  claimsOf,
  deleteNow,
  demand,
  dismiss,
  exposed,
  instanceOf,
  limited,
  recovers,
  serve,
  somebody,
  statusesOf,
  takesWork,
  told,
  waiting,
} from './support/tampering.js';
import type { Demanded, Instance, Recovered, Serving } from './support/tampering.js';

const claimUid = 'agents.x-k8s.io/claim-uid';
/** A CNI plug-in would give such a Pod another network. */
const network = { metadata: { annotations: { 'k8s.v1.cni.cncf.io/networks': 'outside' } } };

let product: Installed;
let chronicle: Chronicle;
let anotherImage = '';

beforeAll(async () => {
  anotherImage = await recordingImage();
  product = await installed({ gates: true });
  chronicle = startChronicle(product);
  await applyObjects(kubectl, [example.agent, ...waiting.objects(product)]);
}, 300_000);
afterAll(async () => {
  chronicle.stop();
  await kubectl(['delete', 'runtimepoolclasses.core.orka.ai', 'never-approved', '-n', product.namespaces.controller]);
  await product.remove();
}, 600_000);

const atOnce = limited(5);
const tell = stopwatch('tampering');

/** Begins all of it, and gives what became of each, or why that is not known, to whoever asks. */
function begun<T>(rows: readonly { readonly what: string }[], run: (index: number) => Promise<T>): (what: string) => Promise<T> {
  const results = rows.map((_, index) => atOnce(() => explained(product, () => run(index))));
  const told = new Set<string>();
  return async (what) => {
    try {
      return await results[rows.findIndex((row) => row.what === what)]!;
    } catch (error) {
      if (told.has(what)) throw new Error(`${what}: failed, as is said above`, { cause: error });
      told.add(what);
      throw error;
    }
  };
}

const done = (rows: readonly { readonly what: string }[], outcome: (what: string) => Promise<unknown>) =>
  Promise.allSettled(rows.map(({ what }) => outcome(what)));

const image = (ref: ObjectRef) =>
  changeByOperations(ref, [{ op: 'replace', path: '/spec/containers/0/image', value: anotherImage }]);
const addressOf = ({ status }: Manifest) => (status as { readonly podIP?: string } | undefined)?.podIP;
/** The Secret that the pool says holds its credentials. */
async function boundSecret({ metadata: { name, namespace = '' } }: RuntimePool): Promise<ObjectRef> {
  const { metadata } = (await readPool(kubectl, { name, namespace }))!;
  const [, named = ''] = Object.entries(metadata.annotations ?? {}).find(([key]) => isAuthSecretAnnotation(key)) ?? [];
  return { apiVersion: 'v1', kind: 'Secret', namespace: product.namespaces.runtime, name: named.split('/')[0] ?? '' };
}
const readOf = async (ref: ObjectRef): Promise<Manifest> => {
  const found = await get(kube, ref);
  if (!found) throw new Error(`${ref.kind} ${ref.name} is gone`);
  return found;
};

/** Conditions that every closed pool has, but for the rollout. */
const closed = expect.objectContaining({ type: 'AdmissionReady', status: 'False', reason: 'AdmissionClosed' });
const conditionOf = ({ conditions = [] }: RuntimePoolStatus, type: string) => conditions.find((one) => one.type === type);

describe('before an instance was bound:', () => {
  interface Refused extends Demanded {
    readonly pod: Manifest;
    /** Whether it had an address when it was changed. */
    readonly reachable: boolean;
    /** What the refused Pod printed. */
    readonly log: string;
    readonly after: Instance;
    readonly over: Task;
  }
  interface Row {
    readonly what: string;
    readonly of: 'sandboxes' | 'pods';
    readonly tamper: (ref: ObjectRef) => Promise<Manifest>;
    readonly names: string;
    /** Nothing, when it was ended before it began. */
    readonly prints: RegExp;
  }
  const prints = /^$|"event":"awaiting credentials"/;
  const rows: readonly Row[] = [
    {
      what: 'a Sandbox whose label names another claim',
      of: 'sandboxes',
      tamper: (ref) => change(ref, { metadata: { labels: { [claimUid]: 'forged' } } }),
      names: `metadata.labels[${claimUid}]`,
      prints,
    },
    {
      what: 'a Pod whose image was changed in place',
      of: 'pods',
      tamper: image,
      names: 'spec.containers[0].image',
      prints: /^$|GET|"event":"awaiting credentials"/,
    },
    {
      what: 'a Pod with an annotation that was not rendered',
      of: 'pods',
      tamper: (ref) => change(ref, network),
      names: 'metadata.annotations',
      prints,
    },
    {
      what: 'a Pod with a label that was not rendered',
      of: 'pods',
      tamper: (ref) => change(ref, { metadata: { labels: { 'example.com/extra': 'yes' } } }),
      names: 'metadata.labels',
      prints,
    },
  ];
  let outcome: (what: string) => Promise<Refused>;

  type Changed = Demanded & Pick<Refused, 'pod' | 'reachable'>;
  async function changed(row: Row, index: number): Promise<Changed> {
    const demanded = await demand(product, chronicle, `before-${index}`);
    const { objects } = demanded;
    const isPod = ({ object }: { readonly object: Manifest }) => object.metadata.name === objects.pod.name;
    await chronicle.first(row.of, isPod);
    await row.tamper(row.of === 'pods' ? objects.pod : objects.sandbox);
    const reachable = chronicle.of('pods').some((seen) => isPod(seen) && addressOf(seen.object) !== undefined);
    return { ...demanded, reachable, pod: await chronicle.first('pods', isPod) };
  }

  async function refused({ what }: Row, demanded: Changed): Promise<Refused> {
    const log = logOf(demanded.pod);
    const over = await taskOver(kubectl, demanded.task.metadata, 240);
    tell(`${what}: ${over.status?.phase}`);
    const after = await instanceOf(demanded.objects);
    const result = { ...demanded, log: await log, after, over };
    await dismiss(demanded);
    return result;
  }

  /** Everything that the container of a Pod prints until it ends; nothing, when the Pod is gone before it is asked. */
  async function logOf(pod: Manifest): Promise<string> {
    const { name, uid, namespace = '' } = pod.metadata;
    await chronicle.first('pods', ({ type, object }) => {
      const { containerStatuses = [] } =
        (object as { status?: { containerStatuses?: readonly { state?: object }[] } }).status ?? {};
      const began = containerStatuses.some(({ state = {} }) => !('waiting' in state));
      return object.metadata.uid === uid && (began || type === 'DELETED');
    });
    return kubectl(['logs', '-f', '-n', namespace, name]).catch(() => '');
  }

  beforeAll(async () => {
    // A Pod that is placed nowhere has no address, however long it takes to change it.
    const tampered = await unplaced(async () => {
      const all = rows.map((row, index) => explained(product, () => changed(row, index)));
      await Promise.allSettled(all);
      return all;
    });
    outcome = begun(rows, async (index) => refused(rows[index]!, await tampered[index]!));
    await done(rows, outcome);
  }, 600_000);

  describe.each(rows)('$what', ({ what, names, prints }) => {
    test('is refused, with the difference named in the status', async () => {
      const { pool } = await outcome(what);
      const found = statusesOf(chronicle, pool).find(({ message = '' }) => message.includes('does not match what was rendered'));
      expect(found).toMatchObject({
        lifecycle: 'Degraded',
        admissionState: 'Closed',
        message: expect.stringContaining(names),
        conditions: expect.arrayContaining([
          closed,
          expect.objectContaining({ type: 'RolloutReady', status: 'False', reason: 'RolloutFailed' }),
        ]),
      });
      expect(found).not.toHaveProperty('activeInstance');
    });

    test('was never meant to get credentials, and got none', async () => {
      const { pool, pod, log, reachable } = await outcome(what);
      // Whoever was changed too late proves nothing.
      expect(reachable).toBe(false);
      expect(boundPods(chronicle, pool)).not.toContain(pod.metadata.uid);
      expect(log).not.toContain('"event":"serving"');
      expect(log).not.toContain('PUT');
      expect(log).toMatch(prints);
    });

    test('gives way to another one, on which the Task succeeds', async () => {
      const { pool, pod, over, after } = await outcome(what);
      expect(over.status?.phase).toBe('Succeeded');
      expect(after.pod).not.toBe(pod.metadata.uid);
      expect(claimsOf(chronicle, pool)).toEqual([expect.any(String), after.claim]);
      expect([...boundPods(chronicle, pool)]).toEqual([after.pod]);
    });
  });
});

describe('a pool that serves is recycled when', () => {
  interface Row {
    readonly what: string;
    readonly tamper: (serving: Serving) => Promise<unknown>;
    /** In the status or in an event. */
    readonly says: string | RegExp;
  }
  const differs = 'does not match what was rendered';
  const rows: readonly Row[] = [
    {
      what: 'the label of its Sandbox names another claim',
      tamper: ({ objects }) => change(objects.sandbox, { metadata: { labels: { [claimUid]: 'forged' } } }),
      says: differs,
    },
    {
      what: 'the image of its Pod is changed in place',
      tamper: ({ objects }) => image(objects.pod),
      says: 'spec.containers[0].image',
    },
    { what: 'its Pod is given an annotation', tamper: ({ objects }) => change(objects.pod, network), says: differs },
    {
      what: 'its Pod is given a label',
      tamper: ({ objects }) => change(objects.pod, { metadata: { labels: { 'example.com/extra': 'yes' } } }),
      says: differs,
    },
    {
      what: 'another manager adds a container to its template',
      tamper: async ({ objects }) => {
        const template = await readOf(objects.template);
        const { podTemplate } = template['spec'] as {
          readonly podTemplate: { readonly spec: { readonly containers: JsonObject[] } };
        };
        const [runtime] = podTemplate.spec.containers;
        const containers = [{ name: 'proxy', image: runtime?.['image'] ?? '', command: recording }];
        await applyAs('argocd-controller', {
          apiVersion: template.apiVersion,
          kind: template.kind,
          metadata: { name: template.metadata.name, namespace: template.metadata.namespace ?? '' },
          spec: { podTemplate: { spec: { containers } } },
        });
      },
      says: 'failed its controller-owned integrity check',
    },
    {
      what: 'its private Secret is deleted',
      tamper: async ({ pool }) => deleteNow(await boundSecret(pool)),
      says: 'private Secret',
    },
    {
      what: 'its private Secret is made again, with another UID',
      tamper: async ({ pool }) => {
        const ref = await boundSecret(pool);
        const { metadata, ...rest } = await readOf(ref);
        const { name, namespace = '', labels = {} } = metadata;
        await deleteNow(ref);
        await create(kube, { ...rest, metadata: { name, namespace, labels } }, { manager: somebody });
      },
      says: 'private Secret',
    },
    {
      what: 'its Pod is deleted',
      tamper: ({ objects }) => deleteNow(objects.pod),
      says: 'physical instance changed',
    },
    {
      what: 'its container is started again in place',
      // The command may end with the container that it ends.
      tamper: ({ objects: { pod } }) =>
        kubectl(['exec', '-n', pod.namespace ?? '', pod.name, '--', '/bin/busybox', 'kill', '1']).catch(() => undefined),
      says: 'started again in place',
    },
    {
      what: 'its Sandbox is deleted',
      tamper: ({ objects }) => deleteNow(objects.sandbox),
      // The Pod of before may be seen under the Sandbox that replaces its own.
      says: /physical instance changed|metadata\.ownerReferences: found/,
    },
    {
      what: 'its claim is made to name another warm pool',
      tamper: ({ objects }) => change(objects.claim, { spec: { warmPoolRef: { name: 'another' } } }),
      says: 'the claim was changed by someone else',
    },
    {
      what: 'its claim is given a variable',
      tamper: ({ objects }) => change(objects.claim, { spec: { env: [{ name: 'HTTP_PROXY', value: 'http://outside' }] } }),
      says: 'the claim was changed by someone else',
    },
    {
      what: 'its claim is deleted',
      tamper: ({ objects }) => deleteNow(objects.claim),
      // Whoever looks when the sandbox of before is gone already says the former only.
      says: /the claim was deleted by someone else|the sandbox of before is not gone yet/,
    },
    {
      what: 'its claim is deleted without what it owns',
      tamper: ({ objects }) => deleteNow(objects.claim, 'Orphan'),
      says: 'what the claim left behind is being deleted',
    },
  ];
  let outcome: (what: string) => Promise<Recovered>;

  beforeAll(async () => {
    outcome = begun(rows, async (index) => {
      const { what, tamper } = rows[index]!;
      const serving = await serve(product, chronicle, `serving-${index}`);
      try {
        return await recovers(chronicle, serving, tamper);
      } finally {
        tell(what);
        await dismiss(serving);
      }
    });
    await done(rows, outcome);
  }, 1_200_000);

  describe.each(rows)('$what:', ({ what, says }) => {
    test('it takes no work until then, and says why', async () => {
      const { statuses, said, before } = await outcome(what);
      const taking = statuses.filter(({ admissionState }) => admissionState === 'Accepting');
      expect(statuses.map(({ admissionState }) => admissionState)).toContain('Closed');
      expect(new Set(taking.map(({ activeInstance }) => activeInstance?.podUID))).not.toContain(before.pod);
      expect(said).toMatch(says);
    });

    test('claim, Sandbox and Pod are others, and so is what they were bootstrapped with', async () => {
      const { before, after } = await outcome(what);
      for (const part of ['claim', 'sandbox', 'pod', 'nonce'] as const) expect(after[part]).not.toBe(before[part]);
    });

    test('nothing of the old instance is left', async () => {
      const { before } = await outcome(what);
      const { runtime } = product.namespaces;
      const left = JSON.parse(await kubectl(['get', 'sandboxclaims,sandboxes,pods', '-n', runtime, '-o', 'json'])) as {
        readonly items: readonly Manifest[];
      };
      const old = [before.claim, before.sandbox, before.pod];
      expect(left.items.filter(({ metadata }) => old.includes(metadata.uid ?? ''))).toEqual([]);
    });
  });

  test('a container that was started again has reasons of its own', async () => {
    const { statuses } = await outcome('its container is started again in place');
    const reasons = statuses.map((status) => conditionOf(status, 'AdmissionReady')?.reason);
    expect(reasons).toEqual(expect.arrayContaining(['SupervisorRestartDetected', 'Serving']));
    // What is gone when it is looked at next was not seen to stop.
    if (statuses.some(({ lifecycle }) => lifecycle === 'Stopping')) expect(reasons).toContain('SupervisorRestartStopping');
  });
});

/** The provider gives it back; whoever looks in between sees another Pod than was rendered. */
test('a Pod that loses the label by which it is found has it again, or gives way to another', async () => {
  await explained(product, async () => {
    const serving = await serve(product, chronicle, 'unlabelled');
    const { pool, objects } = serving;
    await change(objects.pod, { metadata: { labels: { [labelKeys.poolUid]: null } } });
    await eventually(
      'a Pod with all labels that takes work',
      async () => {
        const pod = await get(kube, objects.pod);
        const { lifecycle, activeInstance } = (await readPool(kubectl, pool.metadata))?.status ?? {};
        const labelled = pod !== undefined && pod.metadata.labels?.[labelKeys.poolUid] === pool.metadata.uid;
        return labelled && lifecycle === 'Serving' && activeInstance?.podUID === pod.metadata.uid ? true : undefined;
      },
      240,
    );
    await dismiss(serving);
  });
}, 600_000);

describe('the isolation of a pool that serves', () => {
  interface Row {
    readonly what: string;
    readonly of: string;
    readonly tamper: (ref: ObjectRef) => Promise<unknown>;
  }
  const anything = [{}];
  const rows: readonly Row[] = [
    { what: 'is opened', of: 'control-in', tamper: (ref) => change(ref, { spec: { ingress: anything } }) },
    { what: 'is deleted', of: 'deny-all', tamper: (ref) => deleteNow(ref) },
    {
      what: 'is given a rule by another manager',
      of: 'deny-all',
      tamper: ({ apiVersion, kind, name, namespace = '' }) =>
        applyAs('argocd-controller', {
          apiVersion,
          kind,
          metadata: { name, namespace },
          spec: { podSelector: {}, egress: anything },
        }),
    },
  ];
  interface Repaired extends Serving {
    readonly policies: readonly [before: Manifest, after: Manifest];
    readonly statuses: readonly RuntimePoolStatus[];
    readonly after: Instance;
  }
  let outcome: (what: string) => Promise<Repaired>;
  const spec = (policy: Manifest | undefined) => policy?.['spec'] ?? null;

  beforeAll(async () => {
    outcome = begun(rows, async (index) => {
      const { of, tamper } = rows[index]!;
      const serving = await serve(product, chronicle, `isolation-${index}`);
      const { pool, objects } = serving;
      const ref = objects.policy(of);
      const before = await readOf(ref);
      const since = Date.now();
      await tamper(ref);
      const after = await eventually('the policy as it was', async () => {
        const found = await get(kube, ref);
        return found && equalJson(spec(found), spec(before)) ? found : undefined;
      });
      await chronicle.first('pools', (seen) => {
        const { metadata, status } = seen.object as unknown as RuntimePool;
        return seen.at > since && metadata.uid === pool.metadata.uid && status?.admissionState === 'Closed';
      });
      await told(chronicle, await takesWork(pool, () => true));
      const result = {
        ...serving,
        policies: [before, after] as const,
        statuses: statusesOf(chronicle, pool, since),
        after: await instanceOf(objects),
      };
      tell(`isolation ${rows[index]!.what}`);
      await dismiss(serving);
      return result;
    });
    await done(rows, outcome);
  }, 600_000);

  describe.each(rows)('$what:', ({ what, of }) => {
    test('admission closes, with the policy named, until it is as it was', async () => {
      const { statuses } = await outcome(what);
      expect(statuses[0]).toMatchObject({
        lifecycle: 'Degraded',
        admissionState: 'Closed',
        message: expect.stringContaining(of),
        conditions: expect.arrayContaining([closed]),
      });
      expect(conditionOf(statuses.at(-1)!, 'AdmissionReady')).toMatchObject({ status: 'True', reason: 'Serving' });
    });

    test('the instance is kept: nobody could use it meanwhile', async () => {
      const { before, after } = await outcome(what);
      expect(after).toEqual(before);
    });
  });
});

describe('while somebody keeps a policy from being repaired', () => {
  const guard = 'no-policies-today';
  let closedFor: readonly RuntimePoolStatus[] = [];
  let withheldFor: readonly RuntimePoolStatus[] = [];
  let claims: readonly string[] = [];
  let mended: RuntimePool;
  let over: Task;

  const guarding = (): readonly JsonObject[] => [
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: guard },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: ['networking.k8s.io'],
              apiVersions: ['v1'],
              operations: ['CREATE', 'UPDATE'],
              resources: ['networkpolicies'],
            },
          ],
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': product.namespaces.runtime } },
        },
        validations: [
          {
            expression: `!request.userInfo.username.endsWith(':orka-workspaces-controller')`,
            message: 'nobody changes policies today',
          },
        ],
      },
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: guard },
      spec: { policyName: guard, validationActions: ['Deny'] },
    },
  ];
  const unguard = () =>
    kubectl([
      ...['delete', 'validatingadmissionpolicies,validatingadmissionpolicybindings', guard],
      ...['--ignore-not-found', '--timeout=60s'],
    ]);
  /** A policy takes effect a moment after it is stored. */
  const inEffect = () =>
    eventually('a policy that is in effect', async () => {
      const { controller, runtime } = product.namespaces;
      const as = `--as=system:serviceaccount:${controller}:orka-workspaces-controller`;
      const policy = {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata: { name: 'try' },
        spec: { podSelector: {} },
      };
      const tried = kubectl(['create', '--dry-run=server', '-n', runtime, as, '-f', '-'], JSON.stringify(policy));
      return tried.then(
        () => undefined,
        (error: unknown) => (String(error).includes('nobody changes policies today') ? true : undefined),
      );
    });

  beforeAll(
    () =>
      explained(product, async () => {
        const serving = await serve(product, chronicle, 'guarded');
        await applyObjects(kubectl, guarding());
        await inEffect();
        const since = Date.now();
        await change(serving.objects.policy('deny-all'), { spec: { egress: [{}] } });
        const asked = await demand(product, chronicle, 'withheld');
        const refusedTo = (pool: RuntimePool) =>
          chronicle.first('pools', ({ object }) => {
            const { metadata, status } = object as unknown as RuntimePool;
            return metadata.uid === pool.metadata.uid && (status?.message ?? '').includes('nobody changes policies today');
          });
        await Promise.all([refusedTo(serving.pool), refusedTo(asked.pool)]);
        await new Promise((resolve) => setTimeout(resolve, 5_000));
        closedFor = statusesOf(chronicle, serving.pool, since);
        withheldFor = statusesOf(chronicle, asked.pool);
        claims = claimsOf(chronicle, asked.pool);
        await unguard();
        mended = await takesWork(serving.pool, () => true);
        over = await taskOver(kubectl, asked.task.metadata, 240);
        tell('repaired after all');
        await dismiss(serving);
        await dismiss(asked);
      }),
    600_000,
  );
  afterAll(() => unguard());

  test('the pool that served takes nothing, and says who is in the way', () => {
    expect(new Set(closedFor.map(({ admissionState }) => admissionState))).toEqual(new Set(['Closed']));
    expect(closedFor.at(-1)).toMatchObject({
      lifecycle: 'Degraded',
      message: expect.stringContaining('nobody changes policies today'),
    });
  });

  test('for a new Task there is no claim, and its pool says why', () => {
    expect(withheldFor.at(-1)).toMatchObject({
      lifecycle: 'Degraded',
      admissionState: 'Closed',
      message: expect.stringContaining('nobody changes policies today'),
    });
    expect(claims).toEqual([]);
  });

  test('neither says it again and again', () => {
    expect(closedFor.length).toBeLessThanOrEqual(4);
    expect(withheldFor.length).toBeLessThanOrEqual(6);
  });

  test('both go on once nobody is in the way any more', () => {
    expect(mended.status?.lifecycle).toBe('Serving');
    expect(over.status?.phase).toBe('Succeeded');
  });
});

test('no credential was in a status, an event, an object of the provider, or a log of the controller', async () => {
  expect(await exposed(product, chronicle)).toEqual([]);
}, 120_000);
