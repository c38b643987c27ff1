import type { Task } from '../../api/index.js';
import type { SourceCall, SourcePlan } from '../../domain/source-plan.js';
import { effectsOf, sourceStanding } from '../../domain/source-plan.js';
import type { ResolvedSource } from '../../domain/source-plan.js';
import { effectEnded, effectOf, effectSucceeded, inFlight, withEffect } from '../../domain/source-effects.js';
import type { EffectRecord } from '../../domain/source-effects.js';
import { sourceRefusal, sourceTrouble } from '../../domain/source-refusals.js';
import type { SourceRefusal } from '../../domain/source-refusals.js';
import { sleep, timestamp } from '../../kube/clock.js';
import { isNotGranted, KubeError } from '../../kube/errors.js';
import type { KubeEvent } from '../../kube/events.js';
import type { JsonObject } from '../../lib/json.js';
import { counted } from '../../lib/text.js';
import { PublisherError } from '../../source/errors.js';
import type { SourceService } from '../publisher.js';
import { advance } from './advance.js';
import type { AdvanceOptions } from './advance.js';
import { causeOf } from './cause.js';
import { changedCredential, readFrozenCredential } from './source-credential.js';

/** Everything that the source of a Task does to the outside, in its order. Each may be the last one of a process. */
export const sourceSteps = [
  'write-resolve-pending',
  'write-resolve-in-flight',
  'resolve-source',
  'write-resolved',
  'write-prepare-pending',
  'write-prepare-in-flight',
  'prepare-source',
  'write-prepared',
] as const;
export type SourceStep = (typeof sourceSteps)[number];

/** `refresh`: the same prepare again, so that the publisher keeps the archive. */
export type SourceWork = 'resolve' | 'prepare' | 'refresh';

export interface SourceRunOptions extends AdvanceOptions {
  readonly epoch: number;
  /** `undefined` = this installation has no publisher. */
  readonly source: SourceService | undefined;
  readonly step: <T>(name: SourceStep, take: () => Promise<T>) => Promise<T>;
  readonly tell: (task: Task, type: KubeEvent['type'], reason: string, note: string) => void;
  readonly onError: (error: unknown) => void;
  readonly called: (work: SourceWork, code: string, took: number) => void;
}

/** What a run came to. `prepared`: when the publisher last named the archive, in milliseconds since 1970. */
export type SourceEnd =
  | { readonly outcome: 'done'; readonly prepared?: number }
  | { readonly outcome: 'refused'; readonly refusal: SourceRefusal }
  | { readonly outcome: 'failed'; readonly error: unknown }
  | { readonly outcome: 'stopped' };

/** Milliseconds. Source: repository.md §2.2. */
const budget = 4 * 60_000;
const pause = 5_000;

/** States in which a source may be fetched; `''` = not queued yet. */
const beforeSubmission: readonly string[] = ['', 'Queued', 'Reserved', 'SessionStarting', 'Planned'];
/** Final codes that are tried again: a publisher has new keys a little later than the controller. */
const passing: readonly string[] = ['unauthorized'];

const stepsOf = {
  resolve: ['write-resolve-pending', 'write-resolve-in-flight', 'resolve-source', 'write-resolved'],
  prepare: ['write-prepare-pending', 'write-prepare-in-flight', 'prepare-source', 'write-prepared'],
} as const satisfies Record<string, readonly SourceStep[]>;

/**
 * One call of the publisher for one Task, with its record: `Pending`, then `InFlight`, then the call, then its result, which is used last.
 * A failure that may pass is followed by the same operation again. Source: repository.md §2.2.
 */
export class SourceRun {
  readonly #options: SourceRunOptions;
  readonly #task: Task;
  readonly #plan: SourcePlan;
  readonly #signal: AbortSignal;
  #says: string | undefined;

  /** @param signal aborted when the Task needs its source no more, or this process must not write */
  constructor(options: SourceRunOptions, task: Task, plan: SourcePlan, signal: AbortSignal) {
    this.#options = options;
    this.#task = task;
    this.#plan = plan;
    this.#signal = signal;
  }

  /** Why the last try came to nothing. */
  get says(): string | undefined {
    return this.#says;
  }

  /** Never rejects. */
  async run(work: SourceWork): Promise<SourceEnd> {
    try {
      return await this.#run(work);
    } catch (error) {
      return this.#signal.aborted ? { outcome: 'stopped' } : { outcome: 'failed', error };
    }
  }

  async #run(work: SourceWork): Promise<SourceEnd> {
    if (work === 'resolve') return this.#recorded('resolve', this.#plan.resolve);
    const standing = sourceStanding(this.#plan, this.#task.status?.execution);
    if (standing.is === 'ready' && work === 'refresh') {
      const call = this.#plan.prepare(standing.resolved);
      const began = this.#options.clock.now();
      const end = await this.#call('refresh', call, began + budget);
      if ('refusal' in end) return { outcome: 'refused', refusal: end.refusal };
      if (sameArchive(end.response, standing.prepared)) return { outcome: 'done', prepared: this.#options.clock.now() };
      return { outcome: 'refused', refusal: sourceRefusal('workspace_object_corrupt', this.#plan.asked) };
    }
    if (standing.is !== 'unprepared') return { outcome: 'stopped' };
    return this.#recorded('prepare', this.#plan.prepare(standing.resolved));
  }

  /** A call that is on record in each of its states. */
  async #recorded(work: 'resolve' | 'prepare', call: SourceCall): Promise<SourceEnd> {
    const [pending, flying, , done] = stepsOf[work];
    const { clock, epoch, step } = this.#options;
    await step(pending, () => this.#write(call.pending, (record) => record));
    const taken = await step(flying, () =>
      this.#write(call.pending, (record) => inFlight(record, epoch, timestamp(clock.now()))),
    );
    const startedAt = Date.parse(effectOf(effectsOf(taken.status?.execution), call.pending)?.startedAt ?? '');
    const end = await this.#call(work, call, startedAt + budget);
    if ('refusal' in end) {
      if (end.record) await this.#write(call.pending, end.record);
      return { outcome: 'refused', refusal: end.refusal };
    }
    const stored = await step(done, () => this.#write(call.pending, (record) => effectSucceeded(record, end.response)));
    this.#announce(work, stored, end.response);
    return work === 'prepare' ? { outcome: 'done', prepared: clock.now() } : { outcome: 'done' };
  }

  /** Calls until it is answered for good, or the time of the call is over. */
  async #call(work: SourceWork, call: SourceCall, until: number): Promise<CallEnd> {
    const { clock } = this.#options;
    for (;;) {
      this.#goesOn();
      const tried = await this.#try(work, call, until - clock.now());
      if (!('code' in tried)) return tried;
      const { code, error } = tried;
      if (!tried.retryable) {
        const refusal = sourceRefusal(code, this.#plan.asked, error?.detail);
        return { refusal, record: (record) => effectEnded(record, 'Failed', code, error?.detail) };
      }
      this.#says = tried.says;
      if (clock.now() + pause >= until) {
        const refusal = { ...sourceRefusal(code, this.#plan.asked), reason: 'WorkspaceUnsupported' } as const;
        return { refusal, record: (record) => effectEnded(record, 'OutcomeUnknown', code) };
      }
      await sleep(clock, pause, this.#signal);
    }
  }

  /** One call, with the credential as it is now. What a signal ended is thrown. */
  async #try(work: SourceWork, call: SourceCall, left: number): Promise<Tried> {
    const { clock, step, source, onError, called } = this.#options;
    const credential = await this.#credential();
    if ('refusal' in credential || 'code' in credential) return credential;
    const began = clock.elapsed();
    const name = stepsOf[work === 'resolve' ? 'resolve' : 'prepare'][2];
    const options = { signal: this.#signal, timeout: Math.max(left, 1) };
    try {
      if (!source) throw notInstalled();
      const { material } = credential;
      const response = await step(name, () => ask(source, work, call, material, options));
      called(work, 'ok', clock.elapsed() - began);
      return { response };
    } catch (error) {
      this.#goesOn();
      if (!(error instanceof PublisherError)) throw error;
      onError(error);
      called(work, error.code, clock.elapsed() - began);
      const retryable = error.retryable || passing.includes(error.code);
      return { code: error.code, retryable, says: sourceTrouble(error.code, this.#plan.asked), error };
    }
  }

  /** Read again before each call: a Secret that was changed is another credential. */
  async #credential(): Promise<
    { readonly material: string | undefined } | Extract<Tried, { code: string } | { refusal: unknown }>
  > {
    const { credential, asked } = this.#plan;
    if (!credential) return { material: undefined };
    try {
      const now = (this.#options.world.tasks.get(keyOf(this.#task)) ?? this.#task) as unknown as Task;
      const found = await readFrozenCredential(this.#options.client, now, credential, this.#signal);
      if ('material' in found) return found;
      return {
        refusal: changedCredential(asked.at, found.says),
        record: (one) => effectEnded(one, 'Failed', 'credential_changed'),
      };
    } catch (error) {
      this.#goesOn();
      if (!(error instanceof KubeError)) throw error;
      this.#options.onError(error);
      const says = isNotGranted(error)
        ? `the controller may not read Secret ${credential.name}`
        : `Secret ${credential.name} could not be read: ${causeOf(error)}`;
      return { code: 'credential_unread', retryable: true, says };
    }
  }

  /** Writes what `change` makes of the record, as it is stored now. */
  #write(pending: EffectRecord, change: (record: EffectRecord) => EffectRecord): Promise<Task> {
    this.#goesOn();
    return advance({ ...this.#options, signal: this.#signal }, this.#task, beforeSubmission, ({ status, metadata }) => {
      if (metadata.deletionTimestamp !== undefined) throw new Error('the Task is being deleted');
      const records = effectsOf(status?.execution);
      const effects = withEffect(records, change(effectOf(records, pending) ?? pending));
      return { ...status, execution: { ...status?.execution, effects } };
    });
  }

  #goesOn(): void {
    if (this.#signal.aborted) throw new Error('the source is not wanted any more');
  }

  #announce(work: 'resolve' | 'prepare', task: Task, response: JsonObject): void {
    const { tell } = this.#options;
    const { repositoryId } = this.#plan.asked;
    if (work === 'resolve') {
      const { sourceRef, baselineOID } = response as unknown as ResolvedSource;
      tell(task, 'Normal', 'RepositoryResolved', `${sourceRef} of ${repositoryId} is commit ${baselineOID}`);
      return;
    }
    const { entryCount, notes } = response as unknown as {
      entryCount: number;
      notes?: readonly { code: string; count: number }[];
    };
    tell(task, 'Normal', 'RepositoryFetched', `${repositoryId} was fetched: ${counted(entryCount, 'entry', 'entries')}`);
    for (const { code, count } of notes ?? [])
      if (code === 'lfs_pointers')
        tell(task, 'Normal', 'RepositoryNote', `${counted(count, 'file')} of Git LFS stand in the workspace as pointers`);
  }
}

type CallEnd =
  | { readonly response: JsonObject }
  /** `record`: how the call ends on record. */
  | { readonly refusal: SourceRefusal; readonly record?: (record: EffectRecord) => EffectRecord };

type Tried =
  CallEnd | { readonly code: string; readonly retryable: boolean; readonly says: string; readonly error?: PublisherError };

const keyOf = ({ metadata }: Task): string => `${metadata.namespace ?? ''}/${metadata.name}`;

function notInstalled(): PublisherError {
  const says = 'this installation has no publisher';
  return new PublisherError('unreachable', { at: 'publisher', says, retryable: true, mayHaveArrived: false });
}

/** The response in the form that it is on record. Throws for one that answers another request. */
async function ask(
  source: SourceService,
  work: SourceWork,
  { request }: SourceCall,
  credential: string | undefined,
  options: { readonly signal: AbortSignal; readonly timeout: number },
): Promise<JsonObject> {
  if (work === 'resolve') {
    const { repositoryId, sourceRef, baselineOid } = await source.resolve(request, credential, options);
    if (repositoryId !== request.source.id) throw otherRepository();
    return { repositoryID: repositoryId, sourceRef, baselineOID: baselineOid };
  }
  const { treeOid, manifestDigest, entryCount, expandedBytes, artifact, notes } = await source.prepare(
    request as Parameters<SourceService['prepare']>[0],
    credential,
    options,
  );
  const { artifactId, digest, sizeBytes, mediaType } = artifact;
  return {
    treeOID: treeOid,
    manifestDigest,
    entryCount,
    expandedBytes,
    artifact: { artifactID: artifactId, digest, sizeBytes, mediaType },
    ...(notes === undefined ? {} : { notes: notes.map((note) => ({ ...note })) }),
  };
}

function otherRepository(): PublisherError {
  const says = 'repositoryId is that of another request';
  return new PublisherError('protocol', { at: 'publisher', says, retryable: false, mayHaveArrived: true, status: 200 });
}

function sameArchive(
  response: JsonObject,
  prepared: { readonly manifestDigest: string; readonly artifact: { readonly digest: string } },
) {
  const { manifestDigest, artifact } = response as unknown as typeof prepared;
  return manifestDigest === prepared.manifestDigest && artifact.digest === prepared.artifact.digest;
}
