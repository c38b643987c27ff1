/**
 * Which test shows what of the acceptance list (dispatch.md §10.4) on a real cluster:
 *
 * A `first-task`. B `first-task`, with both switches off. C here. E `dispatch-faults`, Task deleted while Running. F `dispatch-faults`, controller killed
 * while Running. G `plain`, a pool that is deleted. H here. I `first-task`, a pool
 * that nobody needs any more. J `outages`, without the provider's kinds. K `dispatch-faults`, snapshot tampered with. D and L need Sessions.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Task, TaskSpec } from '../../src/api/index.js';
import { eventually, kubectl } from './support/cluster.js';
import { explained, stopwatch } from './support/evidence.js';
import { answerOf, applyObjects, example, taskLike, taskOver } from './support/first-task.js';
import { leftovers } from './support/installation.js';
import { installed } from './support/installed.js';
import type { Installed } from './support/installed.js';
import { modelRequests } from './support/model.js';
import type { ModelRequest } from './support/model.js';

const { namespace = '' } = example.task.metadata;

let product: Installed;

beforeAll(async () => {
  product = await installed({ gates: true });
  await applyObjects(kubectl, [example.agent]);
}, 600_000);
afterAll(() => product.remove(), 600_000);

type Workspace = NonNullable<NonNullable<TaskSpec['execution']>['workspace']>;

/** A Task whose workspace asks for something. */
const workspace = (change: Partial<Workspace>): Partial<TaskSpec> => ({
  execution: { workspace: { enabled: true, reusePolicy: 'none', cleanupPolicy: 'delete', ...change } },
});

/** What no workspace can be asked for. */
const options: readonly { readonly field: string; readonly spec: Partial<TaskSpec> }[] = [
  { field: 'spec.execution.workspace.templateRef', spec: workspace({ templateRef: { name: 'a-template' } }) },
  { field: 'spec.execution.workspace.boot', spec: workspace({ boot: true }) },
  { field: 'spec.execution.workspace.poolRef', spec: workspace({ poolRef: { name: 'a-pool' } }) },
  { field: 'spec.execution.workspace.snapshot', spec: workspace({ snapshot: { restoreURI: 'file:///a-snapshot' } }) },
  { field: 'spec.execution.workspace.hibernation', spec: workspace({ hibernation: { processMode: 'fresh' } }) },
  { field: 'spec.execution.workspace.onDetach', spec: workspace({ onDetach: 'Suspend' }) },
  { field: 'spec.execution.workspace.cleanupPolicy', spec: workspace({ cleanupPolicy: 'retain' }) },
  { field: 'spec.execution.workspace.provider', spec: workspace({ provider: 'substrate', templateRef: { name: 'a-template' } }) },
  {
    field: 'spec.execution.workspace.reusePolicy',
    spec: { ...workspace({ reusePolicy: 'session' }), sessionRef: { name: 'a' } },
  },
  { field: 'spec.sessionRef', spec: { ...workspace({}), sessionRef: { name: 'a-session', create: true } } },
];

/** What no agent Task can be asked for, with a workspace or without one. */
const others: typeof options = [
  { field: 'spec.retryPolicy.maxRetries', spec: { retryPolicy: { maxRetries: 1 } } },
  { field: 'spec.resources', spec: { resources: { requests: { cpu: '1' } } } },
  { field: 'spec.priorTaskRef', spec: { priorTaskRef: { name: 'another' } } },
  { field: 'spec.execution.nodeSelector', spec: { execution: { ...example.task.spec.execution, nodeSelector: { a: 'b' } } } },
];

describe('an option that is not run is refused by name, and nothing is made for it:', () => {
  const all = [...options, ...others];
  const nameOf = (index: number) => `refused-${String(index)}`;
  const refused: Task[] = [];
  let left: readonly string[] = [];

  beforeAll(async () => {
    await applyObjects(
      kubectl,
      all.map(({ spec }, index) => taskLike(nameOf(index), spec)),
    );
    await explained(product, async () => {
      const tasks = all.map((_, index) => taskOver(kubectl, { name: nameOf(index), namespace }, 120));
      refused.push(...(await Promise.all(tasks)));
    });
    const pools = await kubectl(['get', 'runtimepools.core.orka.ai', '-n', namespace, '-o', 'name']);
    left = [...pools.split('\n').filter(Boolean), ...(await leftovers(kubectl, product)).map(({ kind }) => kind)];
  }, 200_000);
  afterAll(async () => {
    await kubectl(['delete', 'tasks.core.orka.ai', '--all', '-n', namespace, '--timeout=120s']);
  }, 150_000);

  test.each(all.map(({ field }, index) => ({ field, index })))('$field', ({ field, index }) => {
    const { status } = refused[index]!;
    expect(status).toMatchObject({ phase: 'Failed', message: expect.stringContaining(field) });
    if (index < options.length)
      expect(status?.executionWorkspace).toMatchObject({ phase: 'Failed', reason: 'WorkspaceValidationFailed' });
    expect(status?.execution?.runtimePoolUID).toBeUndefined();
  });

  test('no pool, no snapshot, no sandbox', () => {
    expect(left).toEqual([]);
  });
});

describe('a workspace that is only to be read, in which the agent writes a file', () => {
  const [name, word] = ['writes', 'WROTE_A_FILE'];
  let task: Task;
  let asked: readonly ModelRequest[] = [];

  beforeAll(async () => {
    const after = stopwatch('an agent that writes');
    const prompt = `Run exactly: \`touch written\` Reply exactly: ${word}`;
    await applyObjects(kubectl, [taskLike(name, { prompt, agentRuntime: { maxTurns: 3 } })]);
    await explained(product, async () => {
      task = await taskOver(kubectl, { name, namespace }, 180);
    });
    after(task.status?.message ?? task.status?.phase ?? 'over');
    asked = (await modelRequests(kubectl, product.poolClass)).filter((one) => one.asked === word && one.path === '/v1/responses');
  }, 240_000);

  test('fails its Task, which says what was changed', () => {
    expect(task.status).toMatchObject({
      phase: 'Failed',
      message: expect.stringContaining('1 file '),
      execution: { state: 'Succeeded', outcome: 'Succeeded' },
      delivery: { state: 'ReadOnlyWorkspaceModified', outcome: 'ReadOnlyWorkspaceModified' },
    });
  });

  test('keeps the answer', async () => {
    expect(task.status?.resultRef).toEqual({ available: true, name: `${task.metadata.name}-result` });
    expect(await answerOf(kubectl, { name, namespace })).toBe(word);
  });

  test('has one prompt: the model is asked once, and once more with what its command said', () => {
    expect(asked).toHaveLength(2);
  });

  test('leaves nothing once Task and pool are deleted', async () => {
    for (const kind of ['tasks.core.orka.ai', 'runtimepools.core.orka.ai'])
      await kubectl(['delete', kind, '--all', '-n', namespace, '--timeout=120s']);
    const none = async () => ((await leftovers(kubectl, product)).length === 0 ? true : undefined);
    await eventually('nothing left', none);
  }, 400_000);
});
