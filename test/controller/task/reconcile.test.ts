import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { ActiveInstance, Manifest, RuntimePool, Task } from '../../../src/api/index.js';
import { createTaskMemory } from '../../../src/controller/task/memory.js';
import { observeTask } from '../../../src/controller/task/observe.js';
import { createTaskReconciler } from '../../../src/controller/task/reconcile.js';
import type { TaskReconciler, TaskReconcilerOptions } from '../../../src/controller/task/reconcile.js';
import type { ClassVerdict } from '../../../src/controller/classes.js';
import { frozenByClass } from '../../../src/domain/frozen.js';
import { finalizers } from '../../../src/domain/labels.js';
import { planTask } from '../../../src/domain/plan.js';
import type { Plan } from '../../../src/domain/plan.js';
import { waitingOf } from '../../../src/domain/queue-order.js';
import { createHarnessClient } from '../../../src/harness/client.js';
import type { HarnessClient } from '../../../src/harness/client.js';
import type { KubeEvent } from '../../../src/kube/events.js';
import { systemClock } from '../../../src/kube/clock.js';
import { KubeError } from '../../../src/kube/errors.js';
import {
  at,
  boundTask,
  created,
  epoch,
  hosting,
  inState,
  instanceOf,
  newTask,
  poolOf,
  problemsOf,
  readyClass,
  takenTask,
  worldOf,
} from '../../support/controlled-task.js';
import { eventually, eventuallyAnswers, pause } from '../../support/eventually.js';
import { taskOrders } from '../../support/harness-orders.js';
import type { TaskOrders } from '../../support/harness-orders.js';
import { memoryClient, refusal } from '../../support/memory-client.js';
import type { MemoryClient } from '../../support/memory-client.js';
import { agent, poolClass } from '../../support/objects.js';
import { limit } from '../../support/pace.js';
import { ownAddress as address, scriptedSupervisor, testCredentials } from '../../support/supervisor.js';
import type { ScriptedSupervisor } from '../../support/supervisor.js';
import { unfitMessages } from '../../support/user-text.js';

const adapterDigests = { scripted: `sha256:${'a'.repeat(64)}` };
const spec = poolClass({ runtime: { ...poolClass().runtime, adapterDigests } });
const coder = {
  ...agent({ model: { name: 'gpt-5.5' }, runtime: { type: 'codex', defaultMaxTurns: 50 } }),
  metadata: { name: 'coder', namespace: 'team-a', uid: 'agent-1', generation: 1 },
};

let supervisor: ScriptedSupervisor;
let harness: HarnessClient;
beforeAll(async () => {
  supervisor = await scriptedSupervisor({ env: { ORKA_ACP_LISTEN_ADDRESS: `${address}:8080` } });
  harness = createHarnessClient({ baseUrl: `http://${address}:8080`, credentials: testCredentials });
});
afterAll(async () => {
  harness.close();
  await supervisor.close();
});

const status = () =>
  harness.status({
    runtimeProfileDigest: supervisor.fence.runtimeProfileDigest,
    runtimeInstanceID: supervisor.fence.runtimeInstanceID,
  });
const expectNoSession = async () => expect((await status()).sessions ?? []).toEqual([]);

/** A session that a supervisor has, as an attempt of another process would have made it. */
async function supervisorSession(taskUID: string): Promise<TaskOrders> {
  const orders = taskOrders(taskUID, supervisor.runtime);
  await harness.createSession(orders.operation('create-session', supervisor.fence), orders.session);
  return orders;
}

interface Controlled {
  readonly client: MemoryClient;
  readonly reconciler: TaskReconciler;
  readonly events: KubeEvent[];
  readonly errors: unknown[];
  readonly problems: unknown[];
  readonly outcomes: string[];
  /** Runtime and tokens of each attempt that ended. */
  readonly tokens: unknown[];
  readonly stop: AbortController;
  readonly task: () => Task | undefined;
  readonly pool: () => RuntimePool | undefined;
  readonly writes: () => readonly string[];
  readonly run: () => ReturnType<TaskReconciler['reconcile']>;
  /** Reconciles again and again until the Task is in a state. */
  readonly until: (state: string) => Promise<void>;
}

/** Now, as the supervisor has it: it does not take leases of another time. */
const just = () => at(Math.floor(Date.now() / 1000) * 1000);
const key = 'team-a/t1';
let tasks = 0;
/** Sessions of a supervisor are never begun twice, so that each test has a Task of its own. */
const uid = () => `11111111-1111-1111-1111-${String(++tasks).padStart(12, '0')}`;

const boundClass = { ...readyClass, compiled: { ...readyClass.compiled, spec, frozen: frozenByClass(spec) } };

/** Of every status and event that any test writes. */
const unfit: string[] = [];
afterEach(() => {
  // No message of a Task holds a request, a name of an internal object, or an address.
  expect(unfit.splice(0)).toEqual([]);
});

function controlled(change: Partial<TaskReconcilerOptions> = {}): Controlled {
  const problems: unknown[] = [];
  const client = memoryClient((before, after) => {
    problems.push(...problemsOf(before, after));
    if (after.kind === 'Task') unfit.push(...unfitMessages(after['status']));
  });
  const events: KubeEvent[] = [];
  const errors: unknown[] = [];
  const outcomes: string[] = [];
  const tokens: unknown[] = [];
  const stop = new AbortController();
  const options: TaskReconcilerOptions = {
    client,
    world: worldOf(client),
    classes: {
      of: () => boundClass,
    },
    hosting,
    manager: 'test',
    epoch,
    clock: systemClock,
    runtimeNamespace: 'orka-runtimes',
    endOf: () => (client.at('Pod', 'pod') ? undefined : { cause: 'PodDeleted', says: 'its Pod was deleted' }),
    record: (event) => {
      events.push(event);
      unfit.push(...unfitMessages(event));
    },
    namespaceUid: () => Promise.resolve('ns-uid'),
    credentialsOf: () => ({ credentials: testCredentials }) as never,
    ledSince: Date.now(),
    onStep: () => undefined,
    leads: () => true,
    lookAgain: () => undefined,
    again: () => undefined,
    onError: (_, error) => errors.push(error),
    metrics: {
      attemptEnded: (outcome) => outcomes.push(outcome),
      attemptPassed: () => undefined,
      sourceCalled: () => undefined,
      tokensUsed: (...used) => tokens.push(used),
    },
    signal: stop.signal,
    ...change,
  };
  const reconciler = createTaskReconciler(options);
  const task = () => client.at('Task', 't1') as unknown as Task | undefined;
  const run = () => reconciler.reconcile(key, stop.signal);
  return {
    client,
    reconciler,
    events,
    errors,
    problems,
    outcomes,
    tokens,
    stop,
    task,
    pool: () => [...client.stored.values()].find(({ kind }) => kind === 'RuntimePool') as unknown as RuntimePool | undefined,
    writes: () => client.asked.filter((one) => !one.startsWith('GET')),
    run,
    until: async (state) => {
      for (
        const end = performance.now() + limit(30_000);
        task()?.status?.execution?.state !== state && performance.now() < end;
      ) {
        await run();
        await pause(10);
      }
      expect(task()?.status?.execution?.state).toBe(state);
    },
  };
}

function instance(plan: Plan): ActiveInstance {
  const { fence } = supervisor;
  return {
    ...poolOf(plan).status?.activeInstance,
    podAddress: address,
    bootID: fence.supervisorBootID,
    runtimeInstanceID: fence.runtimeInstanceID,
    profileDigest: fence.runtimeProfileDigest,
  } as ActiveInstance;
}

/** What the pool reconciler does once the instance of a pool serves. */
function serve({ client, pool }: Controlled): void {
  const { metadata, spec: wanted, ...rest } = pool()!;
  const plan = planTask({ task: newTask(), agent: coder, poolClass: spec, defaultProvider: '' }) as Plan;
  const { status: serving } = poolOf(plan, { activeInstance: instance(plan) });
  client.put({ ...rest, metadata: { ...metadata, uid: 'pool-uid-1', generation: 2 }, spec: wanted, status: serving });
  client.put({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'pod',
      namespace: 'orka-runtimes',
      uid: 'pod-uid-1',
      annotations: { 'orka.ai/runtime-profile-digest': 'd', 'orka.ai/provider-token-generation': 'g' },
    },
    spec: {
      containers: [
        {
          name: 'runtime',
          env: [
            { name: 'ORKA_ACP_CONTROLLER_EPOCH', value: '3' },
            { name: 'ORKA_ACP_RUNTIME_POOL_GENERATION', value: '2' },
            { name: 'ORKA_ACP_RUNTIME_PROFILE_DIGEST', value: 'd' },
            { name: 'ORKA_ACP_PROVIDER_TOKEN_GENERATION', value: 'g' },
          ],
        },
      ],
    },
  });
}

/** A Task whose pool serves, with nothing begun. */
async function queued(prompt: string, it = controlled(), timeout = '10m', taskUid = uid()): Promise<Controlled> {
  it.client.put(coder);
  it.client.put(newTask({ prompt, timeout }, { uid: taskUid, creationTimestamp: just() }));
  await it.run();
  serve(it);
  return it;
}

test('a missing class is on record in the Task, and off it when the class is back', async () => {
  let verdict: ClassVerdict = { state: 'missing', says: 'there is no RuntimePoolClass for codex/standard' };
  const it = controlled({ classes: { of: () => verdict } });
  it.client.put(coder);
  it.client.put(newTask({}, { uid: uid(), creationTimestamp: at(Math.floor(Date.now() / 1000) * 1000 - 60_000) }));
  await it.run();
  expect(it.task()?.status).toMatchObject({
    phase: 'Pending',
    message: 'waits up to two minutes for its class: there is no RuntimePoolClass for codex/standard',
    conditions: [{ type: 'ClassAvailable', status: 'False', reason: 'RuntimePoolClassMissing' }],
  });
  const recorded = it.task()?.status?.conditions;
  verdict = { state: 'missing', says: 'there is still none' };
  await it.run();
  expect(it.task()?.status?.conditions?.[0]?.lastTransitionTime).toBe(recorded?.[0]?.lastTransitionTime);
  verdict = boundClass;
  await it.run();
  expect(it.task()?.status).toMatchObject({ execution: { state: 'Queued' } });
  expect(it.task()?.status).not.toHaveProperty('conditions');
  expect(it.problems).toEqual([]);
});

describe('a Task from its creation to its end, with a supervisor', () => {
  test('is taken, bound and queued before anything runs', async () => {
    const it = controlled();
    it.client.put(coder);
    it.client.put(newTask({ prompt: 'say OK' }, { uid: uid(), creationTimestamp: just() }));
    await it.run();
    const { poolName } = planTask({ task: it.task()!, agent: coder, poolClass: spec, defaultProvider: '' }) as Plan;
    expect(it.writes()).toEqual([
      'PATCH tasks/t1',
      'POST secrets',
      'PATCH tasks/t1/status',
      'POST runtimepools',
      'PATCH tasks/t1/status',
    ]);
    expect(it.task()).toMatchObject({
      metadata: { finalizers: [finalizers.task], labels: { 'orka.ai/runtime-pool': poolName } },
      status: {
        phase: 'Pending',
        execution: { state: 'Queued', runtimePoolName: poolName },
        executionWorkspace: { reused: false },
      },
    });
    expect(it.events.map(({ reason }) => reason)).toEqual(['ACPTaskQueued']);
    const before = it.client.asked.length;
    await it.run();
    expect(it.client.asked).toHaveLength(before);
    expect(it.problems).toEqual([]);
  });

  test('is queued by its status, whatever its annotation says', async () => {
    const it = controlled();
    const annotations = { 'orka.ai/acp-queued-at': '1970-01-01T00:00:00Z' };
    it.client.put(coder);
    it.client.put(newTask({ prompt: 'say OK' }, { uid: uid(), creationTimestamp: just(), annotations }));
    const before = Date.now();
    await it.run();
    const { metadata, status } = it.task()!;
    expect(Date.parse(status?.execution?.queuedAt ?? '')).toBeGreaterThanOrEqual(before - 1_000);
    expect(Date.parse(metadata.annotations?.['orka.ai/acp-queued-at'] ?? '')).toBeGreaterThanOrEqual(before - 1_000);
    expect(waitingOf(it.task()!).queuedAt).toBeGreaterThanOrEqual(before - 1_000);
  });

  test('keeps the time of its creation when an earlier version queued it, and its own time otherwise', async () => {
    for (const earlier of [true, false]) {
      const it = await queued('say OK');
      const { status, ...task } = it.task()!;
      const { queuedAt = '', ...execution } = status?.execution ?? {};
      const kept = earlier ? task.metadata.creationTimestamp : '2031-01-01T00:00:00Z';
      it.client.put({ ...task, status: { ...status, execution: earlier ? execution : { ...execution, queuedAt: kept } } });
      expect(queuedAt).not.toBe('');
      await it.until('Succeeded');
      await it.reconciler.idle();
      expect(it.events.map(({ reason }) => reason)).toContain('ACPRuntimePoolRebound');
      expect(it.task()?.status?.execution?.queuedAt).toBe(kept);
    }
  });

  test('runs, succeeds, and its session is ended', async () => {
    const it = await queued('say OK');
    // The pool was stored under another UID when it was made.
    await it.until('Succeeded');
    await it.reconciler.idle();
    expect(it.client.at('ConfigMap', 't1-result')).toMatchObject({ data: { result: 'OK' } });
    expect(it.task()?.status).toMatchObject({
      phase: 'Succeeded',
      delivery: { state: 'ReadValidated' },
      execution: {
        usage: { inputTokens: 3, outputTokens: 4 },
        runtimeSessionCleanupDigest: expect.stringMatching(/^sha256:/),
      },
    });
    expect(it.tokens).toEqual([['codex', { inputTokens: 3, outputTokens: 4 }]]);
    expect(it.pool()?.status?.capacity?.reservations ?? []).toEqual([]);
    expect((await status()).sessions ?? []).toEqual([]);
    expect([it.problems, it.errors, it.outcomes]).toEqual([[], [], ['Succeeded']]);
    expect(it.events.map(({ reason }) => reason)).toEqual([
      'ACPTaskQueued',
      'ACPRuntimePoolRebound',
      'PromptStarted',
      'TaskSucceeded',
    ]);
  });

  test('that changes its workspace fails, and says how', async () => {
    const it = await queued('write left-behind.txt');
    await it.until('Succeeded');
    await it.reconciler.idle();
    expect(it.task()?.status).toMatchObject({ phase: 'Failed', delivery: { state: 'ReadOnlyWorkspaceModified' } });
    expect(it.events.at(-1)?.reason).toBe('ReadOnlyWorkspaceModified');
  });

  test('whose agent fails has failed', async () => {
    const it = await queued('error boom');
    await it.until('Failed');
    await it.reconciler.idle();
    expect(it.task()?.status?.execution).toMatchObject({ reason: 'PromptFailed' });
  });

  test('whose agent stops early has failed, and its tokens are on record', async () => {
    const it = await queued('stop max_tokens');
    await it.until('Failed');
    await it.reconciler.idle();
    expect(it.task()?.status?.execution).toMatchObject({ usage: { inputTokens: 3, outputTokens: 4 } });
    expect(it.tokens).toEqual([['codex', { inputTokens: 3, outputTokens: 4 }]]);
  });

  test.each([
    ['wants a login', '"error":{"code":-32000,"message":"Authentication required"}', 'authentication required'],
    ['runs another model', '"result":{"sessionId":"s","models":{"currentModelId":"gpt-4"}}', 'current model'],
  ])('whose agent %s fails once, in those words, on the pool that it has', async (_, answer, says) => {
    const taskUid = uid();
    supervisor.misbehave(taskUid, `session/new:raw {"jsonrpc":"2.0","id":2,${answer}}`);
    const it = await queued('say OK', controlled(), '10m', taskUid);
    await it.until('Failed');
    await it.reconciler.idle();
    expect(it.task()?.status).toMatchObject({
      phase: 'Failed',
      message: expect.stringContaining(says),
      execution: { reason: 'RuntimeSessionStartFailed', runtimeSessionGeneration: 1 },
    });
    await it.run();
    expect(it.outcomes).toEqual(['Failed']);
    expect([...it.client.stored.values()].filter(({ kind }) => kind === 'RuntimePool')).toHaveLength(1);
    expect((await status()).lifecycle).toBe('ready');
  });

  test('that its instance takes no prompt of says so, and has the instance looked at: it may be unhealthy', async () => {
    const others = await Promise.all(Array.from({ length: 4 }, () => supervisorSession(uid())));
    const running = await Promise.all(others.map((one) => supervisor.start(one, 'wait')));
    const looked: string[] = [];
    const it = await queued('say OK', controlled({ lookAgain: (pool) => looked.push(pool) }));
    await it.until('Submitting');
    await eventually(() => looked.length > 0);
    expect(it.task()?.status?.execution).toMatchObject({ state: 'Submitting', reason: 'AtCapacity' });
    expect(looked).toEqual([`team-a/${it.pool()?.metadata.name ?? ''}`]);
    for (const stream of running) stream.abort();
    await it.until('Succeeded');
    await it.reconciler.idle();
    await eventuallyAnswers(expectNoSession);
  });

  test('that is deleted while it runs is cancelled, cleaned and released', async () => {
    const it = await queued('wait');
    await it.until('Running');
    const task = it.task()!;
    it.client.put({ ...task, metadata: { ...task.metadata, deletionTimestamp: at(created) } });
    await it.until('Cancelled');
    await it.reconciler.idle();
    await expectNoSession();
    await it.run();
    expect(it.task()?.metadata.finalizers).toEqual([]);
  });

  test('that is gone without a trace while it runs has its prompt ended', async () => {
    const it = await queued('wait');
    await it.until('Running');
    it.client.stored.delete('/apis/core.orka.ai/v1alpha1/namespaces/team-a/tasks/t1');
    await it.run();
    await it.reconciler.idle();
    await eventually(() => it.errors.length > 0);
    expect((await status()).pressure).toMatchObject({ activePrompts: 0 });
    await eventuallyAnswers(expectNoSession);
  });

  test.each(['Agent', 'Task', 'class'] as const)('runs with what it was bound to, whatever becomes of its %s', async (edited) => {
    let ready = true;
    const classes = {
      of: () => (ready ? boundClass : ({ state: 'drifted', says: 'it was edited' } as const)),
    };
    const it = await queued('say OK', controlled({ classes }));
    const task = it.task()!;
    if (edited === 'Agent') it.client.put({ ...coder, spec: { ...coder.spec, model: { name: 'another' } } });
    if (edited === 'Task') it.client.put({ ...task, spec: { ...task.spec, prompt: 'wait', agentRef: { name: 'nobody' } } });
    if (edited === 'class') ready = false;
    await it.until('Succeeded');
    await it.reconciler.idle();
    const result = it.client.at('ConfigMap', 't1-result') as { readonly data?: { readonly result?: string } } | undefined;
    expect(result?.data?.result).toBe('OK');
  });

  test('whose Pod is gone while it runs is told so at once', async () => {
    const it = await queued('wait');
    await it.until('Running');
    it.client.stored.delete('/api/v1/namespaces/orka-runtimes/pods/pod');
    await it.run();
    await it.reconciler.idle();
    expect(it.task()?.status).toMatchObject({
      phase: 'Failed',
      message: 'the prompt was lost: its Pod was deleted',
      execution: { state: 'OutcomeUnknown', reason: 'RuntimeLost' },
    });
    await eventuallyAnswers(async () => {
      serve(it);
      await it.run();
      await expectNoSession();
    });
  });

  test('is settled all the same when the API server is away for a moment, whether it stored the write or not', async () => {
    const it = await queued('say OK');
    let failures = 0;
    it.client.before = ({ method, path }) => {
      if (method !== 'GET' && path.endsWith('t1/status') && failures++ % 2 === 0) throw refusal('unreachable');
    };
    let lost = 0;
    it.client.after = ({ path, method }) => {
      if (method !== 'GET' && (path.endsWith('t1/status') || path.endsWith('configmaps')) && lost++ % 2 === 0)
        throw refusal('timeout');
    };
    for (let i = 0; i < 3; i++) await it.run().catch(() => undefined);
    await it.until('Succeeded');
    await it.reconciler.idle();
    expect(it.task()?.status?.phase).toBe('Succeeded');
    expect(it.problems).toEqual([]);
  });

  test('goes on when its user edits labels meanwhile', async () => {
    const it = await queued('say OK');
    it.client.before = (request) => {
      const task = it.task();
      const body = request.body as { metadata?: { resourceVersion?: string } } | undefined;
      // Once before each write.
      if (task && request.path.endsWith('t1/status') && body?.metadata?.resourceVersion !== edited) {
        const put = it.client.put({
          ...task,
          metadata: { ...task.metadata, annotations: { edits: String(it.client.asked.length) } },
        });
        edited = put.metadata.resourceVersion;
      }
    };
    let edited: string | undefined;
    await it.until('Succeeded');
    await it.reconciler.idle();
    expect(it.task()?.status?.phase).toBe('Succeeded');
    expect(it.problems).toEqual([]);
  });
});

describe('an attempt that fails after its session began', () => {
  /** Fails the first write that would allow the prompt. */
  function failSubmitting(it: Controlled): void {
    let failures = 0;
    it.client.before = ({ method, body }) => {
      const { execution } = (body as { status?: Task['status'] } | undefined)?.status ?? {};
      if (method === 'PATCH' && execution?.state === 'Submitting' && failures++ === 0) throw refusal('forbidden', 'not now');
    };
  }

  test('ends its session, and the Task runs in another one', async () => {
    const it = await queued('say OK');
    failSubmitting(it);
    await it.until('SessionStarting');
    await it.reconciler.idle();
    await eventually(() => it.errors.length > 0);
    expect(it.errors).toEqual([expect.objectContaining({ code: 'forbidden' })]);
    expect(it.pool()?.status?.capacity?.reservations ?? []).toEqual([]);
    await expectNoSession();
    serve(it);
    await it.until('Succeeded');
    await it.reconciler.idle();
    expect(it.task()?.status?.execution).toMatchObject({ runtimeSessionGeneration: 2 });
    await expectNoSession();
  });

  test('and could not be ended is known by its generation, though the Task was queued again, until it is ended', async () => {
    const it = await queued('say OK');
    const memory = createTaskMemory();
    memory.abandoned = { runtimeInstanceID: supervisor.fence.runtimeInstanceID, generation: 3 };
    const world = worldOf(it.client);
    const seen = observeTask(
      {
        world,
        classes: { of: () => boundClass },
        hosting,
        runtimeNamespace: 'orka-runtimes',
        endOf: () => undefined,
        epoch,
        ledSince: 0,
        standingOf: () => undefined,
        credentialsOf: () => ({ credentials: testCredentials }) as never,
      },
      key,
      memory,
    );
    expect(seen).toMatchObject({
      leftSession: 'reachable',
      leftGeneration: 3,
      task: { status: { execution: { state: 'Queued' } } },
    });
    expect(seen?.task.status?.execution).not.toHaveProperty('runtimeSessionUID');
  });
});

describe('a namespace that does not take what a Task needs', () => {
  const quota = (what: string) => refusal('forbidden', `${what} is forbidden: exceeded quota: nothing, requested: ${what}=1`);

  /** A Task whose namespace refuses a kind until the test lifts it. The test moves the clock. */
  function refusing(what: 'secrets' | 'runtimepools', failure = () => quota(what)) {
    let [now, open] = [Date.now(), false];
    const it = controlled({ clock: { ...systemClock, now: () => now }, maxTasksPerNamespace: 1 });
    it.client.before = ({ method, path }) => {
      if (!open && method === 'POST' && path.endsWith(what)) throw failure();
    };
    it.client.put(coder);
    it.client.put(newTask({ prompt: 'say OK', timeout: '10m' }, { uid: uid(), creationTimestamp: just() }));
    const pass = (milliseconds: number) => {
      now += milliseconds;
    };
    return { it, pass, take: () => (open = true) };
  }

  test.each([
    ['secrets', 'the Secret with its snapshot'],
    ['runtimepools', 'its RuntimePool'],
  ] as const)('(a quota of %s) is named in its status, and the Task goes on when it does', async (what, named) => {
    const { it, pass, take } = refusing(what);
    expect(await it.run()).toEqual({ requeueAfter: 2_000 });
    expect(it.task()?.status).toMatchObject({
      phase: 'Pending',
      message: `${named} cannot be created: ${what} is forbidden: exceeded quota: nothing, requested: ${what}=1`,
    });
    expect(it.events.map(({ type, reason }) => [type, reason])).toEqual([['Normal', 'CreateRefused']]);
    const writes = it.writes().length;
    expect((await it.run())?.requeueAfter).toBeLessThanOrEqual(2_000);
    expect(it.writes()).toHaveLength(writes);
    pass(2_000);
    expect(await it.run()).toEqual({ requeueAfter: 4_000 });
    expect(it.writes().slice(writes)).toEqual([`POST ${what}`]);
    pass(4_000);
    take();
    await it.run();
    expect(it.task()?.status).toMatchObject({ execution: { state: 'Queued' } });
    expect(it.task()?.status).not.toHaveProperty('message');
    expect(it.problems).toEqual([]);
  });

  test('by a webhook that fails is named too', async () => {
    const { it } = refusing('secrets', () => refusal('server-error', 'Internal error occurred: failed calling webhook "w"'));
    await it.run();
    expect(it.task()?.status?.message).toContain('failed calling webhook');
  });

  test('costs the Task its time and no more: it ends at its deadline, and names the quota', async () => {
    const { it, pass } = refusing('secrets');
    await it.run();
    pass(10 * 60_000);
    await it.run();
    expect(it.task()?.status).toMatchObject({
      phase: 'Cancelled',
      execution: { reason: 'TaskTimeout' },
      message: expect.stringContaining('exceeded quota: nothing'),
    });
  });
});

test('a process that does not lead any more sends no prompt', async () => {
  let leads = true;
  const it = await queued(
    'say OK',
    controlled({
      leads: () => leads,
      // As if it stood still after this step.
      onStep: (step, phase) => {
        if (step === 'write-submitting' && phase === 'performed') leads = false;
      },
    }),
  );
  await it.until('Submitting');
  await it.reconciler.idle();
  await eventually(() => it.errors.length > 0);
  expect(it.errors).toContainEqual(new Error('this process does not lead any more'));
  expect((await status()).pressure).toMatchObject({ activePrompts: 0 });
  await eventuallyAnswers(expectNoSession);
});

describe('an attempt that cannot begin', () => {
  test('is tried later and later, and its Task says why', async () => {
    const first = Date.now();
    let now = first;
    const waits: (number | undefined)[] = [];
    const it = controlled({ credentialsOf: () => undefined, clock: { ...systemClock, now: () => now } });
    await queued('say OK', it);
    for (let i = 0; i < 6; i++) {
      await it.run();
      await it.reconciler.idle();
      const wait = (await it.run())?.requeueAfter;
      waits.push(wait);
      now += wait ?? 0;
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000]);
    expect(it.task()?.status).toMatchObject({
      message: 'the attempt could not begin: the credentials of its instance are not known yet',
      execution: { state: 'Queued' },
    });
    expect(it.writes().filter((one) => one === 'PATCH tasks/t1/status')).toHaveLength(4);
    now = first + 10 * 60_000;
    await it.run();
    expect(it.task()?.status).toMatchObject({
      phase: 'Cancelled',
      execution: { reason: 'TaskTimeout' },
      message: expect.stringContaining('credentials of its instance'),
    });
  });
});

describe('a controller that starts', () => {
  const bound = boundTask();
  const over = (more: object = {}): Task =>
    inState(bound.task, {
      state: 'Succeeded',
      outcome: 'Succeeded',
      runtimeSessionUID: 's',
      runtimeInstanceID: 'pod-uid-1.boot-1',
      ...more,
    });

  test('asks nothing about Tasks that are settled', async () => {
    const it = controlled();
    it.client.put(over({ runtimeSessionCleanupDigest: `sha256:${'a'.repeat(64)}` }));
    it.client.put(poolOf(bound.plan));
    expect(await it.run()).toBeUndefined();
    expect(it.client.asked).toEqual([]);
  });

  test('waits for the credentials of an instance of another epoch, and keeps the finalizer until it is gone', async () => {
    const it = controlled({ credentialsOf: () => undefined });
    const task = over();
    it.client.put({ ...task, metadata: { ...task.metadata, deletionTimestamp: at(created) } });
    const pool = it.client.put(poolOf(bound.plan));
    expect(await it.run()).toEqual({ requeueAfter: 5_000 });
    expect(it.client.asked).toEqual([]);
    it.client.put({ ...pool, status: { lifecycle: 'Stopped' } });
    await it.run();
    expect(it.task()?.metadata.finalizers).toEqual([]);
    expect(it.task()?.status?.execution?.runtimeSessionCleanupDigest).toMatch(/^sha256:/);
    expect([it.writes(), it.problems]).toEqual([['PATCH tasks/t1/status', 'PATCH tasks/t1'], []]);
  });

  test('says once that a session is gone whose pool is, or has another instance', async () => {
    const it = controlled();
    it.client.put(over());
    await it.run();
    const receipt = it.task()?.status?.execution?.runtimeSessionCleanupDigest;
    const other = controlled();
    other.client.put(over());
    other.client.put(poolOf(bound.plan, { activeInstance: { ...instanceOf(bound.plan), runtimeInstanceID: 'another' } }));
    for (let i = 0; i < 3; i++) await other.run();
    expect([receipt, other.task()?.status?.execution?.runtimeSessionCleanupDigest]).toEqual([
      expect.stringMatching(/^sha256:/),
      receipt,
    ]);
    expect(other.writes()).toEqual(['PATCH tasks/t1/status']);
  });

  test('ends the session that a settled Task left, without its snapshot, and says so once', async () => {
    const it = await queued('say OK');
    const task = it.task();
    const own = await supervisorSession(task?.metadata.uid ?? '');
    it.client.put({
      ...task,
      status: {
        ...inState(bound.task, { state: 'Failed', outcome: 'Failed', attempt: 1, runtimeSessionUID: own.sessionUID }).status,
        agentExecutionBinding: task?.status?.agentExecutionBinding,
        execution: {
          state: 'Failed',
          outcome: 'Failed',
          attempt: 1,
          runtimePoolName: task?.status?.execution?.runtimePoolName,
          runtimeSessionUID: own.sessionUID,
          runtimeInstanceID: supervisor.fence.runtimeInstanceID,
        },
      },
    });
    const restarted = controlled({ client: it.client, world: worldOf(it.client) });
    const before = it.client.asked.length;
    expect(await restarted.run()).toBeUndefined();
    expect((await status()).sessions ?? []).toEqual([]);
    expect(it.task()?.status?.execution?.runtimeSessionCleanupDigest).toMatch(/^sha256:/);
    await restarted.run();
    expect(it.client.asked.slice(before)).toEqual(['PATCH tasks/t1/status']);
  });

  test('ends a session whose prompt ended well, and was never read', async () => {
    const first = await queued('say OK');
    const task = first.task()!;
    const own = await supervisorSession(task.metadata.uid ?? '');
    await supervisor.run(own, 'say OK');
    const { runtimeInstanceID } = supervisor.fence;
    const change = { state: 'Running', attempt: 1, runtimeSessionUID: own.sessionUID, runtimeInstanceID } as const;
    first.client.put(inState(task, change, { phase: 'Running' }));
    const restarted = controlled({ client: first.client, world: worldOf(first.client) });
    await restarted.run();
    const { message, execution } = first.task()?.status ?? {};
    expect(message).toContain('its instance says that it ended (succeeded), but its answer is lost');
    expect(execution?.runtimeSessionCleanupDigest).toMatch(/^sha256:/);
    expect((await status()).sessions ?? []).toEqual([]);
  });

  test.each(['Running', 'Settling'] as const)(
    'settles what was %s by its receipt, and does not claim what it does not know of the workspace',
    async (state) => {
      const it = controlled();
      const task = inState(bound.task, { state });
      it.client.put(task);
      it.client.put({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 't1-result', namespace: 'team-a', ownerReferences: [{ uid: task.metadata.uid }] },
        data: {
          receipt: JSON.stringify({ taskUID: task.metadata.uid, promptID: task.status?.execution?.promptID, attempt: 1 }),
        },
      });
      it.client.put({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'x', namespace: 'team-a' },
      });
      await it.run();
      await it.run();
      expect(it.task()?.status).toMatchObject({
        phase: 'Failed',
        resultRef: { available: true },
        execution: { state: 'Succeeded', outcome: 'Succeeded' },
        delivery: { state: 'DeliveryConflict', reason: 'RuntimeWorkspaceLost' },
      });
      expect([it.events.map(({ reason }) => reason), it.problems]).toEqual([['ControllerRestarted'], []]);
    },
  );

  test('asks the instance how an interrupted prompt ended, ends its session, and never sends it again', async () => {
    const first = await queued('wait');
    await first.until('Running');
    first.stop.abort();
    await first.reconciler.idle();
    const restarted = controlled({ client: first.client, world: worldOf(first.client) });
    for (let i = 0; i < 100 && first.task()?.status?.phase === 'Running'; i++) await restarted.run();
    const settledTask = first.task()?.status;
    expect(settledTask).toMatchObject({ phase: 'Failed', execution: { state: 'OutcomeUnknown', reason: 'RuntimeLost' } });
    expect(settledTask?.message).toBe(
      'the controller restarted or was upgraded while the prompt ran, or was being sent; its instance says that it ended (cancelled), but its answer is lost, and it is not sent again',
    );
    expect(settledTask?.conditions).toMatchObject([{ type: 'Complete', status: 'False', reason: 'ControllerRestarted' }]);
    expect(settledTask?.execution?.runtimeSessionCleanupDigest).toMatch(/^sha256:/);
    expect((await status()).sessions ?? []).toEqual([]);
    expect([restarted.events.map(({ reason }) => reason), first.problems]).toEqual([['ControllerRestarted'], []]);
  });

  test('that is deleted ends though its answer may not be read: the Role of its namespace went first', async () => {
    const it = controlled();
    const { task } = bound;
    const metadata = { ...task.metadata, deletionTimestamp: just(), finalizers: [finalizers.task] };
    it.client.put({ ...inState(task, { state: 'Settling' }), metadata });
    it.client.before = ({ path }) => {
      if (!/configmaps|secrets|agents|events/.test(path)) return;
      const says = 'configmaps "t1-result" is forbidden: User "controller" cannot get resource "configmaps" in API group ""';
      throw new KubeError('forbidden', { at: path, says, status: 403, reason: 'Forbidden' });
    };
    for (let run = 0; run < 5 && it.task()?.metadata.finalizers?.length !== 0; run++) await it.run();
    expect(it.task()?.metadata.finalizers).toEqual([]);
    expect(it.task()?.status?.execution).toMatchObject({ state: 'OutcomeUnknown', reason: 'RuntimeLost' });
  });

  test('that is not deleted waits for its answer to be readable', async () => {
    const it = controlled();
    it.client.put(inState(bound.task, { state: 'Settling' }));
    it.client.before = ({ path }) => {
      if (path.includes('configmaps'))
        throw new KubeError('forbidden', {
          at: path,
          says: 'configmaps is forbidden: User "controller" cannot get resource "configmaps"',
          reason: 'Forbidden',
        });
    };
    await expect(it.run()).rejects.toThrow('cannot get resource');
    expect(it.task()?.status?.execution?.state).toBe('Settling');
  });

  test('does not know the outcome of what was being settled without a receipt', async () => {
    const it = controlled();
    it.client.put(inState(bound.task, { state: 'Settling' }));
    await it.run();
    expect(it.task()?.status).toMatchObject({ phase: 'Failed', execution: { state: 'OutcomeUnknown', reason: 'RuntimeLost' } });
    expect(it.task()?.status).not.toHaveProperty('resultRef');
  });
});

describe('a pool', () => {
  test('that somebody else made first under the name is met and compared, not fought', async () => {
    const it = controlled();
    it.client.put(coder);
    it.client.put(newTask({ prompt: 'say OK' }, { uid: uid(), creationTimestamp: just() }));
    const world = worldOf(it.client);
    let known: Manifest | undefined;
    const lagging = { ...world, pools: { ...world.pools, get: () => known, wrote: (object: Manifest) => (known = object) } };
    const late = controlled({ world: lagging, client: it.client });
    it.client.before = ({ method, path, body }) => {
      if (method !== 'POST' || !path.endsWith('runtimepools') || known) return;
      const pool = body as unknown as RuntimePool;
      it.client.put({ ...pool, spec: { ...pool.spec, runtime: { ...pool.spec.runtime, image: `x@sha256:${'e'.repeat(64)}` } } });
    };
    await late.run();
    expect(it.task()?.status?.message).toContain('spec.runtime.image');
    expect(it.client.asked.filter((one) => one === 'POST runtimepools')).toHaveLength(1);
  });
});

describe('what is remembered of a Task', () => {
  test('is not what its Agent referred to before', async () => {
    const prompts = (name: string) => ({ ...coder, spec: { ...coder.spec, systemPrompt: { configMapRef: { name, key: 'k' } } } });
    const it = controlled({ classes: { of: () => ({ state: 'drifted', says: 'x' }) } });
    const config = (name: string) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'team-a' },
      data: { k: name },
    });
    it.client.put(config('one'));
    it.client.put(config('two'));
    it.client.put(newTask({}, { uid: uid(), creationTimestamp: just() }));
    it.client.put(prompts('one'));
    await it.run();
    it.client.put(prompts('two'));
    await it.run();
    expect(it.client.asked.filter((one) => one.startsWith('GET configmaps'))).toEqual([
      'GET configmaps/one',
      'GET configmaps/two',
    ]);
  });

  test('a Task that waits is written once, however often it is looked at', async () => {
    const it = controlled({ classes: { of: () => ({ state: 'drifted', says: 'x' }) } });
    it.client.put(coder);
    it.client.put(takenTask());
    for (let i = 0; i < 5; i++) await it.run();
    expect(it.writes()).toEqual(['PATCH tasks/t1/status']);
  });
});

describe('a refused Task', () => {
  test('is told so once, and nothing else is written', async () => {
    const it = controlled();
    it.client.put(newTask({ prompt: '' }, { creationTimestamp: just() }));
    it.client.put(coder);
    await it.run();
    await it.run();
    expect(it.writes()).toEqual(['PATCH tasks/t1/status']);
    expect(it.task()?.status).toMatchObject({ phase: 'Failed', message: expect.stringContaining('spec.prompt') });
    expect([it.events.length, it.problems]).toEqual([1, []]);
  });
});

describe('an empty name is refused, and asked for nowhere:', () => {
  const nameless = { systemPrompt: { configMapRef: { name: '', key: '' } } };
  test.each([
    [
      'of the Agent',
      { agentRef: { name: '' } },
      {},
      'TaskRefused',
      /Task team-a\/t1: spec.agentRef: found "", allowed: the name of an existing Agent/,
    ],
    [
      'of the ConfigMap of its system prompt',
      {},
      nameless,
      'InvalidRuntimeProfile',
      /spec.systemPrompt.configMapRef: found "\/"/,
    ],
  ])('%s', async (_, change, agent, reason, says) => {
    const it = controlled();
    it.client.put({ ...coder, spec: { ...coder.spec, ...agent } });
    it.client.put(newTask(change, { uid: uid(), creationTimestamp: at(Date.now() - 60_000) }));
    await it.run();
    expect(it.task()?.status).toMatchObject({ phase: 'Failed', message: expect.stringMatching(says) });
    expect(it.events.map((event) => event.reason)).toEqual([reason]);
    expect(it.writes()).toEqual(['PATCH tasks/t1/status']);
  });
});

test('a decision on an outdated Task is taken again on what the server has, not on what the watch still shows', async () => {
  const it = controlled();
  it.client.put(coder);
  const stale = it.client.put(newTask({}, { uid: uid(), creationTimestamp: just() }));
  let known: Manifest = stale;
  const world = worldOf(it.client);
  const lagging = { ...world, tasks: { ...world.tasks, get: () => known, wrote: (object: Manifest) => (known = object) } };
  const late = controlled({ client: it.client, world: lagging });
  it.client.put({ ...stale, metadata: { ...stale.metadata, annotations: { edited: 'yes' } } });
  expect(await late.run()).toEqual({ requeueAfter: 20 });
  await late.run();
  expect(late.events.map(({ reason }) => reason)).toEqual(['ACPTaskQueued']);
});
