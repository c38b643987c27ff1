import type { Manifest, RuntimePoolClassStatus } from '../api/index.js';
import type { KubeClient } from '../kube/client.js';
import { timestamp } from '../kube/clock.js';
import type { Clock } from '../kube/clock.js';
import type { KubeEvent } from '../kube/events.js';
import { isObject, mergeChange } from '../lib/json.js';
import type { JsonObject } from '../lib/json.js';
import type { Classes } from './classes.js';
import { patchWatched } from './patch.js';
import type { World } from './world.js';

export interface ClassReconcilerOptions {
  readonly client: KubeClient;
  readonly world: Pick<World, 'classes'>;
  readonly classes: Pick<Classes, 'statusChange'>;
  readonly manager: string;
  readonly clock: Clock;
  readonly record: (event: KubeEvent) => void;
}

/** Writes the status of a class when it changed, and one event when its Ready condition says something else. */
export function createClassReconciler(options: ClassReconcilerOptions): (key: string, signal: AbortSignal) => Promise<undefined> {
  const { client, world, classes, manager, clock, record } = options;
  return async (key, signal) => {
    const name = key.slice(key.indexOf('/') + 1);
    const wanted = classes.statusChange(name, timestamp(clock.now()));
    const change = wanted && mergeChange((wanted.object['status'] ?? {}) as JsonObject, wanted.status);
    if (!change) return undefined;
    const how = { manager, subresource: 'status', signal } as const;
    const stored = await patchWatched(client, world.classes, wanted.object, { status: change }, how);
    const event = readinessEvent(stored, readyOf(wanted.object['status'] as RuntimePoolClassStatus | undefined), wanted.status);
    if (event) record(event);
    return undefined;
  };
}

type Ready = NonNullable<RuntimePoolClassStatus['conditions']>[number] | undefined;

const readyOf = (status: RuntimePoolClassStatus | undefined): Ready =>
  isObject(status) ? status.conditions?.find(({ type }) => type === 'Ready') : undefined;

function readinessEvent(regarding: Manifest, before: Ready, status: RuntimePoolClassStatus): KubeEvent | undefined {
  const after = readyOf(status);
  if (!after || (before?.reason === after.reason && before.message === after.message)) return undefined;
  const type = after.status === 'True' ? 'Normal' : 'Warning';
  return { regarding, type, reason: after.reason, action: 'Compile', note: after.message };
}
