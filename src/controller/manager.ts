import { setMaxListeners } from 'node:events';
import type { Manifest, RuntimePool, Task } from '../api/index.js';
import { available } from '../domain/available.js';
import { deployedIdentity } from '../domain/deployed.js';
import type { ClusterAccess } from '../kube/access.js';
import { createClient, get } from '../kube/client.js';
import type { KubeClient } from '../kube/client.js';
import { systemClock } from '../kube/clock.js';
import { createRecorder } from '../kube/events.js';
import type { Recorder } from '../kube/events.js';
import { isNamespaceEnding, isNotGranted, KubeError } from '../kube/errors.js';
import { elect } from '../kube/lease.js';
import type { Leadership } from '../kube/lease.js';
import { describeRight, MissingRights, notingRights } from '../kube/rights.js';
import type { MissingRightsOptions, Right } from '../kube/rights.js';
import { keyOf } from '../kube/store.js';
import { createTransport } from '../kube/transport.js';
import { whileLeading } from '../kube/while-leading.js';
import { createWorkqueue } from '../kube/workqueue.js';
import type { Workqueue, WorkqueueOptions } from '../kube/workqueue.js';
import { createAnnouncer } from './announce.js';
import { createClassReconciler } from './class-status.js';
import { createClasses } from './classes.js';
import { checkKinds } from './kinds.js';
import type { KindCheck } from './kinds.js';
import { concernedBy, openTasksIn } from './concerned.js';
import type { WatchedChange } from './concerned.js';
import { FailureLog } from './failure-log.js';
import { createLog } from './log.js';
import type { Log } from './log.js';
import { createMetrics } from './metrics.js';
import type { Metrics } from './metrics.js';
import type { PoolEffectName } from './pool/decision.js';
import { createPoolReconciler } from './pool/reconcile.js';
import { PodEnds } from './pod-ends.js';
import { Pauses } from './pauses.js';
import { publisherServiceName } from '../domain/publisher.js';
import { startProbes } from '../lib/probes.js';
import { UnservedTasks } from './unserved-tasks.js';
import { watchServedFields } from './served-fields.js';
import type { ServedFields } from './served-fields.js';
import type { ControllerSettings } from './settings.js';
import { Publisher } from './publisher.js';
import { PublisherKeys } from './publisher-keys.js';
import type { AttemptStep } from './task/attempt-port.js';
import { createTaskReconciler } from './task/reconcile.js';
import type { SourceStep } from './task/source-run.js';
import { watchTokens } from './tokens.js';
import type { Tokens } from './tokens.js';
import { childKinds, poolOf, poolsOn, watchedKinds, watchWorld } from './world.js';
import type { World } from './world.js';

/** Name of the Lease, and of everything else that is the controller's own. */
const controllerName = 'orka-workspaces-controller';
const statusManager = 'orka-workspaces-pool-status';
const workers = { task: 8, pool: 8, class: 1 } as const;
/** What the server refuses may be granted any moment, and nothing tells. */
const retryBackoff = { base: 5, cap: 60_000 } as const;
const shutdownWithin = 1_500;

interface Queues {
  readonly tasks: Workqueue;
  readonly pools: Workqueue;
  readonly classes: Workqueue;
}

/** What a leading process works with. */
interface Leading {
  readonly queues: Queues;
  /** What can be seen of the cluster is another than before: all of it is decided on again. */
  readonly lookAtAll: () => void;
  /** A right is missing. */
  readonly lacks: (right: Right) => void;
  /** Whoever a change concerns is looked at. */
  readonly changed: (change: WatchedChange) => void;
  readonly stop: () => Promise<void>;
}

/** Told of each effect of a pool before it begins, and again once it has been performed. */
type EffectHook = (effect: PoolEffectName, phase: 'begins' | 'performed') => void;

/** Told of each step of an attempt, and of its repository, before it begins, and again once it has been taken. */
type StepHook = (step: AttemptStep | SourceStep, phase: 'begins' | 'performed') => void;

/** For whoever wants to see, or to end, a controller at an exact step. */
export interface ControllerHooks {
  /** @default nothing */
  readonly onEffect?: EffectHook;
  /** @default nothing */
  readonly onStep?: StepHook;
}

/**
 * Runs until a signal, or the loss of its leadership, ends it. Watches while it waits to lead, so that it can begin at once; writes only while
 * it leads.
 * @returns the exit code: 0 after a signal, 1 after the leadership was lost
 */
export async function runController(
  settings: ControllerSettings,
  access: ClusterAccess,
  { onEffect = () => undefined, onStep = () => undefined }: ControllerHooks = {},
): Promise<number> {
  const log = createLog();
  const metrics = createMetrics();
  startSeries(metrics, settings);
  let leading: Leading | undefined;
  let unserved: UnservedTasks | undefined;
  const rights = rightsOf(log, metrics, (right, missing) => {
    if (missing) leading?.lacks(right);
    else leading?.lookAtAll();
  });
  let synced = false;
  let gaps: ReturnType<typeof kindCheckOf>['gaps'] = () => [];
  const notes = () => [
    ...(gaps().length > 0 ? [kindsText(gaps())] : []),
    ...rights.list().map((right) => `may not ${describeRight(right)}`),
  ];
  // First of all: with a port that is taken, nothing has been started that would have to be stopped.
  const probes = await startProbes({ port: settings.probePort, ready: () => synced && gaps().length === 0, notes, metrics });
  const transport = createTransport(access, {
    userAgent: `orka-workspaces/${settings.version}`,
    onAnswer: (...of) => metrics.request(...of),
  });
  const client = createClient(notingRights(transport, rights));
  const failures = new FailureLog(log);
  const onError = (error: unknown) => watchFailed(log, failures, error);
  const podEnds = new PodEnds();
  const watched = watchWorld(client, settings, {
    onChange: (name, before, after) => {
      if (name === 'pods') podEnds.saw(before, after);
      if (name === 'classes') tokens.follow(watched.world.classes.list());
      leading?.changed({ name, before, after });
    },
    onMissing: (name, missing) => {
      log.warn(missing ? 'kind is missing' : 'kind is served', { kind: watchedKinds[name].kind });
      lookAtPools();
    },
    onReadable: () => leading?.lookAtAll(),
    onError: (name, error) => {
      metrics.watchBroke(watchedKinds[name].kind);
      onError(error);
    },
    onBroken: (name, error) => {
      const about = { kind: watchedKinds[name].kind };
      if (error === undefined) log.info('watch works again', about);
      else log.error('watch does not come back', error, about);
    },
  });
  const tokens = watchTokens(client, { namespace: settings.controllerNamespace, onChange: lookAtPools, onError });
  function lookAtPools(): void {
    if (leading) for (const pool of watched.world.pools.list()) leading.queues.pools.add(keyOf(pool));
  }
  const pauses = new Pauses(client, {
    ...settings,
    onChange: (namespace, paused) => {
      log[paused ? 'info' : 'debug'](paused ? 'new Tasks are paused' : 'new Tasks are not paused', { namespace });
      const concerned = namespace === settings.runtimeNamespace ? settings.taskNamespaces : [namespace];
      const tasks = watched.world.tasks.list() as unknown as readonly Task[];
      for (const key of openTasksIn(concerned, tasks, systemClock.now())) leading?.queues.tasks.add(key);
    },
    onError,
  });
  void watched.synced.then(() => {
    synced = true;
  });
  const kindCheck = kindCheckOf(client, log, failures);
  const fields = watchServedFields(client, {
    onChange: lookAtPools,
    onError: (error) => failures.failed("the provider's schemas", error),
  });
  gaps = kindCheck.gaps;
  log.info('started', { version: settings.version, ...settings.gates, taskNamespaces: settings.taskNamespaces.join(',') });

  const ended = new AbortController();
  const named = nameMissing(client, [settings.runtimeNamespace, ...settings.taskNamespaces], {
    log,
    failures,
    signal: ended.signal,
  });
  const onSignal = () => ended.abort();
  process.once('SIGTERM', onSignal);
  process.once('SIGINT', onSignal);
  const over = new Promise<undefined>((resolve) => {
    ended.signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  let code = 0;
  // A process that does not know what there is must not keep one from leading that does.
  await Promise.race([Promise.all([watched.synced, fields.looked]), over]);
  const election = elect(client, {
    namespace: settings.controllerNamespace,
    name: controllerName,
    manager: controllerName,
    highestEpoch: () => Promise.resolve(highestEpoch(watched.world)),
    onLost: (reason) => {
      log.error('leadership is lost', reason);
      code = 1;
      ended.abort();
    },
    onError: (error) => {
      if (!isNotGranted(error)) failures.failed('lease', error);
    },
  });
  const leadership = await Promise.race([election.leading, over]);
  if (leadership && !ended.signal.aborted) {
    log.info('leads', { epoch: leadership.epoch });
    metrics.leading(controllerName, true);
    const writer = whileLeading(client, leadership.holds);
    leading = lead({
      settings,
      client: writer,
      world: watched.world,
      fields,
      podEnds,
      tokens,
      pauses,
      leadership,
      log,
      failures,
      metrics,
      onEffect,
      onStep,
    });
    for (const right of rights.list()) leading.lacks(right);
    // A right that is missing for these messages costs nothing else, so it is not noted.
    unserved = new UnservedTasks(whileLeading(createClient(transport), leadership.holds), {
      served: settings.taskNamespaces,
      controllerNamespace: settings.controllerNamespace,
      manager: statusManager,
      onError,
    });
    await over;
  }
  metrics.leading(controllerName, false);
  await unserved?.stop();
  await leading?.stop();
  leading = undefined;
  await election.release();
  await Promise.all([named, watched.stop(), tokens.stop(), pauses.stop(), kindCheck.stop(), fields.stop(), probes.close()]);
  transport.close();
  log.info('ended', { code });
  return code;
}

/** Series that a standby has as well, at zero: a rate needs the value before the first count. */
function startSeries(metrics: Metrics, { version }: ControllerSettings): void {
  metrics.build(version);
  metrics.leading(controllerName, false);
  for (const name of Object.keys(workers)) metrics.depth(name, () => 0);
  metrics.watches(Object.values(watchedKinds).map(({ kind }) => kind));
}

/** The rights that this process lacks, logged and counted. */
function rightsOf(log: Log, metrics: Metrics, onChange: MissingRightsOptions['onChange']): MissingRights {
  const rights = new MissingRights({
    onChange: (right, missing) => {
      if (missing) log.warn('right is missing: apply the installation again', { ...right });
      else log.info('right is granted', { ...right });
      onChange(right, missing);
    },
  });
  metrics.missingRights(() => rights.list());
  return rights;
}

function kindCheckOf(client: KubeClient, log: Log, failures: FailureLog): KindCheck {
  return checkKinds(client, {
    onChange: (gaps) => {
      if (gaps.length > 0) log.warn('kinds are not those of this controller', { because: kindsText(gaps) });
      else log.info('kinds are those of this controller');
    },
    onError: (error) => failures.failed('kinds', error),
  });
}

const mostGaps = 5;

function kindsText(gaps: readonly string[]): string {
  const more = gaps.length > mostGaps ? `; and ${gaps.length - mostGaps} more` : '';
  return `the CustomResourceDefinitions are of another version, apply those of this one: ${gaps.slice(0, mostGaps).join('; ')}${more}`;
}

/** A watch that ends is opened again and is no error; one that does not come back is reported to `onBroken`. */
function watchFailed(log: Log, failures: FailureLog, error: unknown): void {
  if (error instanceof KubeError) log.debug('watch is opened again', { because: error.message });
  else failures.failed('watch', error);
}

interface LeadOptions {
  readonly settings: ControllerSettings;
  readonly client: KubeClient;
  readonly world: World;
  readonly fields: ServedFields;
  readonly podEnds: PodEnds;
  readonly tokens: Tokens;
  readonly pauses: Pauses;
  readonly leadership: Leadership;
  readonly log: Log;
  readonly failures: FailureLog;
  readonly metrics: Metrics;
  readonly onEffect: EffectHook;
  readonly onStep: StepHook;
}

/** Begins to write. Everything that is there is looked at once. */
function lead({
  settings,
  client,
  world,
  fields,
  podEnds,
  tokens,
  pauses,
  leadership,
  log,
  failures,
  metrics,
  onEffect,
  onStep,
}: LeadOptions): Leading {
  const { epoch, signal } = leadership;
  const recorder = createRecorder(client, {
    manager: controllerName,
    reportingController: 'orka.ai/workspaces',
    reportingInstance: `${controllerName}-e${epoch}`,
    onError: (error) => {
      if (!isNotGranted(error) && !isNamespaceEnding(error)) failures.failed('event', error);
    },
  });
  const classes = createClasses(
    () => world.classes.list(),
    () => world.classes.readable(),
  );
  const stopping = new AbortController();
  const ends = AbortSignal.any([signal, stopping.signal]);
  // Each request of each attempt listens to it.
  setMaxListeners(0, ends);
  const common = {
    client,
    world,
    endOf: (podUid: string, containerId?: string) => podEnds.of(podUid, containerId),
    classes,
    manager: controllerName,
    epoch,
    clock: systemClock,
    controllerNamespace: settings.controllerNamespace,
    runtimeNamespace: settings.runtimeNamespace,
    record: createAnnouncer({ recorder, log, metrics }),
  };
  const publisher = publisherOf(settings, { client, signal: ends, failures });
  const pools = createPoolReconciler({
    ...common,
    statusManager,
    enabled: settings.gates.agentSandbox,
    idleTtl: settings.idlePoolTtl,
    tokenVersion: tokens.versionOf,
    fieldGapsOf: fields.gapsOf,
    signals: {
      milestone: (pool, what, note) => {
        const { namespace = '', name } = pool.metadata;
        log.info(what, { object: `RuntimePool ${namespace}/${name}`, note });
      },
      status: (pool, before, took) => {
        if (pool.status?.lifecycle === 'Stopped' && before !== 'Stopped') metrics.poolScaledToZero(pool.metadata.uid ?? '');
        if (before !== undefined && took !== undefined) metrics.poolMoved(before, took);
      },
      effect: (effect, phase) => {
        metrics.poolEffect(effect, phase);
        if (phase !== 'conflicted') onEffect(effect.do, phase);
      },
      attested: (result) => metrics.poolAttested(result),
    },
  });
  const tasks = createTaskReconciler({
    ...common,
    hosting: {
      agentSandboxEnabled: settings.gates.agentSandbox,
      workspaceDispatchEnabled: settings.gates.workspaceDispatch,
      defaultProvider: settings.defaultProvider,
      forges: settings.forges,
      available,
    },
    credentialsOf: pools.credentialsOf,
    lookAgain: (key) => {
      pools.lookAgain(key);
      queues.pools.add(key);
    },
    again: (key) => queues.tasks.add(key),
    onStep,
    leads: leadership.holds,
    source: publisher?.source,
    publisherService: publisher?.service,
    maxTasksPerNamespace: settings.maxTasksPerNamespace || undefined,
    taskTtlSeconds: settings.taskTtlSeconds < 0 ? undefined : settings.taskTtlSeconds,
    pauseOf: (namespace) => pauses.of(namespace),
    ledSince: systemClock.now(),
    onError: (key, error) => failures.failed('attempt', error, { task: key }),
    metrics,
    namespaceUid: async (name, aborted) => {
      const found = await get(client, { apiVersion: 'v1', kind: 'Namespace', name }, { signal: aborted });
      if (found?.metadata.uid === undefined) throw new Error(`namespace ${name} is missing`);
      return found.metadata.uid;
    },
    signal: ends,
  });
  const queue = (name: keyof typeof workers, work: WorkqueueOptions['work']): Workqueue => {
    const created = createWorkqueue({
      workers: workers[name],
      backoff: retryBackoff,
      work,
      onRun: (run) => {
        metrics.run(name, run);
        if (run.outcome === 'failed' && !signal.aborted)
          failures.failed('reconcile', run.error, { controller: name, key: run.key }, { failures: run.failures });
        else
          log.debug('reconciled', {
            controller: name,
            key: run.key,
            outcome: run.outcome,
            took: Math.round(run.took),
            waited: Math.round(run.waited),
          });
      },
    });
    metrics.depth(name, created.depth);
    return created;
  };
  const queues: Queues = {
    tasks: queue('task', tasks.reconcile),
    pools: queue('pool', pools.reconcile),
    classes: queue('class', createClassReconciler(common)),
  };
  metrics.classes(classes.states);
  metrics.tasksWaiting(tasks.waiting);
  metrics.pools(() => world.pools.list() as unknown as readonly RuntimePool[]);
  const lookAtAll = () => addAll(world, queues);
  lookAtAll();
  return {
    queues,
    lookAtAll,
    lacks: (right) => {
      const note = `the controller may not ${describeRight(right)}: apply the installation again`;
      recorder.record({ regarding: leaseOf(settings), type: 'Warning', reason: 'RightMissing', action: 'Request', note });
    },
    changed: (change) => {
      const concerned = concernedBy(change, {
        tasks: () => world.tasks.list() as unknown as readonly Task[],
        pools: () => world.pools.list() as unknown as readonly RuntimePool[],
        tasksBy: (index, key) => world.tasks.by(index, key) as unknown as readonly Task[],
        poolsOn: (node) => poolsOn(world, node),
        nextPlaces: tasks.nextPlaces,
        now: systemClock.now(),
      });
      for (const name of Object.keys(queues) as (keyof Queues)[]) for (const key of concerned[name]) queues[name].add(key);
    },
    stop: async () => {
      stopping.abort();
      // Who does not lead any more ends at once.
      const deadline = signal.aborted ? 0 : shutdownWithin / 2;
      await Promise.all([
        ...Object.values(queues).map((one: Workqueue) => one.shutDown({ deadline, grace: shutdownWithin / 2 })),
        tasks.idle(),
        closed(recorder),
      ]);
      publisher?.source.close();
    },
  };
}

/** The publisher of the installation, whose keys are kept from now on. `undefined` = it has none. */
function publisherOf(
  { publisherNamespace: namespace }: ControllerSettings,
  { client, signal, failures }: { readonly client: KubeClient; readonly signal: AbortSignal; readonly failures: FailureLog },
): { readonly source: Publisher; readonly service: string } | undefined {
  if (namespace === '') return undefined;
  const onError = (error: unknown) => failures.failed('publisher keys', error);
  const keys = new PublisherKeys({ client, namespace, manager: controllerName, clock: systemClock, onError, signal });
  void keys.keep();
  return { source: new Publisher(keys), service: `${namespace}/${publisherServiceName}` };
}

/** Every key that there is, also of pools that are gone and left something. */
function addAll(world: World, queues: Queues): void {
  for (const object of world.classes.list()) queues.classes.add(keyOf(object));
  for (const object of world.pools.list()) queues.pools.add(keyOf(object));
  for (const object of world.tasks.list()) queues.tasks.add(keyOf(object));
  for (const name of childKinds)
    for (const pool of world[name].list().map(poolOf)) if (pool !== undefined) queues.pools.add(pool);
}

/** The object that events about the controller itself regard. */
function leaseOf({ controllerNamespace }: ControllerSettings): Manifest {
  const metadata = { name: controllerName, namespace: controllerNamespace };
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata };
}

async function closed(recorder: Recorder): Promise<void> {
  await recorder.close(shutdownWithin / 2);
}

/** Task namespaces belong to users and are not installed: one that is not there is named, since a watch of it is only empty. */
async function nameMissing(
  client: KubeClient,
  namespaces: readonly string[],
  { log, failures, signal }: { readonly log: Log; readonly failures: FailureLog; readonly signal: AbortSignal },
): Promise<void> {
  for (const name of namespaces) {
    try {
      if (await get(client, { apiVersion: 'v1', kind: 'Namespace', name }, { signal })) continue;
      log.warn('namespace is missing: create it, and apply the installation again for its Role', { namespace: name });
    } catch (error) {
      if (signal.aborted) return;
      if (!isNotGranted(error)) failures.failed('namespace', error, { namespace: name });
    }
  }
}

/** Of what can be seen. A pool that cannot be read is known by its Pod, which bears the epoch that it was started in. */
function highestEpoch({ pools, pods }: World): number {
  if (!pools.readable() && !pods.readable())
    throw new Error('the highest epoch is not known: the controller may list neither all RuntimePools nor all Pods');
  const recorded = (pools.list() as unknown as readonly RuntimePool[]).map(({ status }) => status?.controllerEpoch ?? 0);
  const started = pods.list().map((pod) => deployedIdentity(pod)?.controllerEpoch ?? 0);
  return Math.max(0, ...recorded, ...started);
}
