import { describe, expect, test } from '@jest/globals';
import type { Agent, AgentExecutionBinding, ProviderKind, Task } from '../../src/api/index.js';
import { planTask } from '../../src/domain/plan.js';
import type { Plan } from '../../src/domain/plan.js';
import { attemptDigest, bind, freeze, isIntact } from '../../src/domain/snapshot.js';
import { agent, poolClass, task } from '../support/objects.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

interface SnapshotInput {
  readonly agent: Agent;
  readonly task: Task;
  readonly namespaceUID: string;
  readonly sessionUID: string;
  readonly images: Readonly<Record<ProviderKind, string>>;
}
interface SnapshotOutput {
  readonly snapshotBody: string;
  readonly snapshotDigest: string;
  readonly snapshotID: string;
  readonly bindingDigest: string;
  readonly attempt1RequestDigest: string;
}
const { vectors } = readVectors<{ vectors: Vector<SnapshotInput, SnapshotOutput>[] }>('snapshots');

/** Tool descriptors of the reference carry a sentence of its own; ours have none, so these bodies and all digests over them differ. */
const deviations = ['runtime-override-lists', 'default-bash-only'];

function plan({ input, output }: (typeof vectors)[number]): Plan {
  const kind = input.agent.spec.runtime?.type ?? 'codex';
  const { runtimeProfile } = JSON.parse(output.snapshotBody) as { runtimeProfile: { adapterDigests: Record<string, string> } };
  const runtime = { image: input.images[kind], adapterDigests: runtimeProfile.adapterDigests };
  const planned = planTask({
    task: input.task,
    agent: input.agent,
    sessionUID: input.sessionUID,
    defaultProvider: 'agent-sandbox',
    poolClass: poolClass({ providerKind: kind, runtime }),
  });
  if ('problem' in planned) throw new Error(JSON.stringify(planned.problem));
  return planned;
}

test.each(vectors.filter(({ name }) => !deviations.includes(name)).map((vector) => ({ ...vector })))(
  'a plan is frozen and bound as the golden value: $name',
  (vector) => {
    const { input, output } = vector;
    const snapshot = freeze(input.task, input.agent, plan(vector));
    expect(snapshot).toEqual({ body: output.snapshotBody, digest: output.snapshotDigest, id: output.snapshotID });
    const { bindingDigest } = bind(input.task, input.agent, plan(vector), snapshot, input.namespaceUID);
    expect(bindingDigest).toBe(output.bindingDigest);
    expect(attemptDigest(input.task, plan(vector), { bindingDigest, snapshotDigest: snapshot.digest }, 1)).toBe(
      output.attempt1RequestDigest,
    );
  },
);

test.each(vectors.filter(({ name }) => deviations.includes(name)).map((vector) => ({ ...vector })))(
  'but for the words of its tools, a plan is frozen as the golden value: $name',
  (vector) => {
    const strip = (body: string) => {
      const value = JSON.parse(body) as {
        mcpConfiguration: { toolPolicy: { tools: { description?: string }[]; descriptorDigest?: string } };
      };
      for (const tool of value.mcpConfiguration.toolPolicy.tools) delete tool.description;
      delete value.mcpConfiguration.toolPolicy.descriptorDigest;
      return value;
    };
    expect(strip(freeze(vector.input.task, vector.input.agent, plan(vector)).body)).toEqual(strip(vector.output.snapshotBody));
  },
);

describe('a binding', () => {
  const spec = poolClass();
  const planned = planTask({ task: task(), agent: agent(), poolClass: spec, defaultProvider: '' }) as Plan;
  const bound = {
    ...bind(task(), agent(), planned, freeze(task(), agent(), planned), 'ns-uid'),
    boundAt: '2026-01-01T00:00:00Z',
  } as AgentExecutionBinding;

  test('carries its own digest, whatever the time', () => {
    expect(isIntact(bound)).toBe(true);
    expect(isIntact({ ...bound, boundAt: '2027-01-01T00:00:00Z' })).toBe(true);
  });

  test.each([
    ['the Task', { task: { ...bound.task, uid: 'other' } }],
    ['the snapshot', { snapshot: { ...bound.snapshot, digest: `sha256:${'0'.repeat(64)}` } }],
    ['the profile', { runtimeProfileDigest: `sha256:${'0'.repeat(64)}` }],
  ])('does not after a change of %s', (_, change) => {
    expect(isIntact({ ...bound, ...change })).toBe(false);
  });
});

test('the same inputs freeze to the same bytes, and an edit of the prompt does not', () => {
  const spec = poolClass();
  const of = (prompt: string) => {
    const asked = task({ prompt });
    return freeze(asked, agent(), planTask({ task: asked, agent: agent(), poolClass: spec, defaultProvider: '' }) as Plan).digest;
  };
  expect(of('a')).toBe(of('a'));
  expect(of('a')).not.toBe(of('b'));
});
