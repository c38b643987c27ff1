import { resolveFacts } from '../domain/facts.js';
import type { Facts } from '../domain/facts.js';
import type { Plan } from '../domain/plan.js';
import { digestSchemaVersion } from '../domain/profile.js';

/** What only the cluster knows, and what stands for it until then. Everything else of a plan follows from the files. */
export const liveInputs = {
  namespace: 'default',
  now: '1970-01-01T00:00:00Z',
  taskUid: '00000000-0000-4000-8000-000000000001',
  agentUid: '00000000-0000-4000-8000-000000000002',
  agentGeneration: '1',
  poolUid: '00000000-0000-4000-8000-000000000003',
  poolGeneration: '1',
  controllerEpoch: '1',
  tokenGeneration: '0000000000000000',
  authSecretRandom: '000000000000000000000000',
  providerSecretRandom: '000000000000000000000001',
  bootstrapNonce: 'A'.repeat(43),
  bootstrapPublicKey: 'A'.repeat(43),
} as const;
export type LiveInput = keyof typeof liveInputs;
export type LiveValues = Readonly<Record<LiveInput, string>>;

export interface PlannedFact {
  readonly value: string;
  readonly source: 'input' | 'placeholder';
}

/** Which live inputs a fact is made of; a fact that is not listed follows from the files alone. */
const madeOf: Readonly<Record<string, readonly LiveInput[]>> = {
  ...Object.fromEntries((Object.keys(liveInputs) as LiveInput[]).map((name) => [name, [name]])),
  poolNamespace: ['namespace'],
  trustNamespace: ['namespace'],
  agentConfigurationDigest: ['agentUid', 'agentGeneration'],
  profileDigest: ['agentUid', 'agentGeneration'],
  workspaceBindingDigest: ['taskUid'],
};

const named = ['poolName'];
const placed = [
  'poolKey',
  'baseName',
  'templateName',
  'warmPoolName',
  'claimName',
  'denyAllName',
  'controlInName',
  'dnsEgressName',
  'providerProxyEgressName',
  'controllerEgressName',
  'artifactEgressName',
  'pdbName',
];

/** Tells facts that came from the files, or from --facts, from those that stand for something. */
export function sourceOf(known: ReadonlySet<LiveInput>, family: Plan['family']): (fact: string) => PlannedFact['source'] {
  const inName: readonly LiveInput[] = ['agentUid', 'agentGeneration', ...(family === 'workspace' ? (['taskUid'] as const) : [])];
  const inPlace: readonly LiveInput[] = ['namespace', ...inName];
  const random = (name: LiveInput): readonly LiveInput[] => (family === 'workspace' ? [name] : []);
  const inputs = (fact: string): readonly LiveInput[] => {
    if (named.includes(fact)) return inName;
    if (placed.includes(fact)) return inPlace;
    if (fact === 'authSecretName') return [...inPlace, 'controllerEpoch', ...random('authSecretRandom')];
    if (fact === 'providerSecretName')
      return [...inPlace, 'controllerEpoch', 'tokenGeneration', ...random('providerSecretRandom')];
    if (fact === 'templateRevision')
      return [
        ...inPlace,
        'poolUid',
        'poolGeneration',
        'controllerEpoch',
        'tokenGeneration',
        ...random('bootstrapNonce'),
        ...random('bootstrapPublicKey'),
      ];
    return madeOf[fact] ?? [];
  };
  return (fact) => (inputs(fact).every((input) => known.has(input)) ? 'input' : 'placeholder');
}

/** The facts of a planned pool. */
export function plannedFacts(plan: Plan, live: LiveValues): Facts {
  const pool = {
    namespace: plan.namespace,
    name: plan.poolName,
    uid: live.poolUid,
    generation: Number(live.poolGeneration),
    trustNamespace: plan.namespace,
    profile: { ...plan.profile, acpProfile: 'acp.v1' as const, digest: plan.profileDigest, digestSchemaVersion },
  };
  const instance = { controllerEpoch: Number(live.controllerEpoch), tokenGeneration: live.tokenGeneration };
  return plan.family === 'plain'
    ? resolveFacts(pool, instance, { replicas: 1 })
    : resolveFacts(pool, instance, {
        authSecret: { random: live.authSecretRandom },
        providerSecret: { random: live.providerSecretRandom },
        nonce: live.bootstrapNonce,
        publicKey: live.bootstrapPublicKey,
      });
}
