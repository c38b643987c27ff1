/** A JSON value as JavaScript holds it. Members that are `undefined` count as absent. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [member: string]: Json | undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** One step into a value: a member name or an array index. */
export type PathStep = string | number;
export type Path = readonly PathStep[];

/** RFC 6901 text of a path: `/spec/containers/0/name`; `''` is the whole document. */
export function pointer(path: Path): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Steps of an RFC 6901 pointer, all as text; array indices are not told apart from names. */
export function pointerSteps(text: string): readonly string[] {
  return text === ''
    ? []
    : text
        .slice(1)
        .split('/')
        .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** kubectl's spelling of a path: `spec.containers[0].name`, names with dots in brackets: `metadata.labels[orka.ai/x]`. */
export function fieldPath(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z_$][\w$-]*$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${step}]`;
  }
  return text;
}

/** Deep equality of JSON values; absent and `undefined` members are equal, order of members does not count. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => equalJson(item, b[i]));
  if (!isObject(a) || !isObject(b)) return false;
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  for (const name of names) if (!equalJson(a[name], b[name])) return false;
  return true;
}

/** An object of `{…}` or `Object.create(null)`, whichever realm made it; no Date, Map or class instance. */
export function isPlainObject(value: unknown): value is JsonObject {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** What stands at a path, its steps as {@link pointerSteps} gives them; `undefined` = nothing. */
export function valueAt(document: Json, steps: readonly string[]): Json | undefined {
  return steps.reduce<Json | undefined>((value, step) => {
    if (Array.isArray(value)) return /^(0|[1-9]\d*)$/.test(step) ? (value as readonly Json[])[Number(step)] : undefined;
    return isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined;
  }, document);
}

/** Does a stored value have everything that is wanted? Lists must agree item by item; empty and absent are the same. */
export function holds(stored: Json | undefined, wanted: Json | undefined): boolean {
  if (isEmpty(wanted)) return isEmpty(stored);
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(stored) &&
      stored.length === wanted.length &&
      wanted.every((item, index) => holds((stored as readonly Json[])[index], item as Json))
    );
  }
  if (isObject(wanted)) return isObject(stored) && Object.entries(wanted).every(([name, member]) => holds(stored[name], member));
  return stored === wanted;
}

function isEmpty(value: Json | undefined): boolean {
  return value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}

/** The merge patch (RFC 7386) that makes `after` of `before`; `undefined` = they are equal. Lists are replaced as a whole. */
export function mergeChange(before: JsonObject, after: JsonObject): JsonObject | undefined {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const members = names.flatMap((name): [string, Json][] => {
    const [old, wanted] = [before[name], after[name]];
    if (equalJson(old, wanted)) return [];
    if (wanted === undefined) return [[name, null]];
    return [[name, isObject(old) && isObject(wanted) ? (mergeChange(old, wanted) ?? {}) : wanted]];
  });
  return members.length === 0 ? undefined : Object.fromEntries(members);
}
