import { finalizers } from '../../domain/labels.js';
import { describeFinding } from '../../lib/errors.js';
import type { PoolDecision, PoolEffect } from './decision.js';
import { demandToRecord, isUndemanded } from './demand.js';
import { ending, isBeingDeleted } from './ending.js';
import { ambiguous, degraded } from './intents.js';
import type { PoolObservation } from './observation.js';
import { firstOf, heldReservations, isIdle, isReleased, isUnwanted, keepLive, laterLook } from './rule.js';
import type { PoolRule } from './rule.js';
import { isolationBroken } from './preconditions.js';
import { endOf } from './recycle.js';
import { running } from './running.js';

/**
 * The next step of a pool. Pure: same observation and time, same decision. The first rule that knows the situation decides.
 * Source: workload.md §7.
 */
export function decide(o: PoolObservation, now: number): PoolDecision {
  const decision = firstOf(rules)(o, now) ?? {};
  if (decision.effect) return decision;
  const wait = Math.min(decision.wait ?? Infinity, untilTimeDecides(o, now));
  return wait === Infinity ? decision : { ...decision, wait };
}

/** Milliseconds until a wanted pool is another case though nothing was changed: a slot is free again, or nobody asked for too long. */
function untilTimeDecides(o: PoolObservation, now: number): number {
  if (isUnwanted(o)) return Infinity;
  const held = heldReservations(o, now).map(({ expiresAt }) => Date.parse(expiresAt));
  const idleAt = isUndemanded(o.demand) && held.length === 0 ? o.demand.lastAt + o.idleTtl : Infinity;
  return Math.min(...[...held, idleAt].map((at) => at - now).filter((left) => left > 0), Infinity);
}

const released: PoolRule = ({ pool }) => (isReleased(pool) ? {} : undefined);

const unprotected: PoolRule = ({ pool }) =>
  pool.metadata.finalizers?.includes(finalizers.pool) ? undefined : { effect: { do: 'add-finalizer' } };

/** Somebody prepared credentials of the pool, or tries to; they are never used. What ends a pool takes them along. */
const strange: PoolRule = (o) => {
  const [secret] = o.strangers;
  if (!secret || isUnwanted(o)) return undefined;
  const { namespace = '', name } = secret.metadata;
  const message = `Secret ${namespace}/${name} has the labels of this pool, but not the shape of its credentials: it is not adopted and not touched; delete it`;
  return { status: degraded(message, keepLive(o)), wait: laterLook };
};

const foreign: PoolRule = (o) => {
  const found = [o.claim, o.template, o.warmPool].find((child) => child && !child.owned)?.live;
  const object = found ?? o.isolation.find(({ state }) => state === 'foreign')?.live;
  if (!object) return undefined;
  const { kind, metadata } = object;
  const message = `${kind} ${metadata.namespace ?? ''}/${metadata.name} does not have the ownership identity of this pool; it is not touched`;
  return { status: degraded(message), wait: laterLook };
};

/** Ours, but changed: what it would make is not what was reviewed. */
const claimChanged: PoolRule = (o) =>
  o.claim && !o.claim.whole ? effectOnly(endOf(o, 'claim-changed', 'the claim was changed by someone else')) : undefined;

const effectOnly = (effect: PoolEffect | undefined): PoolDecision | undefined => effect && { effect };

const twoInstances: PoolRule = (o) => {
  const candidates = o.pods.filter(({ ready }) => ready);
  if (candidates.length < 2 || isUnwanted(o)) return undefined;
  const message = `${candidates.length} Pods are ready: ${candidates.map(({ name }) => name).join(', ')}`;
  return { status: ambiguous(message), wait: laterLook };
};

/** What cannot be seen may still be there: nothing is made, ended or released until it can. */
const unreadable: PoolRule = (o) => {
  if (o.unreadableKinds.length === 0) return undefined;
  const message = `the controller may not list ${o.unreadableKinds.join(', ')} in the runtime namespace`;
  return { status: degraded(message, keepLive(o)), wait: laterLook };
};

const invalid: PoolRule = (o) =>
  o.problem && !isUnwanted(o) ? { status: degraded(describeFinding(o.problem)), wait: laterLook } : undefined;

const kindsMissing: PoolRule = (o) =>
  o.missingKinds.length > 0 && !isUnwanted(o)
    ? {
        status: degraded(`agent-sandbox provider CRDs are not installed: ${o.missingKinds.join(', ')}`),
        wait: laterLook,
      }
    : undefined;

/** Before anything is made of a class that the installed provider would keep only in part. What runs already was made of it. */
const fieldsUnserved: PoolRule = (o) =>
  o.unservedFields.length > 0 && !o.claim && !isUnwanted(o)
    ? {
        status: degraded(`the installed agent-sandbox provider does not fit the class: ${o.unservedFields.join('; ')}`),
        wait: laterLook,
      }
    : undefined;

/** Before it is asked how long nobody wanted it. Source: workload.md §2.10, §7.12. */
const demanded: PoolRule = (o, now) => {
  // The end of demand for a pool of one Task starts no idle time.
  if (isBeingDeleted(o) || (o.ofOneTask && o.demand.active === 0)) return undefined;
  const at = demandToRecord(o.demand, heldReservations(o, now).length > 0, now);
  return at === undefined ? undefined : { effect: { do: 'record-demand', at } };
};

/** A pool of one Task ends with that Task; one that many share stays warm for the idle time. Source: workload.md §7.12. */
const idle: PoolRule = (o, now) => {
  if (isUnwanted(o) || !isIdle(o, now)) return undefined;
  const over = o.ofOneTask || o.cordonedNode !== undefined || now - o.demand.lastAt >= o.idleTtl;
  return over ? { effect: { do: 'scale-to-zero' } } : undefined;
};

const rules: readonly PoolRule[] = [
  released,
  unprotected,
  unreadable,
  demanded,
  idle,
  foreign,
  strange,
  claimChanged,
  twoInstances,
  invalid,
  kindsMissing,
  fieldsUnserved,
  isolationBroken,
  ending,
  running,
];
