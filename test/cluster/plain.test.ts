/** A Task without a workspace of its own runs on a pool that a Deployment keeps, and that it shares with others. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Manifest, RuntimePool, Task } from '../../src/api/index.js';
import { labelKeys } from '../../src/domain/labels.js';
import { cluster, eventually, kubectl } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import { answerOf, applyObjects, example, plainTaskLike, readPool, taskLike, taskOver } from './support/first-task.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { modelRequests } from './support/model.js';
import { watch } from './support/watch.js';

const namespace = example.task.metadata.namespace ?? '';

let product: Installed;

beforeAll(async () => {
  product = await installed({ gates: true });
}, 600_000);
afterAll(() => product.remove(), 600_000);

const wordOf = (name: string): string => name.toUpperCase().replaceAll('-', '_');
const plainTask = (name: string, seconds = 0): Task =>
  plainTaskLike(name, { prompt: `${seconds === 0 ? '' : `Wait ${seconds} seconds. `}Reply exactly: ${wordOf(name)}` });
const over = (name: string): Promise<Task> => taskOver(kubectl, { name, namespace }, 150);
const poolOf = async ({ status }: Task): Promise<RuntimePool> =>
  (await readPool(kubectl, { name: status?.execution?.runtimePoolName ?? '', namespace }))!;
const made = async (pool: RuntimePool, kinds: string): Promise<readonly Manifest[]> => {
  const mine = ['-n', product.namespaces.runtime, '-l', `${labelKeys.poolUid}=${pool.metadata.uid}`, '-o', 'json'];
  return (JSON.parse(await kubectl(['get', kinds, ...mine])) as { readonly items: readonly Manifest[] }).items;
};
const instanceOf = ({ status }: RuntimePool) => status?.activeInstance?.runtimeInstanceID;

async function promptsFor(name: string): Promise<number> {
  const requests = await modelRequests(kubectl, product.poolClass);
  return requests.filter(({ asked, path }) => asked === wordOf(name) && path.startsWith('/v1/responses')).length;
}

/** What was answered, and with how many requests of the model. */
async function answeredOnce(name: string): Promise<void> {
  expect((await over(name)).status).toMatchObject({ phase: 'Succeeded' });
  expect([await answerOf(kubectl, { name, namespace }), await promptsFor(name)]).toEqual([wordOf(name), 1]);
}

/** Applies Tasks, and tells when each of them came and succeeded, in milliseconds, and what each of their messages was. */
async function timed(names: readonly string[], tasks: readonly Task[]) {
  const seen = new Map<string, { came: number; over?: number; says: Set<string>; states: Map<string, number> }>();
  const pools = new Set<string>();
  const watches = [
    watch(cluster, `/apis/core.orka.ai/v1alpha1/namespaces/${namespace}/tasks`, ({ object, at }) => {
      const { status } = object as unknown as Task;
      const { name } = object.metadata;
      if (!names.includes(name)) return;
      const known = seen.get(name) ?? { came: at, says: new Set<string>(), states: new Map<string, number>() };
      const { state = 'unbound' } = status?.execution ?? {};
      if (!known.states.has(state)) known.states.set(state, at);
      if (status?.message !== undefined) known.says.add(status.message);
      if (status?.phase === 'Succeeded') known.over ??= at;
      seen.set(name, known);
    }),
    watch(cluster, `/apis/core.orka.ai/v1alpha1/namespaces/${namespace}/runtimepools`, ({ object }) => {
      const { status } = object as unknown as RuntimePool;
      const { runningPrompts = 0, maxRunningPrompts = 0 } = status?.capacity ?? {};
      const admission = status?.conditions?.find(({ type }) => type === 'AdmissionReady')?.reason ?? '';
      pools.add(`${status?.admissionState ?? ''} ${admission}`);
      if (runningPrompts > maxRunningPrompts) pools.add('too many prompts');
    }),
  ];
  try {
    await new Promise((resolve) => setTimeout(resolve, 500));
    await applyObjects(kubectl, [example.agent, ...tasks]);
    await Promise.all(names.map((name) => over(name)));
    await eventually('the last word', () => Promise.resolve(names.every((name) => seen.get(name)?.over) || undefined), 60);
  } finally {
    for (const one of watches) one.stop();
  }
  return { of: (name: string) => seen.get(name)!, took: (name: string) => seen.get(name)!.over! - seen.get(name)!.came, pools };
}

describe('a Task without a workspace', () => {
  let task: Task;
  let pool: RuntimePool;

  beforeAll(async () => {
    const after = stopwatch('plain');
    await explained(product, async () => {
      await applyObjects(kubectl, [example.agent, plainTask('plain-first')]);
      task = await over('plain-first');
      pool = await poolOf(task);
    });
    after('over');
  }, 200_000);

  test('succeeds with its answer, for which the model was asked once', () => answeredOnce('plain-first'), 200_000);

  test('has no workspace status', () => {
    expect(task.status?.executionWorkspace).toBeUndefined();
  });

  test('has a pool that is named after provider, profile and image, for ten sessions and four prompts', () => {
    expect(pool.metadata.name).toMatch(/^acp-codex-[0-9a-f]{16}$/);
    expect(pool.spec.capacity).toEqual({ maxResidentSessions: 10, maxRunningPrompts: 4 });
    expect(pool.spec.executionWorkspace).toBeUndefined();
  });

  test('runs in a Pod of a Deployment, with two Secrets under names that say what they are for', async () => {
    const deployments = await made(pool, 'deployments');
    expect(deployments.map(({ spec }) => spec)).toMatchObject([{ replicas: 1, strategy: { type: 'Recreate' } }]);
    const [epoch, generation] = [pool.status?.controllerEpoch, pool.status?.activeInstance?.providerTokenGeneration];
    expect(
      (await made(pool, 'secrets')).map(({ metadata }) => metadata.name.replace(/^acp-.*-(auth|provider)-/, '$1-')).sort(),
    ).toEqual([`auth-e${epoch}`, `provider-e${epoch}-g${generation}`]);
    expect(await made(pool, 'sandboxclaims,sandboxtemplates,sandboxwarmpools')).toEqual([]);
  });

  test('leaves no session on the instance, which stays', async () => {
    const found = await eventually('no session', async () => {
      const now = await poolOf(task);
      return now.status?.capacity?.residentSessions === 0 ? now : undefined;
    });
    expect(found.status).toMatchObject({ lifecycle: 'Serving', admissionState: 'Accepting' });
    expect(instanceOf(found)).toBe(task.status?.execution?.runtimeInstanceID);
  });
});

describe('on the warm pool', () => {
  test('the next Task is over soon, on the same instance', async () => {
    await explained(product, async () => {
      const names = ['plain-warm-1', 'plain-warm-2', 'plain-warm-3'];
      for (const name of names) {
        const run = await timed([name], [plainTask(name)]);
        const { came, states } = run.of(name);
        const steps = [...states].map(([state, at]) => `${state} ${(at - came).toFixed(0)}`);
        stopwatch(`plain: ${name} took ${run.took(name).toFixed(0)} ms (${steps.join(', ')})`)('told');
        await answeredOnce(name);
      }
      const [first, last] = [await over('plain-first'), await over('plain-warm-3')];
      expect(last.status?.execution?.runtimeInstanceID).toBe(first.status?.execution?.runtimeInstanceID);
    });
  }, 600_000);

  test('four of five Tasks run at once, and the fifth says what it waits for', async () => {
    await explained(product, async () => {
      const names = [1, 2, 3, 4, 5].map((number) => `plain-many-${number}`);
      // Longer than four prompts need to begin on a slow machine.
      const seconds = 12;
      const run = await timed(
        names,
        names.map((name) => plainTask(name, seconds)),
      );
      // The model's one answer is that of whoever asked last.
      for (const name of names)
        expect([name, (await over(name)).status?.phase, await promptsFor(name)]).toEqual([name, 'Succeeded', 1]);
      const asked = (await modelRequests(kubectl, product.poolClass))
        .flatMap(({ asked: word, at }) => names.filter((name) => wordOf(name) === word).map((name) => ({ name, at })))
        .sort((a, b) => a.at - b.at);
      expect(asked.at(-1)!.at - asked[0]!.at).toBeGreaterThanOrEqual(1_000 * seconds);
      const waited = names.filter((name) => [...run.of(name).says].some((text) => text.includes('waits for a free slot')));
      expect(waited).toContain(asked.at(-1)!.name);
      expect([...run.pools]).toEqual(expect.arrayContaining(['Closed AtCapacity', 'Accepting Serving']));
      expect([...run.pools]).not.toContain('too many prompts');
    });
  }, 300_000);

  test('a Task with a workspace beside it has a pool and an instance of its own, and neither joins the other', async () => {
    await explained(product, async () => {
      const prompt = (name: string) => ({ prompt: `Reply exactly: ${wordOf(name)}` });
      const own = taskLike('plain-not', prompt('plain-not'));
      await applyObjects(kubectl, [own, plainTask('plain-beside')]);
      await answeredOnce('plain-not');
      await answeredOnce('plain-beside');
      const [workspace, shared] = [await over('plain-not'), await over('plain-beside')].map(({ status }) => status?.execution);
      expect(workspace?.runtimePoolName).toMatch(/^acp-ws-codex-/);
      expect(shared?.runtimePoolName).toMatch(/^acp-codex-/);
      expect(workspace?.runtimeInstanceID).not.toBe(shared?.runtimeInstanceID);
      await kubectl(['delete', 'tasks.core.orka.ai', 'plain-not', '-n', namespace, '--timeout=60s']);
    });
  }, 400_000);
});

describe('an instance that cannot be kept gives way to another, on which the next Task succeeds', () => {
  test('when its supervisor is started again in place', async () => {
    await explained(product, async () => {
      const before = await poolOf(await over('plain-first'));
      const { podName = '' } = before.status?.activeInstance ?? {};
      const after = stopwatch('plain: killed in place');
      // What it is run in may end before it is told so.
      const kill = ['exec', '-n', product.namespaces.runtime, podName, '--', '/bin/busybox', 'kill', '1'];
      await kubectl(kill).catch(() => undefined);
      const rolled = await eventually(
        'another instance',
        async () => {
          const now = await poolOf(await over('plain-first'));
          return now.status?.lifecycle === 'Serving' && instanceOf(now) !== instanceOf(before) ? now : undefined;
        },
        150,
      );
      after('another serves');
      expect(rolled.status?.activeInstance?.podUID).not.toBe(before.status?.activeInstance?.podUID);
      await applyObjects(kubectl, [plainTask('plain-after-kill')]);
      await answeredOnce('plain-after-kill');
    });
  }, 400_000);

  test('when its Pod is deleted', async () => {
    await explained(product, async () => {
      const before = await poolOf(await over('plain-first'));
      const { podName = '' } = before.status?.activeInstance ?? {};
      await kubectl(['delete', 'pod', podName, '-n', product.namespaces.runtime, '--wait=false']);
      // Before the controller knows, a Task may still be sent to the one that goes.
      await eventually('a pool that lost its instance', async () => {
        const now = await poolOf(await over('plain-first'));
        return now.status?.lifecycle !== 'Serving' || instanceOf(now) !== instanceOf(before) || undefined;
      });
      await applyObjects(kubectl, [plainTask('plain-after-loss')]);
      await answeredOnce('plain-after-loss');
      expect(instanceOf(await poolOf(await over('plain-first')))).not.toBe(instanceOf(before));
    });
  }, 400_000);

  test('when its Deployment was changed by someone else', async () => {
    await explained(product, async () => {
      const before = await poolOf(await over('plain-first'));
      const [deployment] = await made(before, 'deployments');
      const change = [{ op: 'add', path: '/spec/template/spec/hostNetwork', value: true }];
      const { name } = deployment!.metadata;
      await kubectl(['patch', 'deployment', name, '-n', product.namespaces.runtime, '--type=json', '-p', JSON.stringify(change)]);
      await eventually('the Deployment as it was', async () => {
        const [now] = await made(before, 'deployments');
        const { template, replicas } = now!['spec'] as { template: { spec: { hostNetwork?: boolean } }; replicas: number };
        return (template.spec.hostNetwork === undefined && replicas === 1) || undefined;
      });
      await applyObjects(kubectl, [plainTask('plain-after-change')]);
      await answeredOnce('plain-after-change');
    });
  }, 400_000);

  test('when another controller leads', async () => {
    await explained(product, async () => {
      const before = await poolOf(await over('plain-first'));
      const { name } = product.deployment.metadata;
      const controller = ['-n', product.namespaces.controller];
      const after = stopwatch('plain: another controller');
      await kubectl(['rollout', 'restart', `deployment/${name}`, ...controller]);
      const epoch = before.status?.activeInstance?.controllerEpoch ?? 0;
      const rolled = await eventually(
        'an instance of another epoch',
        async () => {
          const { status } = await poolOf(await over('plain-first'));
          const found = status?.activeInstance?.controllerEpoch ?? 0;
          return (status?.lifecycle === 'Serving' && found > epoch) || undefined;
        },
        180,
      );
      after('its instance serves');
      expect(rolled).toBe(true);
      await applyObjects(kubectl, [plainTask('plain-after-epoch')]);
      await answeredOnce('plain-after-epoch');
      const pool = await poolOf(await over('plain-after-epoch'));
      await eventually('only the Secrets of this epoch', async () =>
        (await made(pool, 'secrets')).length === 2 ? true : undefined,
      );
    });
  }, 600_000);
});

describe('a pool that is deleted', () => {
  const gone = async (pool: RuntimePool): Promise<void> => {
    await kubectl(['delete', 'runtimepools.core.orka.ai', pool.metadata.name, '-n', namespace, '--timeout=120s']);
    const kinds = 'deployments,replicasets,pods,services,secrets,networkpolicies,poddisruptionbudgets';
    await eventually('nothing', async () => ((await made(pool, kinds)).length === 0 ? true : undefined));
  };

  test('is there again for the next Task, with another instance, and leaves nothing either time', async () => {
    await explained(product, async () => {
      const before = await poolOf(await over('plain-first'));
      await gone(before);
      await applyObjects(kubectl, [plainTask('plain-again')]);
      await answeredOnce('plain-again');
      const after = await poolOf(await over('plain-again'));
      expect(after.metadata.name).toBe(before.metadata.name);
      expect(after.metadata.uid).not.toBe(before.metadata.uid);
      expect(instanceOf(after)).not.toBe(instanceOf(before));
      await gone(after);
    });
  }, 900_000);
});
