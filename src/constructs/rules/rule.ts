import { describeFinding } from '../../lib/errors.js';
import type { Finding } from '../../lib/errors.js';
import { RenderError } from '../errors.js';

/** What a rule says when it is broken. */
export type Broken = Pick<Finding, 'field' | 'found' | 'allowed'>;

/** A fact about objects of one kind, as data: checked at synth, instead of found out from a condition later. */
export interface Rule<T> {
  readonly id: string;
  /** `provider` = the provider or the API server rejects or misuses it later; `policy` = our own taste. */
  readonly kind: 'provider' | 'policy';
  readonly because: string;
  readonly source: string;
  /** Where a provider rule does not hold. There, and only then, it may be switched off by its id as a policy rule may. */
  readonly unless?: string;
  readonly check: (object: T) => Broken | undefined;
}

/** A rule that can list everything that breaks it; `check` names the first of it. */
export interface ListingRule<T> extends Rule<T> {
  readonly all?: (object: T) => readonly Broken[];
}

/** Throws for the first rule that an object breaks, with the construct path and the reason. */
export function enforce<T>(at: string, rules: readonly Rule<T>[], object: T): void {
  for (const rule of rules) {
    const finding = findingOf(at, rule, object);
    if (finding) throw new RenderError('rule-violated', finding);
  }
}

/** As {@link enforce}, as cdk8s asks at synth: the text of the first broken rule, without the construct path, which cdk8s adds. */
export function brokenText<T>(rules: readonly Rule<T>[], object: T): string[] {
  try {
    enforce('', rules, object);
    return [];
  } catch (error) {
    if (error instanceof RenderError) return [describeFinding(error.finding)];
    throw error;
  }
}

/** What an object breaks of a rule, told with the rule; `undefined` = nothing. */
export function findingOf<T>(at: string, rule: Rule<T>, object: T): Finding | undefined {
  const broken = ask(at, rule, object);
  return broken && told(at, rule, broken);
}

/** Everything that an object breaks of a rule. */
export function findingsOf<T>(at: string, rule: ListingRule<T>, object: T): readonly Finding[] {
  const first = findingOf(at, rule, object);
  return first && rule.all ? rule.all(object).map((broken) => told(at, rule, broken)) : first ? [first] : [];
}

function told<T>(at: string, { id, because }: Rule<T>, broken: Broken): Finding {
  return { at, ...broken, allowed: `${broken.allowed ?? 'another value'} (${id}: ${because})` };
}

/** A rule reads an object as the API has it; an object of another shape, which only a patch or untyped code can make, breaks it. */
function ask<T>(at: string, rule: Rule<T>, object: T): Broken | undefined {
  try {
    return rule.check(object);
  } catch (cause) {
    throw new RenderError('rule-violated', { at, allowed: `an object of the shape that the API has (${rule.id})` }, { cause });
  }
}
