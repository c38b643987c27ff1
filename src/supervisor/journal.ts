import type { Fence } from '../harness/fence.js';
import { instant, milliseconds } from '../lib/instant.js';
import type { MutationMetadata } from '../harness/metadata.js';
import { classify } from '../harness/replay.js';
import type { Classification, OperationPhase, OperationRecord, TerminalEvent } from '../harness/replay.js';
import { refusalOf } from './refusal.js';

/** Operations of one session, or of the instance: what was asked, how far it came, what was answered. */
export interface Journal {
  /** How a request relates to those before it. */
  readonly classify: (metadata: MutationMetadata, fence: Fence) => Classification;
  /**
   * Runs a new operation once. Its repeats get the same answer, marked as such, also while it runs; every other relation is thrown as a
   * refusal. An operation that is refused has not happened and is forgotten. `done`: how it is remembered.
   * @default done: applied
   */
  readonly run: <T extends { readonly classification: Classification }>(
    metadata: MutationMetadata,
    fence: Fence,
    action: () => Promise<T>,
    done?: (answer: T) => Done,
  ) => Promise<T>;
  readonly put: (metadata: MutationMetadata, phase: OperationPhase, terminalEvent?: TerminalEvent) => void;
  readonly forget: (operationID: string) => void;
  readonly records: () => readonly OperationRecord[];
  /** Whether only the last place is left, which is kept for the deletion. */
  readonly isFull: () => boolean;
}

type Done = Pick<OperationRecord, 'phase' | 'terminalEvent'>;

interface Entry {
  record: OperationRecord;
  readonly expiresAt: number;
  readonly answer?: Promise<{ readonly classification: Classification }>;
}

const capacity = 4096;
/** Milliseconds that a record outlives its request: clocks differ. */
const grace = 30_000;

/** @param clock milliseconds since 1970 */
export function createJournal(clock: () => number = Date.now): Journal {
  const entries = new Map<string, Entry>();

  /** A request that can still arrive is never forgotten. */
  function prune(): void {
    const now = clock();
    for (const [id, { expiresAt, record }] of entries)
      if (expiresAt + grace < now && record.phase !== 'recorded' && record.phase !== 'accepted') entries.delete(id);
  }

  function put(metadata: MutationMetadata, phase: OperationPhase, terminalEvent?: TerminalEvent): void {
    const known = entries.get(metadata.operationID);
    const now = instant(clock());
    const { operationID, requestDigest } = metadata;
    const record: OperationRecord = {
      operationID,
      requestDigest,
      phase,
      ...(terminalEvent === undefined ? {} : { terminalEvent }),
      recordedAt: known?.record.recordedAt ?? now,
      updatedAt: now,
    };
    entries.set(operationID, { expiresAt: milliseconds(metadata.expiresAt), ...known, record });
  }

  const relation = (metadata: MutationMetadata, fence: Fence, at = instant(clock())) =>
    classify(metadata, fence, entries.get(metadata.operationID)?.record, at);

  async function run<T extends { readonly classification: Classification }>(
    metadata: MutationMetadata,
    fence: Fence,
    action: () => Promise<T>,
    done: (answer: T) => Done = () => ({ phase: 'applied' }),
  ): Promise<T> {
    prune();
    const arrived = instant(Date.now());
    const found = relation(metadata, fence, arrived);
    const known = entries.get(metadata.operationID);
    if ((found.class === 'duplicate' || found.class === 'settled') && known?.answer) {
      const answer = (await known.answer) as T;
      // It may have settled meanwhile.
      return { ...answer, classification: relation(metadata, fence, arrived) };
    }
    if (found.class !== 'fresh') throw refusalOf(found);
    put(metadata, 'recorded');
    const answer = action();
    const entry = entries.get(metadata.operationID);
    if (entry) entries.set(metadata.operationID, { ...entry, answer });
    try {
      const value = await answer;
      const { phase, terminalEvent } = done(value);
      put(metadata, phase, terminalEvent);
      return value;
    } catch (error) {
      entries.delete(metadata.operationID);
      throw error;
    }
  }

  return {
    classify: relation,
    run,
    put,
    forget: (operationID) => {
      entries.delete(operationID);
    },
    records: () => [...entries.values()].map(({ record }) => record),
    isFull: () => {
      prune();
      return entries.size >= capacity - 1;
    },
  };
}
