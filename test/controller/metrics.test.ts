import { describe, expect, test } from '@jest/globals';
import { createMetrics } from '../../src/controller/metrics.js';
import type { Metrics, PoolFigures } from '../../src/controller/metrics.js';
import { poolEffects } from '../../src/controller/pool/decision.js';
import type { WorkRun } from '../../src/kube/workqueue.js';

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
    expect(await samples(metrics, 'orka_workspaces_pool_lifecycle_seconds')).toEqual({
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
  const pool = { namespace: 'team-a', name: 'acp-1' };
  const labels = 'namespace="team-a",name="acp-1"';
  const figures: PoolFigures = {
    desiredReplicas: 1,
    ready: true,
    sessionsActive: 1,
    promptsInFlight: 2,
    queuedTasks: 3,
    admissionState: 'Accepting',
  };
  const prefix = 'orka_acp_runtime_pool_';

  test('has the series of the contract; its admission state is one of four', async () => {
    const metrics = own();
    metrics.poolObserved(pool, figures);
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

  test('is seen as it was observed last', async () => {
    const metrics = own();
    metrics.poolObserved(pool, figures);
    metrics.poolObserved(pool, { ...figures, desiredReplicas: 0, ready: false, admissionState: 'Closed' });
    expect(await samples(metrics)).toMatchObject({
      [`${prefix}desired_replicas{${labels}}`]: 0,
      [`${prefix}ready_replicas{${labels}}`]: 0,
      [`${prefix}admission_state{${labels},state="Closed"}`]: 1,
      [`${prefix}admission_state{${labels},state="Accepting"}`]: 0,
    });
  });

  test('keeps its count of scalings to zero when it is observed again', async () => {
    const metrics = own();
    metrics.poolScaledToZero(pool);
    metrics.poolObserved(pool, figures);
    expect(await samples(metrics)).toMatchObject({ [`${prefix}scale_to_zero_total{${labels}}`]: 1 });
  });

  test('that is gone takes all of its series with it, and none of another', async () => {
    const metrics = own();
    metrics.poolObserved(pool, figures);
    metrics.poolScaledToZero(pool);
    metrics.poolObserved({ ...pool, name: 'acp-2' }, figures);
    metrics.poolGone(pool);
    const names = Object.keys(await samples(metrics, 'orka_acp'));
    expect(names).toHaveLength(10);
    expect(names.filter((name) => name.includes('acp-1'))).toEqual([]);
  });

  test('that was never observed can be gone', () => {
    expect(() => {
      own().poolGone(pool);
    }).not.toThrow();
  });
});

test('attempts are counted by outcome', async () => {
  const metrics = own();
  metrics.attemptEnded('Succeeded');
  metrics.attemptEnded('OutcomeUnknown');
  expect(await samples(metrics, 'orka_task_attempts')).toEqual({
    'orka_task_attempts_total{outcome="Succeeded"}': 1,
    'orka_task_attempts_total{outcome="OutcomeUnknown"}': 1,
  });
});

test.each(['queued', 'serving', 'running', 'settling'] as const)('the phase %s is told in seconds', async (phase) => {
  const metrics = own();
  metrics.attemptPassed(phase, 2500);
  expect(await samples(metrics, 'orka_task_phase_seconds')).toEqual({
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
