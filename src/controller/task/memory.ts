import type { Agent } from '../../api/index.js';
import type { Thawed } from '../../domain/thaw.js';
import type { Finding } from '../../lib/errors.js';
import type { WaitsFor } from './decision.js';
import type { Standing } from './places.js';
import type { SourceRefusal } from '../../domain/source-refusals.js';
import type { SourceWork } from './source-run.js';

/** Why the last tries to begin an attempt in one instance came to nothing, and when the next is due, in milliseconds since 1970. */
export interface Held {
  readonly runtimeInstanceID: string | undefined;
  readonly says: string;
  readonly tries: number;
  readonly until: number;
}

/** What the namespace of a Task did not take at the last try, and when the next is due, in milliseconds since 1970. */
export interface RefusedCreate {
  readonly says: string;
  readonly tries: number;
  readonly until: number;
}

/** A call of the publisher for a Task that is under way in this process. */
interface SourceUnderWay {
  readonly work: SourceWork;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** Why the last try came to nothing. */
  readonly says: () => string | undefined;
  readonly cancel: () => void;
}

/** What a process knows of the repository of a Task beside the records of its calls. Times in milliseconds since 1970. */
interface SourceMemory {
  run: SourceUnderWay | undefined;
  refusal: SourceRefusal | undefined;
  /** When the publisher last named the archive. */
  preparedAt: number | undefined;
  /** Runs that failed. */
  failedRuns: number | undefined;
  /** When the next run is due, after one that failed. */
  heldUntil: number | undefined;
}

/** What a process remembers of a Task between two steps. All of it can be found out again. */
export interface TaskMemory {
  /** The answer of the server for an Agent that the watch does not know. */
  agent: { readonly found: Agent | undefined } | undefined;
  /** What the ConfigMap that `of` names said. */
  systemPrompt: { readonly of: string; readonly found: { readonly missing: string } | { readonly text: string } } | undefined;
  /** The stored snapshot that the binding names; without a body there is none, or another. */
  snapshot: { readonly id: string; readonly body: string | undefined } | undefined;
  thawed: Thawed | { readonly problem: Finding } | undefined;
  /** What others must know of this Task before it is bound. */
  standing: Standing;
  /** UID of the namespace of a bound Task. */
  namespaceUid: string | undefined;
  /** What it waits for; `undefined`: it has begun, or is over. */
  waits: WaitsFor | undefined;
  /** An attempt is under way in this process. */
  running: boolean;
  /** One was begun in this process. */
  begun: boolean;
  held: Held | undefined;
  refused: RefusedCreate | undefined;
  /** How many sessions of this Task one instance could not begin. */
  sessions: { readonly runtimeInstanceID: string; readonly tried: number } | undefined;
  /** Sessions whose archive did not come. */
  failedDownloads: number;
  /** A session of an attempt which was given up: it could not be ended then, and has a slot of its instance. */
  abandoned: { readonly runtimeInstanceID: string; readonly generation: number } | undefined;
  readonly source: SourceMemory;
  /** Asks it to end: nobody wants it any more, or its instance is gone. */
  cancel: ((reason: 'deleted' | 'lost') => void) | undefined;
}

export function createTaskMemory(): TaskMemory {
  return {
    agent: undefined,
    systemPrompt: undefined,
    snapshot: undefined,
    thawed: undefined,
    standing: undefined,
    namespaceUid: undefined,
    waits: undefined,
    running: false,
    begun: false,
    held: undefined,
    refused: undefined,
    sessions: undefined,
    failedDownloads: 0,
    abandoned: undefined,
    source: { run: undefined, refusal: undefined, preparedAt: undefined, failedRuns: undefined, heldUntil: undefined },
    cancel: undefined,
  };
}
