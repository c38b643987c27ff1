import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';

import { portOf } from './forge.js';
import type { Forge } from './forge.js';
import { credentialConfig, networkConfig } from './gitconfig.js';

const prefix = 'operation-';

/** Makes the folder of temporary folders and removes what an earlier process left there. */
export function sweep(root: string): void {
  mkdirSync(root, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(root)) if (name.startsWith(prefix)) rmSync(path.join(root, name), { recursive: true });
}

export interface NetworkAccess {
  readonly url: string;
  readonly forge: Forge;
  /** The whole header line. */
  readonly credential: string | undefined;
  readonly proxy: string;
}

/** What one operation has on disk, its credential included. Other users cannot read it, and it is removed when the operation ends. */
export class OperationFolder {
  readonly root: string;

  private constructor(root: string) {
    this.root = root;
  }

  static async create(tempRoot: string, access: NetworkAccess): Promise<OperationFolder> {
    const folder = new OperationFolder(await mkdtemp(path.join(tempRoot, prefix)));
    await Promise.all([mkdir(folder.home), mkdir(folder.template)]);
    const { forge, proxy, url, credential } = access;
    const caFile = forge.ca === undefined ? undefined : path.join(folder.root, `ca-${portOf(forge)}.pem`);
    if (caFile !== undefined) await writeFile(caFile, forge.ca ?? '', { mode: 0o600 });
    await writeFile(folder.config, `${networkConfig(proxy, caFile)}${credentialConfig(url, credential)}`, { mode: 0o600 });
    return folder;
  }

  get home(): string {
    return path.join(this.root, 'home');
  }

  get template(): string {
    return path.join(this.root, 'template');
  }

  get config(): string {
    return path.join(this.root, 'gitconfig');
  }

  /** Absent until it is initialised. */
  get repository(): string {
    return path.join(this.root, 'repository.git');
  }

  async remove(): Promise<void> {
    await rm(this.root, { recursive: true, force: true, maxRetries: 3 });
  }
}
