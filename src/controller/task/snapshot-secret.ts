import type { Manifest, Task } from '../../api/index.js';
import { apiVersion, taskKind } from '../../api/index.js';
import { labelKeys } from '../../domain/labels.js';
import type { Snapshot } from '../../domain/snapshot.js';
import { get } from '../../kube/client.js';
import type { KubeClient } from '../../kube/client.js';
import { create } from '../../kube/create.js';
import { KubeError } from '../../kube/errors.js';
import { isObject } from '../../lib/json.js';
import { sha256Hex } from '../../lib/sha256.js';

const key = 'snapshot';

/** Who owns what belongs to one Task: it goes with the Task. */
export function ownedBy({ metadata }: Task) {
  return [
    { apiVersion: apiVersion(taskKind), kind: taskKind.kind, name: metadata.name, uid: metadata.uid ?? '', controller: true },
  ];
}

/** Named after the content: the same snapshot is the same Secret, and one of an attempt that came to nothing is in nobody's way. */
function nameOf(id: string): string {
  return `task-snapshot-${sha256Hex(id).slice(0, 32)}`;
}

/** Stores a snapshot beside its Task, once; storing the same again changes nothing. */
export async function storeSnapshot(
  client: KubeClient,
  task: Task,
  snapshot: Snapshot,
  options: { readonly manager: string; readonly signal: AbortSignal },
): Promise<void> {
  const secret: Manifest = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: nameOf(snapshot.id),
      namespace: task.metadata.namespace ?? '',
      labels: { [labelKeys.managedBy]: 'orka', [labelKeys.taskUid]: task.metadata.uid ?? '' },
      ownerReferences: ownedBy(task),
    },
    type: 'orka.ai/execution-snapshot',
    immutable: true,
    data: { [key]: Buffer.from(snapshot.body).toString('base64') },
  };
  try {
    await create(client, secret, options);
  } catch (error) {
    if (!(error instanceof KubeError) || error.code !== 'already-exists') throw error;
    const stored = await readSnapshot(client, task, snapshot.id, options.signal);
    if (stored !== snapshot.body) throw error;
  }
}

/** The text of a stored snapshot of this Task; `undefined` = there is none that is ours. */
export async function readSnapshot(
  client: KubeClient,
  { metadata }: Task,
  id: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const found = await get(
    client,
    { apiVersion: 'v1', kind: 'Secret', namespace: metadata.namespace ?? '', name: nameOf(id) },
    { signal },
  );
  const own = found?.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid);
  const data = own && isObject(found?.['data']) ? found['data'][key] : undefined;
  return typeof data === 'string' ? Buffer.from(data, 'base64').toString() : undefined;
}
