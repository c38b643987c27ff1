import jsonpatch from 'jsonpatch';
import type { Json } from '../lib/json.js';
import { equalJson, pointerSteps, valueAt } from '../lib/json.js';
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
      if (operation.op === 'test') assertHolds(result as Json, operation);
      else result = jsonpatch.apply_patch<T>(result, structuredClone([operation]));
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

/** jsonpatch's own comparison takes any two objects for equal. */
function assertHolds(document: Json, { path, value }: PatchOperation): void {
  const found = valueAt(document, pointerSteps(path));
  if (value === undefined || found === undefined || !equalJson(found, value))
    throw new Error(`test found ${JSON.stringify(found)}`);
}
