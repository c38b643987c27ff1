import { canonicalJson } from '../lib/canonical-json.js';
import { decodeText } from '../lib/decode.js';
import type { JsonObject } from '../lib/json.js';
import type { Digest } from '../lib/sha256.js';
import { prepareAnswer, prepareResponse, resolveResponse } from '../source/messages.js';
import type { PrepareRequest, PrepareResponse, ResolveRequest } from '../source/messages.js';
import type { ArtifactStore } from './artifact-store.js';
import type { Journal, JournaledRequest, Reply } from './journal.js';
import { Refusal, refusalOf } from './refusal.js';
import type { SourceGit } from './source-git.js';

/** A request that was authorized. */
export type AcceptedOperation = {
  readonly requestDigest: Digest;
  /** The header line for the forge. */
  readonly credential: string | undefined;
} & (
  | { readonly operation: 'workspace.resolve'; readonly request: ResolveRequest }
  | { readonly operation: 'workspace.prepare'; readonly request: PrepareRequest }
);

/** What an operation came to; `code` for logs and metrics. */
export interface OperationOutcome extends Reply {
  readonly code: string;
}

export interface OperationsOptions {
  readonly journal: Journal;
  readonly store: ArtifactStore;
  readonly git: SourceGit;
  /** Operations at once. */
  readonly slots: number;
  /** Milliseconds that one may take. */
  readonly timeout: number;
}

/** Runs operations: a slot, a lock for each id, the journal, then the work. Source: repository.md §3.2. */
export class Operations {
  readonly #options: OperationsOptions;
  readonly #locks = new Map<string, Promise<unknown>>();
  readonly #end = new AbortController();
  readonly #ofNamespaces = new Map<string, number>();
  #running = 0;
  #isClosing = false;

  constructor(options: OperationsOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running;
  }

  /** `signal`: of a caller that may go away. Never throws: a failure is a reply, too. */
  async run(accepted: AcceptedOperation, signal: AbortSignal): Promise<OperationOutcome> {
    const about = { operationId: accepted.request.metadata.operationId, requestDigest: accepted.requestDigest };
    if (this.#isClosing) return refused(new Refusal('operation_interrupted'), about);
    const { namespace } = accepted.request.metadata;
    if (!this.#hasRoom(namespace)) return refused(new Refusal('busy'), about);
    this.#count(namespace, 1);
    const work = AbortSignal.any([signal, this.#end.signal, AbortSignal.timeout(this.#options.timeout)]);
    try {
      return await this.#locked(about.operationId, () => this.#once(accepted, about, work));
    } catch (error) {
      return refused(refusalOf(error), about);
    } finally {
      this.#count(namespace, -1);
    }
  }

  /** A namespace that has all other slots does not get the last one: its slow forges and large repositories stop no other namespace. */
  #hasRoom(namespace: string): boolean {
    const { slots } = this.#options;
    return this.#running < slots && (this.#ofNamespaces.get(namespace) ?? 0) < Math.max(1, slots - 1);
  }

  #count(namespace: string, change: 1 | -1): void {
    this.#running += change;
    const own = (this.#ofNamespaces.get(namespace) ?? 0) + change;
    if (own === 0) this.#ofNamespaces.delete(namespace);
    else this.#ofNamespaces.set(namespace, own);
  }

  /** Takes nothing new, and ends what still runs after `grace` milliseconds. */
  async close(grace: number): Promise<void> {
    this.#isClosing = true;
    const timer = setTimeout(() => {
      this.#end.abort();
    }, grace);
    await Promise.allSettled(this.#locks.values());
    clearTimeout(timer);
  }

  async #locked<T>(id: string, work: () => Promise<T>): Promise<T> {
    const before = this.#locks.get(id);
    const own = (before ?? Promise.resolve()).then(work, work);
    this.#locks.set(id, own);
    try {
      return await own;
    } finally {
      if (this.#locks.get(id) === own) this.#locks.delete(id);
    }
  }

  async #once(
    accepted: AcceptedOperation,
    about: { readonly operationId: string; readonly requestDigest: Digest },
    signal: AbortSignal,
  ): Promise<OperationOutcome> {
    if (signal.aborted) throw interrupted(signal);
    const { journal } = this.#options;
    const journaled: JournaledRequest = { ...about, operation: accepted.operation };
    const earlier = await journal.begin(journaled);
    if (earlier) return this.#replay(accepted, earlier, signal);
    try {
      const body = await this.#work(accepted, about, signal);
      const reply = { status: 200, body };
      await journal.finish(journaled, 'completed', reply);
      return { ...reply, code: 'ok' };
    } catch (error) {
      const refusal = reasonOf(error, signal);
      const outcome = refused(refusal, about);
      if (!refusal.retryable) await journal.finish(journaled, 'failed', outcome);
      return outcome;
    } finally {
      journal.release(journaled);
    }
  }

  async #work(accepted: AcceptedOperation, about: JsonObject, signal: AbortSignal): Promise<string> {
    if (accepted.operation === 'workspace.resolve') {
      const found = await this.#options.git.resolve(accepted.request, accepted.credential, signal);
      return canonicalJson({ ...about, ...resolveResponse({ ...found }, []) });
    }
    return canonicalJson({ ...about, ...(await this.#prepared(accepted, signal)) });
  }

  /** Makes the artifact and takes it into the store. */
  async #prepared(
    { request, credential }: Extract<AcceptedOperation, { readonly operation: 'workspace.prepare' }>,
    signal: AbortSignal,
    expected?: Digest,
  ): Promise<PrepareResponse> {
    const reservation = await this.#options.store.reserve();
    try {
      const made = prepareResponse(await this.#options.git.prepare(request, credential, reservation.target, signal), []);
      if (expected !== undefined && made.artifact.digest !== expected) throw new Refusal('workspace_object_corrupt');
      await reservation.admit(made.artifact);
      return made;
    } finally {
      await reservation.release();
    }
  }

  /** The bytes of the earlier answer. An artifact that it named and that is gone is made again, and must be the same. */
  async #replay(accepted: AcceptedOperation, earlier: Reply, signal: AbortSignal): Promise<OperationOutcome> {
    const code = earlier.status === 200 ? 'replayed' : 'replayed_failure';
    if (accepted.operation === 'workspace.prepare' && earlier.status === 200) {
      const { artifact } = decodeText(prepareAnswer, earlier.body);
      if (!(await this.#options.store.keep(artifact))) {
        try {
          await this.#prepared(accepted, signal, artifact.digest);
        } catch (error) {
          throw reasonOf(error, signal);
        }
      }
    }
    return { ...earlier, code };
  }
}

/** What is broken off fails in many ways, all of which are the same interruption. */
function reasonOf(error: unknown, signal: AbortSignal): Refusal {
  return signal.aborted ? interrupted(signal, error) : refusalOf(error);
}

/** Why work was broken off: its time was over, or its caller is gone. Both may be tried again. */
function interrupted(signal: AbortSignal, cause?: unknown): Refusal {
  const isLate = (signal.reason as Partial<Error> | undefined)?.name === 'TimeoutError';
  return new Refusal(isLate ? 'scm_timeout' : 'operation_interrupted', { cause });
}

function refused(refusal: Refusal, about: { readonly operationId: string; readonly requestDigest: Digest }): OperationOutcome {
  const body = canonicalJson(refusal.answer(about));
  return { status: refusal.status, body, code: refusal.code };
}
