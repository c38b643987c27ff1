import type { Manifest } from '../api/index.js';
import { isObject } from '../lib/json.js';
import type { Json } from '../lib/json.js';
import { annotationKeys } from './labels.js';

/** The container of the supervisor. Admission may put others before it. */
export const supervisorContainer = 'runtime';

/**
 * What an instance was started as. A pool's generation and the controller's epoch move on while it runs, so it is addressed by what its
 * own Pod says. Source: workload.md §6.6.
 */
export interface DeployedIdentity {
  readonly controllerEpoch: number;
  readonly poolGeneration: number;
  readonly profileDigest: string;
  readonly tokenGeneration: string;
}

/** Reads the identity from a Pod, literal values only; `undefined` when one is missing, or environment and annotations disagree. */
export function deployedIdentity(pod: Manifest): DeployedIdentity | undefined {
  const values = environmentOf(pod);
  const controllerEpoch = Number(values.get('ORKA_ACP_CONTROLLER_EPOCH'));
  const poolGeneration = Number(values.get('ORKA_ACP_RUNTIME_POOL_GENERATION'));
  const profileDigest = values.get('ORKA_ACP_RUNTIME_PROFILE_DIGEST');
  const tokenGeneration = values.get('ORKA_ACP_PROVIDER_TOKEN_GENERATION');
  const annotations = pod.metadata.annotations ?? {};
  const whole =
    Number.isSafeInteger(controllerEpoch) && controllerEpoch > 0 && Number.isSafeInteger(poolGeneration) && poolGeneration > 0;
  if (!whole || profileDigest === undefined || tokenGeneration === undefined) return undefined;
  const agreed =
    annotations[annotationKeys.profileDigest] === profileDigest &&
    annotations[annotationKeys.tokenGeneration] === tokenGeneration;
  return agreed ? { controllerEpoch, poolGeneration, profileDigest, tokenGeneration } : undefined;
}

function environmentOf({ spec }: Manifest): ReadonlyMap<string, string> {
  const containers = isObject(spec) && Array.isArray(spec['containers']) ? (spec['containers'] as readonly Json[]) : [];
  const container = containers.find((one) => isObject(one) && one['name'] === supervisorContainer);
  const rows = isObject(container) && Array.isArray(container['env']) ? (container['env'] as readonly Json[]) : [];
  return new Map(
    rows.flatMap((row): [string, string][] =>
      isObject(row) && typeof row['name'] === 'string' && typeof row['value'] === 'string' ? [[row['name'], row['value']]] : [],
    ),
  );
}
