import type { RuntimePool, Task } from '../../api/index.js';
import { admit } from '../../domain/admission/admit.js';
import { assess } from '../../domain/admission/assess.js';
import { annotationKeys, finalizers, labelKeys } from '../../domain/labels.js';
import { nameOf } from '../../domain/plan.js';
import { poolMismatch } from '../../domain/pool-match.js';
import { parseDuration } from '../../lib/duration.js';
import { describeFinding } from '../../lib/errors.js';
import type { Finding } from '../../lib/errors.js';
import { cutBytes } from '../../lib/text.js';
import type { ClassVerdict } from '../classes.js';
import type { Ending, TaskDecision } from './decision.js';
import { isSettled, mayHaveSent } from './observation.js';
import type { TaskObservation } from './observation.js';
import { neutral } from './words.js';

type TaskRule = (o: TaskObservation, now: number) => TaskDecision | undefined;

const defaultTimeout = 30 * 60_000;
/** A class that is applied together with its first Task may be seen a moment later. */
const classGrace = 5_000;
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

const settled: TaskRule = (o) => (isSettled(o.task) ? (leftBehind(o) ?? {}) : undefined);

/** A session that its attempt left: it is ended by whoever can ask its instance. */
function leftBehind(o: TaskObservation): TaskDecision | undefined {
  if (o.leftSession === 'none') return undefined;
  return o.leftSession === 'reachable' ? { effect: { do: 'clean-session' } } : { wait: secondLook };
}

const late: TaskRule = (o, now) => {
  const state = o.task.status?.execution?.state;
  if (state !== undefined && !beforeSubmission.includes(state)) return undefined;
  if (now < deadlineOf(o)) return undefined;
  const { lifecycle, message } = o.pool?.status ?? {};
  const told = o.task.status?.message;
  const pool = message === undefined || lifecycle === 'Serving' ? undefined : `its pool says: ${neutral(message)}`;
  const because = [pool ?? told].flatMap((text) => (text === undefined ? [] : [`; ${text}`])).join('');
  return settle('Cancelled', 'TaskTimeout', `deadline exceeded before runtime admission${because}`);
};

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
  if (refusal) return { effect: { do: 'refuse', refusal } };
  const { poolClass } = o;
  if (poolClass && poolClass.state !== 'ready' && poolClass.state !== 'missing')
    return waiting(o, now, `the class cannot be used: ${poolClass.says}`);
  if (poolClass?.state === 'missing' && now - Date.parse(o.task.metadata.creationTimestamp ?? '') < classGrace)
    return { wait: 1_000 };
  if (typeof o.systemPrompt === 'object' && 'missing' in o.systemPrompt) {
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
    ...(typeof o.systemPrompt === 'object' ? { systemPromptText: o.systemPrompt.text } : {}),
  });
  if ('refusal' in assessed) return { effect: { do: 'refuse', refusal: assessed.refusal } };
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

const unqueued: TaskRule = (o, now) => {
  if (typeof o.frozen !== 'object' || 'problem' in o.frozen) return undefined;
  const { plan } = o.frozen;
  const execution = o.task.status?.execution;
  const mismatch = o.pool && poolMismatch(o.pool, plan);
  if (mismatch?.permanent) return settle('Failed', 'InvalidRuntimeProfile', describeFinding(mismatch.finding));
  if (mismatch) return waiting(o, now, describeFinding(mismatch.finding));
  if (o.pool?.metadata.deletionTimestamp !== undefined) return waiting(o, now, 'the pool of this Task is being deleted');
  const outdated = o.pool && classChanged(o.pool, o.poolClass);
  if (outdated !== undefined) return settle('Failed', 'InvalidRuntimeProfile', outdated);
  const queued = execution?.state === 'Queued' && execution.runtimePoolUID === o.pool?.metadata.uid && isWanted(o.pool);
  if (queued) return undefined;
  const { poolClass } = o;
  if (!o.pool && poolClass?.state !== 'ready')
    return waiting(o, now, `the class cannot be used: ${poolClass && 'says' in poolClass ? poolClass.says : 'it is missing'}`);
  if (!o.pool && poolClass?.state === 'ready' && poolClass.compiled.frozen.image !== plan.image) {
    const message = `the class ${poolClass.name} has another image than this Task was bound to; create the Task again`;
    return settle('Failed', 'InvalidRuntimeProfile', message);
  }
  // Nothing was sent for it yet; it begins again.
  const recovered = execution?.state !== undefined && execution.state !== 'Queued';
  return { effect: { do: 'queue', recovered } };
};

/** A pool that never took work will not be started from a class that was changed since. Source: design of class changes. */
function classChanged(pool: RuntimePool, poolClass: ClassVerdict | undefined): string | undefined {
  if (poolClass?.state !== 'ready' || pool.status?.activeInstance !== undefined) return undefined;
  const [, recorded] = (pool.metadata.annotations?.[annotationKeys.poolClass] ?? '').split('@');
  return recorded === poolClass.digest
    ? undefined
    : `the class ${poolClass.name} was changed after this Task was bound; create the Task again`;
}

const queued: TaskRule = (o, now) => {
  const { pool } = o;
  if (o.task.status?.execution?.state !== 'Queued' || !pool) return undefined;
  const { lifecycle, admissionState, activeInstance, observedGeneration, message } = pool.status ?? {};
  const admits =
    lifecycle === 'Serving' &&
    admissionState === 'Accepting' &&
    activeInstance?.controllerEpoch === o.epoch &&
    observedGeneration === pool.metadata.generation;
  const { held } = o;
  if (admits && held && now < held.until)
    return waiting(o, now, held.tries > 1 ? `the attempt could not begin: ${held.says}` : undefined, held.until);
  if (admits) return { effect: { do: 'start' } };
  const open = lifecycle === 'Serving' && admissionState === 'Accepting';
  if (lifecycle !== undefined && !open && !onItsWay.includes(lifecycle))
    return waiting(o, now, `waits for its pool: ${message ?? lifecycle}`);
  // What it waited for is over.
  if (o.task.status.message !== undefined) return { effect: { do: 'say', message: undefined } };
  return waiting(o, now, undefined);
};

/** Lifecycles from which a wanted pool comes to serve without anybody's help. */
const onItsWay: readonly string[] = ['Starting', 'Stopped'];

const rules: readonly TaskRule[] = [deleted, atWork, settled, late, unread, unbound, thawing, interrupted, unqueued, queued];

const beforeSubmission: readonly string[] = ['Queued', 'Reserved', 'SessionStarting', 'Planned'];

function settle(state: Ending['state'], reason: string, message: string): TaskDecision {
  return { effect: { do: 'settle', ending: { state, reason, message } } };
}

/** Says why, once, and comes back at the deadline or earlier. */
function waiting(o: TaskObservation, now: number, because: string | undefined, until = Infinity): TaskDecision {
  const message = because === undefined ? undefined : cutBytes(neutral(because), longestMessage - longMark.length, longMark);
  if (message !== undefined && o.task.status?.message !== message) return { effect: { do: 'say', message } };
  return { wait: Math.max(Math.min(deadlineOf(o), until) - now, 0) };
}

/** Milliseconds since 1970 at which a Task must be over. */
export function deadlineOf({ task }: { readonly task: Task }): number {
  const timeout = task.spec.timeout === undefined ? undefined : parseDuration(task.spec.timeout);
  return Date.parse(task.metadata.creationTimestamp ?? '') + (timeout ?? defaultTimeout);
}

function isWanted(pool: RuntimePool | undefined): boolean {
  return pool?.spec.desiredReplicas === 1;
}
