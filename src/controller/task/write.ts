import type { Manifest, Task, TaskStatus } from '../../api/index.js';
import { mergeChange } from '../../lib/json.js';
import type { JsonObject } from '../../lib/json.js';
import { patchWatched } from '../patch.js';
import type { TaskActOptions } from './act.js';

/**
 * Writes the status that was made of exactly this Task; a Task that was written since is a `conflict`, and is decided on anew.
 * @returns the Task as it is stored now
 */
export async function writeTaskStatus(
  { client, world, manager }: Pick<TaskActOptions, 'client' | 'world' | 'manager'>,
  task: Task,
  status: TaskStatus,
  signal?: AbortSignal,
): Promise<Task> {
  const change = mergeChange(task.status ?? {}, status);
  if (!change) return task;
  const object = await patchWatched(client, world.tasks, task, { status: change }, { manager, subresource: 'status', signal });
  return object as unknown as Task;
}

/** Changes labels, annotations and finalizers of exactly this Task. A Task that is deleted ends with its last finalizer. */
export async function patchTask(
  { client, world, manager }: Pick<TaskActOptions, 'client' | 'world' | 'manager'>,
  task: Task,
  metadata: JsonObject,
  signal: AbortSignal,
): Promise<Manifest> {
  const object = await patchWatched(client, world.tasks, task, { metadata }, { manager, signal });
  const { deletionTimestamp, finalizers = [] } = object.metadata;
  if (deletionTimestamp !== undefined && finalizers.length === 0) world.tasks.removed(object);
  return object;
}
