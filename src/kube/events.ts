import { randomBytes } from 'node:crypto';
import type { Manifest } from '../api/index.js';
import { fitBytes } from '../lib/text.js';
import type { KubeClient } from './client.js';
import { microTime, systemClock, timestamp } from './clock.js';
import type { Clock } from './clock.js';
import { create } from './create.js';
import { KubeError } from './errors.js';
import { combinedMark, dropFirst, EventCauses, objectOf } from './event-causes.js';
import { EventSender } from './event-sender.js';

/** What happened to an object. */
export interface KubeEvent {
  readonly regarding: Manifest;
  readonly type: 'Normal' | 'Warning';
  /** Why, in one word of UpperCamelCase, at most 128 characters: `ClaimCreated`. */
  readonly reason: string;
  /** What was done, in one word of UpperCamelCase, at most 128 characters: `CreateClaim`. */
  readonly action: string;
  /** For people; cut at 1024 bytes. Never a credential. */
  readonly note: string;
}

export interface RecorderOptions {
  /** Field manager, at most 128 characters. */
  readonly manager: string;
  /** Qualified name of the controller: `orka.ai/workspaces`. */
  readonly reportingController: string;
  /** Which of its processes; cut at 128 characters. */
  readonly reportingInstance: string;
  /** An event that could not be sent, or was dropped because there were too many. */
  readonly onError: (error: unknown) => void;
  /** Events of one object that may come at once. @default 25 */
  readonly burst?: number;
  /** Milliseconds until an object may have one more. @default 300000 */
  readonly refillEvery?: number;
  /** Milliseconds between two counts of a repeated event. @default 30000 */
  readonly countEvery?: number;
  readonly clock?: Clock;
}

export interface Recorder {
  /** Sends in the background. Never throws, never waits. */
  readonly record: (event: KubeEvent) => void;
  /** Sends what is left for at most so many milliseconds, and drops what is recorded later. May be called often. */
  readonly close: (deadline: number) => Promise<void>;
}

/** One cause: an event that is on the server, or will be. Times are in milliseconds since 1970. */
interface Series {
  readonly key: string;
  readonly name: string;
  readonly firstAt: number;
  /** The latest of them. */
  event: KubeEvent;
  count: number;
  lastAt: number;
  cancelCount: (() => void) | undefined;
}

const kindOfEvents = { apiVersion: 'v1', kind: 'Event' };
const manySeries = 1_000;
const manyObjects = 1_000;
const longestNote = 1024;

/**
 * Writes core/v1 Events into the namespace of their object, `default` for one without. events.k8s.io/v1 refuses `firstTimestamp`, `lastTimestamp` and
 * `count` at creation, and kubectl sorts by them.
 *
 * One event per cause: the first is created, later ones of the same object, type, reason, action and note (numbers and names aside) raise its
 * count by a patch at most every `countEvery`. An object that has had its `burst` gets one more each `refillEvery`, counts included. Everything
 * that is kept is bounded. An event that cannot be sent after three tries is reported and dropped.
 */
export function createRecorder(client: KubeClient, options: RecorderOptions): Recorder {
  const events = new EventRecorder(client, options);
  return { record: (event) => events.record(event), close: (deadline) => events.close(deadline) };
}

class EventRecorder {
  readonly #client: KubeClient;
  readonly #options: RecorderOptions;
  readonly #clock: Clock;
  readonly #causes = new EventCauses();
  readonly #series = new Map<string, Series>();
  readonly #buckets = new Map<string, { readonly tokens: number; readonly at: number }>();
  readonly #sender: EventSender;
  #closed = false;

  constructor(client: KubeClient, options: RecorderOptions) {
    this.#client = client;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#sender = new EventSender(this.#clock, (error) => this.#report(error));
  }

  record(event: KubeEvent): void {
    try {
      if (!this.#closed) this.#note(event);
    } catch (error) {
      this.#report(error);
    }
  }

  async close(deadline: number): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      for (const one of this.#series.values()) {
        if (!one.cancelCount) continue;
        one.cancelCount();
        this.#sendCount(one);
      }
    }
    await this.#sender.close(deadline);
  }

  #note(given: KubeEvent): void {
    const note = fitBytes(given.note, longestNote - combinedMark.length, '…');
    const { key, combined } = this.#causes.keyOf({ ...given, note }, this.#clock.elapsed());
    const event = { ...given, note: combined ? combinedMark + note : note };
    const known = this.#series.get(key);
    const now = this.#clock.now();
    if (known) {
      this.#series.delete(key);
      this.#series.set(key, Object.assign(known, { event, lastAt: now, count: known.count + 1 }));
      known.cancelCount ??= this.#clock.after(this.#options.countEvery ?? 30_000, () => this.#sendCount(known));
      return;
    }
    if (!this.#allowed(objectOf(event.regarding))) {
      this.#dropped(event, 'the object has too many');
      return;
    }
    const begun: Series = { key, name: eventName(event), firstAt: now, event, count: 1, lastAt: now, cancelCount: undefined };
    this.#series.set(key, begun);
    for (const old of dropFirst(this.#series, manySeries)) old.cancelCount?.();
    this.#queue(begun, (signal) => this.#create(begun, signal));
  }

  async #create(series: Series, signal: AbortSignal): Promise<void> {
    const { manager } = this.#options;
    await create(this.#client, eventBody(series, this.#options), { manager, signal });
  }

  #sendCount(series: Series): void {
    series.cancelCount = undefined;
    // The next repetition counts this one too.
    if (!this.#allowed(objectOf(series.event.regarding))) return;
    this.#queue(series, async (signal) => {
      try {
        await this.#client.request({
          method: 'PATCH',
          path: await this.#client.pathOf(
            { ...kindOfEvents, namespace: namespaceOf(series.event), name: series.name },
            { signal },
          ),
          query: { fieldManager: this.#options.manager, fieldValidation: 'Strict' },
          contentType: 'application/merge-patch+json',
          body: { count: series.count, lastTimestamp: timestamp(series.lastAt), message: series.event.note },
          signal,
        });
      } catch (error) {
        // The server keeps events for an hour after their last write.
        if (!(error instanceof KubeError) || error.code !== 'not-found') throw error;
        await this.#create(series, signal);
      }
    });
  }

  /** A series that could not be sent begins again with the next event: a missing one cannot be counted. */
  #queue(series: Series, job: (signal: AbortSignal) => Promise<void>): void {
    const forget = () => {
      if (this.#series.get(series.key) === series) this.#series.delete(series.key);
    };
    if (this.#sender.add(job, forget)) return;
    forget();
    this.#dropped(series.event, 'too many wait to be sent');
  }

  #allowed(object: string): boolean {
    const { burst = 25, refillEvery = 300_000 } = this.#options;
    const now = this.#clock.elapsed();
    const before = this.#buckets.get(object);
    const tokens = before ? Math.min(burst, before.tokens + (now - before.at) / refillEvery) : burst;
    const enough = tokens >= 1;
    // Moved to the end, so that the object that was quiet for longest is dropped first.
    this.#buckets.delete(object);
    this.#buckets.set(object, { tokens: enough ? tokens - 1 : tokens, at: now });
    dropFirst(this.#buckets, manyObjects);
    return enough;
  }

  #dropped({ reason, regarding: { kind, metadata } }: KubeEvent, why: string): void {
    const at = `event ${reason} of ${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
    this.#report(new KubeError('too-many-requests', { at, says: why }));
  }

  #report(error: unknown): void {
    try {
      this.#options.onError(error);
    } catch {
      // There is no further place to report to.
    }
  }
}

const namespaceOf = ({ regarding }: KubeEvent): string => regarding.metadata.namespace ?? 'default';

/** The name of an event is a DNS subdomain of at most 253 characters. */
function eventName({ regarding }: KubeEvent): string {
  return `${regarding.metadata.name.slice(0, 236).replace(/[^a-z0-9]+$/, '')}.${randomBytes(8).toString('hex')}`;
}

function eventBody({ name, event, firstAt, lastAt, count }: Series, options: RecorderOptions): Manifest {
  const { apiVersion, kind, metadata } = event.regarding;
  const { namespace, uid, resourceVersion } = metadata;
  return {
    ...kindOfEvents,
    metadata: { name, namespace: namespaceOf(event) },
    involvedObject: { apiVersion, kind, name: metadata.name, namespace, uid, resourceVersion },
    type: event.type,
    reason: event.reason,
    action: event.action,
    message: event.note,
    firstTimestamp: timestamp(firstAt),
    lastTimestamp: timestamp(lastAt),
    count,
    // To the microsecond, for what orders events within a second.
    eventTime: microTime(firstAt),
    source: { component: options.reportingController },
    reportingComponent: options.reportingController,
    reportingInstance: options.reportingInstance.slice(0, 128),
  };
}
