import { agentDescriptions } from './agent.js';
import { runtimePoolClassDescriptions } from './runtime-pool-class.js';
import { runtimePoolDescriptions } from './runtime-pool.js';
import { sharedDescriptions } from './shared.js';
import { taskSpecDescriptions } from './task-spec.js';
import { taskStatusDescriptions } from './task-status.js';
import type { Descriptions } from './type.js';

/** For fields whose schema says nothing itself. */
export const descriptions: Descriptions = {
  ...sharedDescriptions,
  ...taskSpecDescriptions,
  ...taskStatusDescriptions,
  ...agentDescriptions,
  ...runtimePoolDescriptions,
  ...runtimePoolClassDescriptions,
};

/**
 * What `kubectl explain` says of a field. Descriptions are only in CRDs: no digest covers them.
 *
 * @param path - from the kind on, with `[]` for the items of a list: `Task.spec.env[].name`
 * @returns the sentence with the longest end of the path; `undefined` = none has one
 */
export function descriptionOf(path: string): string | undefined {
  const key = keyOf(path);
  return key === undefined ? undefined : descriptions[key];
}

/** The longest end of a path that has a sentence. */
export function keyOf(path: string): string | undefined {
  const steps = path.split('.');
  const ends = steps.map((_, index) => steps.slice(index).join('.'));
  return ends.find((one) => Object.hasOwn(descriptions, one));
}
