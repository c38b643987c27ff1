import { Counter, Gauge, Histogram } from 'prom-client';
import type { Registry } from 'prom-client';
import { executionOutcomes } from '../api/task.js';
import type { ExecutionOutcome } from '../api/task.js';
import type { Milliseconds } from '../lib/duration.js';
import { sourceRefusals } from '../domain/source-refusals.js';
import type { SourceWork } from './task/source-run.js';
import { waitReasons } from './task/decision.js';
import type { WaitsFor } from './task/decision.js';

/** The stretches of an attempt: until it is reserved, until its pool serves, until its prompt ends, until its outcome is written. */
const attemptPhases = ['queued', 'serving', 'running', 'settling'] as const;
type AttemptPhase = (typeof attemptPhases)[number];

/** What is counted of Tasks. */
export interface TaskMetrics {
  readonly attemptEnded: (outcome: ExecutionOutcome) => void;
  readonly attemptPassed: (phase: AttemptPhase, took: Milliseconds) => void;
  /** Once. Asked at each scrape: what the Tasks wait for that have not begun. */
  readonly tasksWaiting: (list: () => Iterable<WaitsFor>) => void;
  /** The publisher answered for a repository, or did not: `ok`, or the code of the failure. */
  readonly sourceCalled: (work: SourceWork, code: string, took: Milliseconds) => void;
  /** A Task was refused, for this reason. */
  readonly taskRefused: (reason: string) => void;
  /** A Task has ended, well or not, for this reason. */
  readonly taskEnded: (reason: string) => void;
}

/** Seconds. From a warm pool's answer to the longest Task. */
export const phaseBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];

const refusedReasons = ['TaskRefused', 'WorkspaceValidationFailed', 'InvalidWorkspace', 'InvalidRuntimeProfile'];
const endedReasons = [
  'TaskSucceeded',
  'Cancelled',
  'TaskTimeout',
  'PromptFailed',
  'PromptNotAccepted',
  'RuntimeSessionStartFailed',
  'RuntimeLost',
  'RuntimeWorkspaceLost',
  'ReadOnlyWorkspaceModified',
  'WorkspaceValidationFailed',
  'InvalidRuntimeProfile',
  'InvalidWorkspace',
  'WorkspaceUnsupported',
  'CredentialBlocked',
  'InvalidAttempt',
  'RestoreIdentityChanged',
];
/** Reasons of a counter besides those that it has from the start. */
const mostFurtherReasons = 30;

/** Series of Tasks, each at zero from the start. */
export function taskMetrics(registers: Registry[]): TaskMetrics {
  return {
    ...attemptMetrics(registers),
    ...waitingMetrics(registers),
    ...sourceMetrics(registers),
    taskRefused: byReason(
      { name: 'orka_workspaces_tasks_refused_total', help: 'Tasks that were refused, by reason.', registers },
      refusedReasons,
    ),
    taskEnded: byReason(
      { name: 'orka_workspaces_tasks_ended_total', help: 'Tasks that have ended, by reason.', registers },
      endedReasons,
    ),
  };
}

function attemptMetrics(registers: Registry[]): Pick<TaskMetrics, 'attemptEnded' | 'attemptPassed'> {
  const attempts = new Counter({
    name: 'orka_task_attempts_total',
    help: 'Attempts of Tasks that have ended, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  for (const outcome of executionOutcomes) attempts.inc({ outcome }, 0);
  const phases = new Histogram({
    name: 'orka_task_phase_seconds',
    help: 'How long the phases of an attempt took.',
    labelNames: ['phase'],
    buckets: phaseBuckets,
    registers,
  });
  for (const phase of attemptPhases) phases.zero({ phase });
  return {
    attemptEnded: (outcome) => {
      attempts.inc({ outcome });
    },
    attemptPassed: (phase, took) => {
      phases.observe({ phase }, took / 1000);
    },
  };
}

function waitingMetrics(registers: Registry[]): Pick<TaskMetrics, 'tasksWaiting'> {
  let list = (): Iterable<WaitsFor> => [];
  new Gauge({
    name: 'orka_workspaces_tasks_waiting',
    help: 'Tasks that have not begun, by what they wait for.',
    labelNames: ['reason'],
    registers,
    collect() {
      for (const reason of waitReasons) this.set({ reason }, 0);
      for (const reason of list()) this.inc({ reason });
    },
  });
  return {
    tasksWaiting: (of) => {
      list = of;
    },
  };
}

const sourceWorks = ['resolve', 'prepare', 'refresh'] as const satisfies readonly SourceWork[];

function sourceMetrics(registers: Registry[]): Pick<TaskMetrics, 'sourceCalled'> {
  const took = new Histogram({
    name: 'orka_workspaces_source_seconds',
    help: 'How long successful calls of the publisher took.',
    labelNames: ['call'],
    buckets: phaseBuckets,
    registers,
  });
  const failed = new Counter({
    name: 'orka_workspaces_source_failures_total',
    help: 'Calls of the publisher that failed, by call and code.',
    labelNames: ['call', 'code'],
    registers,
  });
  const codes = Object.keys(sourceRefusals);
  for (const call of sourceWorks) {
    took.zero({ call });
    for (const code of codes) failed.inc({ call, code }, 0);
  }
  return {
    sourceCalled: (call, code, milliseconds) => {
      if (code === 'ok') took.observe({ call }, milliseconds / 1000);
      else failed.inc({ call, code: codes.includes(code) ? code : 'other' });
    },
  };
}

/** A counter by reason: those that are known have a series from the start, a bounded number of others gets one, and the rest is `Other`. */
function byReason(
  options: { readonly name: string; readonly help: string; readonly registers: Registry[] },
  known: readonly string[],
): (reason: string) => void {
  const counter = new Counter({ ...options, labelNames: ['reason'] });
  const reasons = new Set([...known, 'Other']);
  for (const reason of reasons) counter.inc({ reason }, 0);
  const most = reasons.size + mostFurtherReasons;
  return (reason) => {
    if (/^[A-Z][A-Za-z0-9]{0,63}$/.test(reason) && reasons.size < most) reasons.add(reason);
    counter.inc({ reason: reasons.has(reason) ? reason : 'Other' });
  };
}
