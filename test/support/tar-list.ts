import { spawnSync } from 'node:child_process';
import { lstatSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** One entry of an archive, as GNU tar extracts it. */
export interface ExtractedEntry {
  readonly path: string;
  readonly mode: string;
  readonly content?: Buffer;
  readonly target?: string;
}

/** Extracts an archive with the tar of this machine and lists what is there, directories included, sorted by path. */
export function extract(archive: string): readonly ExtractedEntry[] {
  const folder = mkdtempSync(path.join(tmpdir(), 'extracted-'));
  try {
    const { status, stderr } = spawnSync('tar', ['-xpf', archive, '-C', folder, '--no-same-owner'], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`tar: ${stderr}`);
    return list(folder, '');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function list(root: string, below: string): readonly ExtractedEntry[] {
  return readdirSync(path.join(root, below))
    .map((name) => (below === '' ? name : `${below}/${name}`))
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    .flatMap((name) => {
      const at = path.join(root, name);
      const stat = lstatSync(at);
      const mode = (stat.mode & 0o777).toString(8);
      if (stat.isSymbolicLink()) return [{ path: name, mode: '777', target: readlinkSync(at) }];
      return stat.isDirectory() ? [{ path: name, mode }, ...list(root, name)] : [{ path: name, mode, content: readFileSync(at) }];
    });
}
