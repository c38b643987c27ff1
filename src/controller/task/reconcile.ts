import type { Task } from '../../api/index.js';
import { KubeError } from '../../kube/errors.js';
import { keyOf } from '../../kube/store.js';
import type { WorkResult } from '../../kube/workqueue.js';
import { perform } from './act.js';
import type { TaskActOptions } from './act.js';
import { mayPass } from './advance.js';
import { decide } from './decide.js';
import { createTaskMemory } from './memory.js';
import type { TaskMemory } from './memory.js';
import type { TaskDecision, WaitsFor } from './decision.js';
import { isSettled, mayHaveSent } from './observation.js';
import type { TaskObservation } from './observation.js';
import { observeTask } from './observe.js';
import type { TaskObserverOptions } from './observe.js';
import { nextBeside, standingAfter } from './places.js';
import type { Standing } from './places.js';
import { CreateRefused, refusedAgain } from './refused.js';
import { createRunner } from './runner.js';
import type { RunnerOptions } from './runner.js';

export interface TaskReconcilerOptions extends RunnerOptions, Omit<TaskObserverOptions, 'standingOf'> {}

export interface TaskReconciler {
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<WorkResult>;
  /** Keys of the Tasks that may go on now in the namespace of one whose place may be free. */
  readonly nextPlaces: (task: Pick<Task, 'metadata'>) => readonly string[];
  /** What each Task waits for that has not begun. */
  readonly waiting: () => Iterable<WaitsFor>;
  /** Resolves when no attempt runs any more, and no repository is fetched. */
  readonly idle: () => Promise<void>;
}

const mostSteps = 20;

/** Runs Tasks: observe, decide, act; attempts run beside, one for each Task. */
export function createTaskReconciler(options: TaskReconcilerOptions): TaskReconciler {
  const memories = new Map<string, { readonly uid: string; readonly memory: TaskMemory }>();
  const runner = createRunner(options);
  const act: TaskActOptions = { ...options, ...runner };

  const observer: TaskObserverOptions = { ...options, standingOf };

  function standingOf(task: Task): Standing {
    const known = memories.get(keyOf(task));
    return known?.uid === task.metadata.uid ? known?.memory.standing : undefined;
  }

  /** Known to all before anything is written: who looks next counts it. A place that is given up is for whoever comes next. */
  function stand(task: Task, memory: TaskMemory, standing: Standing): void {
    const before = memory.standing;
    memory.standing = standing;
    const frees = standing === 'held-up' && before !== 'held-up';
    if (frees) for (const next of nextPlaces(task)) options.again(next);
  }

  function nextPlaces(task: Pick<Task, 'metadata'>): readonly string[] {
    const { world, clock, maxTasksPerNamespace: limit } = options;
    if (limit === undefined) return [];
    const open = world.tasks.by('openIn', task.metadata.namespace ?? '') as unknown as readonly Task[];
    return nextBeside(task, open, limit, standingOf, clock.now()).map(keyOf);
  }

  /** What is known of the Task of that name is of no use to another one of it. Nobody reads what an attempt of a gone one says. */
  function memoryOf(key: string, uid: string | undefined): TaskMemory {
    const known = memories.get(key);
    if (known && known.uid === uid) return known.memory;
    known?.memory.cancel?.('deleted');
    known?.memory.source.run?.cancel();
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
        const o = observeTask(observer, key, memory);
        if (!o) return undefined;
        const decision = decide(o, options.clock.now());
        memory.waits = waitOf(o, decision);
        stand(o.task, memory, standingAfter(o, decision, memory.standing));
        const { effect, wait } = decision;
        if (!effect) {
          // The rest of a settled Task needs nothing of it.
          if (isSettled(o.task) && !memory.running) memories.delete(key);
          return wait === undefined ? undefined : { requeueAfter: wait };
        }
        try {
          await perform({ options: act, o, memory, signal }, effect);
          if (effect.do === 'bind' || effect.do === 'queue') memory.refused = undefined;
        } catch (error) {
          if (!(error instanceof CreateRefused)) throw error;
          memory.refused = refusedAgain(memory, error, options.clock);
        }
        if (effect.do === 'cancel' || effect.do === 'release' || effect.do === 'delete-task') return undefined;
      }
      if (!signal.aborted) throw new Error(`Task ${key} does not settle`);
      return undefined;
    } catch (error) {
      if (error instanceof KubeError && error.code === 'conflict') return { requeueAfter: 20 };
      const task = options.world.tasks.get(key) as unknown as Task | undefined;
      // A binding that may have been stored keeps its place; who only fails is in nobody's way.
      if (task && !(memory.standing === 'enters' && mayPass(error))) stand(task, memory, 'held-up');
      throw error;
    }
  }

  function* waiting(): Generator<WaitsFor> {
    for (const { memory } of memories.values()) if (memory.waits !== undefined) yield memory.waits;
  }

  return { reconcile, nextPlaces, waiting, idle: runner.idle };
}

/** What a Task waits for after a decision; one that runs, settles or is deleted waits for nothing. */
function waitOf(o: TaskObservation, { effect, waits }: TaskDecision): WaitsFor | undefined {
  const reason = waits ?? (effect?.do === 'say' ? effect.reason : undefined);
  if (reason !== undefined) return reason;
  const idle = effect === undefined || effect.do === 'say';
  const begun = o.running || isSettled(o.task) || o.task.metadata.deletionTimestamp !== undefined || mayHaveSent(o.task);
  return idle && !begun ? 'RuntimePoolStarting' : undefined;
}
