/** A value, and all that it was computed from. */
export interface Computed<R> {
  readonly from: readonly unknown[];
  readonly value: R;
}

/** What is known, where it was computed from the same; otherwise what is computed now. Things are told apart by `===`. */
export function computedFrom<R>(known: Computed<R> | undefined, from: readonly unknown[], compute: () => R): Computed<R> {
  return known?.from.every((one, index) => one === from[index]) ? known : { from, value: compute() };
}

/**
 * A pure function that is computed once for the same arguments: the last answer is kept for each first argument, for as long as that object is
 * there. Arguments are told apart by identity, so it is for objects that never change.
 */
export function remembered<O extends object, Rest extends readonly unknown[], R>(
  compute: (object: O, ...rest: Rest) => R,
): (object: O, ...rest: Rest) => R {
  const known = new WeakMap<O, Computed<R>>();
  return (object, ...rest) => {
    const last = computedFrom(known.get(object), rest, () => compute(object, ...rest));
    known.set(object, last);
    return last.value;
  };
}
