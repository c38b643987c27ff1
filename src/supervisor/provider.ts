import type { AgentConfiguration, RuntimeProfile } from '../domain/profile.js';
import type { WorkspaceIntent } from '../api/index.js';
import type { ToolPolicyMessage } from '../harness/profile.js';

/** What a session knows when its agent is prepared. */
export interface ProviderSession {
  readonly configuration: AgentConfiguration;
  readonly toolPolicy: ToolPolicyMessage;
  readonly intent: WorkspaceIntent;
  readonly modelLimits?: RuntimeProfile['modelLimits'] | undefined;
  readonly home: string;
  /** Base URL of the session's route through the loopback proxy. */
  readonly proxyUrl: string;
  /** Good for that route only, and only while a prompt runs. */
  readonly proxyCredential: string;
}

/** How to run one kind of agent. */
export interface Provider {
  /** Program and arguments; absolute path. */
  readonly command: readonly [string, ...string[]];
  /**
   * Name of the program, as the kernel has it, of the process below the agent's own that the agent cannot work without. The session ends
   * with that process.
   * @default - the agent works in its own process alone
   */
  readonly worker?: string;
  /** Method of the protocol's `authenticate`, if the agent wants one. */
  readonly authMethod?: string;
  /** Files to write before the agent starts: path and text. */
  readonly files: (session: ProviderSession) => Readonly<Record<string, string>>;
  /** Variables beyond those that every session has. */
  readonly env: (session: ProviderSession) => Readonly<Record<string, string>>;
  /** A text that the agent takes as it is, and not as a command to itself. @default the text */
  readonly literal?: (text: string) => string;
  /** Whether a model that the agent reports is the named one, in the agent's own form. @default the same text */
  readonly isModel?: (reported: string, model: string) => boolean;
  /** Requests that reach the upstream, by `METHOD /path`. */
  readonly routes: Readonly<Record<string, ProviderRoute>>;
}

interface ProviderRoute {
  /** Whether a request counts as a turn. */
  readonly inference: boolean;
  /** Members of a request that bound the answer; the first is set where a model's output is limited. @default max_output_tokens */
  readonly outputMembers?: readonly [string, ...string[]];
}
