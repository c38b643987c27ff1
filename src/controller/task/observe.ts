import type { ActiveInstance, Agent, RuntimePool, Task } from '../../api/index.js';
import { isBlank } from '../../domain/admission/rule.js';
import type { Hosting } from '../../domain/admission/rule.js';
import { deployedIdentity } from '../../domain/deployed.js';
import { waitingOf } from '../../domain/queue-order.js';
import type { Waiting } from '../../domain/queue-order.js';
import { awaitsSource, sourcePlanOf, sourceStanding } from '../../domain/source-plan.js';
import { thaw } from '../../domain/thaw.js';
import { isObject } from '../../lib/json.js';
import type { Classes } from '../classes.js';
import type { Pause } from '../pauses.js';
import type { PodEnds } from '../pod-ends.js';
import { poolNameOf } from '../pool/demand.js';
import type { AuthMaterial } from '../pool/memory.js';
import { watchedKinds } from '../world.js';
import type { World } from '../world.js';
import type { TaskMemory } from './memory.js';
import type { TaskObservation } from './observation.js';
import { isBound, isSettled, mayHaveSent } from './observation.js';
import { quotaOf } from './places.js';
import type { StandingOf } from './places.js';

export interface TaskObserverOptions {
  readonly world: World;
  readonly classes: Pick<Classes, 'of'>;
  readonly hosting: Hosting;
  readonly runtimeNamespace: string;
  readonly epoch: number;
  /** `<namespace>/<name>` of the Service of the publisher. @default - there is none */
  readonly publisherService?: string | undefined;
  /** Milliseconds since 1970. */
  readonly ledSince: number;
  /** Tasks of one namespace that may be under way at once. @default as many as one likes */
  readonly maxTasksPerNamespace?: number | undefined;
  /** @default finished Tasks are kept */
  readonly taskTtlSeconds?: number | undefined;
  /** Who paused new Tasks of a namespace. @default nobody ever does */
  readonly pauseOf?: (namespace: string) => Pause | undefined;
  /** What is known of other Tasks that are not bound. */
  readonly standingOf: StandingOf;
  /** How a Pod, or the supervisor in that container of it, came to its end. */
  readonly endOf: PodEnds['of'];
  /** Of the instance that a pool had in an epoch; `undefined` = not known in this process. */
  readonly credentialsOf: (poolKey: string, epoch: number) => AuthMaterial | undefined;
}

/** Puts together what is known of a Task; reads nothing from the server. `undefined` = there is no such Task. */
export function observeTask(options: TaskObserverOptions, key: string, memory: TaskMemory): TaskObservation | undefined {
  const { world, classes, hosting, runtimeNamespace, epoch, maxTasksPerNamespace: limit } = options;
  const task = world.tasks.get(key) as unknown as Task | undefined;
  if (!task) return undefined;
  const namespace = task.metadata.namespace ?? '';
  const binding = task.status?.agentExecutionBinding;
  const agent = agentOf(world, namespace, task, memory);
  const kind = binding?.runtimeType ?? (agent === 'unread' ? undefined : agent?.spec.runtime?.type);
  const frozen = binding ? frozenOf(task, runtimeNamespace, memory) : 'unbound';
  const name = poolNameOf(task);
  const pool = name === undefined ? undefined : (world.pools.get(`${namespace}/${name}`) as unknown as RuntimePool | undefined);
  const held = memory.held?.runtimeInstanceID === pool?.status?.activeInstance?.runtimeInstanceID ? memory.held : undefined;
  return {
    task,
    hosting,
    unreadableKinds: unreadableKinds(world, namespace, task),
    agent,
    systemPrompt: systemPromptOf(agent, memory),
    poolClass: kind && classes.of(kind),
    frozen,
    pool,
    rivals: rivalsOf(world, task, pool),
    quota:
      limit === undefined || binding
        ? undefined
        : quotaOf(task, world.tasks.by('openIn', namespace) as unknown as readonly Task[], limit, options.standingOf),
    paused: options.pauseOf?.(namespace),
    namespaceUid: memory.namespaceUid,
    epoch,
    ledSince: options.ledSince,
    ttlSeconds: options.taskTtlSeconds,
    source: sourceOf(options, task, frozen, memory),
    fetching: memory.source.run !== undefined,
    running: memory.running,
    begun: memory.begun,
    ended: podUidOf(task) === undefined ? undefined : options.endOf(podUidOf(task) ?? ''),
    held,
    refused: memory.refused,
    lost: memory.running && isLost(world, task),
    leftSession: memory.running ? 'none' : leftSession(options, task, memory),
    leftGeneration: memory.abandoned?.generation ?? task.status?.execution?.runtimeSessionGeneration ?? 1,
  };
}

function sourceOf(
  { hosting: { forges }, publisherService }: TaskObserverOptions,
  task: Task,
  frozen: TaskObservation['frozen'],
  memory: TaskMemory,
): TaskObservation['source'] {
  if (typeof frozen !== 'object' || 'problem' in frozen || isSettled(task) || mayHaveSent(task)) return undefined;
  const plan = sourcePlanOf(task, frozen.workspace, { forges, service: publisherService });
  if (plan === undefined || 'problem' in plan) return plan;
  const standing = sourceStanding(plan, task.status?.execution);
  const { run, refusal, preparedAt, heldUntil } = memory.source;
  return {
    plan,
    standing,
    work: run?.work,
    since: run?.since ?? 0,
    says: run?.says(),
    refusal,
    preparedAt: preparedAt ?? (standing.is === 'ready' ? standing.startedAt : 0),
    heldUntil: heldUntil ?? 0,
  };
}

/** An Agent decides about a Task until it is bound, or deleted. */
function unreadableKinds(world: World, namespace: string, task: Task): readonly string[] {
  const decided = isBound(task) || isSettled(task) || task.metadata.deletionTimestamp !== undefined;
  const names = decided ? (['pools'] as const) : (['pools', 'agents'] as const);
  return names.filter((name) => !world[name].readable(namespace)).map((name) => watchedKinds[name].kind);
}

/** Only who is queued itself, for an instance that takes work, has rivals. */
function rivalsOf({ tasks }: Pick<World, 'tasks'>, task: Task, pool: RuntimePool | undefined): readonly Waiting[] {
  if (task.status?.execution?.state !== 'Queued' || pool?.status?.admissionState !== 'Accepting') return [];
  const holders = (pool.status.capacity?.reservations ?? []).map(({ taskUID }) => taskUID);
  const { namespace, uid } = task.metadata;
  return (tasks.by('pool', `${namespace ?? ''}/${pool.metadata.name}`) as unknown as readonly Task[])
    .filter((one) => {
      const { metadata, status } = one;
      return (
        status?.execution?.state === 'Queued' &&
        metadata.namespace === namespace &&
        status.execution.runtimePoolName === pool.metadata.name &&
        metadata.uid !== uid &&
        metadata.deletionTimestamp === undefined &&
        !awaitsSource(one) &&
        !holders.includes(metadata.uid ?? '')
      );
    })
    .map(waitingOf);
}

/** A watch may lag behind the one of Tasks; an Agent that it does not know is asked for before a Task is refused for it. */
function agentOf(world: World, namespace: string, { spec }: Task, memory: TaskMemory): Agent | 'unread' | undefined {
  const name = spec.agentRef?.name;
  if (isBlank(name)) return undefined;
  const known = world.agents.get(`${namespace}/${name}`) as unknown as Agent | undefined;
  return known ?? (memory.agent === undefined ? 'unread' : (memory.agent.found ?? undefined));
}

function systemPromptOf(agent: Agent | 'unread' | undefined, memory: TaskMemory): TaskObservation['systemPrompt'] {
  const reference = agent === 'unread' ? undefined : agent?.spec.systemPrompt?.configMapRef;
  if (!reference || agent === 'unread') return 'absent';
  if (isBlank(reference.name) || isBlank(reference.key)) return { missing: `${reference.name}/${reference.key}` };
  const { systemPrompt } = memory;
  return systemPrompt?.of === promptSource(agent) ? systemPrompt.found : 'unread';
}

/** `namespace/name/key` of the ConfigMap that an Agent takes its system prompt from. */
export function promptSource(agent: Agent | undefined): string {
  const { name = '', key = '' } = agent?.spec.systemPrompt?.configMapRef ?? {};
  return `${agent?.metadata.namespace ?? ''}/${name}/${key}`;
}

function frozenOf(task: Task, runtimeNamespace: string, memory: TaskMemory): TaskObservation['frozen'] {
  const { snapshot } = memory;
  if (snapshot === undefined || snapshot.id !== task.status?.agentExecutionBinding?.snapshot.id) return 'unread';
  if (snapshot.body === undefined) {
    const finding = {
      at: `Task ${task.metadata.namespace ?? ''}/${task.metadata.name}`,
      field: 'snapshot',
      found: 'nothing',
      allowed: snapshot.id,
    };
    return { problem: finding };
  }
  memory.thawed ??= thaw(task, snapshot.body, runtimeNamespace);
  return memory.thawed;
}

/** The Pod of a running attempt ended, or is not there any more. What is being deleted may still settle. */
function isLost({ pods }: Pick<World, 'pods'>, { status }: Task): boolean {
  // The instance of the attempt before is still on record.
  if (status?.execution?.state === 'Queued') return false;
  const podUid = podUidOf({ status });
  if (podUid === undefined || !pods.readable()) return false;
  const [pod] = pods.by('uid', podUid);
  const phase = isObject(pod?.['status']) ? pod['status']['phase'] : undefined;
  return pod === undefined || phase === 'Failed' || phase === 'Succeeded';
}

/** UID of the Pod of the last attempt. */
function podUidOf({ status }: Pick<Task, 'status'>): string | undefined {
  return status?.execution?.runtimeInstanceID?.split('.')[0];
}

/** A session ends with its instance: another one, or none, is the proof. Source: workload.md §7.12, dispatch.md §4.5. */
function leftSession(
  { world, credentialsOf }: TaskObserverOptions,
  task: Task,
  { abandoned }: TaskMemory,
): TaskObservation['leftSession'] {
  const execution = task.status?.execution;
  const begun = execution?.runtimeSessionUID !== undefined && execution.runtimeSessionCleanupDigest === undefined;
  const onRecord = begun && (isSettled(task) || mayHaveSent(task));
  if (!onRecord && !abandoned) return 'none';
  const key = `${task.metadata.namespace ?? ''}/${execution?.runtimePoolName ?? ''}`;
  const pool = world.pools.get(key) as unknown as RuntimePool | undefined;
  const instance = pool?.status?.activeInstance;
  const instanceOf = abandoned?.runtimeInstanceID ?? execution?.runtimeInstanceID;
  if (instance?.runtimeInstanceID !== instanceOf || !instance) return onRecord ? 'gone' : 'none';
  const known = credentialsOf(key, instance.controllerEpoch) && deployedGeneration(world, instance) !== undefined;
  return known ? 'reachable' : 'unreachable';
}

/** Generation of the pool that an instance was started as: a later one is not its own. */
export function deployedGeneration(world: Pick<World, 'pods'>, instance: ActiveInstance): number | undefined {
  const pod = world.pods.get(`${instance.podNamespace}/${instance.podName}`);
  return pod?.metadata.uid === instance.podUID ? deployedIdentity(pod)?.poolGeneration : undefined;
}
