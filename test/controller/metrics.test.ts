import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import type { RuntimePool } from '../../src/api/index.js';
import { providerKinds } from '../../src/api/index.js';
import { createMetrics } from '../../src/controller/metrics.js';
import type { Metrics } from '../../src/controller/metrics.js';
import { poolEffects } from '../../src/controller/pool/decision.js';
import type { WorkRun } from '../../src/kube/workqueue.js';
import { storedPool } from '../support/pool-observation.js';

/** The samples that a scrape gets, without comments and buckets. */
async function samples(metrics: Metrics, prefix = ''): Promise<Readonly<Record<string, number>>> {
  const { text } = await metrics.expose();
  const lines = text.split('\n').filter((line) => line.startsWith(prefix) && line !== '' && !/^#|_bucket\{/.test(line));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}
const own = () => createMetrics({ ofProcess: false });
const run = (changed: Partial<WorkRun> = {}): WorkRun => ({
  key: 'a/b',
  outcome: 'done',
  waited: 250,
  took: 1500,
  failures: 0,
  ...changed,
});

describe('a queue', () => {
  const of = 'name="pool",controller="pool"';

  test('is asked for its depth at each scrape', async () => {
    const metrics = own();
    let depth = 3;
    metrics.depth('pool', () => depth);
    expect(await samples(metrics, 'workqueue_depth')).toEqual({ [`workqueue_depth{${of}}`]: 3 });
    depth = 0;
    expect(await samples(metrics, 'workqueue_depth')).toEqual({ [`workqueue_depth{${of}}`]: 0 });
  });

  test('has its counters at zero before the first run', async () => {
    const metrics = own();
    metrics.depth('pool', () => 0);
    expect(await samples(metrics, 'controller_runtime')).toEqual({
      'controller_runtime_reconcile_total{controller="pool",result="success"}': 0,
      'controller_runtime_reconcile_total{controller="pool",result="requeue_after"}': 0,
      'controller_runtime_reconcile_total{controller="pool",result="error"}': 0,
      'controller_runtime_reconcile_errors_total{controller="pool"}': 0,
    });
  });

  test('tells in seconds how long keys waited and work took', async () => {
    const metrics = own();
    metrics.run('pool', run());
    metrics.run('pool', run());
    expect(await samples(metrics, 'workqueue')).toEqual({
      [`workqueue_queue_duration_seconds_sum{${of}}`]: 0.5,
      [`workqueue_queue_duration_seconds_count{${of}}`]: 2,
      [`workqueue_work_duration_seconds_sum{${of}}`]: 3,
      [`workqueue_work_duration_seconds_count{${of}}`]: 2,
    });
  });

  test.each([
    ['done', {}, 'success', 0, 0],
    ['requeued', { nextIn: 1000 }, 'requeue_after', 0, 1],
    ['failed', { nextIn: 5, failures: 1, error: new Error('x') }, 'error', 1, 1],
  ] as const)('counts a run that is %s', async (outcome, more, result, errors, retries) => {
    const metrics = own();
    metrics.depth('pool', () => 0);
    metrics.run('pool', run({ outcome, ...more }));
    expect(await samples(metrics)).toMatchObject({
      [`controller_runtime_reconcile_total{controller="pool",result="${result}"}`]: 1,
      'controller_runtime_reconcile_errors_total{controller="pool"}': errors,
      [`workqueue_retries_total{${of}}`]: retries,
    });
  });
});

describe('the life of pools', () => {
  const claim = { apiVersion: 'v1', kind: 'SandboxClaim', metadata: { name: 'c' } };
  const counted = async (metrics: Metrics, name: string) =>
    Object.fromEntries(Object.entries(await samples(metrics, `orka_workspaces_pool_${name}`)).filter(([, value]) => value > 0));

  test('every effect is counted, from zero, once it has been performed', async () => {
    const metrics = own();
    metrics.poolEffect({ do: 'read-credentials' }, 'begins');
    metrics.poolEffect({ do: 'read-credentials' }, 'performed');
    expect(Object.keys(await samples(metrics, 'orka_workspaces_pool_effects_total')).length).toBe(poolEffects.length);
    expect(await counted(metrics, 'effects_total')).toEqual({
      'orka_workspaces_pool_effects_total{effect="read-credentials"}': 1,
    });
  });

  test('a conflict is counted by the effect that met it, and as nothing that was performed', async () => {
    const metrics = own();
    metrics.poolEffect({ do: 'scale-to-zero' }, 'conflicted');
    expect([await counted(metrics, 'conflicts_total'), await counted(metrics, 'effects_total')]).toEqual([
      { 'orka_workspaces_pool_conflicts_total{effect="scale-to-zero"}': 1 },
      {},
    ]);
  });

  test('a sandbox that is ended is counted by its cause', async () => {
    const metrics = own();
    metrics.poolEffect({ do: 'delete-claim', claim, cause: 'cold-start', because: 'it took too long' }, 'performed');
    expect(await counted(metrics, 'sandboxes_ended_total')).toEqual({
      'orka_workspaces_pool_sandboxes_ended_total{cause="cold-start"}': 1,
    });
  });

  test('an instance that was lost is counted by what ended it, also where a Deployment kept it', async () => {
    const metrics = own();
    const effect = { claim, cause: 'restarted', because: 'it was started again', by: 'OOMKilled' } as const;
    metrics.poolEffect({ do: 'delete-claim', ...effect }, 'performed');
    metrics.poolEffect({ do: 'stop-workload', ...effect }, 'performed');
    expect(await counted(metrics, 'instances_lost_total')).toEqual({
      'orka_workspaces_pool_instances_lost_total{cause="OOMKilled"}': 2,
    });
    expect(await counted(metrics, 'sandboxes_ended_total')).toEqual({
      'orka_workspaces_pool_sandboxes_ended_total{cause="restarted"}': 2,
    });
  });

  test('a comparison is counted by its result', async () => {
    const metrics = own();
    metrics.poolAttested('differs');
    expect(await counted(metrics, 'attestations_total')).toEqual({
      'orka_workspaces_pool_attestations_total{result="differs"}': 1,
    });
  });

  test('the time in a lifecycle is told in seconds when it is left', async () => {
    const metrics = own();
    metrics.poolMoved('Starting', 1_500);
    expect(await samples(metrics, 'orka_workspaces_pool_lifecycle_seconds')).toMatchObject({
      'orka_workspaces_pool_lifecycle_seconds_sum{lifecycle="Starting"}': 1.5,
      'orka_workspaces_pool_lifecycle_seconds_count{lifecycle="Starting"}': 1,
    });
  });
});

test('leadership is 1 while it lasts and 0 otherwise', async () => {
  const metrics = own();
  metrics.leading('lease', true);
  expect(await samples(metrics, 'leader')).toEqual({ 'leader_election_master_status{name="lease"}': 1 });
  metrics.leading('lease', false);
  expect(await samples(metrics, 'leader')).toEqual({ 'leader_election_master_status{name="lease"}': 0 });
});

test('requests are counted by method and status, also those without an answer', async () => {
  const metrics = own();
  metrics.request('GET', 200);
  metrics.request('GET', 200);
  metrics.request('PATCH', 409);
  metrics.request('GET', undefined);
  metrics.request('GET', 0);
  expect(await samples(metrics, 'rest_client')).toEqual({
    'rest_client_requests_total{method="GET",code="200"}': 2,
    'rest_client_requests_total{method="PATCH",code="409"}': 1,
    'rest_client_requests_total{method="GET",code="<error>"}': 2,
  });
});

describe('a pool', () => {
  const labels = 'namespace="team-a",name="acp-1"';
  const prefix = 'orka_acp_runtime_pool_';
  const pool = (name: string, status: object = {}, change: object = {}): RuntimePool => {
    const stored = storedPool();
    const metadata = { ...stored.metadata, namespace: 'team-a', name, uid: `uid-of-${name}`, ...change };
    return { ...stored, metadata, status };
  };
  const scheduled = [{ type: 'SchedulingReady', status: 'True' }];
  const serving = {
    lifecycle: 'Serving',
    admissionState: 'Accepting',
    activeInstance: {},
    conditions: scheduled,
    capacity: { residentSessions: 1, runningPrompts: 2, queuedTasks: 3 },
  };
  const watching = (...pools: readonly RuntimePool[]) => {
    const metrics = own();
    const known = new Map(pools.map((one) => [one.metadata.name, one]));
    metrics.pools(() => [...known.values()]);
    return { metrics, known };
  };

  test('has the series of the contract; its admission state is one of four', async () => {
    const { metrics } = watching(pool('acp-1', serving));
    expect(await samples(metrics, 'orka_acp')).toEqual({
      [`${prefix}desired_replicas{${labels}}`]: 1,
      [`${prefix}ready_replicas{${labels}}`]: 1,
      [`${prefix}sessions_active{${labels}}`]: 1,
      [`${prefix}prompts_in_flight{${labels}}`]: 2,
      [`${prefix}queued_tasks{${labels}}`]: 3,
      [`${prefix}admission_state{${labels},state="Closed"}`]: 0,
      [`${prefix}admission_state{${labels},state="Accepting"}`]: 1,
      [`${prefix}admission_state{${labels},state="Draining"}`]: 0,
      [`${prefix}admission_state{${labels},state="Ambiguous"}`]: 0,
      [`${prefix}scale_to_zero_total{${labels}}`]: 0,
    });
  });

  test('is told as it is at the scrape', async () => {
    const { metrics, known } = watching(pool('acp-1', serving));
    await metrics.expose();
    known.set('acp-1', pool('acp-1', { ...serving, activeInstance: undefined, admissionState: 'Closed' }));
    expect(await samples(metrics)).toMatchObject({
      [`${prefix}ready_replicas{${labels}}`]: 0,
      [`${prefix}admission_state{${labels},state="Closed"}`]: 1,
      [`${prefix}admission_state{${labels},state="Accepting"}`]: 0,
    });
  });

  test('has no series once its deletion began', async () => {
    const { metrics } = watching(pool('acp-1', serving, { deletionTimestamp: '2030-01-01T00:00:00Z' }));
    expect(await samples(metrics, 'orka_acp')).toEqual({});
  });

  test('keeps its count of scalings to zero, which another pool of its name does not take over', async () => {
    const { metrics, known } = watching(pool('acp-1', serving));
    metrics.poolScaledToZero('uid-of-acp-1');
    metrics.poolScaledToZero('uid-of-acp-1');
    const times = async () => (await samples(metrics))[`${prefix}scale_to_zero_total{${labels}}`];
    const before = await times();
    known.set('acp-1', pool('acp-1', serving, { uid: 'another' }));
    expect([before, await times()]).toEqual([2, 0]);
  });

  test('leaves no series, whatever state it had when it went: a thousand later there are as many as before', async () => {
    const { metrics, known } = watching(pool('stays', serving));
    // From here on, all label values of series over all pools are known.
    const work = (name: string) => {
      metrics.run('pool', run({ key: `team-a/${name}` }));
      metrics.request('PATCH', 200);
      metrics.poolEffect({ do: 'scale-to-zero' }, 'performed');
      metrics.poolMoved('Serving', 1_000);
      metrics.attemptEnded('Succeeded');
      metrics.attemptPassed('running', 1_000);
    };
    work('stays');
    const before = Object.keys(await samples(metrics)).sort();
    const lifecycles = ['Starting', 'Serving', 'Draining', 'Quiescent', 'Stopping', 'Stopped', 'Degraded', 'Ambiguous'];
    for (let n = 0; n < 1_000; n++) {
      const name = `churn-${n}`;
      known.set(name, pool(name, { ...serving, lifecycle: lifecycles[n % lifecycles.length] }));
      work(name);
      metrics.poolScaledToZero(`uid-of-${name}`);
      if (n % 100 === 0) await metrics.expose();
      known.delete(name);
      // A write that was under way when the pool went.
      metrics.poolScaledToZero(`uid-of-${name}`);
    }
    expect(Object.keys(await samples(metrics)).sort()).toEqual(before);
  });
});

test('attempts are counted by outcome', async () => {
  const metrics = own();
  metrics.attemptEnded('Succeeded');
  metrics.attemptEnded('OutcomeUnknown');
  expect(await samples(metrics, 'orka_task_attempts')).toEqual({
    'orka_task_attempts_total{outcome="Failed"}': 0,
    'orka_task_attempts_total{outcome="Cancelled"}': 0,
    'orka_task_attempts_total{outcome="Succeeded"}': 1,
    'orka_task_attempts_total{outcome="OutcomeUnknown"}': 1,
  });
});

test('tokens are counted by agent runtime and kind, from zero, in series that no Task adds to', async () => {
  const metrics = own();
  const before = Object.keys(await samples(metrics, 'orka_task_tokens'));
  expect(before).toHaveLength(providerKinds.length * 3);
  metrics.tokensUsed('codex', { inputTokens: 100, outputTokens: 7, cachedInputTokens: 20 });
  metrics.tokensUsed('codex', { outputTokens: 3 });
  metrics.tokensUsed('opencode', {});
  const after = await samples(metrics, 'orka_task_tokens');
  expect(Object.keys(after)).toEqual(before);
  expect(Object.fromEntries(Object.entries(after).filter(([, value]) => value > 0))).toEqual({
    'orka_task_tokens_total{runtime="codex",kind="input"}': 100,
    'orka_task_tokens_total{runtime="codex",kind="output"}': 10,
    'orka_task_tokens_total{runtime="codex",kind="cached_input"}': 20,
  });
});

test.each(['queued', 'serving', 'running', 'settling'] as const)('the phase %s is told in seconds', async (phase) => {
  const metrics = own();
  metrics.attemptPassed(phase, 2500);
  expect(await samples(metrics, 'orka_task_phase_seconds')).toMatchObject({
    [`orka_task_phase_seconds_sum{phase="${phase}"}`]: 2.5,
    [`orka_task_phase_seconds_count{phase="${phase}"}`]: 1,
  });
});

test('two sets of series do not meet', async () => {
  const [one, other] = [own(), own()];
  one.request('GET', 200);
  expect(await samples(other, 'rest_client')).toEqual({});
});

test('the series of the process are there by default', async () => {
  const { contentType, text } = await createMetrics().expose();
  expect(text).toMatch(/^process_resident_memory_bytes \d+$/m);
  expect(contentType).toMatch(/^text\/plain; version=0\.0\.4/);
});

describe('before anything happened', () => {
  test.each([
    ['orka_task_attempts_total{outcome="OutcomeUnknown"}', 'attempts by outcome'],
    ['orka_task_phase_seconds_count{phase="running"}', 'phases of attempts'],
    ['orka_workspaces_pool_lifecycle_seconds_count{lifecycle="Serving"}', 'lifecycles of pools'],
    ['orka_workspaces_tasks_waiting{reason="AtCapacity"}', 'waiting Tasks by reason'],
    ['orka_workspaces_tasks_refused_total{reason="InvalidRuntimeProfile"}', 'refused Tasks by reason'],
    ['orka_workspaces_tasks_ended_total{reason="RuntimeLost"}', 'ended Tasks by reason'],
  ])('%s is 0 (%s)', async (series) => {
    expect(await samples(own())).toMatchObject({ [series]: 0 });
  });

  test('each watched kind has a series of reconnects, and each queue its histograms', async () => {
    const metrics = own();
    metrics.watches(['Task']);
    metrics.depth('pool', () => 0);
    expect(await samples(metrics)).toMatchObject({
      'orka_workspaces_watch_reconnects_total{kind="Task"}': 0,
      'workqueue_queue_duration_seconds_count{name="pool",controller="pool"}': 0,
    });
    metrics.watchBroke('Task');
    expect(await samples(metrics)).toMatchObject({ 'orka_workspaces_watch_reconnects_total{kind="Task"}': 1 });
  });
});

describe('Tasks', () => {
  test('that wait are counted by what they wait for, as it is at the scrape', async () => {
    const metrics = own();
    let waiting: ('Paused' | 'AtCapacity')[] = ['Paused', 'AtCapacity', 'Paused'];
    metrics.tasksWaiting(() => waiting);
    const series = (reason: string) => `orka_workspaces_tasks_waiting{reason="${reason}"}`;
    expect(await samples(metrics)).toMatchObject({ [series('Paused')]: 2, [series('AtCapacity')]: 1 });
    waiting = [];
    expect(await samples(metrics)).toMatchObject({ [series('Paused')]: 0, [series('AtCapacity')]: 0 });
  });

  test('that ended are counted by reason, of which there is a bounded number', async () => {
    const metrics = own();
    const before = Object.keys(await samples(metrics)).length;
    metrics.taskEnded('PodOOMKilled');
    for (let i = 0; i < 1_000; i++) metrics.taskEnded(`Reason${i}`);
    metrics.taskEnded('a text with spaces');
    const after = await samples(metrics);
    expect(after).toMatchObject({ 'orka_workspaces_tasks_ended_total{reason="PodOOMKilled"}': 1 });
    expect(Object.keys(after).length - before).toBe(30);
    expect(after['orka_workspaces_tasks_ended_total{reason="Other"}']).toBe(1_000 - 29 + 1);
  });
});

test('the state of each class is 1 of four', async () => {
  const metrics = own();
  metrics.classes(() => [{ name: 'codex', state: 'drifted' }]);
  expect(await samples(metrics, 'orka_workspaces_class_state')).toEqual({
    'orka_workspaces_class_state{name="codex",state="ready"}': 0,
    'orka_workspaces_class_state{name="codex",state="drifted"}': 1,
    'orka_workspaces_class_state{name="codex",state="ambiguous"}': 0,
    'orka_workspaces_class_state{name="codex",state="invalid"}': 0,
  });
});

test('the build says the versions of package and runtime', async () => {
  const metrics = own();
  metrics.build('1.2.3');
  expect(await samples(metrics, 'orka_workspaces_build')).toEqual({
    [`orka_workspaces_build_info{version="1.2.3",node="${process.version}"}`]: 1,
  });
});

test('docs/metrics.md names every series of ours', async () => {
  const { text } = await own().expose();
  const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name).filter((name) => name.startsWith('orka_'));
  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  const missing = names.filter(
    (name) => !page.includes(name) && !page.includes(`\`_${name.replace(/^orka_(acp_runtime|workspaces)_pool_/, '')}`),
  );
  expect(missing).toEqual([]);
});
