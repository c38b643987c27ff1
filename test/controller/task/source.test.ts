import { afterEach, describe, expect, test } from '@jest/globals';
import type { Task } from '../../../src/api/index.js';
import { createTaskReconciler } from '../../../src/controller/task/reconcile.js';
import { storeSnapshot } from '../../../src/controller/task/snapshot-secret.js';
import { sourceSteps } from '../../../src/controller/task/source-run.js';
import type { KubeEvent } from '../../../src/kube/events.js';
import { sourceRefusals } from '../../../src/domain/source-refusals.js';
import { publisherCodes } from '../../../src/source/errors.js';
import type { PublisherErrorCode } from '../../../src/source/errors.js';
import { at, boundTask, created, epoch, hosting, problemsOf, readyClass, worldOf } from '../../support/controlled-task.js';
import { fakeClock, settle } from '../../support/fake-clock.js';
import { memoryClient } from '../../support/memory-client.js';
import { archive, commit, hanging, manifest, playedPublisher, refused } from '../../support/played-publisher.js';
import { unfitMessages } from '../../support/user-text.js';

const token = 'a-token-that-nobody-may-see';
const header = `Authorization: Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;
const key = 'team-a/t1';
const repository = { intent: 'read', gitRepo: 'https://git.example:8443/acme/app.git', branch: 'main' } as const;
const secretOf = (data: Record<string, string> = { token }) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'read', namespace: 'team-a', uid: 'secret-1' },
  data: Object.fromEntries(Object.entries(data).map(([name, value]) => [name, Buffer.from(value).toString('base64')])),
});

/** Of every status and event that any test writes. */
const unfit: string[] = [];
afterEach(() => {
  // No message of a Task holds a request, a name of an internal object, or an address.
  expect(unfit.splice(0)).toEqual([]);
});

/** A bound Task with a repository, in a cluster whose pools nobody starts. */
async function fetching(workspace: Task['spec']['workspace'] = { ...repository, readCredentialRef: { name: 'read' } }) {
  const bound = boundTask({ workspace, timeout: '30m' }, { status: { phase: 'Pending' } });
  const problems: unknown[] = [];
  const client = memoryClient((before, after) => {
    problems.push(...problemsOf(before, after));
    if (after.kind === 'Task') unfit.push(...unfitMessages(after['status']));
  });
  client.put(bound.task);
  client.put(secretOf());
  const { id, digest } = bound.task.status?.agentExecutionBinding?.snapshot ?? { id: '', digest: '' };
  const snapshot = { id, digest: digest as `sha256:${string}`, body: bound.body };
  await storeSnapshot(client, bound.task, snapshot, { manager: 'test', signal: new AbortController().signal });
  client.asked.length = 0;
  const clock = fakeClock(created);
  const publisher = playedPublisher();
  const events: KubeEvent[] = [];
  const errors: unknown[] = [];
  const measured: string[] = [];
  const task = () => client.at('Task', 't1') as unknown as Task;

  /** A process that leads. `dies`: told of each step; what it throws ends the process. */
  function lead(as = epoch, dies: (step: string, phase: string) => void = () => undefined) {
    const stop = new AbortController();
    let again = false;
    const isAsked = () => again;
    const reconciler = createTaskReconciler({
      client,
      world: worldOf(client),
      classes: { of: () => readyClass },
      hosting,
      manager: 'test',
      epoch: as,
      clock,
      runtimeNamespace: 'orka-runtimes',
      endOf: () => undefined,
      record: (event) => {
        events.push(event);
        unfit.push(...unfitMessages(event));
      },
      namespaceUid: () => Promise.resolve('ns-uid'),
      credentialsOf: () => undefined,
      ledSince: created,
      onStep: (step, phase) => {
        try {
          dies(step, phase);
        } catch (error) {
          stop.abort();
          throw error;
        }
      },
      leads: () => !stop.signal.aborted,
      lookAgain: () => undefined,
      again: () => {
        again = true;
      },
      onError: (_, error) => errors.push(error),
      metrics: {
        attemptEnded: () => undefined,
        attemptPassed: () => undefined,
        sourceCalled: (work, code) => measured.push(`${work} ${code}`),
        tokensUsed: () => undefined,
      },
      source: publisher,
      publisherService: 'orka-publisher/orka-publisher',
      signal: stop.signal,
    });
    return {
      stop,
      idle: reconciler.idle,
      /** Reconciles for as long as something asks for it. */
      run: async () => {
        for (let looks = 0; looks < 20; looks++) {
          again = false;
          if (client.at('Task', 't1')) await reconciler.reconcile(key, stop.signal).catch((error: unknown) => errors.push(error));
          for (let i = 0; i < 10 && !isAsked(); i++) await settle();
          if (!isAsked()) return;
        }
      },
    };
  }
  return {
    client,
    clock,
    publisher,
    events,
    errors,
    measured,
    problems,
    task,
    lead,
    execution: () => task().status?.execution,
    effects: () => task().status?.execution?.effects ?? [],
    pools: () => [...client.stored.values()].filter(({ kind }) => kind === 'RuntimePool').length,
    change: (metadata: Partial<Task['metadata']>) => client.put({ ...task(), metadata: { ...task().metadata, ...metadata } }),
  };
}
type Fetching = Awaited<ReturnType<typeof fetching>>;

/** Everything that anybody could read, but for the Secret itself. */
function readable({ client, events, errors }: Fetching): string {
  const objects = [...client.stored.values()].filter(({ metadata }) => metadata.name !== 'read');
  return JSON.stringify([objects, events, errors.map((error) => String(error instanceof Error ? error.stack : error))]);
}

describe('a Task with a repository', () => {
  test('has each call on record before it is made, and resolves before there is a pool', async () => {
    const it = await fetching();
    const seen: unknown[] = [];
    it.publisher.answer = ({ what }) => {
      const found = it.effects().map(({ kind, state, controllerEpoch }) => `${kind} ${state} ${String(controllerEpoch)}`);
      seen.push([what, found, it.pools()]);
    };
    await it.lead().run();
    expect(seen).toEqual([
      ['resolve', ['workspace.resolve InFlight 3'], 0],
      ['prepare', ['workspace.resolve Succeeded 3', 'workspace.prepare InFlight 3'], 1],
    ]);
    expect(it.effects()).toMatchObject([
      {
        state: 'Succeeded',
        response: { repositoryID: 'git.example:8443/acme/app', sourceRef: 'refs/heads/main', baselineOID: commit },
      },
      { state: 'Succeeded', response: { manifestDigest: manifest, artifact: { digest: archive } } },
    ]);
    expect(it.execution()?.state).toBe('Queued');
    expect(it.problems).toEqual([]);
    expect(it.measured).toEqual(['resolve ok', 'prepare ok']);
    const reasons = it.events.map(({ reason }) => reason);
    expect(reasons).toEqual(['RepositoryResolved', 'ACPTaskQueued', 'RepositoryFetched']);
  });

  test('sends its credential with each call and shows it nowhere', async () => {
    const it = await fetching();
    await it.lead().run();
    expect(it.publisher.calls.map(({ credential }) => credential)).toEqual([header, header]);
    for (const hidden of [token, Buffer.from(token).toString('base64'), header.slice(-20)])
      expect(readable(it)).not.toContain(hidden);
  });

  test('without a credential asks anonymously', async () => {
    const it = await fetching(repository);
    await it.lead().run();
    expect(it.publisher.calls.map(({ credential }) => credential)).toEqual([undefined, undefined]);
    expect(it.execution()?.readCredentialResourceVersion).toBeUndefined();
  });

  test('says after two seconds what it waits for', async () => {
    const it = await fetching();
    it.publisher.answer = (_, signal) => hanging(signal);
    const process = it.lead();
    await process.run();
    expect(it.task().status?.message).toBeUndefined();
    await it.clock.advance(2_001);
    await process.run();
    expect(it.task().status?.message).toBe('fetches its repository git.example:8443/acme/app');
    process.stop.abort();
    await process.idle();
  });
});

describe('a Secret', () => {
  test.each<[string, (it: Fetching) => void, string]>([
    [
      'that is missing',
      ({ client }) => void client.stored.delete('/api/v1/namespaces/team-a/secrets/read'),
      'Secret read is missing',
    ],
    ['without the key', ({ client }) => void client.put(secretOf({ other: token })), 'Secret read has no key token'],
    [
      'with an unusable value',
      ({ client }) => void client.put(secretOf({ token: ' ' })),
      'key token of Secret read cannot be used',
    ],
    [
      'of a service account',
      ({ client }) => void client.put({ ...secretOf(), type: 'kubernetes.io/service-account-token' }),
      'Secret read is of type kubernetes.io/service-account-token, which is no credential of a forge',
    ],
    [
      'with the snapshot of a Task',
      ({ client }) => void client.put({ ...secretOf(), type: 'orka.ai/execution-snapshot' }),
      'Secret read is of type orka.ai/execution-snapshot, which is no credential of a forge',
    ],
  ])('%s ends the Task as InvalidWorkspace, without a call', async (_, prepare, says) => {
    const it = await fetching();
    prepare(it);
    await it.lead().run();
    expect(it.execution()).toMatchObject({ state: 'Failed', reason: 'InvalidWorkspace' });
    expect(it.task().status?.message).toContain(says);
    expect([it.publisher.calls.length, it.pools()]).toEqual([0, 0]);
    expect(readable(it)).not.toContain(token);
  });

  test.each<[string, (it: Fetching) => void, string]>([
    ['changed', ({ client }) => void client.put(secretOf({ token: 'another' })), 'was changed after the Task was bound'],
    ['deleted', ({ client }) => void client.stored.delete('/api/v1/namespaces/team-a/secrets/read'), 'Secret read is missing'],
  ])('that is %s between two calls blocks the Task', async (_, change, says) => {
    const it = await fetching();
    it.publisher.answer = ({ what }) => {
      if (what === 'resolve') change(it);
    };
    await it.lead().run();
    expect(it.execution()).toMatchObject({ state: 'Failed', reason: 'CredentialBlocked' });
    expect(it.task().status?.message).toContain(says);
    expect(it.publisher.calls.map(({ what }) => what)).toEqual(['resolve']);
  });
});

describe('a refusal', () => {
  const final = Object.entries(publisherCodes).filter(([code, { retryable }]) => !retryable && code !== 'unauthorized');

  test.each(final.map(([code]) => code as PublisherErrorCode))(
    '%s ends the Task at once, before there is a pool',
    async (code) => {
      const it = await fetching();
      it.publisher.answer = () => {
        throw refused(code);
      };
      await it.lead().run();
      expect(it.execution()).toMatchObject({ state: 'Failed', reason: sourceRefusals[code]?.reason });
      expect(it.effects()).toMatchObject([{ state: 'Failed', code }]);
      expect(it.task().status?.message).toMatch(/spec\.workspace\./);
      expect([it.publisher.calls.length, it.pools(), it.problems]).toEqual([1, 0, []]);
    },
  );

  test('names what is wrong with a tree', async () => {
    const it = await fetching();
    it.publisher.answer = ({ what }) => {
      const detail = { reason: 'tree_too_large', limit: 5, found: 7 } as const;
      if (what === 'prepare') throw refused('tree_refused', { detail });
    };
    await it.lead().run();
    expect(it.task().status?.message).toContain('too many bytes in all files together: found 7 bytes, allowed: at most 5 bytes');
  });
});

describe('what may pass', () => {
  test.each<PublisherErrorCode>(['scm_failure', 'unreachable', 'busy', 'unauthorized'])(
    '%s is tried again every 5 s under the same operation, and the Task says why',
    async (code) => {
      const it = await fetching();
      it.publisher.answer = () => {
        if (it.publisher.calls.length < 3) throw refused(code, { retryable: code !== 'unauthorized' });
      };
      const process = it.lead();
      await process.run();
      expect(it.publisher.calls).toHaveLength(1);
      await it.clock.advance(2_001);
      await process.run();
      expect(it.task().status?.message).toMatch(/^fetches its repository .*: the (forge|publisher) .*; it is tried again$/);
      await it.clock.advance(3_000);
      await it.clock.advance(5_000);
      await process.run();
      const resolves = it.publisher.calls.filter(({ what }) => what === 'resolve').map(({ operationId }) => operationId);
      expect([resolves.length, new Set(resolves).size]).toEqual([3, 1]);
      expect(it.execution()?.state).toBe('Queued');
      expect(it.task().status?.message).toBeUndefined();
    },
  );

  test('and does not within four minutes ends the Task, with an unknown outcome on record', async () => {
    const it = await fetching();
    it.publisher.answer = () => {
      throw refused('unreachable', { retryable: true });
    };
    const process = it.lead();
    await process.run();
    await it.clock.advance(4 * 60_000);
    await process.run();
    expect(it.effects()).toMatchObject([{ state: 'OutcomeUnknown', code: 'unreachable', attempts: 1 }]);
    expect(it.execution()).toMatchObject({ state: 'Failed', reason: 'WorkspaceUnsupported' });
    expect(it.task().status?.message).toContain('(Service orka-publisher/orka-publisher)');
    expect(it.publisher.calls).toHaveLength(48);
  });
});

describe('nobody wants the repository any more:', () => {
  test('a Task that is deleted aborts its call, and goes', async () => {
    const it = await fetching();
    let aborted = false;
    it.publisher.answer = (_, signal) => {
      signal.addEventListener('abort', () => {
        aborted = true;
      });
      return hanging(signal);
    };
    const process = it.lead();
    await process.run();
    it.change({ deletionTimestamp: at(created + 1_000) });
    await process.run();
    expect(aborted).toBe(true);
    expect(it.client.at('Task', 't1')?.metadata.finalizers ?? []).toEqual([]);
    await process.idle();
  });

  test('a Task whose time is over aborts its call, which is on record as unknown', async () => {
    const it = await fetching();
    it.publisher.answer = (_, signal) => hanging(signal);
    const process = it.lead();
    await process.run();
    it.clock.jump(31 * 60_000);
    await process.run();
    await process.idle();
    expect(it.execution()).toMatchObject({ state: 'Cancelled', reason: 'TaskTimeout' });
    expect(it.effects()).toMatchObject([{ state: 'OutcomeUnknown', code: 'abandoned' }]);
    expect(it.problems).toEqual([]);
  });
});

describe('the next leader', () => {
  test('takes a call over at once, under the same operation', async () => {
    const it = await fetching();
    it.publisher.answer = (_, signal) => hanging(signal);
    const first = it.lead();
    await first.run();
    first.stop.abort();
    await first.idle();
    expect(it.effects()).toMatchObject([{ state: 'InFlight', controllerEpoch: 3, attempts: 1 }]);
    it.publisher.answer = () => undefined;
    await it.lead(4).run();
    expect(it.effects()).toMatchObject([{ state: 'Succeeded', controllerEpoch: 4, attempts: 2 }, { state: 'Succeeded' }]);
    expect(new Set(it.publisher.calls.map(({ operationId }) => operationId)).size).toBe(2);
  });

  test('says of a refused tree what the one before it recorded', async () => {
    const it = await fetching();
    const detail = { reason: 'file_too_large', path: 'data/big.bin', limit: 5, found: 7 } as const;
    it.publisher.answer = ({ what }) => {
      if (what === 'prepare') throw refused('tree_refused', { detail });
    };
    const first = it.lead();
    it.client.after = () => {
      if (it.effects().some(({ state }) => state === 'Failed')) first.stop.abort();
    };
    await first.run();
    await first.idle();
    expect([it.execution()?.outcome, it.effects()[1]]).toMatchObject([undefined, { state: 'Failed', detail }]);
    it.client.after = () => undefined;
    await it.lead(epoch + 1).run();
    const says = 'too many bytes in the file data/big.bin: found 7 bytes, allowed: at most 5 bytes';
    expect(it.task().status?.message).toContain(says);
    expect(it.problems).toEqual([]);
  });

  test.each(sourceSteps.flatMap((step) => [[step, 'begins'] as const, [step, 'performed'] as const]))(
    'comes to the same end when the one before it died as %s %s',
    async (step, phase) => {
      const it = await fetching();
      const first = it.lead(epoch, (name, when) => {
        if (name === step && when === phase) throw new Error('killed');
      });
      await first.run();
      expect(first.stop.signal.aborted).toBe(true);
      await it.lead(epoch + 1).run();
      expect(it.effects().map(({ state }) => state)).toEqual(['Succeeded', 'Succeeded']);
      expect(new Set(it.publisher.calls.map(({ operationId }) => operationId)).size).toBe(2);
      expect([it.execution()?.state, it.pools(), it.problems]).toEqual(['Queued', 1, []]);
    },
  );
});
