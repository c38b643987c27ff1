/** What operations came to, so that a repeated request gets the same bytes. Source: repository.md §3.3. */
import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { canonicalJson } from '../lib/canonical-json.js';
import { decodeText, digest, integer, oneOf, optional, record, text, WireError } from '../lib/decode.js';
import type { Decoded } from '../lib/decode.js';
import type { JsonObject } from '../lib/json.js';
import { digestOf, sha256Hex } from '../lib/sha256.js';
import type { Digest } from '../lib/sha256.js';
import { operationId } from '../source/messages.js';
import { operationPaths } from '../source/protocol.js';
import type { Operation } from '../source/protocol.js';
import { openFolder, readWhole, writeDurably } from './durable.js';
import { Refusal } from './refusal.js';

export interface JournalLimits {
  readonly records: number;
  /** Of all records together. */
  readonly bytes: number;
  /** Milliseconds that a record is kept. */
  readonly age: number;
}

export const usualJournalLimits: JournalLimits = { records: 4096, bytes: 64 * 1024 * 1024, age: 24 * 3600 * 1000 };

/**
 * Operations that may run again under the same id, because they only read. Such a record may be removed to make room.
 * A record of another operation stays until it is too old, and is not begun twice. Damaged records need a rule before the first of those:
 * they are removed. Source: repository.md §3.3.
 */
const usualRepeatable: Readonly<Record<Operation, boolean>> = { 'workspace.resolve': true, 'workspace.prepare': true };

/** Bytes of a record, more than any answer of ours makes. */
const longestRecord = 4 * 1024 * 1024;
/** Bytes that are kept free for a record whose answer is not known yet. */
const usualRecord = 16 * 1024;

const journalRecord = record({
  schema: oneOf('orka.workspace-publisher.journal.v1'),
  operationId,
  operation: oneOf(...(Object.keys(operationPaths) as Operation[])),
  requestDigest: digest,
  state: oneOf('started', 'completed', 'failed'),
  /** Milliseconds since 1970. */
  startedAt: integer(0),
  endedAt: optional(integer(0)),
  status: optional(integer(200, 599)),
  body: optional(text({ max: 2 * 1024 * 1024 })),
});
type JournalRecord = Decoded<typeof journalRecord>;
const journalFile = record({ record: journalRecord, sum: digest });

export interface JournaledRequest {
  readonly operationId: string;
  readonly operation: Operation;
  readonly requestDigest: Digest;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
}

export interface JournalOptions {
  readonly limits?: JournalLimits;
  readonly clock?: () => number;
  /** @default every operation of this version: each only reads */
  readonly repeatable?: Readonly<Record<Operation, boolean>>;
}

interface Entry {
  bytes: number;
  /** Since 1970; of the end, if there is one. */
  at: number;
  isTerminal: boolean;
  isRepeatable: boolean;
  /** An operation of this process is under way. */
  isBusy: boolean;
}

/** One file for each operation id. The caller never has two calls for one id under way. */
export class Journal {
  readonly #folder: string;
  readonly #limits: JournalLimits;
  readonly #clock: () => number;
  readonly #repeatable: Readonly<Record<Operation, boolean>>;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  #damaged = 0;

  private constructor(folder: string, { limits, clock, repeatable }: JournalOptions) {
    this.#folder = folder;
    this.#limits = limits ?? usualJournalLimits;
    this.#clock = clock ?? Date.now;
    this.#repeatable = repeatable ?? usualRepeatable;
  }

  static async open(folder: string, options: JournalOptions = {}): Promise<Journal> {
    await openFolder(folder);
    const journal = new Journal(folder, options);
    for (const name of await readdir(folder)) await journal.#load(name);
    await journal.prune();
    return journal;
  }

  get size(): { readonly records: number; readonly bytes: number; readonly damaged: number } {
    return { records: this.#entries.size, bytes: this.#bytes, damaged: this.#damaged };
  }

  /**
   * The reply of an earlier request, or `undefined` once the journal knows that this one has started. Throws {@link Refusal}
   * `operation_conflict` for another request under the same id, and `operation_interrupted` for one that started and may not run again.
   */
  async begin(request: JournaledRequest): Promise<Reply | undefined> {
    const name = nameOf(request.operationId);
    const found = await this.#read(name);
    if (found?.operationId === request.operationId) {
      const isSame = found.requestDigest === request.requestDigest && found.operation === request.operation;
      if (!isSame) throw new Refusal('operation_conflict');
      if (found.state !== 'started' && found.status !== undefined && found.body !== undefined)
        return { status: found.status, body: found.body };
      if (!this.#repeatable[found.operation]) throw new Refusal('operation_interrupted');
    }
    await this.prune();
    await this.#write(name, recordOf(request, { state: 'started', startedAt: found?.startedAt ?? this.#clock() }), true);
    return undefined;
  }

  /** Stores what the operation came to. */
  async finish(request: JournaledRequest, state: 'completed' | 'failed', { status, body }: Reply): Promise<void> {
    const name = nameOf(request.operationId);
    const now = this.#clock();
    await this.#write(
      name,
      recordOf(request, { state, startedAt: this.#entries.get(name)?.at ?? now, endedAt: now, status, body }),
      false,
    );
  }

  /** The operation ended without a result that is kept. */
  release({ operationId: id }: JournaledRequest): void {
    const entry = this.#entries.get(nameOf(id));
    if (entry) entry.isBusy = false;
  }

  /** Removes what is older than a record may be. */
  async prune(): Promise<void> {
    const oldest = this.#clock() - this.#limits.age;
    for (const [name, { at, isBusy }] of [...this.#entries]) if (!isBusy && at < oldest) await this.#remove(name);
  }

  async #load(name: string): Promise<void> {
    const found = await this.#read(name);
    if (!found) return;
    const bytes = (await stat(path.join(this.#folder, name))).size;
    this.#set(name, bytes, found, false);
  }

  /** A record that is not as it was written is removed: reading a source again does no harm, a wrong answer would. */
  async #read(name: string): Promise<JournalRecord | undefined> {
    const isKnown = this.#entries.has(name);
    const content = await readWhole(path.join(this.#folder, name), longestRecord);
    const found = content === undefined ? undefined : intact(content);
    if (found && nameOf(found.operationId) === name) return found;
    if (content !== undefined || isKnown) {
      this.#damaged++;
      await this.#remove(name);
    }
    return undefined;
  }

  async #write(name: string, content: JournalRecord, isBusy: boolean): Promise<void> {
    const whole = fileOf(content);
    const bytes = Buffer.byteLength(whole);
    await this.#makeRoom(name, isBusy ? Math.max(bytes, usualRecord) : bytes);
    try {
      await writeDurably(this.#folder, name, whole);
    } catch (cause) {
      throw new Refusal('journal_unavailable', { cause });
    }
    this.#set(name, bytes, content, isBusy);
  }

  /** Removes repeatable records until one of so many bytes fits: those without a result first, then the oldest. */
  async #makeRoom(name: string, bytes: number): Promise<void> {
    const own = this.#entries.get(name);
    const isFull = () =>
      this.#entries.size + (own ? 0 : 1) > this.#limits.records || this.#bytes - (own?.bytes ?? 0) + bytes > this.#limits.bytes;
    while (isFull()) {
      const [oldest] = [...this.#entries]
        .filter(([other, entry]) => entry.isRepeatable && !entry.isBusy && other !== name)
        .sort(([, a], [, b]) => Number(a.isTerminal) - Number(b.isTerminal) || a.at - b.at);
      if (!oldest) throw new Refusal('journal_full');
      await this.#remove(oldest[0]);
    }
  }

  #set(name: string, bytes: number, { operation, state, startedAt, endedAt }: JournalRecord, isBusy: boolean): void {
    this.#bytes += bytes - (this.#entries.get(name)?.bytes ?? 0);
    const isRepeatable = this.#repeatable[operation];
    this.#entries.set(name, { bytes, at: endedAt ?? startedAt, isTerminal: state !== 'started', isRepeatable, isBusy });
  }

  async #remove(name: string): Promise<void> {
    this.#bytes -= this.#entries.get(name)?.bytes ?? 0;
    this.#entries.delete(name);
    await rm(path.join(this.#folder, name), { force: true, recursive: true });
  }
}

/** Source: repository.md §3.3. */
const nameOf = (id: string): string => `${sha256Hex(`operation\0${id}`)}.json`;

function recordOf(
  { operationId: id, operation, requestDigest }: JournaledRequest,
  outcome: Pick<JournalRecord, 'state' | 'startedAt' | 'endedAt' | 'status' | 'body'>,
): JournalRecord {
  return { schema: 'orka.workspace-publisher.journal.v1', operationId: id, operation, requestDigest, ...outcome };
}

/** The checksum tells a record that a disk or a person changed from one that was written. */
function fileOf(content: JournalRecord): string {
  const value = content as unknown as JsonObject;
  return canonicalJson({ record: value, sum: digestOf(canonicalJson(value)) });
}

function intact(content: string): JournalRecord | undefined {
  try {
    const { record: found } = decodeText(journalFile, content);
    return fileOf(found) === content ? found : undefined;
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}
