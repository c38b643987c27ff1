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

/** The rules but for those that were allowed to be broken. Rules of the provider always apply, and a name that is none is refused. */
export function rulesWithout(
  at: string,
  rules: readonly Rule<Manifest>[],
  allow: readonly SwitchableRule[] = [],
): readonly Rule<Manifest>[] {
  const unknown = allow.find((id) => !switchableRules.includes(id));
  if (unknown !== undefined)
    throw new RenderError('rule-violated', { at, field: 'allow', found: unknown, allowed: switchableRules.join(', ') });
  return rules.filter(({ id }) => !allow.some((name) => name === id));
}
