import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Agent, AgentExecutionBinding, ProviderKind, Task } from '../../src/api/index.js';
import { planTask } from '../../src/domain/plan.js';
import type { Plan } from '../../src/domain/plan.js';
import { domainDigest } from '../../src/domain/digests.js';
import { bind, freeze } from '../../src/domain/snapshot.js';
import { thaw } from '../../src/domain/thaw.js';
import { canonicalJson } from '../../src/lib/canonical-json.js';
import type { Json, JsonObject } from '../../src/lib/json.js';
import { digestOf } from '../../src/lib/sha256.js';
import { agent, poolClass, task } from '../support/objects.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

interface Input {
  readonly agent: Agent;
  readonly task: Task;
  readonly sessionUID: string;
  readonly images: Readonly<Record<ProviderKind, string>>;
}

const boundAt = '2030-01-01T00:00:00Z';

function boundWith(frozen: Task, binding: object): Task {
  return { ...frozen, status: { agentExecutionBinding: { ...binding, boundAt } as AgentExecutionBinding } };
}

function roundTrip(of: Task, by: Agent, plan: Plan): ReturnType<typeof thaw> {
  const snapshot = freeze(of, by, plan);
  return thaw(boundWith(of, bind(of, by, plan, snapshot, 'ns-uid')), snapshot.body, plan.runtimeNamespace);
}

describe.each(['snapshots', 'plans'])('%s of the reference', (file) => {
  const { vectors } = readVectors<{ vectors: Vector<Input, unknown>[] }>(file);
  const planned = vectors.flatMap(({ name, input }) => {
    const kind = input.agent.spec.runtime?.type ?? 'codex';
    const runtime = { image: input.images[kind], adapterDigests: { adapter: `sha256:${'1'.repeat(64)}` } };
    const { sessionUID } = input;
    const plan = planTask({ ...input, sessionUID, defaultProvider: '', poolClass: poolClass({ providerKind: kind, runtime }) });
    return 'problem' in plan ? [] : [{ name, input, plan }];
  });

  test.each(planned)('thaw to the plan that was frozen: $name', ({ input, plan }) => {
    expect(roundTrip(input.task, input.agent, plan)).toMatchObject({ plan: JSON.parse(JSON.stringify(plan)) as object });
  });

  test('are not few', () => {
    expect(planned.length).toBeGreaterThan(8);
  });
});

test('whatever a Task asks for, it thaws to the plan that was frozen', () => {
  const asked = fc.record({
    prompt: fc.string({ minLength: 1, unit: 'grapheme' }),
    timeout: fc.constantFrom(undefined, '90s', '1h30m', '250ms'),
    maxTurns: fc.integer({ min: 1, max: 1000 }),
    model: fc.stringMatching(/^[a-z][a-z0-9.-]{0,20}$/),
    effort: fc.constantFrom('', 'low', 'medium', 'high'),
    system: fc.string({ unit: 'grapheme' }),
  });
  fc.assert(
    fc.property(asked, ({ prompt, timeout, maxTurns, model, effort, system }) => {
      const of = task({ prompt, agentRuntime: { maxTurns }, ...(timeout === undefined ? {} : { timeout }) });
      const by = agent({
        model: { name: model },
        systemPrompt: { inline: system },
        runtime: { type: 'codex', ...(effort === '' ? {} : { defaultReasoningEffort: effort as 'low' }) },
      });
      const plan = planTask({ task: of, agent: by, poolClass: poolClass(), defaultProvider: '' });
      if ('problem' in plan) throw new Error(JSON.stringify(plan.problem));
      const thawed = roundTrip(of, by, plan);
      expect(thawed).toMatchObject({ plan, prompt });
    }),
    { numRuns: 50 },
  );
});

describe('what was tampered with is refused', () => {
  const of = task({ timeout: '10m' });
  const plan = planTask({ task: of, agent: agent(), poolClass: poolClass(), defaultProvider: '' }) as Plan;
  const snapshot = freeze(of, agent(), plan);
  const body = JSON.parse(snapshot.body) as JsonObject;
  const namespace = plan.runtimeNamespace;
  const fieldOf = (result: ReturnType<typeof thaw>) => ('problem' in result ? result.problem.field : undefined);

  /** A forger who can write Secret and status computes all digests anew. */
  function forged(changed: string): ReturnType<typeof thaw> {
    const digest = digestOf(changed);
    const other = { body: changed, digest, id: `${of.metadata.uid ?? ''}/${digest}` };
    return thaw(boundWith(of, bind(of, agent(), plan, other, 'ns-uid')), changed, namespace);
  }

  /** Every place of the body that holds a value. */
  function places(value: Json | undefined, path: readonly string[] = []): readonly (readonly string[])[] {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
    const entries = Object.entries(value);
    return entries.length === 0 ? [path] : entries.flatMap(([name, member]) => places(member, [...path, name]));
  }
  function changed(value: Json | undefined, [name, ...rest]: readonly string[]): Json {
    if (name === undefined) {
      if (typeof value === 'string') return value === '' ? 'x' : `${value}x`;
      if (typeof value === 'number') return value + 1;
      if (typeof value === 'boolean') return !value;
      return Array.isArray(value) ? [...(value as readonly Json[]), 'Read'] : value === null ? ['Read'] : { x: 1 };
    }
    const object = value as JsonObject;
    return { ...object, [name]: changed(object[name], rest) };
  }

  test.each(places(body).map((path) => [path.join('.'), path] as const))('%s, with all digests computed anew', (name, path) => {
    const field = fieldOf(forged(canonicalJson(changed(body, path))));
    expect(field).toMatch(/^snapshot/);
    expect(name).not.toBe('');
  });

  test.each(Object.keys(body))('a body without %s', (name) => {
    const { [name]: _gone, ...rest } = body;
    expect(fieldOf(forged(canonicalJson(rest)))).toMatch(/^snapshot/);
  });

  test.each([
    ['an unknown member', canonicalJson({ ...body, extra: 1 })],
    ['another spelling', ` ${snapshot.body}`],
    ['no JSON', 'nonsense'],
    ['a list', '[]'],
    ['null', 'null'],
  ])('%s', (_, text) => {
    expect(fieldOf(forged(text))).toBe('snapshot');
  });

  test('a body that is not the bound one', () => {
    const task_ = boundWith(of, bind(of, agent(), plan, snapshot, 'ns-uid'));
    expect(fieldOf(thaw(task_, canonicalJson({ ...body, prompt: 'other' }), namespace))).toBe(
      'status.agentExecutionBinding.snapshot.digest',
    );
  });

  const binding = bind(of, agent(), plan, snapshot, 'ns-uid');
  const redigested = (change: object) => {
    const { bindingDigest: _digest, ...rest } = { ...binding, ...change };
    const digest = domainDigest('agent-execution-binding', { ...rest, bindingDigest: '', boundAt: null });
    return { ...rest, bindingDigest: digest };
  };

  test.each([
    ['contractVersion', { contractVersion: 'orka.harness.v1' }, 'status.agentExecutionBinding.contractVersion'],
    ['backend', { backend: 'harness-wrapper' }, 'status.agentExecutionBinding.backend'],
    ['the Agent', { agent: { ...binding.agent, uid: 'other' } }, 'snapshot.agent'],
    ['the runtime', { runtimeType: 'claude' }, 'snapshot.runtimeType'],
    ['the profile', { runtimeProfileDigest: `sha256:${'0'.repeat(64)}` }, 'snapshot.profileDigest'],
    ['the id', { snapshot: { ...binding.snapshot, id: 'other/x' } }, 'status.agentExecutionBinding.snapshot.id'],
    [
      'the generation',
      { task: { ...binding.task, boundSpecGeneration: 2 } },
      'status.agentExecutionBinding.task.boundSpecGeneration',
    ],
  ])('a binding that was changed in %s', (_, change, field) => {
    expect(fieldOf(thaw(boundWith(of, redigested(change)), snapshot.body, namespace))).toBe(field);
    expect(fieldOf(thaw(boundWith(of, { ...binding, ...change }), snapshot.body, namespace))).toBe(
      'status.agentExecutionBinding.bindingDigest',
    );
  });

  test('the snapshot of another Task', () => {
    const other = { ...of, metadata: { ...of.metadata, uid: '22222222-2222-2222-2222-222222222222' } };
    expect(fieldOf(thaw(boundWith(other, binding), snapshot.body, namespace))).toBe('status.agentExecutionBinding.task.uid');
  });

  test('a Task that is not bound', () => {
    expect(fieldOf(thaw(of, snapshot.body, namespace))).toBe('status.agentExecutionBinding');
  });
});

test('a deletion, which counts as a generation, does not make a binding wrong', () => {
  const of = task();
  const plan = planTask({ task: of, agent: agent(), poolClass: poolClass(), defaultProvider: '' }) as Plan;
  const snapshot = freeze(of, agent(), plan);
  const bound = boundWith(of, bind(of, agent(), plan, snapshot, 'ns-uid'));
  const deleted = { ...bound, metadata: { ...bound.metadata, generation: 2, deletionTimestamp: boundAt } };
  expect(thaw(deleted, snapshot.body, plan.runtimeNamespace)).toHaveProperty('plan');
});
