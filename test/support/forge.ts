import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { startForge } from '../cluster/forge/server.js';
import type { RunningForge } from '../cluster/forge/server.js';
import { authority } from './certificates.js';

/** A forge on the loopback with its own authority; its repositories are folders of a test. */
export interface TestForge extends Omit<RunningForge, 'close'> {
  /** `localhost:<port>`: also the first part of a repository's id. */
  readonly at: string;
  readonly root: string;
  readonly ca: string;
  readonly close: () => Promise<void>;
}

export const readToken = 'read-token-of-the-test-forge';
export const writeToken = 'write-token-of-the-test-forge';

/** The credential header that repository.md §1.3 makes of a token. */
export const credentialOf = (token: string): string =>
  `Authorization: Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;

export async function testForge(name = 'localhost'): Promise<TestForge> {
  const root = mkdtempSync(path.join(tmpdir(), 'forge-'));
  const { ca, issue } = authority('forge authority');
  const { cert, key } = issue('forge', 1, [name]);
  const forge = await startForge({ root, cert, key, readToken, writeToken });
  return {
    ...forge,
    at: `${name}:${forge.port}`,
    root,
    ca,
    close: async () => {
      await forge.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Runs git on a repository of a test, with a fixed author and date and no configuration of this machine. */
export function git(cwd: string, args: readonly string[], input?: string | Buffer): string {
  const { status, stdout, stderr } = spawnSync('git', args, {
    cwd,
    ...(input === undefined ? {} : { input }),
    maxBuffer: 64 * 1024 * 1024,
    env: {
      PATH: process.env['PATH'],
      HOME: '/nonexistent',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_AUTHOR_NAME: 'Fixture',
      GIT_AUTHOR_EMAIL: 'fixture@example.test',
      GIT_AUTHOR_DATE: '1700000000 +0000',
      GIT_COMMITTER_NAME: 'Fixture',
      GIT_COMMITTER_EMAIL: 'fixture@example.test',
      GIT_COMMITTER_DATE: '1700000000 +0000',
    },
  });
  if (status !== 0) throw new Error(`git ${args[0] ?? ''}: ${stderr.toString()}`);
  return stdout.toString().trim();
}

/** One entry of a tree. `mode`: 100644 unless given; 120000 = a link to `content`, 160000 = a submodule at the OID `content`. */
export interface TreeEntry {
  readonly path: string;
  readonly content: string | Buffer;
  readonly mode?: '100644' | '100755' | '120000' | '160000';
}

/** A new bare repository below the root of a forge. Returns its folder. */
export function bareRepository(root: string, name: string, format: 'sha1' | 'sha256' = 'sha1'): string {
  const folder = path.join(root, name);
  mkdirSync(folder, { recursive: true });
  git(folder, ['init', '--quiet', '--bare', '--initial-branch=main', `--object-format=${format}`, '.']);
  return folder;
}

/** Commits exactly this tree to a branch. Returns the OID of the commit. */
export function commitTree(folder: string, entries: readonly TreeEntry[], ref = 'refs/heads/main'): string {
  const parts: Buffer[] = [
    Buffer.from(`commit ${ref}\ncommitter Fixture <fixture@example.test> 1700000000 +0000\ndata 9\nbaseline\n\ndeleteall\n`),
  ];
  for (const { path: name, content, mode = '100644' } of entries) {
    const quoted = `"${name.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`;
    if (mode === '160000') {
      parts.push(Buffer.from(`M ${mode} ${content.toString()} ${quoted}\n`));
      continue;
    }
    const bytes = Buffer.from(content);
    parts.push(Buffer.from(`M ${mode} inline ${quoted}\ndata ${bytes.length}\n`), bytes, Buffer.from('\n'));
  }
  git(folder, ['fast-import', '--quiet', '--force'], Buffer.concat(parts));
  return git(folder, ['rev-parse', ref]);
}
