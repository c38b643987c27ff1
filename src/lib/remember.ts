/**
 * A pure function that is computed once for the same arguments: the last answer is kept for each first argument, for as long as that object is
 * there. Arguments are told apart by identity, so it is for objects that never change.
 */
export function remembered<O extends object, Rest extends readonly unknown[], R>(
  compute: (object: O, ...rest: Rest) => R,
): (object: O, ...rest: Rest) => R {
  const known = new WeakMap<O, { readonly rest: Rest; readonly value: R }>();
  return (object, ...rest) => {
    const last = known.get(object);
    if (last?.rest.every((one, index) => one === rest[index])) return last.value;
    const value = compute(object, ...rest);
    known.set(object, { rest, value });
    return value;
  };
}
