import { canonicalizeText, canonicalJson } from '../lib/canonical-json.js';
import { CodedError } from '../lib/errors.js';
import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import { digestOf, sha256Hex } from '../lib/sha256.js';
import type { Digest } from '../lib/sha256.js';

export type { Digest } from '../lib/sha256.js';

/** Digest of a value under one of our domains: SHA-256 of `orka.acp.<domain>`, one NUL byte and the canonical JSON. Source: workload.md §2.4. */
export function domainDigest(domain: string, value: Json): Digest {
  return digestOf(canonicalJson(value), `orka.acp.${domain}`);
}

/** Digest of a value of the harness protocol; the prefix is `orka.harness.v2.<domain>`. Source: dispatch.md §5.3. */
export function harnessDigest(domain: string, value: Json): Digest {
  return digestOf(canonicalJson(value), `orka.harness.v2.${domain}`);
}

/** First 16 hex characters of a digest, as they stand in pool names and labels. */
export function short(digest: Digest): string {
  return digest.slice('sha256:'.length, 'sha256:'.length + 16);
}

export const toolPolicyDigest = (policy: {
  readonly allowed: readonly string[] | null;
  readonly disallowed: readonly string[] | null;
  readonly allowBash: boolean;
}): Digest => domainDigest('tool-policy', policy);

export const approvalPolicyDigest = (requiredTools: readonly string[] | null): Digest =>
  domainDigest('approval-policy', { requiredTools });

export const mcpConfigurationDigest = (brokeredTools: readonly string[] | null): Digest =>
  domainDigest('mcp-configuration', { brokeredTools, promptScoped: true });

/** Tree digest of the empty workspace of one Task; there is no repository in it. */
export const emptyWorkspaceDigest = (taskUID: string): Digest => domainDigest('empty-workspace', { taskUID });

/**
 * Name of a control record: a length-prefixed hash, so that no two component lists can meet in one text.
 * Source: dispatch.md §1.6.
 */
export function controlRecordId(kind: string, components: readonly string[]): string {
  const text = [kind, ...components].map((part) => `${Buffer.byteLength(part)}:${part}`).join('');
  return `${kind}:sha256:${sha256Hex(text)}`;
}

export const promptId = (taskUID: string, attempt: number): string => `prompt-${taskUID}-${attempt}`;

/** Identity of one durable attempt. Throws {@link DigestInputError} for an attempt below 1 and for what is no identifier. */
export function promptAttemptId(namespace: string, taskUID: string, attempt: number, prompt: string): string {
  if (!Number.isSafeInteger(attempt) || attempt < 1)
    throw new DigestInputError('identifier', {
      at: 'control record',
      field: 'attempt',
      found: attempt,
      allowed: 'a whole number from 1',
    });
  return controlRecordId('prompt-attempt', [
    identifier('namespace', namespace),
    identifier('taskUID', taskUID),
    String(attempt),
    identifier('promptID', prompt),
  ]);
}

/** Digest of the tools that a policy leaves, as the supervisor is told of them. An empty list and `null` differ. */
export const toolDescriptorsDigest = (descriptors: readonly JsonObject[] | null): Digest =>
  domainDigest('mcp-tool-descriptors', descriptors);

/** Digest of how a prompt ended. `settledAt` is the text that was received; reading it as a date would lose nanoseconds. */
export const settlementDigest = (settlement: JsonObject): Digest => harnessDigest('prompt-settlement', settlement);

/** What the workspace of one runtime session starts from. Source: corrections.md item 9. */
export const sessionWorkspaceDigest = (workspace: {
  readonly intent: string;
  readonly relativeRoot: string;
  readonly repositoryIdentity: string;
  readonly revision: string;
  readonly sourceRef: string;
  readonly treeDigest: string;
}): Digest => domainDigest('runtime-session-workspace-binding', workspace);

/** Digest of everything one attempt of a Task sends; an attempt with another digest is another prompt. Source: workload.md §2.8. */
export const taskRequestDigest = (request: JsonObject): Digest => domainDigest('task-request', request);

const notDigested = new Set(['/metadata/requestDigest', '/agentConfiguration']);

/** A value that a digest or an id is made of is not what the contract allows. */
export class DigestInputError extends CodedError<'identifier' | 'request'> {}

/**
 * Digest of a request of the harness protocol, over its text: without its own digest, which must be there, and without the agent
 * configuration, which has a digest of its own. Source: dispatch.md §5.3.
 */
export function requestDigest(text: string | Uint8Array): Digest {
  const digest = digestOf(canonicalizeText(text, notDigested), 'orka.harness.v2.request.v1');
  const request = JSON.parse(typeof text === 'string' ? text : Buffer.from(text).toString()) as Json;
  const metadata = isObject(request) ? request['metadata'] : undefined;
  if (!isObject(metadata) || typeof metadata['requestDigest'] !== 'string') {
    throw new DigestInputError('request', {
      at: 'request',
      field: 'metadata.requestDigest',
      allowed: 'a text, empty while the digest is being computed',
    });
  }
  return digest;
}

/** Identifiers go into hashes and names as they are, so nothing invisible may be in them. Source: dispatch.md §1.6. */
function identifier(field: string, value: string): string {
  const trimmed = value !== '' && value.trim() === value;
  // eslint-disable-next-line no-control-regex -- control characters are what this looks for
  const visible = value.isWellFormed() && Buffer.byteLength(value) <= 1024 && !/[\u0000-\u001f\u007f]/.test(value);
  if (trimmed && visible) return value;
  throw new DigestInputError('identifier', {
    at: 'control record',
    field,
    found: value,
    allowed: 'at most 1024 bytes without surrounding space and control characters',
  });
}
