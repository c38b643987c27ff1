import type { Manifest } from '../api/index.js';

/** What an object is called. */
interface Named {
  readonly metadata: Pick<Manifest['metadata'], 'namespace' | 'name'>;
}

/** `namespace/name` of an object, `name` alone where there are no namespaces. */
export function keyOf({ metadata: { namespace, name } }: Named): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/**
 * What happened to an object. Without `before` it came, without `after` it went. One that was deleted and made again under its name went,
 * and then came.
 */
export type ChangeHandler = (key: string, before: Manifest | undefined, after: Manifest | undefined) => void;

/**
 * Whether a state of an object came after another one, by their resourceVersions, which grow within one kind. Those that are no numbers cannot
 * be compared: `undefined`. Source: KEP-5504.
 */
export function isNewer(version: string | undefined, than: string | undefined): boolean | undefined {
  const [a, b] = [version, than].map((one) => (one !== undefined && /^\d+$/.test(one) ? BigInt(one) : undefined));
  return a === undefined || b === undefined ? undefined : a > b;
}

/** Objects by key, and what changes between them and what the server says. */
export interface Store {
  readonly get: (key: string) => Manifest | undefined;
  readonly list: () => readonly Manifest[];
  readonly put: (object: Manifest) => void;
  /** Nothing happens to an object that is not there. */
  readonly remove: (key: string) => void;
  /** The objects are these and no others. All of them are in the store before the first change is told. */
  readonly replace: (objects: readonly Manifest[]) => void;
}

/** @param tell is called after the store has changed, never for an object whose resourceVersion is the known one, and must not throw */
export function createStore(tell: ChangeHandler): Store {
  let objects = new Map<string, Manifest>();

  const compare = (key: string, before: Manifest | undefined, after: Manifest | undefined): void => {
    if (before && after && before.metadata.uid !== after.metadata.uid) {
      tell(key, before, undefined);
      tell(key, undefined, after);
    } else if (before?.metadata.resourceVersion !== after?.metadata.resourceVersion || !before !== !after) {
      tell(key, before, after);
    }
  };

  return {
    get: (key) => objects.get(key),
    list: () => [...objects.values()],
    put: (object) => {
      const key = keyOf(object);
      const before = objects.get(key);
      objects.set(key, object);
      compare(key, before, object);
    },
    remove: (key) => {
      const before = objects.get(key);
      objects.delete(key);
      compare(key, before, undefined);
    },
    replace: (now) => {
      const before = objects;
      objects = new Map(now.map((object) => [keyOf(object), object]));
      const after = objects;
      for (const [key, object] of before) if (!after.has(key)) compare(key, object, undefined);
      for (const [key, object] of after) compare(key, before.get(key), object);
    },
  };
}
