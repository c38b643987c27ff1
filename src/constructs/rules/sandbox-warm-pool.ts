import type { Manifest } from '../../api/index.js';
import { identityRules } from './names.js';
import type { Rule } from './rule.js';

interface WarmPoolSpec {
  readonly replicas?: number;
  readonly readinessGracePeriodSeconds?: number | null;
  readonly sandboxTemplateRef: { readonly name: string };
}

/** Seconds. */
const leastGrace = 30;

export const sandboxWarmPoolRules: readonly Rule<Manifest>[] = [
  ...identityRules,
  {
    id: 'warm-pool/replicas',
    kind: 'provider',
    because: 'the API refuses any other number',
    source: 'provider.md §1.4',
    check: (object) => {
      const { replicas } = object['spec'] as unknown as WarmPoolSpec;
      return replicas === undefined || (Number.isInteger(replicas) && replicas >= 0)
        ? undefined
        : { field: 'spec.replicas', found: replicas, allowed: 'a whole number from 0' };
    },
  },
  {
    id: 'warm-pool/readiness-grace',
    kind: 'provider',
    because: 'the API refuses any other number',
    source: 'agent-sandbox v1.0.12',
    check: (object) => {
      const seconds = (object['spec'] as unknown as WarmPoolSpec).readinessGracePeriodSeconds ?? undefined;
      return seconds === undefined || (Number.isInteger(seconds) && seconds >= leastGrace)
        ? undefined
        : {
            field: 'spec.readinessGracePeriodSeconds',
            found: seconds,
            allowed: `a whole number of seconds, at least ${leastGrace}`,
          };
    },
  },
  {
    id: 'warm-pool/template',
    kind: 'provider',
    because: 'a pool without a template shows no condition and its claims wait for ever',
    source: 'provider.md §1.4',
    check: (object) => {
      const { name } = (object['spec'] as unknown as WarmPoolSpec).sandboxTemplateRef;
      return name === ''
        ? { field: 'spec.sandboxTemplateRef.name', found: name, allowed: 'the name of a SandboxTemplate in the same namespace' }
        : undefined;
    },
  },
];
