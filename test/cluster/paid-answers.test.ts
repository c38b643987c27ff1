/** An answer that was paid for is kept while its Pod is taken away, and while a quota of its namespace does not take it. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Task } from '../../src/api/index.js';
import { labelKeys } from '../../src/domain/labels.js';
import { eventually, kubectl } from './support/cluster.js';
import { explained } from './support/evidence.js';
import { answerOf, applyObjects, example, plainTaskLike, readPool, readTask, taskOver } from './support/first-task.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';

const namespace = example.task.metadata.namespace ?? '';
const quota = 'paid-answers';

let product: Installed;

beforeAll(async () => {
  product = await installed({ gates: true });
}, 600_000);
afterAll(async () => {
  await kubectl(['delete', 'quota', quota, '-n', namespace, '--ignore-not-found']);
  await product.remove();
}, 600_000);

const wordOf = (name: string) => name.toUpperCase().replaceAll('-', '_');
const begin = async (name: string, seconds: number): Promise<void> => {
  const task = plainTaskLike(name, { prompt: `Wait ${seconds} seconds. Reply exactly: ${wordOf(name)}` });
  await applyObjects(kubectl, [example.agent, task]);
};
const read = (name: string): Promise<Task | undefined> => readTask(kubectl, { name, namespace });
const until = (name: string, what: string, is: (status: NonNullable<Task['status']>) => boolean): Promise<Task> =>
  eventually(
    what,
    async () => {
      const task = await read(name);
      return task?.status && is(task.status) ? task : undefined;
    },
    150,
  );
const running = (name: string): Promise<Task> => until(name, 'a prompt', ({ execution }) => execution?.state === 'Running');

async function succeeds(name: string): Promise<void> {
  expect((await taskOver(kubectl, { name, namespace }, 150)).status).toMatchObject({ phase: 'Succeeded' });
  expect(await answerOf(kubectl, { name, namespace })).toBe(wordOf(name));
}

test('a Deployment that is scaled to none by hand lets the prompt of its Pod end, and the Task succeeds', async () => {
  await explained(product, async () => {
    await begin('paid-scaled', 15);
    const { status } = await running('paid-scaled');
    const pool = await readPool(kubectl, { name: status?.execution?.runtimePoolName ?? '', namespace });
    const mine = ['-n', product.namespaces.runtime, '-l', `${labelKeys.poolUid}=${pool?.metadata.uid ?? ''}`];
    await kubectl(['scale', 'deployment', '--replicas=0', ...mine]);
    await succeeds('paid-scaled');
  });
}, 400_000);

describe('a quota of the namespace of a Task', () => {
  const forbid = (what: string) => kubectl(['create', 'quota', quota, `--hard=count/${what}=0`, '-n', namespace]);
  const allow = () => kubectl(['delete', 'quota', quota, '-n', namespace]);
  const says = (name: string) =>
    until(name, 'the name of the quota', ({ message }) => message?.includes(`exceeded quota: ${quota}`) === true);

  test.each(['secrets', 'runtimepools.core.orka.ai'])(
    'that takes no %s is named in its status, and it runs when that is over',
    async (what) => {
      const name = `paid-${what.split('.')[0]}`;
      await explained(product, async () => {
        // One pool is for all of them.
        if (what.startsWith('runtimepools')) await kubectl(['delete', 'runtimepools.core.orka.ai', '--all', '-n', namespace]);
        await forbid(what);
        await begin(name, 1);
        expect((await says(name)).status?.phase).toBe('Pending');
        await allow();
        await succeeds(name);
      });
    },
    400_000,
  );

  test('that takes no ConfigMap is named in its status, and the answer is stored when that is over', async () => {
    await explained(product, async () => {
      await begin('paid-configmaps', 10);
      await running('paid-configmaps');
      await forbid('configmaps');
      expect((await says('paid-configmaps')).status?.phase).toBe('Running');
      await allow();
      await succeeds('paid-configmaps');
    });
  }, 400_000);
});
