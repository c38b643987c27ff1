import type { ClassPatch, Manifest } from '../api/index.js';
import { annotationKeys } from '../domain/labels.js';
import { equalJson, pointerSteps, valueAt } from '../lib/json.js';
import type { Json } from '../lib/json.js';
import { RenderError } from './errors.js';
import type { PatchOperation } from './patch.js';
import type { Resource } from './resource.js';
import { identityRules } from './rules/names.js';
import type { Rule } from './rules/rule.js';
import { schemaRules } from './rules/schema.js';

/** A rendered object that a patch can name. */
export interface PatchTarget {
  readonly kind: string;
  /** The part of its name after the pool, where a pool has several of that kind. */
  readonly suffix?: string;
  readonly resource: Resource;
}

/** Paths of a Pod that have nothing to do with identity, credentials or isolation. `*` is one step, `**` any number, also none. */
const ofPod = [
  'metadata/annotations/*',
  'spec/affinity/**',
  'spec/containers/0/env/*',
  'spec/containers/0/livenessProbe/failureThreshold',
  'spec/containers/0/livenessProbe/initialDelaySeconds',
  'spec/containers/0/livenessProbe/periodSeconds',
  'spec/containers/0/livenessProbe/timeoutSeconds',
  'spec/containers/0/readinessProbe/periodSeconds',
  'spec/containers/0/startupProbe/failureThreshold',
  'spec/containers/0/startupProbe/periodSeconds',
  'spec/containers/0/volumeMounts/*',
  'spec/hostUsers',
  'spec/imagePullSecrets/**',
  'spec/nodeSelector/*',
  'spec/preemptionPolicy',
  'spec/priorityClassName',
  'spec/schedulerName',
  'spec/terminationGracePeriodSeconds',
  'spec/tolerations/**',
  'spec/topologySpreadConstraints/**',
  'spec/volumes/*',
];

/**
 * What a class may patch, by kind. A list of what is allowed, since a list of what is not would always be too short: image, resources,
 * labels, selectors, names, live values and everything about the claim are settings, or nobody's business.
 */
const patchable: Readonly<Record<string, readonly string[]>> = {
  SandboxTemplate: ['metadata/annotations/**', ...ofPod.map((path) => `spec/podTemplate/${path}`)],
  SandboxWarmPool: ['spec/readinessGracePeriodSeconds'],
  Deployment: ['metadata/annotations/**', ...ofPod.map((path) => `spec/template/${path}`)],
  NetworkPolicy: ['metadata/annotations/**', 'spec/egress/**', 'spec/ingress/**'],
  Service: ['metadata/annotations/**'],
  PodDisruptionBudget: ['metadata/annotations/**'],
};

/** The policy that closes everything stays as it is. */
const untouchable = ['deny-all'];

/** Lists to which a patch may only add; what is there belongs to the contract. */
const appendOnly = ['env', 'volumes', 'volumeMounts'];

/** Asked of every patched object, before the rules that it has. */
const patchedRules = [...schemaRules, ...identityRules];

/**
 * Applies the patches of a class to its objects, each strictly and as a whole. After each the whole object is checked against the schema of
 * its kind, and its rules run again.
 */
export function applyClassPatches(at: string, patches: readonly ClassPatch[], targets: readonly PatchTarget[]): void {
  patches.forEach((patch, index) => {
    const where = `${at}/patches[${index}]`;
    const { kind, resource } = targetOf(where, patch.target, targets);
    const before = resource.manifest();
    for (const operation of patch.operations as readonly PatchOperation[]) checkOperation(where, kind, before, operation);
    resource.patch(patch.operations, `${where} of ${kind}`, [...patchedRules, keepsReserved(before)]);
  });
}

function targetOf(at: string, wanted: ClassPatch['target'], targets: readonly PatchTarget[]): PatchTarget {
  const open = targets.filter(({ kind, suffix }) => kind in patchable && !untouchable.includes(suffix ?? ''));
  const matching = open.filter(
    ({ kind, suffix }) => kind === wanted.kind && (wanted.suffix === undefined || suffix === wanted.suffix),
  );
  const [target] = matching;
  if (target && matching.length === 1) return target;
  const named = open.map(({ kind, suffix }) => (suffix ? `${kind} with suffix ${suffix}` : kind));
  throw new RenderError('patch-refused', { at, field: 'target', found: wanted, allowed: `exactly one of ${named.join(', ')}` });
}

/** Domains whose annotations we or the provider read. */
const reservedAnnotation = /(^|\.)(orka\.ai|agents\.x-k8s\.io)\//;

/** Annotations that we or the provider read stay as they were. */
function keepsReserved(before: Manifest): Rule<Manifest> {
  const reservedOf = ({ metadata: { annotations = {} } }: Manifest) =>
    Object.fromEntries(Object.entries(annotations).filter(([key]) => reservedAnnotation.test(key)));
  const wanted = reservedOf(before);
  return {
    id: 'class/reserved-annotations',
    kind: 'policy',
    because: 'we and the provider act on annotations of these domains',
    source: 'workload.md §3.5',
    check: (object) => {
      const found = reservedOf(object);
      if (equalJson(found, wanted)) return undefined;
      return {
        field: 'metadata.annotations',
        found: Object.keys(found),
        allowed: 'annotations outside orka.ai and agents.x-k8s.io',
      };
    },
  };
}

function checkOperation(at: string, kind: string, before: Json, operation: PatchOperation): void {
  const { op, path, from } = operation;
  if (op === 'test') return;
  const refuse = (allowed: string): never => {
    throw new RenderError('patch-refused', { at, field: 'operations', found: operation, allowed });
  };
  const allowed = patchable[kind] ?? [];
  for (const touched of [path, ...(op === 'move' ? [from ?? ''] : [])]) {
    const steps = pointerSteps(touched);
    if (!allowed.some((pattern) => fits(pattern.split('/'), steps))) refuse(`operations on ${allowed.join(', ')}`);
    if (Object.values(annotationKeys).some((key) => steps.at(-1) === key)) refuse('annotations that are not ours');
    // Assigned to an object, it sets the prototype and not a member.
    if (steps.includes('__proto__')) refuse('names other than __proto__');
    const list = steps.at(-2) ?? '';
    if (appendOnly.includes(list) && op !== 'add') refuse(`adding to ${list}`);
    if (list === 'nodeSelector' && valueAt(before, steps) !== undefined) refuse('keys of nodeSelector that are not there yet');
  }
  if (op === 'copy') refuse('add, remove, replace, move and test: a copy could carry a live value');
}

function fits(pattern: readonly string[], steps: readonly string[]): boolean {
  const [head, ...rest] = pattern;
  if (head === undefined) return steps.length === 0;
  if (head === '**') return true;
  const [step, ...others] = steps;
  return step !== undefined && (head === '*' || head === step) && fits(rest, others);
}
