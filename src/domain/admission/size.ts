import { nameOf } from '../plan.js';
import { taskRule } from './rule.js';
import type { AdmissionRule } from './rule.js';

/** Room for `-result` in the name of the ConfigMap that takes the answer. */
const longestTaskName = 253 - '-result'.length;
/** Bytes of a prompt that the protocol takes, less what else goes with it into one Secret. */
const longestPrompt = 512 * 1024;

/** What can never be frozen or answered, whatever the workspace. Refused as an execution failure with reason `InvalidRuntimeProfile`. Source: dispatch.md §2.6. */
export const sizeRules: readonly AdmissionRule[] = [
  taskRule(
    'task-name',
    'metadata.name',
    `a name of at most ${longestTaskName} characters: its answer is stored as <name>-result`,
    ({ task }) => task.metadata.name.length > longestTaskName,
  ),
  {
    id: 'prompt-size',
    check: ({ task }) => {
      const size = Buffer.byteLength(task.spec.prompt ?? '');
      return size > longestPrompt
        ? { at: nameOf('Task', task), field: 'spec.prompt', found: `${size} bytes`, allowed: `at most ${longestPrompt} bytes` }
        : undefined;
    },
  },
];
