import type { Manifest, RuntimePoolClass, RuntimePoolClassSpec, Task, TaskStatus } from '../../src/api/index.js';
import { createClasses } from '../../src/controller/classes.js';
import type { StatusIntent } from '../../src/controller/pool/decision.js';
import * as intents from '../../src/controller/pool/intents.js';
import type { PoolObservation } from '../../src/controller/pool/observation.js';
import { nextStatus } from '../../src/controller/pool/status.js';
import { ended, moved, succeeded } from '../../src/controller/task/status.js';
import type { JsonObject } from '../../src/lib/json.js';
import { classDigest, compile } from '../../src/render/compile.js';
import { fullPool } from '../api/samples.js';
import { poolClass, task } from './objects.js';

const now = Date.UTC(2030, 0, 1);
const digest = classDigest(compile(poolClass()));

/** An object with the status that the controller writes for it. */
export interface Written {
  readonly says: string;
  readonly object: Manifest;
}

const asManifest = (object: object): Manifest => object as Manifest;

function classObject(change: Partial<RuntimePoolClassSpec>, name = 'codex'): RuntimePoolClass {
  return {
    apiVersion: 'core.orka.ai/v1alpha1',
    kind: 'RuntimePoolClass',
    metadata: { name, namespace: 'orka-system', uid: name, generation: 3 },
    spec: poolClass({ approvedDigests: [digest], ...change }),
  };
}

function written(says: string, change: Partial<RuntimePoolClassSpec>, twins: readonly RuntimePoolClass[] = []): Written {
  const object = classObject(change);
  const classes = createClasses(() => [object, ...twins].map(asManifest));
  const status = classes.statusChange(object.metadata.name, '2030-01-01T00:00:00Z')?.status;
  return { says, object: asManifest({ ...object, status }) };
}

export const writtenClasses: readonly Written[] = [
  written('Approved', {}),
  written('Drifted', { approvedDigests: [`sha256:${'0'.repeat(64)}`] }),
  written('Invalid', { providerProxy: { ...poolClass().providerProxy, podLabels: {} } }),
  written('Ambiguous', {}, [classObject({}, 'twin')]),
];

function poolWith(says: string, intent: StatusIntent, desiredReplicas = 1): Written {
  const pool = {
    ...fullPool,
    metadata: { ...fullPool.metadata, uid: 'pool-uid', generation: 3 },
    spec: { ...fullPool.spec, desiredReplicas },
    status: {},
  };
  const observation = { pool, epoch: 1, pods: [], demand: { queued: 0, finalizing: 0 } } as unknown as PoolObservation;
  return { says, object: asManifest({ ...pool, status: nextStatus(observation, intent, now) }) };
}

const instance = fullPool.status!.activeInstance!;
const idle = {
  maxResidentSessions: 1,
  maxRunningPrompts: 1,
  residentSessions: 0,
  runningPrompts: 0,
  pendingPermissions: 0,
  liveDescendants: 0,
};
export const writtenPools: readonly Written[] = [
  poolWith('Starting', intents.starting('the claim is not bound yet')),
  poolWith('Serving', intents.serving(instance, idle, false)),
  poolWith('Serving at capacity', intents.serving(instance, idle, true)),
  poolWith('Serving, not wanted', intents.serving(instance, idle, false), 0),
  poolWith('Draining', intents.draining('nothing asks for the pool'), 0),
  poolWith('Quiescent', intents.quiescent('the instance is quiet'), 0),
  poolWith('Stopping', intents.stopping('the claim is being deleted'), 0),
  poolWith('Stopped', intents.stopped(), 0),
  poolWith('Stopped, wanted again', intents.stopped()),
  poolWith('Degraded', intents.degraded('exceeded quota')),
  poolWith('timed out', intents.timedOut('no instance within 120 s')),
  poolWith('Ambiguous', intents.ambiguous('two Pods run')),
];

function taskWith(says: string, of: (before: Task) => TaskStatus | undefined): Written {
  const before = task();
  const status = of(before);
  const object = { ...before, metadata: { ...before.metadata, generation: 1 } };
  return { says, object: asManifest(status === undefined ? object : { ...object, status: status as unknown as JsonObject }) };
}

export const writtenTasks: readonly Written[] = [
  taskWith('not seen yet', () => undefined),
  taskWith('Pending', () => ({ phase: 'Pending', message: 'waiting for a pool' })),
  taskWith('Running', (before) => moved(before, 'Running', { state: 'Running' }, now)),
  taskWith('Finalizing', (before) => moved(before, 'Finalizing', { state: 'Settling' }, now)),
  taskWith('Succeeded', (before) => succeeded(before, now)),
  taskWith('Failed', (before) => ended(before, { state: 'Failed', reason: 'Lost', message: 'the instance is gone' }, now)),
  taskWith('Cancelled', (before) =>
    ended(before, { state: 'Cancelled', reason: 'Deleted', message: 'the Task was deleted' }, now),
  ),
  taskWith('Scheduled', () => ({ phase: 'Scheduled' })),
];
