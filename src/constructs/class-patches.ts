import type { V1PodSpec } from '@kubernetes/client-node';
import type { ClassPatch, Manifest } from '../api/index.js';
import { isObject, pointerSteps } from '../lib/json.js';
import type { Json } from '../lib/json.js';
import { RenderError } from './errors.js';
import { applyPatch, touches } from './patch.js';
import type { PatchOperation } from './patch.js';
import type { Resource } from './resource.js';

/** A rendered object that a patch can name. */
export interface PatchTarget {
  readonly kind: string;
  /** The part of its name after the pool, where a pool has several of that kind. */
  readonly suffix?: string;
  readonly resource: Resource;
  /** Runs every rule of the kind again. */
  readonly recheck: (object: Manifest) => void;
}

/** Identity, selection and direction: what a patch may never change, whatever the class says. */
const identity = [
  '/apiVersion',
  '/kind',
  '/metadata/name',
  '/metadata/namespace',
  '/metadata/labels',
  '/spec/replicas',
  '/spec/selector',
  '/spec/podSelector',
  '/spec/policyTypes',
  '/spec/sandboxTemplateRef',
  '/spec/warmPoolRef',
  '/spec/clusterIP',
];
const podTemplates = ['/spec/podTemplate', '/spec/template'];
const secretVolumes = ['pool-auth', 'provider-capability'];

/** Applies the patches of a class to its objects, each strictly and as a whole, and checks all rules again. */
export function applyClassPatches(at: string, patches: readonly ClassPatch[], targets: readonly PatchTarget[]): void {
  patches.forEach((patch, index) => {
    const where = `${at}/patches[${index}]`;
    const target = targetOf(where, patch.target, targets);
    const operations = patch.operations as readonly PatchOperation[];
    let document = target.resource.manifest();
    for (const operation of operations) {
      const now = document;
      const touched = touches(operation, protectedIn(now), (path) => isInList(now, path));
      if (touched !== undefined) {
        throw new RenderError('patch-refused', {
          at: where,
          field: 'operations',
          found: operation,
          allowed: `operations that leave ${touched} alone`,
        });
      }
      document = applyPatch(where, document, [operation]);
    }
    target.resource.patch(operations);
    target.recheck(document);
  });
}

function targetOf(at: string, wanted: ClassPatch['target'], targets: readonly PatchTarget[]): PatchTarget {
  const matching = targets.filter(
    ({ kind, suffix }) => kind === wanted.kind && (wanted.suffix === undefined || suffix === wanted.suffix),
  );
  const [target] = matching;
  if (target && matching.length === 1) return target;
  const named = targets.map(({ kind, suffix }) => (suffix ? `${kind} with suffix ${suffix}` : kind));
  throw new RenderError('patch-refused', { at, field: 'target', found: wanted, allowed: `exactly one of ${named.join(', ')}` });
}

/** Pointers of everything in an object that carries identity or a fact, where it stands right now. */
function protectedIn(object: Manifest): readonly string[] {
  return [...identity, ...podTemplates.flatMap((at) => protectedInPod(object, at))];
}

function protectedInPod(object: Manifest, at: string): readonly string[] {
  const template = valueAt(object, pointerSteps(at));
  if (!isObject(template)) return [];
  const spec = template['spec'] as unknown as V1PodSpec;
  const own = [`${at}/metadata/labels`, `${at}/metadata/annotations`];
  spec.containers.forEach(({ env = [] }, c) =>
    env.forEach(({ name }, e) => (name.startsWith('ORKA_ACP_') ? own.push(`${at}/spec/containers/${c}/env/${e}`) : undefined)),
  );
  (spec.volumes ?? []).forEach(({ name }, v) => (secretVolumes.includes(name) ? own.push(`${at}/spec/volumes/${v}`) : undefined));
  return own;
}

function isInList(document: Json, path: string): boolean {
  return Array.isArray(valueAt(document, pointerSteps(path).slice(0, -1)));
}

function valueAt(document: Json, steps: readonly string[]): Json | undefined {
  return steps.reduce<Json | undefined>(
    (value, step) =>
      Array.isArray(value) ? (value as readonly Json[])[Number(step)] : isObject(value) ? value[step] : undefined,
    document,
  );
}
