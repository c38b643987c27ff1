import { isObject } from '../lib/json.js';
import type { Json, JsonObject } from '../lib/json.js';
import type { ToolPolicyMessage } from '../harness/profile.js';

/** Tools that a kind of tool call may stand for. A kind that is not here can be anything. */
const toolsOfKind: ReadonlyMap<string, readonly string[]> = new Map([
  ['read', ['Read']],
  ['search', ['Glob', 'Grep']],
  ['edit', ['Edit', 'Write']],
  ['delete', ['Edit', 'Write']],
  ['move', ['Edit', 'Write']],
  ['execute', ['Bash']],
  ['fetch', ['WebFetch', 'WebSearch']],
]);

/** Whether a policy covers every tool that a call of this kind may be. What cannot be told apart is judged by the strictest. */
function isAllowed(policy: ToolPolicyMessage, kind: string | undefined): boolean {
  const { allowedToolNames: allowed, disallowedToolNames: disallowed, allowBash } = policy;
  const denied = (disallowed ?? []).map((name) => name.toLowerCase());
  const tools = kind === undefined ? undefined : toolsOfKind.get(kind);
  if (!tools) return allowed === null && denied.length === 0 && allowBash;
  const permitted = allowed?.map((name) => name.toLowerCase());
  return tools.every((tool) => {
    const name = tool.toLowerCase();
    if (denied.includes(name) || (tool === 'Bash' && !allowBash)) return false;
    return permitted?.includes(name) ?? true;
  });
}

/** The answer when no prompt runs that could want anything, or when it is being ended. */
export const cancelledPermission = { outcome: { outcome: 'cancelled' } } as const;

/**
 * The answer to `session/request_permission`: what the policy allows is allowed this once, everything else rejected; an agent that
 * offers no such choice is told that its request was cancelled. Nobody is asked in this version.
 */
export function permissionAnswer(policy: ToolPolicyMessage, params: JsonObject): Json {
  const { toolCall, options } = params;
  const kind = isObject(toolCall) && typeof toolCall['kind'] === 'string' ? toolCall['kind'] : undefined;
  const wanted = isAllowed(policy, kind) ? 'allow_once' : 'reject_once';
  const offered = Array.isArray(options) ? (options as readonly Json[]) : [];
  const choice = offered.find((option) => isObject(option) && option['kind'] === wanted);
  const optionId = isObject(choice) ? choice['optionId'] : undefined;
  return typeof optionId === 'string' ? { outcome: { outcome: 'selected', optionId } } : cancelledPermission;
}
