import type { Manifest } from '../api/index.js';
import { systemClock } from './clock.js';
import type { Clock } from './clock.js';
import { Indexer } from './indexer.js';
import type { IndexFunction } from './indexer.js';
import type { Reflector } from './reflector.js';
import { isNewer, keyOf } from './store.js';
import type { ChangeHandler } from './store.js';

/**
 * Milliseconds after which the watch is right, whatever we wrote: a server that was restored from a backup counts its versions from an earlier
 * one. Everything else is decided by version.
 */
const forgottenAfter = 600_000;
/** The same for a server whose versions cannot be compared, and for a kind that is not reflected. */
const forgottenUncompared = 10_000;

/** The objects of a reflector as of the last thing that is known, be it from the watch or from the answer to a write of ours. */
export interface View {
  readonly get: (key: string) => Manifest | undefined;
  readonly list: () => readonly Manifest[];
  /** Those that an index finds by a value, without a look at the others. */
  readonly by: (index: string, value: string) => readonly Manifest[];
  /** Records what the server has: the answer to a write, or to a read. One that is older than what is known changes nothing. */
  readonly wrote: (object: Manifest) => void;
  /** Records that an object is gone for good: it is not found, or it was deleted and had nothing that delayed its end. */
  readonly removed: (object: Manifest) => void;
  /** To be called first by the reflector's own handler. */
  readonly changed: ChangeHandler;
}

interface Own {
  readonly object: Manifest;
  readonly gone: boolean;
  /** In elapsed time. */
  readonly at: number;
}

/**
 * A watch lags behind our own writes; deciding on what it had before would mean to write again what is written. What we wrote counts until the
 * watch has come that far, however long it takes, so that nobody sees an object go back to an earlier state.
 */
export function createView(
  reflector: () => Pick<Reflector, 'get' | 'list' | 'reached'>,
  {
    clock = systemClock,
    indexes = {},
  }: { readonly clock?: Clock; readonly indexes?: Readonly<Record<string, IndexFunction>> } = {},
): View {
  const written = new Map<string, Own>();
  const indexer = new Indexer(indexes);

  /** After each change of what is watched, or of what was written. */
  function index(key: string): void {
    indexer.update(
      key,
      [reflector().get(key), written.get(key)?.object].flatMap((object) => object ?? []),
    );
  }

  function newest(key: string, known: Manifest | undefined): Manifest | undefined {
    const own = written.get(key);
    if (!own) return known;
    if (isOver(own, known)) {
      written.delete(key);
      index(key);
      return known;
    }
    return own.gone ? undefined : own.object;
  }

  function isOver({ object, gone, at }: Own, known: Manifest | undefined): boolean {
    const ahead = isNewer(object.metadata.resourceVersion, reflector().reached());
    if (clock.elapsed() - at > (ahead === undefined ? forgottenUncompared : forgottenAfter)) return true;
    if (!known) return ahead === false;
    // The watch may still tell what happened to an object before it went.
    return !isLater(object, known) && !(gone && isSame(known, object));
  }

  const get = (key: string) => newest(key, reflector().get(key));

  return {
    get,
    by: (name, value) =>
      indexer.keys(name, value).flatMap((key) => {
        const object = get(key);
        return object && indexer.has(name, value, object) ? [object] : [];
      }),
    list: () => {
      const known = new Map(
        reflector()
          .list()
          .map((object) => [keyOf(object), object]),
      );
      const keys = new Set([...known.keys(), ...written.keys()]);
      return [...keys].flatMap((key) => newest(key, known.get(key)) ?? []);
    },
    wrote: (object) => {
      const key = keyOf(object);
      const own = written.get(key);
      // Answers may come in another order than they were given in.
      if (own && (isLater(own.object, object) || (own.gone && isSame(own.object, object)))) return;
      written.set(key, { object, gone: false, at: clock.elapsed() });
      index(key);
    },
    removed: (object) => {
      const key = keyOf(object);
      const own = written.get(key)?.object;
      const later = own && isLater(own, object);
      if (later && !isSame(own, object)) return;
      written.set(key, { object: later ? own : object, gone: true, at: clock.elapsed() });
      index(key);
    },
    changed: (key, before, after) => {
      // Gone is gone, whatever we wrote into it before; one that we made since under its name is another.
      const own = written.get(key);
      if (after === undefined && before?.metadata.uid === own?.object.metadata.uid) written.delete(key);
      index(key);
    },
  };
}

function isLater(a: Manifest, b: Manifest): boolean {
  return isNewer(a.metadata.resourceVersion, b.metadata.resourceVersion) === true;
}

function isSame(a: Manifest, b: Manifest): boolean {
  return a.metadata.uid === b.metadata.uid;
}
