import { KubeError } from '../../kube/errors.js';
import type { WorkResult } from '../../kube/workqueue.js';
import { perform } from './act.js';
import type { TaskActOptions } from './act.js';
import { decide } from './decide.js';
import { createTaskMemory } from './memory.js';
import type { TaskMemory } from './memory.js';
import { isSettled } from './observation.js';
import { observeTask } from './observe.js';
import type { TaskObserverOptions } from './observe.js';
import { createRunner } from './runner.js';
import type { RunnerOptions } from './runner.js';

export interface TaskReconcilerOptions extends RunnerOptions, TaskObserverOptions {}

export interface TaskReconciler {
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<WorkResult>;
  /** Resolves when no attempt runs any more. */
  readonly idle: () => Promise<void>;
}

const mostSteps = 20;

/** Runs Tasks: observe, decide, act; attempts run beside, one for each Task. */
export function createTaskReconciler(options: TaskReconcilerOptions): TaskReconciler {
  const memories = new Map<string, { readonly uid: string; readonly memory: TaskMemory }>();
  const runner = createRunner(options);
  const act: TaskActOptions = { ...options, ...runner };

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

  return { reconcile, idle: runner.idle };
}
