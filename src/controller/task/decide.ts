import type { RuntimePool, Task } from '../../api/index.js';
import { admit } from '../../domain/admission/admit.js';
import { assess } from '../../domain/admission/assess.js';
import { finalizers, labelKeys } from '../../domain/labels.js';
import { missingClassRemedy } from '../../domain/missing-class.js';
import { nameOf } from '../../domain/plan.js';
import type { Plan } from '../../domain/plan.js';
import { poolMismatch } from '../../domain/pool-match.js';
import { placeOf, waitingOf } from '../../domain/queue-order.js';
import { redacted } from '../../domain/redaction.js';
import { sourceRefusal } from '../../domain/source-refusals.js';
import { parseDuration } from '../../lib/duration.js';
import { describeFinding } from '../../lib/errors.js';
import type { Finding } from '../../lib/errors.js';
import { equalJson } from '../../lib/json.js';
import { cutBytes } from '../../lib/text.js';
import type { CompiledPool } from '../../render/compile.js';
import { isMadeFrom } from '../classes.js';
import type { Ending, TaskDecision, WaitReason } from './decision.js';
import { classMissingSince, isSettled, mayHaveSent } from './observation.js';
import type { SourceView, TaskObservation } from './observation.js';
import { hasPlace } from './places.js';
import type { SourceWork } from './source-run.js';
import { freeSlots } from './reserve.js';
import { waitsForPlace, waitsForResume } from './words.js';

type TaskRule = (o: TaskObservation, now: number) => TaskDecision | undefined;

const defaultTimeout = 30 * 60_000;
/** What is applied together with a Task, in whatever order, may be there a moment later. */
const togetherGrace = 5_000;
/** Milliseconds that a class may be missing, as while GitOps replaces it. Counted from the condition that records it. */
const missingClassGrace = 120_000;
/** Until a Task that finds no place in its namespace looks again. Source: dispatch.md §2.1. */
const placeLook = 10_000;
/** Whoever waits for a slot no longer than this says nothing of it. */
const worthAWord = 2_000;
/** Between looks whether the cause of a fetch that is tried again is another one. */
const sourceLook = 5_000;
/** The publisher keeps an archive three times as long after it named it. */
const freshArchive = 5 * 60_000;
/** Until one that is not the first looks again whether the first took the slot, or the place: the order changes with time. */
const turnLook = 1_000;
/** Until it is looked again whether an instance can be asked. */
const secondLook = 5_000;
/** Milliseconds for which a new leader tries to ask the instance of an interrupted prompt. */
const reachableWithin = 15_000;
const longestMessage = 1024;
const longMark = '...<truncated>';

/** The next step of a Task. Pure: same observation and time, same decision. Source: dispatch.md §2.1, §4. */
export function decide(o: TaskObservation, now: number): TaskDecision {
  for (const rule of rules) {
    const decision = rule(o, now);
    if (decision) return decision;
  }
  return {};
}

/** A Task that is over, deleted or late needs its repository no more. */
const sourceOver: TaskRule = (o, now) => {
  const over = isSettled(o.task) || o.task.metadata.deletionTimestamp !== undefined || now >= deadlineOf(o);
  return o.fetching && over ? { effect: { do: 'cancel-source' } } : undefined;
};

/** A pool that cannot be seen may be there, with the session of this Task: nothing that depends on it is begun, or said to be over. */
const unreadable: TaskRule = (o, now) => {
  if (o.running || o.unreadableKinds.length === 0) return undefined;
  if (o.task.metadata.deletionTimestamp !== undefined || isSettled(o.task) || mayHaveSent(o.task)) return {};
  const because = `the controller may not list ${o.unreadableKinds.join(', ')} in namespace ${o.task.metadata.namespace ?? ''}`;
  return late(o, now) ?? waiting(o, now, { because, reason: 'RightMissing' });
};

const deleted: TaskRule = (o, now) => {
  const { metadata, status } = o.task;
  if (metadata.deletionTimestamp === undefined) return undefined;
  if (!metadata.finalizers?.includes(finalizers.task)) return {};
  if (o.running) return { effect: { do: 'cancel', reason: 'deleted' } };
  const state = status?.execution?.state;
  if (state !== undefined && beforeSubmission.includes(state))
    return settle('Cancelled', 'Cancelled', 'the Task was deleted before its prompt was sent');
  return interrupted(o, now) ?? leftBehind(o) ?? { effect: { do: 'release' } };
};

const atWork: TaskRule = (o) => {
  if (!o.running) return undefined;
  return o.lost ? { effect: { do: 'cancel', reason: 'lost' } } : {};
};

const settled: TaskRule = (o, now) => (isSettled(o.task) ? (leftBehind(o) ?? expired(o, now) ?? {}) : undefined);

/** As Jobs have it: deleted so many seconds after it finished, once nothing is left of its session. */
function expired({ task, ttlSeconds }: TaskObservation, now: number): TaskDecision | undefined {
  const seconds = task.spec.ttlSecondsAfterFinished ?? ttlSeconds;
  const finishedAt = Date.parse(task.status?.completionTime ?? '');
  if (seconds === undefined || Number.isNaN(finishedAt)) return undefined;
  const left = finishedAt + seconds * 1000 - now;
  return left > 0 ? { wait: left } : { effect: { do: 'delete-task', because: `it finished ${seconds} s ago` } };
}

/** A session that its attempt left is ended by whoever can ask its instance; that it is gone is on record before the Task may go. */
function leftBehind(o: TaskObservation): TaskDecision | undefined {
  switch (o.leftSession) {
    case 'none':
      return undefined;
    case 'gone':
      return { effect: { do: 'record-cleanup' } };
    case 'reachable':
      return { effect: { do: 'clean-session' } };
    case 'unreachable':
      return { wait: secondLook };
  }
}

/** A Task that was restored, or copied, with the binding of another one. Nothing is ever sent for it. Source: dispatch.md §4.8, §9.5. */
const restored: TaskRule = (o) => {
  const { metadata, status } = o.task;
  const bound = status?.agentExecutionBinding?.task;
  if (!bound) return undefined;
  if (o.namespaceUid === undefined) return { effect: { do: 'read-namespace' } };
  const other =
    bound.uid !== metadata.uid
      ? `the Task ${bound.uid}`
      : bound.namespaceUID !== o.namespaceUid
        ? `the namespace ${bound.namespaceUID}`
        : undefined;
  if (other === undefined) return undefined;
  const state = status.execution?.state;
  const says = `its binding belongs to ${other}, so that this one was restored from a copy; it is not run: create a new Task`;
  return state === undefined || beforeSubmission.includes(state)
    ? settle('Failed', 'RestoreIdentityChanged', says)
    : settle('OutcomeUnknown', 'RestoreIdentityChanged', `${says}; what came of its prompt is not known`);
};

/** Stored before the schema refused such a timeout. Its refusal names the field; without this rule it would be late at once. */
const timeless: TaskRule = (o) => {
  if (o.frozen !== 'unbound') return undefined;
  const refusal = admit({ task: o.task, hosting: o.hosting });
  return refusal?.rule === 'timeout' ? { effect: { do: 'refuse', refusal } } : undefined;
};

const late: TaskRule = (o, now) => {
  const state = o.task.status?.execution?.state;
  if (state !== undefined && !beforeSubmission.includes(state)) return undefined;
  if (now < deadlineOf(o)) return undefined;
  const { lifecycle, message } = o.pool?.status ?? {};
  const told = o.task.status?.message;
  const pool = message === undefined || lifecycle === 'Serving' ? undefined : `its pool says: ${message}`;
  const because = [pool ?? told].flatMap((text) => (text === undefined ? [] : [`; ${text}`])).join('');
  return settle('Cancelled', 'TaskTimeout', `deadline exceeded before runtime admission${because}`);
};

/** A quota, or admission, of the namespace does not take what the Task needs. It waits, and is in nobody's way. */
const refused: TaskRule = (o, now) =>
  o.refused && now < o.refused.until
    ? waiting(o, now, { because: o.refused.says, reason: 'CreateRefused', until: o.refused.until })
    : undefined;

/** Nothing begins while new Tasks are paused: no place is taken, no pool made, no attempt started. What may have begun goes on. */
const paused: TaskRule = (o, now) => {
  const state = o.task.status?.execution?.state;
  if (o.paused === undefined || (state !== undefined && state !== 'Queued')) return undefined;
  // It has a slot of a pool that is to become quiet.
  if (o.pool?.status?.lifecycle === 'Serving' && o.leftSession === 'reachable') return { effect: { do: 'clean-session' } };
  if (o.paused === 'unread') return waiting(o, now);
  const because = waitsForResume(o.task.metadata.namespace ?? '', o.paused);
  return waiting(o, now, { because, reason: 'Paused' });
};

/** A namespace has as many Tasks as it may; whoever comes next in the order of queues goes on next. Source: dispatch.md §2.1. */
const crowded: TaskRule = (o, now) =>
  o.frozen === 'unbound' && o.quota?.standing !== 'held-up' ? waitingForPlace(o, now) : undefined;

function waitingForPlace(o: TaskObservation, now: number): TaskDecision | undefined {
  const { quota, task } = o;
  if (!quota || hasPlace(o, now)) return undefined;
  if (quota.free > 0) return { ...waiting(o, now, { until: now + turnLook }), forPlace: true };
  const because = waitsForPlace(task.metadata.namespace ?? '', quota.limit);
  const wait: Wait = { because, reason: 'NamespaceTaskLimitReached', until: now + placeLook };
  return { ...waiting(o, now, wait), forPlace: true };
}

/** The class is back: the next time that it is missing counts from its own beginning. */
const classFound: TaskRule = ({ task, poolClass }) =>
  classMissingSince(task) !== undefined && poolClass && !['missing', 'unreadable'].includes(poolClass.state)
    ? { effect: { do: 'say', message: undefined } }
    : undefined;

/** A class that is missing is waited for, for a bounded time; `undefined` = that is over. */
function awaitedClass(o: TaskObservation, now: number, says: string): TaskDecision | undefined {
  const until = (classMissingSince(o.task) ?? now) + missingClassGrace;
  if (now >= until) return undefined;
  return waiting(o, now, { because: `waits up to two minutes for its class: ${says}`, reason: 'RuntimePoolClassMissing', until });
}

/** For a Task that is bound: what it was bound to cannot be made. */
function classMissing(o: TaskObservation, now: number): TaskDecision | undefined {
  const { poolClass } = o;
  if (poolClass?.state !== 'missing') return undefined;
  const says = `${poolClass.says}; ${missingClassRemedy}`;
  return awaitedClass(o, now, poolClass.says) ?? settle('Failed', 'InvalidRuntimeProfile', says);
}

/** Everything that decides about an unbound Task must have been read before it is refused. */
const unread: TaskRule = (o) => {
  if (o.frozen !== 'unbound') return undefined;
  if (o.agent === 'unread') return { effect: { do: 'read-agent' } };
  return o.systemPrompt === 'unread' ? { effect: { do: 'read-system-prompt' } } : undefined;
};

const unbound: TaskRule = (o, now) => {
  if (o.frozen !== 'unbound') return undefined;
  const agent = o.agent === 'unread' ? undefined : o.agent;
  const input = { task: o.task, agent, hosting: o.hosting };
  const refusal = admit(input);
  const graceLeft = Date.parse(o.task.metadata.creationTimestamp ?? '') + togetherGrace - now;
  if (refusal?.rule === 'agent-required' && graceLeft > 0) return { wait: graceLeft };
  if (refusal) return { effect: { do: 'refuse', refusal } };
  const { poolClass } = o;
  if (poolClass && poolClass.state !== 'ready' && poolClass.state !== 'missing')
    return waiting(o, now, { because: `the class cannot be used: ${poolClass.says}`, reason: 'RuntimePoolClassUnavailable' });
  if (poolClass?.state === 'missing') {
    const awaited = graceLeft > 0 ? { wait: graceLeft } : awaitedClass(o, now, poolClass.says);
    if (awaited) return awaited;
  }
  if (typeof o.systemPrompt === 'object' && 'missing' in o.systemPrompt) {
    // Nothing tells of a ConfigMap that comes.
    if (graceLeft > 0) return { wait: Math.min(graceLeft, 1_000) };
    const finding: Finding = {
      at: nameOf('Agent', agent ?? o.task),
      field: 'spec.systemPrompt.configMapRef',
      found: o.systemPrompt.missing,
      allowed: 'a ConfigMap with that key in the namespace of the Agent',
    };
    const execution = {
      gate: 'plan',
      rule: 'system-prompt',
      finding,
      projection: 'execution',
      reason: 'InvalidRuntimeProfile',
    } as const;
    return { effect: { do: 'refuse', refusal: execution } };
  }
  const assessed = assess({
    ...input,
    poolClass: poolClass?.state === 'ready' ? poolClass.compiled.spec : undefined,
    ...(poolClass?.state === 'missing' ? { classMissing: poolClass.says } : {}),
    ...(typeof o.systemPrompt === 'object' ? { systemPromptText: o.systemPrompt.text } : {}),
  });
  if ('refusal' in assessed) return { effect: { do: 'refuse', refusal: assessed.refusal } };
  const full = waitingForPlace(o, now);
  if (full) return full;
  const { plan } = assessed;
  const taken =
    o.task.metadata.finalizers?.includes(finalizers.task) === true &&
    o.task.metadata.labels?.[labelKeys.taskPool] === plan.poolName;
  if (!taken) return { effect: { do: 'take', plan } };
  return agent && { effect: { do: 'bind', plan, agent } };
};

const thawing: TaskRule = (o) => {
  if (o.frozen === 'unread') return { effect: { do: 'read-snapshot' } };
  if (o.frozen === 'unbound' || !('problem' in o.frozen)) return undefined;
  const state = o.task.status?.execution?.state;
  // What may have been sent is never said to have failed.
  if (state !== undefined && !beforeSubmission.includes(state)) return undefined;
  return settle('Failed', 'InvalidAttempt', describeFinding(o.frozen.problem));
};

/** The process that may have sent the prompt has ended. It is never sent again; its instance is asked if that can be soon. Source: dispatch.md §4.8. */
const interrupted: TaskRule = (o, now) => {
  if (!mayHaveSent(o.task)) return undefined;
  const since = Date.parse(o.task.status?.execution?.lastTransitionTime ?? '') || 0;
  const waits = Math.max(since, o.ledSince) + reachableWithin - now;
  if (o.leftSession === 'unreachable' && waits > 0) return { wait: Math.min(waits, 1_000) };
  return { effect: { do: 'settle-from-record' } };
};

/**
 * A repository is looked up before there is a pool: a credential that the forge refuses costs no sandbox. What is refused ends the Task at
 * once.
 */
const resolved: TaskRule = (o, now) => {
  const { source } = o;
  if (source === undefined) return undefined;
  if ('problem' in source) return settle('Failed', 'InvalidWorkspace', describeFinding(source.problem));
  const { plan, standing, refusal } = source;
  if (refusal) return settle('Failed', refusal.reason, describeFinding(refusal.finding));
  switch (standing.is) {
    case 'over': {
      // Its run may know more than the record: what is wrong with a Secret.
      if (source.work !== undefined) return waitingForSource(o, source, now);
      const { reason, finding } = sourceRefusal(standing.code, plan.asked, standing.detail);
      return settle('Failed', standing.givenUp ? 'WorkspaceUnsupported' : reason, describeFinding(finding));
    }
    case 'unfrozen':
      return { effect: { do: 'freeze-credential' } };
    case 'unresolved':
      return fetching(source, 'resolve', now) ?? waitingForSource(o, source, now);
    default:
      return undefined;
  }
};

/** The archive is made while the pool starts. */
const fetched: TaskRule = (o, now) => {
  const { source } = o;
  if (!source || 'problem' in source || source.standing.is !== 'unprepared') return undefined;
  return fetching(source, 'prepare', now);
};

/** `undefined` = it is under way, or the next try is not due. */
function fetching(source: SourceView, work: SourceWork, now: number): TaskDecision | undefined {
  return source.work === undefined && now >= source.heldUntil ? { effect: { do: 'fetch-source', work } } : undefined;
}

/** A fetch is named in the status once it takes longer than {@link worthAWord}. */
function waitingForSource(o: TaskObservation, source: SourceView, now: number): TaskDecision {
  const { plan, since, says, heldUntil, work } = source;
  const reason = 'RepositoryFetching';
  if (work === undefined) return waiting(o, now, { reason, until: heldUntil });
  if (says === undefined && now < since + worthAWord) return waiting(o, now, { reason, until: since + worthAWord });
  const because = `fetches its repository ${plan.repository.id}${says === undefined ? '' : `: ${says}; it is tried again`}`;
  return waiting(o, now, { because, reason, until: now + sourceLook });
}

/** A session begins with an archive that the publisher still has. */
function sourceBeforeStart(o: TaskObservation, now: number): TaskDecision | undefined {
  const { source } = o;
  if (!source || 'problem' in source) return undefined;
  if (source.standing.is === 'ready' && source.work === undefined && now < source.preparedAt + freshArchive) return undefined;
  const work = source.standing.is === 'ready' ? 'refresh' : 'prepare';
  return fetching(source, work, now) ?? waitingForSource(o, source, now);
}

const unqueued: TaskRule = (o, now) => {
  if (typeof o.frozen !== 'object' || 'problem' in o.frozen) return undefined;
  const { plan } = o.frozen;
  const execution = o.task.status?.execution;
  const mismatch = o.pool && poolMismatch(o.pool, plan);
  if (mismatch?.permanent) return settle('Failed', 'InvalidRuntimeProfile', describeFinding(mismatch.finding));
  if (mismatch) return waiting(o, now, { because: describeFinding(mismatch.finding), reason: 'RuntimePoolUnavailable' });
  if (o.pool?.metadata.deletionTimestamp !== undefined)
    return waiting(o, now, { because: 'the pool of this Task is being deleted', reason: 'RuntimePoolUnavailable' });
  const queued = execution?.state === 'Queued' && execution.runtimePoolUID === o.pool?.metadata.uid && isWanted(o.pool);
  if (queued) return undefined;
  const { poolClass } = o;
  if (!o.pool && poolClass?.state !== 'ready')
    return (
      classMissing(o, now) ??
      waiting(o, now, {
        because: `the class cannot be used: ${poolClass && 'says' in poolClass ? poolClass.says : 'it is not known'}`,
        reason: 'RuntimePoolClassUnavailable',
      })
    );
  const other = !o.pool && poolClass?.state === 'ready' ? frozenOtherwise(plan, poolClass.compiled) : undefined;
  if (other !== undefined) {
    const message = `the class ${poolClass?.name ?? ''} has another ${other} than this Task was bound to; create the Task again`;
    return settle('Failed', 'InvalidRuntimeProfile', message);
  }
  // Nothing was sent for it yet; it begins again.
  const recovered = execution?.state !== undefined && execution.state !== 'Queued';
  return { effect: { do: 'queue', recovered } };
};

/** What the Task was bound to and the class does not give any more: a pool that is made from it now could not run it. */
function frozenOtherwise({ image, profile }: Plan, { frozen }: CompiledPool): string | undefined {
  if (frozen.image !== image) return 'image';
  return equalJson(frozen.adapterDigests, profile.adapterDigests) ? undefined : 'adapterDigests';
}

const queued: TaskRule = (o, now) => {
  const { pool } = o;
  if (o.task.status?.execution?.state !== 'Queued' || !pool) return undefined;
  const { lifecycle, admissionState, activeInstance, observedGeneration, message } = pool.status ?? {};
  // It has the slot that this Task waits for.
  if (lifecycle === 'Serving' && o.leftSession === 'reachable') return { effect: { do: 'clean-session' } };
  const current = o.poolClass?.state !== 'ready' || isMadeFrom(pool, o.poolClass);
  const admits =
    current &&
    lifecycle === 'Serving' &&
    admissionState === 'Accepting' &&
    activeInstance?.controllerEpoch === o.epoch &&
    observedGeneration === pool.metadata.generation;
  if (admits) return turn(o, pool, now);
  if (lifecycle === 'Serving' && isFull(pool)) return full(o, now);
  const missing = classMissing(o, now);
  if (missing) return missing;
  const open = lifecycle === 'Serving' && admissionState === 'Accepting';
  if (lifecycle !== undefined && !open && !onItsWay.includes(lifecycle))
    return waiting(o, now, { because: `waits for its pool: ${message ?? lifecycle}`, reason: 'RuntimePoolUnavailable' });
  // What it waited for is over.
  if (o.task.status.message !== undefined) return { effect: { do: 'say', message: undefined } };
  return waiting(o, now);
};

/** Slots are given in the order of the queue; only the first ones may reserve. Source: dispatch.md §4.1. */
function turn(o: TaskObservation, pool: RuntimePool, now: number): TaskDecision {
  const { held } = o;
  if (held && now < held.until) {
    const because = held.tries > 1 ? `the attempt could not begin: ${held.says}` : undefined;
    return waiting(o, now, { because, reason: 'RuntimePoolUnavailable', until: held.until });
  }
  const source = sourceBeforeStart(o, now);
  if (source) return source;
  const free = freeSlots(pool, now);
  if (free === 0) return full(o, now);
  return placeOf(waitingOf(o.task), o.rivals, now) < free
    ? { effect: { do: 'start' } }
    : waiting(o, now, { until: now + turnLook });
}

function isFull({ status }: RuntimePool): boolean {
  return status?.conditions?.some(({ type, reason }) => type === 'AdmissionReady' && reason === 'AtCapacity') === true;
}

/** A slot that is free again shows itself in the pool. */
function full(o: TaskObservation, now: number): TaskDecision {
  const since = waitingOf(o.task).queuedAt;
  if (now < since + worthAWord) return waiting(o, now, { until: since + worthAWord });
  return waiting(o, now, { because: 'waits for a free slot: its pool runs as many prompts as it may', reason: 'AtCapacity' });
}

/** Lifecycles from which a wanted pool comes to serve without anybody's help. */
const onItsWay: readonly string[] = ['Starting', 'Stopped'];

const rules: readonly TaskRule[] = [
  sourceOver,
  unreadable,
  deleted,
  atWork,
  settled,
  restored,
  timeless,
  late,
  paused,
  classFound,
  refused,
  crowded,
  unread,
  unbound,
  thawing,
  interrupted,
  resolved,
  unqueued,
  fetched,
  queued,
];

const beforeSubmission: readonly string[] = ['Queued', 'Reserved', 'SessionStarting', 'Planned'];

function settle(state: Ending['state'], reason: string, message: string): TaskDecision {
  return { effect: { do: 'settle', ending: { state, reason, message: redacted(message) } } };
}

interface Wait {
  /** @default what was said stays */
  readonly because?: string | undefined;
  readonly reason?: WaitReason;
  /** @default the deadline of the Task */
  readonly until?: number;
}

/** Says why, once, and comes back at the deadline or earlier. */
function waiting(o: TaskObservation, now: number, { because, reason, until = Infinity }: Wait = {}): TaskDecision {
  const message = because === undefined ? undefined : cutBytes(redacted(because), longestMessage - longMark.length, longMark);
  if (message !== undefined && o.task.status?.message !== message)
    return { effect: { do: 'say', message, ...(reason ? { reason } : {}) } };
  return { wait: Math.max(Math.min(deadlineOf(o), until) - now, 0), ...(reason ? { waits: reason } : {}) };
}

/** Milliseconds since 1970 at which a Task must be over. */
export function deadlineOf({ task }: { readonly task: Task }): number {
  const timeout = task.spec.timeout === undefined ? undefined : parseDuration(task.spec.timeout);
  return Date.parse(task.metadata.creationTimestamp ?? '') + (timeout ?? defaultTimeout);
}

function isWanted(pool: RuntimePool | undefined): boolean {
  return pool?.spec.desiredReplicas === 1;
}
