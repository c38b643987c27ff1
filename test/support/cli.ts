import { spawnSync } from 'node:child_process';

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built command, as a user would. */
export function cli(
  args: readonly string[],
  options: { readonly input?: string; readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): CliResult {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [new URL('../../lib/bin/orka-workspaces.js', import.meta.url).pathname, ...args],
    {
      encoding: 'utf8',
      timeout: 60_000,
      env: { ...process.env, NODE_OPTIONS: '', ...options.env },
      ...(options.input === undefined ? {} : { input: options.input }),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    },
  );
  return { code: status, stdout, stderr };
}
