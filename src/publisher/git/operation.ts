import { rm } from 'node:fs/promises';

import { repositoryOf } from '../../domain/repository/repository.js';
import type { Repository } from '../../source/messages.js';
import { classify } from './classify.js';
import type { EgressPass, EgressProxy } from './egress.js';
import { portOf } from './forge.js';
import type { Forge } from './forge.js';
import { OperationFolder } from './operation-folder.js';
import { GitFailure } from './runner.js';
import type { GitCall, GitProcess, GitRunner } from './runner.js';
import { SourceError } from './source-error.js';

/** Milliseconds that one call of git may take. */
export interface GitTimeouts {
  /** Of questions to a forge. */
  readonly ask: number;
  /** Of fetching and reading a tree. */
  readonly fetch: number;
}

/** The forge of a repository. Throws when the repository is none of a listed forge, or is not named as it must be. */
export function forgeOf(source: Repository, forges: readonly Forge[]): Forge {
  const names = forges.map((forge) => `${forge.host}:${portOf(forge)}`);
  const at = 'source';
  const url = URL.canParse(source.url) ? new URL(source.url) : undefined;
  if (url?.protocol !== 'https:')
    throw new SourceError('invalid_request', { at, field: 'url', allowed: 'an https URL without user info, query and fragment' });
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const forge = forges.find((one) => one.host === host && portOf(one) === Number(url.port === '' ? 443 : url.port));
  const named = repositoryOf(source.url, names);
  if (!forge) {
    const found = `${url.hostname}:${url.port === '' ? 443 : url.port}`;
    throw new SourceError('host_not_allowed', { at, field: 'url', found, allowed: `a repository of ${names.join(', ')}` });
  }
  if ('problem' in named) throw new SourceError('invalid_request', { at, field: 'url', ...named.problem });
  if (named.repository.id !== source.id || named.repository.provider !== source.provider)
    throw new SourceError('invalid_request', { at, field: 'id', found: source.id, allowed: named.repository.id });
  return forge;
}

/** One operation on one repository: its folder, its credential, its way out. */
export class GitOperation {
  readonly source: Repository;
  readonly #git: GitRunner;
  readonly #folder: OperationFolder;
  readonly #pass: EgressPass;
  readonly #signal: AbortSignal;
  readonly #timeouts: GitTimeouts;
  readonly #running = new Set<GitProcess>();

  private constructor(
    source: Repository,
    parts: { git: GitRunner; folder: OperationFolder; pass: EgressPass; signal: AbortSignal; timeouts: GitTimeouts },
  ) {
    this.source = source;
    this.#git = parts.git;
    this.#folder = parts.folder;
    this.#pass = parts.pass;
    this.#signal = parts.signal;
    this.#timeouts = parts.timeouts;
  }

  static async begin(
    source: Repository,
    credential: string | undefined,
    parts: {
      readonly git: GitRunner;
      readonly forge: Forge;
      readonly egress: EgressProxy;
      readonly tempRoot: string;
      readonly signal: AbortSignal;
      readonly timeouts: GitTimeouts;
    },
  ): Promise<GitOperation> {
    const pass = parts.egress.admit(parts.forge);
    try {
      const access = { url: source.url, forge: parts.forge, credential, proxy: pass.proxy };
      const folder = await OperationFolder.create(parts.tempRoot, access);
      return new GitOperation(source, { ...parts, folder, pass });
    } catch (error) {
      pass.revoke();
      throw error;
    }
  }

  /** For errors. */
  get at(): string {
    return `repository ${this.source.id}`;
  }

  /** Refs of the forge: name to OID. Only names that are asked for by their whole name. */
  async listRefs(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const answer = await this.#network(['ls-remote', '--quiet', '--', this.source.url, ...names], this.#timeouts.ask);
    const lines = answer.toString().split('\n');
    const pairs = lines.map((line): [string, string] => [line.slice(line.indexOf('\t') + 1), line.split('\t', 1)[0] ?? '']);
    // git also lists refs that end like the wanted ones.
    return new Map(pairs.filter(([name, oid]) => names.includes(name) && isObjectId(oid)));
  }

  /** The branch that HEAD names and its OID; `undefined` = HEAD names none that exists. */
  async defaultBranch(): Promise<{ readonly ref: string; readonly oid: string } | undefined> {
    const args = ['ls-remote', '--quiet', '--symref', '--', this.source.url, 'HEAD'];
    const lines = (await this.#network(args, this.#timeouts.ask)).toString().split('\n');
    const ref = lines.flatMap((line) => /^ref: (\S+)\tHEAD$/.exec(line)?.[1] ?? [])[0];
    const oid = lines.flatMap((line) => /^([0-9a-f]+)\tHEAD$/.exec(line)?.[1] ?? [])[0];
    return ref !== undefined && oid !== undefined && isObjectId(oid) ? { ref, oid } : undefined;
  }

  /** Makes the throw-away repository, empty also when there was one: after a fetch that left objects out, git would fetch them one by one. */
  async init(oid: string): Promise<void> {
    await rm(this.#folder.repository, { recursive: true, force: true });
    const format = oid.length === 64 ? 'sha256' : 'sha1';
    await this.run(['init', '--quiet', '--bare', `--object-format=${format}`, this.#folder.repository]);
  }

  /** Fetches one commit and its tree; `filter` leaves objects out. `wanted`: a full ref or an OID. */
  async fetch(wanted: string, filter?: 'tree:0'): Promise<void> {
    const options = [
      '--quiet',
      '--depth=1',
      '--no-tags',
      '--no-recurse-submodules',
      '--no-write-fetch-head',
      '--no-auto-maintenance',
    ];
    const left = filter === undefined ? [] : [`--filter=${filter}`];
    const timeout = filter === undefined ? this.#timeouts.fetch : this.#timeouts.ask;
    await this.#network(['fetch', ...options, ...left, '--', this.source.url, `+${wanted}:${fetched}`], timeout);
  }

  run(args: readonly string[], input = ''): Promise<Buffer> {
    return this.#coded(this.#git.run({ ...this.#call(args, this.#timeouts.fetch), input }));
  }

  /** A process whose output is read as it comes. Its failure is for {@link GitOperation.coded}. */
  start(args: readonly string[]): GitProcess {
    const process = this.#git.start(this.#call(args, this.#timeouts.fetch));
    this.#running.add(process);
    const forget = (): void => void this.#running.delete(process);
    process.done.then(forget, forget);
    return process;
  }

  /** Gives a failure of git its code. */
  coded(error: unknown): unknown {
    return error instanceof GitFailure ? classify(error, this.#pass.refusal(), this.at) : error;
  }

  async end(): Promise<void> {
    for (const process of this.#running) process.kill();
    await Promise.allSettled([...this.#running].map(({ done }) => done));
    this.#pass.revoke();
    await this.#folder.remove();
  }

  #network(args: readonly string[], timeout: number): Promise<Buffer> {
    return this.#coded(this.#git.run({ ...this.#call(args, timeout), network: true }));
  }

  #call(args: readonly string[], timeout: number): GitCall {
    return { args, folder: this.#folder, signal: this.#signal, timeout };
  }

  async #coded<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw this.coded(error);
    }
  }
}

/** Where a fetched ref is kept. */
export const fetched = 'refs/orka/source';

export const isObjectId = (text: string): boolean => /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text) && !/^0+$/.test(text);
