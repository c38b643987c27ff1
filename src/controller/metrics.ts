import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { admissionStates, poolLifecycles, providerKinds } from '../api/runtime-pool.js';
import type { PoolLifecycle, ProviderKind, RuntimePool } from '../api/runtime-pool.js';
import type { TokenUsage } from '../api/task.js';
import { podEndCauses } from '../domain/pod-end.js';
import { poolEffects, recycleCauses } from './pool/decision.js';
import type { PoolSignals } from './pool/reconcile.js';
import type { Right } from '../kube/rights.js';
import type { WorkRun } from '../kube/workqueue.js';
import type { Milliseconds } from '../lib/duration.js';
import { platformMetrics } from './platform-metrics.js';
import type { PlatformMetrics } from './platform-metrics.js';
import { phaseBuckets, taskMetrics } from './task-metrics.js';
import type { TaskMetrics } from './task-metrics.js';

/** What the controller counts. Series of queues and requests have the names that controller-runtime and client-go give them. */
export interface Metrics extends TaskMetrics, PlatformMetrics {
  /** After each run of a queue's work. */
  readonly run: (controller: string, run: WorkRun) => void;
  /** Once for each queue. Asked at each scrape: the depth of a queue that is stuck grows without a run. */
  readonly depth: (controller: string, keys: () => number) => void;
  readonly leading: (lease: string, leads: boolean) => void;
  /** After each request to the API server; without a status there was no answer. */
  readonly request: (method: string, status: number | undefined) => void;
  /** Once. Asked at each scrape. */
  readonly missingRights: (list: () => readonly Right[]) => void;
  /** Once, with the pools that there are. Asked at each scrape: the series of a pool end with it, however it ended. */
  readonly pools: (list: () => readonly RuntimePool[]) => void;
  /** Once when a pool has become Stopped, after its status was stored. */
  readonly poolScaledToZero: (uid: string) => void;
  /** When a pool's effect has been performed, or met an object that was written since. A claim that is deleted tells why. */
  readonly poolEffect: PoolSignals['effect'];
  readonly poolAttested: PoolSignals['attested'];
  /** A pool left a lifecycle in which it was for so long. */
  readonly poolMoved: (from: PoolLifecycle, took: Milliseconds) => void;
  /** Once for each attempt that ended, with what its agent reported. */
  readonly tokensUsed: (runtime: ProviderKind, usage: TokenUsage) => void;
  /** All series, as a scrape wants them. */
  readonly expose: () => Promise<{ readonly contentType: string; readonly text: string }>;
}

/** Seconds. Powers of ten as client-go has them, without those that a millisecond clock cannot tell apart. */
const queueBuckets = [0.001, 0.01, 0.1, 1, 10, 100, 1000];

const reconcileResults = { done: 'success', requeued: 'requeue_after', failed: 'error' } as const;

/** Series in a registry of their own. @default with those of the process: memory, event loop, garbage collection */
export function createMetrics({ ofProcess = true }: { readonly ofProcess?: boolean } = {}): Metrics {
  const registry = new Registry();
  const registers = [registry];
  if (ofProcess) collectDefaultMetrics({ register: registry });
  return {
    ...queueMetrics(registers),
    ...clusterMetrics(registers),
    ...poolMetrics(registers),
    ...poolLifeMetrics(registers),
    ...taskMetrics(registers),
    ...tokenMetrics(registers),
    ...platformMetrics(registers),
    expose: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}

function queueMetrics(registers: Registry[]): Pick<Metrics, 'run' | 'depth'> {
  const labelNames = ['name', 'controller'] as const;
  const depths = new Map<string, () => number>();
  new Gauge({
    name: 'workqueue_depth',
    help: 'Keys that are ready to be worked on.',
    labelNames,
    registers,
    collect() {
      for (const [controller, keys] of depths) this.set({ name: controller, controller }, keys());
    },
  });
  const waited = new Histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'How long a key was ready before its work began.',
    labelNames,
    buckets: queueBuckets,
    registers,
  });
  const took = new Histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'How long the work on a key took.',
    labelNames,
    buckets: queueBuckets,
    registers,
  });
  const retries = new Counter({
    name: 'workqueue_retries_total',
    help: 'Runs after which the key is to run again, by itself.',
    labelNames,
    registers,
  });
  const reconciles = new Counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Runs by controller and result.',
    labelNames: ['controller', 'result'],
    registers,
  });
  const errors = new Counter({
    name: 'controller_runtime_reconcile_errors_total',
    help: 'Runs that failed.',
    labelNames: ['controller'],
    registers,
  });
  return {
    run: (controller, run) => {
      const queue = { name: controller, controller };
      waited.observe(queue, run.waited / 1000);
      took.observe(queue, run.took / 1000);
      if (run.nextIn !== undefined) retries.inc(queue);
      reconciles.inc({ controller, result: reconcileResults[run.outcome] });
      if (run.outcome === 'failed') errors.inc({ controller });
    },
    // Every series is there from the start: a rate needs the zero before the first one.
    depth: (controller, keys) => {
      depths.set(controller, keys);
      const queue = { name: controller, controller };
      retries.inc(queue, 0);
      waited.zero(queue);
      took.zero(queue);
      for (const result of Object.values(reconcileResults)) reconciles.inc({ controller, result }, 0);
      errors.inc({ controller }, 0);
    },
  };
}

function clusterMetrics(registers: Registry[]): Pick<Metrics, 'leading' | 'request' | 'missingRights'> {
  const leads = new Gauge({
    name: 'leader_election_master_status',
    help: '1 while this process leads, 0 while it stands by.',
    labelNames: ['name'],
    registers,
  });
  const requests = new Counter({
    name: 'rest_client_requests_total',
    help: 'Requests to the API server by method and status; <error> is none.',
    labelNames: ['method', 'code'],
    registers,
  });
  let missing = (): readonly Right[] => [];
  new Gauge({
    name: 'orka_workspaces_missing_rights',
    help: '1 for each right that the API server refuses to the controller.',
    labelNames: ['verb', 'resource', 'namespace'],
    registers,
    collect() {
      this.reset();
      for (const { verb, resource, namespace = '' } of missing()) this.set({ verb, resource, namespace }, 1);
    },
  });
  return {
    missingRights: (list) => {
      missing = list;
    },
    leading: (name, does) => {
      leads.set({ name }, does ? 1 : 0);
    },
    request: (method, status) => {
      requests.inc({ method, code: status === undefined || status === 0 ? '<error>' : String(status) });
    },
  };
}

/** Source: workload.md §7.14. */
function poolMetrics(registers: Registry[]): Pick<Metrics, 'pools' | 'poolScaledToZero'> {
  let list = (): readonly RuntimePool[] => [];
  const labelsOf = ({ metadata: { namespace = '', name } }: RuntimePool) => ({ namespace, name });
  const current = () => list().filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const gauge = (name: string, help: string, figure: (pool: RuntimePool) => number) =>
    new Gauge({
      name: `orka_acp_runtime_pool_${name}`,
      help,
      labelNames: ['namespace', 'name'],
      registers,
      collect() {
        this.reset();
        for (const pool of current()) this.set(labelsOf(pool), figure(pool));
      },
    });
  gauge('desired_replicas', 'Replicas that the pool should have.', ({ spec }) => spec.desiredReplicas ?? 0);
  gauge('ready_replicas', '1 while the pool has an instance that is active and ready.', (pool) => (isReady(pool) ? 1 : 0));
  gauge('sessions_active', 'Sessions that are resident in the pool.', ({ status }) => status?.capacity?.residentSessions ?? 0);
  gauge('prompts_in_flight', 'Prompts that run in the pool.', ({ status }) => status?.capacity?.runningPrompts ?? 0);
  gauge('queued_tasks', 'Tasks that wait for the pool.', ({ status }) => status?.capacity?.queuedTasks ?? 0);
  new Gauge({
    name: 'orka_acp_runtime_pool_admission_state',
    help: '1 for the admission state of the pool, 0 for each other one.',
    labelNames: ['namespace', 'name', 'state'],
    registers,
    collect() {
      this.reset();
      for (const pool of current()) {
        const is = pool.status?.admissionState ?? 'Closed';
        for (const state of admissionStates) this.set({ ...labelsOf(pool), state }, state === is ? 1 : 0);
      }
    },
  });
  const times = scaleToZeroTimes(registers, () => current().map((pool) => ({ uid: pool.metadata.uid ?? '', ...labelsOf(pool) })));
  return {
    pools: (of) => {
      list = of;
    },
    poolScaledToZero: times,
  };
}

/** Counts of pools that are gone are forgotten. */
function scaleToZeroTimes(
  registers: Registry[],
  current: () => readonly { readonly uid: string; readonly namespace: string; readonly name: string }[],
): (uid: string) => void {
  let times = new Map<string, number>();
  new Counter({
    name: 'orka_acp_runtime_pool_scale_to_zero_total',
    help: 'Times that the pool was scaled to zero and has stopped.',
    labelNames: ['namespace', 'name'],
    registers,
    collect() {
      this.reset();
      for (const { uid, ...pool } of current()) this.inc(pool, times.get(uid) ?? 0);
    },
  });
  return (uid) => {
    const now = current().flatMap((pool) => (times.has(pool.uid) ? [pool.uid] : []));
    times = new Map(now.map((one) => [one, times.get(one) ?? 0]));
    times.set(uid, (times.get(uid) ?? 0) + 1);
  };
}

function isReady({ status }: RuntimePool): boolean {
  const scheduled = status?.conditions?.find(({ type }) => type === 'SchedulingReady')?.status === 'True';
  return status?.activeInstance !== undefined && scheduled;
}

/** What happens to pools, of all of them together: a pool is gone sooner than a rate of it could be computed. */
function poolLifeMetrics(registers: Registry[]): Pick<Metrics, 'poolEffect' | 'poolAttested' | 'poolMoved'> {
  const counter = (name: string, help: string, label: string, values: readonly string[]) => {
    const created = new Counter({ name: `orka_workspaces_pool_${name}`, help, labelNames: [label], registers });
    for (const value of values) created.inc({ [label]: value }, 0);
    return (value: string) => created.inc({ [label]: value });
  };
  const performed = counter('effects_total', 'Effects that were performed for pools.', 'effect', poolEffects);
  const conflicted = counter(
    'conflicts_total',
    'Effects that met an object which somebody else had written since.',
    'effect',
    poolEffects,
  );
  const ended = counter('sandboxes_ended_total', 'Sandboxes and Deployments that were ended, by cause.', 'cause', [
    'planned',
    'unproven',
    ...recycleCauses,
  ]);
  const lost = counter(
    'instances_lost_total',
    'Instances whose Pod or container ended before the controller ended them, by cause.',
    'cause',
    podEndCauses,
  );
  const attested = counter('attestations_total', 'Comparisons of a sandbox with what was rendered, by result.', 'result', [
    'whole',
    'differs',
    'undecided',
    'incomplete',
  ]);
  const lifecycles = new Histogram({
    name: 'orka_workspaces_pool_lifecycle_seconds',
    help: 'How long pools were in a lifecycle before the next.',
    labelNames: ['lifecycle'],
    buckets: phaseBuckets,
    registers,
  });
  for (const lifecycle of poolLifecycles) lifecycles.zero({ lifecycle });
  return {
    poolEffect: (effect, phase) => {
      if (phase === 'conflicted') conflicted(effect.do);
      if (phase !== 'performed') return;
      performed(effect.do);
      if (effect.do !== 'delete-claim' && effect.do !== 'stop-workload') return;
      ended(effect.cause);
      if (effect.by !== undefined) lost(effect.by);
    },
    poolAttested: attested,
    poolMoved: (lifecycle, took) => {
      lifecycles.observe({ lifecycle }, took / 1000);
    },
  };
}

const tokenKinds = { inputTokens: 'input', outputTokens: 'output', cachedInputTokens: 'cached_input' } as const;

function tokenMetrics(registers: Registry[]): Pick<Metrics, 'tokensUsed'> {
  const tokens = new Counter({
    name: 'orka_task_tokens_total',
    help: 'Tokens of ended attempts, as their agents report them, by agent runtime and kind.',
    labelNames: ['runtime', 'kind'],
    registers,
  });
  const count = (runtime: ProviderKind, usage: TokenUsage) => {
    for (const [member, kind] of Object.entries(tokenKinds))
      tokens.inc({ runtime, kind }, usage[member as keyof TokenUsage] ?? 0);
  };
  for (const runtime of providerKinds) count(runtime, {});
  return { tokensUsed: count };
}
