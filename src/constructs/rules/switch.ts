import type { Manifest } from '../../api/index.js';
import { RenderError } from '../errors.js';
import type { Rule } from './rule.js';

/** Rules that may be switched off, each by its id: those of our taste, and facts that do not hold everywhere. */
export const switchableRules = [
  'claim/name',
  'claim/short-ttl',
  'network-policy/open-rule',
  'network-policy/protocol',
  'network-policy/ranges',
  'network-policy/types',
  'pod/capabilities',
  'pod/dropped-fields',
  'pod/host-namespaces',
  'pod/host-path',
  'pod/host-ports',
  'pod/privileged',
  'pod/reserved-keys',
  'pod/service-account-token',
  'pod/unconfined',
  'template/default-network',
  'template/overrides',
  'template/unmanaged-network',
] as const;

/** Id of a rule that may be switched off. */
export type SwitchableRule = (typeof switchableRules)[number];

/**
 * A field that this version does not know and renders unchecked: `field:spec.x`, spelled as the refusal spells it, or with `[*]` for
 * any item of a list. What is below it is not checked.
 */
export type AllowedField = `field:${string}`;

/** What `allow` of a construct or a manifest may name. */
export type Allowance = SwitchableRule | AllowedField;

const isField = (name: string): name is AllowedField => name.startsWith('field:');

/** The paths of the fields that `allow` names. */
export function allowedFields(allow: readonly Allowance[] = []): readonly string[] {
  return allow.filter(isField).map((name) => name.slice('field:'.length));
}

/** The rules but for those that were allowed to be broken. Rules of the provider always apply, and a name that is none is refused. */
export function rulesWithout(
  at: string,
  rules: readonly Rule<Manifest>[],
  allow: readonly Allowance[] = [],
): readonly Rule<Manifest>[] {
  const unknown = allow.find((name) => !/^field:\S/.test(name) && !switchableRules.some((id) => id === name));
  if (unknown !== undefined) {
    const allowed = `field:<path of an unknown field>, ${switchableRules.join(', ')}`;
    throw new RenderError('rule-violated', { at, field: 'allow', found: unknown, allowed });
  }
  return rules.filter(({ id }) => !allow.some((name) => name === id));
}
