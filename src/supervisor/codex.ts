import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { ToolPolicyMessage } from '../harness/profile.js';
import { withoutCommand } from './commands.js';
import { ConfigError } from './config.js';
import type { Provider, ProviderSession } from './provider.js';
import { childReporter } from './worker.js';

export interface CodexOptions {
  /** @default '/usr/local/bin/node' */
  readonly node?: string;
  /** `node_modules` with the ACP adapter and the CLI. @default '/opt/codex-acp/node_modules' */
  readonly modules?: string;
  /** What every configuration begins with; ends in the table of its one model provider. @default '/etc/orka/codex.toml' */
  readonly configFile?: string;
}

const adapter = '@agentclientprotocol/codex-acp/dist/index.js';

/** Codex behind its ACP adapter. It speaks the Responses API over plain HTTP to the loopback proxy. */
export function codexProvider(options: CodexOptions = {}): Provider {
  const modules = options.modules ?? '/opt/codex-acp/node_modules';
  const base = readBase(options.configFile ?? '/etc/orka/codex.toml');
  return {
    command: [options.node ?? '/usr/local/bin/node', '--import', childReporter, path.join(modules, adapter)],
    // `codex app-server`. The adapter waits for ever for one that is gone.
    worker: 'codex',
    authMethod: 'api-key',
    literal: withoutCommand,
    // Codex reports `<model>` or `<model>[<reasoning effort>]`.
    isModel: (reported, model) => reported === model || reported.replace(/\[[a-z]+\]$/, '') === model,
    files: (session) => ({ [path.join(codexHome(session), 'config.toml')]: configuration(base, session) }),
    env: (session) => ({
      CODEX_HOME: codexHome(session),
      CODEX_API_KEY: session.proxyCredential,
      INITIAL_AGENT_MODE: agentMode(session),
      NO_BROWSER: '1',
    }),
    routes: { 'POST /v1/responses': { inference: true }, 'GET /v1/models': { inference: false } },
  };
}

function codexHome({ home }: ProviderSession): string {
  return path.join(home, '.codex');
}

/**
 * Codex enforces two policies exactly: no restriction, where the sandbox around it is the boundary, and reading only, where it asks
 * before it does anything else and is told no. Source: dispatch.md §2.5, corrections.md item 3.
 */
function agentMode({ toolPolicy }: ProviderSession): 'agent-full-access' | 'read-only' {
  return isUnrestricted(toolPolicy) ? 'agent-full-access' : 'read-only';
}

function isUnrestricted(policy: ToolPolicyMessage): boolean {
  return policy.allowedToolNames === null && (policy.disallowedToolNames ?? []).length === 0 && policy.allowBash;
}

/** Top-level keys come before the tables of the base, the address into its last one. */
function configuration(base: string, { configuration: agent, toolPolicy, proxyUrl }: ProviderSession): string {
  return [
    `model = ${tomlText(agent.model)}`,
    ...(agent.reasoningEffort ? [`model_reasoning_effort = ${tomlText(agent.reasoningEffort)}`] : []),
    ...(agent.systemPrompt ? [`developer_instructions = ${tomlText(agent.systemPrompt)}`] : []),
    'check_for_update_on_startup = false',
    // A search that the model's host runs passes no proxy and no policy of ours.
    ...(isUnrestricted(toolPolicy) ? [] : ['web_search = "disabled"']),
    base.trimEnd(),
    `base_url = ${tomlText(`${proxyUrl}/v1`)}`,
    '',
  ].join('\n');
}

function readBase(file: string): string {
  const text = readText(file);
  const tables = [...text.matchAll(/^\s*\[(.+)\]\s*$/gm)].map(([, name]) => name);
  const provider = /^model_provider\s*=\s*"([\w-]+)"\s*$/m.exec(text)?.[1];
  if (provider === undefined || tables.at(-1) !== `model_providers.${provider}`)
    throw new ConfigError('invalid', {
      at: file,
      says: 'there is no model_provider, or its table [model_providers.…] is not at the end',
    });
  return text;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new ConfigError('invalid', { at: file, says: 'it cannot be read' }, { cause });
  }
}

/** A TOML basic string. JSON's escapes are TOML's, but for DEL, which JSON leaves as it is. */
function tomlText(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f');
}
