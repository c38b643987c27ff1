import { expect, test } from '@jest/globals';
import type { Agent, Manifest, ProviderKind, RuntimePool, Task } from '../../src/api/index.js';
import { frozenByClass, frozenByPool } from '../../src/domain/frozen.js';
import { poolMismatch } from '../../src/domain/pool-match.js';
import { planTask } from '../../src/domain/plan.js';
import type { Plan } from '../../src/domain/plan.js';
import { renderRuntimePool } from '../../src/render/runtime-pool.js';
import { agent, poolClass, task } from '../support/objects.js';
import { readVectors } from '../support/vectors.js';
import type { Vector } from '../support/vectors.js';

interface EnsureInput {
  readonly agent: Agent;
  readonly task: Task;
  readonly sessionUID: string;
  readonly runtimeNamespace: string;
  readonly existing: RuntimePool | null;
}
interface EnsureOutput {
  readonly created?: Manifest;
  readonly error?: true;
  readonly permanentValidationError?: boolean;
}
const { vectors } = readVectors<{ vectors: Vector<EnsureInput, EnsureOutput>[] }>('pool-ensure');
const plans = readVectors<{
  vectors: Vector<
    { images: Record<ProviderKind, string> },
    { image: string; profile: { adapterDigests: Record<string, string> } }
  >[];
}>('plans');

const deviations: Readonly<Record<string, string>> = {
  'create-runtime-namespace-empty': 'the runtime namespace comes from the class and is never empty',
  'create-substrate-template-in-runtime-namespace': 'substrate is not available in this version, so its plan never gets here',
};

function plan({ agent, task, sessionUID }: EnsureInput): Plan {
  const kind = agent.spec.runtime?.type ?? 'codex';
  const plain = plans.vectors.find(({ name }) => name === `${kind}-plain`)?.output;
  const planned = planTask({
    task,
    agent,
    sessionUID,
    defaultProvider: 'agent-sandbox',
    poolClass: poolClass({
      providerKind: kind,
      runtime: { image: plain?.image ?? '', adapterDigests: plain?.profile.adapterDigests ?? {} },
    }),
  });
  if ('problem' in planned) throw new Error(JSON.stringify(planned.problem));
  return planned;
}

const checked = vectors.filter(({ name }) => !(name in deviations)).map((vector) => ({ ...vector }));

test.each(checked.filter(({ output }) => output.created))(
  'a RuntimePool is created as the golden value, but for the class it records: $name',
  ({ input, output }) => {
    const digest = `sha256:${'d'.repeat(64)}` as const;
    const demandedAt = output.created?.metadata.annotations?.['orka.ai/acp-last-demand-at'] ?? '';
    const created = renderRuntimePool(plan(input), { poolClass: { name: 'codex-standard', digest }, demandedAt });
    const { 'orka.ai/runtime-pool-class': recorded, ...annotations } = created.metadata.annotations ?? {};
    expect({ ...created, metadata: { ...created.metadata, annotations } }).toEqual(output.created);
    expect(recorded).toBe(`codex-standard@${digest}`);
  },
);

test('a pool with a workspace names its Task, and one that Tasks share names none', () => {
  const wanted = task();
  const { execution: _own, ...shared } = wanted.spec;
  const names = [wanted, { ...wanted, spec: shared }].map((one) => {
    const planned = planTask({ task: one, agent: agent(), poolClass: poolClass(), defaultProvider: '' });
    if ('problem' in planned) throw new Error(JSON.stringify(planned.problem));
    const record = { poolClass: { name: 'c', digest: `sha256:${'d'.repeat(64)}` as const }, demandedAt: '1970-01-01T00:00:00Z' };
    return renderRuntimePool(planned, { ...record, task: 'review-42' }).metadata.annotations?.['orka.ai/task'];
  });
  expect(names).toEqual(['review-42', undefined]);
});

test('a rendered RuntimePool is frozen with what its class has', () => {
  const spec = poolClass();
  const planned = planTask({ task: task(), agent: agent(), poolClass: spec, defaultProvider: '' });
  if ('problem' in planned) throw new Error(JSON.stringify(planned.problem));
  const pool = renderRuntimePool(planned, {
    poolClass: { name: 'c', digest: `sha256:${'d'.repeat(64)}` },
    demandedAt: '1970-01-01T00:00:00Z',
  });
  expect(frozenByPool((pool as unknown as RuntimePool).spec)).toEqual(frozenByClass(spec));
});

test.each(checked.filter(({ input }) => input.existing))(
  'an existing RuntimePool is compared as the golden value: $name',
  ({ input, output }) => {
    const mismatch = input.existing ? poolMismatch(input.existing, plan(input)) : undefined;
    expect(mismatch?.permanent).toBe(output.error ? output.permanentValidationError : undefined);
  },
);

test('a pool of one family never serves a plan of the other, whatever its name', () => {
  const wanted = task();
  const { execution: _own, ...shared } = wanted.spec;
  const plans = [wanted, { ...wanted, spec: shared }].map((one) => {
    const planned = planTask({ task: one, agent: agent(), poolClass: poolClass(), defaultProvider: '' });
    if ('problem' in planned) throw new Error(JSON.stringify(planned.problem));
    return planned;
  });
  const pools = plans.map((planned) =>
    renderRuntimePool(planned, {
      poolClass: { name: 'c', digest: `sha256:${'d'.repeat(64)}` },
      demandedAt: '1970-01-01T00:00:00Z',
    }),
  ) as unknown as readonly RuntimePool[];
  expect(plans.map((planned) => pools.map((pool) => poolMismatch(pool, planned)?.finding.field))).toEqual([
    [undefined, 'spec.executionWorkspace'],
    ['spec.executionWorkspace', undefined],
  ]);
});
