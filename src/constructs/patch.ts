import jsonpatch from 'jsonpatch';
import type { Json } from '../lib/json.js';
import { pointerSteps } from '../lib/json.js';
import { RenderError } from './errors.js';

/** One RFC 6902 operation. */
export interface PatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  readonly path: string;
  readonly from?: string;
  readonly value?: Json;
}

/**
 * The patched document; the given one is left alone. Strict, and all or nothing: a missing path, an index out of bounds or a failed
 * test throws `patch-failed` with the operation. (cdk8s' own patches are lenient and may stop half-way.)
 */
export function applyPatch<T>(at: string, document: T, operations: readonly PatchOperation[]): T {
  let result: T = document;
  operations.forEach((operation, index) => {
    try {
      result = jsonpatch.apply_patch<T>(result, structuredClone([operation]));
    } catch (cause) {
      throw new RenderError(
        'patch-failed',
        {
          at,
          field: `operations[${index}]`,
          found: operation,
          allowed: `an operation that applies (${cause instanceof Error ? cause.message : String(cause)})`,
        },
        { cause },
      );
    }
  });
  return result;
}

/**
 * The first of these pointers at, above or below which an operation changes something, if any. Inserting into a list only moves what
 * follows; it touches what holds the list, but none of its elements.
 */
export function touches(
  operation: PatchOperation,
  pointers: readonly string[],
  isListElement: (path: string) => boolean,
): string | undefined {
  const { op, path, from = '' } = operation;
  if (op === 'test') return undefined;
  const steps = pointers.map((pointer) => ({ pointer, steps: pointerSteps(pointer) }));
  const inserts = op === 'add' && isListElement(path);
  const written = pointerSteps(path);
  const touched = inserts
    ? steps.find((one) => startsWith(written.slice(0, -1), one.steps))
    : steps.find((one) => startsWith(written, one.steps) || startsWith(one.steps, written));
  const read = op === 'move' || op === 'copy' ? pointerSteps(from) : undefined;
  return (touched ?? (read && steps.find((one) => startsWith(read, one.steps) || startsWith(one.steps, read))))?.pointer;
}

function startsWith(path: readonly string[], prefix: readonly string[]): boolean {
  return path.length >= prefix.length && prefix.every((step, index) => step === path[index]);
}
