import type { Agent } from '../../api/index.js';
import type { Thawed } from '../../domain/thaw.js';
import type { Finding } from '../../lib/errors.js';

/** Why the last tries to begin an attempt in one instance came to nothing, and when the next is due, in milliseconds since 1970. */
export interface Held {
  readonly runtimeInstanceID: string | undefined;
  readonly says: string;
  readonly tries: number;
  readonly until: number;
}

/** What a process remembers of a Task between two steps. All of it can be found out again. */
export interface TaskMemory {
  /** The answer of the server for an Agent that the watch does not know. */
  agent: { readonly found: Agent | undefined } | undefined;
  /** What the ConfigMap that `of` names said. */
  systemPrompt: { readonly of: string; readonly found: { readonly missing: string } | { readonly text: string } } | undefined;
  /** The stored snapshot that the binding names; without a body there is none, or another. */
  snapshot: { readonly id: string; readonly body: string | undefined } | undefined;
  thawed: Thawed | { readonly problem: Finding } | undefined;
  /** An attempt is under way in this process. */
  running: boolean;
  held: Held | undefined;
  /** Asks it to end. */
  cancel: ((reason: 'deleted') => void) | undefined;
}

export function createTaskMemory(): TaskMemory {
  return {
    agent: undefined,
    systemPrompt: undefined,
    snapshot: undefined,
    thawed: undefined,
    running: false,
    held: undefined,
    cancel: undefined,
  };
}
