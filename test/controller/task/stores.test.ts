import { describe, expect, test } from '@jest/globals';
import { readReceipt, storeResult } from '../../../src/controller/task/result.js';
import type { Receipt } from '../../../src/controller/task/result.js';
import { readSnapshot, storeSnapshot } from '../../../src/controller/task/snapshot-secret.js';
import { freeze } from '../../../src/domain/snapshot.js';
import { boundTask } from '../../support/controlled-task.js';
import { memoryClient } from '../../support/memory-client.js';
import { agent } from '../../support/objects.js';

const { task, plan } = boundTask();
const signal = new AbortController().signal;
const options = { manager: 'test', signal };
const receipt: Receipt = {
  taskUID: task.metadata.uid ?? '',
  attempt: 1,
  promptID: 'prompt-1',
  promptRequestDigest: 'sha256:r',
  runtimeInstanceID: 'a.b',
  stopReason: 'end_turn',
  settledAt: '2030-01-01T00:00:00Z',
  settlementDigest: 'sha256:s',
};
const foreign = (kind: string, name: string, data: object) => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, namespace: 'team-a', uid: 'x', ownerReferences: [{ uid: 'another' }] },
  data,
});

describe('the answer of a Task', () => {
  test('is stored with its receipt, immutable and owned by the Task', async () => {
    const client = memoryClient();
    await storeResult(client, task, { text: 'OK', receipt }, options);
    expect(client.at('ConfigMap', 't1-result')).toMatchObject({
      immutable: true,
      metadata: { ownerReferences: [{ kind: 'Task', uid: task.metadata.uid, controller: true }] },
      data: { result: 'OK' },
    });
    expect(await readReceipt(client, task, signal)).toEqual(receipt);
  });

  test('may be stored again, but no other one', async () => {
    const client = memoryClient();
    await storeResult(client, task, { text: 'OK', receipt }, options);
    await storeResult(client, task, { text: 'OK', receipt }, options);
    for (const other of [
      { text: 'other', receipt },
      { text: 'OK', receipt: { ...receipt, settlementDigest: 'sha256:t' } },
    ])
      await expect(storeResult(client, task, other, options)).rejects.toMatchObject({ code: 'already-exists' });
  });

  test('never takes over what another made under its name', async () => {
    const client = memoryClient();
    client.put(foreign('ConfigMap', 't1-result', { result: 'OK', receipt: JSON.stringify(receipt) }));
    await expect(storeResult(client, task, { text: 'OK', receipt }, options)).rejects.toMatchObject({ code: 'already-exists' });
    expect(await readReceipt(client, task, signal)).toBeUndefined();
  });

  test('is read as an earlier version wrote it, when the digest of its request had the name of another', async () => {
    const client = memoryClient();
    const { promptRequestDigest, ...rest } = receipt;
    const own = foreign('ConfigMap', 't1-result', { receipt: JSON.stringify({ ...rest, requestDigest: promptRequestDigest }) });
    client.put({ ...own, metadata: { ...own.metadata, ownerReferences: [{ uid: task.metadata.uid }] } });
    expect(await readReceipt(client, task, signal)).toEqual(receipt);
  });

  test('has no receipt when there is none, or nonsense', async () => {
    const client = memoryClient();
    expect(await readReceipt(client, task, signal)).toBeUndefined();
    const own = foreign('ConfigMap', 't1-result', { receipt: '{' });
    client.put({ ...own, metadata: { ...own.metadata, ownerReferences: [{ uid: task.metadata.uid }] } });
    expect(await readReceipt(client, task, signal)).toBeUndefined();
  });
});

describe('a snapshot', () => {
  const snapshot = freeze(task, agent(), plan);
  const other = { ...snapshot, body: `${snapshot.body} ` };

  test('is stored once, and read back to the letter', async () => {
    const client = memoryClient();
    await storeSnapshot(client, task, snapshot, options);
    await storeSnapshot(client, task, snapshot, options);
    expect(client.stored.size).toBe(1);
    expect(await readSnapshot(client, task, snapshot.id, signal)).toBe(snapshot.body);
    await expect(storeSnapshot(client, task, other, options)).rejects.toMatchObject({ code: 'already-exists' });
  });

  test('of another Task is not ours, whatever its name', async () => {
    const client = memoryClient();
    await storeSnapshot(client, { ...task, metadata: { ...task.metadata, uid: 'another' } }, snapshot, options);
    expect(await readSnapshot(client, task, snapshot.id, signal)).toBeUndefined();
    await expect(storeSnapshot(client, task, snapshot, options)).rejects.toMatchObject({ code: 'already-exists' });
  });

  test('that is not there is not read', async () => {
    expect(await readSnapshot(memoryClient(), task, snapshot.id, signal)).toBeUndefined();
  });
});
