import type { Manifest, Task, TaskStatus } from '../../api/index.js';
import { mergePatch } from '../../kube/patch.js';
import { mergeChange } from '../../lib/json.js';
import type { JsonObject } from '../../lib/json.js';
import { watchedKinds } from '../world.js';
import type { TaskActOptions } from './act.js';

function refOfTask({ metadata }: Task) {
  return { ...watchedKinds.tasks, namespace: metadata.namespace ?? '', name: metadata.name };
}

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
  const { object } = await mergePatch(
    client,
    refOfTask(task),
    { status: change },
    {
      manager,
      resourceVersion: task.metadata.resourceVersion ?? '',
      subresource: 'status',
      ...(signal ? { signal } : {}),
    },
  );
  world.tasks.wrote(object);
  return object as unknown as Task;
}

/** Changes labels, annotations and finalizers of exactly this Task. A Task that is deleted ends with its last finalizer. */
export async function patchTask(
  { client, world, manager }: Pick<TaskActOptions, 'client' | 'world' | 'manager'>,
  task: Task,
  metadata: JsonObject,
  signal: AbortSignal,
): Promise<Manifest> {
  const { object } = await mergePatch(
    client,
    refOfTask(task),
    { metadata },
    {
      manager,
      resourceVersion: task.metadata.resourceVersion ?? '',
      signal,
    },
  );
  const { deletionTimestamp, finalizers = [] } = object.metadata;
  if (deletionTimestamp !== undefined && finalizers.length === 0) world.tasks.removed(object);
  else world.tasks.wrote(object);
  return object;
}
