import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';

/** Where the package for this kind of machine keeps the program, which is all that opencode is. */
const program = 'opencode-linux-x64/bin/opencode';

/** The program of opencode, or why there is none. */
export function openCodeProgram(): { readonly program: string } | { readonly missing: string } {
  const given = process.env['ORKA_OPENCODE_MODULES'];
  const candidates = (given === undefined ? fromImages() : [given]).map((modules) => path.join(modules, program));
  const found = candidates.find((candidate) => existsSync(candidate));
  return found === undefined
    ? { missing: `no ${program}: set ORKA_OPENCODE_MODULES to a node_modules with it` }
    : { program: found };
}

/** The same program where every user can run it: a home folder is closed to the users of sessions. */
export function shareProgram(file: string, folder: string): string {
  const shared = path.join(folder, 'opencode');
  const linked = spawnSync('cp', ['-l', file, shared]).status === 0;
  if (!linked) copyFileSync(file, shared);
  chmodSync(shared, 0o755);
  return shared;
}

/** What building an image of the test cluster would leave. */
function fromImages(): readonly string[] {
  const cache = path.join(homedir(), '.cache/orka-workspaces/cluster');
  const found = existsSync(cache) ? readdirSync(cache).filter((name) => name.startsWith('acp-opencode-')) : [];
  return found.map((name) => path.join(cache, name, 'node_modules'));
}
