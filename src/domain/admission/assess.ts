import type { RuntimePoolClassSpec } from '../../api/index.js';
import { missingClass, missingClassRemedy } from '../missing-class.js';
import { nameOf, planTask } from '../plan.js';
import type { Plan } from '../plan.js';
import { admit } from './admit.js';
import type { Refusal } from './admit.js';
import { freeze } from '../snapshot.js';
import { CanonicalJsonError } from '../../lib/canonical-json.js';
import { namesRepository } from '../repository/source.js';
import { operatorSets } from './rule.js';
import type { AdmissionInput } from './rule.js';

/** What {@link assess} reads: a Task, its Agent, the class and the switches of the controller. */
export interface AssessInput extends AdmissionInput {
  /** The class for the Agent's runtime and resource class `standard`, if there is one. */
  readonly poolClass?: RuntimePoolClassSpec | undefined;
  /** What to say when there is no class; see {@link missingClass}. @default without the names of those that there are */
  readonly classMissing?: string;
  readonly sessionUID?: string;
  /** Text of `spec.systemPrompt.configMapRef`, when the Agent has one. */
  readonly systemPromptText?: string;
}

/** The one answer to a Task that is not bound yet: why it is refused, or the pool that it gets. `plan` and the controller both ask here. */
export function assess(input: AssessInput): { readonly refusal: Refusal } | { readonly plan: Plan } {
  const refusal = admit(input);
  if (refusal) return { refusal };
  const { task, agent, poolClass, hosting } = input;
  const unplannable = (finding: Refusal['finding']): { refusal: Refusal } => ({
    refusal: { gate: 'plan', rule: 'runtime-profile', finding, projection: 'execution', reason: 'InvalidRuntimeProfile' },
  });
  if (!agent || !poolClass) {
    return unplannable({
      at: nameOf('Task', task),
      field: 'RuntimePoolClass',
      says: input.classMissing ?? missingClass(agent?.spec.runtime?.type ?? 'a runtime'),
      remedy: missingClassRemedy,
    });
  }
  if (namesRepository(task.spec.workspace) && !poolClass.network.artifacts) {
    const { providerKind, resourceClass } = poolClass;
    return unplannable({
      at: nameOf('Task', task),
      field: 'spec.workspace.gitRepo',
      says: `the RuntimePoolClass for ${providerKind}/${resourceClass} has no network.artifacts: its sessions cannot download a repository`,
      remedy: operatorSets('publisher.enabled: true'),
    });
  }
  const { sessionUID, systemPromptText } = input;
  const planned = planTask({
    task,
    agent,
    poolClass,
    defaultProvider: hosting.defaultProvider,
    ...(sessionUID === undefined ? {} : { sessionUID }),
    ...(systemPromptText === undefined ? {} : { systemPromptText }),
  });
  if ('problem' in planned) return unplannable(planned.problem);
  const size = frozenSize(input, planned);
  if (size === undefined || size > longestSnapshot) {
    const found = size === undefined ? 'more than 2 MiB' : `${size} bytes`;
    const allowed = `at most ${longestSnapshot} bytes: prompt, system prompt and settings are stored as one Secret`;
    return unplannable({ at: nameOf('Task', task), field: 'spec', found, allowed });
  }
  return { plan: planned };
}

/** What one Secret can hold. */
const longestSnapshot = 1024 * 1024;

/** Bytes of a snapshot; `undefined` = it is too large to be written down at all. */
function frozenSize({ task, agent }: AssessInput, plan: Plan): number | undefined {
  if (!agent) return 0;
  try {
    return Buffer.byteLength(freeze(task, agent, plan).body);
  } catch (error) {
    if (error instanceof CanonicalJsonError && error.code === 'too-large') return undefined;
    throw error;
  }
}
