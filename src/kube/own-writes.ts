import type { Manifest } from '../api/index.js';
import { systemClock } from './clock.js';
import type { Clock } from './clock.js';
import type { Reflector } from './reflector.js';
import { keyOf } from './store.js';
import type { ChangeHandler } from './store.js';

/** Milliseconds after which a watch must have told what we wrote; beyond it the watch is right. */
const forgottenAfter = 10_000;

/** The objects of a reflector as of the last thing that is known, be it from the watch or from the answer to a write of ours. */
export interface View {
  readonly get: (key: string) => Manifest | undefined;
  readonly list: () => readonly Manifest[];
  /** Records the answer to a write. */
  readonly wrote: (object: Manifest) => void;
  /** Records that an object was deleted, and had nothing that delayed its end. */
  readonly removed: (object: Manifest) => void;
  /** To be called first by the reflector's own handler. */
  readonly changed: ChangeHandler;
}

/** A watch lags behind our own writes; deciding on what it had before would mean to write again what is written. */
export function createView(reflector: () => Pick<Reflector, 'get' | 'list'>, clock: Clock = systemClock): View {
  const written = new Map<string, { readonly object: Manifest; readonly gone: boolean; readonly at: number }>();

  function newest(key: string, known: Manifest | undefined): Manifest | undefined {
    const own = written.get(key);
    if (!own) return known;
    const outdated = own.gone ? known?.metadata.uid !== own.object.metadata.uid : known && !isNewer(own.object, known);
    if (outdated === true || clock.elapsed() - own.at > forgottenAfter) {
      written.delete(key);
      return known;
    }
    return own.gone ? undefined : own.object;
  }

  return {
    get: (key) => newest(key, reflector().get(key)),
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
      written.set(keyOf(object), { object, gone: false, at: clock.elapsed() });
    },
    removed: (object) => {
      written.set(keyOf(object), { object, gone: true, at: clock.elapsed() });
    },
    changed: (key, before, after) => {
      // Gone is gone, whatever we wrote into it before; one that we made since under its name is another.
      const own = written.get(key);
      if (after === undefined && before?.metadata.uid === own?.object.metadata.uid) written.delete(key);
    },
  };
}

/** Resource versions of one kind grow. Source: KEP-5504. */
function isNewer(own: Manifest, known: Manifest): boolean {
  const [a, b] = [own, known].map(({ metadata }) => /^\d+$/.exec(metadata.resourceVersion ?? '')?.[0]);
  return a !== undefined && b !== undefined && BigInt(a) > BigInt(b);
}
