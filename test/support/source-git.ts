import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { createSourceGit, defaultArchiveLimits } from '../../src/publisher/git/source.js';
import type { SourceGitOptions } from '../../src/publisher/git/source.js';
import type { SourceGit } from '../../src/publisher/source-git.js';
import type { PrepareRequest, ResolveRequest } from '../../src/source/messages.js';
import { credentialOf, readToken } from './forge.js';
import type { TestForge } from './forge.js';

/** The git of a publisher with folders of its own, for one forge on the loopback. */
export interface TestSource {
  readonly git: SourceGit;
  readonly folder: string;
  readonly tempRoot: string;
  readonly cacheRoot: string;
  readonly logged: readonly string[];
  readonly close: () => Promise<void>;
}

export function testSource(forge: TestForge, options: Partial<SourceGitOptions> = {}): TestSource {
  const folder = mkdtempSync(path.join(tmpdir(), 'source-git-'));
  const [tempRoot, cacheRoot] = [path.join(folder, 'tmp'), path.join(folder, 'cache')];
  const logged: string[] = [];
  const write = (event: string, about: unknown = {}): void => void logged.push(`${event} ${JSON.stringify(about)}`);
  const [host = '', port = ''] = forge.at.split(':');
  const git = createSourceGit({
    forges: [{ host, port: Number(port), ca: forge.ca, private: true, cidr: '127.0.0.0/8' }],
    tempRoot,
    cacheRoot,
    limits: defaultArchiveLimits,
    log: { info: write, warn: write },
    resolveHost: () => Promise.resolve(['127.0.0.1']),
    ...options,
  });
  return {
    git,
    folder,
    tempRoot,
    cacheRoot,
    logged,
    close: async () => {
      await git.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const metadata = { namespace: 'demo', operationId: 'workspace-resolve-p1', taskId: 'task-1' };

export const readCredential = credentialOf(readToken);

/** `repository`: its path on the forge, without `.git`. */
export function resolveRequest(forge: TestForge, repository: string, sourceRef = ''): ResolveRequest {
  return {
    metadata,
    source: { provider: 'github', id: `${forge.at}/${repository}`, url: `https://${forge.at}/${repository}.git` },
    sourceRef,
  };
}

export function prepareRequest(
  forge: TestForge,
  repository: string,
  baselineOid: string,
  sourceRef = 'refs/heads/main',
): PrepareRequest {
  return { ...resolveRequest(forge, repository, sourceRef), baselineOid };
}

/** The error of a promise that rejects. */
export async function failureOf(work: Promise<unknown>): Promise<Error> {
  try {
    await work;
  } catch (error) {
    return error as Error;
  }
  throw new Error('it succeeded');
}
