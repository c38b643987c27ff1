import type { Manifest, ProviderKind, RuntimePool, RuntimePoolClass, RuntimePoolClassStatus } from '../api/index.js';
import type { Digest } from '../domain/digests.js';
import { annotationKeys } from '../domain/labels.js';
import { missingClass } from '../domain/missing-class.js';
import { selectableResourceClass } from '../domain/plan.js';
import type { JsonObject } from '../lib/json.js';
import { equalJson } from '../lib/json.js';
import { classDigest, compile } from '../render/compile.js';
import type { CompiledPool } from '../render/compile.js';

/** What may be said of a class that is there. */
export const classStates = ['ready', 'drifted', 'ambiguous', 'invalid'] as const;
export type ClassState = (typeof classStates)[number];

/** A class as this controller sees it. Nothing is created from one that is not `ready`. */
export type ClassVerdict =
  | { readonly state: 'ready'; readonly name: string; readonly compiled: CompiledPool; readonly digest: Digest }
  /** `unreadable`: whether there is one is not known. */
  | {
      readonly state: 'missing' | 'unreadable' | 'drifted' | 'ambiguous' | 'invalid';
      readonly name?: string;
      readonly says: string;
    };

/** Digest of the class that a pool was made from. */
export function classDigestOf({ metadata }: RuntimePool): string | undefined {
  return (metadata.annotations?.[annotationKeys.poolClass] ?? '').split('@')[1];
}

/** A pool is only ever rendered from the class as it was when the pool was made. */
export function isMadeFrom(pool: RuntimePool, { digest }: { readonly digest: Digest }): boolean {
  return classDigestOf(pool) === digest;
}

export interface Classes {
  /** The state of each class that is there. */
  readonly states: () => readonly { readonly name: string; readonly state: ClassState }[];
  /** The class that Tasks of a provider kind run with. */
  readonly of: (kind: ProviderKind) => ClassVerdict;
  /** The status that a class should have; `undefined` = it has it. */
  readonly statusChange: (
    name: string,
    now: string,
  ) => { readonly object: Manifest; readonly status: RuntimePoolClassStatus } | undefined;
}

type Compilation = { readonly compiled: CompiledPool; readonly digest: Digest } | { readonly says: string };

/** Compiles each class once for each of its generations. @param readable whether `list` says all that there is */
export function createClasses(list: () => readonly Manifest[], readable: () => boolean = () => true): Classes {
  const known = new Map<string, { readonly generation: number; readonly result: Compilation }>();

  function compilationOf(object: RuntimePoolClass): Compilation {
    const [uid, generation] = [object.metadata.uid ?? '', object.metadata.generation ?? 0];
    const cached = known.get(uid);
    if (cached?.generation === generation) return cached.result;
    const result = tryCompile(object);
    known.set(uid, { generation, result });
    return result;
  }

  const all = (): readonly RuntimePoolClass[] => list() as unknown as readonly RuntimePoolClass[];

  function verdictOf(object: RuntimePoolClass): ClassVerdict {
    const { name } = object.metadata;
    const { providerKind, resourceClass, approvedDigests } = object.spec;
    const twins = all().filter(({ spec }) => spec.providerKind === providerKind && spec.resourceClass === resourceClass);
    if (twins.length > 1) {
      const names = twins.map((twin) => twin.metadata.name).sort();
      return {
        state: 'ambiguous',
        name,
        says: `classes ${names.join(' and ')} are both for ${providerKind}/${resourceClass}; delete one`,
      };
    }
    const result = compilationOf(object);
    if ('says' in result) return { state: 'invalid', name, says: result.says };
    if (!approvedDigests.includes(result.digest)) {
      const says = `class ${name} compiles to ${result.digest} here, which is not among its approvedDigests; review and apply its synthesized manifest`;
      return { state: 'drifted', name, says };
    }
    return { state: 'ready', name, ...result };
  }

  return {
    states: () => all().map((object) => ({ name: object.metadata.name, state: verdictOf(object).state as ClassState })),
    of: (kind) => {
      const found = all().find(({ spec }) => spec.providerKind === kind && spec.resourceClass === selectableResourceClass);
      if (found) return verdictOf(found);
      const names = all().map(({ metadata: { name }, spec: { providerKind, resourceClass } }) => ({
        name,
        providerKind,
        resourceClass,
      }));
      return readable()
        ? { state: 'missing', says: missingClass(kind, names) }
        : { state: 'unreadable', says: 'the controller may not list RuntimePoolClasses' };
    },
    statusChange: (name, now) => {
      const object = all().find(({ metadata }) => metadata.name === name);
      if (!object) return undefined;
      const verdict = verdictOf(object);
      const result = compilationOf(object);
      const ready = verdict.state === 'ready';
      const reason = ready ? 'Approved' : `${verdict.state.charAt(0).toUpperCase()}${verdict.state.slice(1)}`;
      const before = object.status?.conditions?.find(({ type }) => type === 'Ready');
      const condition = {
        type: 'Ready',
        status: ready ? ('True' as const) : ('False' as const),
        observedGeneration: object.metadata.generation ?? 0,
        reason,
        message: ready ? 'pools are rendered from this class' : verdict.says,
        lastTransitionTime: before?.status === (ready ? 'True' : 'False') ? before.lastTransitionTime : now,
      };
      const stalledBefore = object.status?.conditions?.find(({ type }) => type === 'Stalled');
      const stalled = {
        ...condition,
        type: 'Stalled',
        status: 'True' as const,
        lastTransitionTime: stalledBefore?.lastTransitionTime ?? now,
      };
      const status: RuntimePoolClassStatus = {
        observedGeneration: object.metadata.generation ?? 0,
        ...('digest' in result ? { digest: result.digest } : {}),
        // A drifted class may be approved a moment later, by the same delivery; these two wait for a person.
        conditions: verdict.state === 'ambiguous' || verdict.state === 'invalid' ? [condition, stalled] : [condition],
      };
      return equalJson(object.status, status) ? undefined : { object: object as unknown as Manifest & JsonObject, status };
    },
  };
}

function tryCompile({ spec }: RuntimePoolClass): Compilation {
  try {
    const compiled = compile(spec);
    return { compiled, digest: classDigest(compiled) };
  } catch (error) {
    return { says: error instanceof Error ? error.message : String(error) };
  }
}
