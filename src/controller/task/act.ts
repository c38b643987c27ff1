import type { Agent, RuntimePool, Task, TaskExecutionStatus, TaskStatus } from '../../api/index.js';
import { refusedStatus, queuedStatus } from '../../domain/admission/project.js';
import { annotationKeys, finalizers, labelKeys } from '../../domain/labels.js';
import type { Plan } from '../../domain/plan.js';
import { poolMismatch } from '../../domain/pool-match.js';
import { redacted } from '../../domain/redaction.js';
import { attemptDigest, bind, freeze } from '../../domain/snapshot.js';
import type { Thawed } from '../../domain/thaw.js';
import type { Settlement } from '../../harness/prompts.js';
import { get } from '../../kube/client.js';
import type { KubeClient } from '../../kube/client.js';
import { timestamp } from '../../kube/clock.js';
import type { Clock } from '../../kube/clock.js';
import { create } from '../../kube/create.js';
import { isNotGranted, KubeError } from '../../kube/errors.js';
import type { KubeEvent } from '../../kube/events.js';
import { remove } from '../../kube/remove.js';
import type { JsonObject } from '../../lib/json.js';
import { isObject } from '../../lib/json.js';
import { renderRuntimePool } from '../../render/runtime-pool.js';
import { patchWatched } from '../patch.js';
import { demandOnRecord, isOutdated } from '../pool/demand.js';
import { watchedKinds } from '../world.js';
import type { World } from '../world.js';
import { withCleanupReceipt } from './cleanup-receipt.js';
import type { Ending, TaskEffect } from './decision.js';
import type { TaskMemory } from './memory.js';
import { classAvailable } from './observation.js';
import type { TaskObservation } from './observation.js';
import { promptSource } from './observe.js';
import { creating } from './refused.js';
import { readReceipt } from './result.js';
import { readSourceCredential, unusableCredential } from './source-credential.js';
import type { SourceWork } from './source-run.js';
import { readSnapshot, storeSnapshot } from './snapshot-secret.js';
import { ended, undelivered } from './status.js';
import type { Undelivered } from './status.js';
import { patchTask, writeTaskStatus } from './write.js';

export interface TaskActOptions {
  readonly client: KubeClient;
  readonly world: World;
  readonly manager: string;
  readonly epoch: number;
  readonly clock: Clock;
  readonly record: (event: KubeEvent) => void;
  /** Runs an attempt beside everything else. */
  readonly start: (o: TaskObservation, memory: TaskMemory) => void;
  /** Asks the publisher beside everything else. */
  readonly fetchSource: (o: TaskObservation, memory: TaskMemory, work: SourceWork) => void;
  /** Deletes the session that a settled attempt left behind. */
  readonly cleanSession: (o: TaskObservation, signal: AbortSignal) => Promise<void>;
  /** How a prompt that an earlier process began has ended, if its instance can still prove it. */
  readonly askSettlement: (o: TaskObservation, signal: AbortSignal) => Promise<Settlement | undefined>;
  /** UID of a namespace, asked for by each Task: another one may have the name by now. */
  readonly namespaceUid: (name: string, signal: AbortSignal) => Promise<string>;
}

export interface TaskWork {
  readonly options: TaskActOptions;
  readonly o: TaskObservation;
  readonly memory: TaskMemory;
  readonly signal: AbortSignal;
}

/** Performs one effect. Decides nothing; whatever it throws is tried again. */
export async function perform(work: TaskWork, effect: TaskEffect): Promise<void> {
  const { o, options, memory, signal } = work;
  const now = options.clock.now();
  switch (effect.do) {
    case 'read-agent':
      memory.agent = { found: await readAgent(work) };
      return;
    case 'read-system-prompt':
      memory.systemPrompt = await readSystemPrompt(work);
      return;
    case 'refuse': {
      const status = refusedStatus(o.task, effect.refusal, o.hosting.defaultProvider, timestamp(now));
      const task = await writeTaskStatus(options, o.task, { ...o.task.status, ...status }, signal);
      const reason = status.executionWorkspace?.reason ?? effect.refusal.reason ?? 'TaskRefused';
      tell(options, task, 'Warning', reason, 'Admit', status.message ?? '');
      return;
    }
    case 'take':
      await take(work, effect.plan);
      return;
    case 'bind':
      await bindTask(work, effect.plan, effect.agent);
      return;
    case 'read-snapshot': {
      const id = o.task.status?.agentExecutionBinding?.snapshot.id ?? '';
      memory.snapshot = { id, body: await readSnapshot(options.client, o.task, id, signal) };
      memory.thawed = undefined;
      return;
    }
    case 'read-namespace':
      memory.namespaceUid = await options.namespaceUid(o.task.metadata.namespace ?? '', signal);
      return;
    case 'queue':
      await queue(work, effect.recovered);
      return;
    case 'freeze-credential':
      await freezeCredential(work);
      return;
    case 'fetch-source':
      options.fetchSource(o, memory, effect.work);
      return;
    case 'cancel-source':
      memory.source.run?.cancel();
      memory.source.run = undefined;
      return;
    case 'start':
      options.start(o, memory);
      return;
    case 'say': {
      const task = await writeTaskStatus(options, o.task, saying(o.task, effect, timestamp(now)), signal);
      if (effect.message !== undefined) tell(options, task, 'Normal', effect.reason ?? 'Waiting', 'Wait', effect.message);
      return;
    }
    case 'settle': {
      const task = await writeTaskStatus(options, o.task, ended(o.task, effect.ending, now), signal);
      // What its user wants is no cause for worry.
      const type = effect.ending.reason === 'Cancelled' ? 'Normal' : 'Warning';
      tell(options, task, type, effect.ending.cause ?? effect.ending.reason, 'Settle', effect.ending.message);
      return;
    }
    case 'settle-from-record':
      await settleFromRecord(work);
      return;
    case 'cancel':
      memory.cancel?.(effect.reason);
      return;
    case 'clean-session':
      await options.cleanSession(o, signal);
      memory.abandoned = undefined;
      return;
    case 'record-cleanup':
      await writeTaskStatus(options, o.task, withCleanupReceipt(o.task), signal);
      return;
    case 'delete-task':
      await deleteTask(work, effect.because);
      return;
    case 'release': {
      const left = (o.task.metadata.finalizers ?? []).filter((one) => one !== finalizers.task);
      await patchTask(options, o.task, { finalizers: left }, signal);
      return;
    }
  }
}

/** Only as it was looked at: a Task that was written since is decided on again. */
async function deleteTask({ o, options, signal }: TaskWork, because: string): Promise<void> {
  const { uid = '', resourceVersion, namespace = '', name } = o.task.metadata;
  const ref = { ...watchedKinds.tasks, namespace, name };
  const precondition = resourceVersion === undefined ? {} : { resourceVersion };
  const outcome = await remove(options.client, ref, { uid, ...precondition, propagation: 'Background', signal });
  if (outcome === 'another')
    throw new KubeError('conflict', { at: `Task ${namespace}/${name}`, says: 'it was changed, or is another one by now' });
  if (outcome === 'requested') tell(options, o.task, 'Normal', 'TaskExpired', 'Delete', because);
}

/**
 * The receipt proves the answer; of the workspace nothing is proven any more. Without one only a proven failure says more than that nobody
 * knows. Source: dispatch.md §4.8.
 */
async function settleFromRecord(work: TaskWork): Promise<void> {
  const { o, options, signal } = work;
  const receipt = await receiptOf(work);
  const { promptID, attempt } = o.task.status?.execution ?? {};
  const own = receipt?.taskUID === o.task.metadata.uid && receipt?.promptID === promptID && receipt?.attempt === attempt;
  const { says, cause } = interruptionOf(o);
  const lost: Undelivered = {
    state: 'DeliveryConflict',
    reason: 'RuntimeWorkspaceLost',
    cause,
    message: `${says} its result was being settled: the agent answered, but whether it left the workspace as it was is not known`,
  };
  const status = own ? undelivered(o.task, lost, options.clock.now()) : ended(o.task, await endingOf(work), options.clock.now());
  const task = await writeTaskStatus(options, o.task, status, signal);
  const reason = status.conditions?.find(({ type }) => type === 'Complete')?.reason ?? 'RuntimeLost';
  tell(options, task, 'Warning', reason, 'Settle', status.message ?? '');
}

/** The answer of a Task that is deleted goes with it: that it cannot be read, since the Role of its namespace went first, must not keep the Task. */
async function receiptOf({ o, options, signal }: TaskWork): ReturnType<typeof readReceipt> {
  try {
    return await readReceipt(options.client, o.task, signal);
  } catch (error) {
    if (o.task.metadata.deletionTimestamp !== undefined && isNotGranted(error)) return undefined;
    throw error;
  }
}

/** Who lost an attempt that may have sent its prompt, as the beginning of a sentence, and in one word. */
function interruptionOf({ begun, ended: instance }: TaskObservation): { readonly says: string; readonly cause: string } {
  // Whoever leads now ends the instances of before; what ended one otherwise is the cause.
  if (instance && instance.cause !== 'PodDeleted') return { says: `${instance.says} while`, cause: instance.cause };
  return begun
    ? { says: 'the controller lost its connection while', cause: 'RuntimeLost' }
    : { says: 'the controller restarted or was upgraded while', cause: 'ControllerRestarted' };
}

async function endingOf({ o, options, signal }: TaskWork): Promise<Ending> {
  const settlement = o.leftSession === 'reachable' ? await options.askSettlement(o, signal) : undefined;
  const { says, cause } = interruptionOf(o);
  const sent = `${says} the prompt ran, or was being sent`;
  if (settlement?.outcome === 'failed')
    return { state: 'Failed', reason: 'PromptFailed', message: `${sent}; its instance says that it failed`, cause };
  const how = settlement
    ? `its instance says that it ended (${settlement.outcome}), but its answer is lost`
    : 'what came of it is not known';
  const message =
    o.task.status?.execution?.state === 'Settling'
      ? `${says} its result was being settled, and no receipt of it was left`
      : `${sent}; ${how}, and it is not sent again`;
  return { state: 'OutcomeUnknown', reason: 'RuntimeLost', message, cause };
}

/** Whatever a queued Task waits for, it has no slot yet. A more telling reason stays. Source: workload.md §7.11, §8.5. */
function saying(task: Task, { message, reason: why }: Extract<TaskEffect, { readonly do: 'say' }>, now: string): TaskStatus {
  const before = task.status ?? {};
  const said = { ...withMessage(before, message), phase: before.phase ?? ('Pending' as const) };
  const status = withClass(said, why === 'RuntimePoolClassMissing' ? (message ?? '') : undefined, now);
  if (before.execution?.state !== 'Queued') return status;
  const { reason, ...execution } = before.execution;
  const kept = reason !== undefined && reason !== 'AtCapacity' ? reason : message === undefined ? undefined : 'AtCapacity';
  return { ...status, execution: { ...execution, ...(kept === undefined ? {} : { reason: kept }) } };
}

/** Records that the class is missing, and since when; or that it is not, by no condition at all. */
function withClass(status: TaskStatus, missing: string | undefined, now: string): TaskStatus {
  const { conditions = [], ...rest } = status;
  const before = conditions.find(({ type }) => type === classAvailable);
  if (!before && missing === undefined) return status;
  const others = conditions.filter((one) => one !== before);
  if (missing === undefined) return others.length > 0 ? { ...rest, conditions: others } : rest;
  const condition = {
    type: classAvailable,
    status: 'False' as const,
    reason: 'RuntimePoolClassMissing',
    message: missing,
    lastTransitionTime: before?.lastTransitionTime ?? now,
  };
  return { ...rest, conditions: [...others, condition] };
}

function withMessage({ message: _before, ...status }: TaskStatus, message: string | undefined): TaskStatus {
  return message === undefined ? status : { ...status, message };
}

export function tell(
  { record }: Pick<TaskActOptions, 'record'>,
  task: Task,
  type: KubeEvent['type'],
  reason: string,
  action: string,
  note: string,
): void {
  record({ regarding: task, type, reason, action, note: redacted(note) });
}

async function readAgent({ o, options, signal }: TaskWork): Promise<Agent | undefined> {
  const [namespace, name] = [o.task.metadata.namespace ?? '', o.task.spec.agentRef?.name ?? ''];
  return (await get(options.client, { ...watchedKinds.agents, namespace, name }, { signal })) as unknown as Agent | undefined;
}

async function readSystemPrompt({ o, options, signal }: TaskWork): Promise<TaskMemory['systemPrompt']> {
  const agent = o.agent === 'unread' ? undefined : o.agent;
  const reference = agent?.spec.systemPrompt?.configMapRef;
  const [namespace, name, key] = [agent?.metadata.namespace ?? '', reference?.name ?? '', reference?.key ?? ''];
  const of = promptSource(agent);
  const object = await get(options.client, { apiVersion: 'v1', kind: 'ConfigMap', namespace, name }, { signal });
  const text = isObject(object?.['data']) ? object['data'][key] : undefined;
  return { of, found: typeof text === 'string' ? { text } : { missing: `${name}/${key}` } };
}

/** One write before anything exists: who must clean up, for which pool, and since when it waits. */
async function take({ o, options, signal }: TaskWork, plan: Plan): Promise<void> {
  const { metadata } = o.task;
  const change: JsonObject = {
    finalizers: [...new Set([...(metadata.finalizers ?? []), finalizers.task])],
    labels: { [labelKeys.taskPool]: plan.poolName },
    // The contract has it; users may write it, so nothing reads it.
    annotations: { [annotationKeys.queuedAt]: timestamp(options.clock.now()) },
  };
  await patchTask(options, o.task, change, signal);
}

/** Snapshot first, then the binding that names it, by compare-and-set: a Task is bound once. Source: dispatch.md §3.4. */
async function bindTask(work: TaskWork, plan: Plan, agent: Agent): Promise<void> {
  const { o, options, memory, signal } = work;
  const snapshot = freeze(o.task, agent, plan);
  const namespaceUID = await options.namespaceUid(o.task.metadata.namespace ?? '', signal);
  const store = () => storeSnapshot(options.client, o.task, snapshot, { manager: options.manager, signal });
  await creating('the Secret with its snapshot', store);
  const binding = { ...bind(o.task, agent, plan, snapshot, namespaceUID), boundAt: timestamp(options.clock.now()) };
  const status = { ...o.task.status, phase: 'Pending' as const, agentExecutionBinding: binding };
  try {
    await writeTaskStatus(options, o.task, status, signal);
  } catch (error) {
    if (error instanceof KubeError && error.code === 'conflict') await tellConflict(work, binding.bindingDigest);
    throw error;
  }
  memory.namespaceUid = namespaceUID;
  memory.snapshot = { id: snapshot.id, body: snapshot.body };
  memory.thawed = undefined;
}

/** What was read since the conflict is decided on anew; a binding that is not ours, or none that can be written any more, is worth knowing. */
async function tellConflict({ o, options, signal }: TaskWork, digest: string): Promise<void> {
  const { namespace = '', name, uid, generation } = o.task.metadata;
  const found = (await get(options.client, { ...watchedKinds.tasks, namespace, name }, { signal })) as unknown as
    Task | undefined;
  if (!found || found.metadata.uid !== uid) return;
  const other = found.status?.agentExecutionBinding;
  const because = other
    ? other.bindingDigest !== digest && 'it was bound by someone else meanwhile'
    : found.metadata.generation !== generation && 'its spec was changed while it was being bound';
  if (because) tell(options, found, 'Warning', 'BindingConflict', 'Bind', because);
}

/** A change of the Secret from now on stops the Task. Source: repository.md §1.3. */
async function freezeCredential({ o, options, memory, signal }: TaskWork): Promise<void> {
  const { source, task } = o;
  if (!source || 'problem' in source || !source.plan.credential) return;
  const found = await readSourceCredential(options.client, task, source.plan.credential, signal);
  if ('says' in found) {
    memory.source.refusal = unusableCredential(source.plan.asked.at, found.says);
    return;
  }
  const execution = { ...task.status?.execution, readCredentialResourceVersion: found.resourceVersion };
  await writeTaskStatus(options, task, { ...task.status, execution }, signal);
}

/** What is on record of the source of a Task, which stays when it is queued again. */
function sourceRecords({ execution }: TaskStatus): Partial<TaskExecutionStatus> {
  const { effects, readCredentialResourceVersion: version } = execution ?? {};
  return {
    ...(effects === undefined ? {} : { effects }),
    ...(version === undefined ? {} : { readCredentialResourceVersion: version }),
  };
}

/** Makes sure that the pool is there and wanted, and queues the attempt for exactly that pool. Source: dispatch.md §4.1, workload.md §2.10. */
async function queue(work: TaskWork, recovered: boolean): Promise<void> {
  const { o, options, signal } = work;
  if (typeof o.frozen !== 'object' || 'problem' in o.frozen) return;
  const { plan } = o.frozen;
  const existed = o.pool;
  const before = o.task.status ?? {};
  const pool = await ensurePool(work, o.frozen);
  if (!pool || poolMismatch(pool, plan)) return;
  const poolUID = pool.metadata.uid ?? '';
  const bound = before.execution?.runtimePoolUID;
  const uid = o.task.metadata.uid ?? '';
  const now = timestamp(options.clock.now());
  const { activeInstance, lifecycle } = existed?.status ?? {};
  // A pool that this Task itself had made is not one that it found.
  const reused =
    bound === poolUID ? before.executionWorkspace?.reused === true : activeInstance !== undefined && lifecycle !== 'Stopped';
  const attempt = { controllerEpoch: options.epoch, taskUID: uid };
  const queued = queuedStatus(plan, { uid: poolUID, reused }, attempt, now);
  const binding = before.agentExecutionBinding;
  const digests = { bindingDigest: binding?.bindingDigest ?? '', snapshotDigest: binding?.snapshot.digest ?? '' };
  const execution = {
    ...sourceRecords(before),
    ...queued.execution,
    queuedAt: queuedSince(o.task) ?? now,
    requestDigest: attemptDigest(o.task, plan, digests, 1),
    ...(recovered ? { reason: 'ControllerRestartRecovered' } : {}),
  };
  const task = await writeTaskStatus(options, o.task, withMessage({ ...before, ...queued, execution }, undefined), signal);
  if (bound === undefined) tell(options, task, 'Normal', 'ACPTaskQueued', 'Queue', `queued for RuntimePool ${plan.poolName}`);
  else if (bound !== poolUID)
    tell(
      options,
      task,
      'Normal',
      'ACPRuntimePoolRebound',
      'Queue',
      `queued for RuntimePool ${plan.poolName}, which was made anew`,
    );
}

/** A Task that is queued again keeps its time; one that an earlier version queued waits since its creation. */
function queuedSince({ metadata, status }: Task): string | undefined {
  const { execution } = status ?? {};
  return execution?.runtimePoolUID === undefined ? undefined : (execution.queuedAt ?? metadata.creationTimestamp);
}

async function ensurePool({ o, options, signal }: TaskWork, { plan }: Thawed): Promise<RuntimePool | undefined> {
  const found = o.pool ?? (await createPool({ o, options, signal }, plan));
  if (!found || found.metadata.deletionTimestamp !== undefined) return found;
  const stale = isOutdated(demandOnRecord(found), options.clock.now());
  const idle = found.spec.desiredReplicas !== 1;
  if (!idle && !stale) return found;
  const change = {
    ...(stale ? { metadata: { annotations: { [annotationKeys.lastDemandAt]: instantNow(options.clock) } } } : {}),
    ...(idle ? { spec: { desiredReplicas: 1 } } : {}),
  };
  const object = await patchWatched(options.client, options.world.pools, found, change, { manager: options.manager, signal });
  return object as unknown as RuntimePool;
}

/** Under its deterministic name: whoever comes second meets the first one's, and compares. */
async function createPool(
  { o, options, signal }: Pick<TaskWork, 'o' | 'options' | 'signal'>,
  plan: Plan,
): Promise<RuntimePool | undefined> {
  const { poolClass } = o;
  if (poolClass?.state !== 'ready') return undefined;
  const wanted = renderRuntimePool(plan, {
    poolClass: { name: poolClass.name, digest: poolClass.digest },
    demandedAt: instantNow(options.clock),
    task: o.task.metadata.name,
  });
  try {
    const make = () => create(options.client, wanted, { manager: options.manager, signal });
    const made = await creating('its RuntimePool', make);
    options.world.pools.wrote(made);
    return made as unknown as RuntimePool;
  } catch (error) {
    if (!(error instanceof KubeError) || error.code !== 'already-exists') throw error;
  }
  const { namespace = '', name } = wanted.metadata;
  const winner = await get(options.client, { ...watchedKinds.pools, namespace, name }, { signal });
  if (winner) options.world.pools.wrote(winner);
  return winner as unknown as RuntimePool | undefined;
}

const instantNow = (clock: Clock): string => new Date(clock.now()).toISOString();
