import { executionOutcomes } from '../../api/index.js';
import type { ActiveInstance, ProviderKind, RuntimePool, Task } from '../../api/index.js';
import type { HarnessClient } from '../../harness/client.js';
import { instant } from '../../lib/instant.js';
import type { Settlement } from '../../harness/prompts.js';
import { backoffOf } from '../../kube/backoff.js';
import { sleep } from '../../kube/clock.js';
import { KubeError } from '../../kube/errors.js';
import { keyOf } from '../../kube/store.js';
import { redacted } from '../../domain/redaction.js';
import { cutBytes } from '../../lib/text.js';
import { describeFinding } from '../../lib/errors.js';
import type { Metrics } from '../metrics.js';
import type { SourceService } from '../publisher.js';
import { clientOf } from '../pool/instance.js';
import type { PodEnds } from '../pod-ends.js';
import type { AuthMaterial } from '../pool/memory.js';
import { podView } from '../pool/pod-view.js';
import { tell } from './act.js';
import type { TaskActOptions } from './act.js';
import { advance, conflictTries, latest, patiently, refresh } from './advance.js';
import { runAttempt } from './attempt.js';
import type { AttemptPort, AttemptResult, AttemptStep } from './attempt-port.js';
import { causeOf } from './cause.js';
import { withCleanupReceipt } from './cleanup-receipt.js';
import type { TaskMemory } from './memory.js';
import { isSettled } from './observation.js';
import type { TaskObservation } from './observation.js';
import { deployedGeneration } from './observe.js';
import { ordersOf, sessionOrdersOf } from './orders.js';
import type { SessionOrders, SessionSource } from './orders.js';
import { release, renew, reservationLife, reserve } from './reserve.js';
import type { Holder } from './reserve.js';
import { storeResult } from './result.js';
import { endSession } from './session-end.js';
import { changedCredential, readFrozenCredential } from './source-credential.js';
import type { SourceStep } from './source-run.js';
import { SourceRunner } from './source-runner.js';

export interface RunnerOptions extends Omit<TaskActOptions, 'start' | 'fetchSource' | 'cleanSession' | 'askSettlement'> {
  /** The publisher. @default - this installation has none */
  readonly source?: SourceService | undefined;
  readonly credentialsOf: (poolKey: string, epoch: number) => AuthMaterial | undefined;
  readonly endOf: PodEnds['of'];
  /** The instance of a pool was used, and is to be looked at again. */
  readonly lookAgain: (poolKey: string) => void;
  /** The Task of an attempt that is over, or could not begin, must be decided on again. */
  readonly again: (taskKey: string) => void;
  readonly onError: (taskKey: string, error: unknown) => void;
  /** Told of each step of an attempt before it begins, and again once it has been taken. */
  readonly onStep: (step: AttemptStep | SourceStep, phase: 'begins' | 'performed') => void;
  /** Whether this process leads at this very moment. */
  readonly leads: () => boolean;
  readonly metrics: Pick<Metrics, 'attemptEnded' | 'attemptPassed' | 'tokensUsed' | 'sourceCalled'>;
  /** Aborted when this process must not write any more. */
  readonly signal: AbortSignal;
}

/** Attempts run beside everything else, one for each Task. */
export interface Runner extends Pick<TaskActOptions, 'start' | 'fetchSource' | 'cleanSession' | 'askSettlement'> {
  /** Resolves when no attempt runs any more. */
  readonly idle: () => Promise<void>;
}

const notBegun = (because: string): AttemptResult => ({ outcome: 'queued', because, session: 'none' });

/** What the session of a Task with a repository begins with. */
function sessionSource({ source }: TaskObservation): SessionSource | undefined {
  if (!source || 'problem' in source || source.standing.is !== 'ready') return undefined;
  const { plan, standing } = source;
  return {
    asked: plan.asked,
    repository: plan.repository,
    relativeRoot: plan.relativeRoot,
    resolved: standing.resolved,
    prepared: standing.prepared,
  };
}

/** Between tries of an attempt that cannot begin. */
const startBackoff = { base: 1_000, cap: 30_000 };
/** Sessions of one Task in one instance. */
const sessionTries = 3;
/** Sessions of one Task, in whatever instance, whose archive does not come. */
const downloadTries = 3;
/** Milliseconds in which a node reports the end of a container, and between looks. It looks itself each second. */
const [reportedWithin, reportLook] = [5_000, 250];
/** Milliseconds for the end of a prompt that an earlier process began. */
const settlementWait = 10_000;

export function createRunner(options: RunnerOptions): Runner {
  const { clock, signal } = options;
  const attempts = new Set<Promise<void>>();

  async function step<T>(name: AttemptStep | SourceStep, take: () => Promise<T>): Promise<T> {
    // Instances are asked by it too, and do not know who leads.
    if (!options.leads()) throw new Error('this process does not lead any more');
    options.onStep(name, 'begins');
    const result = await take();
    options.onStep(name, 'performed');
    return result;
  }

  const sources = new SourceRunner({
    ...options,
    source: options.source,
    step,
    tell: (task, type, reason, note) => tell(options, task, type, reason, 'Fetch', note),
    called: (...call) => options.metrics.sourceCalled(...call),
  });

  function start(o: TaskObservation, memory: TaskMemory): void {
    const [cancelled, lost] = [new AbortController(), new AbortController()];
    memory.running = true;
    memory.begun = true;
    memory.cancel = (reason) => (reason === 'lost' ? lost : cancelled).abort();
    const key = keyOf(o.task);
    const run = attempt(o, memory, { cancelled: cancelled.signal, lost: lost.signal })
      .catch((error: unknown): AttemptResult => ({ outcome: 'failed', error, session: 'none' }))
      .then((result) => {
        memory.running = false;
        memory.cancel = undefined;
        attempts.delete(run);
        if (result.outcome === 'failed') failed(key, result.error);
        const because = result.outcome === 'queued' ? result.because : result.outcome === 'failed' && causeOf(result.error);
        memory.held = because === false ? undefined : heldAgain(o, because);
        options.again(key);
      });
    attempts.add(run);
  }

  function heldAgain({ held, pool }: TaskObservation, says: string): NonNullable<TaskMemory['held']> {
    const tries = (held?.tries ?? 0) + 1;
    const until = clock.now() + backoffOf(tries, startBackoff);
    return { runtimeInstanceID: pool?.status?.activeInstance?.runtimeInstanceID, says, tries, until };
  }

  async function attempt(
    o: TaskObservation,
    memory: TaskMemory,
    ends: { readonly cancelled: AbortSignal; readonly lost: AbortSignal },
  ): Promise<AttemptResult> {
    const { pool } = o;
    const instance = pool?.status?.activeInstance;
    if (!pool || !instance || typeof o.frozen !== 'object' || 'problem' in o.frozen) return notBegun('its pool has no instance');
    const poolKey = keyOf(pool);
    const auth = options.credentialsOf(poolKey, instance.controllerEpoch);
    if (!auth) return notBegun('the credentials of its instance are not known yet');
    const { runtimeInstanceID } = instance;
    const tried = memory.sessions?.runtimeInstanceID === runtimeInstanceID ? memory.sessions.tried : 0;
    const source = sessionSource(o);
    const orders = ordersOf(o.task, pool, instance, o.frozen, tried + 1, source);
    const holder: Holder = {
      poolUID: pool.metadata.uid ?? '',
      taskUID: o.task.metadata.uid ?? '',
      attempt: orders.attempt,
      controllerEpoch: options.epoch,
      runtimeInstanceID,
    };
    const held = await step('reserve', () => onPool(poolKey, (found) => reserve(options, found, holder, clock.now())));
    if (!held) return notBegun('its pool has no free slot');
    const client = clientOf(instance.podAddress, auth);
    const run = { task: o.task, pool: held, instance, thawed: o.frozen, orders, client, clock, signal, ...ends };
    const lastTry = tried + 1 >= sessionTries;
    const lastDownload = memory.failedDownloads + 1 >= downloadTries;
    const keeper = keep(poolKey, holder);
    try {
      const result = await runAttempt(
        { ...run, lastTry, lastDownload },
        portOf(o, poolKey, instance, { holder, lost: ends.lost }),
      );
      // A supervisor begins no generation twice.
      if (result.session !== 'none') memory.sessions = { runtimeInstanceID, tried: tried + 1 };
      if (result.outcome === 'queued' && result.failedDownload === true) memory.failedDownloads++;
      const task = result.outcome === 'settled' ? latest(options, o.task) : undefined;
      if (task) told(task, run.thawed.plan.profile.providerKind);
      const session = await tidied(o.task, client, orders, instance, result);
      if (session === 'open') memory.abandoned = { runtimeInstanceID, generation: orders.sessionGeneration };
      return { ...result, session };
    } finally {
      keeper();
      client.close();
      // What the attempt came to does not depend on it: a slot that is not given back expires.
      if (!signal.aborted)
        await step('release', () => onPool(poolKey, (found) => release(options, found, holder))).catch((error: unknown) =>
          options.onError(poolKey, error),
        );
      options.lookAgain(poolKey);
    }
  }

  /** @returns what is left of the session; one that cannot be ended now is ended at a later look at its Task, or with its instance */
  async function tidied(
    task: Task,
    client: HarnessClient,
    orders: SessionOrders,
    instance: ActiveInstance,
    { outcome, session }: AttemptResult,
  ): Promise<AttemptResult['session']> {
    if (session === 'gone' || signal.aborted) return session;
    try {
      if (outcome === 'settled') await deleteSession(task, client, orders, instance, signal);
      else if (session === 'open') await endSession(client, orders, clock, signal);
      return session === 'open' ? 'gone' : session;
    } catch (error) {
      failed(keyOf(task), error);
      return session;
    }
  }

  /** What fails because the process ends is no failure. */
  function failed(key: string, error: unknown): void {
    if (!signal.aborted) options.onError(key, error);
  }

  function told(task: Task, runtime: ProviderKind): void {
    const { phase, message, execution, conditions } = task.status ?? {};
    const { outcome } = execution ?? {};
    if (outcome === undefined) return;
    options.metrics.attemptEnded(outcome);
    options.metrics.tokensUsed(runtime, execution?.usage ?? {});
    const why = conditions?.find(({ type }) => type === 'Complete')?.reason ?? outcome;
    if (phase === 'Succeeded') tell(options, task, 'Normal', 'TaskSucceeded', 'Settle', 'the agent answered');
    else tell(options, task, 'Warning', why, 'Settle', message ?? outcome);
  }

  /** Holds the slot for as long as the attempt runs. */
  function keep(poolKey: string, holder: Holder): () => void {
    let cancel = clock.after(reservationLife / 3, again);
    let over = false;
    function again(): void {
      onPool(poolKey, (found) => renew(options, found, holder, clock.now()))
        .catch((error: unknown) => failed(poolKey, error))
        .finally(() => {
          if (!over) cancel = clock.after(reservationLife / 3, again);
        });
    }
    return () => {
      over = true;
      cancel();
    };
  }

  /** The pool's status has other writers; what they wrote is read before the next try. */
  async function onPool<T>(key: string, change: (pool: RuntimePool) => Promise<T>): Promise<T | undefined> {
    for (let tries = 1; ; tries++) {
      const pool = options.world.pools.get(key) as unknown as RuntimePool | undefined;
      if (!pool) return undefined;
      try {
        return await change(pool);
      } catch (error) {
        if (!(error instanceof KubeError)) throw error;
        if (error.code === 'not-found') return undefined;
        if (error.code !== 'conflict' || tries >= conflictTries) throw error;
        await refresh(options, options.world.pools, key);
      }
    }
  }

  function portOf(
    { task, source }: TaskObservation,
    poolKey: string,
    instance: ActiveInstance,
    { holder, lost }: { readonly holder: Holder; readonly lost: AbortSignal },
  ): AttemptPort {
    const { client, manager, metrics, world } = options;
    const poolName = poolKey.slice(poolKey.indexOf('/') + 1);
    const podOf = () => world.pods.get(`${instance.podNamespace}/${instance.podName}`);
    const began = podOf();
    const containerId = began?.metadata.uid === instance.podUID ? podView(began).containerId : undefined;
    const ended = () => options.endOf(instance.podUID, containerId);
    const podDeleted = () => {
      const pod = podOf();
      return pod?.metadata.uid !== instance.podUID || pod.metadata.deletionTimestamp !== undefined;
    };
    const report = (error: unknown) => options.onError(keyOf(task), error);
    return {
      advance: async (from, change) => {
        const stored = await advance(options, task, from, change);
        const { state, reason } = stored.status?.execution ?? {};
        // Its counters say so as soon as there is a prompt; an instance that takes none may have become unhealthy.
        if (state === 'Running' || (state === 'Submitting' && reason === 'AtCapacity')) options.lookAgain(poolKey);
        if (state === 'Running')
          tell(options, stored, 'Normal', 'PromptStarted', 'Start', `the prompt runs in RuntimePool ${poolName}`);
        return stored;
      },
      storeResult: (text, receipt) => patiently(options, () => storeResult(client, task, { text, receipt }, { manager, signal })),
      say: (from, message) => say(task, from, message).catch(report),
      report,
      passed: (phase, took) => metrics.attemptPassed(phase, took),
      serves: () => {
        const pool = options.world.pools.get(poolKey) as unknown as RuntimePool | undefined;
        // Whatever else ends an instance finishes first what has a slot.
        if (pool?.metadata.uid !== holder.poolUID || pool.metadata.deletionTimestamp !== undefined || podDeleted()) return false;
        return pool.status?.activeInstance?.runtimeInstanceID === holder.runtimeInstanceID;
      },
      ended,
      endReported: async () => {
        const until = clock.elapsed() + reportedWithin;
        while (!ended() && !lost.aborted && !signal.aborted && clock.elapsed() < until) await sleep(clock, reportLook, signal);
        return ended();
      },
      authorize: (download) => authorize(task, source, download),
      step,
    };
  }

  /** The last look at the Secret before a session gets what was read with it. */
  async function authorize(
    task: Task,
    source: TaskObservation['source'],
    download: Parameters<AttemptPort['authorize']>[0],
  ): ReturnType<AttemptPort['authorize']> {
    if (!options.source) throw new Error('this installation has no publisher');
    const { credential, asked } = source && 'plan' in source ? source.plan : {};
    if (credential && asked) {
      const found = await readFrozenCredential(options.client, latest(options, task) ?? task, credential, signal);
      if ('says' in found) return { says: describeFinding(changedCredential(asked.at, found.says).finding) };
    }
    return { authorization: await options.source.authorize(download, clock.now()) };
  }

  /** Why an attempt under way waits, in the status of its Task and once as an event. */
  async function say(task: Task, from: readonly string[], message: string): Promise<void> {
    const said = cutBytes(redacted(message), 1_000, '...<truncated>');
    if (latest(options, task)?.status?.message === said) return;
    const stored = await advance(options, task, from, ({ status }) => ({ ...status, message: said }));
    tell(options, stored, 'Warning', 'CreateRefused', 'Store', said);
  }

  /** Speaks with the instance that has, or had, the session of a Task, about that session. */
  async function withSession<T>(
    { task, pool, leftGeneration }: TaskObservation,
    ask: (client: HarnessClient, orders: SessionOrders, instance: ActiveInstance) => Promise<T>,
  ): Promise<T | undefined> {
    const instance = pool?.status?.activeInstance;
    const generation = instance && deployedGeneration(options.world, instance);
    if (!pool || !instance || generation === undefined) return undefined;
    const auth = options.credentialsOf(keyOf(pool), instance.controllerEpoch);
    if (!auth) return undefined;
    const client = clientOf(instance.podAddress, auth);
    try {
      return await ask(client, sessionOrdersOf(task, pool, instance, { pool: generation, session: leftGeneration }), instance);
    } finally {
      client.close();
    }
  }

  async function cleanSession(o: TaskObservation, aborted: AbortSignal): Promise<void> {
    await withSession(o, async (client, orders, instance) => {
      if (isSettled(o.task)) return deleteSession(o.task, client, orders, instance, aborted);
      await endSession(client, orders, clock, aborted);
      if (o.pool) options.lookAgain(keyOf(o.pool));
    });
  }

  /** A prompt that nobody reads any more is asked to end; one that has ended says how. */
  function askSettlement(o: TaskObservation, aborted: AbortSignal): Promise<Settlement | undefined> {
    return withSession(o, async (client, orders) => {
      const order = { reason: 'stream_disconnected', settlementDeadline: instant(clock.now() + settlementWait - 1_000) } as const;
      const operation = { ...orders.operation('cancel-prompt', clock.now()), operationID: `cancel-recovered-${orders.promptID}` };
      const answer = await client
        .cancel(operation, orders.runtimeSessionID, order, { signal: aborted, timeout: settlementWait })
        .catch(() => undefined);
      return answer?.settlementProven ? answer.settlement : undefined;
    });
  }

  /** A session that is not there is deleted; the receipt says so, and nobody asks again. */
  async function deleteSession(
    task: Task,
    client: HarnessClient,
    orders: SessionOrders,
    instance: ActiveInstance,
    aborted: AbortSignal,
  ): Promise<void> {
    await step('delete-session', () => endSession(client, orders, clock, aborted));
    await advance(options, task, executionOutcomes, withCleanupReceipt);
  }

  return {
    start,
    fetchSource: (...of) => sources.start(...of),
    cleanSession,
    askSettlement,
    idle: async () => {
      await Promise.allSettled([...attempts, sources.idle()]);
    },
  };
}
