import type { Json } from '../lib/json.js';
import { canonicalOrder } from '../lib/text.js';
import type { ProviderKind, WorkspaceIntent } from '../api/index.js';

/** Which tools an agent may use. `null` = no list was given, which differs from an empty one, also in the digest. */
export interface ToolPolicy {
  readonly allowed: readonly string[] | null;
  readonly disallowed: readonly string[] | null;
  readonly allowBash: boolean;
}

/** What Agent and Task say about tools, before it is settled. */
export interface ToolWishes {
  readonly allowed?: readonly string[] | undefined;
  readonly disallowed?: readonly string[] | undefined;
  readonly allowBash: boolean;
  /** A Task that another Task created talks to its parent by two more tools. */
  readonly delegatedChild: boolean;
}

const nativeTools = ['Bash', 'Edit', 'Glob', 'Grep', 'Read', 'WebFetch', 'WebSearch', 'Write'];
const openCodeTools = ['Bash', 'Edit', 'Glob', 'Grep', 'Read', 'Write'];
const openCodeNative = new Set(['apply_patch', 'bash', 'edit', 'glob', 'grep', 'read', 'write', 'webfetch', 'websearch']);
const openCodeWriting = ['apply_patch', 'edit', 'write'];
const openCodeRefusedWhenReading = ['apply_patch', 'bash', 'edit', 'grep', 'write'];
const readOnlyTools = ['glob', 'grep', 'read'];
const processLocalTools = new Set(['code_exec', 'file_read', 'file_write']);

/**
 * The tool policy that is digested and enforced. Lists are trimmed, without repetition and in byte order.
 * Source: dispatch.md §2.5, corrections.md items 2, 21.
 */
export function toolPolicy(kind: ProviderKind, intent: WorkspaceIntent, wishes: ToolWishes): ToolPolicy {
  const wanted = wishes.allowed ?? (kind === 'opencode' ? openCodeTools : undefined);
  const named = wishes.delegatedChild ? [...(wanted ?? []), 'send_message', 'check_messages'] : wanted;
  const allowed = named === undefined ? null : tidy(named);
  const disallowed = wishes.disallowed === undefined ? null : tidy(wishes.disallowed);
  if (kind === 'opencode') return openCodePolicy(intent, allowed ?? [], disallowed ?? [], wishes.allowBash);
  return { allowed: allowed ?? withoutDenied(disallowed, wishes.allowBash), disallowed, allowBash: wishes.allowBash };
}

/** Without a list of its own a restricted agent gets the native tools that remain; an unrestricted one keeps `null`. */
function withoutDenied(disallowed: readonly string[] | null, allowBash: boolean): readonly string[] | null {
  if ((disallowed ?? []).length === 0 && allowBash) return null;
  const denied = new Set((disallowed ?? []).map((tool) => tool.toLowerCase()));
  return nativeTools.filter((tool) => !denied.has(tool.toLowerCase()) && (allowBash || tool !== 'Bash'));
}

function openCodePolicy(
  intent: WorkspaceIntent,
  allowed: readonly string[],
  disallowed: readonly string[],
  allowBash: boolean,
): ToolPolicy {
  const native = expand(allowed);
  const denied = expand(disallowed);
  if (intent === 'write') return { allowed: native, disallowed: denied, allowBash };
  return {
    allowed: native.filter((tool) => !openCodeRefusedWhenReading.includes(tool)),
    disallowed: tidy([...denied, ...openCodeRefusedWhenReading]),
    allowBash: false,
  };
}

/** OpenCode's own names are lower case, and one tool that writes files stands for all three. */
function expand(tools: readonly string[]): readonly string[] {
  const names = tools.map((tool) => (openCodeNative.has(tool.toLowerCase()) ? tool.toLowerCase() : tool));
  return tidy(names.some((tool) => openCodeWriting.includes(tool)) ? [...names, ...openCodeWriting] : names);
}

function tidy(tools: readonly string[]): readonly string[] {
  return [...new Set(tools.map((tool) => tool.trim()).filter((tool) => tool !== ''))].sort(canonicalOrder);
}

/** Why a runtime cannot enforce a policy exactly, or `undefined`. A policy that is only nearly enforced is refused. */
export function toolPolicyProblem(
  kind: ProviderKind,
  intent: WorkspaceIntent,
  policy: ToolPolicy,
): { found: Json; allowed: string } | undefined {
  const local = policy.allowed?.find((tool) => processLocalTools.has(tool));
  if (local !== undefined)
    return {
      found: local,
      allowed: 'tools of the agent or of the MCP broker; this one exists only inside a process of the controller',
    };
  if (policy.allowed === null) return undefined;
  const native = policy.allowed
    .map((tool) => tool.toLowerCase())
    .filter((tool) => nativeTools.some((known) => known.toLowerCase() === tool));
  if (kind === 'codex' && !(intent === 'read' && sameSet(native, readOnlyTools))) {
    return {
      found: policy.allowed,
      allowed:
        'no restriction at all (a list, disallowedTools and allowBash: false are one), or exactly Glob, Grep, Read with workspace intent read: codex cannot enforce another',
    };
  }
  if (kind === 'copilot' && native.includes('websearch')) {
    return {
      found: policy.allowed,
      allowed: 'no tool list at all, or one without WebSearch: copilot cannot enforce the others beside it',
    };
  }
  return undefined;
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  return new Set(a).size === b.length && b.every((item) => a.includes(item));
}

/** A tool as the supervisor is told of it. */
export type ToolDescriptor = {
  readonly name: string;
  readonly source: 'provider_native';
  readonly effect: 'read_only' | 'consequential';
};

const consequential = new Set(['bash', 'edit', 'write', 'apply_patch']);

/** The agent's own tools that a list leaves; an unrestricted policy names none. Source: dispatch.md §5.4. */
export function descriptorsOf({ allowed, disallowed, allowBash }: ToolPolicy): readonly ToolDescriptor[] {
  const denied = new Set((disallowed ?? []).map((tool) => tool.toLowerCase()));
  return (allowed ?? [])
    .filter((tool) => isNative(tool) && !denied.has(tool.toLowerCase()) && (allowBash || tool.toLowerCase() !== 'bash'))
    .map((name) => ({
      name,
      source: 'provider_native',
      effect: consequential.has(name.toLowerCase()) ? 'consequential' : 'read_only',
    }));
}

function isNative(tool: string): boolean {
  return openCodeNative.has(tool.toLowerCase());
}
