import type { Digest } from '../domain/digests.js';
import { classDigest, compile } from './compile.js';
import type { CompiledPool } from './compile.js';
import type { PlatformClass } from './platform.js';

/** A class of the platform with the digest that this renderer computes for it. */
export interface ApprovedClass {
  readonly name: string;
  readonly compiled: CompiledPool;
  readonly digest: Digest;
}

/** Compiles a class and approves its own digest, beside those that the platform approves too. */
export function approve({ name, spec, alsoApprove }: PlatformClass): ApprovedClass {
  const draft = compile({ ...spec, approvedDigests: [] });
  const digest = classDigest(draft);
  const approvedDigests = [...new Set([digest, ...alsoApprove])];
  return { name, compiled: { ...draft, spec: { ...spec, approvedDigests } }, digest };
}
