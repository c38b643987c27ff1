import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { StorageError } from '../../src/publisher/durable.js';
import { Journal, usualJournalLimits } from '../../src/publisher/journal.js';
import type { JournaledRequest } from '../../src/publisher/journal.js';
import { limit } from '../support/pace.js';

let root: string;
let folder: string;
let now: number;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'orka-journal-'));
  folder = path.join(root, 'journal');
  now = Date.parse('2026-09-01T10:00:00Z');
});
afterEach(async () => {
  await rm(root, { recursive: true });
});

const digest = (of: string) => `sha256:${of.repeat(64)}` as const;
const requestOf = (operationId: string): JournaledRequest => ({
  operationId,
  operation: 'workspace.resolve',
  requestDigest: digest('1'),
});
const reply = { status: 200, body: '{"baselineOid":"a","x":"é\\u2028<"}' };
const open = (limits = usualJournalLimits) => Journal.open(folder, { limits, clock: () => now });

async function complete(journal: Journal, id: string): Promise<void> {
  await journal.begin(requestOf(id));
  await journal.finish(requestOf(id), 'completed', reply);
  journal.release(requestOf(id));
}

test('a result is there for the same request and after a restart; one that only started is not', async () => {
  const journal = await open();
  expect(await journal.begin(requestOf('a'))).toBeUndefined();
  await journal.finish(requestOf('a'), 'failed', { status: 409, body: '{}' });
  await journal.begin(requestOf('started'));
  const again = await open();
  expect(await again.begin(requestOf('a'))).toEqual({ status: 409, body: '{}' });
  expect(await again.begin(requestOf('started'))).toBeUndefined();
  expect(again.size).toMatchObject({ records: 2, damaged: 0 });
});

test('another request under the same id is a conflict, also while the first one is only started', async () => {
  const journal = await open();
  await journal.begin(requestOf('a'));
  await expect(journal.begin({ ...requestOf('a'), requestDigest: digest('2') })).rejects.toMatchObject({
    code: 'operation_conflict',
  });
  await expect(journal.begin({ ...requestOf('a'), operation: 'workspace.prepare' })).rejects.toMatchObject({
    code: 'operation_conflict',
  });
});

describe('a record that is damaged', () => {
  /** The bytes of one record, and a journal with another one beside it. */
  async function written(): Promise<{ readonly name: string; readonly bytes: Buffer }> {
    const journal = await open();
    await complete(journal, 'a');
    const [name = ''] = await readdir(folder);
    await complete(journal, 'b');
    return { name, bytes: await readFile(path.join(folder, name)) };
  }

  /** What the journal says after a restart. It is the old answer to the byte, or none at all. */
  async function afterRestart(name: string, bytes: Buffer): Promise<'same' | 'none'> {
    await writeFile(path.join(folder, name), bytes);
    const journal = await open();
    expect(await journal.begin(requestOf('b'))).toEqual(reply);
    const found = await journal.begin(requestOf('a'));
    if (found) expect(found).toEqual(reply);
    journal.release(requestOf('a'));
    return found ? 'same' : 'none';
  }

  test(
    'by a cut at any byte is as if it had never been',
    async () => {
      const { name, bytes } = await written();
      expect(await afterRestart(name, bytes)).toBe('same');
      for (let length = 0; length < bytes.length; length++)
        expect(await afterRestart(name, bytes.subarray(0, length))).toBe('none');
    },
    limit(60_000),
  );

  test(
    'by one changed byte at any place is as if it had never been',
    async () => {
      const { name, bytes } = await written();
      for (let at = 0; at < bytes.length; at++) {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] ?? 0) ^ 1;
        expect(await afterRestart(name, changed)).toBe('none');
      }
    },
    limit(60_000),
  );

  test('or stands under the name of another is not believed', async () => {
    const { name } = await written();
    const [other = ''] = (await readdir(folder)).filter((one) => one !== name);
    await copyFile(path.join(folder, name), path.join(folder, other));
    const journal = await open();
    expect(journal.size).toMatchObject({ records: 1, damaged: 1 });
    expect(await journal.begin(requestOf('b'))).toBeUndefined();
  });
});

test('what an unfinished write left is removed at the start', async () => {
  await open();
  await writeFile(path.join(folder, 'x.json.012345.tmp'), '{"rec');
  await open();
  expect(await readdir(folder)).toEqual([]);
});

test('a link or a folder in the place of a record is removed, and what it points to stays', async () => {
  const journal = await open();
  await complete(journal, 'a');
  const [name = ''] = await readdir(folder);
  const secret = path.join(root, 'elsewhere');
  await writeFile(secret, await readFile(path.join(folder, name)));
  await rm(path.join(folder, name));
  await symlink(secret, path.join(folder, name));
  expect(await (await open()).begin(requestOf('a'))).toBeUndefined();
  expect(await readFile(secret, 'utf8')).toContain('completed');
});

test('a link in the place of the folder is refused', async () => {
  const elsewhere = path.join(root, 'elsewhere');
  await mkdir(elsewhere);
  await symlink(elsewhere, folder);
  await expect(open()).rejects.toBeInstanceOf(StorageError);
});

test('records are removed after a day', async () => {
  const journal = await open();
  await complete(journal, 'a');
  await journal.begin(requestOf('crashed'));
  journal.release(requestOf('crashed'));
  await journal.begin(requestOf('running'));
  now += usualJournalLimits.age + 1;
  await journal.prune();
  expect(journal.size.records).toBe(1);
  expect(await readdir(folder)).toHaveLength(1);
});

test('the oldest results make room, what runs does not', async () => {
  const limits = { ...usualJournalLimits, records: 3 };
  const journal = await open(limits);
  for (const id of ['a', 'b', 'c', 'd']) {
    now += 1000;
    await complete(journal, id);
  }
  expect(await journal.begin(requestOf('d'))).toEqual(reply);
  expect(await journal.begin(requestOf('a'))).toBeUndefined();
  await journal.begin(requestOf('e'));
  await journal.begin(requestOf('f'));
  await expect(journal.begin(requestOf('g'))).rejects.toMatchObject({ code: 'journal_full', status: 507, retryable: true });
  expect(journal.size.records).toBe(3);
});

test('operations that may be tried again do not fill the journal, and go before results', async () => {
  const journal = await open({ ...usualJournalLimits, records: 3 });
  await complete(journal, 'done');
  for (let i = 0; i < 10; i++) {
    now += 1000;
    await journal.begin(requestOf(`passing-${i}`));
    journal.release(requestOf(`passing-${i}`));
  }
  expect(await journal.begin(requestOf('done'))).toEqual(reply);
  const again = await open({ ...usualJournalLimits, records: 3 });
  for (let i = 0; i < 3; i++) expect(await again.begin(requestOf(`next-${i}`))).toBeUndefined();
});

describe('an operation that may not run again', () => {
  const repeatable = { 'workspace.resolve': true, 'workspace.prepare': false };
  const openStrict = () => Journal.open(folder, { limits: { ...usualJournalLimits, records: 2 }, clock: () => now, repeatable });
  const once = (id: string): JournaledRequest => ({ ...requestOf(id), operation: 'workspace.prepare' });

  test.each([
    ['without a result', undefined],
    ['with a result', reply],
  ])('%s keeps its record when the journal is full', async (_, result) => {
    const journal = await openStrict();
    await journal.begin(once('once'));
    if (result) await journal.finish(once('once'), 'completed', result);
    journal.release(once('once'));
    for (const id of ['a', 'b', 'c']) {
      now += 1000;
      await complete(journal, id);
    }
    const again = journal.begin(once('once'));
    if (result) expect(await again).toEqual(result);
    else await expect(again).rejects.toMatchObject({ code: 'operation_interrupted' });
  });

  test.each([
    ['a repeatable operation begins again after a restart', requestOf('x'), undefined],
    ['another one is refused after a restart', once('x'), 'operation_interrupted'],
  ])('%s', async (_, request, code) => {
    await (await openStrict()).begin(request);
    const found = (await openStrict()).begin(request).catch((error: unknown) => (error as { readonly code: string }).code);
    expect(await found).toBe(code);
  });

  test('fills the journal when no record may be removed', async () => {
    const journal = await openStrict();
    for (const id of ['a', 'b']) {
      await journal.begin(once(id));
      journal.release(once(id));
    }
    await expect(journal.begin(requestOf('c'))).rejects.toMatchObject({ code: 'journal_full' });
  });
});

test('the bytes of the journal have a bound', async () => {
  const limits = { ...usualJournalLimits, bytes: 64 * 1024 };
  const journal = await open(limits);
  for (let i = 0; i < 20; i++) {
    now += 1000;
    await journal.begin(requestOf(`op-${i}`));
    await journal.finish(requestOf(`op-${i}`), 'completed', { status: 200, body: 'x'.repeat(10_000) });
    expect(journal.size.bytes).toBeLessThanOrEqual(limits.bytes);
  }
  expect(journal.size.records).toBeGreaterThan(2);
});
