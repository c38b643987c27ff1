import { spawn, spawnSync } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { limit } from './pace.js';

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const command = new URL('../../lib/bin/orka-workspaces.js', import.meta.url).pathname;

/** Runs the built command, as a user would. */
export function cli(
  args: readonly string[],
  options: { readonly input?: string; readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): CliResult {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args], {
    encoding: 'utf8',
    timeout: limit(60_000),
    env: { ...process.env, NODE_OPTIONS: '', ...options.env },
    ...(options.input === undefined ? {} : { input: options.input }),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  return { code: status, stdout, stderr };
}

/** The same, for a command that talks to a server of this process. */
export async function cliBeside(
  args: readonly string[],
  options: { readonly input?: string; readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<CliResult> {
  const child = spawn(process.execPath, [command, ...args], {
    timeout: limit(60_000),
    env: { ...process.env, NODE_OPTIONS: '', ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  child.stdin.end(options.input ?? '');
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}
