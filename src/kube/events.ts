import { randomBytes } from 'node:crypto';
import type { Manifest } from '../api/index.js';
import { cutBytes } from '../lib/text.js';
import { backoffOf } from './backoff.js';
import type { KubeClient } from './client.js';
import { microTime, sleep, systemClock } from './clock.js';
import type { Clock } from './clock.js';
import { create } from './create.js';
import { askedWait, KubeError } from './errors.js';
import type { KubeErrorCode } from './errors.js';

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
  /** Milliseconds without a repetition after which the same event is a new one. @default 360000 */
  readonly seriesEnds?: number;
  readonly clock?: Clock;
}

export interface Recorder {
  /** Sends in the background. Never throws, never waits. */
  readonly record: (event: KubeEvent) => void;
  /** Sends what is to be sent, for at most so many milliseconds; what is recorded later is dropped. May be called often. */
  readonly close: (deadline: number) => Promise<void>;
}

/** An event that is known on the server, or will be. */
interface Series {
  readonly name: string;
  readonly namespace: string;
  readonly event: KubeEvent;
  count: number;
  /** Since 1970. */
  lastAt: number;
  /** In elapsed time. */
  seenAt: number;
  cancelCount: (() => void) | undefined;
}

const events = { apiVersion: 'events.k8s.io/v1', kind: 'Event' };
const manySeries = 1_000;
const manyObjects = 1_000;
const manyJobs = 200;
const tries = 3;
/** A server may ask for more patience than an event is worth: the others wait behind it. */
const longestAskedPause = 30_000;
/** What may be over a moment later. */
const passing: ReadonlySet<KubeErrorCode> = new Set<KubeErrorCode>([
  'timeout',
  'unreachable',
  'too-many-requests',
  'server-error',
]);

/**
 * Writes events.k8s.io/v1 Events into the namespace of their object, `default` for one without. The same type, reason, action and note again for
 * the same object is a series: the first is created, later ones are counted by a patch now and then. An object that has had its `burst` gets one
 * more each `refillEvery`, counts included. What is kept is bounded, and events are the first thing that is given up: one that cannot be sent
 * after three tries is reported and dropped.
 */
export function createRecorder(client: KubeClient, options: RecorderOptions): Recorder {
  const { manager, burst = 25, refillEvery = 300_000, countEvery = 30_000, seriesEnds = 360_000, clock = systemClock } = options;
  const series = new Map<string, Series>();
  const buckets = new Map<string, { tokens: number; readonly at: number }>();
  const jobs: (() => Promise<void>)[] = [];
  const stopping = new AbortController();
  let pumping: Promise<void> | undefined;
  let closed = false;

  function report(error: unknown): void {
    try {
      options.onError(error);
    } catch {
      // Nobody is left to tell.
    }
  }

  function allowed(object: string): boolean {
    const now = clock.elapsed();
    const before = buckets.get(object);
    const tokens = before ? Math.min(burst, before.tokens + (now - before.at) / refillEvery) : burst;
    const enough = tokens >= 1;
    // Anew at the end, so that the first of the map is the one that was quiet for longest.
    buckets.delete(object);
    buckets.set(object, { tokens: enough ? tokens - 1 : tokens, at: now });
    dropFirst(buckets, manyObjects);
    return enough;
  }

  function dropped(event: KubeEvent, why: string): void {
    const { kind, metadata } = event.regarding;
    report(
      new KubeError('too-many-requests', {
        at: `event ${event.reason} of ${kind} ${metadata.namespace ?? ''}/${metadata.name}`,
        says: why,
      }),
    );
  }

  function note(given: KubeEvent): void {
    const event = { ...given, note: cutBytes(given.note, 1024 - 3, '…') };
    const object = objectOf(event.regarding);
    const key = JSON.stringify([object, event.type, event.reason, event.action, event.note]);
    const known = series.get(key);
    if (known && clock.elapsed() - known.seenAt < seriesEnds) {
      known.count++;
      known.lastAt = clock.now();
      known.seenAt = clock.elapsed();
      series.delete(key);
      series.set(key, known);
      known.cancelCount ??= clock.after(countEvery, () => {
        sendCount(key, known, object);
      });
      return;
    }
    known?.cancelCount?.();
    if (!allowed(object)) {
      dropped(event, 'the object has too many');
      return;
    }
    const { name, namespace = 'default' } = event.regarding.metadata;
    const mine: Series = {
      // The name of an event is a DNS subdomain of at most 253 characters.
      name: `${name.slice(0, 236).replace(/[^a-z0-9]+$/, '')}.${randomBytes(8).toString('hex')}`,
      namespace,
      event,
      count: 1,
      lastAt: clock.now(),
      seenAt: clock.elapsed(),
      cancelCount: undefined,
    };
    series.set(key, mine);
    for (const old of dropFirst(series, manySeries)) old.cancelCount?.();
    const body = bodyOf(mine);
    queue(
      mine,
      async () => {
        await create(client, body, { manager, signal: stopping.signal });
      },
      () => {
        // What is not there cannot be counted.
        if (series.get(key) === mine) series.delete(key);
      },
    );
  }

  function bodyOf({ name, namespace, event, lastAt }: Series): Manifest {
    const { apiVersion, kind, metadata } = event.regarding;
    return {
      ...events,
      metadata: { name, namespace },
      eventTime: microTime(lastAt),
      type: event.type,
      reason: event.reason,
      action: event.action,
      note: event.note,
      reportingController: options.reportingController,
      reportingInstance: options.reportingInstance.slice(0, 128),
      regarding: {
        apiVersion,
        kind,
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resourceVersion: metadata.resourceVersion,
      },
    };
  }

  function sendCount(key: string, known: Series, object: string): void {
    known.cancelCount = undefined;
    // The next repetition counts this one too.
    if (!allowed(object)) return;
    const at = { ...events, namespace: known.namespace, name: known.name };
    const { signal } = stopping;
    queue(known, async () => {
      try {
        await client.request({
          method: 'PATCH',
          path: await client.pathOf(at, { signal }),
          query: { fieldManager: manager, fieldValidation: 'Strict' },
          contentType: 'application/merge-patch+json',
          body: { series: { count: known.count, lastObservedTime: microTime(known.lastAt) } },
          signal,
        });
      } catch (error) {
        // The server keeps events for an hour. The next repetition is a new one.
        if (!(error instanceof KubeError) || error.code !== 'not-found') throw error;
        if (series.get(key) === known) series.delete(key);
      }
    });
  }

  function queue({ event }: Series, job: () => Promise<void>, failed = (): void => undefined): void {
    if (jobs.length >= manyJobs) {
      failed();
      dropped(event, 'too many wait to be sent');
      return;
    }
    jobs.push(async () => {
      if (!(await attempt(job))) failed();
    });
    pumping ??= pump().finally(() => {
      pumping = undefined;
    });
  }

  async function pump(): Promise<void> {
    for (let job = jobs.shift(); job; job = jobs.shift()) await job();
  }

  /** Whether it was done in the end. */
  async function attempt(job: () => Promise<void>): Promise<boolean> {
    for (let failures = 1; !stopping.signal.aborted; failures++) {
      try {
        await job();
        return true;
      } catch (error) {
        const code = error instanceof KubeError ? error.code : 'invalid';
        // The answer to an earlier try was lost.
        if (code === 'already-exists' && failures > 1) return true;
        if (!passing.has(code) || failures >= tries) {
          report(error);
          return false;
        }
        const wait = Math.max(backoffOf(failures, { base: 500, cap: 5_000 }), Math.min(askedWait(error), longestAskedPause));
        await sleep(clock, wait, stopping.signal);
      }
    }
    return false;
  }

  async function close(deadline: number): Promise<void> {
    if (!closed) {
      closed = true;
      for (const [key, known] of series) {
        if (!known.cancelCount) continue;
        known.cancelCount();
        sendCount(key, known, objectOf(known.event.regarding));
      }
    }
    const cancel = clock.after(deadline, () => {
      stopping.abort();
    });
    await pumping;
    cancel();
  }

  return {
    record: (event) => {
      try {
        if (!closed) note(event);
      } catch (error) {
        report(error);
      }
    },
    close,
  };
}

function objectOf({ apiVersion, kind, metadata: { namespace, name, uid } }: Manifest): string {
  return JSON.stringify([apiVersion, kind, namespace, name, uid]);
}

/** Removes and answers the oldest entries of a map that has too many. */
function dropFirst<T>(map: Map<string, T>, most: number): readonly T[] {
  const dropped: T[] = [];
  for (const [key, value] of map) {
    if (map.size <= most) break;
    map.delete(key);
    dropped.push(value);
  }
  return dropped;
}
