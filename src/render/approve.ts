import type { Digest } from '../domain/digests.js';
import { CodedError } from '../lib/errors.js';
import type { Finding } from '../lib/errors.js';
import { atClassKey } from './class-problems.js';
import { classDigest, compile } from './compile.js';
import type { CompiledPool } from './compile.js';
import { refuseAll } from './platform.js';
import type { PlatformClass } from './platform.js';

/** A class of the platform with the digest that this renderer computes for it. */
export interface ApprovedClass {
  readonly name: string;
  readonly compiled: CompiledPool;
  readonly digest: Digest;
}

/**
 * Approves classes of a platform file. Throws one `PlatformError` with the problem of each class that cannot be compiled, at the
 * key of the file.
 */
export function approveAll(classes: readonly PlatformClass[], file: string): readonly ApprovedClass[] {
  const problems: Finding[] = [];
  const approved = classes.flatMap((one): readonly ApprovedClass[] => {
    try {
      return [approve(one)];
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      problems.push(atClassKey(error.finding, one.name, file));
      return [];
    }
  });
  refuseAll(problems);
  return approved;
}

/** Compiles a class and approves its own digest, beside those that the platform approves too. */
export function approve({ name, spec, alsoApprove }: PlatformClass): ApprovedClass {
  const draft = compile({ ...spec, approvedDigests: [] });
  const digest = classDigest(draft);
  const approvedDigests = [...new Set([digest, ...alsoApprove])];
  return { name, compiled: { ...draft, spec: { ...spec, approvedDigests } }, digest };
}
