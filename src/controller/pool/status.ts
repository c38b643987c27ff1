import type { ActiveInstance, Condition, PoolCapacityStatus, RuntimePoolStatus } from '../../api/index.js';
import { timestamp } from '../../kube/clock.js';
import { equalJson } from '../../lib/json.js';
import { cutBytes } from '../../lib/text.js';
import { poolConditions } from './decision.js';
import type { StatusIntent } from './decision.js';
import type { PoolObservation } from './observation.js';

const longestMessage = 1024;
const cut = (text: string): string => cutBytes(text.trim(), longestMessage - 3, '...');

/**
 * The whole status that an intent makes of the recorded one. Times move only with what they time; reservations belong to the Tasks and
 * stay, but for those that no instance can serve any more. Source: workload.md §1.4–1.5, §7.1.
 */
export function nextStatus(o: PoolObservation, intent: StatusIntent, now: number): RuntimePoolStatus {
  const { pool } = o;
  const before: RuntimePoolStatus = pool.status ?? {};
  const activeInstance = instanceOf(before, intent);
  const desired = pool.metadata.deletionTimestamp === undefined ? (pool.spec.desiredReplicas ?? 0) : 0;
  return {
    observedGeneration: pool.metadata.generation ?? 0,
    controllerEpoch: o.epoch,
    desiredReplicas: desired,
    currentReplicas: o.pods.filter(({ finished }) => !finished).length,
    lifecycle: intent.lifecycle,
    admissionState: intent.admission,
    ...(activeInstance ? { activeInstance } : {}),
    capacity: capacityOf(o, intent, activeInstance, now),
    message: cut(intent.message),
    conditions: conditionsOf(before.conditions ?? [], intent, pool.metadata.generation ?? 0, now),
  };
}

/** The time of the last look is worth no write of its own. */
function instanceOf(before: RuntimePoolStatus, { instance }: StatusIntent): ActiveInstance | undefined {
  if (instance === 'none') return undefined;
  if (instance === 'keep') return before.activeInstance;
  const { lastObservedTime: _now, ...found } = instance;
  const { lastObservedTime: _then, ...known } = before.activeInstance ?? {};
  return equalJson(found, known) ? before.activeInstance : instance;
}

function capacityOf(
  { pool, demand, epoch }: PoolObservation,
  intent: StatusIntent,
  instance: ActiveInstance | undefined,
  now: number,
): PoolCapacityStatus {
  const before: PoolCapacityStatus = pool.status?.capacity ?? {};
  const reservations = (before.reservations ?? []).filter(
    ({ controllerEpoch, runtimeInstanceID, expiresAt }) =>
      controllerEpoch === epoch && runtimeInstanceID === instance?.runtimeInstanceID && Date.parse(expiresAt) > now,
  );
  const { maxResidentSessions = 1, maxRunningPrompts = 1 } = pool.spec.capacity ?? {};
  const recorded = instance ? { ...quiet, ...countersOf(before) } : quiet;
  return {
    maxResidentSessions,
    maxRunningPrompts,
    ...recorded,
    ...intent.pressure,
    queuedTasks: demand.known ? demand.queued : (before.queuedTasks ?? demand.queued),
    finalizingSessions: demand.known ? demand.finalizing : (before.finalizingSessions ?? demand.finalizing),
    reservedSessions: reservations.reduce((sum, { residentSlots }) => sum + residentSlots, 0),
    reservedPrompts: reservations.reduce((sum, { promptSlots }) => sum + promptSlots, 0),
    ...(reservations.length > 0 ? { reservations } : {}),
  };
}

const quiet = { residentSessions: 0, runningPrompts: 0, pendingPermissions: 0, liveDescendants: 0 };

function countersOf({ residentSessions, runningPrompts, pendingPermissions, liveDescendants }: PoolCapacityStatus) {
  return {
    residentSessions: residentSessions ?? 0,
    runningPrompts: runningPrompts ?? 0,
    pendingPermissions: pendingPermissions ?? 0,
    liveDescendants: liveDescendants ?? 0,
  };
}

function conditionsOf(
  before: readonly Condition[],
  { conditions }: StatusIntent,
  generation: number,
  now: number,
): readonly Condition[] {
  return poolConditions.map((type) => {
    const known = before.find((one) => one.type === type);
    const wanted = conditions[type];
    if (!wanted && known) return known;
    const next = wanted ?? { status: 'Unknown' as const, reason: 'Reconciling', message: 'not decided yet' };
    const moved = known?.status !== next.status;
    return {
      type,
      status: next.status,
      observedGeneration: generation,
      reason: next.reason,
      message: cut(next.message),
      lastTransitionTime: moved ? timestamp(now) : known.lastTransitionTime,
    };
  });
}
