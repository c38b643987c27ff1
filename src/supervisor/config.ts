import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { profileDigest } from '../domain/profile.js';
import type { RuntimeProfile } from '../domain/profile.js';
import type { Digest } from '../domain/digests.js';
import { decodeText, digest, map, WireError } from '../lib/decode.js';
import { fence } from '../harness/fence.js';
import type { Fence } from '../harness/fence.js';
import type { Limits } from '../harness/introspection.js';
import { runtimeProfile } from '../harness/profile.js';
import { acpVersion, profileDigestSchemaVersion, supervisorPort } from '../harness/protocol.js';
import { CodedError } from '../lib/errors.js';
import { archiveLimits } from '../source/archive-rules.js';
import { sha256Hex } from '../lib/sha256.js';

/** The environment does not make a supervisor. Credentials are never quoted. */
export class ConfigError extends CodedError<'invalid'> {}

export interface ListenAddress {
  /** @default every address */
  readonly host?: string;
  readonly port: number;
}

/** Users that sessions get, each once. */
export interface IdentityRange {
  readonly firstUid: number;
  readonly lastUid: number;
  readonly firstGid: number;
}

/** Where the archives of repositories come from. */
export interface ArtifactApi {
  readonly url: URL;
  /** Of one archive. */
  readonly maxBytes: number;
}

export interface SupervisorConfig {
  readonly listen: ListenAddress;
  /** Of the instance, without a session. */
  readonly fence: Fence;
  readonly profile: RuntimeProfile;
  readonly profileDigest: Digest;
  /** Where inference requests go, with the path that every request begins with. */
  readonly upstream: URL;
  /** @default sessions with a repository are refused */
  readonly artifacts?: ArtifactApi;
  readonly sessionBaseDir: string;
  readonly identities: IdentityRange;
  readonly limits: Limits;
}

type Env = Readonly<Record<string, string | undefined>>;

/** Everything but credentials. Throws {@link ConfigError} for the first variable that is missing or wrong. Source: dispatch.md §6.3. */
export function readConfig(env: Env, adapterDigestsFile: string): SupervisorConfig {
  const profile = readProfile(env, adapterDigestsFile);
  const sum = profileDigest(profile);
  const artifacts = readArtifacts(env);
  return {
    listen: readListenAddress(env),
    fence: readFence(env, sum),
    profile,
    profileDigest: sum,
    upstream: readUrl(env, 'ORKA_ACP_PROVIDER_PROXY_BASE_URL'),
    ...(artifacts ? { artifacts } : {}),
    sessionBaseDir: env['ORKA_ACP_SESSION_BASE_DIR'] ?? '/sessions',
    identities: readIdentities(env),
    limits: { ...defaultLimits, ...(profile.providerKind === 'codex' ? { maxUpdateEventsPerSecond: 1000 } : {}) },
  };
}

/** `:8080`, `127.0.0.1:8080`, `[::1]:8080`. */
export function readListenAddress(env: Env): ListenAddress {
  const text = env['ORKA_ACP_LISTEN_ADDRESS'] ?? `:${supervisorPort}`;
  const found = /^(?:\[([0-9a-f:]+)\]|([^:[\]]*)):(\d{1,5})$/i.exec(text);
  if (!found || Number(found[3]) > 65_535) throw invalid('ORKA_ACP_LISTEN_ADDRESS', 'host:port', text);
  const host = found[1] ?? found[2] ?? '';
  return { port: Number(found[3]), ...(host === '' ? {} : { host }) };
}

export const defaultLimits: Limits = {
  maxResidentSessions: 10,
  maxConcurrentPrompts: 4,
  maxRequestBytes: 2 * 1024 * 1024,
  maxEventLineBytes: 1024 * 1024,
  maxTerminalResultBytes: 1024 * 1024,
  maxBufferedEvents: 256,
  maxUpdateEventsPerSecond: 100,
  minPromptLeaseMillis: 5_000,
  maxPromptLeaseMillis: 120_000,
  maxPendingPermissions: 32,
  maxWorkspaceDeltaBytes: 100 * 1024 * 1024,
};

function readProfile(env: Env, adapterDigestsFile: string): RuntimeProfile {
  const limits = [env['ORKA_ACP_MODEL_CONTEXT_LIMIT'] ?? '', env['ORKA_ACP_MODEL_OUTPUT_LIMIT'] ?? ''];
  const profile = {
    acpProfile: acpVersion,
    adapterDigests: readAdapterDigests(adapterDigestsFile),
    providerKind: required(env, 'ORKA_ACP_PROVIDER'),
    model: required(env, 'ORKA_ACP_MODEL'),
    ...(limits.every((limit) => limit === '')
      ? {}
      : {
          modelLimits: {
            context: whole(env, 'ORKA_ACP_MODEL_CONTEXT_LIMIT', 0),
            output: whole(env, 'ORKA_ACP_MODEL_OUTPUT_LIMIT', 0),
          },
        }),
    agentConfigurationDigest: required(env, 'ORKA_ACP_AGENT_CONFIGURATION_DIGEST'),
    toolPolicyDigest: required(env, 'ORKA_ACP_TOOL_POLICY_DIGEST'),
    approvalPolicyDigest: required(env, 'ORKA_ACP_APPROVAL_POLICY_DIGEST'),
    mcpConfigurationDigest: required(env, 'ORKA_ACP_MCP_CONFIGURATION_DIGEST'),
    workspaceIntent: required(env, 'ORKA_ACP_WORKSPACE_INTENT'),
    proxyCredentialRole: required(env, 'ORKA_ACP_PROXY_CREDENTIAL_ROLE'),
    proxyCredentialScope: required(env, 'ORKA_ACP_PROXY_CREDENTIAL_SCOPE'),
    resourceClass: env['ORKA_ACP_RESOURCE_CLASS'] ?? 'standard',
  };
  return decoded('profile', () => runtimeProfile(profile, []));
}

/** The image says what it holds: the profile is about what runs, not about what was asked for. */
function readAdapterDigests(file: string): Readonly<Record<string, Digest>> {
  return decoded(file, () => decodeText(map(digest, { min: 1, max: 32 }), readFileSync(file)));
}

function readFence(env: Env, runtimeProfileDigest: Digest): Fence {
  const supervisorBootID = env['ORKA_ACP_SUPERVISOR_BOOT_ID'] ?? randomUUID();
  const instance = env['ORKA_ACP_RUNTIME_INSTANCE_ID'] ?? `${required(env, 'ORKA_ACP_POD_UID')}.${supervisorBootID}`;
  const value = {
    runtimeInstanceID: instance,
    supervisorBootID,
    controllerEpoch: whole(env, 'ORKA_ACP_CONTROLLER_EPOCH', 1),
    runtimePoolUID: required(env, 'ORKA_ACP_RUNTIME_POOL_UID'),
    runtimePoolGeneration: whole(env, 'ORKA_ACP_RUNTIME_POOL_GENERATION', 1),
    runtimeProfileDigest,
    profileDigestSchemaVersion,
  };
  return decoded('fence', () => fence(value, []));
}

function readArtifacts(env: Env): ArtifactApi | undefined {
  const [url, size] = ['ORKA_ACP_ARTIFACT_API_URL', 'ORKA_ACP_WORKSPACE_MAX_ARTIFACT_BYTES'];
  if ((env[url] ?? '').trim() === '') return undefined;
  const maxBytes = whole(env, size, 1, archiveLimits.artifactBytes);
  if (maxBytes > archiveLimits.artifactBytes) throw invalid(size, `at most ${archiveLimits.artifactBytes}`, maxBytes);
  return { url: readUrl(env, url), maxBytes };
}

function readUrl(env: Env, name: string): URL {
  const text = required(env, name);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const plain = url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && url.search === '';
  if (!plain)
    throw invalid(name, 'an http or https URL without user and query', url ? `${url.protocol}//${url.host}` : undefined);
  return url;
}

function readIdentities(env: Env): IdentityRange {
  const range = {
    firstUid: whole(env, 'ORKA_ACP_FIRST_SESSION_UID', 1, startOf(env['ORKA_ACP_POD_UID'] ?? '')),
    lastUid: whole(env, 'ORKA_ACP_LAST_SESSION_UID', 1, 29_999),
    firstGid: whole(env, 'ORKA_ACP_SESSION_GID', 1, 20_000),
  };
  // One identity stays in reserve, so a range of one would never give any.
  if (range.lastUid <= range.firstUid) throw invalid('ORKA_ACP_LAST_SESSION_UID', 'more than the first', range.lastUid);
  return range;
}

/**
 * Where the sessions of a sandbox begin to be numbered. The kernel counts processes by user on the whole node, so sandboxes that all began with the
 * same number would share one limit; a thousand numbers are left for each.
 */
function startOf(podUid: string): number {
  return 20_000 + (Number.parseInt(sha256Hex(podUid).slice(0, 8), 16) % 9_000);
}

function required(env: Env, name: string): string {
  const value = (env[name] ?? '').trim();
  if (value === '') throw invalid(name, 'a value', '');
  return value;
}

function whole(env: Env, name: string, min: number, fallback?: number): number {
  const text = (env[name] ?? '').trim();
  if (text === '' && fallback !== undefined) return fallback;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (!(value >= min)) throw invalid(name, `a whole number from ${min}`, text);
  return value;
}

function decoded<T>(at: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const says = cause instanceof WireError ? cause.message : 'the file cannot be read';
    throw new ConfigError('invalid', { at: 'environment', field: at, says }, { cause });
  }
}

function invalid(field: string, allowed: string, found?: string | number): ConfigError {
  return new ConfigError('invalid', { at: 'environment', field, ...(found === undefined ? {} : { found }), allowed });
}
