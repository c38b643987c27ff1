import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Manifest, RuntimePool, Task } from '../../src/api/index.js';
import { readInfo } from './info.js';
import { cluster, eventually, kubectl } from './support/cluster.js';
import { poolCredentials, readableBy, seenBy } from './support/credentials.js';
import { explained, stopwatch } from './support/evidence.js';
import {
  answerOf,
  applyObjects,
  example,
  exampleFile,
  marker,
  poolServing,
  read,
  taskLike,
  taskOver,
} from './support/first-task.js';
import { leftovers } from './support/installation.js';
import { credentialsIn } from './support/leaks.js';
import { controllerLog, installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { modelRequests } from './support/model.js';
import { keepPoolOf } from './support/tampering.js';
import { watch } from './support/watch.js';
import type { Change } from './support/watch.js';

const provider = 'system:serviceaccount:agent-sandbox-system:agent-sandbox-controller';
const tasks = 'tasks.core.orka.ai';
const pools = 'runtimepools.core.orka.ai';
const claims = 'sandboxclaims.extensions.agents.x-k8s.io';
const named = { name: example.task.metadata.name, namespace: example.task.metadata.namespace ?? '' };
const { namespace } = named;

/** The ways out of the controller are closed but for the API server, which runs with the network of its node. */
const apiServer = cluster.node ? { apiServer: { addresses: [`${cluster.node.ip}/32`], ports: [6443] } } : {};
let product: Installed;

beforeAll(async () => {
  product = await installed({ gates: false, ...apiServer });
}, 600_000);
afterAll(() => product.remove(), 600_000);

const deleted = (resource: string, name: string) =>
  kubectl(['delete', resource, name, '-n', namespace, '--ignore-not-found', '--timeout=120s']);
const listed = async (resource: string, where: readonly string[]): Promise<readonly Manifest[]> =>
  (JSON.parse(await kubectl(['get', resource, ...where, '-o', 'json'])) as { readonly items: readonly Manifest[] }).items;
const namesOf = (objects: readonly Manifest[]) => objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);

/** What may not exist after a refusal. */
async function madeFor(task: Task): Promise<readonly string[]> {
  return namesOf([
    ...(await listed(pools, ['-A'])),
    ...(await listed(claims, ['-A'])),
    ...(await listed('secrets', ['-n', namespace, '-l', `orka.ai/task-uid=${task.metadata.uid}`])),
    ...(await leftovers(kubectl, product)),
  ]);
}

describe('with both switches off, as a platform file has them', () => {
  let refused: Task;

  beforeAll(async () => {
    const after = stopwatch('switches off');
    await explained(product, async () => {
      await kubectl(['apply', '-f', exampleFile]);
      refused = await taskOver(kubectl, named, 120);
    });
    after('refused');
  }, 200_000);
  afterAll(() => deleted(tasks, named.name), 150_000);

  test('the Task of the deploy guide fails with a workspace status that says so', () => {
    expect(refused.status).toMatchObject({
      phase: 'Failed',
      executionWorkspace: { phase: 'Failed', reason: 'WorkspaceValidationFailed' },
    });
  });

  test('it is told which switch the operator would have to set', () => {
    expect(refused.status?.message).toContain('controller.gates.agentSandbox: true');
    expect(refused.status?.executionWorkspace?.message).toBe(refused.status?.message);
  });

  test('nothing is made for it: no pool, no claim, no snapshot', async () => {
    expect(await madeFor(refused)).toEqual([]);
  });
});

describe('with both switches on', () => {
  let credentials: ReadonlyMap<string, string>;
  let pool: RuntimePool;
  let task: Task;
  let letGo: () => Promise<void>;
  let requestsBefore = 0;
  /** What the provider could see, while the pool served and once the Task was over. */
  let seenByProvider = '';
  /** What somebody who reads Tasks could see, at the same two moments. */
  let seenByUser = '';
  let snapshots: readonly Manifest[] = [];
  let native: readonly string[] = [];
  let logs: readonly string[] = [];

  async function look(): Promise<void> {
    seenByProvider += await seenBy(provider, await readableBy(provider));
    const kinds = `${tasks},${pools},agents.core.orka.ai,configmaps,events,events.events.k8s.io`;
    seenByUser += await kubectl(['get', kinds, '-n', namespace, '-o', 'yaml', '--show-managed-fields']);
    seenByUser += await kubectl(['get', 'events', '-n', product.namespaces.runtime, '-o', 'yaml']);
  }

  beforeAll(async () => {
    await product.reinstall({ gates: true, ...apiServer });
    await explained(product, async () => {
      requestsBefore = (await modelRequests(kubectl, product.poolClass)).length;
      const after = stopwatch('switches on');
      await kubectl(['apply', '-f', exampleFile]);
      // The pool would end with its Task, before the test reads it.
      letGo = await keepPoolOf(product, example.task);
      pool = await poolServing(kubectl, named, 180);
      after('Serving');
      const { runtime } = product.namespaces;
      const mine = ['-n', runtime, '-l', `orka.ai/runtime-pool-uid=${pool.metadata.uid}`];
      credentials = await poolCredentials(product, pool.metadata.uid ?? '');
      const kinds = `${claims},sandboxwarmpools.extensions.agents.x-k8s.io,sandboxtemplates.extensions.agents.x-k8s.io,pods`;
      const made = await listed(kinds, mine);
      const pods = made.filter(({ kind }) => kind === 'Pod') as unknown as readonly {
        readonly status: { readonly podIP: string };
      }[];
      native = [...made.map(({ metadata }) => metadata.name), ...pods.map(({ status }) => status.podIP)];
      await look();
      task = await taskOver(kubectl, named, 180);
      after(task.status?.phase ?? 'over');
      await look();
      snapshots = await listed('secrets', ['-n', namespace, '-l', `orka.ai/task-uid=${task.metadata.uid}`]);
      logs = [
        await controllerLog(product, -1),
        await kubectl(['logs', ...mine, '--tail=-1']),
        cluster.node
          ? readFileSync(join(readInfo()?.logs ?? '', 'agent-sandbox-controller.log'), 'utf8')
          : await kubectl(['logs', '-n', 'agent-sandbox-system', 'deployment/agent-sandbox-controller', '--tail=-1']),
      ];
      if (task.status?.phase !== 'Succeeded') throw new Error(`the Task ended as ${task.status?.phase}: ${task.status?.message}`);
    });
  }, 600_000);

  test('a pool of its own serves the Task, named after runtime and workspace', () => {
    expect(pool.metadata.name).toMatch(/^acp-ws-codex-[0-9a-f]{16}$/);
    expect(task.status?.execution).toMatchObject({ runtimePoolName: pool.metadata.name, runtimePoolUID: pool.metadata.uid });
  });

  test('the Task succeeds, its result is available and its workspace released', () => {
    expect(task.status).toMatchObject({
      phase: 'Succeeded',
      execution: { state: 'Succeeded', outcome: 'Succeeded' },
      resultRef: { available: true },
      executionWorkspace: { provider: 'agent-sandbox', phase: 'Released', reason: 'WorkspaceReleased', reused: false },
    });
  });

  test('the answer of the model is in the result, which belongs to the Task and never changes', async () => {
    expect(await answerOf(kubectl, named)).toBe(marker);
    expect(await read(kubectl, 'configmap', { name: `${named.name}-result`, namespace })).toMatchObject({
      immutable: true,
      data: { receipt: expect.any(String) },
      metadata: { ownerReferences: [expect.objectContaining({ kind: 'Task', uid: task.metadata.uid })] },
    });
  });

  test('the model is asked once, with the token that the proxy wants', async () => {
    const requests = (await modelRequests(kubectl, product.poolClass)).slice(requestsBefore);
    expect(requests.filter(({ path }) => path.startsWith('/v1/responses'))).toEqual([
      expect.objectContaining({ method: 'POST', path: '/v1/responses', authorized: true }),
    ]);
    expect(requests.filter(({ authorized }) => !authorized)).toEqual([]);
  });

  test('the credentials of the pool are what the contract says, and the provider token is among them', () => {
    expect([...credentials.keys()].sort()).toEqual(['bootstrap-signing-seed', 'capability-secret', 'controller-token', 'token']);
    expect(credentials.get('token')).toBe(product.proxyToken);
  });

  test("the provider cannot read Secrets, and no credential is in anything that it can read, of anybody's", async () => {
    expect(await readableBy(provider)).not.toContain('secrets');
    await expect(kubectl(['auth', 'can-i', 'get', 'secrets', '-A', `--as=${provider}`])).rejects.toThrow('no');
    for (const name of native) expect(seenByProvider).toContain(name);
    expect(credentialsIn(seenByProvider, credentials)).toEqual([]);
  });

  test('no credential is in anything that a reader of Tasks can read', () => {
    expect(seenByUser).toContain(marker);
    expect(credentialsIn(seenByUser, credentials)).toEqual([]);
  });

  test('no credential is in the snapshot of the Task, which is its own immutable Secret', () => {
    expect(snapshots).toEqual([
      expect.objectContaining({
        immutable: true,
        metadata: expect.objectContaining({ ownerReferences: [expect.objectContaining({ uid: task.metadata.uid })] }),
      }),
    ]);
    const values = snapshots.flatMap(({ data }) => Object.values(data as Readonly<Record<string, string>>));
    const text = values.map((value) => Buffer.from(value, 'base64').toString()).join('\n');
    expect(credentialsIn(text, credentials)).toEqual([]);
  });

  test('no credential is in a log of the controller, of the sandbox or of the provider', () => {
    const [ofController = '', ofSandbox = '', ofProvider = ''] = logs;
    expect(ofController).toContain('"event":"leads"');
    expect(ofSandbox.trim()).not.toBe('');
    expect(ofProvider).toContain(pool.metadata.name);
    expect(credentialsIn(logs.join('\n'), credentials)).toEqual([]);
  });

  test('a Task names nothing of the provider: no claim, template, warm pool, Pod or address', async () => {
    const text = await kubectl(['get', tasks, named.name, '-n', namespace, '-o', 'yaml', '--show-managed-fields']);
    expect(native.length).toBeGreaterThanOrEqual(5);
    expect(native.filter((name) => text.includes(name))).toEqual([]);
  });

  describe('once Task and pool are deleted', () => {
    beforeAll(async () => {
      const after = stopwatch('deletion');
      await explained(product, async () => {
        await letGo();
        await kubectl(['delete', tasks, named.name, '-n', namespace, '--timeout=120s']);
        after('Task gone');
        await kubectl(['delete', pools, pool.metadata.name, '-n', namespace, '--ignore-not-found', '--timeout=180s']);
        after('pool gone');
        await eventually('what Kubernetes collects', async () =>
          (await leftovers(kubectl, product)).length === 0 ? true : undefined,
        ).catch(() => undefined);
      });
    }, 500_000);

    test('nothing is left of the sandbox, of its isolation and of its Secrets, and nothing of what the Task owned', async () => {
      expect(namesOf(await leftovers(kubectl, product))).toEqual([]);
    });
  });

  describe('what this version or this installation does not run is refused by name and leaves nothing behind:', () => {
    const workspace = { enabled: true, reusePolicy: 'none', cleanupPolicy: 'delete' } as const;
    const repository = 'https://github.com/example/repository';

    test.each([
      {
        what: 'a workspace of a Session',
        task: taskLike('refused-session', {
          sessionRef: { name: 'a-session', create: true },
          execution: { workspace: { ...workspace, reusePolicy: 'session' } },
        }),
        field: 'spec.execution.workspace.reusePolicy',
        status: { executionWorkspace: { phase: 'Failed', reason: 'WorkspaceValidationFailed' } },
      },
      {
        what: 'a repository without forges',
        task: taskLike('refused-repository', { workspace: { gitRepo: repository } }),
        field: 'spec.workspace.gitRepo',
        says: 'the operator of the platform sets publisher.enabled: true and publisher.forges',
        status: { execution: { state: 'Failed', outcome: 'Failed', reason: 'InvalidWorkspace' } },
      },
      {
        what: 'write intent',
        task: taskLike('refused-write', { workspace: { intent: 'write' } }),
        field: 'spec.workspace.intent',
        status: { execution: { state: 'Failed', outcome: 'Failed', reason: 'InvalidWorkspace' } },
      },
    ])(
      '$what',
      async ({ task: asked, field, says = 'is not available in this version', status }) => {
        await applyObjects(kubectl, [asked]);
        const refused = await explained(product, () => taskOver(kubectl, asked.metadata, 120));
        try {
          expect(refused.status).toMatchObject({ phase: 'Failed', message: expect.stringContaining(field), ...status });
          expect(refused.status?.message).toContain(says);
          expect(await madeFor(refused)).toEqual([]);
        } finally {
          await deleted(tasks, asked.metadata.name);
        }
      },
      300_000,
    );
  });
});

describe('a pool whose only Task is over', () => {
  /** By what was seen: when, in milliseconds since the epoch, and after how many writes to the cluster. */
  const seen = new Map<string, { readonly at: number; readonly revision: number }>();
  const lifecycles: string[] = [];
  /** Milliseconds on a slow machine: the drain, the end of the Pod, and what Kubernetes collects. The idle time is a quarter of an hour. */
  const endsWithin = 90_000;
  const at = (what: string) => seen.get(what)?.at ?? NaN;
  const revision = (what: string) => seen.get(what)?.revision ?? NaN;
  let task: Task;

  beforeAll(async () => {
    await product.reinstall({ gates: true, ...apiServer });
    const note = (what: string, { at: when, object }: Change) => {
      if (!seen.has(what)) seen.set(what, { at: when, revision: Number(object.metadata.resourceVersion) });
    };
    const watches = [
      watch(cluster, `/apis/core.orka.ai/v1alpha1/namespaces/${namespace}/runtimepools`, (change) => {
        const { lifecycle = '' } = (change.object as unknown as RuntimePool).status ?? {};
        if (change.type === 'DELETED') note('pool gone', change);
        else if (lifecycle !== lifecycles.at(-1)) {
          lifecycles.push(lifecycle);
          note(lifecycle, change);
        }
      }),
      watch(
        cluster,
        `/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/${product.namespaces.runtime}/sandboxclaims`,
        (change) => {
          if (change.type === 'DELETED') note('claim gone', change);
        },
      ),
    ];
    try {
      await explained(product, async () => {
        await kubectl(['apply', '-f', exampleFile]);
        task = await taskOver(kubectl, named, 180);
        const after = stopwatch('the end of a pool');
        for (const what of ['claim gone', 'Stopped', 'pool gone']) {
          await eventually(what, () => Promise.resolve(seen.get(what)), 120);
          after(what);
        }
      });
    } finally {
      for (const one of watches) one.stop();
    }
  }, 600_000);
  afterAll(() => deleted(tasks, named.name), 150_000);

  test('drains, loses its sandbox and is Stopped', () => {
    expect(task.status?.phase).toBe('Succeeded');
    expect(lifecycles.slice(lifecycles.indexOf('Serving') + 1)).toContain('Stopped');
    // Each kind is watched over a connection of its own, so that what was seen first need not have been first.
    expect(revision('claim gone')).toBeLessThan(revision('Stopped'));
  });

  test('ends with its Task, however long the idle time of shared pools is', () => {
    const end = Date.parse(task.status?.execution?.lastTransitionTime ?? '');
    expect(at('pool gone') - end).toBeLessThan(endsWithin);
  });

  test('leaves its Task and the answer as they were', async () => {
    expect(await answerOf(kubectl, named)).toBe(marker);
    expect((await leftovers(kubectl, product)).map(({ kind }) => kind).sort()).toEqual(['ConfigMap', 'Secret']);
  });
});
