/** A node that is drained while one pool is idle on it and another one works. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Task } from '../../src/api/index.js';
import { labelKeys } from '../../src/domain/labels.js';
import { cluster, kubectl } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import { answerOf, applyObjects, example, isOver, plainTaskLike, taskLike, taskOver } from './support/first-task.js';
import { startHistory } from './support/history.js';
import type { History } from './support/history.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';

const { namespace = '' } = example.task.metadata;
const [idle, busy, next] = ['drain-idle', 'drain-busy', 'drain-next'] as const;
const wordOf = (name: string) => name.toUpperCase().replaceAll('-', '_');

// Only a node of our own may be cordoned.
(cluster.node ? describe : describe.skip)('a node that is drained', () => {
  let product: Installed;
  let history: History;
  let node = '';
  let drained = NaN;
  let podsAfter = '';
  let tasks: readonly Task[] = [];
  let warnings = '';

  const poolOf = ({ metadata }: Task) => metadata.labels?.[labelKeys.taskPool] ?? '';
  const firstTask = (name: string, isIt: (task: Task) => boolean, since: number, seconds: number) =>
    history.first('tasks', (task) => task.metadata.name === name && isIt(task), { since, seconds });
  const over = (name: string) => taskOver(kubectl, { name, namespace }, 180);

  /** Only our Pods: the DNS of the cluster has no other node to go to. */
  const drain = () =>
    kubectl([
      ...['drain', node, `--pod-selector=${labelKeys.poolUid}`, '--ignore-daemonsets', '--delete-emptydir-data'],
      '--timeout=150s',
    ]);

  beforeAll(async () => {
    product = await installed({ gates: true });
    history = startHistory(product);
    node = (await kubectl(['get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}'])).trim();
    await applyObjects(kubectl, [example.agent]);
    const after = stopwatch('a drained node');
    await explained(product, async () => {
      await applyObjects(kubectl, [plainTaskLike(idle, { prompt: `Reply exactly: ${wordOf(idle)}` })]);
      const first = await over(idle);
      const since = Date.now();
      await applyObjects(kubectl, [taskLike(busy, { prompt: `Wait 20 seconds. Reply exactly: ${wordOf(busy)}` })]);
      const isRunning = ({ status }: Task) => status?.execution?.state === 'Running';
      expect(await firstTask(busy, isRunning, since, 120)).toBeDefined();
      after('one pool is idle, and one runs a prompt');
      await drain();
      drained = Date.now();
      after('drained');
      const { runtime } = product.namespaces;
      const ours = ['-n', runtime, '-l', labelKeys.poolUid];
      podsAfter = await kubectl(['get', 'pods', ...ours, `--field-selector=spec.nodeName=${node}`, '-o', 'name']);
      const second = await over(busy);
      await applyObjects(kubectl, [plainTaskLike(next, { prompt: `Reply exactly: ${wordOf(next)}` })]);
      const waits = ({ status }: Task) => status?.message?.includes('cannot be scheduled') === true;
      expect(await firstTask(next, waits, drained, 60)).toBeDefined();
      after('another Task waits for a node');
      await kubectl(['uncordon', node]);
      tasks = [first, second, await over(next)];
      after('uncordoned, and it ran');
      warnings = await kubectl([
        'get',
        'events',
        '-n',
        runtime,
        '--field-selector=reason=CalculateExpectedPodCountFailed',
        '-o',
        'name',
      ]);
    });
  }, 900_000);
  afterAll(async () => {
    await kubectl(['uncordon', node]);
    history.stop();
    await product.remove();
  }, 600_000);

  test('has no Pod of ours left once the drain is over', () => {
    expect(podsAfter).toBe('');
  });

  test('is left by the prompt that ran, which is answered', async () => {
    expect(tasks.map(({ status }) => status?.phase)).toEqual(['Succeeded', 'Succeeded', 'Succeeded']);
    expect(await answerOf(kubectl, { name: busy, namespace })).toBe(wordOf(busy));
    const answered = history.of('tasks').find(({ object }) => object.metadata.name === busy && isOver(object))?.at ?? NaN;
    expect(answered).toBeLessThan(drained);
  });

  test('is left by an idle pool at once, and not when a prompt of another pool is over', () => {
    const poolName = poolOf(tasks[0]!);
    const ended = history
      .of('pools')
      .find(({ object }) => object.metadata.name === poolName && object.spec.desiredReplicas === 0);
    const answered = history.of('tasks').find(({ object }) => object.metadata.name === busy && isOver(object));
    expect(ended?.at ?? NaN).toBeLessThan(answered?.at ?? NaN);
  });

  test('is no reason for a warning about a budget', () => {
    expect(warnings.trim()).toBe('');
  });
});
