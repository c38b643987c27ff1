import type { Manifest } from '../../api/index.js';
import { claimLinks, templateLinks, warmPoolLinks } from './links.js';
import type { Linked } from './links.js';
import { networkPolicyRules } from './network-policy.js';
import { firstOf } from './pod-parts.js';
import type { Broken, Rule } from './rule.js';
import { defaultLabelDomains, podLabelRule, sandboxClaimRules } from './sandbox-claim.js';
import { sandboxRules } from './sandbox.js';
import { sandboxTemplateRules } from './sandbox-template.js';
import { sandboxWarmPoolRules } from './sandbox-warm-pool.js';
import { objectRules } from './schema.js';

/** A rule as the registry lists it. */
export interface RegisteredRule extends Omit<Rule<Manifest>, 'check'> {
  /** Kinds of the objects that it is about. */
  readonly appliesTo: readonly string[];
  /** What an object of one of these kinds breaks; rules about several objects look at the others in `linked`. */
  readonly check: (object: Manifest, linked?: Omit<Linked, 'object'>) => Broken | undefined;
}

const perKind: Readonly<Record<string, readonly [readonly Rule<Manifest>[], readonly Rule<Linked>[]]>> = {
  Sandbox: [sandboxRules, []],
  SandboxTemplate: [sandboxTemplateRules, templateLinks],
  SandboxWarmPool: [sandboxWarmPoolRules, warmPoolLinks],
  SandboxClaim: [[...sandboxClaimRules, podLabelRule(defaultLabelDomains)], claimLinks],
  NetworkPolicy: [networkPolicyRules, []],
};

const anyObject = objectRules([]);
/** Kinds with a Pod template. */
const podKinds: readonly string[] = ['Sandbox', 'SandboxTemplate'];

function rulesOf(kind: string, own: readonly Rule<Manifest>[]): readonly Rule<Manifest>[] {
  const { first, last } = anyObject;
  return [...first, ...own, ...last.filter(({ id }) => id !== 'object/pod-schema' || podKinds.includes(kind))];
}

/** Rules of one id are one rule, which may look elsewhere in another kind. */
function registered(): readonly RegisteredRule[] {
  const all = Object.entries(perKind).flatMap(([kind, [own, links]]) => [
    ...rulesOf(kind, own).map(({ check, ...rule }) => ({ rule, kind, check: (object: Manifest) => check(object) })),
    ...links.map(({ check, ...rule }) => ({
      rule,
      kind,
      check: (object: Manifest, linked: Omit<Linked, 'object'> = {}) => check({ ...linked, object }),
    })),
  ]);
  const ids = [...new Set(all.map(({ rule }) => rule.id))].sort();
  return ids.flatMap((id) => {
    const same = all.filter(({ rule }) => rule.id === id);
    return same.slice(0, 1).map(({ rule }) => ({
      ...rule,
      appliesTo: [...new Set(same.map(({ kind }) => kind))],
      check: (object, linked) => firstOf(same, ({ kind, check }) => (kind === object.kind ? check(object, linked) : undefined)),
    }));
  });
}

const rules = registered();

/** Facts about the provider and the API server, sorted by id: what breaks one is refused or misused later, and at synth here. */
export const providerRules: readonly RegisteredRule[] = rules.filter(({ kind }) => kind === 'provider');

/** Our taste, sorted by id; each may be switched off with `allow`. */
export const policyRules: readonly RegisteredRule[] = rules.filter(({ kind }) => kind === 'policy');
