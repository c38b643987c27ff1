import type { RuntimePool, RuntimePoolClassSpec } from '../api/index.js';
import type { Finding } from '../lib/errors.js';
import { equalJson } from '../lib/json.js';
import { frozenByClass, frozenByPool, frozenFields } from './frozen.js';
import type { FrozenValues } from './frozen.js';
import { labelKeys } from './labels.js';
import { nameOf } from './plan.js';
import { profileDigest } from './profile.js';
import type { RuntimeProfile } from './profile.js';

/** What keeps a stored pool from being run at all, whatever its class. The schema has been checked by the API server. Source: workload.md §1.3. */
export function poolProblem(pool: RuntimePool): Finding | undefined {
  const { metadata, spec } = pool;
  const problem = (field: string, found: unknown, allowed: string): Finding => ({
    at: nameOf('RuntimePool', pool),
    field,
    found,
    allowed,
  });
  const label = metadata.labels?.[labelKeys.runtimePool];
  if (label !== 'true')
    return problem(`metadata.labels[${labelKeys.runtimePool}]`, label, '"true": the pool is not controller-owned');
  const { digest, digestSchemaVersion, protocolVersion: _protocol, ...profile } = spec.runtime.profile;
  if (!['1', 'v1'].includes(digestSchemaVersion.toLowerCase()))
    return problem('spec.runtime.profile.digestSchemaVersion', digestSchemaVersion, '1');
  const computed = profileDigest(profile as RuntimeProfile);
  if (digest !== computed) {
    const allowed = `${computed}: the digest does not match the explicit immutable profile`;
    return problem('spec.runtime.profile.digest', digest, allowed);
  }
  const { executionWorkspace: workspace, capacity } = spec;
  if (workspace === undefined) return undefined;
  if (workspace.provider !== 'agent-sandbox')
    return problem('spec.executionWorkspace.provider', workspace.provider, 'agent-sandbox: others are not run by this version');
  if (!equalJson(capacity, { maxResidentSessions: 1, maxRunningPrompts: 1 }))
    return problem('spec.capacity', capacity, '1 and 1: a workspace hosts exactly one resident RuntimeSession');
  return undefined;
}

/** Which value of a pool its class does not have; `undefined` = it may be rendered from it. */
export function classProblem(pool: RuntimePool, poolClass: RuntimePoolClassSpec): Finding | undefined {
  const [own, wanted] = [frozenByPool(pool.spec), frozenByClass(poolClass)];
  const name = (Object.keys(frozenFields) as (keyof FrozenValues)[]).find((one) => !equalJson(own[one], wanted[one]));
  return (
    name && {
      at: nameOf('RuntimePool', pool),
      field: frozenFields[name],
      found: own[name],
      allowed: `${JSON.stringify(wanted[name])}, as the class of ${wanted.providerKind}/${wanted.resourceClass} has it now`,
    }
  );
}
