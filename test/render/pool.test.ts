import { describe, expect, test } from '@jest/globals';
import { resolveFacts } from '../../src/domain/facts.js';
import { planTask } from '../../src/domain/plan.js';
import type { Plan } from '../../src/domain/plan.js';
import { digestSchemaVersion } from '../../src/domain/profile.js';
import type { Json } from '../../src/lib/json.js';
import { compile } from '../../src/render/compile.js';
import { instantiate, renderedObjects } from '../../src/render/instantiate.js';
import { toYamlStream } from '../../src/render/yaml.js';
import { agent, poolClass, task } from '../support/objects.js';

const identity = (plan: Plan) => ({
  namespace: plan.namespace,
  name: plan.poolName,
  uid: 'pool-uid-1',
  generation: 3,
  trustNamespace: plan.namespace,
  profile: { ...plan.profile, acpProfile: 'acp.v1' as const, digest: plan.profileDigest, digestSchemaVersion },
});
const instance = { controllerEpoch: 7, tokenGeneration: '0123456789abcdef' };
const bootstrap = {
  authSecret: { random: 'a'.repeat(24) },
  providerSecret: { random: 'b'.repeat(24) },
  nonce: 'nonce',
  publicKey: 'public-key',
};

function planOf(enabled: boolean, kind: 'codex' | 'opencode' = 'codex'): { plan: Plan; compiled: ReturnType<typeof compile> } {
  const spec = poolClass({ providerKind: kind });
  const model = kind === 'opencode' ? { name: 'openai/gpt-5', contextWindow: 200000, maxTokens: 8192 } : { name: 'gpt-5' };
  const plan = planTask({
    task: task({ execution: { workspace: { enabled } } }),
    agent: agent({ model, runtime: { type: kind } }),
    poolClass: spec,
    defaultProvider: '',
  });
  if ('problem' in plan) throw new Error(JSON.stringify(plan.problem));
  return { plan, compiled: compile(spec) };
}

test('the objects of a workspace pool are those of the contract', () => {
  const { plan, compiled } = planOf(true);
  const rendered = instantiate(compiled, resolveFacts(identity(plan), instance, bootstrap), compiled.frozen);
  expect(toYamlStream(renderedObjects(rendered) as unknown as Json[])).toMatchSnapshot();
});

test('the objects of a plain pool are those of the contract', () => {
  const { plan, compiled } = planOf(false);
  const rendered = instantiate(compiled, resolveFacts(identity(plan), instance, { replicas: 1 }), compiled.frozen);
  expect(toYamlStream(renderedObjects(rendered) as unknown as Json[])).toMatchSnapshot();
});

test('the Secrets of a pool have metadata and key names, and no values', () => {
  const { plan, compiled } = planOf(true);
  const { secrets } = instantiate(compiled, resolveFacts(identity(plan), instance, bootstrap), compiled.frozen);
  expect(toYamlStream(secrets as unknown as Json[])).toMatchSnapshot();
});

describe('the environment of the supervisor', () => {
  const environment = (enabled: boolean, kind: 'codex' | 'opencode'): readonly { name: string; value?: string }[] => {
    const { plan, compiled } = planOf(enabled, kind);
    const facts = enabled
      ? resolveFacts(identity(plan), instance, bootstrap)
      : resolveFacts(identity(plan), instance, { replicas: 1 });
    const [workload] = instantiate(compiled, facts, compiled.frozen).workload;
    const spec = (workload as unknown as { spec: { podTemplate?: { spec: unknown }; template?: { spec: unknown } } }).spec;
    return (
      ((spec.podTemplate ?? spec.template)?.spec as { containers: { env: { name: string; value?: string }[] }[] }).containers[0]
        ?.env ?? []
    );
  };

  test('has the rows of the contract in their order, for both families', () => {
    const names = (enabled: boolean) => environment(enabled, 'codex').map(({ name }) => name.replace('ORKA_ACP_', ''));
    expect(names(true)).toHaveLength(32);
    expect(names(false)).toHaveLength(33);
    expect(names(true).slice(-2)).toEqual(['CREDENTIAL_BOOTSTRAP_NONCE', 'CREDENTIAL_BOOTSTRAP_PUBLIC_KEY']);
    expect(names(false).slice(24, 28)).toEqual([
      'CONTROLLER_TOKEN_FILE',
      'CAPABILITY_SECRET_FILE',
      'PROVIDER_TOKEN_FILE',
      'PROVIDER_TOKEN_GENERATION',
    ]);
  });

  test('holds model limits for opencode, and no value member for others', () => {
    const limit = (kind: 'codex' | 'opencode') =>
      environment(true, kind).find(({ name }) => name === 'ORKA_ACP_MODEL_CONTEXT_LIMIT');
    expect(limit('opencode')).toEqual({ name: 'ORKA_ACP_MODEL_CONTEXT_LIMIT', value: '200000' });
    expect(limit('codex')).toEqual({ name: 'ORKA_ACP_MODEL_CONTEXT_LIMIT' });
  });
});
