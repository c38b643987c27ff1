import { parseArgs } from 'node:util';
import { codexProvider } from './codex.js';
import { ConfigError } from './config.js';
import { openCodeProvider } from './opencode.js';
import type { Provider } from './provider.js';

/** Where the image keeps what the supervisor needs; each can be moved by an option of the command. */
export interface MainOptions {
  readonly adapterDigests: string;
  readonly provider: (kind: string) => Provider;
  readonly sameUser: boolean;
}

/** `--adapter-digests FILE --codex-config FILE --codex-modules DIR --node FILE --opencode FILE --same-user` */
export function readOptions(args: readonly string[]): MainOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      'adapter-digests': { type: 'string', default: '/etc/orka/adapter-digests.json' },
      'codex-config': { type: 'string' },
      'codex-modules': { type: 'string' },
      node: { type: 'string' },
      opencode: { type: 'string' },
      'same-user': { type: 'boolean', default: false },
    },
  });
  const codex = { configFile: values['codex-config'], modules: values['codex-modules'], node: values.node };
  return {
    adapterDigests: values['adapter-digests'],
    provider: (kind) => {
      if (kind === 'codex') return codexProvider(codex);
      if (kind === 'opencode') return openCodeProvider({ program: values.opencode });
      throw new ConfigError('invalid', {
        at: 'environment',
        field: 'ORKA_ACP_PROVIDER',
        found: kind,
        allowed: 'codex or opencode in this version',
      });
    },
    sameUser: values['same-user'],
  };
}
