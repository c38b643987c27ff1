import type { Task, TaskStatus } from '../../api/index.js';
import { backoffOf } from '../../kube/backoff.js';
import { get } from '../../kube/client.js';
import type { KubeClient } from '../../kube/client.js';
import { sleep } from '../../kube/clock.js';
import type { Clock } from '../../kube/clock.js';
import { askedWait, KubeError } from '../../kube/errors.js';
import type { KubeErrorCode } from '../../kube/errors.js';
import type { Watched, World } from '../world.js';
import { writeTaskStatus } from './write.js';

export interface AdvanceOptions {
  readonly client: KubeClient;
  readonly world: World;
  readonly manager: string;
  readonly clock: Clock;
  /** Aborted when this process must not write any more. */
  readonly signal: AbortSignal;
}

export const conflictTries = 6;
/** Tries of a write that an attempt under way depends on: about half a minute. */
const passingTries = 8;
const passingBackoff = { base: 250, cap: 8_000 };
/** What may be over a moment later. */
const passing: readonly KubeErrorCode[] = ['timeout', 'unreachable', 'too-many-requests', 'server-error'];

/** Writes what `change` makes of the Task as it is stored, if it is still in `from`; throws otherwise. Waits out what may pass. */
export async function advance(
  options: AdvanceOptions,
  task: Task,
  from: readonly string[],
  change: (task: Task) => TaskStatus,
): Promise<Task> {
  const key = `${task.metadata.namespace ?? ''}/${task.metadata.name}`;
  let conflicts = 0;
  let looked = false;
  /** The state that a write without an answer may have stored. */
  let sent: string | undefined;

  async function step(): Promise<Task | 'again'> {
    const found = latest(options, task);
    const state = found?.status?.execution?.state ?? '';
    const expected = found !== undefined && from.includes(state);
    if (found && !expected && state === sent) return found;
    if (!found || !expected) {
      if (!found || looked) throw new Error(`${key} is not in ${from.join(', ')} any more, but ${state || 'gone'}`);
      looked = true;
      return again();
    }
    const status = change(found);
    try {
      return await writeTaskStatus(options, found, status, options.signal);
    } catch (error) {
      if (mayPass(error)) sent = status.execution?.state;
      if (!(error instanceof KubeError) || error.code !== 'conflict' || ++conflicts >= conflictTries) throw error;
      return again();
    }
  }

  async function again(): Promise<'again'> {
    await refresh(options, options.world.tasks, key);
    return 'again';
  }

  for (;;) {
    const result = await patiently(options, step);
    if (result !== 'again') return result;
  }
}

/** Waits out what may pass: an attempt that is under way is worth it. */
export async function patiently<T>({ clock, signal }: AdvanceOptions, write: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await write();
    } catch (error) {
      if (!mayPass(error) || failures >= passingTries || signal.aborted) throw error;
      await sleep(clock, Math.max(backoffOf(failures, passingBackoff), askedWait(error)), signal);
    }
  }
}

/** The same Task as the watch has it now. */
export function latest({ world }: Pick<AdvanceOptions, 'world'>, { metadata }: Task): Task | undefined {
  const found = world.tasks.get(`${metadata.namespace ?? ''}/${metadata.name}`) as unknown as Task | undefined;
  return found?.metadata.uid === metadata.uid ? found : undefined;
}

/** Reads what others wrote, before the next try. */
export async function refresh({ client, signal }: AdvanceOptions, watched: Watched, key: string): Promise<void> {
  const [namespace = '', name = ''] = key.split('/');
  const fresh = await get(client, { ...watched.kind, namespace, name }, { signal });
  if (fresh) watched.wrote(fresh);
}

/** It may be over a moment later; a write may have been stored all the same. */
export function mayPass(error: unknown): boolean {
  return error instanceof KubeError && passing.includes(error.code);
}
