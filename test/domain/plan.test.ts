import { describe, expect, test } from '@jest/globals';
import type { Agent, ProviderKind, RuntimeProfileSpec, Task } from '../../src/api/index.js';
import { sessionUidProblem } from '../../src/domain/binding.js';
import { planTask } from '../../src/domain/plan.js';
import type { Plan } from '../../src/domain/plan.js';
import { digestSchemaVersion } from '../../src/domain/profile.js';
import { canonicalJson } from '../../src/lib/canonical-json.js';
import type { Json } from '../../src/lib/json.js';
import { agent, poolClass, task } from '../support/objects.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

interface PlanVectorInput {
  readonly agent: Agent;
  readonly task: Task;
  readonly defaultProvider: string;
  readonly sessionUID: string;
  readonly images: Readonly<Record<ProviderKind, string>>;
}
interface PlanVectorOutput {
  readonly error?: true;
  readonly image: string;
  readonly agentConfiguration: Json;
  readonly poolName: string;
  readonly plainPoolName: string;
  readonly lineageConfigDigest: string;
  readonly profile: { readonly adapterDigests: Readonly<Record<string, string>> };
  readonly profileCanonical: string;
  readonly profileDigest: string;
  readonly runtimePoolProfileSpec: RuntimeProfileSpec;
  readonly toolPolicy: Json;
  readonly workspaceBinding: Json;
}
const { vectors } = readVectors<{ vectors: Vector<PlanVectorInput, PlanVectorOutput>[] }>('plans');

/** Adapter digests are no input of a vector: they come from its own output, or from the plain plan of the same kind. */
function adapterDigests({ input, output }: (typeof vectors)[number]): Readonly<Record<string, string>> {
  const kind = input.agent.spec.runtime?.type;
  const plain = vectors.find(({ name }) => name.startsWith(`${kind}-plain`));
  return (output.error ? plain?.output : output)?.profile.adapterDigests ?? {};
}

function plan(vector: (typeof vectors)[number]): Plan | { problem: unknown } {
  const kind = vector.input.agent.spec.runtime?.type ?? 'codex';
  return planTask({
    task: vector.input.task,
    agent: vector.input.agent,
    defaultProvider: vector.input.defaultProvider,
    sessionUID: vector.input.sessionUID,
    poolClass: poolClass({
      providerKind: kind,
      runtime: { image: vector.input.images[kind], adapterDigests: adapterDigests(vector) },
    }),
  });
}

test.each(vectors.filter(({ output }) => !output.error).map((vector) => ({ ...vector })))(
  'a Task is planned as the golden value: $name',
  (vector) => {
    const planned = plan(vector);
    if ('problem' in planned) throw new Error(JSON.stringify(planned.problem));
    const { output } = vector;
    expect(planned.configuration).toEqual(output.agentConfiguration);
    expect(planned.toolPolicy).toEqual(output.toolPolicy);
    expect(planned.binding ?? null).toEqual(output.workspaceBinding);
    expect(canonicalJson(planned.profile as unknown as Json)).toBe(output.profileCanonical);
    expect({
      protocolVersion: 'orka.harness.v2',
      digest: planned.profileDigest,
      digestSchemaVersion,
      ...planned.profile,
    }).toEqual(output.runtimePoolProfileSpec);
    expect({ image: planned.image, poolName: planned.poolName, lineage: planned.lineageDigest }).toEqual({
      image: output.image,
      poolName: output.poolName,
      lineage: output.lineageConfigDigest,
    });
  },
);

test.each(vectors.filter(({ output }) => output.error).map((vector) => ({ ...vector })))(
  'a Task that no pool can run is refused: $name',
  (vector) => {
    expect(plan(vector)).toHaveProperty('problem.allowed');
  },
);

describe('what no pool can run is refused with the field, what was found and what is allowed', () => {
  const problem = (change: Partial<Agent['spec']>, taskChange: Partial<Task['spec']> = {}, of = poolClass()) =>
    planTask({ agent: agent(change), task: task(taskChange), poolClass: of, defaultProvider: '' });
  test.each([
    ['skills', problem({ skills: [{ name: 'x' }] as never }), 'spec.skills'],
    ['a tool that is enabled', problem({ tools: [{ name: 'x' }] as never }), 'spec.tools'],
    ['model fallbacks', problem({ model: { name: 'm', fallbacks: ['n'] as never } }), 'spec.model.fallbacks'],
    [
      'an effort that codex does not know',
      problem({ runtime: { type: 'codex', defaultReasoningEffort: 'max' } }),
      'spec.runtime.defaultReasoningEffort',
    ],
    [
      'an image without a digest',
      problem({}, {}, poolClass({ runtime: { image: 'x:latest', adapterDigests: {} } })),
      'spec.runtime.image',
    ],
  ])('%s', (_, outcome, field) => {
    expect(outcome).toMatchObject({ problem: { field } });
  });
});

test('copilot does not get a deny list that leaves web search', () => {
  const outcome = planTask({
    agent: agent({ runtime: { type: 'copilot' } }),
    task: task({ agentRuntime: { disallowedTools: ['Write'] } }),
    poolClass: poolClass({ providerKind: 'copilot' }),
    defaultProvider: '',
  });
  expect(outcome).toHaveProperty('problem');
});

test('a plain plan and a workspace plan of one Task have different pools', () => {
  const of = (enabled: boolean) =>
    planTask({
      agent: agent(),
      task: task({ execution: { workspace: { enabled } } }),
      poolClass: poolClass(),
      defaultProvider: '',
    });
  expect((of(true) as Plan).poolName).toMatch(/^acp-ws-codex-[0-9a-f]{16}$/);
  expect((of(false) as Plan).poolName).toMatch(/^acp-codex-[0-9a-f]{16}$/);
});

test('a Session UID is trimmed, and refused when empty, too long, malformed or with control characters', () => {
  expect(sessionUidProblem('  acp-session-1 ')).toBeUndefined();
  for (const uid of ['', ' ', 'a\u0001b', 'a\u007fb', 'x'.repeat(1025), 'a\ud800'])
    expect(sessionUidProblem(uid)).toEqual(expect.any(String));
});
