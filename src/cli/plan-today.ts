import type { Platform } from '../render/platform.js';
import type { ChosenClass } from './plan-result.js';

/** Why the installed controller would begin nothing. */
export interface Obstacle {
  /** `unseen`: no controller reads the Task. `waiting`: it stays Pending until an operator acts, or until its deadline. */
  readonly verdict: 'unseen' | 'waiting';
  readonly says: string;
}

/** What stands in the way of any Task of a namespace. */
export function platformObstacle(namespace: string, platform: Platform | undefined, file: string): Obstacle | undefined {
  if (!platform) return undefined;
  if (!platform.namespaces.tasks.includes(namespace))
    return {
      verdict: 'unseen',
      says: `${file} does not list the namespace ${namespace} under namespaces.tasks: the controller would not see the Task`,
    };
  if (platform.controller.replicas === 0)
    return { verdict: 'unseen', says: `${file} has controller.replicas: 0: no controller would see the Task` };
  if (platform.controller.paused)
    return { verdict: 'waiting', says: `${file} has controller.paused: true: the Task would wait until new Tasks are resumed` };
  return undefined;
}

/** What stands in the way of a Task that would be accepted. */
export function classObstacle({ approved, name, digest }: ChosenClass): Obstacle | undefined {
  if (approved) return undefined;
  return {
    verdict: 'waiting',
    says: `the class ${name} is not approved: its digest ${digest} is not among spec.approvedDigests, and the Task would wait until its own deadline`,
  };
}
