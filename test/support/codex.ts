import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';

const adapter = '@agentclientprotocol/codex-acp/dist/index.js';

/** `node_modules` with Codex and its ACP adapter, or why there is none. */
export function codexModules(): { readonly modules: string } | { readonly missing: string } {
  const given = process.env['ORKA_CODEX_MODULES'];
  const candidates = given === undefined ? fromImages() : [given];
  const modules = candidates.find((candidate) => existsSync(path.join(candidate, adapter)));
  return modules === undefined ? { missing: `no ${adapter}: run npm run images, or set ORKA_CODEX_MODULES` } : { modules };
}

/** The same modules where every user can read them: a home folder is closed to the users of sessions. */
export function shareModules(modules: string, folder: string): string {
  const shared = path.join(folder, 'node_modules');
  const linked = spawnSync('cp', ['-rl', modules, shared]).status === 0;
  if (!linked) cpSync(modules, shared, { recursive: true });
  return shared;
}

/** What building the image of the test cluster left. */
function fromImages(): readonly string[] {
  const cache = path.join(homedir(), '.cache/orka-workspaces/cluster');
  const found = existsSync(cache) ? readdirSync(cache).filter((name) => name.startsWith('acp-codex-')) : [];
  return found.map((name) => path.join(cache, name, 'node_modules'));
}
