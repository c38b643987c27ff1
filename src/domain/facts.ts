import type { RuntimePool, RuntimeProfileSpec } from '../api/index.js';
import {
  artifactEgressName,
  authSecretSuffix,
  baseName,
  childName,
  poolKey,
  providerSecretSuffix,
  workspaceNames,
} from './names.js';

/**
 * What a rendered pool knows of the live world: a closed, flat record. Constructs place a fact as a whole leaf and never branch on
 * it or compute with it; whatever is derived is derived here, so that review shows everything but these leaves.
 */
const sharedFactNames = [
  'poolNamespace',
  'poolName',
  'poolUid',
  'poolKey',
  'poolGeneration',
  'trustNamespace',
  'controllerEpoch',
  'tokenGeneration',
  'profileDigest',
  'profileDigestSchemaVersion',
  'model',
  'modelContextLimit',
  'modelOutputLimit',
  'workspaceIntent',
  'agentConfigurationDigest',
  'toolPolicyDigest',
  'approvalPolicyDigest',
  'mcpConfigurationDigest',
  'proxyCredentialRole',
  'proxyCredentialScope',
  'baseName',
  'denyAllName',
  'controlInName',
  'dnsEgressName',
  'providerProxyEgressName',
  'controllerEgressName',
  'artifactEgressName',
  'pdbName',
  'authSecretName',
  'providerSecretName',
] as const;

export const factNames = {
  workspace: [...sharedFactNames, 'templateName', 'warmPoolName', 'claimName', 'bootstrapNonce', 'bootstrapPublicKey'],
  plain: sharedFactNames,
} as const;

type SharedFacts = Readonly<Record<(typeof sharedFactNames)[number], string>>;
/** Live values of a pool that one Task has to itself. */
export type WorkspaceFacts = Readonly<Record<(typeof factNames.workspace)[number], string>>;
/** `replicas` is the only fact that is not a string; it has one place, the Deployment's `spec.replicas`. */
export type PlainFacts = SharedFacts & { readonly replicas: number };
/** Live values of one pool, of either family. */
export type Facts = WorkspaceFacts | PlainFacts;
export type FactName = keyof WorkspaceFacts;

export function isWorkspaceFacts(facts: Facts): facts is WorkspaceFacts {
  return 'bootstrapNonce' in facts;
}

/** A stored RuntimePool, as far as its children depend on it. */
export interface PoolIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
  readonly trustNamespace: string;
  readonly profile: RuntimeProfileSpec;
}

/** Identity of a pool as it is stored. */
export function identityOfPool({ metadata, spec }: RuntimePool): PoolIdentity {
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    generation: metadata.generation ?? 0,
    trustNamespace: spec.trustDomain.namespace,
    profile: spec.runtime.profile,
  };
}

/** What changes with the controller and the provider's token, not with the pool. */
export interface InstanceFacts {
  readonly controllerEpoch: number;
  /** First 16 hex characters of the SHA-256 of the provider token. */
  readonly tokenGeneration: string;
}

/** Secrets of a workspace pool: private names, and the public half of the bootstrap. */
export interface Bootstrap {
  /** 24 random hex characters each, or the whole name as the pool's annotation records it. */
  readonly authSecret: { readonly random: string } | { readonly name: string };
  readonly providerSecret: { readonly random: string } | { readonly name: string };
  readonly nonce: string;
  readonly publicKey: string;
}

/** Secrets of a plain pool are mounted, under deterministic names. */
export interface Mounted {
  readonly replicas: 0 | 1;
}

/** Everything a pool's objects need to know of the live world. Pure. Source: workload.md §3.2–3.7. */
export function resolveFacts(pool: PoolIdentity, instance: InstanceFacts, secret: Bootstrap): WorkspaceFacts;
export function resolveFacts(pool: PoolIdentity, instance: InstanceFacts, secret: Mounted): PlainFacts;
export function resolveFacts(pool: PoolIdentity, instance: InstanceFacts, secret: Bootstrap | Mounted): Facts {
  const base = baseName(pool.namespace, pool.name);
  const { profile } = pool;
  const epoch = instance.controllerEpoch;
  const shared = {
    poolNamespace: pool.namespace,
    poolName: pool.name,
    poolUid: pool.uid,
    poolKey: poolKey(pool.namespace, pool.name),
    poolGeneration: String(pool.generation),
    trustNamespace: pool.trustNamespace,
    controllerEpoch: String(epoch),
    tokenGeneration: instance.tokenGeneration,
    profileDigest: profile.digest,
    profileDigestSchemaVersion: profile.digestSchemaVersion,
    model: profile.model,
    modelContextLimit: profile.modelLimits ? String(profile.modelLimits.context) : '',
    modelOutputLimit: profile.modelLimits ? String(profile.modelLimits.output) : '',
    workspaceIntent: profile.workspaceIntent,
    agentConfigurationDigest: profile.agentConfigurationDigest,
    toolPolicyDigest: profile.toolPolicyDigest,
    approvalPolicyDigest: profile.approvalPolicyDigest,
    mcpConfigurationDigest: profile.mcpConfigurationDigest,
    proxyCredentialRole: profile.proxyCredentialRole,
    proxyCredentialScope: profile.proxyCredentialScope,
    baseName: base,
    denyAllName: childName(base, 'deny-all'),
    controlInName: childName(base, 'control-in'),
    dnsEgressName: childName(base, 'dns-egress'),
    providerProxyEgressName: childName(base, 'provider-proxy-egress'),
    controllerEgressName: childName(base, 'controller-egress'),
    artifactEgressName: artifactEgressName(base),
    pdbName: childName(base, 'pdb'),
  };
  if ('replicas' in secret) {
    return {
      ...shared,
      authSecretName: childName(base, authSecretSuffix(epoch)),
      providerSecretName: childName(base, providerSecretSuffix(epoch, instance.tokenGeneration)),
      replicas: secret.replicas,
    };
  }
  const { authSecret, providerSecret } = secret;
  return {
    ...shared,
    authSecretName: 'name' in authSecret ? authSecret.name : childName(base, authSecretSuffix(epoch, authSecret.random)),
    providerSecretName:
      'name' in providerSecret
        ? providerSecret.name
        : childName(base, providerSecretSuffix(epoch, instance.tokenGeneration, providerSecret.random)),
    ...workspaceNames(base),
    bootstrapNonce: secret.nonce,
    bootstrapPublicKey: secret.publicKey,
  };
}
