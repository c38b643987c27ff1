import type { ActiveInstance, Agent, Manifest, RuntimePool, Task, TaskStatus } from '../../src/api/index.js';
import { taskKind, validate, validateUpdate } from '../../src/api/index.js';
import type { ClassVerdict } from '../../src/controller/classes.js';
import type { TaskObservation } from '../../src/controller/task/observation.js';
import type { WatchedName, World } from '../../src/controller/world.js';
import { watchedKinds } from '../../src/controller/world.js';
import { queuedStatus } from '../../src/domain/admission/project.js';
import type { Hosting } from '../../src/domain/admission/rule.js';
import { available } from '../../src/domain/available.js';
import { finalizers, labelKeys } from '../../src/domain/labels.js';
import { planTask } from '../../src/domain/plan.js';
import type { Plan } from '../../src/domain/plan.js';
import { bind, freeze } from '../../src/domain/snapshot.js';
import { thaw } from '../../src/domain/thaw.js';
import type { Thawed } from '../../src/domain/thaw.js';
import { classDigest, compile } from '../../src/render/compile.js';
import { renderRuntimePool } from '../../src/render/runtime-pool.js';
import { foundBy } from './found-by.js';
import type { MemoryClient } from './memory-client.js';
import { agent as anAgent, poolClass, task as aTask } from './objects.js';

/** When every Task of these tests was created. */
export const created = Date.UTC(2030, 0, 1);
export const at = (now: number): string => new Date(now).toISOString().replace('.000Z', 'Z');
export const epoch = 3;
export const hosting: Hosting = {
  agentSandboxEnabled: true,
  workspaceDispatchEnabled: true,
  defaultProvider: '',
  forges: ['github.com', 'git.example:8443'],
  available,
};

const compiled = compile(poolClass());
export const readyClass = {
  state: 'ready',
  name: 'codex-standard',
  compiled,
  digest: classDigest(compiled),
} as const satisfies ClassVerdict;

type Change = Partial<Task['spec']>;

export function planOf(task: Task, agent: Agent = anAgent(), spec = poolClass()): Plan {
  const planned = planTask({ task, agent, poolClass: spec, defaultProvider: '' });
  if ('problem' in planned) throw new Error(JSON.stringify(planned.problem));
  return planned;
}

export function newTask(spec: Change = {}, metadata: Partial<Task['metadata']> = {}): Task {
  const task = aTask(spec);
  return { ...task, metadata: { ...task.metadata, creationTimestamp: at(created), resourceVersion: '1', ...metadata } };
}

/** One that carries finalizer and label, and is not bound yet. */
export function takenTask(spec: Change = {}): Task {
  const task = newTask(spec);
  return {
    ...task,
    metadata: { ...task.metadata, finalizers: [finalizers.task], labels: { [labelKeys.taskPool]: planOf(task).poolName } },
  };
}

export interface Bound {
  readonly task: Task;
  readonly plan: Plan;
  readonly body: string;
  readonly thawed: Thawed;
}

/** One that is bound and, unless it is told otherwise, queued for {@link poolOf} its plan. */
export function boundTask(
  spec: Change = {},
  {
    agent = anAgent(),
    status,
    plan: planned,
  }: { readonly agent?: Agent; readonly status?: TaskStatus; readonly plan?: Plan } = {},
): Bound {
  const taken = takenTask(spec);
  const plan = planned ?? planOf(taken, agent);
  const snapshot = freeze(taken, agent, plan);
  const binding = { ...bind(taken, agent, plan, snapshot, 'ns-uid'), boundAt: at(created) };
  const uid = taken.metadata.uid ?? '';
  const queued =
    status ?? queuedStatus(plan, { uid: 'pool-uid-1', reused: false }, { controllerEpoch: epoch, taskUID: uid }, at(created));
  const task = { ...taken, status: { ...queued, agentExecutionBinding: binding } } as Task;
  const thawed = thaw(task, snapshot.body, plan.runtimeNamespace);
  if ('problem' in thawed) throw new Error(JSON.stringify(thawed.problem));
  return { task, plan, body: snapshot.body, thawed };
}

/** The same Task with another state of its execution. */
export function inState(task: Task, execution: TaskStatus['execution'], change: Partial<TaskStatus> = {}): Task {
  return { ...task, status: { ...task.status, ...change, execution: { ...task.status?.execution, ...execution } } };
}

export function instanceOf(plan: Plan): ActiveInstance {
  return {
    podNamespace: 'orka-runtimes',
    podName: 'pod',
    podAddress: '127.0.0.1',
    podUID: 'pod-uid-1',
    bootID: 'boot-1',
    runtimeInstanceID: 'pod-uid-1.boot-1',
    controllerEpoch: epoch,
    protocolVersion: 'orka.harness.v2',
    profileDigest: plan.profileDigest,
    profileDigestSchemaVersion: '1',
    providerTokenGeneration: 'a'.repeat(16),
    lastObservedTime: at(created),
  };
}

/** The pool of a plan, serving. */
export function poolOf(plan: Plan, status: Partial<NonNullable<RuntimePool['status']>> = {}): RuntimePool {
  const pool = renderRuntimePool(plan, {
    poolClass: { name: readyClass.name, digest: readyClass.digest },
    demandedAt: at(created),
  }) as unknown as RuntimePool;
  return {
    ...pool,
    metadata: { ...pool.metadata, uid: 'pool-uid-1', generation: 2, resourceVersion: '7' },
    status: {
      observedGeneration: 2,
      controllerEpoch: epoch,
      lifecycle: 'Serving',
      admissionState: 'Accepting',
      message: 'one exact instance accepts work',
      activeInstance: instanceOf(plan),
      capacity: { maxResidentSessions: 1, maxRunningPrompts: 1, residentSessions: 0, runningPrompts: 0 },
      conditions: [
        { type: 'AdmissionReady', status: 'True', reason: 'Serving', message: 'serves', lastTransitionTime: at(created) },
      ],
      ...status,
    },
  };
}

/** What is seen of a Task whose class is ready and whose pool, if it is bound, serves. */
export function seen(task: Task, change: Partial<TaskObservation> = {}): TaskObservation {
  return {
    task,
    hosting,
    agent: anAgent(),
    systemPrompt: 'absent',
    poolClass: readyClass,
    frozen: 'unbound',
    pool: undefined,
    rivals: [],
    quota: undefined,
    paused: undefined,
    namespaceUid: 'ns-uid',
    unreadableKinds: [],
    epoch,
    ledSince: created,
    ttlSeconds: undefined,
    source: undefined,
    fetching: false,
    running: false,
    begun: false,
    ended: undefined,
    lost: false,
    held: undefined,
    refused: undefined,
    leftSession: 'none',
    leftGeneration: 1,
    ...change,
  };
}

/** A watch that never lags: what is stored is known. */
export function worldOf(client: MemoryClient): World {
  const watched = Object.entries(watchedKinds).map(([name, kind]) => {
    const all = () => [...client.stored.values()].filter((one) => one.kind === kind.kind);
    const keyOf = ({ metadata }: Manifest) => `${metadata.namespace ?? ''}/${metadata.name}`;
    return [
      name,
      {
        kind,
        get: (key: string) => all().find((one) => keyOf(one) === key),
        list: all,
        by: foundBy(name as WatchedName, all),
        wrote: () => undefined,
        removed: () => undefined,
        missing: () => false,
        readable: () => true,
      },
    ] as const;
  });
  return Object.fromEntries(watched) as unknown as World;
}

/** What the API server would find wrong with a written Task; an update follows the rules of transitions too. */
export function problemsOf(before: Manifest | undefined, after: Manifest): readonly unknown[] {
  if (after.kind !== taskKind.kind) return [];
  const object = { ...after, metadata: { name: after.metadata.name, namespace: after.metadata.namespace } };
  const previous = before && { ...before, metadata: object.metadata };
  return previous ? validateUpdate(taskKind, previous, object) : validate(taskKind, object);
}
