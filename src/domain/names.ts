import { sha256Hex } from '../lib/sha256.js';

/** Kubernetes' limit for label values, Service names and Pod names. */
const longest = 63;
const longestPrefix = 52;

function poolHash(poolNamespace: string, poolName: string): string {
  return sha256Hex(`${poolNamespace}\0${poolName}`);
}

/** The session that a Task has an instance make, one for each Task. */
export function sessionUid(taskUid: string): string {
  return `session-${taskUid}`;
}

/** The label value that selects everything of one pool: 32 hex characters of its namespace and name. */
export function poolKey(poolNamespace: string, poolName: string): string {
  return poolHash(poolNamespace, poolName).slice(0, 32);
}

/**
 * Name of a pool's Service and Deployment, and the start of every child's name: the pool's name, cut at 52 characters, and
 * ten hex characters that also tell pools of different namespaces apart. Source: workload.md §3.2.
 */
export function baseName(poolNamespace: string, poolName: string): string {
  const prefix = trimDashes(poolName.toLowerCase());
  const cut = trimEnd((prefix === '' ? 'runtime' : prefix).slice(0, longestPrefix));
  return `${cut}-${poolHash(poolNamespace, poolName).slice(0, 10)}`;
}

/** Name of one child: the base, cut so that the whole fits 63 characters. A suffix that leaves no room is hashed. */
export function childName(base: string, suffix: string): string {
  const ending = trimDashes(suffix);
  const room = longest - 1 - ending.length;
  if (room < 1) return `runtime-${sha256Hex(ending).slice(0, 16)}`;
  return `${trimEnd(base.slice(0, room))}-${ending}`;
}

/** Names of what a workspace pool has of the provider; Sandbox and Pod are named like the claim. */
export function workspaceNames(base: string): Readonly<Record<'templateName' | 'warmPoolName' | 'claimName', string>> {
  return {
    templateName: childName(base, 'sandbox-template'),
    warmPoolName: childName(base, 'sandbox-pool'),
    claimName: childName(base, 'sandbox-claim'),
  };
}

const policySuffixes = ['deny-all', 'control-in', 'dns-egress', 'provider-proxy-egress', 'controller-egress'] as const;

/** Names of the NetworkPolicies that isolate a pool. Source: workload.md §3.6. */
export function policyNames(base: string): readonly string[] {
  return policySuffixes.map((suffix) => childName(base, suffix));
}

/** Name of the policy that opens the downloads of repositories. Only pools of a class with `network.artifacts` have it. */
export function artifactEgressName(base: string): string {
  return childName(base, 'artifact-egress');
}

/** Suffix of a pool's auth Secret. Plain pools have none of the random characters; their names are deterministic. */
export function authSecretSuffix(epoch: number, random?: string): string {
  return `auth-e${epoch}${random === undefined ? '' : `-${random}`}`;
}

/** Suffix of a pool's copy of the provider token. */
export function providerSecretSuffix(epoch: number, tokenGeneration: string, random?: string): string {
  return `provider-e${epoch}-g${tokenGeneration}${random === undefined ? '' : `-${random}`}`;
}

/** The auth suffix that ends a Secret's name, or `''`. Anchored: a name is only ours if it ends so. */
export function authSuffixOf(secretName: string): string {
  return /auth-e[1-9][0-9]*(?:-[0-9a-f]{24})?$/.exec(secretName)?.[0] ?? '';
}

/** The provider suffix that ends a Secret's name, or `''`. */
export function providerSuffixOf(secretName: string): string {
  return /provider-e[1-9][0-9]*-g[0-9a-f]{16}(?:-[0-9a-f]{24})?$/.exec(secretName)?.[0] ?? '';
}

function trimDashes(text: string): string {
  return trimEnd(text.replace(/^-+/, ''));
}

function trimEnd(text: string): string {
  return text.replace(/-+$/, '');
}
