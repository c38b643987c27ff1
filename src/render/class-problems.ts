import { runtimePoolClassKind, validate } from '../api/index.js';
import type { RuntimePoolClassSpec } from '../api/index.js';
import type { RenderErrorCode } from '../constructs/errors.js';
import { classRules } from '../constructs/rules/own-kinds.js';
import { findingsOf } from '../constructs/rules/rule.js';
import type { Finding } from '../lib/errors.js';

/** What is wrong with the settings of a class. */
export interface ClassProblem {
  readonly code: Extract<RenderErrorCode, 'class-invalid' | 'rule-violated'>;
  /** `field` begins with `spec.`. */
  readonly finding: Finding;
}

/**
 * Everything that schema and rules say against a class, without compiling it. Rules are asked of settings of the right shape only.
 */
export function classProblems(spec: RuntimePoolClassSpec): readonly ClassProblem[] {
  const at = classAt(spec);
  const violations = validate(runtimePoolClassKind, {
    apiVersion: 'core.orka.ai/v1alpha1',
    kind: 'RuntimePoolClass',
    metadata: { name: 'class' },
    spec: { ...spec, approvedDigests: spec.approvedDigests.length > 0 ? spec.approvedDigests : [`sha256:${'0'.repeat(64)}`] },
  });
  if (violations.length > 0)
    return violations.map(({ field, found, allowed }) => ({ code: 'class-invalid', finding: { at, field, found, allowed } }));
  return classRules.flatMap((rule) => findingsOf(at, rule, spec)).map((finding) => ({ code: 'rule-violated', finding }));
}

/** What errors call a class without a name. */
export function classAt({ providerKind, resourceClass }: Pick<RuntimePoolClassSpec, 'providerKind' | 'resourceClass'>): string {
  return `RuntimePoolClass ${providerKind}/${resourceClass}`;
}

/** A problem of a class at the key that its author wrote; one of an object that was made of it keeps the construct path. */
export function atClassKey({ at, field, ...rest }: Finding, name: string, file: string): Finding {
  const key = `classes.${name}`;
  const own = /^spec\.(.*)$/s.exec(at.startsWith('RuntimePoolClass') ? (field ?? '') : '');
  if (own) return { at: file, field: `${key}.${own[1] ?? ''}`, ...rest };
  return { at: `${file}: ${key}: ${at}`, ...(field === undefined ? {} : { field }), ...rest };
}
