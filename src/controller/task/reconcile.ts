import { executionOutcomes } from '../../api/index.js';
import type { ActiveInstance, RuntimePool, Task, TaskStatus } from '../../api/index.js';
import type { HarnessClient } from '../../harness/client.js';
import { HarnessError } from '../../harness/errors.js';
import { backoffOf } from '../../kube/backoff.js';
import { get } from '../../kube/client.js';
import { sleep } from '../../kube/clock.js';
import { askedWait, KubeError } from '../../kube/errors.js';
import type { KubeErrorCode } from '../../kube/errors.js';
import type { WorkResult } from '../../kube/workqueue.js';
import type { Metrics } from '../metrics.js';
import { clientOf } from '../pool/instance.js';
import type { AuthMaterial } from '../pool/memory.js';
import type { Watched } from '../world.js';
import { perform, tell } from './act.js';
import type { TaskActOptions } from './act.js';
import { cleanupDigest, runAttempt } from './attempt.js';
import type { AttemptOutcome, AttemptPort } from './attempt.js';
import { decide } from './decide.js';
import { createTaskMemory } from './memory.js';
import type { TaskMemory } from './memory.js';
import { isSettled } from './observation.js';
import type { TaskObservation } from './observation.js';
import { deployedGeneration, observeTask } from './observe.js';
import type { TaskObserverOptions } from './observe.js';
import { ordersOf, sessionOrdersOf } from './orders.js';
import type { SessionOrders } from './orders.js';
import { release, renew, reservationLife, reserve } from './reserve.js';
import type { Holder } from './reserve.js';
import { storeResult } from './result.js';
import { writeTaskStatus } from './write.js';
import { textOf } from './words.js';

export interface TaskReconcilerOptions extends Omit<TaskActOptions, 'start' | 'cleanSession'>, TaskObserverOptions {
  /** The instance of a pool was used, and is to be looked at again. */
  readonly lookAgain: (poolKey: string) => void;
  /** The Task of an attempt that is over, or could not begin, must be decided on again. */
  readonly again: (taskKey: string) => void;
  readonly onError: (taskKey: string, error: unknown) => void;
  readonly metrics: Pick<Metrics, 'attemptEnded' | 'attemptPassed'>;
  /** Aborted when this process must not write any more. */
  readonly signal: AbortSignal;
}

export interface TaskReconciler {
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<WorkResult>;
  /** Resolves when no attempt runs any more. */
  readonly idle: () => Promise<void>;
}

const mostSteps = 20;
/** Milliseconds for the end of a session: as long as a request about it is valid. */
const deletionWait = 30_000;
const busyPause = 100;
const conflictTries = 6;
/** Tries of a write that an attempt under way depends on: about half a minute. */
const passingTries = 8;
const passingBackoff = { base: 250, cap: 8_000 };
/** Between tries of an attempt that cannot begin. */
const startBackoff = { base: 1_000, cap: 30_000 };
/** What may be over a moment later. */
const passing: readonly KubeErrorCode[] = ['timeout', 'unreachable', 'too-many-requests', 'server-error'];

/** Runs Tasks: observe, decide, act; attempts run beside, one for each Task. */
export function createTaskReconciler(options: TaskReconcilerOptions): TaskReconciler {
  const memories = new Map<string, { readonly uid: string; readonly memory: TaskMemory }>();
  const attempts = new Set<Promise<void>>();
  const act: TaskActOptions = { ...options, start, cleanSession };

  /** What is known of the Task of that name is of no use to another one of it. Nobody reads what an attempt of a gone one says. */
  function memoryOf(key: string, uid: string | undefined): TaskMemory {
    const known = memories.get(key);
    if (known && known.uid === uid) return known.memory;
    known?.memory.cancel?.('deleted');
    memories.delete(key);
    const memory = createTaskMemory();
    if (uid !== undefined) memories.set(key, { uid, memory });
    return memory;
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<WorkResult> {
    const memory = memoryOf(key, options.world.tasks.get(key)?.metadata.uid);
    // What decides about a Task that is not bound yet is as it is now, not as it was.
    memory.agent = undefined;
    memory.systemPrompt = undefined;
    try {
      for (let step = 0; step < mostSteps && !signal.aborted; step++) {
        const o = observeTask(options, key, memory);
        if (!o) return undefined;
        const { effect, wait } = decide(o, options.clock.now());
        if (!effect) {
          // The rest of a settled Task needs nothing of it.
          if (isSettled(o.task) && !memory.running) memories.delete(key);
          return wait === undefined ? undefined : { requeueAfter: wait };
        }
        await perform({ options: act, o, memory, signal }, effect);
        if (effect.do === 'cancel' || effect.do === 'release') return undefined;
      }
      if (!signal.aborted) throw new Error(`Task ${key} does not settle`);
      return undefined;
    } catch (error) {
      if (!(error instanceof KubeError) || error.code !== 'conflict') throw error;
      return { requeueAfter: 20 };
    }
  }

  async function refresh(watched: Watched, key: string, signal: AbortSignal): Promise<void> {
    const [namespace = '', name = ''] = key.split('/');
    const fresh = await get(options.client, { ...watched.kind, namespace, name }, { signal });
    if (fresh) watched.wrote(fresh);
  }

  function start(o: TaskObservation, memory: TaskMemory): void {
    const cancelled = new AbortController();
    memory.running = true;
    memory.cancel = () => cancelled.abort();
    const key = keyOf(o.task);
    const run = attempt(o, cancelled.signal)
      .catch((error: unknown): AttemptOutcome => {
        if (!options.signal.aborted) options.onError(key, error);
        return { requeue: textOf(error) };
      })
      .then((outcome) => {
        memory.running = false;
        memory.cancel = undefined;
        attempts.delete(run);
        memory.held = outcome === 'settled' ? undefined : heldAgain(o, outcome.requeue);
        options.again(key);
      });
    attempts.add(run);
  }

  function heldAgain({ held, pool }: TaskObservation, says: string): NonNullable<TaskMemory['held']> {
    const tries = (held?.tries ?? 0) + 1;
    const until = options.clock.now() + backoffOf(tries, startBackoff);
    return { runtimeInstanceID: pool?.status?.activeInstance?.runtimeInstanceID, says, tries, until };
  }

  async function attempt(o: TaskObservation, cancelled: AbortSignal): Promise<AttemptOutcome> {
    const { pool } = o;
    const instance = pool?.status?.activeInstance;
    if (!pool || !instance || typeof o.frozen !== 'object' || 'problem' in o.frozen)
      return { requeue: 'its pool has no instance' };
    const poolKey = `${pool.metadata.namespace ?? ''}/${pool.metadata.name}`;
    const auth = options.credentialsOf(poolKey, instance.controllerEpoch);
    if (!auth) return { requeue: 'the credentials of its instance are not known yet' };
    const { clock, signal } = options;
    const orders = ordersOf(o.task, pool, instance, o.frozen);
    const holder: Holder = {
      poolUID: pool.metadata.uid ?? '',
      taskUID: o.task.metadata.uid ?? '',
      attempt: orders.attempt,
      controllerEpoch: options.epoch,
      runtimeInstanceID: instance.runtimeInstanceID,
    };
    const held = await onPool(poolKey, (found) => reserve({ ...options, signal }, found, holder, clock.now()));
    if (!held) return { requeue: 'its pool has no free slot' };
    const keeper = keep(poolKey, holder);
    const client = clientOf(instance.podAddress, auth);
    const port = portOf(o.task, poolKey);
    try {
      const running = { task: o.task, pool: held, instance, thawed: o.frozen, orders, client, clock, signal, cancelled };
      const outcome = await runAttempt(running, port);
      if (outcome === 'settled') {
        const task = latest(o.task);
        if (task) told(task);
        await deleteSession(o.task, instance, auth, orders, signal).catch((error: unknown) => {
          if (!signal.aborted) options.onError(keyOf(o.task), error);
        });
      }
      return outcome;
    } finally {
      keeper();
      client.close();
      // What the attempt came to does not depend on it: a slot that is not given back expires.
      if (!signal.aborted)
        await onPool(poolKey, (found) => release({ ...options, signal }, found, holder)).catch((error: unknown) =>
          options.onError(poolKey, error),
        );
      options.lookAgain(poolKey);
    }
  }

  function told(task: Task): void {
    const { phase, message, execution, delivery } = task.status ?? {};
    const { outcome } = execution ?? {};
    if (outcome === undefined) return;
    options.metrics.attemptEnded(outcome);
    const why = execution?.reason ?? delivery?.reason ?? delivery?.state ?? outcome;
    if (phase === 'Succeeded') tell(act, task, 'Normal', 'TaskSucceeded', 'Settle', 'the agent answered');
    else tell(act, task, 'Warning', why, 'Settle', message ?? outcome);
  }

  /** Holds the slot for as long as the attempt runs. */
  function keep(poolKey: string, holder: Holder): () => void {
    let cancel = options.clock.after(reservationLife / 3, again);
    let over = false;
    function again(): void {
      onPool(poolKey, (found) => renew({ ...options, signal: options.signal }, found, holder, options.clock.now()))
        .catch((error: unknown) => {
          if (!options.signal.aborted) options.onError(poolKey, error);
        })
        .finally(() => {
          if (!over) cancel = options.clock.after(reservationLife / 3, again);
        });
    }
    return () => {
      over = true;
      cancel();
    };
  }

  /** The pool's status has other writers; what they wrote is read before the next try. */
  async function onPool<T>(key: string, change: (pool: RuntimePool) => Promise<T>): Promise<T | undefined> {
    for (let attempt = 1; ; attempt++) {
      const pool = options.world.pools.get(key) as unknown as RuntimePool | undefined;
      if (!pool) return undefined;
      try {
        return await change(pool);
      } catch (error) {
        if (!(error instanceof KubeError)) throw error;
        if (error.code === 'not-found') return undefined;
        if (error.code !== 'conflict' || attempt >= conflictTries) throw error;
        await refresh(options.world.pools, key, options.signal);
      }
    }
  }

  function latest(task: Task): Task | undefined {
    const found = options.world.tasks.get(keyOf(task)) as unknown as Task | undefined;
    return found?.metadata.uid === task.metadata.uid ? found : undefined;
  }

  function portOf(task: Task, poolKey: string): AttemptPort {
    const { client, manager, metrics, signal } = options;
    return {
      advance: async (from, change) => {
        const stored = await advance(task, from, change);
        // Its counters say so as soon as there is a prompt.
        if (stored.status?.execution?.state === 'Running') options.lookAgain(poolKey);
        return stored;
      },
      storeResult: (text, receipt) => patiently(() => storeResult(client, task, { text, receipt }, { manager, signal })),
      passed: (phase, took) => metrics.attemptPassed(phase, took),
    };
  }

  /** Waits out what may pass: an attempt that is under way is worth it. */
  async function patiently<T>(write: () => Promise<T>): Promise<T> {
    for (let failures = 1; ; failures++) {
      try {
        return await write();
      } catch (error) {
        if (!mayPass(error) || failures >= passingTries || options.signal.aborted) throw error;
        await sleep(options.clock, Math.max(backoffOf(failures, passingBackoff), askedWait(error)), options.signal);
      }
    }
  }

  async function advance(task: Task, from: readonly string[], change: (task: Task) => TaskStatus): Promise<Task> {
    let conflicts = 0;
    let looked = false;
    /** The state that a write without an answer may have stored. */
    let sent: string | undefined;

    async function step(): Promise<Task | 'again'> {
      const found = latest(task);
      const state = found?.status?.execution?.state ?? '';
      const expected = found !== undefined && from.includes(state);
      if (found && !expected && state === sent) return found;
      if (!found || !expected) {
        if (!found || looked) throw new Error(`${keyOf(task)} is not in ${from.join(', ')} any more, but ${state || 'gone'}`);
        looked = true;
        return again();
      }
      const status = change(found);
      try {
        return await writeTaskStatus(options, found, status, options.signal);
      } catch (error) {
        if (mayPass(error)) sent = status.execution?.state;
        if (!(error instanceof KubeError) || error.code !== 'conflict' || ++conflicts >= conflictTries) throw error;
        return again();
      }
    }

    async function again(): Promise<'again'> {
      await refresh(options.world.tasks, keyOf(task), options.signal);
      return 'again';
    }

    for (;;) {
      const result = await patiently(step);
      if (result !== 'again') return result;
    }
  }

  async function cleanSession({ task, pool }: TaskObservation, signal: AbortSignal): Promise<void> {
    const instance = pool?.status?.activeInstance;
    const generation = instance && deployedGeneration(options.world, instance);
    if (!pool || !instance || generation === undefined) return;
    const auth = options.credentialsOf(`${pool.metadata.namespace ?? ''}/${pool.metadata.name}`, instance.controllerEpoch);
    if (auth) await deleteSession(task, instance, auth, sessionOrdersOf(task, pool, instance, generation), signal);
  }

  /** A session that is not there is deleted; the receipt says so, and nobody asks again. */
  async function deleteSession(
    task: Task,
    instance: ActiveInstance,
    auth: AuthMaterial,
    orders: SessionOrders,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = options;
    const client = clientOf(instance.podAddress, auth);
    const end = clock.elapsed() + deletionWait;
    try {
      while (!(await tryDeletion(client, orders, signal))) {
        if (clock.elapsed() >= end || signal.aborted) throw new Error('the session is still busy');
        await sleep(clock, busyPause, signal);
      }
    } finally {
      client.close();
    }
    const digest = cleanupDigest(task, orders, instance);
    await advance(task, executionOutcomes, ({ status }) => ({
      ...status,
      execution: { ...status?.execution, runtimeSessionCleanupDigest: digest },
    }));
  }

  /** `false` = it is being ended already, or its prompt is. */
  async function tryDeletion(client: HarnessClient, orders: SessionOrders, signal: AbortSignal): Promise<boolean> {
    const now = options.clock.now();
    const operation = { ...orders.operation('ds', now, 'session'), operationID: `ds-${now.toString(36)}` };
    try {
      await client.deleteSession(operation, orders.runtimeSessionID, 'task_finalized', { signal, timeout: deletionWait });
      return true;
    } catch (error) {
      if (!(error instanceof HarnessError)) throw error;
      if (error.status === 404 || error.response?.code === 'stale_fence') return true;
      if (error.retryable) return false;
      throw error;
    }
  }

  return {
    reconcile,
    idle: async () => {
      await Promise.allSettled(attempts);
    },
  };
}

function keyOf({ metadata }: Task): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

function mayPass(error: unknown): boolean {
  return error instanceof KubeError && passing.includes(error.code);
}
