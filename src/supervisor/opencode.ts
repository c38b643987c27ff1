import path from 'node:path';
import type { ToolPolicyMessage } from '../harness/profile.js';
import { withoutCommand } from './commands.js';
import type { Provider, ProviderSession } from './provider.js';

export interface OpenCodeOptions {
  /** @default '/opt/opencode/bin/opencode' */
  readonly program?: string | undefined;
}

/** What opencode would fetch, share or read from elsewhere by itself. */
const quiet = [
  ...[
    'AUTOUPDATE',
    'CLAUDE_CODE',
    'DEFAULT_PLUGINS',
    'LSP_DOWNLOAD',
    'MODELS_FETCH',
    'PROJECT_CONFIG',
    'SHARE',
    'TERMINAL_TITLE',
  ],
].map((what) => [`OPENCODE_DISABLE_${what}`, '1'] as const);

/** OpenCode, which speaks ACP itself, and the Chat Completions API to the loopback proxy. It is one process, so it names no worker. */
export function openCodeProvider({ program = '/opt/opencode/bin/opencode' }: OpenCodeOptions = {}): Provider {
  return {
    command: [program, '--pure', 'acp'],
    literal: withoutCommand,
    // OpenCode reports `<provider>/<model>`, some versions with `/<variant>` after it.
    isModel: (reported, model) => reported === qualified(model) || reported.replace(/\/[a-z]+$/, '') === qualified(model),
    files: (session) => ({ [configFile(session)]: JSON.stringify(configuration(session), null, 2) }),
    env: (session) => ({
      OPENCODE_CONFIG: configFile(session),
      [keyVariable]: session.proxyCredential,
      ...Object.fromEntries(quiet),
    }),
    routes: {
      'POST /v1/chat/completions': { inference: true, outputMembers: ['max_tokens', 'max_completion_tokens'] },
    },
  };
}

const keyVariable = 'ORKA_MODEL_KEY';

function configFile({ home }: ProviderSession): string {
  return path.join(home, '.opencode.json');
}

/** A model as opencode names it, with its provider. */
const qualified = (model: string): string => `orka/${model}`;

/** One model behind one provider. A title of the conversation would be a turn of the model that nobody asked for. */
function configuration({ configuration: { model }, toolPolicy, proxyUrl, modelLimits }: ProviderSession) {
  const name = qualified(model);
  return {
    autoupdate: false,
    share: 'disabled',
    snapshot: false,
    model: name,
    small_model: name,
    enabled_providers: ['orka'],
    agent: { title: { disable: true } },
    permission: permissions(toolPolicy),
    provider: {
      orka: {
        npm: '@ai-sdk/openai-compatible',
        name: 'orka',
        options: { baseURL: `${proxyUrl}/v1`, apiKey: `{env:${keyVariable}}` },
        models: {
          [model]: {
            name: model,
            ...(modelLimits ? { limit: { context: modelLimits.context, output: modelLimits.output } } : {}),
          },
        },
      },
    },
  };
}

/** The policy as opencode's own permissions, the last that fits deciding: what it does not name is not offered to the model at all. */
function permissions({ allowedToolNames: allowed, disallowedToolNames: denied, allowBash }: ToolPolicyMessage) {
  const each = (names: readonly string[] | null, answer: 'allow' | 'deny') =>
    (names ?? []).map((name) => [name.toLowerCase(), answer] as const);
  return {
    '*': allowed === null ? 'allow' : 'deny',
    ...Object.fromEntries([...each(allowed, 'allow'), ...each(denied, 'deny'), ...(allowBash ? [] : each(['bash'], 'deny'))]),
  };
}
