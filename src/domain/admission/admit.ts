import type { Finding } from '../../lib/errors.js';
import { compatibilityRules } from './compatibility.js';
import { preflightRules } from './preflight.js';
import { routingRules, routingWithWorkspaceStatus } from './routing.js';
import { wantsWorkspace } from './rule.js';
import type { AdmissionInput, AdmissionRule } from './rule.js';
import { shapeRules } from './shape.js';
import { sizeRules } from './size.js';
import { workspaceRules } from './workspace.js';

type Gate = 'compatibility' | 'shape' | 'routing' | 'workspace' | 'preflight' | 'plan';

/** Why a Task is not run. Nothing but the Task's status may exist after it. */
export interface Refusal {
  readonly gate: Gate;
  /** Id of the rule within its gate. */
  readonly rule: string;
  readonly finding: Finding;
  /** `workspace` = the workspace status is written too; `execution` = the execution status says `reason`. */
  readonly projection: 'task' | 'workspace' | 'execution';
  readonly reason?: 'InvalidWorkspace' | 'InvalidRuntimeProfile';
}

interface GateTable {
  readonly gate: Gate;
  readonly rules: readonly AdmissionRule[];
  readonly applies: (input: AdmissionInput) => boolean;
  readonly projection: (rule: string, input: AdmissionInput) => Refusal['projection'];
  readonly reason?: Refusal['reason'];
}

const always = (): boolean => true;
const gates: readonly GateTable[] = [
  {
    gate: 'compatibility',
    rules: compatibilityRules,
    applies: ({ task }) => task.spec.type === 'agent',
    projection: () => 'task',
  },
  { gate: 'shape', rules: shapeRules, applies: always, projection: (_, input) => (wantsWorkspace(input) ? 'workspace' : 'task') },
  {
    gate: 'routing',
    rules: routingRules,
    applies: always,
    projection: (rule, input) => (wantsWorkspace(input) && routingWithWorkspaceStatus.includes(rule) ? 'workspace' : 'task'),
  },
  { gate: 'workspace', rules: workspaceRules, applies: wantsWorkspace, projection: () => 'workspace' },
  { gate: 'preflight', rules: preflightRules, applies: always, projection: () => 'execution', reason: 'InvalidWorkspace' },
  { gate: 'plan', rules: sizeRules, applies: always, projection: () => 'execution', reason: 'InvalidRuntimeProfile' },
];

/** Asks every gate in order and returns the first refusal; `undefined` = admitted. Pure. */
export function admit(input: AdmissionInput): Refusal | undefined {
  for (const { gate, rules, applies, projection, reason } of gates) {
    if (!applies(input)) continue;
    for (const { id, check } of rules) {
      const finding = check(input);
      if (finding) return { gate, rule: id, finding, projection: projection(id, input), ...(reason ? { reason } : {}) };
    }
  }
  return undefined;
}
