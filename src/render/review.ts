import type { Agent, Manifest, Task } from '../api/index.js';
import type { Digest } from '../domain/digests.js';
import { planTask } from '../domain/plan.js';
import type { Family } from '../domain/plan.js';
import { CodedError } from '../lib/errors.js';
import { objectsOf } from './compile.js';
import type { CompiledObject, CompiledPool } from './compile.js';
import { renderRuntimePool } from './runtime-pool.js';

/** Flux and Argo CD leave an object with this annotation alone: what is reviewed here is made by the controller. */
const localConfig = { 'config.kubernetes.io/local-config': 'true' } as const;
/** Only in review: the keys of a Secret, whose values are never rendered. */
const secretKeysAnnotation = 'orka.ai/review-secret-keys';

/**
 * What a reviewer sees of a class and family: one RuntimePool with example values, then the pool's objects with place-holders, in
 * the order in which the controller creates them.
 */
export function reviewObjects(
  compiled: CompiledPool,
  family: Family,
  poolClass: { readonly name: string; readonly digest: Digest },
  namespace: string,
): readonly Manifest[] {
  const { secrets, ...rest } = family === 'workspace' ? compiled.workspace : compiled.plain;
  return [
    withAnnotations(examplePool(compiled, family, poolClass, namespace), {}),
    ...secrets.map(({ manifest, keys }) => withAnnotations(manifest, { [secretKeysAnnotation]: keys.join(',') })),
    ...objectsOf({ secrets, ...rest }).map(({ manifest }: CompiledObject) => withAnnotations(manifest, {})),
  ];
}

function withAnnotations(manifest: Manifest, annotations: Readonly<Record<string, string>>): Manifest {
  return {
    ...manifest,
    metadata: { ...manifest.metadata, annotations: { ...manifest.metadata.annotations, ...localConfig, ...annotations } },
  };
}

/** The pool of a made-up Task, the same for every class. */
function examplePool(
  { spec }: CompiledPool,
  family: Family,
  poolClass: { readonly name: string; readonly digest: Digest },
  namespace: string,
): Manifest {
  const openCode = spec.providerKind === 'opencode';
  const agent: Agent = {
    apiVersion: 'core.orka.ai/v1alpha1',
    kind: 'Agent',
    metadata: { name: 'example', namespace, uid: '00000000-0000-4000-8000-00000000a9e7', generation: 1 },
    spec: {
      runtime: { type: spec.providerKind },
      model: openCode ? { name: 'example/model', contextWindow: 200000, maxTokens: 8192 } : { name: 'example-model' },
    },
  };
  const task: Task = {
    apiVersion: 'core.orka.ai/v1alpha1',
    kind: 'Task',
    metadata: { name: 'example', namespace, uid: '00000000-0000-4000-8000-000000007a5c', generation: 1 },
    spec: {
      type: 'agent',
      prompt: 'example',
      agentRef: { name: 'example' },
      execution: { workspace: { enabled: family === 'workspace' } },
    },
  };
  const plan = planTask({ task, agent, poolClass: spec, defaultProvider: 'agent-sandbox' });
  // Only settings of the class can make the example fail, and they are its author's to see.
  if ('problem' in plan) throw new CodedError('class-unplannable', plan.problem);
  return renderRuntimePool(plan, { poolClass, demandedAt: '1970-01-01T00:00:00Z' });
}
