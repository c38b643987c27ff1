import { agentKind } from './agent.js';
import type { Kind } from './kind.js';
import { runtimePoolClassKind } from './runtime-pool-class.js';
import { runtimePoolKind } from './runtime-pool.js';
import { taskKind } from './task.js';

export * from './agent.js';
export { crd } from './crd.js';
export * from './execution.js';
export * from './kind.js';
export * from './meta.js';
export * from './runtime-pool-class.js';
export * from './runtime-pool.js';
export * from './task.js';
export { validate, validateUpdate, withDefaults } from './validate.js';
export type { Violation } from './validate.js';

/** The four kinds of this group, in the order in which they are installed. */
export const kinds: readonly Kind<unknown>[] = [taskKind, agentKind, runtimePoolKind, runtimePoolClassKind];
