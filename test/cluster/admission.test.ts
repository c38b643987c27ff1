/** Pools of an admission-aware class, with a mutating webhook that adds to every Pod of theirs. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Manifest, RuntimePool, Task } from '../../src/api/index.js';
import type { PatchOperation } from '../../src/constructs/patch.js';
import { labelKeys } from '../../src/domain/labels.js';
import type { JsonObject } from '../../src/lib/json.js';
import { cluster, eventually, kubectl } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import {
  answerOf,
  applyObjects,
  example,
  marker,
  poolServing,
  readPool,
  readTask,
  taskLike,
  taskOver,
} from './support/first-task.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { keepPoolOf } from './support/tampering.js';
import { podWebhook } from './support/webhook.js';
import type { PodWebhook } from './support/webhook.js';

const { namespace = '' } = example.task.metadata;
const proxy: JsonObject = {
  name: 'injected-proxy',
  image: cluster.node?.images['pause']?.ref ?? 'registry.k8s.io/pause:3.10',
  resources: { requests: { cpu: '1m', memory: '4Mi' }, limits: { cpu: '50m', memory: '16Mi' } },
  securityContext: {
    runAsUser: 65532,
    runAsNonRoot: true,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    seccompProfile: { type: 'RuntimeDefault' },
  },
};
/** The sidecar comes first, as those do that must be up before the rest. */
const injection: readonly PatchOperation[] = [
  { op: 'add', path: '/spec/containers/0/env/-', value: { name: 'INJECTED', value: 'yes' } },
  { op: 'add', path: '/spec/containers/0', value: proxy },
  { op: 'add', path: '/spec/volumes/-', value: { name: 'injected', emptyDir: { sizeLimit: '1Mi' } } },
  { op: 'add', path: '/metadata/annotations/injected.example.com~1status', value: 'yes' },
  { op: 'add', path: '/metadata/labels/injected.example.com~1by', value: 'webhook' },
];

// A webhook on the loopback of this machine is one that only the API server of this machine reaches.
(cluster.node ? describe : describe.skip)('where a webhook adds to Pods', () => {
  let product: Installed;
  let webhook: PodWebhook;

  beforeAll(async () => {
    product = await installed({ gates: true, attestation: 'AdmissionAware' });
    await applyObjects(kubectl, [example.agent]);
    webhook = await podWebhook('orka-test-injector', product.namespaces.runtime, labelKeys.poolUid);
    webhook.answer = () => injection;
  }, 600_000);
  afterAll(async () => {
    await webhook.close();
    await product.remove();
  }, 600_000);

  const podsOf = async (pool: RuntimePool): Promise<readonly Manifest[]> => {
    const mine = ['-l', `${labelKeys.poolUid}=${pool.metadata.uid ?? ''}`, '-n', product.namespaces.runtime];
    return (JSON.parse(await kubectl(['get', 'pods', ...mine, '-o', 'json'])) as { readonly items: readonly Manifest[] }).items;
  };
  const containersOf = (pod: Manifest | undefined) =>
    ((pod?.['spec'] as JsonObject)['containers'] as readonly JsonObject[]).map(({ name }) => name);
  /** The pool of a Task, whatever it does. */
  const poolOf = async ({ metadata }: Task): Promise<RuntimePool | undefined> => {
    const name = (await readTask(kubectl, metadata))?.status?.execution?.runtimePoolName;
    return name === undefined ? undefined : readPool(kubectl, { name, namespace });
  };
  const poolSays = (task: Task, text: string, seconds = 150) =>
    eventually(
      `a pool for Task ${task.metadata.name} that says ${text}`,
      async () => {
        const pool = await poolOf(task);
        return pool?.status?.message?.includes(text) ? pool : undefined;
      },
      seconds,
    );
  const removed = async (task: Task): Promise<void> => {
    const pool = await poolOf(task);
    await kubectl(['delete', 'tasks.core.orka.ai', task.metadata.name, '-n', namespace, '--timeout=60s']);
    const options = ['-n', namespace, '--ignore-not-found', '--timeout=120s'];
    if (pool) await kubectl(['delete', 'runtimepools.core.orka.ai', pool.metadata.name, ...options]);
  };

  describe('a class that takes admission into account', () => {
    const wanted = taskLike('admission-aware');
    const [after, asked] = [stopwatch('admission'), { before: 0 }];
    let pool: RuntimePool;
    let pods: readonly Manifest[] = [];
    let task: Task;
    let letGo = () => Promise.resolve();

    beforeAll(async () => {
      asked.before = webhook.asked.length;
      await explained(product, async () => {
        await applyObjects(kubectl, [wanted]);
        // The pool would end with its Task, before its Pod is changed.
        letGo = await keepPoolOf(product, wanted);
        pool = await poolServing(kubectl, wanted.metadata, 120);
        after('Serving');
        pods = await podsOf(pool);
        task = await taskOver(kubectl, wanted.metadata, 120);
        after('over');
      });
    }, 300_000);
    afterAll(async () => {
      await letGo();
      await removed(wanted);
    }, 200_000);

    /** The first creation that was a dry run, or was none. */
    const first = (dry: boolean) => webhook.asked.slice(asked.before).find(({ dryRun }) => dryRun === dry);

    test('serves from the Pod that the webhook added to', async () => {
      expect(pods.map(containersOf)).toEqual([['injected-proxy', 'runtime']]);
      expect(pods[0]?.metadata).toMatchObject({
        uid: pool.status?.activeInstance?.podUID,
        labels: { 'injected.example.com/by': 'webhook' },
      });
      expect(task.status?.phase).toBe('Succeeded');
      expect(await answerOf(kubectl, wanted.metadata)).toBe(marker);
    });

    test('asks once, in a dry run under another name, and is the only one who does', () => {
      const since = webhook.asked.slice(asked.before);
      const controller = `system:serviceaccount:${product.namespaces.controller}:orka-workspaces-controller`;
      // Who did not hear the answer in time creates the same again.
      const distinct = new Map(since.map(({ name, by, dryRun }) => [`${name} ${by} ${dryRun}`, [by, dryRun]]));
      expect([...distinct.values()]).toEqual([
        ['system:serviceaccount:agent-sandbox-system:agent-sandbox-controller', false],
        [controller, true],
      ]);
      expect(first(true)?.name).not.toBe(first(false)?.name);
    });

    test('sends the very Pod that the provider creates, but for its name', () => {
      const sent = (object: Manifest | undefined) => ({
        spec: object?.['spec'],
        labels: object?.metadata.labels,
        annotations: object?.metadata.annotations,
        owners: object?.metadata.ownerReferences?.map(({ blockOwnerDeletion: _blocks, ...owner }) => owner),
      });
      expect(sent(first(true)?.object)).toEqual(sent(first(false)?.object));
    });

    test('ends an instance whose Pod alone is changed, and says what was changed', async () => {
      await explained(product, async () => {
        await kubectl([
          'label',
          'pod',
          pods[0]?.metadata.name ?? '',
          '-n',
          product.namespaces.runtime,
          'example.com/by-hand=yes',
        ]);
        const changed = pods[0]?.metadata.uid;
        const isGone = async () => (await podsOf(pool)).every(({ metadata }) => metadata.uid !== changed);
        await eventually('the end of the Pod', async () => ((await isGone()) ? true : undefined), 120);
        after('ended');
      });
      await eventually('an event that says what was changed', async () => {
        const events = await kubectl(['get', 'events.events.k8s.io', '-n', namespace, '-o', 'json']);
        const { items } = JSON.parse(events) as {
          readonly items: readonly { readonly reason?: string; readonly note?: string }[];
        };
        const notes = items.filter(({ reason }) => reason === 'SandboxEnded').map(({ note = '' }) => note);
        return notes.some((note) => note.includes('metadata.labels[example.com/by-hand]: found "yes"')) || undefined;
      });
    }, 400_000);
  });

  test('a dry run that fails decides nothing: it is said, nothing is bound, and the same Pod serves later', async () => {
    const wanted = taskLike('admission-undecided');
    const after = stopwatch('undecided');
    await explained(product, async () => {
      webhook.answer = ({ dryRun }) => (dryRun ? 'the injector is being updated' : injection);
      await applyObjects(kubectl, [wanted]);
      const undecided = await poolSays(wanted, 'the injector is being updated');
      after('said');
      const [pod] = await podsOf(undecided);
      expect(undecided.status).toMatchObject({ admissionState: 'Closed', message: expect.stringContaining('undecided') });
      expect(Object.keys(undecided.metadata.annotations ?? {})).not.toContain('orka.ai/bootstrap-instance-binding');
      webhook.answer = () => injection;
      const serving = await poolServing(kubectl, wanted.metadata, 150);
      after('Serving');
      expect([serving.status?.activeInstance?.podUID, (await podsOf(serving)).length]).toEqual([pod?.metadata.uid, 1]);
      expect((await taskOver(kubectl, wanted.metadata, 120)).status?.phase).toBe('Succeeded');
    }).finally(() => removed(wanted));
  }, 700_000);

  test('a class that is strict refuses the same Pod, and names what it was not rendered with', async () => {
    const wanted = taskLike('admission-strict');
    const after = stopwatch('strict');
    await product.reinstall({ gates: true, attestation: 'Strict' });
    await explained(product, async () => {
      webhook.answer = () => injection;
      await applyObjects(kubectl, [wanted]);
      const refused = await poolSays(wanted, 'metadata.labels[injected.example.com/by]: found "webhook"');
      after('refused');
      expect(refused.status?.activeInstance).toBeUndefined();
      expect(
        webhook.asked.filter(
          ({ dryRun, object }) => dryRun && object.metadata.labels?.[labelKeys.poolUid] === refused.metadata.uid,
        ),
      ).toEqual([]);
    }).finally(() => removed(wanted));
  }, 600_000);
});
