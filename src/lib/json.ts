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
