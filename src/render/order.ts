import { ApiObject } from 'cdk8s';
import type { Construct } from 'constructs';
import type { Manifest } from '../api/index.js';
import { RenderError } from '../constructs/errors.js';

/** What makes two manifests the same object: group, kind, namespace and name; versions of one kind do not count. */
export function identityOf({ apiVersion, kind, metadata }: Manifest): string {
  const group = apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
  return [group, kind, metadata.namespace ?? '', metadata.name].join('/');
}

/**
 * The objects of a construct tree in the order in which they must be applied: dependencies first, otherwise as they were made.
 *
 * Linear in objects and edges. Two objects of one identity, an object that depends on itself and a cycle throw
 * {@link RenderError} with both construct paths; cdk8s drops or keeps such objects without a word.
 */
export function orderedObjects(root: Construct): readonly ApiObject[] {
  const objects = root.node.findAll().filter((construct): construct is ApiObject => ApiObject.isApiObject(construct));
  const position = new Map(objects.map((object, index) => [object as Construct, index]));
  const waitsFor = objects.map(() => new Set<number>());
  for (const construct of root.node.findAll()) {
    for (const dependency of construct.node.dependencies) {
      const after = inside(construct, position);
      const before = inside(dependency, position);
      const both = after.find((index) => before.includes(index));
      if (both !== undefined) throw cycle([objects[both], objects[both]]);
      for (const index of after) for (const other of before) waitsFor[index]?.add(other);
    }
  }
  return sorted(objects, waitsFor);
}

function inside(construct: Construct, position: ReadonlyMap<Construct, number>): readonly number[] {
  return construct.node.findAll().flatMap((one) => position.get(one as Construct) ?? []);
}

/** Kahn's algorithm; of what is ready, the earliest made goes first. */
function sorted(objects: readonly ApiObject[], waitsFor: readonly Set<number>[]): readonly ApiObject[] {
  const waiting = waitsFor.map((set) => set.size);
  const unblocks = objects.map(() => [] as number[]);
  waitsFor.forEach((set, index) => set.forEach((before) => unblocks[before]?.push(index)));
  const result: ApiObject[] = [];
  let ready = waiting.flatMap((count, index) => (count === 0 ? [index] : []));
  while (ready.length > 0) {
    const next: number[] = [];
    for (const index of ready) {
      const object = objects[index];
      if (object) result.push(object);
      for (const after of unblocks[index] ?? []) {
        waiting[after] = (waiting[after] ?? 0) - 1;
        if (waiting[after] === 0) next.push(after);
      }
    }
    ready = next.sort((a, b) => a - b);
  }
  if (result.length < objects.length) throw cycle(objects.filter((object) => !result.includes(object)));
  return result;
}

function cycle(objects: readonly (ApiObject | undefined)[]): RenderError {
  const paths = objects.slice(0, 2).map((object) => object?.node.path ?? '');
  return new RenderError('dependency-cycle', {
    at: paths[0] ?? '',
    field: 'dependencies',
    found: paths[1],
    allowed: 'dependencies without a way back',
  });
}

/** Throws `duplicate-identity` for the first object that another one in the list already is. */
export function refuseDuplicates(objects: readonly { readonly at: string; readonly manifest: Manifest }[]): void {
  const seen = new Map<string, string>();
  for (const { at, manifest } of objects) {
    const identity = identityOf(manifest);
    const first = seen.get(identity);
    if (first !== undefined) {
      throw new RenderError('duplicate-identity', {
        at,
        field: 'metadata.name',
        found: identity,
        allowed: `another name: ${first} is this object already`,
      });
    }
    seen.set(identity, at);
  }
}
