import type { Manifest, Task } from '../../api/index.js';
import { labelKeys } from '../../domain/labels.js';
import type { PromptEvent } from '../../harness/events.js';
import { get } from '../../kube/client.js';
import type { KubeClient } from '../../kube/client.js';
import { create } from '../../kube/create.js';
import { KubeError } from '../../kube/errors.js';
import { canonicalJson } from '../../lib/canonical-json.js';
import { equalJson, isObject } from '../../lib/json.js';
import type { JsonObject } from '../../lib/json.js';
import { ownedBy } from './snapshot-secret.js';

/** What proves that an attempt ended well, and how. Written before anything says so. */
export interface Receipt {
  readonly taskUID: string;
  readonly attempt: number;
  readonly promptID: string;
  /** Of the request that sent the prompt. An earlier version wrote it as `requestDigest`, the name of another value of the Task's status. */
  readonly promptRequestDigest: string;
  readonly runtimeInstanceID: string;
  readonly stopReason: string;
  readonly settledAt: string;
  readonly settlementDigest: string;
}

/** Name of the ConfigMap with the answer of a Task. */
export const resultName = ({ metadata }: Pick<Task, 'metadata'>): string => `${metadata.name}-result`;
const configMap = { apiVersion: 'v1', kind: 'ConfigMap' } as const;

/** Stores answer and receipt as one immutable ConfigMap, once. The same again changes nothing; anything else of the name is an error. */
export async function storeResult(
  client: KubeClient,
  task: Task,
  result: { readonly text: string; readonly receipt: Receipt },
  options: { readonly manager: string; readonly signal: AbortSignal },
): Promise<void> {
  const object: Manifest = {
    ...configMap,
    metadata: {
      name: resultName(task),
      namespace: task.metadata.namespace ?? '',
      labels: { [labelKeys.managedBy]: 'orka', [labelKeys.taskUid]: task.metadata.uid ?? '' },
      ownerReferences: ownedBy(task),
    },
    immutable: true,
    data: { result: result.text, receipt: canonicalJson({ ...result.receipt }) },
  };
  try {
    await create(client, object, options);
  } catch (error) {
    if (!(error instanceof KubeError) || error.code !== 'already-exists') throw error;
    const stored = await readOwn(client, task, options.signal);
    if (!equalJson(stored, object['data'])) throw error;
  }
}

/** The receipt of this very Task; `undefined` = there is none, or none that can be read. */
export async function readReceipt(client: KubeClient, task: Task, signal: AbortSignal): Promise<Receipt | undefined> {
  const text = (await readOwn(client, task, signal))?.['receipt'];
  try {
    const receipt: unknown = JSON.parse(typeof text === 'string' ? text : '');
    return isObject(receipt) ? upgraded(receipt) : undefined;
  } catch {
    return undefined;
  }
}

function upgraded({ requestDigest, ...receipt }: JsonObject): Receipt {
  return { ...(requestDigest === undefined ? {} : { promptRequestDigest: requestDigest }), ...receipt } as unknown as Receipt;
}

async function readOwn(client: KubeClient, task: Task, signal: AbortSignal): Promise<JsonObject | undefined> {
  const { namespace = '', uid } = task.metadata;
  const found = await get(client, { ...configMap, namespace, name: resultName(task) }, { signal });
  const own = found?.metadata.ownerReferences?.some((owner) => owner.uid === uid);
  return own && isObject(found?.['data']) ? found['data'] : undefined;
}

/** The answer: what the terminal event says, else what was said on the way. Source: dispatch.md §4.5. */
export function answerOf(end: Extract<PromptEvent, { readonly type: 'completed' }>, spoken: string): string {
  const texts = end.payload.result.content.flatMap(({ text }) => (text === undefined ? [] : [text]));
  return texts.length > 0 ? texts.join('') : spoken;
}
