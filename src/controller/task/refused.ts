import { backoffOf } from '../../kube/backoff.js';
import type { Clock } from '../../kube/clock.js';
import { KubeError } from '../../kube/errors.js';
import type { KubeErrorCode } from '../../kube/errors.js';
import { CodedError } from '../../lib/errors.js';
import type { RefusedCreate, TaskMemory } from './memory.js';

/** Nothing tells when a quota is raised, or a webhook says something else. */
const backoff = { base: 2_000, cap: 60_000 };
/** Quota, admission and rights; a webhook that fails is a 500. */
const refusing: readonly KubeErrorCode[] = ['forbidden', 'invalid', 'server-error'];

/** The namespace of a Task does not take an object that the Task needs. */
export class CreateRefused extends CodedError<'create-refused'> {
  constructor(what: string, cause: KubeError) {
    super('create-refused', { at: `${what} cannot be created`, says: cause.finding.says ?? cause.message }, { cause });
  }
}

/** Creates something in the namespace of a Task. Throws {@link CreateRefused} when the API server answers that it does not take it. */
export async function creating<T>(what: string, create: () => Promise<T>): Promise<T> {
  try {
    return await create();
  } catch (error) {
    throw error instanceof KubeError && refusing.includes(error.code) ? new CreateRefused(what, error) : error;
  }
}

/** What a Task remembers of a refusal until the next try. */
export function refusedAgain({ refused }: TaskMemory, { message }: CreateRefused, clock: Clock): RefusedCreate {
  const tries = (refused?.tries ?? 0) + 1;
  return { says: message, tries, until: clock.now() + backoffOf(tries, backoff) };
}
