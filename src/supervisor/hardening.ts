import { spawnSync } from 'node:child_process';

/** Programs of the image that give a child its limits, its user and, once it has that, its folder. */
export const programs = { prlimit: '/usr/bin/prlimit', setpriv: '/usr/bin/setpriv', shell: '/bin/bash' } as const;

/**
 * What holds for this process and all that follow: files are private, and no core file can hold a token. Orphans are waited for by
 * the image's entry point. Throws if that cannot be had.
 */
export function harden(): void {
  process.umask(0o077);
  const { status, error } = spawnSync(programs.prlimit, ['--pid', String(process.pid), '--core=0:0'], {
    stdio: 'ignore',
    env: {},
  });
  if (status !== 0) throw new Error('core files cannot be switched off', { cause: error });
}
