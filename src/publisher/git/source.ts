import { archiveLimits } from '../../source/archive-rules.js';
import type { PrepareRequest, PrepareResponse, Repository, ResolveRequest, ResolveResponse } from '../../source/messages.js';
import type { SourceGit } from '../source-git.js';
import { ArchiveCache } from './cache.js';
import { EgressProxy } from './egress.js';
import type { ResolveHost } from './egress.js';
import type { Forge } from './forge.js';
import { sweep } from './operation-folder.js';
import { GitOperation, forgeOf } from './operation.js';
import type { GitTimeouts } from './operation.js';
import { prepareSource } from './prepare.js';
import { resolveRef } from './resolve.js';
import { GitRunner } from './runner.js';

/** Bounds of an archive. Source: repository.md §2.8. */
export interface ArchiveLimits {
  readonly maxEntries: number;
  readonly maxFileBytes: number;
  readonly maxExpandedBytes: number;
  readonly maxArtifactBytes: number;
}

export const defaultArchiveLimits: ArchiveLimits = {
  maxEntries: archiveLimits.entries,
  maxFileBytes: archiveLimits.fileBytes,
  maxExpandedBytes: archiveLimits.treeBytes,
  maxArtifactBytes: archiveLimits.artifactBytes,
};

/** What happened, without names of users and words of forges. */
export interface SourceLog {
  readonly info: (event: string, about?: Readonly<Record<string, unknown>>) => void;
  readonly warn: (event: string, about?: Readonly<Record<string, unknown>>) => void;
}

export interface SourceGitOptions {
  readonly forges: readonly Forge[];
  /** Own folder for what lives as long as an operation. Its earlier content is removed. */
  readonly tempRoot: string;
  /** Own folder for archives that are used again. */
  readonly cacheRoot: string;
  /** Bound of the archives that are kept. @default 512 MiB */
  readonly cacheBytes?: number;
  readonly limits: ArchiveLimits;
  /** @default git */
  readonly gitBinary?: string;
  readonly log: SourceLog;
  /** @default the addresses that the system's resolver knows */
  readonly resolveHost?: ResolveHost;
  readonly timeouts?: Partial<GitTimeouts>;
}

const defaultTimeouts: GitTimeouts = { ask: 30_000, fetch: 150_000 };
const defaultCacheBytes = 512 * 1024 * 1024;
/** Of a pack beyond the contents of its files: trees, and files that do not compress. */
const packOverhead = 64 * 1024 * 1024;

export function createSourceGit(options: SourceGitOptions): SourceGit {
  return new GitSource(options);
}

interface Parts {
  readonly git: GitRunner;
  readonly egress: EgressProxy;
}

class GitSource implements SourceGit {
  readonly #options: SourceGitOptions;
  readonly #timeouts: GitTimeouts;
  readonly #closed = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  readonly #cache: ArchiveCache;
  #parts: Promise<Parts> | undefined;

  constructor(options: SourceGitOptions) {
    this.#options = options;
    this.#timeouts = { ...defaultTimeouts, ...options.timeouts };
    sweep(options.tempRoot);
    this.#cache = new ArchiveCache(options.cacheRoot, options.cacheBytes ?? defaultCacheBytes);
  }

  async version(): Promise<string> {
    return (await this.#started()).git.version;
  }

  resolve(request: ResolveRequest, credential: string | undefined, signal: AbortSignal): Promise<ResolveResponse> {
    return this.#operate(request.source, credential, signal, async (operation) => ({
      repositoryId: request.source.id,
      ...(await resolveRef(operation, request.sourceRef)),
    }));
  }

  prepare(
    request: PrepareRequest,
    credential: string | undefined,
    target: string,
    signal: AbortSignal,
  ): Promise<PrepareResponse> {
    const { limits, log } = this.#options;
    return this.#operate(request.source, credential, signal, (operation) =>
      prepareSource(operation, request, target, { cache: this.#cache, limits, log, signal }),
    );
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.allSettled(this.#running);
    const parts = await this.#parts?.catch(() => undefined);
    await parts?.egress.close();
  }

  /** Runs one operation; what it had on disk is gone when it has ended. */
  #operate<T>(
    source: Repository,
    credential: string | undefined,
    signal: AbortSignal,
    work: (operation: GitOperation) => Promise<T>,
  ): Promise<T> {
    const run = async (): Promise<T> => {
      const forge = forgeOf(source, this.#options.forges);
      const { git, egress } = await this.#started();
      const both = AbortSignal.any([signal, this.#closed.signal]);
      const parts = { git, egress, forge, tempRoot: this.#options.tempRoot, signal: both, timeouts: this.#timeouts };
      const operation = await GitOperation.begin(source, credential, parts);
      try {
        return await work(operation);
      } finally {
        await operation.end();
      }
    };
    const running = run();
    this.#running.add(running);
    const forget = (): void => void this.#running.delete(running);
    running.then(forget, forget);
    return running;
  }

  /** Finds git and opens the way out, once; a failure is tried again by the next operation. */
  #started(): Promise<Parts> {
    this.#parts ??= this.#start();
    this.#parts.catch(() => (this.#parts = undefined));
    return this.#parts;
  }

  async #start(): Promise<Parts> {
    const { gitBinary = 'git', limits, resolveHost } = this.#options;
    const git = await GitRunner.find(gitBinary, limits.maxExpandedBytes + packOverhead);
    return { git, egress: await EgressProxy.start(resolveHost ? { resolve: resolveHost } : {}) };
  }
}
