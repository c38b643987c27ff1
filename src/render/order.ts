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
 * The objects of a construct tree in the order in which they must be applied: dependencies first, otherwise as they were made. Siblings whose
 * ids are whole numbers come before their other siblings, in ascending order: constructs keeps children in an object, and that is its order.
 *
 * Linear in constructs and dependencies, however many objects are on either side of one. An object that depends on itself and a cycle throw
 * {@link RenderError} with two construct paths of the cycle; cdk8s drops such objects without a word.
 */
export function orderedObjects(root: Construct): readonly ApiObject[] {
  const constructs = root.node.findAll();
  const objects = constructs.filter((construct): construct is ApiObject => ApiObject.isApiObject(construct));
  const position = new Map(objects.map((object, index) => [object as Construct, index]));
  const inside = objectsInside(position);
  const graph: Graph = { unblocks: objects.map(() => []), waiting: objects.map(() => 0) };
  for (const construct of constructs) {
    for (const dependency of construct.node.dependencies) {
      const [after, before] = [inside(construct), inside(dependency)];
      if (before.length === 0 || after.length === 0) continue;
      const early = new Set(before);
      const both = after.find((index) => early.has(index));
      if (both !== undefined) throw cycle(objects[both], objects[both]);
      // One node for the dependency as a whole: it costs the sum of both sides instead of their product.
      const gate = graph.waiting.push(before.length) - 1;
      graph.unblocks.push([...after]);
      for (const index of before) graph.unblocks[index]?.push(gate);
      for (const index of after) graph.waiting[index] = (graph.waiting[index] ?? 0) + 1;
    }
  }
  return sorted(objects, graph);
}

/** Nodes are the objects, by their position, and after them one for each dependency. */
interface Graph {
  /** Who waits for a node. */
  readonly unblocks: number[][];
  /** How many nodes a node waits for. */
  readonly waiting: number[];
}

function objectsInside(position: ReadonlyMap<Construct, number>): (construct: Construct) => readonly number[] {
  const known = new Map<Construct, readonly number[]>();
  return (construct) => {
    let inside = known.get(construct);
    if (!inside) {
      inside = construct.node.findAll().flatMap((one) => position.get(one as Construct) ?? []);
      known.set(construct, inside);
    }
    return inside;
  };
}

/** Kahn's algorithm in rounds; of what is ready, the earliest made goes first. */
function sorted(objects: readonly ApiObject[], { unblocks, waiting }: Graph): readonly ApiObject[] {
  const result: ApiObject[] = [];
  let ready = objects.flatMap((_, index) => (waiting[index] === 0 ? [index] : []));
  const release = (node: number, next: number[]): void => {
    waiting[node] = (waiting[node] ?? 0) - 1;
    if (waiting[node] > 0) return;
    if (node < objects.length) next.push(node);
    else for (const after of unblocks[node] ?? []) release(after, next);
  };
  while (ready.length > 0) {
    const next: number[] = [];
    for (const index of ready) {
      const object = objects[index];
      if (object) result.push(object);
      for (const after of unblocks[index] ?? []) release(after, next);
    }
    ready = next.sort((a, b) => a - b);
  }
  if (result.length < objects.length) throw cycleAmong(objects, { unblocks, waiting });
  return result;
}

/** What is left waits for something else that is left; going there again and again ends in a cycle. */
function cycleAmong(objects: readonly ApiObject[], { unblocks, waiting }: Graph): RenderError {
  const waitsFor = new Map<number, number>();
  unblocks.forEach((after, node) => {
    if ((waiting[node] ?? 0) > 0) for (const one of after) if (!waitsFor.has(one)) waitsFor.set(one, node);
  });
  const seen = new Set<number>();
  let node = waiting.findIndex((count, index) => count > 0 && index < objects.length);
  for (; !seen.has(node); node = waitsFor.get(node) ?? node) seen.add(node);
  const round: number[] = [];
  for (let at = node; round.length === 0 || at !== node; at = waitsFor.get(at) ?? node) round.push(at);
  const [first, second] = round.filter((index) => index < objects.length).sort((a, b) => a - b);
  return cycle(objects[first ?? -1], objects[second ?? -1]);
}

function cycle(one: ApiObject | undefined, other: ApiObject | undefined): RenderError {
  return new RenderError('dependency-cycle', {
    at: one?.node.path ?? '',
    field: 'dependencies',
    found: other?.node.path,
    allowed: 'dependencies without a way back',
  });
}

/** An object and where it comes from: a construct path, or a place in a file. */
export interface PlacedManifest {
  readonly at: string;
  readonly manifest: Manifest;
}

/** Throws `duplicate-identity` for the first object that another one in the list already is. */
export function refuseDuplicates(objects: readonly PlacedManifest[]): void {
  const refuse = duplicates();
  for (const object of objects) refuse(object);
}

/** The same for objects that come one by one. */
export function duplicates(): (object: PlacedManifest) => void {
  const seen = new Map<string, string>();
  return ({ at, manifest }) => {
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
  };
}
