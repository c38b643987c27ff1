import type { Manifest } from '../api/index.js';

/** The value that an object is found by; `undefined` = this index does not have it. */
export type IndexFunction = (object: Manifest) => string | undefined;

/**
 * Keys of objects by values that are computed from the objects, like the indexers of client-go.
 *
 * A key may have several states at a time, one that is watched and one that was written since, and is found by each of them; the caller compares
 * the one that counts.
 */
export class Indexer {
  readonly #functions: ReadonlyMap<string, IndexFunction>;
  /** By index and value. */
  readonly #keys = new Map<string, Set<string>>();
  /** The members of `#keys` that have a key. */
  readonly #places = new Map<string, readonly string[]>();

  constructor(functions: Readonly<Record<string, IndexFunction>>) {
    this.#functions = new Map(Object.entries(functions));
  }

  /** The states of a key are these and no others. */
  update(key: string, states: readonly Manifest[]): void {
    const before = this.#places.get(key) ?? [];
    const after = this.#placesOf(states);
    for (const place of before) if (!after.includes(place)) this.#forget(place, key);
    for (const place of after) if (!before.includes(place)) this.#remember(place, key);
    if (after.length > 0) this.#places.set(key, after);
    else this.#places.delete(key);
  }

  /** Keys that have a state of this value. */
  keys(index: string, value: string): readonly string[] {
    this.#functionOf(index);
    return [...(this.#keys.get(placeOf(index, value)) ?? [])];
  }

  has(index: string, value: string, object: Manifest): boolean {
    return this.#functionOf(index)(object) === value;
  }

  #functionOf(index: string): IndexFunction {
    const find = this.#functions.get(index);
    if (!find) throw new Error(`there is no index ${index}`);
    return find;
  }

  #placesOf(states: readonly Manifest[]): readonly string[] {
    const places = [...this.#functions].flatMap(([index, find]) =>
      states.flatMap((object) => {
        const value = find(object);
        return value === undefined ? [] : [placeOf(index, value)];
      }),
    );
    return [...new Set(places)];
  }

  #remember(place: string, key: string): void {
    const keys = this.#keys.get(place);
    if (keys) keys.add(key);
    else this.#keys.set(place, new Set([key]));
  }

  #forget(place: string, key: string): void {
    const keys = this.#keys.get(place);
    keys?.delete(key);
    if (keys?.size === 0) this.#keys.delete(place);
  }
}

const placeOf = (index: string, value: string): string => `${index} ${value}`;
