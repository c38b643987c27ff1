/** What a Task, its pool, an event and a metric say of an instance that ends, or cannot begin: the cause that Kubernetes knows. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Task } from '../../src/api/index.js';
import { eventually, kubectl } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import { during, quota } from './support/faults.js';
import { applyObjects, example, poolServing, readPool, readTask, taskLike, taskOver } from './support/first-task.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { metricsOf } from './support/metrics.js';

const namespace = example.task.metadata.namespace ?? '';
const memory = '1Gi';
let product: Installed;

beforeAll(async () => {
  // With requests that are its limits the kernel spares all processes of a Pod but the one that this test names.
  const most = { cpu: '500m', memory };
  product = await installed({ gates: true, requests: most, limits: most });
}, 600_000);
afterAll(async () => {
  await product.remove();
}, 600_000);

/** Makes the first process of the container the first that the kernel ends, then uses memory, less than that process is charged with. */
const useMemory = `
  require('fs').writeFileSync('/proc/1/oom_score_adj', '1000');
  const all = [];
  const timer = setInterval(() => (all.length < 48 ? all.push(Buffer.alloc(8 << 20, 1)) : clearInterval(timer)), 10);
  setTimeout(() => undefined, 30_000);
`;

const begin = (name: string, prompt: string) => applyObjects(kubectl, [example.agent, taskLike(name, { prompt })]);
async function saying(name: string, what: RegExp): Promise<Task> {
  const after = stopwatch(name);
  const said = await eventually(
    `Task ${name} that says ${what.source}`,
    async () => {
      const task = await readTask(kubectl, { name, namespace });
      return what.test(task?.status?.message ?? '') ? task : undefined;
    },
    60,
  );
  after('says why');
  return said;
}

test('a sandbox that runs out of memory is named with its limit, on Task, pool, event and metric', async () => {
  await explained(product, async () => {
    const name = 'ends-memory';
    await begin(name, 'Wait 60 seconds. Reply exactly: NEVER');
    const pool = await poolServing(kubectl, { name, namespace }, 180);
    await eventually(
      'a prompt that runs',
      async () => (await readTask(kubectl, { name, namespace }))?.status?.execution?.state === 'Running' || undefined,
      120,
    );
    const { podName = '', podNamespace = '' } = pool.status?.activeInstance ?? {};
    const use = () => kubectl(['exec', '-n', podNamespace, podName, '--', '/usr/local/bin/node', '-e', useMemory]);
    // They end with the container.
    const ends = await Promise.allSettled([use(), use(), use(), use()]);
    expect(ends.map(({ status }) => status)).toEqual(ends.map(() => 'rejected'));
    const says = `its container runtime used more than its memory limit of ${memory} and was killed (OOMKilled, exit code 137)`;
    const { status } = await taskOver(kubectl, { name, namespace }, 120);
    expect(status).toMatchObject({
      phase: 'Failed',
      message: `the prompt was lost: ${says}`,
      execution: { state: 'OutcomeUnknown', reason: 'RuntimeLost' },
      conditions: [{ type: 'Complete', reason: 'OOMKilled' }],
    });
    await eventually('the event of the pool', async () => {
      const text = await kubectl(['get', 'events', '-n', namespace, '--field-selector', 'reason=SandboxEnded', '-o', 'json']);
      return text.includes(pool.metadata.name) && text.includes(says) ? text : undefined;
    });
    await eventually('the count of the loss', async () => {
      const counted = await metricsOf(kubectl, product);
      return counted('orka_workspaces_pool_instances_lost_total', 'cause="OOMKilled"') === 1 || undefined;
    });
  });
}, 500_000);

describe('a Pod that cannot begin', () => {
  test('for a quota says what the quota says, and for a request above any node what the scheduler says', async () => {
    await explained(product, async () => {
      await during(quota(product.namespaces.runtime, 'pods'), async () => {
        await begin('ends-quota', 'Reply exactly: NEVER');
        await saying('ends-quota', /exceeded quota/);
      });
      await kubectl(['delete', 'tasks.core.orka.ai', 'ends-quota', '-n', namespace, '--timeout=60s']);
      await product.reinstall({ gates: true, limits: { memory, cpu: '1000' }, requests: { cpu: '1000', memory } });
      await begin('ends-cpu', 'Reply exactly: NEVER');
      const { status } = await saying('ends-cpu', /Insufficient cpu/);
      expect(status?.message).toContain('cannot be scheduled');
      expect(
        (await readPool(kubectl, { name: status?.execution?.runtimePoolName ?? '', namespace }))?.status?.conditions,
      ).toContainEqual(expect.objectContaining({ type: 'SchedulingReady', status: 'False', reason: 'Unschedulable' }));
      await kubectl(['delete', 'tasks.core.orka.ai', 'ends-cpu', '-n', namespace, '--timeout=60s']);
    });
  }, 500_000);
});
